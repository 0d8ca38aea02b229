"""`gem-bundle backfill`: an interval computed anew beside the live run, with no row lost or written twice."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.backfill.api import BackfillOptions, StepDone, run_backfill
from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.journal import Journal
from gem_bundle.backfill.rules import Wanted
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.options import RunOptions
from gem_bundle.run.steering import StopRequest
from gem_delta.target import DeltaTarget
from tests.integration.kill_series import kill_at
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import a_killed_program, some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle import RowsReplaced
    from gem_bundle.backfill.api import BackfillReport

a_backfill = some_of("a backfill", 2)

pytestmark = pytest.mark.spark

LINES = """
pipeline: lines
sources:
  orders: {gem: file, options: {path: in dir, format: json, schema: "id int, at timestamp"}}
transforms:
  rated: {gem: with_columns, input: orders, options: {columns: {rate: id * 2}}}
targets:
  out: {gem: delta, input: rated, options: {path: out}}
"""
WINDOWS = """
pipeline: lines
sources:
  orders: {gem: delta, options: {path: in}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, group_by: [k], aggregates: {n: count(*)}}
targets:
  out: {gem: delta, input: counts, options: {path: out}}
"""


HOURS = """
pipeline: lines
sources:
  orders: {gem: file, options: {path: in dir, format: json, schema: "id int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, aggregates: {n: count(*)}}
targets:
  out: {gem: delta, input: counts, options: {path: out}}
"""
DAYS = """
pipeline: days
sources:
  orders: {gem: file, options: {path: in dir, format: parquet, schema: "id int, day date"}}
transforms:
  timed: {gem: with_columns, input: orders, options: {columns: {at: to_timestamp(day)}}}
targets:
  out: {gem: delta, input: timed, options: {path: out}}
"""
FROM_TABLE = """
pipeline: lines
sources:
  orders: {gem: delta, options: {path: in, START}}
transforms:
  rated: {gem: with_columns, input: orders, options: {columns: {rate: id * 2}}}
targets:
  out: {gem: delta, input: rated, options: {path: out}}
"""


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 1, hour, minute, tzinfo=UTC)


def backfill(
    file: Path,
    start: datetime,
    end: datetime,
    *,
    step: timedelta | None = None,
    margin: timedelta | None = None,
    partition: str | None = None,
    report: Path | None = None,
    stop_after: int | None = None,
    **wanted: Any,
) -> BackfillReport:
    options = BackfillOptions(Wanted("out", Interval(start, end), **wanted), step, margin, partition)
    stop, told = StopRequest(), list[StepDone]()

    def tell(done: StepDone) -> None:
        told.append(done)
        stop.reason = "enough" if len(told) == stop_after else ""

    run_options = RunOptions(quiet=True, report=report)
    return run_backfill(lambda load: load_file(file, load), run_options, options, tell, stop)


def rows(spark: SparkSession, folder: Path, *columns: str, table: str = "out") -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(folder / table)).selectExpr(*columns).collect()
    return sorted(tuple(row) for row in found)


def add(folder: Path, name: str, *ids: int) -> None:
    """Rows of which each is of the hour that is its number."""
    add_rows(folder / "in dir", name, [{"id": n, "at": f"2026-01-01T{n:02}:30:00Z"} for n in ids])


@a_backfill
def test_rows_that_the_live_run_has_yet_to_write_are_left_to_it(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a b[1].json", 1, 2, 3)
    run(file, available_now=True)
    write_pipeline(tmp_path, LINES.replace("id * 2", "id * 10"))
    # The live run hasn't read these yet; one of them is of a time that is computed anew.
    add(tmp_path, "b.json", 2, 4)

    report = backfill(file, at(2), at(4), step=timedelta(hours=1), column="at")

    assert report.status == "finished", report.diagnostics
    assert [(s.replaced.written, s.replaced.removed) for s in report.steps if s.replaced] == [(1, 1), (1, 1)]
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2), (2, 20), (3, 30)]
    run(file, available_now=True)
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2), (2, 20), (2, 20), (3, 30), (4, 40)]
    # Once more, and nothing is different.
    assert backfill(file, at(0), at(23), column="at", compare=True).steps[0].differences.samples["more"] == [
        {"id": 1, "at": "2026-01-01 01:30:00", "rate": 2}
    ]
    backfill(file, at(0), at(23), column="at")
    assert rows(spark, tmp_path, "id", "rate") == [(1, 10), (2, 20), (2, 20), (3, 30), (4, 40)]


@a_backfill
def test_columns_that_names_of_folders_tell_are_those_of_the_live_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = LINES.replace('"id int, at timestamp"', '"id int, at timestamp, day date"')
    file = write_pipeline(tmp_path, text)
    for day in ("2025-12-31", "2026-01-01"):
        for hour in (1, 2):
            made = [{"id": hour, "at": f"{day}T{hour:02}:30:00Z"}]
            add_rows(tmp_path / "in dir" / f"day={day}", f"{hour}.json", made)
    run(file, available_now=True)
    write_pipeline(tmp_path, text.replace("id * 2", "id * 10"))

    report = backfill(file, at(2), at(3), column="at")

    assert report.status == "finished", report.diagnostics
    assert [(s.replaced.written, s.replaced.removed) for s in report.steps if s.replaced] == [(1, 1)]
    assert rows(spark, tmp_path, "cast(day as string)", "id", "rate") == [
        *(("2025-12-31", 1, 2), ("2025-12-31", 2, 4)),
        *(("2026-01-01", 1, 2), ("2026-01-01", 2, 20)),
    ]


@a_backfill
def test_windows_count_what_came_too_late_for_the_live_run(spark: SparkSession, tmp_path: Path) -> None:
    def order(*times: str) -> None:
        values = " union all ".join(f"select 'a' as k, timestamp'2026-01-01 {t}' as at" for t in times)
        spark.sql(values).write.format("delta").mode("append").save(str(tmp_path / "in"))

    order("01:00:00", "01:10:00", "02:00:00", "06:00:00")
    file = write_pipeline(tmp_path, WINDOWS)
    run(file, available_now=True)
    order("01:20:00")
    run(file, available_now=True)
    assert rows(spark, tmp_path, "hour(window.start)", "n") == [(1, 2), (2, 1)]
    with pytest.raises(PipelineError) as caught:
        backfill(file, at(1), at(6))
    assert {d.code for d in caught.value.diagnostics} == {"GB454"}

    (step,) = backfill(file, at(1), at(3), compare=True).steps

    assert step.differences is not None
    told = step.differences
    assert (told.missing, told.more, told.differing) == (0, 0, 1)
    (pair,) = told.samples["differing"]
    assert (pair["there"]["n"], pair["comes_out"]["n"]) == (2, 3)
    assert backfill(file, at(1), at(3), into=str(tmp_path / "copy")).ok
    assert rows(spark, tmp_path, "hour(window.start)", "n") == [(1, 2), (2, 1)]
    assert rows(spark, tmp_path, "hour(window.start)", "n", table="copy") == [(1, 3), (2, 1)]
    assert backfill(file, at(1), at(3)).ok
    assert rows(spark, tmp_path, "hour(window.start)", "n") == [(1, 3), (2, 1)]


@a_backfill
@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["before Delta looks", "while Delta writes"])
def test_what_the_live_run_writes_meanwhile_is_there_once(
    spark: SparkSession, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live run commits rows of the interval behind those that a step has read, and before its commit."""
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", 1, 2)
    run(file, available_now=True)
    write_pipeline(tmp_path, LINES.replace("id * 2", "id * 10"))
    done = DeltaTarget.replace_interval
    tries: list[RowsReplaced | None] = []
    began, go = tmp_path / "began", tmp_path / "go"

    def live() -> None:
        add(tmp_path, "b.json", 2)
        assert run(file, available_now=True).ok

    def wait(value: int, began: str = str(began), go: str = str(go)) -> int:
        import os
        import time

        os.close(os.open(began, os.O_CREAT))
        while not os.path.exists(go):  # noqa: PTH110 (it is pickled with nothing around it)
            time.sleep(0.05)
        return value

    wait.__annotations__.clear()  # as texts PySpark can't read them

    def replace_interval(self: DeltaTarget, df: DataFrame, *rest: Any) -> RowsReplaced | None:
        from pyspark.sql.functions import udf

        if tries or moment == "before Delta looks":
            live() if not tries else None
            tries.append(done(self, df, *rest))
            return tries[-1]
        held = df.withColumn("rate", udf(wait, "int")("rate"))
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(done, self, held, *rest)
            while not began.exists() and not written.done():
                time.sleep(0.05)
            try:
                live()
            finally:
                go.touch()  # else the function waits for ever
            tries.append(written.result())
        return tries[-1]

    monkeypatch.setattr(DeltaTarget, "replace_interval", replace_interval)
    report = backfill(file, at(2), at(3), column="at")

    assert report.ok, report.diagnostics
    assert [step.tries for step in report.steps] == [2]
    lost = tries[0]
    assert (lost is None) == (moment == "while Delta writes")  # it saw the other commit
    assert lost is None or lost.last_batch == 1
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2), (2, 20), (2, 20)]
    assert run(file, available_now=True).rows_in == 0


@a_backfill
def test_the_live_run_costs_a_second_commit_only_in_the_moment_of_the_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", 1, 2, 3)
    run(file, available_now=True)
    write_pipeline(tmp_path, LINES.replace("id * 2", "id * 10"))
    done = DeltaTarget.replace_interval
    calls: list[None] = []

    class Killed(BaseException):
        pass

    def live(name: str, *ids: int) -> None:
        add(tmp_path, name, *ids)
        assert run(file, available_now=True).ok

    def replace_interval(self: DeltaTarget, *arguments: Any) -> RowsReplaced | None:
        calls.append(None)
        if len(calls) == 3:
            raise Killed
        if len(calls) == 2:
            live("in the moment of the second commit.json", 3)
        replaced = done(self, *arguments)
        if len(calls) == 1:
            live("between the steps.json", 2, 3)
        return replaced

    monkeypatch.setattr(DeltaTarget, "replace_interval", replace_interval)
    wanted: dict[str, Any] = {"step": timedelta(hours=1), "column": "at"}
    with pytest.raises(Killed):
        backfill(file, at(2), at(4), **wanted)
    monkeypatch.undo()

    history = spark.sql(f"describe history delta.`{tmp_path}/out`")
    assert history.where("userMetadata like 'gem-bundle backfill%'").count() == 2
    there = [(1, 2), (2, 20), (2, 20), (3, 30), (3, 30)]
    assert rows(spark, tmp_path, "id", "rate") == there
    report = backfill(file, at(2), at(4), **wanted)
    assert (report.skipped, [step.tries for step in report.steps]) == (1, [1])
    assert rows(spark, tmp_path, "id", "rate") == [*there, (3, 30)]
    assert run(file, available_now=True).rows_in == 0


@a_backfill
@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["before the commit", "behind the commit"])
def test_a_kill_leaves_steps_that_are_done_or_not(
    spark: SparkSession, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", 1, 2, 3)
    run(file, available_now=True)
    write_pipeline(tmp_path, LINES.replace("id * 2", "id * 10"))

    class Killed(BaseException):
        pass

    kind, name = (DeltaTarget, "replace_interval") if moment == "before the commit" else (Journal, "add")
    actual = getattr(kind, name)
    calls: list[None] = []

    def killed(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 2:
            raise Killed
        return actual(*arguments)

    monkeypatch.setattr(kind, name, killed)
    with pytest.raises(Killed):
        backfill(file, at(0), at(4), step=timedelta(hours=2), column="at")
    monkeypatch.undo()
    assert rows(spark, tmp_path, "id", "rate") == [
        (1, 10),
        *([(2, 4), (3, 6)] if moment == "before the commit" else [(2, 20), (3, 30)]),
    ]
    report = backfill(file, at(0), at(4), step=timedelta(hours=2), column="at")
    assert (report.skipped, len(report.steps)) == (1, 1)
    assert rows(spark, tmp_path, "id", "rate") == [(1, 10), (2, 20), (3, 30)]
    # It has come to its end, so that the same command begins anew.
    report = backfill(file, at(0), at(4), step=timedelta(hours=2), column="at")
    assert (report.skipped, len(report.steps)) == (0, 2)


_REPLACE, _NOTE = "gem_delta.target:DeltaTarget.replace_interval", "gem_bundle.backfill.journal:Journal.add"


@a_killed_program
@pytest.mark.programs
@pytest.mark.parametrize(
    ("where", "when", "number"),
    [
        (_REPLACE, "before", 1),
        (_REPLACE, "behind", 1),
        (_NOTE, "before", 2),
        (_NOTE, "behind", 2),
        (_REPLACE, "before", 4),
        (_REPLACE, "behind", 4),
    ],
)
def test_a_program_that_is_killed_between_two_commits(
    spark: SparkSession, tmp_path: Path, where: str, when: str, number: int
) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", *range(5))
    run(file, available_now=True)
    write_pipeline(tmp_path, LINES.replace("id * 2", "id * 10"))
    asked = ("--target", "out", "--column", "at", "--from", "2026-01-01", "--to", "2026-01-01T05:00")

    kill_at(where, when, number, "backfill", file, *asked, "--step", "1 hour")

    # What is written and not noted is written once more; what is noted was written.
    done = number if (where, when) != (_REPLACE, "before") else number - 1
    assert rows(spark, tmp_path, "id", "rate") == [(n, n * (10 if n < done else 2)) for n in range(5)]
    noted = number if (where, when) == (_NOTE, "behind") else number - 1
    report = backfill(file, at(0), at(5), step=timedelta(hours=1), column="at")
    assert (report.skipped, len(report.steps)) == (noted, 5 - noted)
    assert rows(spark, tmp_path, "id", "rate") == [(n, n * 10) for n in range(5)]


def test_a_file_that_is_gone_keeps_its_rows_where_they_are(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", 1)
    add(tmp_path, "b.json", 2)
    run(file, available_now=True)
    (tmp_path / "in dir/b.json").unlink()
    with pytest.raises(PipelineError) as caught:
        backfill(file, at(0), at(4), column="at")
    (problem,) = caught.value.diagnostics
    assert problem.code == "GB453"
    assert "b.json can't be read once more" in problem.message
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2), (2, 4)]


def test_a_live_run_that_writes_all_the_time_is_given_up_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_pipeline(tmp_path, LINES)
    add(tmp_path, "a.json", 1)
    run(file, available_now=True)
    monkeypatch.setattr(DeltaTarget, "replace_interval", lambda *_: None)
    report = backfill(file, at(0), at(4), column="at")
    assert report.status == "failed"
    assert [(d.code, d.line) for d in report.diagnostics] == [("GB455", 8)]
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2)]


def came(folder: Path, name: str, came_at: datetime, *times: str) -> None:
    """A file with rows of some times that came at another one."""
    add_rows(folder / "in dir", name, [{"id": 1, "at": f"2026-01-01T{time}:00Z"} for time in times])
    os.utime(folder / "in dir" / name, (came_at.timestamp(),) * 2)


@a_backfill
def test_a_margin_says_how_late_rows_may_be(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, HOURS)
    came(tmp_path, "in time.json", at(1, 10), "01:10")
    came(tmp_path, "end of its window.json", at(1, 55), "01:50")
    came(tmp_path, "late.json", at(3, 20), "01:20")
    came(tmp_path, "early.json", at(0) - timedelta(hours=1), "01:30")

    def count(minutes: int) -> int:
        """How many rows there are of the window of which the interval is the first half."""
        margin = timedelta(minutes=minutes)
        report = backfill(file, at(1), at(1, 30), margin=margin, into=str(tmp_path / "copy"))
        assert report.ok, report.diagnostics
        ((number,),) = rows(spark, tmp_path, "n", table="copy")
        return int(number)

    # A window has rows that came behind the interval, in time.
    assert [count(1), count(51), count(61)] == [2, 3, 4]


@a_backfill
def test_one_that_was_stopped_goes_on_and_its_report_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """It writes into a table what its target writes into files."""
    target = "{gem: delta, input: rated, options: {path: out}}"
    assert target in LINES
    lines = LINES.replace(target, "{gem: file, input: rated, options: {path: out, format: json}}")
    file = write_pipeline(tmp_path, lines)
    add(tmp_path, "a.json", 1, 2, 3)
    told = tmp_path / "report.json"
    wanted: dict[str, Any] = {"step": timedelta(hours=1), "column": "at", "into": str(tmp_path / "copy")}

    stopped = backfill(file, at(1), at(4), report=told, stop_after=1, **wanted)

    assert (stopped.status, stopped.ok) == ("stopped", True)
    assert rows(spark, tmp_path, "id", "rate", table="copy") == [(1, 2)]
    said = json.loads(told.read_text())
    assert {name: said[name] for name in ("status", "skipped", "column", "sources", "diagnostics")} == {
        "status": "stopped",
        "skipped": 0,
        "column": "at",
        "sources": {"orders": "whole"},
        "diagnostics": [],
    }
    steps = [(step["from"], step["to"], step["rows"]) for step in said["steps"]]
    assert steps == [("2026-01-01T01:00:00+00:00", "2026-01-01T02:00:00+00:00", 1)]

    assert backfill(file, at(1), at(4), report=told, **wanted).status == "finished"

    assert rows(spark, tmp_path, "id", "rate", table="copy") == [(1, 2), (2, 4), (3, 6)]
    said = json.loads(told.read_text())
    assert (said["status"], said["skipped"]) == ("finished", 1)
    assert [(step["rows"], step["replaced"], step["tries"]) for step in said["steps"]] == [(1, 0, 1)] * 2


@a_backfill
def test_only_the_folders_of_the_interval_are_read(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, DAYS)
    for number in (2, 3):
        folder = tmp_path / f"in dir/day=2026-01-{number:02}"
        spark.sql(f"select {number} as id").write.parquet(str(folder))
    broken = tmp_path / "in dir/day=2026-01-01/broken.parquet"
    broken.parent.mkdir()
    broken.write_text("no Parquet")
    days = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC))
    for column in ("day", "at"):  # the one that the folders tell, and what is made of it
        copy = str(tmp_path / column)
        report = backfill(file, *days, step=timedelta(days=1), column=column, into=copy)
        assert report.status == "finished", report.diagnostics
        assert rows(spark, tmp_path, "id", table=column) == [(2,), (3,)]
    report = backfill(file, at(0), days[0], column="day", into=str(tmp_path / "day"))
    assert report.status == "failed"


@a_backfill
def test_only_the_folders_that_are_named_are_read(spark: SparkSession, tmp_path: Path) -> None:
    text = DAYS.replace("id int, day date", "id int, at timestamp, day date")
    text = text.replace("{at: to_timestamp(day)}", "{rate: id * 2}")
    file = write_pipeline(tmp_path, text)
    for number in (2, 3, 4):
        moment = f"timestamp'2026-01-{number:02} 01:00:00 UTC'"
        folder = tmp_path / f"in dir/day=2026-01-{number:02}"
        spark.sql(f"select {number} as id, {moment} as at").write.parquet(str(folder))
    run(file, available_now=True)
    write_pipeline(tmp_path, text.replace("id * 2", "id * 10"))
    for number in (2, 4):  # what isn't read can't fail
        (part,) = (tmp_path / f"in dir/day=2026-01-{number:02}").glob("*.parquet")
        part.write_text("no Parquet")
        (part.parent / f".{part.name}.crc").unlink()
    day = datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)

    report = backfill(file, *day, column="at", partition="Day")

    assert report.status == "finished", report.diagnostics
    assert report.sources == {
        "orders": "1 files that the stream has read, `Day` from 2026-01-03 to 2026-01-03"
    }
    assert rows(spark, tmp_path, "id", "rate") == [(2, 4), (3, 30), (4, 8)]
    # With a margin the broken ones are read, which weren't before.
    margin = timedelta(hours=1)
    assert backfill(file, *day, column="at", partition="Day", margin=margin).status == "failed"


@a_backfill
def test_only_the_days_of_a_table_that_are_named_are_read(spark: SparkSession, tmp_path: Path) -> None:
    def add_ids(*ids: int) -> None:
        # Of the time that rows have Delta knows nothing, so that it can't pass over their files by it.
        made = spark.createDataFrame([(n,) for n in ids], "id int").selectExpr(
            "id", "id * 86400000l as ms", "date_from_unix_date(id) as day"
        )
        made.write.format("delta").partitionBy("day").mode("append").save(str(tmp_path / "in"))

    text = FROM_TABLE.replace(", START", "").replace(
        "{rate: id * 2}", "{at: timestamp_millis(ms), rate: id * 2}"
    )
    add_ids(2, 3, 4)
    file = write_pipeline(tmp_path, text)
    run(file, available_now=True)
    add_ids(3)  # the live run hasn't read it yet
    write_pipeline(tmp_path, text.replace("id * 2", "id * 10"))
    for number in (2, 4):  # what isn't read can't fail
        (part,) = (tmp_path / f"in/day=1970-01-{number + 1:02}").glob("*.parquet")
        part.write_text("no Parquet")
        (part.parent / f".{part.name}.crc").unlink()
    day = datetime(1970, 1, 4, tzinfo=UTC), datetime(1970, 1, 5, tzinfo=UTC)

    report = backfill(file, *day, column="at", partition="Day")

    assert report.status == "finished", report.diagnostics
    assert rows(spark, tmp_path, "id", "rate") == [(2, 4), (3, 30), (4, 8)]
    # With a margin the broken ones are read.
    margin = timedelta(hours=1)
    assert backfill(file, *day, column="at", partition="Day", margin=margin).status == "failed"


@a_backfill
def test_what_a_stream_of_a_table_was_not_to_read_stays_out(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/in`"
    spark.sql(
        f"create table {table} (id int, at timestamp) using delta "
        "tblproperties (delta.enableChangeDataFeed = true)"
    )
    for number in (1, 2, 3):
        spark.sql(f"insert into {table} values ({number}, timestamp'2026-01-01 0{number}:30:00 UTC')")
    text = FROM_TABLE.replace("START", "starting_version: 2")
    file = write_pipeline(tmp_path, text)
    run(file, available_now=True)
    write_pipeline(tmp_path, text.replace("id * 2", "id * 10"))

    report = backfill(file, at(0), at(9), column="at")

    assert report.status == "finished", report.diagnostics
    assert report.sources == {"orders": "the change feed, from starting_version 2, up to version 3"}
    assert rows(spark, tmp_path, "id", "rate") == [(2, 20), (3, 30)]
    # The checkpoint goes on, but that isn't where it began.
    write_pipeline(tmp_path, text.replace("starting_version: 2", "starting_version: 3"))
    with pytest.raises(PipelineError) as caught:
        backfill(file, at(0), at(9), column="at")
    assert [(d.code, d.node) for d in caught.value.diagnostics] == [("GB453", "orders")]
    assert "the stream began with `starting_version: 2`" in caught.value.diagnostics[0].message
    # From the whole table more comes than was there.
    write_pipeline(tmp_path, text.replace(", starting_version: 2", ""))
    assert backfill(file, at(0), at(9), column="at").ok
    assert rows(spark, tmp_path, "id", "rate") == [(1, 2), (2, 4), (3, 6)]
