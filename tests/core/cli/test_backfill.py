"""`gem-bundle backfill`: its options, and what it refuses before Spark starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli

PIPELINE = """
pipeline: fares
sources:
  rides: {gem: file, options: {path: rides, format: json, schema: "ride int, at timestamp"}}
targets:
  table: {gem: delta, input: rides, options: {path: fares}}
  lines: {gem: file, input: rides, options: {path: lines, format: json}}
"""


@pytest.fixture
def fares(project: Callable[..., Path]) -> Path:
    return project("fares.yaml", PIPELINE)


def refused(cli: Cli, *arguments: str) -> str:
    result = cli("backfill", "fares.yaml", *arguments)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


@pytest.mark.usefixtures("fares")
def test_times_and_lengths_are_read(cli: Cli) -> None:
    table = ("--target", "table")
    days = (*table, "--from", "2026-01-01", "--to", "2026-01-02")
    assert "Missing option '--from'" in refused(cli, *table, "--to", "2026-01-02")
    assert "`soon` is no time; write `2026-01-31`" in refused(
        cli, *table, "--from", "soon", "--to", "2026-01-02"
    )
    assert "`--to` must lie behind `--from`." in refused(
        cli, *table, "--from", "2026-01-01", "--to", "2025-12-31"
    )
    assert "months and years vary in length; write days" in refused(cli, *days, "--step", "1 month")
    assert "these are more than 10,000 steps" in refused(cli, *days, "--step", "1 second")
    assert "more than nothing" in refused(cli, *days, "--margin", "0 days")


@pytest.mark.usefixtures("fares")
def test_what_can_not_be_done_is_told_before_spark_starts(cli: Cli) -> None:
    days = ("--from", "2026-01-01", "--to", "2026-01-02")
    result = cli("backfill", "fares.yaml", "--target", "lines", *days)
    assert result.exit_code == 1
    assert "fares.yaml:7:3: error[GB450]: target `lines` can't be computed anew for a time" in result.stderr
    result = cli("backfill", "fares.yaml", "--target", "table", *days)
    assert "error[GB451]" in result.stderr
    assert "Name one with `--column`" in result.stderr
    result = cli("backfill", "fares.yaml", "--target", "table", "--column", "at", *days)
    assert "error[GB454]" in result.stderr
    result = cli("backfill", "fares.yaml", "--target", "tables", *days)
    assert "error[GB108]" in result.stderr
