"""The source and the target `delta`, over real tables."""

import pytest
from pydantic import ValidationError
from pyspark.errors import PySparkException

from gem_bundle import Column, Facts, GemError, ReadContext, StreamReadContext, WriteContext
from gem_delta.source import DeltaSource
from gem_delta.target import DeltaTarget
from tests.gems.draining import drain, forget_last_commit, make, micro_batches, run
from tests.samples import drawn, some_of

delta_tables = some_of("what a Delta table gets", 3)

READING = [
    *("path", "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger"),
    *("readChangeFeed", "endingVersion", "endingTimestamp", "versionAsOf", "timestampAsOf"),
    *("skipChangeCommits", "ignoreDeletes", "ignoreChanges", "failOnDataLoss", "excludeRegex"),
    *("schemaTrackingLocation", "streamingSourceTrackingId", "allowSourceColumnRename"),
    *("allowSourceColumnDrop", "allowSourceColumnTypeChange"),
]
WRITING = [
    *("path", "mergeSchema", "overwriteSchema", "replaceWhere", "partitionOverwriteMode"),
    *("optimizeWrite", "maxRecordsPerFile", "compression", "userMetadata"),
]


def source(folder=None, **raw):
    return make(DeltaSource, raw, folder)


def target(folder=None, **raw):
    return make(DeltaTarget, raw, folder)


def findings(made, *, streaming):
    made.streaming = streaming
    return [(f.code, f.severity, f.option) for f in made.check()]


@pytest.mark.parametrize("name", READING)
def test_the_source_has_deltas_options_in_their_spelling(name):
    field = DeltaSource.options_type.canonical(name)
    assert field is not None
    assert DeltaSource.options_type.spark_name(field) == name


@pytest.mark.parametrize("name", WRITING)
def test_the_target_has_deltas_options_in_their_spelling(name):
    field = DeltaTarget.options_type.canonical(name)
    assert field is not None
    assert DeltaTarget.options_type.spark_name(field) == name


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "give `path` or `table`, one of the two"),
        ({"path": "t", "table": "t"}, "give `path` or `table`, one of the two"),
        (
            {"starting_version": 1, "starting_timestamp": "2024-01-31"},
            "`starting_version` or `starting_timestamp`",
        ),
        ({"version_as_of": 1, "timestamp_as_of": "2024-01-31"}, "`version_as_of` or `timestamp_as_of`"),
        (
            {"read_change_feed": True, "ending_version": 1, "ending_timestamp": "2024-01-31"},
            "`ending_version` or `ending_timestamp`",
        ),
        ({"ending_version": 1}, "add `read_change_feed: true`"),
        (
            {"version_as_of": 1, "read_change_feed": True},
            "`version_as_of` can't be used with `read_change_feed`",
        ),
        ({"read_change_feed": True, "starting_version": 2, "ending_version": 1}, "lies before"),
    ],
)
def test_options_that_do_not_go_together(raw, message):
    raw = raw if not raw or "path" in raw else {"path": "t", **raw}
    with pytest.raises(ValidationError) as caught:
        source(**raw)
    assert message in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("starting_version", -1),
        ("starting_version", "first"),
        ("starting_timestamp", "yesterday"),
        ("max_bytes_per_trigger", "much"),
        ("table", "a b"),
        ("allow_source_column_drop", "sometimes"),
    ],
)
def test_values_that_are_refused(name, value):
    raw = {name: value} if name == "table" else {"path": "t", name: value}
    with pytest.raises(ValidationError) as caught:
        source(**raw)
    assert {error["loc"][0] for error in caught.value.errors()} == {name}


@pytest.mark.parametrize(
    ("raw", "stream", "batch"),
    [
        ({}, [], []),
        ({"starting_version": "latest"}, [], [("GB207", "error", "starting_version")]),
        ({"version_as_of": 1}, [("GB312", "error", "version_as_of")], []),
        ({"timestamp_as_of": "2024-01-31"}, [("GB312", "error", "timestamp_as_of")], []),
        ({"read_change_feed": True}, [], [("GB206", "error", "read_change_feed")]),
        ({"read_change_feed": True, "starting_version": 0}, [], []),
        (
            {"read_change_feed": True, "starting_version": "latest"},
            [],
            [("GB312", "error", "starting_version")],
        ),
        (
            {"read_change_feed": True, "starting_version": 0, "ending_version": 3},
            [("GB312", "error", "ending_version")],
            [],
        ),
        ({"skip_change_commits": True}, [], [("GB207", "warning", "skip_change_commits")]),
    ],
)
def test_options_of_a_batch_and_of_a_stream_are_told_apart(raw, stream, batch):
    made = source(path="t", **raw)
    assert findings(made, streaming=True) == stream
    assert findings(made, streaming=False) == batch


def test_it_brings_its_jar_and_its_settings():
    for made in (source(path="t"), target(path="t")):
        assert list(made.jars()) == ["io.delta:delta-spark_{spark_minor}_{scala}:4.4.0"]
        assert made.session_settings() == {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }


def test_the_preflight_looks_for_a_log_at_a_local_path(tmp_path):
    made = source(tmp_path, path="t")
    assert [(f.code, f.option) for f in made.connect()] == [("GB505", "path")]
    (tmp_path / "t").mkdir()
    assert [(f.code, f.option) for f in made.connect()] == [("GB505", "path")]
    (tmp_path / "t" / "_delta_log").mkdir()
    assert list(made.connect()) == []
    assert list(source(path="s3a://nowhere/t").connect()) == []
    assert list(source(table="nowhere").connect()) == []


def test_a_preview_begins_where_there_are_rows():
    made = source(
        path="/t", starting_version="latest", max_bytes_per_trigger="1g", schema_tracking_location="/c/s"
    )
    assert made.for_preview().options.to_spark() == {"maxFilesPerTrigger": "1"}
    feed = source(path="/t", starting_version="latest", read_change_feed=True)
    assert feed.for_preview().options.to_spark() == {
        "startingVersion": "0",
        "maxFilesPerTrigger": "1",
        "readChangeFeed": "true",
    }
    assert made.options.starting_version == "latest"


def test_the_target_says_what_it_can_before_a_run():
    facts = Facts(streaming=True, columns=(Column("day", "date"), Column("a", "int")))
    made = target(path="t", partition_by=["Day"], replace_where="a > 1")
    assert [(f.code, f.severity, f.option) for f in made.check(facts)] == [
        ("GB207", "warning", "replace_where")
    ]
    wrong = target(path="t", partition_by=["dya"])
    assert [(f.code, f.hint) for f in wrong.check(facts)] == [("GB210", "Did you mean `day`?")]
    none_left = target(path="t", partition_by=["a", "day"])
    assert [(f.code, f.option) for f in none_left.check(facts)] == [("GB205", "partition_by")]


NAMED = (Column("id", "int"), Column("name", "string"))
UNTAKEN = {
    "id =": "GB214",
    "cast(id as bigintt) = 2": "GB214",
    "id": "GB213",
    "count(*) > 1": "GB212",
    "row_number() over (order by id) = 1": "GB212",
    "explode(array(true))": "GB212",
    "*": "GB212",
    "rand() > 0.5": "GB212",
    "id in (select 1)": "GB212",
    "nothing = 1": "GB210",
    "t.id = 2": "GB210",
}


@pytest.mark.parametrize(("condition", "code"), UNTAKEN.items())
def test_what_is_replaced_is_a_condition_over_the_columns_of_the_table(tmp_path, condition, code):
    made = target(tmp_path, path="t", replace_where=condition)
    commit(tmp_path / "t", NAMED)
    made.discover()
    (found,) = made.check(Facts(streaming=False, columns=NAMED))
    assert (found.code, found.severity, found.option) == (code, "error", "replace_where")


@pytest.mark.parametrize(
    ("columns", "condition", "found"),
    [
        (NAMED, "id = 2 and name like 'b%'", []),
        (None, "id = 2 and day >= '2024-01-31'", []),
        # The table may have it: nobody knows before `--connect` looks.
        (NAMED, "nmae = 'b'", [("GB210", "warning", "Did you mean `name`?")]),
        (NAMED, "ID = 2 and current_date() > date'2024-01-31'", []),
    ],
)
def test_a_table_of_which_nothing_is_known_may_have_more_columns(columns, condition, found):
    made = target(path="t", replace_where=condition)
    told = made.check(Facts(streaming=False, columns=columns))
    assert [(f.code, f.severity, f.hint) for f in told] == found
    added = target(path="t", replace_where=condition, save_mode="append")
    assert [f.code for f in added.check(Facts(streaming=False, columns=columns))][-1] == "GB207"


def test_rows_that_lack_a_column_of_the_condition_are_warned_of(tmp_path):
    made = target(tmp_path, path="t", replace_where="day >= '2024-01-31'")
    commit(tmp_path / "t", (*NAMED, Column("day", "date")))
    made.discover()
    (found,) = made.check(Facts(streaming=False, columns=NAMED))
    assert (found.code, found.severity) == ("GB210", "warning")
    assert "the rows have no column `day`" in found.message


@delta_tables
@pytest.mark.spark
def test_delta_takes_none_of_the_conditions_that_a_check_refuses(spark, tmp_path):
    write(spark, tmp_path, [(1, "a"), (2, "b")])
    df = spark.range(1).selectExpr("2 as id", "'b' as name")
    for condition in drawn(list(UNTAKEN), 3):
        with pytest.raises(PySparkException):
            replacing(df, tmp_path, condition)
    with pytest.raises(PySparkException, match="does not conform"):
        replacing(df, tmp_path, "id = 1")
    assert rows(spark, tmp_path) == [(1, "a"), (2, "b")]


def replacing(df, folder, condition):
    context = WriteContext(node="t", output_mode="append")
    target(folder, path="t", replace_where=condition).write(df, context)


def commit(table, columns):
    """The log of a new table."""
    import json

    fields = [
        {"name": c.name, "type": "integer" if c.type == "int" else c.type, "nullable": True, "metadata": {}}
        for c in columns
    ]
    action = {"metaData": {"id": "t", "schemaString": json.dumps({"type": "struct", "fields": fields})}}
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / f"{0:020}.json").write_text(json.dumps(action) + "\n")


def test_a_save_mode_must_not_contradict_the_output_mode():
    with pytest.raises(GemError) as caught:
        target(path="t", save_mode="ignore")._save_mode(WriteContext(node="t", output_mode="complete"))
    assert (caught.value.code, caught.value.option) == ("GB207", "save_mode")


def batch(spark, made):
    return made.read(ReadContext(node="x", spark=spark))


def stream(spark, made):
    return made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))


def rows(spark, folder, **raw):
    found = batch(spark, source(folder, path="t", **raw)).select("id", "name").collect()
    return sorted(map(tuple, found))


def write(spark, folder, values, mode="append", **raw):
    raw = raw if "table" in raw else {"path": "t", **raw}
    df = spark.createDataFrame(values, "id int, name string")
    target(folder, **raw).write(df, WriteContext(node="t", output_mode=mode))


@pytest.fixture
def table(spark):
    """The name of a table that doesn't exist, and is dropped afterwards."""
    import uuid

    name = f"t_{uuid.uuid4().hex}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


@delta_tables
@pytest.mark.spark
def test_a_batch_follows_the_output_mode_or_the_save_mode(spark, tmp_path):
    write(spark, tmp_path, [(1, "a")], partition_by="name")
    write(spark, tmp_path, [(2, "b")])
    assert rows(spark, tmp_path) == [(1, "a"), (2, "b")]
    write(spark, tmp_path, [(3, "b")], replace_where="name = 'b'")
    assert rows(spark, tmp_path) == [(1, "a"), (3, "b")]
    write(spark, tmp_path, [(4, "c")], mode="complete", user_metadata="all of it")
    assert rows(spark, tmp_path) == [(4, "c")]
    write(spark, tmp_path, [(5, "d")], save_mode="ignore")
    with pytest.raises(GemError, match="exists already") as caught:
        write(spark, tmp_path, [(6, "e")], save_mode="error")
    assert (caught.value.code, caught.value.option) == ("GB511", "save_mode")
    assert rows(spark, tmp_path) == [(4, "c")]
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/t` LIMIT 1").first()
    assert history["userMetadata"] == "all of it"
    # One version after the other is still there.
    assert rows(spark, tmp_path, version_as_of=1) == [(1, "a"), (2, "b")]


@delta_tables
@pytest.mark.spark
def test_a_table_of_the_catalog_by_its_name(spark, tmp_path, table):
    write(spark, tmp_path, [(1, "a")], table=table)
    write(spark, tmp_path, [(2, "b")], table=table)
    made = source(table=f"spark_catalog.default.{table}")
    assert sorted(map(tuple, batch(spark, made).collect())) == [(1, "a"), (2, "b")]
    assert sorted(drain(stream(spark, made), tmp_path / "checkpoint")) == [(1, "a"), (2, "b")]
    with pytest.raises(GemError) as caught:
        write(spark, tmp_path, [(3, "c")], table=table, save_mode="error")
    assert caught.value.code == "GB511"


@pytest.mark.spark
@pytest.mark.parametrize("read", [batch, stream])
def test_a_missing_table_is_named(spark, tmp_path, monkeypatch, read):
    (tmp_path / "plain").mkdir()
    for variable in (None, "HADOOP_CONF_DIR"):
        if variable:
            # Then only Spark knows where the path lies, and says so itself.
            monkeypatch.setenv(variable, str(tmp_path))
        for path in ("nowhere", "plain"):
            with pytest.raises(GemError, match="there is no Delta table at") as caught:
                read(spark, source(tmp_path, path=path))
            assert (caught.value.code, caught.value.option) == ("GB505", "path")
    for name in ("nowhere", "nowhere.t"):
        with pytest.raises(GemError, match=f"there is no table `{name}`") as caught:
            read(spark, source(table=name))
        assert (caught.value.code, caught.value.option) == ("GB510", "table")


@pytest.mark.spark
def test_a_missing_schema_is_named(spark, tmp_path):
    with pytest.raises(GemError, match="no schema for the table") as caught:
        write(spark, tmp_path, [(1, "a")], table="nowhere.t")
    assert (caught.value.code, caught.value.option) == ("GB510", "table")
    write(spark, tmp_path, [(1, "a")])
    with pytest.raises(GemError, match="no schema for the table"):
        run(target(table="nowhere.t"), stream(spark, source(tmp_path, path="t")), tmp_path / "checkpoint")


@delta_tables
@pytest.mark.spark
def test_a_stream_reads_what_is_there_then_what_comes(spark, tmp_path):
    write(spark, tmp_path, [(1, "a")])
    write(spark, tmp_path, [(2, "b")])
    made = source(tmp_path, path="t", max_files_per_trigger=1)
    assert [len(found) for found in micro_batches(stream(spark, made), tmp_path / "checkpoint")] == [1, 1]
    latest = stream(spark, source(tmp_path, path="t", starting_version="latest"))
    late = []
    writer = latest.writeStream.foreachBatch(lambda df, batch_id: late.extend(map(tuple, df.collect())))
    query = writer.option("checkpointLocation", str(tmp_path / "latest")).start()
    try:
        query.processAllAvailable()
        write(spark, tmp_path, [(3, "c")])
        query.processAllAvailable()
    finally:
        query.stop()
    assert late == [(3, "c")]
    assert drain(stream(spark, made), tmp_path / "checkpoint") == [(3, "c")]
    second = source(tmp_path, path="t", starting_version=1)
    assert sorted(drain(stream(spark, second), tmp_path / "second")) == [(2, "b"), (3, "c")]


@delta_tables
@pytest.mark.spark
def test_what_a_stream_does_with_changes(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    where = f"delta.`{tmp_path}/t`"
    spark.sql(
        f"CREATE TABLE {where} (id int, name string) USING delta TBLPROPERTIES (delta.enableChangeDataFeed=true)"
    )
    write(spark, tmp_path, [(1, "a"), (2, "b")])
    spark.sql(f"DELETE FROM {where} WHERE id = 1")
    write(spark, tmp_path, [(3, "c")])

    def read(name, **raw):
        made = source(tmp_path, path="t", starting_version=0, **raw)
        return sorted(drain(stream(spark, made), tmp_path / name))

    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE"):
        read("refused")
    assert read("skipped", skip_change_commits=True) == [(1, "a"), (2, "b"), (3, "c")]
    feed = read("feed", read_change_feed=True)
    assert [row[:4] for row in feed] == [
        (1, "a", "delete", 2),
        (1, "a", "insert", 1),
        (2, "b", "insert", 1),
        (3, "c", "insert", 3),
    ]
    part = source(tmp_path, path="t", read_change_feed=True, starting_version=2, ending_version=2)
    assert [row[:4] for row in map(tuple, batch(spark, part).collect())] == [(1, "a", "delete", 2)]


@delta_tables
@pytest.mark.spark
@pytest.mark.parametrize("by", ["path", "table"])
def test_each_row_is_there_once_also_when_a_micro_batch_is_run_again(spark, tmp_path, by, table):
    write(spark, tmp_path, [(1, "a")])
    write(spark, tmp_path, [(2, "b")])
    made = target(tmp_path, **({"path": "out"} if by == "path" else {"table": table}), partition_by=["name"])
    there = source(tmp_path, **({"path": "out"} if by == "path" else {"table": table}))

    def once():
        df = stream(spark, source(tmp_path, path="t", max_files_per_trigger=1))
        query = run(made, df, tmp_path / "checkpoint")
        ran = [progress.batchId for progress in query.recentProgress]
        return ran, sorted(map(tuple, batch(spark, there).collect()))

    assert once() == ([0, 1], [(1, "a"), (2, "b")])
    forget_last_commit(tmp_path / "checkpoint")
    assert once() == ([1], [(1, "a"), (2, "b")])
    write(spark, tmp_path, [(3, "c")])
    assert once() == ([2], [(1, "a"), (2, "b"), (3, "c")])
    detail = "out" if by == "path" else table
    name = f"delta.`{tmp_path}/out`" if by == "path" else detail
    assert spark.sql(f"DESCRIBE DETAIL {name}").first()["partitionColumns"] == ["name"]


@delta_tables
@pytest.mark.spark
def test_the_sink_takes_the_output_modes_that_are_declared(spark, tmp_path):
    from pyspark.errors import AnalysisException

    write(spark, tmp_path, [(1, "a"), (2, "a"), (3, "b")])

    def counts():
        return stream(spark, source(tmp_path, path="t")).groupBy("name").count()

    query = run(target(tmp_path, path="counts"), counts(), tmp_path / "complete", "complete")
    assert [p.sink.numOutputRows for p in query.recentProgress if p.numInputRows] == [-1]
    write(spark, tmp_path, [(4, "b")])
    run(target(tmp_path, path="counts"), counts(), tmp_path / "complete", "complete")
    found = batch(spark, source(tmp_path, path="counts")).collect()
    assert sorted(map(tuple, found)) == [("a", 2), ("b", 2)]
    with pytest.raises(AnalysisException, match="does not support Update"):
        run(target(tmp_path, path="counts"), counts(), tmp_path / "update", "update")
    assert DeltaTarget.semantics.output_modes == {"append", "complete"}
    assert not DeltaTarget.semantics.counts_rows


@delta_tables
@pytest.mark.spark
def test_new_columns_need_to_be_asked_for(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    write(spark, tmp_path, [(1, "a")])
    run(target(tmp_path, path="out"), stream(spark, source(tmp_path, path="t")), tmp_path / "checkpoint")
    wider = stream(spark, source(tmp_path, path="t")).selectExpr("*", "id * 2 as twice")
    with pytest.raises(StreamingQueryException, match="DELTA_METADATA_MISMATCH"):
        run(target(tmp_path, path="out"), wider, tmp_path / "other")
    run(target(tmp_path, path="out", merge_schema=True), wider, tmp_path / "other")
    found = batch(spark, source(tmp_path, path="out")).select("id", "name", "twice").collect()
    assert sorted(map(tuple, found), key=str) == [(1, "a", 2), (1, "a", None)]
