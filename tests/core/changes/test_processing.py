"""Continuous processing and micro-batches: neither goes on from the other's checkpoint, and the plan says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.history import keep_versions
from gem_bundle.changes.planning import plan_changes
from gem_bundle.errors import PipelineError
from gem_bundle.run.api import RunOptions, run_file
from tests.checked import plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.pipeline.plan import Plan

MICRO_BATCHES = """
pipeline: shop
sources:
  ticks: {gem: rate}
targets:
  out: {gem: noop, input: ticks}
"""
CONTINUOUS = MICRO_BATCHES.replace("input: ticks", "input: ticks, trigger: {continuous: 1 second}")
LOGS = {
    CONTINUOUS: 'v1\n\n{"0":{"value":1,"runTimeMs":2}}',
    MICRO_BATCHES: 'v2\n{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{}}\nticks:3',
}


def checked(folder: Path, text: str) -> Plan:
    (folder / "shop.yaml").write_text(text)
    return plan_of(folder / "shop.yaml")


def left(folder: Path, log: str, ran: str = "") -> None:
    """A checkpoint that one kind of processing has made, and a record of what ran."""
    if ran:
        assert keep_versions(checked(folder, ran), ["out"]) == []
    checkpoint = folder / "checkpoints/shop/out"
    for name, text in (("offsets", LOGS[log]), ("commits", "v1\n{}")):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text(text)
    (checkpoint / "metadata").write_text('{"id":"593617ef-6385-44dd-9a2e-f3717d7dd811"}')


def planned(folder: Path, text: str) -> TargetChanges:
    found, wrong = plan_changes(checked(folder, text))
    assert wrong == []
    return found[0]


@pytest.mark.parametrize(("before", "after"), [(CONTINUOUS, MICRO_BATCHES), (MICRO_BATCHES, CONTINUOUS)])
@pytest.mark.parametrize("recorded", [True, False])
def test_another_kind_of_processing_is_a_trigger_and_not_a_lack_of_names(
    before: str, after: str, recorded: bool, tmp_path: Path
) -> None:
    left(tmp_path, before, before if recorded else "")
    said = planned(tmp_path, after)
    assert said.verdict == "refused"
    (change,) = (change for change in said.changes if change.verdict == "refused")
    assert (change.code, change.node, change.path) == ("GB434", "out", ("targets", "out", "trigger"))
    with pytest.raises(PipelineError) as caught:
        run_file(tmp_path / "shop.yaml", RunOptions(available_now=after == MICRO_BATCHES))
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"GB434"}


@pytest.mark.parametrize("text", [CONTINUOUS, MICRO_BATCHES])
def test_each_goes_on_from_its_own(text: str, tmp_path: Path) -> None:
    left(tmp_path, text, text)
    found = read_checkpoint(str(tmp_path / "checkpoints/shop/out"))
    assert found is not None
    assert found.continuous is (text == CONTINUOUS)
    assert planned(tmp_path, text).verdict == "same"


def test_what_is_available_now_goes_on_from_no_continuous_processing(tmp_path: Path) -> None:
    """The file hasn't changed, so there is nothing to plan; it is the run that is another one."""
    left(tmp_path, CONTINUOUS, CONTINUOUS)
    with pytest.raises(PipelineError) as caught:
        run_file(tmp_path / "shop.yaml", RunOptions(available_now=True))
    (found,) = caught.value.diagnostics
    assert found.code == "GB434"
    assert "without `--available-now`" in found.hint


def test_micro_batches_that_a_run_made_of_a_continuous_target_are_told_of(tmp_path: Path) -> None:
    left(tmp_path, MICRO_BATCHES, CONTINUOUS)
    said = planned(tmp_path, CONTINUOUS)
    assert [(change.verdict, change.code) for change in said.changes] == [("refused", "GB434")]
