"""`gem-bundle plan` where a record is JSON, and not what a run has written."""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.inspection import inspect
from gem_bundle.changes.planning import hold_to_plan, plan_changes
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import LoadOptions
from tests.checked import plan_of
from tests.core.changes.damages import remove
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TEXT = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  counts: {gem: aggregate, input: timely, options: {group_by: [page, at], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""
Content = dict[str, Any]


def _cycle(version: Content) -> None:
    version["nodes"][1]["inputs"][0]["node"] = "counts"


DAMAGES: dict[str, tuple[Callable[[Content], object], str]] = {
    "a source is missing": (lambda v: v["nodes"].pop(0), "`timely` reads `clicks`, which isn't there"),
    "the target is missing": (lambda v: v["nodes"].pop(), "there is no target"),
    "all are missing": (lambda v: v["nodes"].clear(), "there is no target"),
    "a kind": (lambda v: v["nodes"][1].update(kind="sink"), "`timely` is a `sink`"),
    "no input": (lambda v: v["nodes"][-1]["inputs"].clear(), "the target `out` has 0 inputs"),
    "an edge": (lambda v: v["nodes"][2]["inputs"][0].update(node="x"), "`counts` reads `x`, which isn't"),
    "an id": (lambda v: v["nodes"][1].update(id="counts"), "two nodes have the same id"),
    "a circle": (_cycle, "nodes read each other in a circle: it is among `timely`, `counts`, `out`"),
}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(TEXT)
    left_by_a_run(file)
    file.write_text(TEXT.replace("1 hour", "2 hours"))
    return tmp_path / "checkpoints/shop/.out.record.json"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_record_whose_nodes_do_not_hang_together_is_damaged(record: Path, damage: str) -> None:
    content = json.loads(record.read_text())
    made, said = DAMAGES[damage]
    made(content["versions"][0])
    record.write_text(json.dumps(content))
    plan = plan_of(record.parents[2] / "shop.yaml", LoadOptions(environment={}))
    found, (wrong,) = plan_changes(plan)
    assert found == []
    assert wrong.code == "GB404"
    assert said in wrong.message


@pytest.fixture
def ran(record: Path) -> Path:
    """The checkpoint of a micro-batch, with state."""
    return as_spark_leaves_it(record.with_name("out"))


def as_spark_leaves_it(folder: Path, store: str = "HDFSBackedStateStoreProvider") -> Path:
    """A checkpoint with what Spark freezes, and with the folders for sources and state."""
    frozen = {"spark.sql.streaming.stateStore.providerClass": f"org.apache.spark.{store}"}
    offsets = folder / "offsets/0"
    offsets.write_text(offsets.read_text().replace('"conf": {}', f'"conf": {json.dumps(frozen)}'))
    (folder / "state/0/0").mkdir(parents=True)
    (folder / "sources/clicks").mkdir(parents=True)
    (folder / "sources/clicks/0").write_text("v1")
    return folder


def looked_at(folder: Path) -> list[str]:
    """What `plan`, `run` and `checkpoint show` say of a damaged one: the same."""
    plan = plan_of(folder.parents[2] / "shop.yaml", LoadOptions(environment={}))
    found, wrong = plan_changes(plan)
    (shown,) = inspect(plan.definition, ["out"])
    assert [(d.code, d.message) for d in shown.diagnostics] == [(d.code, d.message) for d in wrong]
    if wrong:
        assert found == []
        with pytest.raises(PipelineError) as stopped:
            hold_to_plan(plan, ["out"])
        assert [d.message for d in stopped.value.diagnostics] == [d.message for d in wrong]
    return [f"{d.code} {d.message}" for d in wrong]


@pytest.mark.parametrize("empty", [False, True])
def test_state_is_missed_by_what_the_record_says_of_it(ran: Path, *, empty: bool) -> None:
    assert looked_at(ran) == []
    remove(ran / "state")
    if empty:
        (ran / "state").mkdir()
    (said,) = looked_at(ran)
    assert said.startswith("GB402")
    assert "damaged: `state` is missing or empty, and `counts` kept some, in" in said


def test_state_is_not_missed_before_a_micro_batch_is_done(ran: Path) -> None:
    remove(ran / "state")
    remove(ran / "commits")
    assert looked_at(ran) == []


def test_state_is_not_missed_of_what_kept_none(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(TEXT.replace("input: counts, output_mode: update", "input: timely"))
    left_by_a_run(file)
    folder = as_spark_leaves_it(tmp_path / "checkpoints/shop/out")
    remove(folder / "state")
    assert looked_at(folder) == []


def test_state_is_not_missed_that_another_store_may_keep_elsewhere(record: Path) -> None:
    folder = as_spark_leaves_it(record.with_name("out"), "OtherProvider")
    remove(folder / "state")
    assert looked_at(folder) == []


def test_commits_that_are_lost_leave_the_record_what_it_is(ran: Path) -> None:
    """Spark runs the last micro-batch again, whatever commits there were."""
    for batch in "123":
        (ran / "offsets" / batch).write_bytes((ran / "offsets/0").read_bytes())
    remove(ran / "commits")
    plan = plan_of(ran.parents[2] / "shop.yaml", LoadOptions(environment={}))
    (found,), wrong = plan_changes(plan)
    assert wrong == []
    assert "GB446" not in {change.code for change in found.changes}


def test_a_file_in_the_place_of_a_checkpoint_is_damage(ran: Path) -> None:
    remove(ran)
    ran.write_text("hi")
    (said,) = looked_at(ran)
    assert "damaged: a file lies where its folder should be, in" in said


def test_something_else_anywhere_in_a_record_takes_no_plan_down(record: Path) -> None:
    plan = plan_of(record.parents[2] / "shop.yaml", LoadOptions(environment={}))
    text = record.read_text()
    others: list[Any] = ["x", [], {}, None, 7]
    for wrong, path in zip(cycle(others), _places(json.loads(text)), strict=False):
        content = json.loads(text)
        inner: Any = content
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = wrong
        record.write_text(json.dumps(content))
        found, diagnostics = plan_changes(plan)
        assert [target.target for target in found] or [d.code for d in diagnostics] == ["GB404"], path


def _places(content: Any) -> Iterator[tuple[Any, ...]]:
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inner:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in _places(value))
