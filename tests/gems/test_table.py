"""The source and the target `table`, in Spark's own catalog."""

import uuid

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError, ReadContext, StreamReadContext, WriteContext
from gem_table.source import TableSource
from gem_table.target import TableTarget
from tests.gems.draining import drain, forget_last_commit, make, run
from tests.samples import some_of

tables_of_a_catalog = some_of("tables of a catalog", 1)

MERGED = {"format": "delta", "spark_options": {"mergeSchema": True}}


def source(name, **raw):
    return make(TableSource, {"table": name, **raw})


def target(name, folder=None, **raw):
    return make(TableTarget, {"table": name, **raw}, folder)


@pytest.fixture
def table(spark):
    """The name of a table that doesn't exist, and is dropped afterwards."""
    name = f"t_{uuid.uuid4().hex}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def read(spark, name, **raw):
    return sorted(map(tuple, source(name, **raw).read(ReadContext(node="x", spark=spark)).collect()))


def stream(spark, name, **raw):
    return source(name, **raw).read_stream(StreamReadContext(node="x", spark=spark, name="x"))


def write(spark, made, rows, mode="append"):
    made.write(spark.createDataFrame(rows, "id int, name string"), WriteContext(node="t", output_mode=mode))


def provider(spark, name):
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return next(row["data_type"].lower() for row in rows if row["col_name"] == "Provider")


@pytest.mark.parametrize("name", ["clicks", "web.clicks", "main.web.clicks", "main.`web-2`.`a``b`", "_t1"])
def test_names_of_tables_are_taken(name):
    assert source(name).options.table == name


@pytest.mark.parametrize("name", ["", "a b", "a..b", "a.", "1a", "a;drop table b", "a-b", "a\n", "`a"])
def test_what_is_no_name_of_a_table_is_refused(name):
    for made in (source, target):
        with pytest.raises(ValidationError, match="write a table as"):
            made(name)


def test_the_target_says_what_it_can_before_a_run():
    facts = Facts(streaming=True, columns=(Column("day", "date"), Column("a", "int")))
    made = target("t", partition_by="dya", save_mode="append")
    assert [(f.code, f.severity, f.option) for f in made.check(facts)] == [
        ("GB210", "error", "partition_by"),
        ("GB207", "warning", "save_mode"),
    ]
    assert list(target("t", partition_by="day").check(facts)) == []
    assert list(target("t", save_mode="append").check(Facts(streaming=False))) == []


@pytest.mark.parametrize(
    ("raw", "settings", "stream", "batch"),
    [
        ({"format": "parquet"}, {}, "any", "same"),
        ({"format": "Delta"}, {}, "same", "any"),
        ({"format": "delta", "spark_options": {"mergeSchema": True}}, {}, "new", "any"),
        ({"format": "delta", "spark_options": {"mergeSchema": "false"}}, {}, "same", "any"),
        ({"format": "delta"}, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}, "any", "any"),
        ({}, {}, "any", "any"),
        ({"format": "parquet", "save_mode": "overwrite"}, {}, "any", "any"),
        ({"format": "iceberg", "merge": {"on": ["id"]}}, {}, "any", "any"),
    ],
)
def test_which_columns_are_taken_depends_on_the_format(raw, settings, stream, batch):
    assert target("t", **raw).columns_taken(settings) == "any"
    for streaming, taken in ((True, stream), (False, batch)):
        made = target("t", **raw)
        list(made.check(Facts(streaming=streaming)))
        assert made.columns_taken(settings) == taken


@tables_of_a_catalog
@pytest.mark.spark
@pytest.mark.sample(2, rule="which columns tables take")
@pytest.mark.parametrize(
    "raw", [{"format": name} for name in ("parquet", "csv", "json", "orc", "delta")] + [MERGED]
)
def test_columns_that_are_not_taken_are_those_that_spark_refuses(spark, tmp_path, table, raw):
    from pyspark.errors import PySparkException

    write(spark, target(f"{table}_in", format="json"), [(1, "a")])
    shapes = {
        "new": ["id", "name", "1 as more"],
        "type": ["id > 0 as id", "name"],
        "same": ["name as NAME", "id"],
    }
    try:
        for streaming in (True, False):
            made = target(table, **raw)
            list(made.check(Facts(streaming=streaming)))
            refused = {"same": {"new", "type"}, "new": {"type"}, "any": set()}[made.columns_taken({})]
            for name, columns in shapes.items():
                spark.sql(f"DROP TABLE IF EXISTS {table}")
                spark.sql(f"CREATE TABLE {table} (id int, name string) USING {raw['format']}")
                df = stream(spark, f"{table}_in") if streaming else spark.table(f"{table}_in")
                rows = df.selectExpr(*columns)
                if name not in refused and name != "same" and not streaming:
                    continue  # "any" is what isn't known
                try:
                    if streaming:
                        run(made, rows, tmp_path / f"{name}_checkpoint")
                    else:
                        made.write(rows, WriteContext(node="t", output_mode="append"))
                except PySparkException:
                    assert name in refused, (streaming, name)
                else:
                    assert name not in refused, (streaming, name)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table}_in")


@pytest.mark.spark
def test_what_was_written_is_read_as_a_batch_and_as_a_stream(spark, tmp_path, table):
    made = target(table, format="json", partition_by=["name"])
    write(spark, made, [(1, "a")])
    write(spark, target(table, partition_by=["name"]), [(2, "b")])
    assert provider(spark, table) == "json"
    assert read(spark, table) == [(1, "a"), (2, "b")]
    df = stream(spark, f"default.{table}", spark_options={"maxFilesPerTrigger": 1})
    assert df.isStreaming
    assert sorted(drain(df, tmp_path / "checkpoint")) == [(1, "a"), (2, "b")]


@pytest.mark.spark
def test_a_batch_reads_views_too(spark):
    spark.sql("CREATE OR REPLACE TEMP VIEW numbers_of_table AS SELECT 1 AS id")
    try:
        assert read(spark, "numbers_of_table") == [(1,)]
    finally:
        spark.catalog.dropTempView("numbers_of_table")


@pytest.mark.spark
def test_a_batch_follows_the_output_mode_or_the_save_mode(spark, tmp_path, table):
    made = target(table, tmp_path, path="elsewhere")
    write(spark, made, [(1, "a")])
    assert provider(spark, table) == "parquet"
    assert list((tmp_path / "elsewhere").glob("*.parquet"))
    write(spark, made, [(2, "b")], mode="complete")
    assert read(spark, table) == [(2, "b")]
    write(spark, target(table, save_mode="ignore"), [(3, "c")])
    with pytest.raises(GemError, match="exists already") as caught:
        write(spark, target(table, save_mode="error"), [(4, "d")])
    assert (caught.value.code, caught.value.option) == ("GB511", "save_mode")
    with pytest.raises(GemError) as caught:
        write(spark, target(table, save_mode="append"), [(5, "e")], mode="complete")
    assert (caught.value.code, caught.value.option) == ("GB207", "save_mode")
    assert read(spark, table) == [(2, "b")]


@pytest.mark.spark
def test_a_missing_table_or_schema_is_named(spark, tmp_path, table):
    for name in ("nowhere", "nowhere.t"):
        for use in (read, stream):
            with pytest.raises(GemError, match=f"there is no table `{name}`") as caught:
                use(spark, name)
            assert (caught.value.code, caught.value.option) == ("GB510", "table")
    write(spark, target(table), [(1, "a")])
    with pytest.raises(GemError, match=r"no schema for the table `nowhere\.t`") as caught:
        write(spark, target("nowhere.t"), [(1, "a")])
    assert caught.value.code == "GB510"
    with pytest.raises(GemError, match=r"no schema for the table `nowhere\.t`"):
        run(target("nowhere.t"), stream(spark, table), tmp_path / "checkpoint")


@tables_of_a_catalog
@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_stream_into_a_table_that_is_there_takes_its_format(spark, tmp_path, table, form):
    """Spark refuses the table otherwise, when the format isn't the session's default."""
    spark.sql(f"CREATE TABLE {table}_in (id int, name string) USING json")
    spark.sql(f"CREATE TABLE {table} (id int, name string) USING {form}")
    try:
        for row in ("1, 'a'", "2, 'b'"):
            spark.sql(f"INSERT INTO {table}_in VALUES ({row})")

        def once():
            df = stream(spark, f"{table}_in", spark_options={"maxFilesPerTrigger": 1})
            query = run(target(table), df, tmp_path / "checkpoint")
            return [progress.batchId for progress in query.recentProgress], read(spark, table)

        assert once() == ([0, 1], [(1, "a"), (2, "b")])
        forget_last_commit(tmp_path / "checkpoint")
        assert once() == ([1], [(1, "a"), (2, "b")])
        assert provider(spark, table) == form
    finally:
        spark.sql(f"DROP TABLE {table}_in")


@tables_of_a_catalog
@pytest.mark.spark
def test_only_some_formats_can_be_replaced_by_a_stream(spark, tmp_path, table):
    spark.sql(f"CREATE TABLE {table} (name string, count bigint) USING parquet")
    df = stream(spark, table).groupBy("name").count()
    with pytest.raises(GemError, match="only be appended to") as caught:
        run(target(table), df, tmp_path / "checkpoint", "complete")
    assert (caught.value.code, caught.value.option) == ("GB310", "format")
    new = f"{table}_new"
    spark.sql(f"INSERT INTO {table} VALUES ('a', 1)")
    try:
        run(target(new, format="delta"), df, tmp_path / "other", "complete")
        assert read(spark, new) == [("a", 1)]
        assert provider(spark, new) == "delta"
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {new}")
