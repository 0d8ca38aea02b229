"""The sources `rate` and `rate_micro_batch`."""

import pytest
from pydantic import ValidationError

from gem_bundle import Column, StreamReadContext
from gem_rate.micro_batch import RateMicroBatchSource
from gem_rate.source import RateSource
from tests.gems.draining import make, micro_batches

COLUMNS = (Column("timestamp", "timestamp"), Column("value", "bigint"))


@pytest.mark.parametrize(
    ("gem", "names"),
    [
        (RateSource, ["rowsPerSecond", "rampUpTime", "numPartitions"]),
        (RateMicroBatchSource, ["rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"]),
    ],
)
def test_they_have_the_options_of_the_guide(gem, names):
    options = gem.options_type
    assert [options.spark_name(options.canonical(name)) for name in names] == names
    assert len(options.model_fields) == len(names)


@pytest.mark.parametrize(
    ("gem", "raw"),
    [
        (RateSource, {"rows_per_second": 0}),
        (RateSource, {"ramp_up_time": 5}),
        (RateSource, {"num_partitions": 0}),
        (RateMicroBatchSource, {"rows_per_batch": 0}),
        (RateMicroBatchSource, {"rows_per_batch": 1, "start_timestamp": -1}),
        (RateMicroBatchSource, {"rows_per_batch": 1, "advance_millis_per_batch": -1}),
        (RateMicroBatchSource, {}),
    ],
)
def test_values_that_are_refused(gem, raw):
    with pytest.raises(ValidationError):
        make(gem, raw)


@pytest.mark.parametrize("gem", [RateSource, RateMicroBatchSource])
def test_they_are_streams_of_two_known_columns(gem):
    assert make(gem, gem.example).infer().columns == COLUMNS
    assert not gem.semantics.batch


def test_only_rate_can_be_continuous():
    assert "continuous" in RateSource.semantics.triggers
    assert "continuous" not in RateMicroBatchSource.semantics.triggers


@pytest.mark.spark
@pytest.mark.parametrize("ramp_up", ["0 seconds", "5s", "1 minute 30 seconds", "2 minutes"])
def test_rate_takes_durations_as_they_are_written_everywhere(spark, ramp_up):
    made = make(RateSource, {"rows_per_second": 5, "ramp_up_time": ramp_up, "num_partitions": 2})
    df = made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))
    assert [Column(name, kind) for name, kind in df.dtypes] == list(COLUMNS)


@pytest.mark.spark
def test_rate_counts_from_zero(spark, tmp_path):
    made = make(RateSource, {"rows_per_second": 1000})
    df = made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))
    writer = df.writeStream.format("memory").queryName("rate_counts")
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        while not spark.table("rate_counts").count():
            query.awaitTermination(0.1)
            assert query.isActive, query.exception()
    finally:
        query.stop()
    values = sorted(row.value for row in spark.table("rate_counts").collect())
    assert values == list(range(len(values)))


@pytest.mark.spark
def test_rate_micro_batch_depends_on_the_number_of_the_micro_batch_only(spark, tmp_path):
    raw = {
        "rows_per_batch": 2,
        "num_partitions": 1,
        "start_timestamp": 1_700_000_000_000,
        "advance_millis_per_batch": 250,
    }
    made = make(RateMicroBatchSource, raw)

    def rows(folder):
        df = made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))
        return micro_batches(df.selectExpr("unix_millis(timestamp) as at", "value"), tmp_path / folder)

    first = [[(1_700_000_000_000, 0), (1_700_000_000_000, 1)]]
    assert rows("a") == first
    assert rows("b") == first
    assert rows("a") == [[(1_700_000_000_250, 2), (1_700_000_000_250, 3)]]
