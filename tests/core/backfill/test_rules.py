"""What a backfill refuses before Spark starts: wherever rows could be lost or be written twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.backfill.interval import LAST_MOMENT, Interval
from gem_bundle.backfill.rules import Judged, Wanted, done_watermark, judge
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.logs import Commit, Offsets
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


INTO = "  two: {gem: file, input: last, options: {format: json, path: lines}}\n"
CATALOG = (
    TARGET.replace("path: out", "table: web.Fares")
    + "  two: {gem: delta, input: last, options: {table: n}}\n"
)
LEFT_OUT = ", or leave it out: then the rows of the interval in its own are replaced."


def test_another_place_is_none_of_the_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    own = "names the place that it writes to itself: rows would be there twice"
    two = "what target `two` writes to"
    within = "a table has its folder for itself, and removes other files from it"
    spark = "the checkpoint of `out`: that is Spark's alone"
    for into, node, why in (
        ("out", "out", own),
        ("./out/", "out", own),
        (f"{tmp_path}/lines/../out", "out", own),
        (f"file:{tmp_path}/out", "out", own),
        (f"file://{tmp_path}//out/", "out", own),
        ("file:out", "out", own),
        ("link", "out", own),
        (f"table:delta.`{tmp_path}/out`", "out", own),
        ("out/copy", "out", f"names a place in the place that it writes to itself: {within}"),
        ("lines", "two", f"names {two}: rows of both would be mixed there"),
        ("lines/copy", "two", f"names a place in {two}: {within}"),
        ("in", "orders", "names what source `orders` reads: it would read what is written there"),
        ("paid/day=1", "paid", f"names a place in what source `paid` reads: {within}"),
        ("checkpoints/p/out", "out", f"names {spark}"),
        ("checkpoints/p/out/state", "out", f"names a place in the checkpoint of `out`: {within}"),
        (
            "checkpoints/p/out.old",
            "out",
            f"names a place in the folder with the pipeline's checkpoints: {within}",
        ),
        ("p.yaml", "out", "names the pipeline's own file: a table has its folder for itself"),
        ("", "out", "`--into` is empty, and names no place"),
        ("  ", "out", "`--into` is empty, and names no place"),
    ):
        found = judged(tmp_path, FILTER, TARGET + INTO, into=into)
        assert refusals(found) == [("GB450", why if why[0] == "`" else f"`--into` {why}")], into
        assert [(d.node, d.hint) for d in found.problems] == [
            (node, "Name another place with `--into`" + LEFT_OUT)
        ]


def test_another_place_is_around_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for into, nodes in (
        ("checkpoints", ["out", "two"]),
        ("checkpoints/p", ["out", "two"]),
        (".", ["out", "two", "orders", "paid", "out", "two", "out"]),
        ("/", ["out", "two", "orders", "paid", "out", "two", "out"]),
    ):
        found = judged(tmp_path, FILTER, TARGET + INTO, into=into)
        assert [d.node for d in found.problems] == nodes, into
        assert all("names a folder around" in d.message for d in found.problems)


def test_other_places_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for into in ("copy", "outer", "in-copy", "in/copy", "s3a://bucket/out", "table:out", "p.yaml.d"):
        assert refusals(judged(tmp_path, FILTER, TARGET + INTO, into=into)) == [], into
    # Nothing is written.
    assert refusals(judged(tmp_path, FILTER, TARGET + INTO, into="out", compare=True)) == []


def test_tables_of_a_catalog_are_compared_by_their_names(tmp_path: Path) -> None:
    for into, node in (
        ("table:web.fares", "out"),
        ("table:spark_catalog.`web`.FARES", "out"),
        ("table:n", "two"),
        ("table:default.N", "two"),
        ("table:spark_catalog.default.n", "two"),
    ):
        found = judged(tmp_path, FILTER, CATALOG, into=into)
        assert [(d.code, d.node) for d in found.problems] == [("GB450", node)], into
    for into in ("table:fares", "table:web", "table:web.fares.more", "table:other.web.fares", "table:web.n"):
        assert refusals(judged(tmp_path, FILTER, CATALOG, into=into)) == [], into


def test_what_a_source_reads_may_have_wildcards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    many = "{" + ",".join(map(str, range(99))) + "}"
    for path, taken, free in (
        ("in/{a,b}*", ["in/a", "in/bc", "in", "in/a1/day=2"], ["in/c", "copy"]),
        (f"in/{many}", ["in/1", "in"], ["copy"]),
    ):
        sources = SOURCES.replace("path: in,", f'path: "{path}",')
        plan = plan_of(tmp_path, sources + FILTER + TARGET)
        for into in (*taken, *free):
            wanted = Wanted("out", Interval(hour(1), hour(2)), into=into)
            found = judge(plan, wanted, None, None).problems
            assert [d.node for d in found] == (["orders"] if into in taken else []), into


def test_a_login_is_no_part_of_a_place(tmp_path: Path) -> None:
    target = TARGET.replace("path: out", "path: s3a://bucket/out")
    found = judged(tmp_path, FILTER, target, into="s3a://key:pa55word@bucket/out/")
    assert [d.node for d in found.problems] == ["out"]
    assert "pa55word" not in str(found.problems)


def test_a_target_of_another_kind_can_not_leave_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = "targets:\n  out: {gem: file, input: last, options: {format: json, path: out}}\n"
    (problem,) = judged(tmp_path, FILTER, target, into="out").problems
    assert problem.hint == "Name another place with `--into`."


def test_what_to_do_before_the_first_run_are_two_ways(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    (problem,) = judge(plan, Wanted("out", Interval(hour(1), hour(2))), None, None).problems
    assert problem.hint == ("Run the pipeline first, or write to another place with `--into`.")
