"""`gem-bundle backfill`: its options, and what it refuses before Spark starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.backfill.api import BackfillReport, StepDone
from gem_bundle.backfill.compare import Differences
from gem_bundle.backfill.interval import Interval
from gem_bundle.changes.begun import journal_of
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.run.lock import CheckpointLocks
from gem_bundle.run.places import targets_at
from gem_bundle.semantics import RowsReplaced
from tests.core.cli.left_by_runs import killed_while_it_began_anew, left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable

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
    assert "`9999-12-31T23:59:59-12:00` isn't in the years 1 to 9999 in UTC." in refused(
        cli, *table, "--from", "9999-12-31T23:59:59-12:00", "--to", "2026-01-02"
    )
    assert "isn't in the years 1 to 9999" in refused(
        cli, *table, "--from", "2026-01-01", "--to", "0001-01-01T00:00:00+12:00"
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


@pytest.mark.parametrize(
    ("into", "why"),
    [
        ("fares", "`--into` names the place that it writes to itself"),
        ("fares.yaml", "`--into` names the pipeline's own file"),
        ("", "`--into` is empty, and names no place"),
        ("table:", "`--into`: `table:` names no place: write a table as `table`, `schema.table` or"),
        (
            "table:a b;c",
            "`--into`: `table:a b;c` names no place: write a table as `table`, `schema.table` or",
        ),
    ],
)
def test_a_place_that_can_not_be_written_to_leaves_nothing_behind(
    cli: Cli, fares: Path, into: str, why: str
) -> None:
    (fares.parent / "rides").mkdir()
    before = sorted(fares.parent.rglob("*"))
    result = cli("backfill", "fares.yaml", *DAYS, "--into", into)
    assert (result.exit_code, "fares.yaml:6:3: error[GB450]" in result.stderr) == (1, True), result.stderr
    assert why in result.stderr
    assert "This is a bug" not in result.stderr
    assert sorted(fares.parent.rglob("*")) == before


def test_the_lock_is_taken_once_nothing_is_against_it(
    cli: Cli, fares: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(*_: Any) -> Any:
        raise PipelineError([Diagnostic("GB503", "error", "there is no Java")])

    (fares.parent / "rides").mkdir()
    before = sorted(fares.parent.rglob("*"))
    monkeypatch.setattr("gem_bundle.backfill.api.open_for", no_java)
    result = cli("backfill", "fares.yaml", *DAYS, "--into", "copy")
    assert "there is no Java" in result.stderr
    assert sorted(fares.parent.rglob("*")) == before
    # One that somebody has is told before that.
    held = CheckpointLocks({"table": str(fares.parent / "checkpoints/fares/table.backfill")})
    with held:
        assert held.acquire() == []
        result = cli("backfill", "fares.yaml", *DAYS, "--into", "copy")
        assert "error[GB401]: another backfill of target `table` is running" in result.stderr


@pytest.mark.usefixtures("fares")
def test_what_was_rejected_is_in_no_such_place(cli: Cli) -> None:
    with pytest.raises(GemError, match="`table:a b` names no place: write a table as `table`") as raised:
        list(targets_at("table:a b", [], rejected=True))
    assert raised.value.code == "GB461"
    result = cli("rejected", "table:a b")
    assert (result.exit_code, "GB461" in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_what_a_killed_run_has_begun_anew_is_where_the_live_run_goes_on(
    cli: Cli, fares: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    left_by_a_run(fares, "rides")
    (fares.parent / "rides").mkdir()
    kept = killed_while_it_began_anew(fares, "table", renamed)

    def judged(*_: Any) -> Any:
        raise PipelineError([Diagnostic("GB503", "error", "nothing was against it")])

    monkeypatch.setattr("gem_bundle.backfill.api.open_for", judged)
    result = cli("backfill", "fares.yaml", *DAYS)
    assert (result.exit_code, "nothing was against it" in result.stderr) == (1, True), result.stderr
    journal_of(kept.with_name("table")).write_text("{", encoding="utf-8")
    result = cli("backfill", "fares.yaml", *DAYS)
    assert result.exit_code == 1
    assert "fares.yaml:6:3: error[GB407]: target `table` can't begin with new state" in result.stderr


FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = ("--target", "table", "--column", "at", "--from", "2026-01-01", "--to", "2026-01-04")


def days(*of: dict[str, Any]) -> list[StepDone]:
    """What became of some days, one after the other."""
    one = timedelta(days=1)
    return [StepDone(Interval(FIRST + n * one, FIRST + (n + 1) * one), **done) for n, done in enumerate(of)]


def doing(monkeypatch: pytest.MonkeyPatch, steps: list[StepDone], **report: Any) -> list[Any]:
    """Let a backfill do some steps, without Spark; gives what it is asked for."""
    asked: list[Any] = []

    def run_backfill(
        load: Any, run_options: Any, options: Any, tell: Callable[[StepDone], None]
    ) -> BackfillReport:
        asked.extend((run_options, options))
        for step in steps:
            tell(step)
        return BackfillReport("fares", options.wanted, "at", steps=steps, **report)

    monkeypatch.setattr("gem_bundle.backfill.api.run_backfill", run_backfill)
    return asked


@pytest.mark.usefixtures("fares")
def test_each_step_that_is_done_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = days(
        {"replaced": RowsReplaced(1, 0)},
        {"replaced": RowsReplaced(1_200, 1_100), "tries": 2},
        {"replaced": RowsReplaced()},
    )
    asked = doing(monkeypatch, steps, skipped=1)
    result = cli("backfill", "fares.yaml", *DAYS, "--step", "1 day", "--report", "it.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "2026-01-01 to 2026-01-02: 1 row in the place of 0 rows",
        "2026-01-02 to 2026-01-03: 1,200 rows in the place of 1,100 rows (the live run wrote in between: done 2 "
        "times)",
        "2026-01-03 to 2026-01-04: rows in the place of rows",
        "1 step was done before.",
    ]
    run_options, options = asked
    assert run_options.report == Path("it.json")
    assert options.step == timedelta(days=1)
    assert len(options.wanted.interval.steps(options.step)) == 3
    doing(monkeypatch, steps, skipped=2)
    assert cli("backfill", "fares.yaml", *DAYS).stderr.splitlines()[-1] == "2 steps were done before."
    assert cli("backfill", "fares.yaml", *DAYS, "--quiet").output == ""


@pytest.mark.usefixtures("fares")
def test_differences_are_what_is_asked_for_and_the_exit_status(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = {"more": [{"ride": 2}]}
    steps = days({"differences": Differences()}, {"differences": Differences(0, 1, 2, samples, ("tip",))})
    doing(monkeypatch, steps)
    result = cli("backfill", "fares.yaml", *DAYS, "--compare", "--quiet")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "2026-01-01 to 2026-01-02: no difference",
        "2026-01-02 to 2026-01-03: 0 missing (come out, aren't there), 1 more (are there, don't come out), 2 "
        "differing",
        "  only one of the two has the column `tip`",
        '  more: {"ride": 2}',
    ]
    doing(monkeypatch, steps[:1])
    assert cli("backfill", "fares.yaml", *DAYS, "--compare").exit_code == 0
    doing(monkeypatch, [], status="stopped")
    assert cli("backfill", "fares.yaml", *DAYS).exit_code == 0
    doing(monkeypatch, [], status="failed")
    assert cli("backfill", "fares.yaml", *DAYS).exit_code == 1
