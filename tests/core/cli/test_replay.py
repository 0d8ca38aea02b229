"""`gem-bundle replay`: its options, and what it refuses before Spark starts. The page *Bad rows* shows what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli

PIPELINE = """
pipeline: ticking
sources:
  ticks: {gem: rate}
transforms:
  even: {gem: expect, input: ticks, options: {rules: {even: value % 2 = 0}}}
targets:
  table: {gem: delta, input: even, options: {path: even}}
"""


@pytest.fixture
def ticking(project: Callable[..., Path]) -> Path:
    return project("ticking.yaml", PIPELINE)


@pytest.mark.usefixtures("ticking")
def test_what_can_not_be_done_is_told_before_spark_starts(cli: Cli) -> None:
    result = cli("replay", "ticking.yaml", "even", "--from", "odd")
    assert result.exit_code == 1
    assert "ticking.yaml:6:3: error[GB460]: rows that `even` rejected can't come back in" in result.stderr
    assert "Give a target `input: even.rejected`." in result.stderr
    assert (
        "error[GB108]: the pipeline has no node `evem`"
        in cli("replay", "ticking.yaml", "evem", "--from", "odd").stderr
    )


@pytest.mark.usefixtures("ticking")
def test_a_place_is_needed(cli: Cli) -> None:
    result = cli("replay", "ticking.yaml", "even")
    assert result.exit_code == 2
    assert "Missing option '--from'" in result.stderr
