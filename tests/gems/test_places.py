"""Where sources read and targets write, as far as their options say it: what rules of places go by."""

from pathlib import Path

import pytest

from gem_bundle import Source, Target
from gem_bundle.plugins import load_registry

BASE = Path("/base")
BROKERS = {"bootstrap_servers": ["a:9092", "b:9092"]}


def gem(kind: str, name: str, **options: object) -> Source | Target:
    """A gem as the runtime makes it."""
    made = load_registry({}).get(kind, name).load()  # type: ignore[arg-type]
    instance = made(made.options_type.model_validate(options, context={"base_dir": BASE}))
    assert isinstance(instance, Source | Target)
    return instance


@pytest.mark.parametrize(
    ("kind", "name", "options", "places"),
    [
        ("source", "file", {"format": "text", "path": "x/*"}, {"path": ["/base/x/*"]}),
        (
            "source",
            "file",
            {"format": "text", "path": "x", "recursive_file_lookup": True},
            {"path": ["/base/x/**"]},
        ),
        ("target", "file", {"format": "text", "path": "s3a://b/x"}, {"path": ["s3a://b/x"]}),
        ("source", "delta", {"path": "x"}, {"path": ["/base/x"]}),
        ("target", "delta", {"table": "a.b"}, {"table": ["table:a.b"]}),
        ("source", "table", {"table": "a.b"}, {"table": ["table:a.b"]}),
        ("target", "table", {"table": "a.b"}, {"table": ["table:a.b"]}),
        ("target", "table", {"table": "b", "path": "x"}, {"table": ["table:b"], "path": ["/base/x"]}),
        (
            "source",
            "kafka",
            {**BROKERS, "subscribe": "t, u"},
            {
                "subscribe": [
                    "kafka://a:9092/t",
                    "kafka://b:9092/t",
                    "kafka://a:9092/u",
                    "kafka://b:9092/u",
                ]
            },
        ),
        (
            "source",
            "kafka",
            {**BROKERS, "assign": {"t": [0]}},
            {"assign": ["kafka://a:9092/t", "kafka://b:9092/t"]},
        ),
        (
            "target",
            "kafka",
            {**BROKERS, "topic": "t"},
            {"topic": ["kafka://a:9092/t", "kafka://b:9092/t"]},
        ),
    ],
)
def test_places(kind: str, name: str, options: dict[str, object], places: dict[str, list[str]]) -> None:
    assert gem(kind, name, **options).places() == places


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("source", "kafka", {**BROKERS, "subscribe_pattern": "t.*"}),
        ("target", "kafka", {**BROKERS, "topic_column": "t"}),
        ("source", "rate", {}),
        ("target", "console", {}),
        ("target", "foreach", {"function": "a:b"}),
    ],
)
def test_places_that_are_not_known(kind: str, name: str, options: dict[str, object]) -> None:
    assert [place for places in gem(kind, name, **options).places().values() for place in places] == []


def test_what_becomes_of_rows_when_two_queries_write_to_one_place() -> None:
    shared = {
        entry.name: entry.load().semantics.shared  # type: ignore[attr-defined]
        for entry in load_registry({})
        if entry.kind == "target"
    }
    assert {name: how for name, how in shared.items() if how != "fine"} == {
        "delta": "conflicts",
        "file": "loses_rows",
        "table": "conflicts",
    }


@pytest.mark.parametrize(
    ("name", "options", "only_new"),
    [
        ("rate", {}, True),
        ("socket", {"host": "h", "port": 1}, True),
        ("rate_micro_batch", {"rows_per_batch": 1}, False),
        ("file", {"format": "text", "path": "x"}, False),
        ("delta", {"path": "x"}, False),
        ("delta", {"path": "x", "starting_version": 0}, False),
        ("delta", {"path": "x", "starting_version": "latest"}, "starting_version"),
    ],
)
def test_which_sources_begin_with_what_comes(
    name: str, options: dict[str, object], only_new: str | bool
) -> None:
    source = gem("source", name, **options)

    assert isinstance(source, Source)
    assert source.semantics.only_new == only_new


def test_which_files_come_first() -> None:
    options = {"format": "text", "path": "x"}
    for latest, option in ((True, "latest_first"), (False, None), (None, None)):
        source = gem("source", "file", **options, latest_first=latest)
        assert isinstance(source, Source)
        assert source.semantics.newest_first == option
