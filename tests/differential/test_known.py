"""What became of edits that were tried before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.edits.known import Known
from tests.differential.edits.truth import Truth

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = [{"pipeline": "a"}, {"pipeline": "b"}]


def of_ended_process() -> Truth:
    raise ConnectionRefusedError


def of_another_seed() -> Truth:
    return Truth("continues")


def test_an_edit_that_ends_the_process_twice_is_wrong(tmp_path: Path) -> None:
    kept = tmp_path / "truths"
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            Known(kept).of("1", VERSIONS, of_ended_process)
    assert Known(kept).of("1", VERSIONS, of_ended_process).outcome == "wrong"
    assert Known(kept).of("2", VERSIONS, of_another_seed).outcome == "continues"


def test_an_edit_whose_first_experiment_was_ended_is_tried_again(tmp_path: Path) -> None:
    kept = tmp_path / "truths"
    with pytest.raises(ConnectionRefusedError):
        Known(kept).of("1", VERSIONS, of_ended_process)
    assert Known(kept).of("1", VERSIONS, of_another_seed).outcome == "continues"
    assert Known(kept).of("1", VERSIONS, of_ended_process).outcome == "continues"
