"""Targets that go by no checkpoint any more, or for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.changes.planning import plan_changes
from gem_bundle.check.checker import check_file
from gem_bundle.pipeline.loader import LoadOptions
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.pipeline.plan import Plan

STREAM = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "page string, n int"}}
targets:
  out: {gem: delta, input: clicks, options: {path: out}}
"""
BATCH = STREAM.replace("pipeline: shop", "pipeline: shop\nmode: batch")
WHOLE = BATCH.replace("input: clicks,", "input: clicks, output_mode: complete,")
ELSEWHERE = BATCH.replace("path: out", "path: elsewhere")
SCREEN = STREAM.replace("{gem: delta, input: clicks, options: {path: out}}", "{gem: memory, input: clicks}")
CASES = [
    (STREAM, BATCH, "again", "GB435"),
    (STREAM, WHOLE, "gone", "GB445"),
    (STREAM, ELSEWHERE, "gone", "GB445"),
    (STREAM, SCREEN, "gone", "GB445"),
]


def plan(folder: Path, text: str, name: str) -> Plan:
    (folder / name).write_text(text)
    made = check_file(str(folder / name), LoadOptions()).plan
    assert made is not None
    return made


@pytest.mark.parametrize(("before", "after", "verdict", "code"), CASES)
def test_a_target_that_needs_none_any_more(
    before: str, after: str, verdict: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.yaml").write_text(before)
    left_by_a_run(tmp_path / "shop.yaml")
    found, wrong = plan_changes(plan(tmp_path, after, "shop.yaml"))
    assert [(t.target, t.verdict, [c.code for c in t.changes]) for t in found] == [("out", verdict, [code])]
    assert not wrong
    (compared,) = plan_against(plan(tmp_path, after, "shop.yaml"), plan(tmp_path, before, "before.yaml"))
    assert (compared.verdict, [change.code for change in compared.changes]) == (verdict, [code])
    assert "checkpoint stays" in compared.changes[0].message


def test_batches_that_no_stream_came_before_are_nothing_to_tell(tmp_path: Path) -> None:
    assert plan_changes(plan(tmp_path, BATCH, "shop.yaml")) == ([], [])
    assert plan_against(plan(tmp_path, BATCH, "shop.yaml"), plan(tmp_path, BATCH, "before.yaml")) == []


COUNTS = STREAM.replace(
    "targets:",
    "transforms:\n"
    "  k: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}\n"
    "targets:",
).replace("gem: delta, input: clicks,", "gem: delta, input: k, output_mode: complete,")


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [(BATCH, STREAM, "again"), (ELSEWHERE, STREAM, "new"), (BATCH, COUNTS, "new")],
)
def test_a_stream_where_batch_runs_have_written(
    before: str, after: str, verdict: str, tmp_path: Path
) -> None:
    (found,) = plan_against(plan(tmp_path, after, "shop.yaml"), plan(tmp_path, before, "before.yaml"))
    assert found.verdict == verdict
