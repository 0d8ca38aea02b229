"""What a backfill refuses before Spark starts: wherever rows could be lost or be written twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.backfill.interval import LAST_MOMENT, Interval
from gem_bundle.backfill.rules import Judged, Wanted, done_watermark, judge
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import Commit, Offsets, SparkCheckpoint
from gem_bundle.changes.record import Record
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import load_file

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.pipeline.plan import Plan

SOURCES = """
pipeline: p
sources:
  orders:
    gem: file
    options: {path: in, format: json, schema: "id int, day date, at timestamp, name string"}
  paid: {gem: file, options: {path: paid, format: json, schema: "id int, paid_at timestamp"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
  timely_paid: {gem: watermark, input: paid, options: {column: paid_at, delay: 10 minutes}}
"""
HOURS = "{window: {column: at, duration: 1 hour}, group_by: [name], aggregates: {n: count(*)}}"
COUNTS = f"  last: {{gem: aggregate, input: timely, options: {HOURS}}}\n"
TARGET = "targets:\n  out: {gem: delta, input: last, options: {path: out}}\n"
FILTER = "  last: {gem: filter, input: timely, options: {condition: id > 0}}\n"


def hour(number: int) -> datetime:
    return datetime(2026, 1, 1, number, tzinfo=UTC)


def plan_of(folder: Path, text: str) -> Plan:
    file = folder / "p.yaml"
    file.write_text(text)
    for name in ("in", "paid"):
        (folder / name).mkdir(exist_ok=True)
    checked = check_definition(load_file(file))
    assert checked.plan is not None, checked.diagnostics
    return checked.plan


def left(plan: Plan, *, watermark: int = 12, **more: Any) -> SparkCheckpoint:
    """What Spark left of a live run whose last micro-batch had this watermark, an hour."""
    offsets = Offsets(
        3, "v2", round(hour(watermark).timestamp() * 1000), sources={"orders": {"logOffset": 3}}
    )
    made = SparkCheckpoint(plan.definition.checkpoint("out"), "query", (offsets,), (Commit(3),))
    return replace(made, **more)


def judged(
    folder: Path,
    transforms: str,
    target: str = TARGET,
    *,
    ran: str | None = None,
    start: int = 1,
    end: int = 2,
    watermark: int = 12,
    cut: bool = False,
    **wanted: Any,
) -> Judged:
    before = plan_of(folder, SOURCES + (ran or transforms) + target)
    record = Record("out", (version_of(before, "out"),), "query")
    plan = plan_of(folder, SOURCES + transforms + target)
    what = Wanted("out", Interval(hour(start), hour(end)), **wanted)
    return judge(plan, what, left(plan, watermark=watermark), record, cut=cut)


def refusals(found: Judged) -> list[tuple[str, str]]:
    assert all(d.line and d.node for d in found.problems)
    return [(d.code, d.message.partition("for a time: ")[2]) for d in found.problems]


def test_rows_of_a_stream_without_state_are_bounded_by_what_was_read(tmp_path: Path) -> None:
    found = judged(tmp_path, FILTER)
    assert refusals(found) == []
    assert str(found.column) == "at"
    assert found.bounded
    # It doesn't matter how far the watermark is.
    assert refusals(judged(tmp_path, FILTER, end=20)) == []


def test_windows_are_bounded_by_the_watermark(tmp_path: Path) -> None:
    found = judged(tmp_path, COUNTS, end=11)
    assert refusals(found) == []
    assert found.column is not None
    assert found.column.path == ("window", "start")
    assert not found.bounded
    ((code, why),) = refusals(judged(tmp_path, COUNTS, end=12))
    assert code == "GB454"
    assert why == (
        "windows of 2026-01-01T01:00:00Z to 2026-01-01T12:00:00Z are still open in the live run, whose "
        "watermark is 2026-01-01T12:00:00Z"
    )
    assert refusals(judged(tmp_path, COUNTS, end=12, column="window.end")) == []
    assert refusals(judged(tmp_path, COUNTS, end=12, into="copy")) == []
    assert refusals(judged(tmp_path, COUNTS, end=12, compare=True))[0][0] == "GB454"


def test_windows_at_the_ends_of_time(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + COUNTS.replace("1 hour", "10000000 days") + TARGET)
    record = Record("out", (version_of(plan, "out"),), "query")
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    ((code, why),) = refusals(judge(plan, Wanted("out", Interval(hour(1), last)), left(plan), record))
    assert (code, why.startswith("windows of 2026-01-01T01:00:00Z to 9999-12-31T23:30:00Z are still")) == (
        "GB454",
        True,
    )
    # A row's broken time may have brought the watermark further than Python knows moments.
    beyond = left(plan, offsets=(Offsets(3, "v2", 10**17, sources={"orders": {"logOffset": 3}}),))
    assert done_watermark(beyond) == LAST_MOMENT


def test_a_name_for_the_start_of_a_window_is_as_good(tmp_path: Path) -> None:
    named = COUNTS.replace("last:", "counts:") + (
        "  last: {gem: select, input: counts, options: {columns: [window.start as since, name, n]}}\n"
    )
    assert refusals(judged(tmp_path, named, column="since")) == []
    assert refusals(judged(tmp_path, named, column="since", end=12))[0][0] == "GB454"
    assert refusals(judged(tmp_path, named)) == [
        ("GB451", "there is no column that an interval can be on: no column of it is known to be event time")
    ]
    loose = named.replace("window.start as since", "\"date_trunc('day', window.start) as since\"")
    assert refusals(judged(tmp_path, loose, column="since")) == [
        ("GB452", "`since` isn't what `counts` groups by, but something made of it")
    ]
    assert refusals(judged(tmp_path, loose, column="since", into="copy")) == []


@pytest.mark.parametrize(
    ("transforms", "why", "everywhere"),
    [
        (
            "  last: {gem: aggregate, input: timely, options: {session: {column: at, gap: 5 minutes}, "
            "group_by: [name], aggregates: {n: count(*)}}}\n",
            "sessions of `last` may begin in the interval and end outside of it",
            False,
        ),
        (
            "  last: {gem: deduplicate, input: timely, options: {columns: [id]}}\n",
            "`last` keeps the first of some duplicates, which goes by when they came, not by `at`",
            True,
        ),
        (
            "  last: {gem: deduplicate, input: timely, options: {columns: [id, at]}}\n",
            "",
            False,
        ),
        (
            "  last: {gem: deduplicate, input: timely, options: {columns: [id], within_watermark: true}}\n",
            "`last` drops duplicates within the watermark, and a batch has none",
            True,
        ),
        (
            "  last: {gem: limit, input: timely, options: {rows: 5}}\n",
            "which rows `last` takes goes by when they came",
            True,
        ),
        (
            "  last: {gem: join, inputs: [timely, timely_paid], options: {how: left, condition: "
            '"timely.id = timely_paid.id and paid_at between at and at + interval 1 hour"}}\n',
            "whether a row of `last` has a partner (left) may be known later only",
            False,
        ),
        (
            "  last: {gem: join, inputs: [timely, timely_paid], options: {how: inner, condition: "
            '"timely.id = timely_paid.id and paid_at between at and at + interval 1 hour"}}\n',
            "",
            False,
        ),
    ],
    ids=["session", "duplicates", "duplicates by time", "within", "limit", "left join", "inner join"],
)
def test_rows_that_depend_on_others(tmp_path: Path, transforms: str, why: str, everywhere: bool) -> None:
    column = "session_window.start" if "session" in transforms else "at"
    found = refusals(judged(tmp_path, transforms, column=column))
    assert found == ([("GB452", why)] if why else [])
    elsewhere = refusals(judged(tmp_path, transforms, column=column, into="copy"))
    assert bool(elsewhere) == everywhere
    # What lies outside has to be read then.
    cut = judged(tmp_path, transforms, column=column, into="copy", cut=True)
    assert refusals(cut) == found
    assert everywhere or all(
        "Leave `--margin` and `--partition` away" in problem.hint for problem in cut.problems
    )


def test_windows_are_made_of_what_is_up_to_their_length_away(tmp_path: Path) -> None:
    assert judged(tmp_path, COUNTS, cut=True).reach == timedelta(hours=1)
    assert judged(tmp_path, COUNTS).reach == timedelta(0)
    assert judged(tmp_path, FILTER, cut=True).reach == timedelta(0)


def test_two_times_want_a_name(tmp_path: Path) -> None:
    joined = (
        "  last: {gem: join, inputs: [timely, timely_paid], options: {how: inner, condition: "
        '"timely.id = timely_paid.id and paid_at between at and at + interval 1 hour"}}\n'
    )
    ((code, why),) = refusals(judged(tmp_path, joined))
    assert (code, why.partition(": ")[2]) == (
        "GB451",
        "it has several columns with event time: `at` and `paid_at`",
    )


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("name", "there is no column that an interval can be on: `name` is of type string, and neither"),
        ("nothing", "there is no column that an interval can be on: it has no column `nothing`, only `id`"),
        ("at.start", "there is no column that an interval can be on: `at.start` isn't the start or the end"),
        ("day", "`day` is a date, and 2026-01-01T01:00:00Z to 2026-01-01T02:00:00Z isn't in whole days"),
    ],
)
def test_columns_that_have_no_such_time(tmp_path: Path, column: str, why: str) -> None:
    ((code, told),) = refusals(judged(tmp_path, FILTER, column=column))
    assert code == "GB451"
    assert told.startswith(why)


def test_rows_that_are_there_must_have_the_time_that_they_would_get_now(tmp_path: Path) -> None:
    shifted = (
        "  last: {gem: with_columns, input: timely, options: {columns: {since: at + interval 1 hour}}}\n"
    )
    assert refusals(judged(tmp_path, shifted, column="since")) == []
    other = shifted.replace("1 hour", "2 hours")
    ((code, why),) = refusals(judged(tmp_path, other, column="since", ran=shifted))
    assert code == "GB451"
    assert why.startswith("`since` was made in another way from micro-batch 0 on")
    assert refusals(judged(tmp_path, other, column="since", ran=shifted, into="copy")) == []
    wider = COUNTS.replace("1 hour", "2 hours")
    assert refusals(judged(tmp_path, wider, ran=COUNTS))[0][0] == "GB451"
    # What is counted, and of what, may be another.
    assert refusals(judged(tmp_path, COUNTS.replace("count(*)", "sum(id)"), ran=COUNTS)) == []


def test_without_a_record_that_can_not_be_known(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    wanted = Wanted("out", Interval(hour(1), hour(2)))
    (problem,) = judge(plan, wanted, left(plan), None).problems
    assert problem.code == "GB451"
    assert "no record tells how `at` of the rows was made" in problem.message


def test_of_rows_that_were_written_before_the_record_it_can_not_be_known_either(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    wanted = Wanted("out", Interval(hour(1), hour(2)))
    version = version_of(plan, "out")
    later = replace(version, first_batch=2)
    (problem,) = judge(plan, wanted, left(plan), Record("out", (later,), "query")).problems
    assert problem.code == "GB451"
    assert problem.message.endswith(
        "no record tells how `at` of the rows was made that micro-batches before 2 have written"
    )
    assert "--into" in problem.hint
    # New state is no new table: rows of the old checkpoint are there too.
    fresh = replace(later, continues="out.until-2")
    assert len(judge(plan, wanted, left(plan), Record("out", (fresh,), "query")).problems) == 1
    told = Record("out", (version, fresh), "query")
    assert judge(plan, wanted, left(plan), told).problems == ()
    for elsewhere in (replace(wanted, into="copy"), replace(wanted, compare=True)):
        assert judge(plan, elsewhere, left(plan), Record("out", (later,), "query")).problems == ()


def test_the_live_run_must_have_run(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    wanted = Wanted("out", Interval(hour(1), hour(2)))
    for found in (None, left(plan, commits=()), left(plan, offsets=(Offsets(3, "v1"),))):
        assert {d.code for d in judge(plan, wanted, found, None).problems} == {"GB454"}
        assert judge(plan, replace(wanted, into="copy"), found, None).problems == ()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (
            "targets:\n  out: {gem: file, input: last, options: {format: json, path: out}}\n",
            "rows of `file` can't take the place of others in one step",
        ),
        (
            TARGET.replace("input: last", "input: last, output_mode: complete"),
            "in the mode `complete` its rows are written again and again",
        ),
        (
            TARGET + "  two: {gem: delta, input: last, options: {path: out}}\n",
            "target `two` writes to the same place, and its rows would be gone",
        ),
    ],
    ids=["no table", "complete", "shared"],
)
def test_targets_whose_rows_can_not_be_replaced(tmp_path: Path, target: str, why: str) -> None:
    assert ("GB450", why) in refusals(judged(tmp_path, COUNTS, target))


def test_a_batch_is_run(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES.replace("pipeline: p", "pipeline: p\nmode: batch") + FILTER + TARGET)
    (problem,) = judge(plan, Wanted("out", Interval(hour(1), hour(2))), None, None).problems
    assert problem.code == "GB450"


def test_what_keeps_no_rows_can_not_be_read_again(tmp_path: Path) -> None:
    text = (
        "pipeline: p\nsources:\n  ticks: {gem: rate}\ntargets:\n"
        "  out: {gem: delta, input: ticks, options: {path: out}}\n"
    )
    plan = plan_of(tmp_path, text)
    wanted = Wanted("out", Interval(hour(1), hour(2)), "timestamp", into="copy")
    (problem,) = judge(plan, wanted, None, None).problems
    assert (problem.code, problem.node) == ("GB453", "ticks")
