"""The targets `console`, `memory` and `noop`."""

import pytest
from pydantic import ValidationError

from gem_bundle import Target, WriteContext
from gem_debug.console import ConsoleTarget
from gem_debug.memory import MemoryTarget
from gem_debug.noop import NoopTarget
from tests.gems.draining import make, run

TARGETS = [ConsoleTarget, MemoryTarget, NoopTarget]
SPARK_NAMES = {ConsoleTarget: "ConsoleTable", MemoryTarget: "MemorySink", NoopTarget: "NoopTable"}


@pytest.fixture
def words(spark, tmp_path):
    """A stream of two words, one of them twice."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("tick\ntock\ntick\n")
    return spark.readStream.name("words").text(str(tmp_path / "in"))


@pytest.mark.parametrize(("name", "value"), [("num_rows", 0), ("truncate", 10), ("rows", 5)])
def test_values_that_are_refused(name, value):
    with pytest.raises(ValidationError) as caught:
        ConsoleTarget.options_type.model_validate({name: value})
    assert caught.value.errors()[0]["loc"] == (name,)


def test_sparks_spelling_is_taken():
    made = make(ConsoleTarget, {"numRows": 5, "truncate": False})
    assert made.options.to_spark() == {"numRows": "5", "truncate": "false"}


@pytest.mark.parametrize("gem", TARGETS)
def test_nothing_is_promised(gem):
    assert issubclass(gem, Target)
    assert gem.semantics.delivery == "none"
    assert gem.semantics.condition


@pytest.mark.spark
@pytest.mark.parametrize(
    ("gem", "mode"), [(gem, mode) for gem in TARGETS for mode in sorted(gem.semantics.output_modes)]
)
def test_a_stream_in_every_output_mode_that_is_declared(words, tmp_path, gem, mode):
    df = words if mode == "append" else words.groupBy("value").count()
    query = run(make(gem, {}), df, tmp_path / "checkpoint", mode, name=f"q_{mode}")
    (progress,) = [found for found in query.recentProgress if found.numInputRows]
    assert SPARK_NAMES[gem] in progress.sink.description
    assert gem.semantics.counts_rows
    assert progress.sink.numOutputRows == (3 if mode == "append" else 2)


def test_memory_takes_the_output_modes_of_the_guide():
    assert MemoryTarget.semantics.output_modes == {"append", "complete"}


@pytest.mark.spark
def test_a_stream_is_a_table_in_memory(spark, words, tmp_path):
    run(make(MemoryTarget, {}), words, tmp_path / "checkpoint", name="p_seen")
    assert sorted(row.value for row in spark.table("p_seen").collect()) == ["tick", "tick", "tock"]


@pytest.mark.spark
@pytest.mark.parametrize("gem", TARGETS)
def test_which_can_go_on_from_a_checkpoint(words, tmp_path, gem):
    from pyspark.errors import AnalysisException

    run(make(gem, {}), words, tmp_path / "checkpoint")
    if gem.semantics.restartable:
        query = run(make(gem, {}), words, tmp_path / "checkpoint")
        assert [progress for progress in query.recentProgress if progress.numInputRows] == []
    else:
        with pytest.raises(AnalysisException, match="does not support recovering from checkpoint"):
            run(make(gem, {}), words, tmp_path / "checkpoint")


@pytest.mark.spark
@pytest.mark.parametrize("gem", TARGETS)
def test_the_continuous_trigger_is_taken(spark, tmp_path, gem):
    assert "continuous" in gem.semantics.triggers
    df = spark.readStream.name("n").format("rate").options(rowsPerSecond=100, numPartitions=1).load()
    name = f"continuous_{gem.__name__}"
    writer = make(gem, {}).write_stream(df, WriteContext(node="t", query_name=name))
    writer = writer.queryName(name).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(continuous="100 milliseconds").start()
    try:
        # An epoch that ended is in the commit log; a query that can't run fails before.
        commits = tmp_path / "commits"
        while not (commits.is_dir() and any(path.name.isdigit() for path in commits.iterdir())):
            query.awaitTermination(0.1)
            assert query.isActive
    finally:
        query.stop()


@pytest.mark.spark
def test_a_batch_is_shown(spark, capsys):
    df = spark.createDataFrame([("x" * 30,), ("second",)], "word string")
    context = WriteContext(node="t", pipeline="p")
    make(ConsoleTarget, {"num_rows": 1}).write(df, context)
    shown = capsys.readouterr().out
    assert "x" * 17 + "..." in shown
    assert "only showing top 1 row" in shown
    make(ConsoleTarget, {"truncate": False}).write(df, context)
    shown = capsys.readouterr().out
    assert "x" * 30 in shown
    assert "second" in shown


@pytest.mark.spark
def test_a_batch_is_a_view_that_the_next_one_replaces(spark, tmp_path):
    made = make(MemoryTarget, {})
    spark.range(3).write.parquet(str(tmp_path / "in"))
    made.write(spark.read.parquet(str(tmp_path / "in")), WriteContext(node="seen", pipeline="numbers"))
    # It holds the rows, not the way to get them.
    (tmp_path / "in").rename(tmp_path / "gone")
    assert sorted(row.id for row in spark.table("numbers_seen").collect()) == [0, 1, 2]
    made.write(spark.range(1), WriteContext(node="seen", pipeline="numbers"))
    assert spark.table("numbers_seen").count() == 1
    spark.catalog.dropTempView("numbers_seen")


@pytest.mark.spark
def test_a_batch_is_computed_and_dropped(spark):
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    seen = Observation()
    make(NoopTarget, {}).write(
        spark.range(7).observe(seen, count(lit(1)).alias("rows")), WriteContext(node="t")
    )
    assert seen.get["rows"] == 7
