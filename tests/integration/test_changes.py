"""Edits on an old checkpoint in real Spark: what the plan calls them, that a run stops, and what it would have done."""

from __future__ import annotations

import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gem_bundle.changes.planning import plan_changes
from gem_bundle.changes.record import read_record
from gem_bundle.check import check_file
from gem_bundle.errors import PipelineError
from tests.checked import plan_of
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.run.report import Report

pytestmark = pytest.mark.spark

COUNTS = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
transforms:
  counts: {gem: aggregate, input: clicks, options: {group_by: {k: k}, aggregates: {r: count(n)}}}
targets:
  out: {gem: delta, input: counts, output_mode: complete, options: {path: out}}
"""
SHOWN = COUNTS.replace("r: count(n)", "lo: min(n), hi: max(n)").replace(
    "targets:\n  out: {gem: delta, input: counts",
    "  shown: {gem: select, input: counts, options: {columns: [k, lo, hi]}}\n"
    "targets:\n  out: {gem: delta, input: shown",
)
PLAIN = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
targets:
  out: {gem: file, input: clicks, options: {format: json, path: out}}
"""
ONCE = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
transforms:
  once: {gem: deduplicate, input: clicks, options: {columns: [k]}}
targets:
  out: {gem: delta, input: once, options: {path: out}}
"""
PAIRS = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
transforms:
  pairs:
    gem: join
    inputs: {a: clicks, b: clicks}
    options: {how: inner, condition: a.k = b.k and a.n = b.n}
  flat: {gem: select, input: pairs, options: {columns: {k: a.k, n: b.n}}}
targets:
  out: {gem: delta, input: flat, options: {path: out}}
"""
TICKS = """
pipeline: shop
sources:
  ticks: {gem: rate, options: {rows_per_second: 10, num_partitions: 1}}
targets:
  out: {gem: noop, input: ticks}
"""
TABLE = PLAIN.replace(
    "gem: file, input: clicks, options: {format: json, path: out}",
    "gem: table, input: clicks, options: {format: json, table: former_clicks}",
)
FIRST = [{"k": "a", "n": n, "at": "2024-01-31 10:00:00"} for n in (9, 8, 7, 6, 5)]
SECOND = [{"k": "a", "n": n, "at": "2024-01-31 11:00:00"} for n in (50, 40, 10, 20, 30)]


class Edit(NamedTuple):
    """An edit of a pipeline that has run: what is replaced, and what it is called."""

    before: str
    old: str
    new: str
    verdict: str
    code: str


SILENT = {
    "sum becomes count": Edit(COUNTS.replace("count(n)", "sum(n)"), "sum(n)", "count(n)", "mixed", "GB423"),
    "max becomes min": Edit(COUNTS.replace("count(n)", "max(n)"), "max(n)", "min(n)", "mixed", "GB423"),
    "a key becomes upper(key)": Edit(COUNTS, "{k: k}", "{k: upper(k)}", "mixed", "GB423"),
    "columns behind change places": Edit(SHOWN, "[k, lo, hi]", "[k, hi, lo]", "mixed", "GB423"),
    "another folder for files": Edit(PLAIN, "path: out", "path: elsewhere", "mixed", "GB431"),
}
# What an old checkpoint makes of version 2, and what would be right.
NUMBERS = {
    "sum becomes count": ([("a", 40)], [("a", 10)]),
    "max becomes min": ([("a", 9)], [("a", 5)]),
    "a key becomes upper(key)": ([("A", 5), ("a", 5)], [("A", 10)]),
    # The table keeps the order of its columns: the least is 9, and would have been 5.
    "columns behind change places": ([("a", 9, 50)], [("a", 50, 5)]),
}
REFUSED = {
    "a key of another type": Edit(COUNTS, "{k: k}", "{k: length(k)}", "refused", "GB422"),
    "a key more": Edit(COUNTS, "{k: k}", "{k: k, n: n}", "refused", "GB422"),
    "an aggregate more": Edit(COUNTS, "r: count(n)", "r: count(n), s: sum(n)", "refused", "GB422"),
    "an aggregate that is kept in another way": Edit(COUNTS, "count(n)", "avg(n)", "refused", "GB422"),
    "count, which is never null, becomes sum": Edit(COUNTS, "count(n)", "sum(n)", "refused", "GB422"),
    "an operator with state more": Edit(
        COUNTS,
        "input: clicks, options: {group_by",
        "input: once, options: {group_by",
        "refused",
        "GB422",
    ),
    "other columns of duplicates": Edit(ONCE, "columns: [k]", "columns: [k, n]", "refused", "GB422"),
    "another kind of join": Edit(PAIRS, "a.k = b.k and a.n = b.n", "a.k = b.k", "refused", "GB422"),
    "another table of files": Edit(TABLE, "former_clicks", "later_clicks", "refused", "GB431"),
    "another folder to read": Edit(PLAIN, "path: in", "path: in2", "refused", "GB414"),
}


def edited(case: Edit) -> str:
    text = case.before.replace(case.old, case.new)
    if "input: once, options: {group_by" in text:
        text = text.replace(
            "  counts:", "  once: {gem: deduplicate, input: clicks, options: {columns: [n]}}\n  counts:"
        )
    assert text != case.before
    return text


def begun(case: Edit, folder: Path) -> Path:
    """The folder of a pipeline that has run, was edited, and has new rows waiting."""
    add_rows(folder / "in", "1.json", FIRST)
    file = write_pipeline(folder, case.before)
    assert run(file, available_now=True).ok
    write_pipeline(folder, edited(case))
    add_rows(folder / "in", "2.json", SECOND)
    add_rows(folder / "in2", "3.json", SECOND)
    return file


def planned(file: Path) -> TargetChanges:
    plan = plan_of(str(file))
    (found,), wrong = plan_changes(plan)
    assert not wrong
    return found


def is_stopped(file: Path, case: Edit) -> None:
    """The plan says so, and a run stops with its words before anything happens."""
    found = planned(file)
    assert (found.verdict, case.code in {change.code for change in found.changes}) == (case.verdict, True)
    location = file.parent / "checkpoints" / "shop"
    before = sorted(str(path) for path in location.rglob("*"))
    with pytest.raises(PipelineError) as stopped:
        run(file, available_now=True)
    told = [diagnostic.message for diagnostic in stopped.value.diagnostics]
    assert any(message.startswith(f"{case.verdict}: ") for message in told)
    assert sorted(str(path) for path in location.rglob("*")) == before


def table(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(folder / "out")).collect()
    return sorted(tuple(row) for row in found)


@pytest.mark.parametrize("name", list(NUMBERS))
def test_what_spark_would_get_wrong_without_a_word(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = SILENT[name]
    file = begun(case, tmp_path)
    is_stopped(file, case)
    wrong, right = NUMBERS[name]
    report = run(file, available_now=True, accept=((case.code, ""),))
    assert report.ok
    assert table(spark, tmp_path) == wrong
    record = read_record(str(tmp_path / "checkpoints" / "shop" / "out"))
    assert record is not None
    assert record.newest is not None
    assert [taken.code for taken in record.newest.accepted] == [case.code]
    # It runs on without being accepted again, and from scratch the numbers would have been other ones.
    assert planned(file).verdict == "same"
    scratch = tmp_path / "scratch"
    for position, rows in enumerate((FIRST, SECOND)):
        add_rows(scratch / "in", f"{position}.json", rows)
    assert run(write_pipeline(scratch, edited(case)), available_now=True).ok
    assert table(spark, scratch) == right


def test_a_sink_of_files_in_another_folder_cant_be_read(spark: SparkSession, tmp_path: Path) -> None:
    case = SILENT["another folder for files"]
    file = begun(case, tmp_path)
    is_stopped(file, case)
    assert run(file, available_now=True, accept=((case.code, "out"),)).ok
    with pytest.raises(Exception, match=r"_spark_metadata|batch|log"):
        spark.read.json(str(tmp_path / "elsewhere")).count()


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_spark_refuses_after_its_start(name: str, spark: SparkSession, tmp_path: Path) -> None:
    case = REFUSED[name]
    file = begun(case, tmp_path)
    is_stopped(file, case)
    codes = {change.code for change in planned(file).changes if change.stops}
    report = run(file, available_now=True, accept=tuple((code, "") for code in codes))
    assert not report.ok, "Spark takes it"


def test_a_project_that_has_moved_with_its_checkpoints(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    add_rows(tmp_path / "old" / "in", "1.json", FIRST)
    assert run(write_pipeline(tmp_path / "old", PLAIN), available_now=True).ok
    (tmp_path / "old").rename(tmp_path / "new")
    file = tmp_path / "new" / "pipeline.yaml"
    add_rows(tmp_path / "new" / "in", "2.json", SECOND)
    is_stopped(file, Edit(PLAIN, "", "", "refused", "GB416"))
    codes = {change.code for change in planned(file).changes if change.stops}
    assert not run(file, available_now=True, accept=tuple((code, "") for code in codes)).ok


@pytest.mark.parametrize("link", [False, True], ids=["a copy", "a link"])
def test_a_project_that_has_moved_goes_on_by_the_old_place_of_its_files(
    spark: SparkSession, tmp_path: Path, link: bool
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    add_rows(old / "in", "1.json", FIRST)
    text = PLAIN.replace(
        "gem: file, input: clicks, options: {format: json,", "gem: delta, input: clicks, options: {"
    )
    assert run(write_pipeline(old, text), available_now=True).ok
    if link:
        old.rename(new)
        old.symlink_to(new)
    else:
        shutil.copytree(old, new)
    add_rows(old / "in", "2.json", SECOND)
    file = write_pipeline(new, text.replace("path: in", f"path: {old / 'in'}"))
    assert planned(file).verdict == "continues"  # the table has come along
    report = run(file, available_now=True)
    assert (report.ok, report.rows_in) == (True, len(SECOND)), report.diagnostics
    assert spark.read.format("delta").load(str(new / "out")).count() == len(FIRST + SECOND)


def test_a_table_that_has_moved_with_its_project_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    text = PLAIN.replace(
        'gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}',
        "gem: delta, options: {path: in}",
    ).replace("gem: file, input: clicks, options: {format: json,", "gem: delta, input: clicks, options: {")

    def add(folder: Path, rows: list[dict[str, Any]]) -> None:
        spark.createDataFrame(rows).write.format("delta").mode("append").save(str(folder / "in"))

    add(old, FIRST)
    assert run(write_pipeline(old, text), available_now=True).ok
    old.rename(new)
    add(new, SECOND)
    file = new / "pipeline.yaml"
    assert {(c.verdict, c.code, c.node) for c in planned(file).changes} == {
        ("continues", "GB416", "clicks"),
        ("continues", "GB416", "out"),
    }
    report = run(file, available_now=True)
    assert (report.ok, report.rows_in) == (True, len(SECOND)), report.diagnostics
    assert spark.read.format("delta").load(str(new / "out")).count() == len(FIRST + SECOND)


def test_continuous_processing_goes_on_from_no_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TICKS)
    assert run(file, available_now=True).ok
    case = Edit(TICKS, "input: ticks", "input: ticks, trigger: {continuous: 1 second}", "refused", "GB434")
    write_pipeline(tmp_path, edited(case))
    is_stopped(file, case)
    # Only if Spark took it there would be something to stop.
    stop = threading.Timer(120, lambda: [query.stop() for query in spark.streams.active])
    stop.start()
    try:
        report = run(file, accept=((case.code, ""),))
    finally:
        stop.cancel()
    assert [diagnostic.node for diagnostic in report.diagnostics] == ["out"], "Spark takes it"
    assert not report.ok


def test_a_continuous_query_goes_on_from_its_own_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(
        tmp_path, TICKS.replace("input: ticks", "input: ticks, trigger: {continuous: 1 second}")
    )
    commits = tmp_path / "checkpoints" / "shop" / "out" / "commits"

    def epochs() -> set[str]:
        return {path.name for path in commits.glob("[0-9]*")} if commits.exists() else set()

    for _ in range(2):
        before = epochs()
        reports: list[Report] = []
        running = threading.Thread(target=lambda found=reports: found.append(run(file)))
        running.start()
        while running.is_alive() and not epochs() - before:
            running.join(0.2)
        for query in spark.streams.active:
            query.stop()
        running.join()
        assert [report.diagnostics for report in reports] == [[]]
        assert epochs() > before
    assert planned(file).verdict == "same"
    with pytest.raises(PipelineError, match="GB434"):
        run(file, available_now=True)
    write_pipeline(tmp_path, TICKS)
    assert [change.code for change in planned(file).changes if change.verdict == "refused"] == ["GB434"]
    report = run(file, available_now=True, accept=(("GB434", ""),))
    assert not report.ok, "Spark takes it"


def test_nodes_that_say_what_they_were_called_go_on(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "in", "1.json", FIRST)
    file = write_pipeline(tmp_path, COUNTS)
    assert run(file, available_now=True).ok
    add_rows(tmp_path / "in", "2.json", SECOND)
    text = (
        COUNTS.replace("  clicks: {", "  visits: {was: [views, clicks], ")
        .replace("input: clicks", "input: visits")
        .replace("  counts: {", "  sums: {was: counts, ")
        .replace("  out: {gem: delta, input: counts", "  table: {was: out, gem: delta, input: sums")
    )
    write_pipeline(tmp_path, text)
    assert planned(file).verdict == "continues"
    assert run(file, available_now=True).ok
    assert table(spark, tmp_path) == [("a", 10)]


CALLED = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
transforms:
  more: {gem: with_columns, input: clicks, options: {columns: {n: n + 1}}}
  some: {gem: python, input: more, options: {function: "calls:some"}}
  flat: {gem: select, input: some, options: {columns: [k, n]}}
targets:
  out: {gem: delta, input: flat, options: {path: out}}
"""


@pytest.mark.parametrize("stateful", [False, True])
def test_a_function_that_has_kept_state_and_one_that_has_not(
    spark: SparkSession, tmp_path: Path, stateful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the checkpoint tells decides: with state its new rows are mixed, without it they are the new rule's."""
    monkeypatch.delitem(sys.modules, "calls", raising=False)
    body = "df.dropDuplicates(['n'])" if stateful else "df"
    (tmp_path / "calls.py").write_text(f"def some(df):\n    return {body}.filter('n > 0')\n")
    add_rows(tmp_path / "in", "1.json", FIRST)
    file = write_pipeline(tmp_path, CALLED)
    assert run(file, available_now=True).ok
    write_pipeline(tmp_path, CALLED.replace("n + 1", "n + 2"))
    add_rows(tmp_path / "in", "2.json", [{**SECOND[0], "n": n} for n in (8, 20)])
    assert planned(file).verdict == ("mixed" if stateful else "from_now_on")
    if stateful:
        is_stopped(file, Edit(CALLED, "", "", "mixed", "GB423"))
        assert run(file, available_now=True, accept=(("GB423", ""),)).ok
        # 8 + 2 is 9 + 1, which the old rule had let through.
        assert table(spark, tmp_path) == [("a", n) for n in (6, 7, 8, 9, 10, 22)]
        return
    assert run(file, available_now=True).ok
    assert table(spark, tmp_path) == [("a", n) for n in (6, 7, 8, 9, 10, 10, 22)]
    # State that begins now is in no checkpoint: Spark refuses, and the plan had said so.
    monkeypatch.delitem(sys.modules, "calls", raising=False)
    (tmp_path / "calls.py").write_text("def some(df):\n    return df.dropDuplicates(['n'])\n")
    add_rows(tmp_path / "in", "3.json", SECOND)
    found = planned(file)
    assert found.verdict == "from_now_on"
    assert "if it keeps some now, Spark refuses to go on" in found.changes[0].message
    assert not run(file, available_now=True).ok
    assert len(table(spark, tmp_path)) == 7


LESS = """
pipeline: shop
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
  known: {gem: file, mode: batch, options: {format: json, path: known, schema: "k string, n int"}}
transforms:
  flat: {gem: select, input: clicks, options: {columns: {k: k, n: n + 1}}}
  less: {gem: set_operation, inputs: [flat, known], options: {operation: except}}
targets:
  out: {gem: foreach_batch, input: less, output_mode: update, options: {function: "keep:keep"}}
"""


def test_rows_that_came_through_once_are_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit in front of `except` is refused or mixed: what has come through is in the checkpoint."""
    monkeypatch.delitem(sys.modules, "keep", raising=False)
    folder = tmp_path / "kept"
    (tmp_path / "keep.py").write_text(
        f"def keep(df, batch_id):\n    df.write.mode('append').json({str(folder)!r})\n"
    )
    add_rows(tmp_path / "known", "1.json", [{"k": "a", "n": 7}])
    add_rows(tmp_path / "in", "1.json", FIRST)
    file = write_pipeline(tmp_path, LESS)
    assert run(file, available_now=True).ok
    assert sorted(row.n for row in spark.read.json(str(folder)).collect()) == [6, 8, 9, 10]
    found = list((tmp_path / "checkpoints" / "shop" / "out" / "state").iterdir())
    assert found, "Spark keeps what has come through"
    write_pipeline(tmp_path, LESS.replace("n + 1", "n + 2"))
    assert planned(file).verdict == "mixed"


UNNAMED = PLAIN.replace(
    "spark.sql.shuffle.partitions: 1",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution: false, "
    "spark.sql.streaming.offsetLog.formatVersion: 1",
)
TWO = UNNAMED.replace(
    "targets:",
    """  visits: {gem: file, options: {format: json, path: in2, schema: "k string, n int, at timestamp"}}
transforms:
  all: {gem: union, inputs: [clicks, visits]}
targets:""",
).replace("out: {gem: file, input: clicks", "out: {gem: file, input: all")
TWICE = UNNAMED.replace(
    "targets:",
    """transforms:
  few: {gem: filter, input: clicks, options: {condition: n > 5}}
  all: {gem: union, inputs: [clicks, few]}
targets:""",
).replace("out: {gem: file, input: clicks", "out: {gem: file, input: all")


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "code"),
    [(UNNAMED, TWO, "GB410"), (TWO, UNNAMED, "GB411"), (UNNAMED, TWICE, "GB410"), (TWICE, TWICE, "")],
)
def test_sources_without_names_are_counted(
    spark: SparkSession, tmp_path: Path, before: str, after: str, code: str, record: bool
) -> None:
    """Without names Spark knows sources by their order, and refuses another number of them."""
    for name in ("in", "in2"):
        add_rows(tmp_path / name, "1.json", FIRST)
    file = write_pipeline(tmp_path, before)
    assert run(file, available_now=True).ok
    if not record:
        (tmp_path / "checkpoints/shop/.out.record.json").unlink()
    file = write_pipeline(tmp_path, after)
    add_rows(tmp_path / "in", "2.json", SECOND)
    found = planned(file)
    if not code:
        assert found.verdict == ("same" if record else "continues")
        assert run(file, available_now=True).ok
        return
    is_stopped(file, Edit(before, "", "", "refused", code))
    report = run(file, available_now=True, accept=tuple((c.code, "") for c in found.changes))
    assert not report.ok, "Spark takes it"
    assert any("sources in the checkpoint offsets" in found.message for found in report.diagnostics)


@pytest.mark.parametrize("swapped", [True, False], ids=["other places", "another name"])
def test_sources_without_names_go_by_their_order(spark: SparkSession, tmp_path: Path, swapped: bool) -> None:
    for name in ("in", "in2"):
        add_rows(tmp_path / name, "1.json", FIRST)
    file = write_pipeline(tmp_path, TWO)
    assert run(file, available_now=True).ok
    before = spark.read.json(str(tmp_path / "out")).count()
    edit = ("[clicks, visits]", "[visits, clicks]") if swapped else ("visits", "views")
    file = write_pipeline(tmp_path, TWO.replace(*edit))
    found = planned(file)
    assert found.verdict == ("refused" if swapped else "same")
    told = [change.code for change in found.changes if change.stops]
    assert told == (["GB414", "GB414"] if swapped else [])
    # Of files Spark has the paths of others in its log.
    assert run(file, available_now=True, accept=(("GB414", ""),)).ok is not swapped
    assert spark.read.json(str(tmp_path / "out")).count() == before


# Keys as Spark makes them: of windows, of what is said twice or always the same, of many columns, of all. And what
# it keeps for aggregate functions, some of which are one to it.
KEPT = """
pipeline: kept
spark: {spark.sql.shuffle.partitions: 1}
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "k string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 minute}}
  hours:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, group_by: [k], aggregates: {r: avg(n), d: max(n)}}
  visits: {gem: aggregate, input: timely, options: {session: {column: at, gap: 1 minute}, group_by: [k], aggregates: {r: count(*)}}}
  odd:
    gem: aggregate
    input: clicks
    options:
      group_by: {k: k, again: k, same: "'x'", half: "n div 2", day: to_date(at), pair: "named_struct('a', n, 'b', k)"}
      aggregates: {r: sum(n)}
  all:
    gem: aggregate
    input: clicks
    options:
      aggregates:
        counted: count(*) + count(coalesce(n, 0)) + count(n)
        summed: sum(n div 2) + sum(cast(n div 2 as decimal(8,2))) + avg(cast(n div 2 as decimal(9,2)))
        chosen: max_by(k, k) || first(k) || last_value(k) || any_value(k) || min(k)
        found: some(k > 'a') or bool_or(k > 'a') or every(k > 'a')
        spread: stddev(length(k)) + var_pop(length(k)) + covar_pop(length(k), 1) + approx_count_distinct(k)
        listed: collect_list(k)
  once: {gem: deduplicate, input: clicks, options: {columns: [n, k]}}
  rows: {gem: deduplicate, input: clicks}
  lately: {gem: deduplicate, input: timely, options: {columns: [at, k], within_watermark: true}}
targets:
  a: {gem: noop, input: hours}
  b: {gem: noop, input: visits}
  c: {gem: noop, input: odd, output_mode: update}
  d: {gem: noop, input: all, output_mode: update}
  e: {gem: noop, input: once}
  f: {gem: noop, input: rows}
  g: {gem: noop, input: lately}
"""


def test_what_spark_keeps_is_what_a_plan_expects(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "in", "1.json", FIRST)
    file = write_pipeline(tmp_path, KEPT)
    assert run(file, available_now=True).ok
    records = list((tmp_path / "checkpoints/kept").glob(".*.record.json"))
    assert len(records) == 7
    for record in records:
        record.unlink()
    checked = check_file(file)
    assert checked.plan is not None, checked.diagnostics
    found, wrong = plan_changes(checked.plan)
    assert wrong == []
    assert {target.target: target.verdict for target in found} == dict.fromkeys("abcdefg", "continues")
    assert [target.target for target in found if len(target.notes) > 1] == ["b"], "values of sessions"

    other = write_pipeline(tmp_path, KEPT.replace("k string, n int", "k string, n bigint"), "other.yaml")
    changed = plan_of(other)
    refused = {target.target for target in plan_changes(changed)[0] if target.verdict == "refused"}
    assert refused == set("acef"), "those that have `n` in their keys, or keep the greatest"
