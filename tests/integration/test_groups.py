"""Groups: one query for several targets, each row once in each of them, through failures and kills."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.planning import plan_changes
from gem_bundle.errors import PipelineError
from gem_bundle.run.groups import GroupQuery
from tests.checked import plan_of
from tests.gems.draining import forget_last_commit
from tests.integration.kill_series import kill_often
from tests.integration.pipelines import add_rows, command, events, finish, run, write_pipeline
from tests.samples import a_killed_program, drawn, examples, some_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

a_group = some_of("targets of a group", 2)

pytestmark = pytest.mark.spark

SHOP = """
pipeline: shop
sources:
  lines: {gem: file, options: {path: in, format: text, max_files_per_trigger: 1}}
transforms:
  parsed:
    gem: from_json
    input: lines
    options: {column: value, schema: "id int not null, amount double", rejects: true}
  plausible: {gem: expect, input: parsed, options: {rules: {paid: amount > 0}}}
  large: {gem: filter, input: plausible, options: {condition: amount >= 50}}
targets:
  orders: {gem: delta, input: plausible, group: all, options: {path: out/orders}}
  most: {gem: delta, input: large, group: all, options: {path: out/large}}
  broken: {gem: delta, input: parsed.rejected, options: {path: out/broken}}
  unpaid: {gem: delta, input: plausible.rejected, options: {path: out/unpaid}}
"""


def line(number: int) -> str:
    """A line of which every tenth is broken, and every tenth unpaid."""
    if number % 10 == 3:
        return f'{{"id": {number}, "amount": '
    return json.dumps({"id": number, "amount": -1 if number % 10 == 7 else number})


def add(folder: Path, name: str, numbers: range) -> None:
    (folder / "in").mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line(number)}\n" for number in numbers))
    hidden.rename(folder / "in" / name)


def table(spark: SparkSession, place: Path) -> list[Row]:
    return spark.read.format("delta").load(str(place)).collect()


def ids(spark: SparkSession, place: Path) -> list[int]:
    return sorted(row.id for row in table(spark, place))


def planned(file: Path) -> dict[str, str]:
    plan = plan_of(file)
    found, wrong = plan_changes(plan)
    assert wrong == []
    assert {c.code for changes in found for c in changes.changes if c.stops} <= {"GB447"}
    return {changes.target: changes.verdict for changes in found}


def assert_each_row_once(spark: SparkSession, folder: Path, count: int) -> None:
    numbers = range(count)
    good = [n for n in numbers if n % 10 not in {3, 7} and n > 0]
    assert ids(spark, folder / "out/orders") == good
    assert ids(spark, folder / "out/large") == [n for n in good if n >= 50]
    unpaid = [json.loads(row.row)["id"] for row in table(spark, folder / "out/unpaid")]
    assert sorted(unpaid) == [n for n in numbers if n % 10 == 7 or n == 0]
    broken = [json.loads(row.row)["value"] for row in table(spark, folder / "out/broken")]
    assert sorted(broken) == sorted(line(n) for n in numbers if n % 10 == 3)
    assert all(row.origin["file"].endswith(".txt") for row in table(spark, folder / "out/broken"))


@a_group
@pytest.mark.matrix
def test_one_query_writes_them_all(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SHOP)
    add(tmp_path, "a.txt", range(60))
    add(tmp_path, "b.txt", range(60, 100))

    report = run(file, available_now=True)

    assert report.status == "finished"
    assert_each_row_once(spark, tmp_path, 100)
    counts = {name: totals.rows_out for name, totals in report.targets.items()}
    assert counts == {"orders": 79, "most": 40, "broken": 10, "unpaid": 11}
    assert report.rows_in == 100, "each line is read once"
    assert report.held.rejected == {"parsed": 10, "plausible": 11}
    assert [path.name for path in (tmp_path / "checkpoints/shop").glob("[a-z]*")] == ["all"]

    # Killed behind the last write and before Spark's commit: the micro-batch comes once more.
    forget_last_commit(tmp_path / "checkpoints/shop/all")
    again = run(file, available_now=True)
    assert again.ok
    assert again.rows_in > 0
    assert_each_row_once(spark, tmp_path, 100)

    # What an edit of the group does is said before it runs.
    assert set(planned(file).values()) == {"same"}
    alone = SHOP.replace("input: large, group: all", "input: large")
    assert planned(write_pipeline(tmp_path, alone, "alone.yaml")) == {
        "orders": "same",
        "most": "again",
        # Not all that take the good rows are in the group any more, so these join it no more.
        "broken": "again",
        "unpaid": "again",
    }
    more = SHOP + "  more: {gem: noop, input: plausible, group: all}\n"
    assert planned(write_pipeline(tmp_path, more, "more.yaml"))["more"] == "skipped"
    filtered = SHOP.replace("amount >= 50", "amount >= 70")
    assert planned(write_pipeline(tmp_path, filtered, "filtered.yaml")) == {
        "orders": "same",
        "most": "from_now_on",
        "broken": "same",
        "unpaid": "same",
    }
    for options in ({"targets": ("orders",)}, {"fresh": ("orders",)}):
        with pytest.raises(PipelineError) as refused:
            run(file, available_now=True, **options)
        assert {d.code for d in refused.value.diagnostics} <= {"GB384", "GB407"}


TWO = """
pipeline: two
sources:
  lines: {gem: file, options: {path: in, format: text}}
targets:
  table: {gem: delta, input: lines, group: both, options: {path: out/table}}
  called: {gem: foreach_batch, input: lines, group: both, options: {function: "jobs_of_a_group:save"}}
  refused: {gem: foreach_batch, input: lines, group: both, options: {function: "jobs_of_a_group:refuse"}}
"""
JOBS = """
from pathlib import Path

HERE = Path(__file__).parent

def save(df, batch_id):
    with (HERE / "saved").open("a") as file:
        file.write(f"{batch_id} {df.count()}\\n")

def refuse(df, batch_id):
    if not (HERE / "mended").exists():
        raise ValueError("the receiver is away")
    save(df, batch_id)
"""

# It says what is kept, and fails; or stops its query while a job runs that would take long; or passes.
WAITING = """
import threading
import time

from pyspark.sql import SparkSession

def wait(df, batch_id):
    spark = df.sparkSession
    manager = spark._jsparkSession.sharedState().cacheManager()
    (HERE / "seen").write_text(f"nothing is kept: {manager.isEmpty()}")
    if (HERE / "stop").exists() and not (HERE / "mended").exists():
        (query,) = SparkSession.builder.getOrCreate().streams.active
        threading.Thread(target=stop, args=(spark.sparkContext.statusTracker(), query)).start()
        spark.range(10**15).selectExpr("sum(id % 7)").collect()
    refuse(df, batch_id)

def stop(tracker, query):
    while not tracker.getActiveJobsIds():
        time.sleep(0.01)
    (HERE / "stopped").touch()
    query.stop()
"""


@a_group
@pytest.mark.matrix
def test_one_that_fails_is_named_and_alone_gets_the_micro_batch_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, TWO)
    (tmp_path / "jobs_of_a_group.py").write_text(JOBS)
    add(tmp_path, "a.txt", range(10))

    failed = run(file, available_now=True)

    assert failed.status == "failed"
    assert [(d.code, d.node) for d in failed.diagnostics] == [("GB507", "refused")]
    assert "the receiver is away" in failed.diagnostics[0].message
    assert (tmp_path / "saved").read_text() == "0 10\n"
    assert len(table(spark, tmp_path / "out/table")) == 10

    (tmp_path / "mended").touch()
    assert run(file, available_now=True).ok
    assert (tmp_path / "saved").read_text() == "0 10\n0 10\n", "the other function wasn't called again"
    assert len(table(spark, tmp_path / "out/table")) == 10


STRICT = """
pipeline: strict
sources:
  orders: {gem: file, options: {path: in, format: json, schema: "id int, amount double"}}
transforms:
  plausible: {gem: expect, input: orders, options: {OPTIONS}}
  counted: {gem: filter, input: plausible, options: {condition: id > 0}}
targets:
  good: {gem: delta, input: plausible, group: all, options: {path: out/good}}
  positive: {gem: delta, input: counted, group: all, options: {path: out/positive}}
  all_orders: {gem: delta, input: orders, group: all, options: {path: out/all_orders}}
  called: {gem: foreach_batch, input: orders, group: all, options: {function: "jobs_of_a_group:save"}}
  unpaid: {gem: delta, input: plausible.rejected, options: {path: out/unpaid}}
"""
FAILING = "rules: {counted: {condition: id > 0, action: fail}, paid: amount > 0}"
LIMITED = "rules: {counted: id > 0, paid: amount > 0}, max_rejected: 1"


@a_group
@pytest.mark.sample(1)
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (FAILING, 'a row breaks the rule `counted`: `id > 0` is false. The row: {"id":-5,"amount":5.0}'),
        (LIMITED, "2 of 4 rows are rejected, and 1 may be"),
    ],
)
def test_what_ends_a_micro_batch_leaves_nothing_of_it_in_any_target(
    spark: SparkSession, tmp_path: Path, options: str, says: str
) -> None:
    file = write_pipeline(tmp_path, STRICT.replace("OPTIONS", options))
    (tmp_path / "jobs_of_a_group.py").write_text(JOBS)
    add_rows(tmp_path / "in", "a.json", [{"id": n, "amount": n} for n in (1, 2, 3)])
    assert run(file, available_now=True).ok
    # To `positive` and `all_orders` the row that ends it would never get, or without any rule.
    rows = [{"id": n, "amount": amount} for n, amount in ((4, 4), (-5, 5), (6, -6), (7, 7))]
    add_rows(tmp_path / "in", "b.json", rows)

    failed = run(file, available_now=True)

    (found,) = failed.diagnostics
    assert (found.code, found.node) == ("GB515", "plausible")
    assert says in found.message
    for name in ("good", "positive", "all_orders"):
        assert ids(spark, tmp_path / "out" / name) == [1, 2, 3]
    assert table(spark, tmp_path / "out/unpaid") == []
    assert (tmp_path / "saved").read_text() == "0 3\n"

    write_pipeline(tmp_path, STRICT.replace("OPTIONS", "rules: {paid: amount > 0}"))
    assert run(file, available_now=True).ok
    assert ids(spark, tmp_path / "out/good") == [-5, 1, 2, 3, 4, 7]
    assert ids(spark, tmp_path / "out/positive") == [1, 2, 3, 4, 7]
    assert ids(spark, tmp_path / "out/all_orders") == [-5, 1, 2, 3, 4, 6, 7]
    (unpaid,) = table(spark, tmp_path / "out/unpaid")
    assert json.loads(unpaid.row)["id"] == 6
    assert unpaid.origin["micro_batch"] == "1"
    assert (tmp_path / "saved").read_text() == "0 3\n1 4\n"


def kept(spark: SparkSession) -> tuple[set[int], bool]:
    """The ids of the RDDs that are kept in memory or on disk, and whether no query is told to keep its rows."""
    java: Any = spark
    manager = java._jsparkSession.sharedState().cacheManager()
    rdds = java.sparkContext._jsc.getPersistentRDDs().values()
    # Delta keeps the logs of its tables, and forgets them by itself.
    mine = {int(rdd.id()) for rdd in rdds if not str(rdd.name()).startswith("Delta Table State")}
    return mine, bool(manager.isEmpty())


def since_now(spark: SparkSession) -> Callable[[], tuple[set[int], bool]]:
    """What tells of the RDDs that are kept besides those of now, and whether no query is told to keep its rows."""
    # Rows that a test before this one has had in memory are there until Java's collector comes by.
    spark.catalog.clearCache()
    others, _ = kept(spark)

    def left_behind() -> tuple[set[int], bool]:
        rdds, nothing_cached = kept(spark)
        return rdds - others, nothing_cached

    return left_behind


@a_group
def test_what_a_group_keeps_is_let_go_of_however_its_micro_batch_ends(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    write = GroupQuery._write

    def writing(self: GroupQuery, df: DataFrame, batch_id: int) -> None:
        ended.clear()
        try:
            write(self, df, batch_id)
        finally:
            ended.set()

    monkeypatch.setattr(GroupQuery, "_write", writing)
    file = write_pipeline(tmp_path, TWO.replace(":refuse", ":wait"))
    (tmp_path / "jobs_of_a_group.py").write_text(JOBS + WAITING)
    add(tmp_path, "a.txt", range(10))
    left_behind = since_now(spark)
    assert left_behind() == (set(), True)

    assert run(file, available_now=True).status == "failed"
    assert (tmp_path / "seen").read_text() == "nothing is kept: False", "or this would prove nothing"
    assert left_behind() == (set(), True)

    # Stopped in the middle of the micro-batch: its job is cancelled, and its thread goes on to its end.
    (tmp_path / "stop").touch()
    run(file, available_now=True)
    assert (tmp_path / "stopped").exists()
    ended.wait()
    assert left_behind() == (set(), True)

    (tmp_path / "mended").touch()
    assert run(file, available_now=True).ok
    assert left_behind() == (set(), True)
    assert len(table(spark, tmp_path / "out/table")) == 10


BEHIND = """
pipeline: behind
sources:
  lines: {gem: file, options: {path: in, format: text}}
transforms:
  parsed:
    gem: from_json
    input: lines
    options: {column: value, schema: "id int not null", rejects: true}
  slow: {gem: with_columns, input: parsed, options: {columns: {u: uuid(), n: counted_behind_a_fork(id)}}}
  large: {gem: filter, input: slow, options: {condition: n >= 50}}
targets:
  all: {gem: foreach_batch, input: slow, group: g, options: {function: "jobs_behind_a_fork:meet"}}
"""
OTHERS = """
  most: {gem: foreach_batch, input: large, group: g, options: {function: "jobs_behind_a_fork:meet"}}
  broken: {gem: delta, input: parsed.rejected, options: {path: out/broken}}
"""
MEETING = """
import json
import threading
from pathlib import Path

HERE = Path(__file__).parent
PARTIES = 2
THERE = threading.Barrier(PARTIES, timeout=100)

def meet(df, batch_id):
    THERE.wait()
    kept = not df.sparkSession._jsparkSession.sharedState().cacheManager().isEmpty()
    rows = {row.id: row.u for row in df.collect()}
    name = "most" if min(rows) else "all"
    (HERE / f"{name}.json").write_text(json.dumps({"kept": kept, "rows": rows}))
"""


@a_group
def test_what_targets_share_behind_the_fork_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def counted(number: int) -> int:
        with calls.open("a") as file:
            file.write(".")
        return number

    spark.udf.register("counted_behind_a_fork", counted, "int")
    file = write_pipeline(tmp_path, BEHIND + OTHERS)
    (tmp_path / "jobs_behind_a_fork.py").write_text(MEETING)
    add(tmp_path, "a.txt", range(100))
    left_behind = since_now(spark)

    # That they meet shows that they are written side by side.
    assert run(file, available_now=True).ok

    everything, most = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("all", "most"))
    assert len(everything["rows"]) == 90
    assert most["rows"] == {key: u for key, u in everything["rows"].items() if int(key) >= 50}
    assert len(calls.read_text()) == 90
    assert everything["kept"]
    assert left_behind() == (set(), True)

    # For one target alone nothing is kept.
    (tmp_path / "alone").mkdir()
    file = write_pipeline(tmp_path / "alone", BEHIND)
    (tmp_path / "alone/jobs_behind_a_fork.py").write_text(MEETING.replace("PARTIES = 2", "PARTIES = 1"))
    add(tmp_path / "alone", "a.txt", range(100))
    assert run(file, available_now=True).ok
    alone = json.loads((tmp_path / "alone/all.json").read_text())
    assert len(alone["rows"]) == 90
    assert not alone["kept"]


@a_killed_program
@pytest.mark.programs
@pytest.mark.parametrize("targets_told", drawn(range(1, 41, 2), 1, about="kills of a group"))
def test_no_row_is_lost_or_doubled_when_a_run_is_killed(
    spark: SparkSession, tmp_path: Path, targets_told: int
) -> None:
    file = write_pipeline(tmp_path, SHOP)
    for part in range(12):
        add(tmp_path, f"{part:02}.txt", range(part * 50, part * 50 + 50))
    process = command("run", file, "--available-now")
    list(islice((event for event in events(process) if event["event"] == "progress"), targets_told))
    process.send_signal(signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL

    assert run(file, available_now=True).ok
    assert_each_row_once(spark, tmp_path, 600)


MANY = """
pipeline: many
sources:
  texts: {gem: file, options: {format: parquet, path: texts, schema: value binary, max_files_per_trigger: 1}}
transforms:
  parsed:
    gem: from_json
    input: texts
    options:
      column: value
      schema: "id bigint not null, amount double, small int, name string"
      rejects: true
      duplicate_names: reject
  plausible:
    gem: expect
    input: parsed
    options:
      rules:
        paid: amount > 0
        short: {column: name, length: {max: 80}, null: pass}
targets:
  good: {gem: delta, input: plausible, group: all, options: {path: out/good}}
  unread: {gem: delta, input: parsed.rejected, options: {path: out/unread}}
  implausible: {gem: delta, input: plausible.rejected, options: {path: out/implausible}}
"""
GOOD = """concat('{"id": ', id, ', "amount": 1.5, "small": 7, "name": "ada"}')"""
# What each tenth of a hundredth of the rows is instead, and the reason for which it is rejected.
BROKEN = (
    ("""concat('{"id": ', id, ', "amo')""", "not_json"),
    ("""concat('{"id": "', id, '", "amount": "much"}')""", "wrong_type"),
    ("""'{"id": null, "amount": 1.5}'""", "missing_field"),
    ("""concat('{"id": ', id, ', "amount": -1}')""", "paid"),
    ("""concat('{"id": ', id, ', "amount": 1, "name": "', repeat('x', 81), '"}')""", "short"),
    ("unhex('7B22FFFE227D')", "not_utf8"),
    ("repeat('[', 1100)", "not_json"),
    ("""concat('{"id": 0, "id": ', id, ', "amount": 1}')""", "duplicate_name"),
    ("""concat('{"id": ', id, ', "amount": 1, "small": 99999999999}')""", "wrong_type"),
    ("''", "no_text"),
)
ROWS = examples(10_000, 1_000_000)
FILES = examples(3, 60)
KINDS = " ".join(f"when {kind} then cast({text} as binary)" for kind, (text, _) in enumerate(BROKEN))
VALUE = f"case id % 1000 {KINDS} else cast({GOOD} as binary) end as value"


def assert_each_is_good_or_rejected(spark: SparkSession, folder: Path) -> None:
    """Each of so many rows is in one of the three tables once, rejected for its reason."""
    each = ROWS // 1000
    expected = Counter(reason for _, reason in BROKEN for _ in range(each))
    found: Counter[str] = Counter()
    for name in ("unread", "implausible"):
        rejected = spark.read.format("delta").load(str(folder / "out" / name))
        for row in rejected.groupBy("reasons").count().collect():
            assert len(row.reasons) == 1
            found[row.reasons[0].name] += row["count"]
    assert found == expected
    good = spark.read.format("delta").load(str(folder / "out/good"))
    assert good.count() == good.distinct().count() == ROWS - len(BROKEN) * each


def write_texts(spark: SparkSession, folder: Path, value: str = VALUE) -> None:
    """The rows, as files."""
    for number in range(FILES):
        part = spark.range(number * ROWS // FILES, (number + 1) * ROWS // FILES, 1, 1)
        part.selectExpr(value).write.parquet(str(folder / "texts"), mode="append")


@a_group
def test_each_of_many_rows_is_good_or_rejected_for_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, MANY)
    write_texts(spark, tmp_path)

    report = run(file, available_now=True)

    assert report.ok
    assert_each_is_good_or_rejected(spark, tmp_path)
    assert report.rows_in == ROWS
    assert sum(report.held.rejected.values()) == len(BROKEN) * ROWS // 1000


@a_killed_program
@pytest.mark.programs
def test_each_of_many_rows_is_good_or_rejected_after_kills(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, MANY)
    write_texts(spark, tmp_path)

    died = kill_often("run", file, "--available-now")

    assert run(file, available_now=True).ok, died
    assert_each_is_good_or_rejected(spark, tmp_path)


LARGE = """
pipeline: large
spark: {spark.driver.memory: 1g, spark.master: "local[2]"}
sources:
  texts: {gem: file, options: {format: parquet, path: texts, schema: "id bigint, text string"}}
transforms:
  plausible: {gem: expect, input: texts, options: {rules: {known: id % 10 != 3}}}
  briefly: {gem: select, input: plausible, options: {columns: {id: id, first: "left(text, 64)"}}}
targets:
  good: {gem: delta, input: plausible, group: all, options: {path: out/good}}
  short: {gem: delta, input: briefly, group: all, options: {path: out/short}}
  rejected: {gem: delta, input: plausible.rejected, options: {path: out/rejected}}
"""
GIGABYTE = 2**30


@pytest.mark.programs
@pytest.mark.sample(0)  # minutes: more than a gigabyte is written twice
def test_a_micro_batch_larger_than_the_memory_is_written(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, LARGE)
    each = "concat_ws('', transform(sequence(1, 16), n -> sha2(concat(id, ' ', n), 256)))"
    rows = GIGABYTE * 5 // 4 // 1024
    spark.range(0, rows, 1, 8).selectExpr("id", f"{each} as text").write.parquet(str(tmp_path / "texts"))

    running = command("run", file, "--available-now", "--log-format", "json")
    batches = [event for event in events(running) if event["event"] == "progress"]
    assert finish(running)[0] == 0

    assert {batch["rows_in"] for batch in batches if batch["rows_in"]} == {rows}, "one micro-batch"
    good = spark.read.format("delta").load(str(tmp_path / "out/good"))
    found = good.selectExpr("count(*)", "count(distinct id)", "sum(length(text))").first()
    assert found is not None
    kept = rows - len(range(3, rows, 10))
    assert tuple(found) == (kept, kept, 1024 * kept)
    assert spark.read.format("delta").load(str(tmp_path / "out/short")).count() == kept
    assert spark.read.format("delta").load(str(tmp_path / "out/rejected")).count() == rows - kept
