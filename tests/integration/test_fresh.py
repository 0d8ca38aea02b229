"""`run --fresh`: new state where the old one ended, with no row lost or doubled, whatever happens meanwhile."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.record import read_record
from gem_bundle.errors import PipelineError
from gem_bundle.run import fresh
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

a_fresh_checkpoint = some_of("a fresh checkpoint", 2)

pytestmark = pytest.mark.spark

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FILES = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
SUMS = """
pipeline: sums
sources:
  orders:
    gem: file
    options: {path: in, format: json, schema: "customer string, amount int, at timestamp"}
transforms:
  totals:
    gem: aggregate
    input: orders
    options: {group_by: [customer], aggregates: {n: count(*)}}
targets:
  out: {gem: delta, input: totals, output_mode: complete, options: {path: out}}
"""
JOINED = """
pipeline: sums
sources:
  orders:
    gem: file
    options: {path: in, format: json, schema: "customer string, amount int, at timestamp"}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 hour}}
  once: {gem: deduplicate, input: timely, options: {columns: [customer, amount, at]}}
  paired:
    gem: join
    inputs: {left: once, right: timely}
    options: {how: inner, on: [customer, amount, at]}
targets:
  out: {gem: file, input: paired, options: {path: out, format: json}}
"""


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    yield
    spark.conf.unset(key) if before is None else spark.conf.set(key, before)


def add(folder: Path, name: str, *amounts: int) -> None:
    rows = [{"customer": "ab"[n % 2], "amount": n, "at": f"2026-01-01T00:{n:02}:00Z"} for n in amounts]
    add_rows(folder / "in", name, rows)


def written(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(str(folder / "out")).collect()
    return sorted(tuple(row) for row in rows)


@a_fresh_checkpoint
@pytest.mark.sample(1)
@pytest.mark.parametrize("rocksdb", [False, True])
def test_new_state_begins_where_the_old_ended(spark: SparkSession, tmp_path: Path, rocksdb: bool) -> None:
    file = write_pipeline(tmp_path, SUMS)
    add(tmp_path, "0.json", 0, 1, 2)
    with setting(spark, PROVIDER, ROCKSDB if rocksdb else FILES):
        run(file, available_now=True)
        add(tmp_path, "1.json", 3, 4)
        run(file, available_now=True)
        assert written(spark, tmp_path) == [("a", 3), ("b", 2)]

        # Of the same type, but a count is never null and a sum may be: Spark refuses it on the old state.
        write_pipeline(tmp_path, SUMS.replace("n: count(*)", "n: sum(amount)"))
        add(tmp_path, "2.json", 10, 11, 12)
        report = run(file, available_now=True, fresh=("out",))
        assert report.status == "finished", report.diagnostics
        assert report.rows_in == 3
        assert written(spark, tmp_path) == [("a", 22), ("b", 11)]

        add(tmp_path, "3.json", 20)
        assert run(file, available_now=True).rows_in == 1
        assert written(spark, tmp_path) == [("a", 42), ("b", 11)]
    checkpoint = read_checkpoint(str(tmp_path / "checkpoints/sums/out"))
    old = read_checkpoint(str(tmp_path / "checkpoints/sums/out.until-2"))
    assert checkpoint is not None
    assert old is not None
    assert (old.next_batch, checkpoint.next_batch, checkpoint.query) == (2, 4, old.query)
    record = read_record(str(tmp_path / "checkpoints/sums/out"))
    assert record is not None
    assert [v.first_batch for v in record.versions] == [0, 2]
    assert record.versions[1].continues == str(tmp_path / "checkpoints/sums/out.until-2")
    names = {path.name for path in (tmp_path / "checkpoints/sums").iterdir()}
    assert names == {"out", "out.until-2", ".out.lock", ".out.record.json", ".runs"}


def amounts(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row.amount for row in spark.read.json(str(folder / "out")).collect())


@a_fresh_checkpoint
@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["empty", "compose", "journal", "first rename", "second rename", "record"])
@pytest.mark.parametrize("edited", [False, True])
def test_a_kill_in_the_middle_leaves_the_old_or_the_new(
    spark: SparkSession, tmp_path: Path, moment: str, edited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files have a log by numbers of micro-batches, a join of two streams and a removal of duplicates have state."""
    file = write_pipeline(tmp_path, JOINED)
    add(tmp_path, "0.json", 0, 1, 2)
    run(file, available_now=True)
    add(tmp_path, "1.json", 3, 4)
    if edited:
        once = "columns: [customer, amount, at]}}\n  paired"
        assert once in JOINED
        write_pipeline(tmp_path, JOINED.replace(once, once.replace("customer, ", "")))

    class Killed(BaseException):
        pass

    def kill(*_: object, **__: object) -> None:
        raise Killed

    if moment in {"empty", "compose", "record"}:
        name = {"empty": "_run_empty", "compose": "_compose", "record": "write_record"}[moment]
        monkeypatch.setattr(fresh, name, kill)
    elif moment == "journal":
        monkeypatch.setattr(fresh, "open_folder", kill)
    else:
        kind = type(tmp_path)
        done = kind.rename
        at = [1 if moment == "first rename" else 2]

        def rename(self: Path, to: Path) -> Path:
            if self.name in {"out", ".out.fresh"}:
                at[0] -= 1
                if not at[0]:
                    raise Killed
            return done(self, to)

        monkeypatch.setattr(kind, "rename", rename)
    with pytest.raises(Killed):
        run(file, available_now=True, fresh=("out",))
    monkeypatch.undo()
    begun = moment in {"first rename", "second rename", "record"}
    if edited and not begun:
        with pytest.raises(PipelineError, match="refused: "):
            run(file, available_now=True)
    run(file, available_now=True, fresh=("out",) if edited and not begun else ())
    # Either state gives each new row its partner, which came with it.
    assert amounts(spark, tmp_path) == [0, 1, 2, 3, 4]
    kept = [path for path in (tmp_path / "checkpoints/sums").iterdir() if ".until-" in path.name]
    record = read_record(str(tmp_path / "checkpoints/sums/out"))
    assert record is not None
    assert len(record.versions) == 1 + len(kept)
    assert bool(kept) == (begun or edited)
    # And once more, as if nothing had been.
    add(tmp_path, "2.json", 5)
    run(file, available_now=True, fresh=("out",))
    add(tmp_path, "3.json", 6)
    run(file, available_now=True)
    assert amounts(spark, tmp_path) == [0, 1, 2, 3, 4, 5, 6]


WINDOWS = """
pipeline: sums
sources:
  orders: {gem: delta, options: {path: in, max_files_per_trigger: 1}}
  names: {gem: file, mode: batch, options: {path: names, format: json, schema: "customer string, name string"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 minute}}
  named: {gem: join, inputs: [timely, names], options: {how: left, on: [customer]}}
  counts:
    gem: aggregate
    input: named
    options:
      window: {column: at, duration: 1 minute}
      group_by: [name]
      aggregates: {n: count(*)}
  flat: {gem: select, input: counts, options: {columns: ["minute(window.start) as minute", name, n]}}
targets:
  out: {gem: delta, input: flat, options: {path: out}}
"""


@a_fresh_checkpoint
def test_a_delta_table_goes_on_at_its_version_and_the_watermark_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    def order(minute: int, second: int) -> None:
        values = f"select 'a' as customer, timestamp'2026-01-01 00:{minute:02}:{second:02}' as at"
        spark.sql(values).write.format("delta").mode("append").save(str(tmp_path / "in"))

    add_rows(tmp_path / "names", "0.json", [{"customer": "a", "name": "Ann"}])
    file = write_pipeline(tmp_path, WINDOWS)
    for minute in (0, 0, 1, 5):
        order(minute, 30)
        run(file, available_now=True)
    assert written(spark, tmp_path) == [(0, "Ann", 2), (1, "Ann", 1)]
    write_pipeline(tmp_path, WINDOWS.replace("count(*)", "sum(2)"))
    # Too late, as before; in the window that was open and whose old state is gone; and two that close it.
    for minute, second in ((0, 45), (5, 45), (9, 0), (20, 0)):
        order(minute, second)
    assert run(file, available_now=True, fresh=("out",)).rows_in == 4
    assert written(spark, tmp_path) == [(0, "Ann", 2), (1, "Ann", 1), (5, "Ann", 2), (9, "Ann", 2)]


NAME = "orders_of_a_fresh_checkpoint"


class Elsewhere(NamedTuple):
    """A stream of a table that isn't of files.

    Args:
        source: The node of the source.
        sql: Runs a statement where the table is.
    """

    source: dict[str, Any]
    sql: Callable[[str], object]


def catalog(spark: SparkSession, request: pytest.FixtureRequest) -> Elsewhere:
    """A table of the catalog."""
    spark.sql(f"drop table if exists {NAME}")
    spark.sql(f"create table {NAME} (amount int, customer string) using delta")
    request.addfinalizer(lambda: spark.sql(f"drop table {NAME}"))
    return Elsewhere({"gem": "table", "options": {"table": NAME}}, spark.sql)


def database(spark: SparkSession, request: pytest.FixtureRequest) -> Elsewhere:
    """A table of PostgreSQL, by its increasing column."""
    postgres = request.getfixturevalue("postgres")
    postgres.sql(f"create table {NAME} (amount int not null, customer text)")
    options = {**postgres.options(), "table": NAME, "increasing": "amount"}
    return Elsewhere({"gem": "jdbc", "options": options}, postgres.sql)


@a_fresh_checkpoint
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [catalog, database])
def test_another_source_goes_on_at_its_offset(
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: Callable[[SparkSession, pytest.FixtureRequest], Elsewhere],
) -> None:
    orders = kind(spark, request)
    pipeline = yaml.safe_load(SUMS)
    pipeline["sources"]["orders"] = orders.source
    text = json.dumps(pipeline)  # which is YAML too

    def insert(*amounts: int) -> None:
        orders.sql(f"insert into {NAME} values {', '.join(str((n, 'ab'[n % 2])) for n in amounts)}")

    file = write_pipeline(tmp_path, text)
    insert(0, 1, 2)
    assert run(file, available_now=True).ok
    insert(3, 4)
    assert run(file, available_now=True).ok
    assert written(spark, tmp_path) == [("a", 3), ("b", 2)]

    write_pipeline(tmp_path, text.replace("count(*)", "sum(amount)"))
    insert(10, 11, 12)
    report = run(file, available_now=True, fresh=("out",))
    assert report.ok, report.diagnostics
    assert report.rows_in == 3
    insert(20)
    assert run(file, available_now=True).rows_in == 1
    assert written(spark, tmp_path) == [("a", 42), ("b", 11)]


REJECTED = """
pipeline: sums
sources:
  orders:
    gem: file
    options: {path: in, format: json, rejects: true, schema: "customer string, amount int"}
transforms:
  totals:
    gem: aggregate
    input: orders.rejected
    options: {group_by: [row], aggregates: {n: count(*)}}
  counts: {gem: select, input: totals, options: {columns: {amount: "get_json_object(row, '$.record')", n: n}}}
targets:
  out: {gem: delta, input: counts, output_mode: complete, options: {path: out}}
  good: {gem: delta, input: orders, options: {path: good}}
"""


@a_fresh_checkpoint
def test_counts_of_what_a_source_rejects_begin_anew(spark: SparkSession, tmp_path: Path) -> None:
    """An empty run gives no rows to reject by, and yet makes the state of what is counted of them."""

    def add_amounts(name: str, *given: object) -> None:
        add_rows(tmp_path / "in", name, [{"amount": amount} for amount in given])

    def counted() -> dict[str, int]:
        return {json.loads(record)["amount"]: n for record, n in written(spark, tmp_path)}

    file = write_pipeline(tmp_path, REJECTED)
    add_amounts("0.json", "x", "x", "y", 1)
    assert run(file, available_now=True).ok
    assert counted() == {"x": 2, "y": 1}
    write_pipeline(tmp_path, REJECTED.replace("count(*)", "sum(2)"))
    add_amounts("1.json", "y", "z", 2)
    report = run(file, available_now=True, fresh=("out",))
    assert report.ok, report.diagnostics
    assert counted() == {"y": 2, "z": 2}
    add_amounts("2.json", "z")
    assert run(file, available_now=True).ok
    assert counted() == {"y": 2, "z": 4}


TWO = JOINED.replace(
    "transforms:\n",
    "  more:\n    gem: file\n"
    '    options: {path: more, format: json, schema: "customer string, amount int, at timestamp"}\n'
    "transforms:\n  all: {gem: union, inputs: [orders, more]}\n",
).replace("input: orders", "input: all")


def test_what_new_state_does_not_settle_stops_the_run_and_is_kept_when_it_is_accepted(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, TWO)
    (tmp_path / "more").mkdir()
    add(tmp_path, "0.json", 0, 1)
    assert run(file, available_now=True).ok
    # A source less, whose rows wait, another folder to write to, and other state.
    add(tmp_path, "1.json", 2, 3)
    once = JOINED.replace("columns: [customer, amount, at]", "columns: [amount, at]")
    write_pipeline(tmp_path, once.replace("path: out", "path: elsewhere"))
    left = sorted(path.name for path in (tmp_path / "checkpoints/sums").iterdir())
    with pytest.raises(PipelineError) as stopped:
        run(file, available_now=True, fresh=("out",))
    said = {d.code: d.message.partition(":")[0] for d in stopped.value.diagnostics}
    assert said == {"GB411": "skipped", "GB431": "mixed"}
    assert sorted(path.name for path in (tmp_path / "checkpoints/sums").iterdir()) == left
    accept = (("GB411", "more"), ("GB431", ""))
    report = run(file, available_now=True, fresh=("out",), accept=accept)
    assert (report.ok, report.rows_in) == (True, 4), report.diagnostics
    record = read_record(str(tmp_path / "checkpoints/sums/out"))
    assert record is not None
    assert record.newest is not None
    assert record.newest.continues
    assert sorted((one.code, one.node) for one in record.newest.accepted) == [
        ("GB411", "more"),
        ("GB431", "out"),
    ]


def test_of_a_pipeline_that_is_no_stream_it_is_refused(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SUMS.replace("pipeline: sums", "pipeline: sums\nmode: batch"))
    assert "has no checkpoint that it could continue from" in refused(file, fresh=("out",))


def refused(file: Path, **options: Any) -> str:
    with pytest.raises(PipelineError) as caught:
        run(file, available_now=True, **options)
    assert {d.code for d in caught.value.diagnostics} == {"GB407"}
    assert all(d.line for d in caught.value.diagnostics)
    return "\n".join(d.message for d in caught.value.diagnostics)


def test_what_can_not_be_done_is_refused_before_anything_happens(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SUMS)
    add(tmp_path, "0.json", 0)
    assert "no micro-batch of it is done yet" in refused(file, fresh=("out",))
    run(file, available_now=True)
    commit = tmp_path / "checkpoints/sums/out/commits/0"
    commit.rename(commit.with_name("keep"))
    assert "no micro-batch of it is done yet" in refused(file, fresh=("out",))
    add(tmp_path, "1.json", 1)
    run(file, available_now=True)
    begun = commit.with_name("1")
    begun.rename(commit.with_name("keep"))
    assert "micro-batch 1 was begun and isn't done" in refused(file, fresh=("out",))
    commit.with_name("keep").rename(begun)
    before = sorted(path.name for path in (tmp_path / "checkpoints/sums").iterdir())

    elsewhere = SUMS.replace("path: in", "path: elsewhere")
    (tmp_path / "elsewhere").mkdir()
    write_pipeline(tmp_path, elsewhere)
    said = refused(file, fresh=("out",))
    assert f"are of {tmp_path}/in, and it reads {tmp_path}/elsewhere now" in said

    other = SUMS.replace(
        'gem: file\n    options: {path: in, format: json, schema: "customer string, amount int, at timestamp"}',
        "gem: rate",
    ).replace("[customer]", "[value]")
    write_pipeline(tmp_path, other)
    said = refused(file, fresh=("out",))
    assert "are of `file`, and it is `rate` now" in said

    two = SUMS + "  screen: {gem: memory, input: orders}\n"
    write_pipeline(tmp_path, two)
    assert "has no checkpoint that it could continue from" in refused(file, fresh=("screen",))
    assert "it isn't run now" in refused(file, fresh=("out",), targets=("screen",))
    assert sorted(path.name for path in (tmp_path / "checkpoints/sums").iterdir()) == before
    shutil.rmtree(tmp_path / "checkpoints")
