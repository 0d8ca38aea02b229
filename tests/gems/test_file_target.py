"""The target `file`: options, what is said before a run, and what lies in the folder afterwards."""

import pytest
from pydantic import ValidationError

from gem_bundle import ALL_OUTPUT_MODES, Column, Facts, GemError, ReadContext, StreamReadContext, WriteContext
from gem_file.source import FileSource
from gem_file.target import FileTarget
from tests.gems.draining import forget_last_commit, make, run


def target(folder=None, **raw):
    return make(FileTarget, raw, folder)


def findings(made, facts):
    return [(f.code, f.severity, f.option) for f in made.check(facts)]


def facts(schema, streaming=True):
    columns = tuple(Column(*part.split(" ", 1)) for part in schema.split("; "))
    return Facts(streaming=streaming, columns=columns)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"format": "parquet", "sep": ";"}, "`sep` is for csv, and the format is parquet"),
        ({"format": "csv", "ignore_null_fields": True}, "`ignore_null_fields` is for json"),
        ({"format": "json", "compression": "zstd"}, "`compression: zstd` is none of json's: `none`"),
        ({"format": "avro", "compression": "gzip"}, "`compression: gzip` is none of avro's"),
    ],
)
def test_options_that_do_not_go_together(raw, message):
    with pytest.raises(ValidationError) as caught:
        target(path="out", **raw)
    assert message in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("form", "codec"),
    [
        ("csv", "gzip"),
        ("json", "org.apache.hadoop.io.compress.BZip2Codec"),
        ("parquet", "ZSTD"),
        ("orc", "zlib"),
    ],
)
def test_codecs_of_the_formats_are_taken(form, codec):
    assert target(path="out", format=form, compression=codec).options.to_spark() == {"compression": codec}


def test_only_what_is_given_goes_to_spark_in_its_own_terms():
    options = target(
        path="out", format="csv", retention="30 days", quoteAll=True, partition_by="a, b", save_mode="append"
    ).options
    assert options.to_spark() == {"retention": "2592000000ms", "quoteAll": "true"}
    assert options.partition_by == ["a", "b"]


def test_columns_of_folders_must_exist():
    made = target(path="out", format="json", partition_by=["DAY", "hour"])
    assert findings(made, facts("day date; a int")) == [("GB210", "error", "partition_by")]
    assert findings(made, facts("day date; hour int; a int")) == []
    assert findings(made, Facts(streaming=True)) == []
    assert findings(made, facts("day date; hour int", streaming=False)) == [
        ("GB205", "error", "partition_by")
    ]


@pytest.mark.parametrize(
    ("form", "schema", "fits"),
    [
        ("text", "a string", True),
        ("text", "a int", False),
        ("text", "a string; b string", False),
        ("text", "a string; day date", True),
        ("csv", "a int; window struct<start: timestamp, end: timestamp>", False),
        ("csv", "a array<int>", False),
        ("csv", "a int; b timestamp", True),
        ("json", "a struct<x: int>", True),
        ("xml", "a struct<x: int>; _b string; c.d int; größe int; a-b int", True),
        ("xml", "a/b int", False),
        ("xml", "1a int", False),
        ("xml", "_1 int", False),
        ("xml", "a interval hour", False),
    ],
)
def test_a_format_that_can_not_hold_a_column_is_named(form, schema, fits):
    more = {"row_tag": "row"} if form == "xml" else {}
    made = target(path="out", format=form, partition_by=["day"] if "day" in schema else [], **more)
    assert findings(made, facts(schema)) == ([] if fits else [("GB205", "error", "format")])


def test_options_without_effect_are_warnings():
    made = target(path="out", format="json", save_mode="overwrite", retention="1 day")
    assert findings(made, facts("a int")) == [("GB207", "warning", "save_mode")]
    assert findings(made, facts("a int", streaming=False)) == [("GB207", "warning", "retention")]


def test_a_save_mode_must_not_contradict_the_output_mode(tmp_path):
    made = target(tmp_path, path="out", format="json", save_mode="append")
    with pytest.raises(GemError) as caught:
        made._save_mode(WriteContext(node="t", output_mode="complete"))
    assert (caught.value.code, caught.value.option) == ("GB207", "save_mode")


def write(spark, made, rows, mode="append"):
    made.write(spark.createDataFrame(rows, "id int, name string"), WriteContext(node="t", output_mode=mode))


def read(spark, folder, form="json", schema="id int, name string"):
    made = make(FileSource, {"format": form, "path": "out", "schema": schema}, folder)
    return sorted(map(tuple, made.read(ReadContext(node="x", spark=spark)).collect()))


def numbers(spark, folder):
    """A stream of files with numbers; each file is a micro-batch."""
    raw = {"format": "json", "path": "in", "schema": "id int, name string", "max_files_per_trigger": 1}
    return make(FileSource, raw, folder).read_stream(StreamReadContext(node="n", spark=spark, name="n"))


def put(folder, number):
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{number}.json").write_text(f'{{"id": {number}, "name": "n{number % 2}"}}\n')


@pytest.mark.spark
def test_a_batch_follows_the_output_mode_or_the_save_mode(spark, tmp_path):
    made = target(tmp_path, path="out", format="json")
    write(spark, made, [(1, "a")])
    write(spark, made, [(2, "b")])
    assert read(spark, tmp_path) == [(1, "a"), (2, "b")]
    write(spark, made, [(3, "c")], mode="complete")
    assert read(spark, tmp_path) == [(3, "c")]
    write(spark, target(tmp_path, path="out", format="json", save_mode="ignore"), [(4, "d")])
    assert read(spark, tmp_path) == [(3, "c")]
    write(spark, target(tmp_path, path="out", format="json", save_mode="overwrite"), [(5, "e")])
    assert read(spark, tmp_path) == [(5, "e")]
    with pytest.raises(GemError, match="exists already") as caught:
        write(spark, target(tmp_path, path="out", format="json", save_mode="error"), [(6, "f")])
    assert (caught.value.code, caught.value.option) == ("GB511", "save_mode")
    assert read(spark, tmp_path) == [(5, "e")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("column", "fits"),
    [("a.b", True), ("größe", True), ("a-b", True), ("_x", True), ("a b", False), ("_1", False)],
)
def test_names_that_xml_has_are_those_that_spark_writes(spark, tmp_path, column, fits):
    made = target(tmp_path, path="out", format="xml", row_tag="row", root_tag="rows")
    assert (findings(made, Facts(streaming=False, columns=(Column(column, "int"),))) == []) is fits
    df = spark.createDataFrame([(1,)], [column])
    if fits:
        made.write(df, WriteContext(node="t", output_mode="append"))
        raw = {"format": "xml", "path": "out", "row_tag": "row", "schema": f"`{column}` int"}
        found = make(FileSource, raw, tmp_path).read(ReadContext(node="x", spark=spark))
        assert [tuple(row) for row in found.collect()] == [(1,)]
    else:
        with pytest.raises(Exception, match=r"Illegal (first )?name character"):
            made.write(df, WriteContext(node="t", output_mode="append"))


@pytest.mark.spark
def test_a_batch_writes_as_the_options_say(spark, tmp_path):
    made = target(
        tmp_path, path="out", format="csv", header=True, sep=";", compression="gzip", partition_by=["name"]
    )
    write(spark, made, [(1, "a"), (2, "b")])
    assert sorted(path.name for path in (tmp_path / "out").glob("name=*")) == ["name=a", "name=b"]
    assert len(list((tmp_path / "out").rglob("*.csv.gz"))) == 2
    dynamic = target(
        tmp_path,
        path="out",
        format="csv",
        header=True,
        sep=";",
        partition_by="name",
        save_mode="overwrite",
        partition_overwrite_mode="dynamic",
    )
    write(spark, dynamic, [(3, "b")])
    reader = make(
        FileSource,
        {"format": "csv", "path": "out", "header": True, "sep": ";", "schema": "id int, name string"},
        tmp_path,
    )
    found = reader.read(ReadContext(node="x", spark=spark)).collect()
    assert sorted(map(tuple, found)) == [(1, "a"), (3, "b")]


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_a_stream_appends_each_row_once_also_when_a_micro_batch_is_run_again(spark, tmp_path, form):
    made = target(tmp_path, path="out", format=form, partition_by=["name"])
    for number in range(3):
        put(tmp_path, number)
    run(made, numbers(spark, tmp_path), tmp_path / "checkpoint")
    expected = [(0, "n0"), (1, "n1"), (2, "n0")]
    assert read(spark, tmp_path, form) == expected

    forget_last_commit(tmp_path / "checkpoint")
    again = run(made, numbers(spark, tmp_path), tmp_path / "checkpoint")
    assert [progress.batchId for progress in again.recentProgress] == [2]
    assert read(spark, tmp_path, form) == expected

    put(tmp_path, 3)
    run(made, numbers(spark, tmp_path), tmp_path / "checkpoint")
    assert read(spark, tmp_path, form) == [*expected, (3, "n1")]


@pytest.mark.spark
def test_a_micro_batch_that_is_run_again_doubles_rows_where_nothing_prevents_it(spark, tmp_path):
    """The test above can fail: this is what its way of running a micro-batch again does elsewhere."""
    put(tmp_path, 1)

    def append(batch, batch_id):
        batch.write.mode("append").json(str(tmp_path / "out"))

    for _ in range(2):
        writer = numbers(spark, tmp_path).writeStream.foreachBatch(append).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        forget_last_commit(tmp_path / "checkpoint")
    assert read(spark, tmp_path) == [(1, "n1"), (1, "n1")]


@pytest.mark.spark
def test_spark_does_not_count_the_rows_of_the_file_sink(spark, tmp_path):
    put(tmp_path, 1)
    query = run(
        target(tmp_path, path="out", format="json"), numbers(spark, tmp_path), tmp_path / "checkpoint"
    )
    counts = [p.sink.numOutputRows for p in query.recentProgress if p.numInputRows]
    assert counts == [-1]
    assert not FileTarget.semantics.counts_rows


@pytest.mark.spark
@pytest.mark.parametrize("mode", sorted(ALL_OUTPUT_MODES - FileTarget.semantics.output_modes))
def test_the_sink_takes_no_other_output_mode(spark, tmp_path, mode):
    from pyspark.errors import AnalysisException

    put(tmp_path, 1)
    df = numbers(spark, tmp_path).groupBy("name").count()
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATASOURCE"):
        run(target(tmp_path, path="out", format="json"), df, tmp_path / "checkpoint", mode)
