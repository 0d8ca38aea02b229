"""What a backfill keeps beside the checkpoint, and when it goes on by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle.backfill import api
from gem_bundle.backfill.api import BackfillOptions, BackfillReport, StepDone, _Backfill
from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.parts import Bound
from gem_bundle.backfill.rules import Wanted
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.record import Record, write_record
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PipelineError
from gem_bundle.run.options import RunOptions
from gem_bundle.run.steering import StopRequest
from gem_bundle.semantics import RowsReplaced
from gem_delta.target import DeltaTarget
from tests.core.backfill.test_rules import FILTER, SOURCES, TARGET, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.backfill.journal import Journal
    from gem_bundle.pipeline.plan import Plan

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
DAYS = Interval(DAY.start, DAY.start + timedelta(days=4))


def journal(plan: Plan, into: str) -> Journal:
    made = _Backfill(plan, RunOptions(), BackfillOptions(Wanted("out", DAY, into=into)))._journal()
    made.load()
    return made


def test_a_login_in_the_other_place_is_kept_nowhere(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    place = "s3a://key:pa55word@bucket/copy"
    journal(plan, place).add(DAY)
    (kept,) = tmp_path.rglob(".out.backfill.json")
    assert "pa55word" not in kept.read_text()
    assert "s3a://bucket/copy" in kept.read_text()
    assert journal(plan, place).has(DAY)
    assert not journal(plan, "s3a://key:pa55word@bucket/other").has(DAY)
    assert BackfillReport("p", Wanted("out", DAY, into=place)).as_dict()["into"] == "s3a://bucket/copy"


def test_the_same_words_in_another_folder_are_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    journal(plan, "copy").add(DAY)
    assert journal(plan, "copy").has(DAY)
    monkeypatch.chdir(tmp_path / "b")
    assert not journal(plan, "copy").has(DAY)
    assert journal(plan, str(tmp_path / "a/copy")).has(DAY)


@pytest.mark.parametrize("left", ["[" * 100_000, "[]", '{"format": 1', "\xff", '{"format": 1, "done": 5}'])
def test_what_is_no_journal_is_taken_for_none(tmp_path: Path, left: str) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    journal(plan, "copy").add(DAY)
    (kept,) = tmp_path.rglob(".out.backfill.json")
    kept.write_text(left, encoding="latin-1")
    assert not journal(plan, "copy").has(DAY)


class Killed(BaseException):
    pass


class Live:
    """A live run beside a backfill, both without Spark: each micro-batch has a row of each day.

    Args:
        folder: Where the pipeline lies.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan = plan_of(folder, SOURCES + FILTER + TARGET)
        self._checkpoint = Path(self.plan.definition.checkpoint("out"))
        (self._checkpoint / "sources/orders").mkdir(parents=True)
        (self._checkpoint / "metadata").write_text('{"id": "query"}')
        version = version_of(self.plan, "out")
        write_record(str(self._checkpoint), Record("out", (version,), "query"))
        self.newest = -1
        self.rows: dict[str, set[int]] = {str(day): set() for day in DAYS.steps(timedelta(days=1))}
        self.commits: list[str] = []
        self.before_commit: Callable[[], None] = lambda: None
        self.behind_commit: Callable[[], None] = lambda: None
        self.while_it_computes: Callable[[], None] = lambda: None
        self.micro_batch()
        self._read = -1
        parts_of = api.parts_of

        def spied(*arguments: Any) -> Any:
            if isinstance(arguments[-1], Bound):
                self._read = arguments[-1].batch
            return parts_of(*arguments)

        def rows(_: Any, __: Any, interval: Interval, ___: Any) -> tuple[str, str]:
            computed = str(interval)
            self.while_it_computes()
            return computed, computed

        def replace_interval(_: Any, df: str, *__: Any) -> RowsReplaced:
            self.before_commit()
            there = self.newest
            self.rows[df] = set(range(self._read + 1))
            self.commits.append(df)
            self.behind_commit()
            return RowsReplaced(last_batch=there)

        monkeypatch.setattr(api, "parts_of", spied)
        monkeypatch.setattr(_Backfill, "_rows", rows)
        monkeypatch.setattr(DeltaTarget, "replace_interval", replace_interval)
        monkeypatch.setattr(DeltaTarget, "last_batch", lambda *_: self.newest)

    def micro_batch(self, *, is_committed: bool = True) -> None:
        """Write a micro-batch; without its commit Spark died between Delta's and its own."""
        self.newest += 1
        for log, content in (
            ("offsets", f'v2\n{{"batchWatermarkMs":0,"conf":{{}}}}\norders:{{"logOffset":{self.newest}}}'),
            ("commits", "v1\n{}"),
        ):
            if is_committed or log == "offsets":
                (self._checkpoint / log).mkdir(exist_ok=True)
                (self._checkpoint / log / str(self.newest)).write_text(content)
        for rows in self.rows.values():
            rows.add(self.newest)

    def backfill(self, tell: Callable[[StepDone], None] = lambda _: None) -> BackfillReport:
        options = BackfillOptions(Wanted("out", DAYS, "at"), timedelta(days=1))
        return _Backfill(self.plan, RunOptions(), options).run(cast("Any", None), tell, StopRequest())

    @property
    def lacks(self) -> set[int]:
        return {n for n in range(self.newest + 1) for rows in self.rows.values() if n not in rows}


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    return Live(tmp_path, monkeypatch)


def test_a_micro_batch_between_two_steps_is_in_the_one_commit_of_the_next(live: Live) -> None:
    lacked: list[set[int]] = []
    live.behind_commit = lambda: lacked.append(live.lacks)
    report = live.backfill(lambda _: live.micro_batch())
    assert [step.tries for step in report.steps] == [1, 1, 1, 1]
    assert len(live.commits) == 4
    assert lacked == [set()] * 4


def test_one_that_spark_has_not_committed_is_in_it_too(live: Live) -> None:
    live.micro_batch(is_committed=False)
    lacked: list[set[int]] = []
    live.behind_commit = lambda: lacked.append(live.lacks)
    assert [step.tries for step in live.backfill().steps] == [1, 1, 1, 1]
    assert lacked == [set()] * 4


def test_what_is_computed_is_not_written_when_the_live_run_was_quicker(live: Live) -> None:
    waiting = [1, 2]

    def compute() -> None:
        if waiting:
            waiting.pop()
            live.micro_batch()

    live.while_it_computes = compute
    report = live.backfill()
    assert (report.status, len(live.commits), live.lacks) == ("finished", 4, set())
    live.while_it_computes = live.micro_batch
    report = live.backfill()
    assert [d.code for d in report.diagnostics] == ["GB455"]
    assert "were written meanwhile (5 times)" in report.diagnostics[0].message
    assert (len(live.commits), live.lacks) == (4, set())


def in_the_second_step(live: Live, do: Callable[[], None]) -> Callable[[], None]:
    """Do something once, before the commit of the second step."""
    pending = [do]

    def before() -> None:
        if len(live.commits) == 1 and pending:
            pending.pop()()

    return before


def test_a_micro_batch_in_the_moment_of_the_commit_costs_a_second_one(live: Live) -> None:
    live.before_commit = in_the_second_step(live, live.micro_batch)
    report = live.backfill()
    assert [step.tries for step in report.steps] == [1, 2, 1, 1]
    assert (len(live.commits), live.lacks) == (5, set())


def test_a_kill_between_two_commits_of_a_step_is_mended_by_the_same_command(live: Live) -> None:
    live.before_commit = in_the_second_step(live, live.micro_batch)

    def kill() -> None:
        if len(live.commits) == 2:
            raise Killed

    live.behind_commit = kill
    with pytest.raises(Killed):
        live.backfill()
    assert live.lacks == {1}
    live.behind_commit = lambda: None
    report = live.backfill()
    assert (report.skipped, len(report.steps), live.lacks) == (1, 3, set())


def test_a_failure_between_two_commits_of_a_step_says_what_is_missing(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.before_commit = in_the_second_step(live, live.micro_batch)

    def fail() -> None:
        if len(live.commits) == 2:
            monkeypatch.setattr(_Backfill, "_look", lambda *_: (_ for _ in ()).throw(PipelineError([GONE])))

    live.behind_commit = fail
    report = live.backfill()
    assert [d.code for d in report.diagnostics] == ["GB453", "GB455"]
    assert (
        "2026-01-02 to 2026-01-03 was replaced, and rows of it are missing" in report.diagnostics[1].message
    )
    assert report.diagnostics[1].line
    assert live.lacks == {1}


GONE = Diagnostic("GB453", "error", "a file is gone", "orders")


def test_nothing_is_written_once_the_checkpoint_is_another_one(live: Live) -> None:
    metadata = Path(live.plan.definition.checkpoint("out"), "metadata")

    def other(_: StepDone) -> None:
        metadata.write_text('{"id": "other"}')

    report = live.backfill(other)
    assert [d.code for d in report.diagnostics] == ["GB454"]
    assert len(live.commits) == 1
