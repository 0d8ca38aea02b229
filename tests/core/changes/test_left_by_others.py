"""Checkpoints that hand-written PySpark left, on several Sparks: what a plan says of them, and never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.inspection import inspect, lines_of
from gem_bundle.changes.planning import plan_changes
from tests.core.changes.damages import MISSING, damages, remove
from tests.core.changes.edits import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.changes.model import Change

LEFT = Path(__file__).with_name("checkpoints")
VERSIONS = sorted(folder.name for folder in LEFT.iterdir())
HEAD = """
pipeline: shop
SPARKsources:
  a: {gem: file, options: {format: json, path: a, schema: "id string, at timestamp, n int"}}
"""
UNNAMED = "spark: {spark.sql.streaming.queryEvolution.enableSourceEvolution: false}\n"
STATELESS = (
    HEAD
    + """
transforms:
  some: {gem: filter, input: a, options: {condition: n > 3}}
targets:
  out: {gem: file, input: some, options: {format: parquet, path: out}}
"""
)
COUNTED = (
    HEAD
    + """
transforms:
  timely: {gem: watermark, input: a, options: {column: at, delay: 30 seconds}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 minute}, group_by: [id], aggregates: {n: sum(n)}}
targets:
  out: {gem: file, input: counts, options: {format: parquet, path: out}}
"""
)
ONCE = (
    HEAD
    + """
transforms:
  once: {gem: deduplicate, input: a, options: {columns: [id]}}
targets:
  out: {gem: file, input: once, options: {format: parquet, path: out}}
"""
)


def beside(folder: Path, version: str, name: str) -> Path:
    """A project's folder with such a checkpoint in it."""
    shutil.copytree(LEFT / version / name, folder / "checkpoints" / "shop" / "out")
    return folder


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "text", "verdict", "code"),
    [
        ("stateless", STATELESS, "continues", "GB446"),
        ("stateless", COUNTED, "refused", "GB422"),
        ("aggregation", COUNTED, "continues", "GB446"),
        ("aggregation", STATELESS, "refused", "GB422"),
        ("aggregation", ONCE, "refused", "GB422"),
        ("joined", COUNTED, "refused", "GB422"),
        ("joined_files", STATELESS, "refused", "GB422"),
    ],
)
def test_it_is_planned_as_far_as_spark_tells(
    tmp_path: Path, version: str, name: str, text: str, verdict: str, code: str
) -> None:
    folder = beside(tmp_path, version, name)
    (found,), wrong = plan_changes(plan(text.replace("SPARK", UNNAMED), str(folder)))
    assert wrong == []
    assert found.verdict == verdict
    assert code in {change.code for change in found.changes}
    assert all(change.hint for change in found.changes if change.stops)
    assert any("can't be known" in note for note in found.notes)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (COUNTED.replace("id string", "id int"), "string), not (struct<timestamp, timestamp>, int)"),
        (
            COUNTED.replace("[id]", "[id, n]").replace("n: sum", "m: sum"),
            "string), not (struct<timestamp, timestamp>, string, int)",
        ),
    ],
)
def test_keys_of_other_types_are_refused(tmp_path: Path, version: str, text: str, why: str) -> None:
    folder = beside(tmp_path, version, "aggregation")
    (found,), wrong = plan_changes(plan(text.replace("SPARK", UNNAMED), str(folder)))
    assert wrong == []
    (refused,) = [change for change in found.changes if change.verdict == "refused"]
    assert (refused.code, refused.node) == ("GB422", "counts")
    assert why in refused.message


def stopping(folder: Path, text: str) -> Change:
    """What keeps a run from going on, which is one change, and about state."""
    (found,), wrong = plan_changes(plan(text.replace("SPARK", UNNAMED), str(folder)))
    assert wrong == []
    (stops,) = [change for change in found.changes if change.stops]
    assert stops.node == "counts"
    assert "to begin anew" in stops.hint
    return stops


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("aggregates", "schema", "verdict", "code", "why"),
    [
        (
            "n: avg(n)",
            "n int",
            "refused",
            "GB422",
            "values in the checkpoint are (bigint), not (double, bigint)",
        ),
        ("n: sum(n)", "n double", "refused", "GB422", "values in the checkpoint are (bigint), not (double)"),
        ("n: sum(n), m: max(n)", "n int", "refused", "GB422", "are (bigint), not (bigint, int)"),
        ("n: sum(n), m: sum(o)", "n int, o int", "refused", "GB422", "are (bigint), not (bigint, bigint)"),
        ("n: count(n)", "n int", "mixed", "GB423", "has `sum` where the query keeps `count`"),
        ("n: max(n)", "n bigint", "mixed", "GB423", "has `sum` where the query keeps `max`"),
    ],
)
def test_values_of_other_aggregates_are_told(
    tmp_path: Path, version: str, aggregates: str, schema: str, verdict: str, code: str, why: str
) -> None:
    text = COUNTED.replace("n: sum(n)", aggregates).replace("n int", schema)
    stops = stopping(beside(tmp_path, version, "aggregation"), text)
    assert (stops.verdict, stops.code) == (verdict, code)
    assert why in stops.message


@pytest.mark.parametrize(
    ("aggregates", "schema"),
    [
        ("n: sum(n)", "n bigint"),
        # A sum of short decimals is one of whole numbers to Spark.
        ("n: sum(n)", "n decimal(8,2)"),
        # The same under two names, and what Spark may find to be the same.
        ("n: sum(n), m: sum(N), o: sum(n + 0)", "n int"),
    ],
)
def test_values_that_are_kept_alike_are_taken(tmp_path: Path, aggregates: str, schema: str) -> None:
    folder = beside(tmp_path, VERSIONS[-1], "aggregation")
    text = COUNTED.replace("n: sum(n)", aggregates).replace("n int", schema).replace("SPARK", UNNAMED)
    (found,), _ = plan_changes(plan(text, str(folder)))
    assert found.verdict == "continues"
    assert len(found.notes) == 1


def test_what_was_never_null_must_stay_so(tmp_path: Path) -> None:
    folder = beside(tmp_path, VERSIONS[-1], "aggregation")
    file = folder / "checkpoints/shop/out/state/0/0/_metadata/schema"
    left, value = (
        b'{"name":"sum","type":"long","nullable":true',
        b'{"name":"count","type":"long","nullable":false',
    )
    file.write_bytes(file.read_bytes().replace(left, value))
    stops = stopping(folder, COUNTED)
    assert stops.verdict == "refused"
    assert "its values (bigint) may be null now" in stops.message


def test_duplicates_are_of_one_kind_or_the_other(tmp_path: Path) -> None:
    """Spark has two operators for that, which keep other things."""
    once = ONCE.replace("input: a, options: {columns: [id]", "input: timely, options: {columns: [id, at]")
    once = once.replace(
        "transforms:",
        "transforms:\n  timely: {gem: watermark, input: a, options: {column: at, delay: 1 minute}}",
    )
    folder = beside(tmp_path, VERSIONS[-1], "aggregation")
    operator = folder / "checkpoints/shop/out/state/0"
    shutil.rmtree(operator)
    shutil.copytree(LEFT / VERSIONS[-1] / "joined/state/1", operator)
    (found,), _ = plan_changes(plan(once.replace("SPARK", UNNAMED), str(folder)))
    assert (found.verdict, len(found.notes)) == ("continues", 1)
    within = once.replace("columns: [id, at]", "columns: [id, at], within_watermark: true")
    (found,), _ = plan_changes(plan(within.replace("SPARK", UNNAMED), str(folder)))
    (refused,) = [change for change in found.changes if change.stops]
    assert (refused.verdict, refused.code, refused.node) == ("refused", "GB422", "once")
    assert "one of `dedupe` in the checkpoint, not of `dedupeWithinWatermark`" in refused.message


JOINED = """
pipeline: shop
SPARKsources:
  a: {gem: file, options: {format: json, path: a, schema: "id string, at timestamp, n int"}}
  b: {gem: file, options: {format: json, path: b, schema: "id string, at timestamp, n int"}}
transforms:
  left: {gem: watermark, input: a, options: {column: at, delay: 30 seconds}}
  right: {gem: watermark, input: b, options: {column: at, delay: 1 minute}}
  once: {gem: deduplicate, input: left, options: {columns: [id, at]}}
  counts:
    gem: join
    inputs: {l: once, r: right}
    options: {condition: l.id = r.id and r.at between l.at and l.at + interval 30 seconds}
  some: {gem: select, input: counts, options: {columns: {id: l.id, at: l.at, n: r.n}}}
targets:
  out: {gem: file, input: some, options: {format: parquet, path: out}}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("aggregation", COUNTED.replace("sum(n)", '"regr_slope(n, n)"')), ("joined", JOINED)],
)
def test_values_that_cant_be_told_are_a_note(tmp_path: Path, name: str, text: str) -> None:
    folder = beside(tmp_path, VERSIONS[-1], name)
    (found,), _ = plan_changes(plan(text.replace("SPARK", UNNAMED), str(folder)))
    assert found.verdict == "continues"
    assert "whether Spark takes the state of `counts` can't be known" in found.notes[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_settings_that_a_checkpoint_has_otherwise_have_no_effect(tmp_path: Path, version: str) -> None:
    same = "spark.sql.streaming.multipleWatermarkPolicy: min"
    given = UNNAMED.replace("}", f", spark.sql.shuffle.partitions: 7, {same}}}")
    folder = beside(tmp_path, version, "aggregation")
    (found,), _ = plan_changes(plan(COUNTED.replace("SPARK", given), str(folder)))
    (setting,) = [change for change in found.changes if change.code == "GB440"]
    assert (setting.verdict, setting.before, setting.after) == ("continues", "2", "7")
    assert setting.path == ("spark", "spark.sql.shuffle.partitions")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "sources", "code", "says"),
    [
        ("stateless", "b", "GB410", "has 1 source, and the query reads 2 (`a`, `b`)"),
        ("joined", "", "GB411", "has 2 sources, and the query reads 1 (`a`)"),
        ("stateless", "", "", ""),
    ],
)
def test_sources_without_names_are_counted(
    tmp_path: Path, version: str, name: str, sources: str, code: str, says: str
) -> None:
    text = STATELESS.replace("SPARK", UNNAMED)
    if sources:
        more = '  b: {gem: file, options: {format: json, path: b, schema: "id string, at timestamp, n int"}}'
        text = text.replace("\ntransforms:", f"{more}\ntransforms:\n  all: {{gem: union, inputs: [some, b]}}")
        text = text.replace("input: some, options: {format", "input: all, options: {format")
    (found,), wrong = plan_changes(plan(text, str(beside(tmp_path, version, name))))
    assert wrong == []
    counted = [change for change in found.changes if change.code in {"GB410", "GB411"}]
    assert [(change.code, change.verdict) for change in counted] == ([(code, "refused")] if code else [])
    assert all(says in change.message for change in counted)


@pytest.mark.parametrize("version", VERSIONS)
def test_sources_without_names_are_told_with_the_way_out(tmp_path: Path, version: str) -> None:
    """Source evolution can't be switched on for a checkpoint that was made without it."""
    found, (wrong,) = plan_changes(
        plan(STATELESS.replace("SPARK", ""), str(beside(tmp_path, version, "stateless")))
    )
    assert found == []
    assert wrong.is_error
    assert "enableSourceEvolution" in f"{wrong.message} {wrong.hint}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_is_damaged_is_a_diagnostic_or_planned_without_what_is_lost(
    tmp_path: Path, version: str
) -> None:
    made = plan(COUNTED.replace("SPARK", UNNAMED), str(beside(tmp_path, version, "aggregation")))
    told = 0
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        for _, damage in damages(file, Random(f"{version} {file}"), 6):
            damage()
            found, wrong = plan_changes(made)
            assert found or wrong
            assert all(diagnostic.is_error and diagnostic.line for diagnostic in wrong)
            told += bool(wrong)
    assert told > 10


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("missing", MISSING)
def test_one_of_which_something_is_missing_is_damaged(tmp_path: Path, version: str, missing: str) -> None:
    made = plan(COUNTED.replace("SPARK", UNNAMED), str(beside(tmp_path, version, "aggregation")))
    remove(tmp_path / "checkpoints/shop/out" / missing)
    found, (wrong,) = plan_changes(made)
    assert (found, wrong.code) == ([], "GB402")
    assert MISSING[missing] in wrong.message
    assert "Restore" in wrong.hint
    (shown,) = inspect(made.definition, ["out"])
    assert [MISSING[missing] in diagnostic.message for diagnostic in shown.diagnostics] == [True]


@pytest.mark.parametrize("damage", ["", "v1\n{", None])
def test_where_spark_does_not_tell_what_keeps_state_that_is_a_note(
    tmp_path: Path, damage: str | None
) -> None:
    made = plan(STATELESS.replace("SPARK", UNNAMED), str(beside(tmp_path, VERSIONS[0], "aggregation")))
    file = tmp_path / "checkpoints/shop/out/state/0/_metadata/metadata"
    (whole,), _ = plan_changes(made)
    file.unlink() if damage is None else file.write_text(damage)
    (found,), _ = plan_changes(made)
    assert len(found.notes) == len(whole.notes) + 1
    assert "which operators have kept state can't be known" in found.notes[-1]


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_shown_of_one_that_is_damaged_can_be_printed(tmp_path: Path, version: str) -> None:
    made = plan(COUNTED.replace("SPARK", UNNAMED), str(beside(tmp_path, version, "joined_files"))).definition
    told = 0
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        for _, damage in damages(file, Random(f"{version} {file}"), 6):
            damage()
            (shown,) = inspect(made, ["out"])
            assert (
                "\n".join(f"{about} {text}" for about, text in lines_of(shown)).encode() or shown.diagnostics
            )
            assert json.dumps(shown.as_dict(), ensure_ascii=False).encode()
            told += bool(shown.diagnostics)
    assert told > 10


@pytest.mark.parametrize("keys", [None, 1234])
def test_how_many_rows_state_has_is_told_or_said_to_be_unknown(tmp_path: Path, keys: int | None) -> None:
    made = plan(COUNTED.replace("SPARK", UNNAMED), str(beside(tmp_path, VERSIONS[-1], "aggregation")))
    if keys is not None:
        with zipfile.ZipFile(tmp_path / "checkpoints/shop/out/state/0/0/6.zip", "w") as snapshot:
            snapshot.writestr("metadata", f'v1\n{{"numKeys": {keys}}}')
    (shown,) = inspect(made.definition, ["out"])
    (state,) = [text for about, text in lines_of(shown) if about == "state"]
    unknown = "rows not known (only RocksDB's snapshots tell)"
    assert (unknown if keys is None else "1,234 rows behind micro-batch 5") in state


@pytest.mark.parametrize(
    "place", ["", "metadata", "offsets", "offsets/5", "commits/5", "state", "state/0/_metadata/metadata"]
)
def test_one_that_may_not_be_read_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    made = plan(COUNTED.replace("SPARK", UNNAMED), str(beside(tmp_path, VERSIONS[0], "aggregation")))
    forbidden = tmp_path / "checkpoints/shop/out" / place
    monkeypatch.setattr(os, "listdir", _forbidding(os.listdir, forbidden))
    monkeypatch.setattr(Path, "read_bytes", _forbidding(Path.read_bytes, forbidden))
    found, (wrong,) = plan_changes(made)
    assert found == []
    assert wrong.code == "GB406"
    assert f"PermissionError: [Errno 13] Permission denied: '{forbidden}'" in wrong.message
    assert "as a user who may read it" in wrong.hint
    (shown,) = inspect(made.definition, ["out"])
    assert [diagnostic.code for diagnostic in shown.diagnostics] == ["GB406"]
    assert json.dumps(shown.as_dict())
    assert "".join(text for _, text in lines_of(shown)) == ""


def _forbidding(call: Callable[..., Any], forbidden: Path) -> Callable[..., Any]:
    """A call that fails for a path as it does for a user who may not read it; root always may."""

    def call_or_fail(path: Any, *arguments: Any, **more: Any) -> Any:
        if str(path) == str(forbidden):
            raise PermissionError(13, "Permission denied", str(path))
        return call(path, *arguments, **more)

    return call_or_fail
