"""What the built-in gems say of another value of their options, for `gem-bundle plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.rules.options import meaning_of, without_a_word
from gem_bundle.options import metadata
from gem_bundle.plugins import load_registry
from tests.gems.changes_by_default import BY_DEFAULT

if TYPE_CHECKING:
    from gem_bundle.gem import Gem

REGISTRY = load_registry({})
GEMS = [(kind, name) for kind in ("source", "transform", "target") for name in REGISTRY.names(kind)]


def gem(kind: str, name: str, **options: Any) -> Gem:
    made = REGISTRY.get(kind, name).load()  # type: ignore[arg-type]
    return made(made.options_type.model_validate(options))


def said(kind: str, name: str, option: str, before: Any, **options: Any) -> str | None:
    change = gem(kind, name, **options).change(option, before)
    return None if change is None else change.effect


@pytest.mark.parametrize(("kind", "name"), GEMS)
def test_every_option_is_declared(kind: str, name: str) -> None:
    found = REGISTRY.get(kind, name).load()  # type: ignore[arg-type]
    silent = [
        option
        for option, info in found.options_type.model_fields.items()
        if not (metadata(info).get("change") or found.options_type.default_change)
    ]
    assert not silent


@pytest.mark.parametrize(("kind", "name"), GEMS)
def test_an_option_has_a_word_of_its_own_or_is_known_to_have_none(kind: str, name: str) -> None:
    found = REGISTRY.get(kind, name).load()  # type: ignore[arg-type]
    known = BY_DEFAULT.get((kind, name), frozenset())
    fields = found.options_type.model_fields
    new = sorted(set(without_a_word(gem(kind, name, **found.example))) - known)
    gone = sorted(name for name in known if name not in fields or metadata(fields[name]).get("change"))
    assert not new, (
        f"say what another value of {new} does with `Field(change=…)` or `change`, or name it there"
    )
    assert not gone, f"{gone} has a word of its own by now: remove it there"


KAFKA: dict[str, Any] = {"bootstrap_servers": ["b1:9092"], "subscribe": ["clicks", "views"]}


@pytest.mark.parametrize(
    ("option", "before", "options", "effect"),
    [
        ("subscribe", ["clicks"], {}, "continues"),
        ("subscribe", ["clicks", "old"], {}, "refused"),
        ("subscribe", ["clicks", "old"], {"fail_on_data_loss": False}, "skipped"),
        ("subscribe", None, {}, "continues"),
        ("subscribe_pattern", "click.*", {}, "refused"),
        ("subscribe_pattern", "click.*", {"fail_on_data_loss": False}, "skipped"),
        ("subscribe", ["clicks"], {"subscribe_pattern": "click.*"}, "continues"),
        ("subscribe_pattern", None, {"subscribe_pattern": "click.*"}, "continues"),
        ("subscribe", ["clicks", "old"], {"subscribe_pattern": "click.*"}, "refused"),
        ("subscribe", ["old"], {"subscribe_pattern": "click.*", "fail_on_data_loss": False}, "skipped"),
        # By default Spark looks for a pattern within a name, and by one of its settings it doesn't.
        ("subscribe", ["clicks"], {"subscribe_pattern": "lick"}, "refused"),
        # What only Java knows, and what means something else to it.
        ("subscribe", ["clicks"], {"subscribe_pattern": r"\p{Ll}+"}, "refused"),
        ("subscribe", ["c&"], {"subscribe_pattern": "[a-c&&c]+"}, "refused"),
        ("subscribe", ["clicks"], {"assign": {"clicks": [0, 1]}}, "refused"),
        ("assign", {"clicks": [0, 1]}, {}, "continues"),
        ("assign", {"old": [0]}, {}, "refused"),
        ("assign", {"clicks": [0, 1]}, {"subscribe_pattern": "c.*"}, "continues"),
        ("assign", {"clicks": [0]}, {"assign": {"clicks": [0, 1]}}, "continues"),
        ("assign", {"clicks": [0, 1]}, {"assign": {"clicks": [1]}}, "refused"),
        ("subscribe", {"environment": True}, {}, "refused"),
        ("bootstrap_servers", ["b1:9092", "b2:9092"], {}, "continues"),
        ("bootstrap_servers", ["b2:9092"], {}, "skipped"),
        ("starting_offsets", "latest", {"starting_offsets": "earliest"}, "continues"),
        ("max_offsets_per_trigger", 5, {}, None),
    ],
)
def test_kafka_sources(option: str, before: Any, options: dict[str, Any], effect: str | None) -> None:
    given = {"subscribe": None} if {"subscribe_pattern", "assign"} & set(options) else {}
    assert said("source", "kafka", option, before, **{**KAFKA, **given, **options}) == effect


@pytest.mark.parametrize(
    ("before", "options", "why"),
    [
        (["clicks", "old"], {}, "the checkpoint has offsets of `old`, which isn't read any more"),
        (["old"], {"subscribe_pattern": "c.*"}, "the checkpoint has offsets of `old`, which isn't read any"),
        (["clicks"], {"subscribe_pattern": "lick"}, "the checkpoint has offsets of `clicks`, which may not"),
        (["clicks"], {"assign": {"clicks": [0]}}, "the checkpoint has offsets of `clicks`, which may not"),
    ],
)
def test_topics_that_are_not_read_any_more_are_named(
    before: list[str], options: dict[str, Any], why: str
) -> None:
    given = {"subscribe": None} if options else {}
    found = gem("source", "kafka", **{**KAFKA, **given, **options}).change("subscribe", before)
    assert found is not None
    assert found.why.startswith(why)


def test_from_where_a_first_run_reads() -> None:
    assert gem("source", "kafka", **KAFKA, starting_offsets="earliest").begins() == "from its beginning"  # type: ignore[attr-defined]
    assert gem("source", "kafka", **KAFKA).begins() == "from what comes after the start"  # type: ignore[attr-defined]
    assert gem("source", "delta", path="t", starting_version=3).begins() == "from version 3 on"  # type: ignore[attr-defined]
    assert gem("source", "rate").begins() == "from what comes after the start"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", REGISTRY.names("target"))
def test_every_target_says_whether_it_takes_over_a_checkpoint(name: str) -> None:
    target = gem("target", name, **REGISTRY.get("target", name).load().example)
    if target.semantics.restartable:  # type: ignore[attr-defined]
        assert target.takes_over() is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "effect"),
    [
        ({"format": "parquet"}, "refused"),
        ({"format": "JSON"}, "refused"),
        ({}, "refused"),
        ({"format": "delta"}, "from_now_on"),
        ({"catalog": {"kind": "hadoop", "warehouse": "lake"}}, "from_now_on"),
    ],
)
def test_a_table_of_files_takes_no_micro_batches_from_the_middle(
    options: dict[str, Any], effect: str
) -> None:
    name = "lake.shop.clicks"
    table = gem("target", "table", table=name, **options)
    assert table.takes_over().effect == effect  # type: ignore[attr-defined]
    assert said("target", "table", "table", "lake.shop.others", table=name, **options) == effect


DELTA: dict[str, Any] = {"path": "clicks"}
ICEBERG: dict[str, Any] = {"table": "lake.shop.clicks", "format": "iceberg"}
JOBS: dict[str, Any] = {"function": "jobs:save"}
MERGE: dict[str, Any] = {"on": ["id"]}
HISTORY: dict[str, Any] = {"keys": ["id"], "sequence_by": "at"}


@pytest.mark.parametrize(
    ("name", "option", "before", "options", "why", "hint"),
    [
        ("foreach_batch", "function", "jobs:keep", JOBS, "up to the function", "accept the change"),
        ("foreach_batch", "arguments", {"a": 1}, JOBS, "up to the function", "accept the change"),
        ("foreach", "function", "jobs:keep", JOBS, "up to the function", "accept the change"),
        ("delta", "merge", None, {**DELTA, "merge": MERGE}, "a key may be there", "another id"),
        ("delta", "merge", MERGE, DELTA, "are added beside those with their key", "another id"),
        ("delta", "history", None, {**DELTA, "history": HISTORY}, "are no versions", "another id"),
        ("delta", "history", HISTORY, DELTA, "are no versions", "another id"),
        ("table", "merge", None, {**ICEBERG, "merge": MERGE}, "a key may be there", "another id"),
        ("table", "merge", MERGE, ICEBERG, "are added beside those with their key", "another id"),
    ],
)
def test_rows_that_are_written_in_another_way_are_told_of(
    name: str, option: str, before: Any, options: dict[str, Any], why: str, hint: str
) -> None:
    found = gem("target", name, **options).change(option, before)
    assert found is not None
    assert found.effect == "mixed"
    assert why in found.why
    assert hint in found.hint


def test_that_a_function_is_idempotent_changes_no_row() -> None:
    target = gem("target", "foreach_batch", **JOBS)
    assert meaning_of(target, "idempotent", True, stateful=False)[0].effect == "continues"


def test_places() -> None:
    assert said("source", "file", "path", "a", format="json", path="b") == "refused"
    assert said("source", "delta", "path", "a", path="b") == "refused"
    assert said("target", "file", "path", "a", format="json", path="b") == "mixed"
    assert said("target", "file", "sep", None, format="csv", path="a", sep=";") == "mixed"
    assert said("target", "table", "partition_by", [], table="t", partition_by=["a"]) == "refused"
    assert said("target", "table", "partition_by", [], table="t", format="csv", partition_by=["a"]) == "mixed"
    shop: dict[str, Any] = {"url": "jdbc:postgresql://localhost/shop", "table": "clicks"}
    keyed = {**shop, "upsert": {"on": ["id"]}}
    assert said("target", "jdbc", "upsert", None, **keyed) == "refused"
    assert said("target", "jdbc", "upsert", {"on": ["id"], "sequence_by": "at"}, **keyed) == "from_now_on"
    assert said("target", "table", "path", "a", table="t", path="b") == "continues"
    assert said("target", "delta", "path", "a", path="b") == "from_now_on"
    assert said("target", "delta", "partition_by", ["a"], path="b") == "refused"
    assert said("target", "kafka", "topic", "a", bootstrap_servers=["b:1"], topic="b") == "from_now_on"
    assert said("transform", "limit", "rows", 5, rows=0) is None
    assert said("transform", "limit", "rows", 5, rows=6) is None


@pytest.mark.parametrize(
    ("option", "before", "effect"),
    [
        ("delay", "600 seconds", "continues"),
        ("delay", "INTERVAL 10 minutes", "continues"),
        ("delay", "11 minutes", None),
        ("delay", {"environment": True}, None),
        ("column", "`AT`", "continues"),
        ("column", "seen", None),
    ],
)
def test_watermarks(option: str, before: Any, effect: str | None) -> None:
    assert said("transform", "watermark", option, before, column="at", delay="10 minutes") == effect
