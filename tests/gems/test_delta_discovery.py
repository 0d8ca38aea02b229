"""What the source `delta` finds in a table's log without Spark."""

import json
import sys

import pytest

from gem_delta.log import read_metadata
from gem_delta.source import DeltaSource
from tests.gems.discovering import assert_spark_agrees
from tests.gems.draining import make
from tests.samples import some_of

logs_of_tables = some_of("logs of tables as Spark reads them", 1)

UUID = "01234567-89ab-cdef-0123-456789abcdef"
CHANGES = [("_change_type", "string"), ("_commit_version", "bigint"), ("_commit_timestamp", "timestamp")]


def source(folder=None, **raw):
    return make(DeltaSource, raw, folder)


def found(folder, **raw):
    columns = source(path=str(folder), **raw).discover()
    return None if columns is None else [(column.name, column.type) for column in columns]


def names(folder, **raw):
    columns = found(folder, **raw)
    return None if columns is None else [name for name, _ in columns]


def field(name, kind="long", **metadata):
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def schema(*fields):
    made = [field(entry) if isinstance(entry, str) else entry for entry in fields]
    return json.dumps({"type": "struct", "fields": made})


def metadata(*fields, **configuration):
    return {
        "id": "t",
        "schemaString": schema(*fields),
        "partitionColumns": [],
        "configuration": configuration,
    }


def commit(table, version, *fields, **configuration):
    """Write a commit, with new metadata when fields are given."""
    actions = [{"commitInfo": {"operation": "WRITE"}}]
    if fields:
        actions.append({"metaData": metadata(*fields, **configuration)})
    # The statistics of a data file are a text that looks like an action.
    actions.append({"add": {"path": "a.parquet", "stats": '{"metaData": {"schemaString": "no"}}'}})
    return log_file(table, f"{version:020}.json", "".join(json.dumps(action) + "\n" for action in actions))


def log_file(table, name, content):
    file = table / "_delta_log" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def checkpoint(table, name, *fields):
    """Write a checkpoint in Parquet, with metadata when fields are given."""
    import pyarrow as pa
    from pyarrow import parquet

    kind = pa.struct(
        [
            ("id", pa.string()),
            ("schemaString", pa.string()),
            ("configuration", pa.map_(pa.string(), pa.string())),
        ]
    )
    action = {"id": "t", "schemaString": schema(*fields), "configuration": []}
    rows = [None, action if fields else None, None]
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    columns = {"metaData": pa.array(rows, kind), "add": pa.array([{"path": "a"}] * 3)}
    parquet.write_table(pa.table(columns), table / "_delta_log" / name)


def test_the_newest_metadata_counts(tmp_path):
    commit(tmp_path, 0, "a")
    assert found(tmp_path) == [("a", "bigint")]
    commit(tmp_path, 1)
    assert names(tmp_path) == ["a"]
    commit(tmp_path, 2, "b", "a")
    commit(tmp_path, 3)
    assert names(tmp_path) == ["b", "a"]
    for version, expected in enumerate([["a"], ["a"], ["b", "a"], ["b", "a"], None]):
        assert names(tmp_path, version_as_of=version) == expected


def test_types_as_spark_writes_them(tmp_path):
    struct = {"type": "struct", "fields": [field("x", "integer"), field("y z", "string")]}
    commit(
        tmp_path,
        0,
        field("byte", "byte"),
        field("price", "decimal(9,2)"),
        field("at", "timestamp"),
        field("local", "timestamp_ntz"),
        field("list", {"type": "array", "elementType": "short", "containsNull": True}),
        field("map", {"type": "map", "keyType": "string", "valueType": struct, "valueContainsNull": True}),
        field("code", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
        field("word", "string", __COLLATIONS={"word": "icu.UNICODE_CI"}),
        field("words", {"type": "struct", "fields": [field("w", "string", __COLLATIONS={"w": "x"})]}),
        field("user", {"type": "udt", "class": "org.example.User"}),
        field("list of new", {"type": "array", "elementType": "newtype", "containsNull": True}),
    )
    assert found(tmp_path) == [
        ("byte", "tinyint"),
        ("price", "decimal(9,2)"),
        ("at", "timestamp"),
        ("local", "timestamp_ntz"),
        ("list", "array<smallint>"),
        ("map", "map<string, struct<x: int, `y z`: string>>"),
        ("code", "string"),
        ("word", None),
        ("words", None),
        ("user", None),
        ("list of new", None),
    ]


def test_a_log_whose_beginning_was_cleaned_up(tmp_path):
    commit(tmp_path, 12)
    commit(tmp_path, 11)
    assert names(tmp_path) is None
    checkpoint(tmp_path, f"{10:020}.checkpoint.parquet", "a", "b")
    assert names(tmp_path) == ["a", "b"]
    assert names(tmp_path, version_as_of=10) == ["a", "b"]
    assert names(tmp_path, version_as_of=9) is None
    commit(tmp_path, 11, "c")
    assert names(tmp_path) == ["c"]


def test_a_log_with_a_gap(tmp_path):
    commit(tmp_path, 0, "a")
    commit(tmp_path, 2)
    assert names(tmp_path) is None


def test_a_checkpoint_in_parts_needs_all_of_them(tmp_path):
    commit(tmp_path, 3)
    checkpoint(tmp_path, f"{3:020}.checkpoint.{2:010}.{2:010}.parquet", "a")
    assert names(tmp_path) is None
    checkpoint(tmp_path, f"{3:020}.checkpoint.{1:010}.{2:010}.parquet")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_of_the_second_version(tmp_path, form):
    commit(tmp_path, 4)
    name = f"{4:020}.checkpoint.{UUID}.{form}"
    if form == "parquet":
        checkpoint(tmp_path, name, "a")
    else:
        log_file(tmp_path, name, json.dumps({"metaData": metadata("a")}) + '\n{"sidecar": {"path": "x"}}\n')
    assert names(tmp_path) == ["a"]


def test_a_checksum_tells_the_metadata_too(tmp_path):
    commit(tmp_path, 7)
    log_file(tmp_path, f"{7:020}.crc", json.dumps({"numFiles": 1, "metadata": metadata("a")}))
    assert names(tmp_path) == ["a"]
    log_file(tmp_path, f"{8:020}.crc", json.dumps({"numFiles": 1, "metadata": metadata("b")}))
    assert names(tmp_path) == ["a"]
    commit(tmp_path, 8)
    assert names(tmp_path) == ["b"]
    log_file(tmp_path, f"{8:020}.crc", json.dumps({"numFiles": 1}))
    assert names(tmp_path) == ["a"]


def test_without_pyarrow_a_checkpoint_is_passed_over(tmp_path, monkeypatch):
    commit(tmp_path, 0, "a")
    commit(tmp_path, 1)
    checkpoint(tmp_path, f"{1:020}.checkpoint.parquet", "a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert names(tmp_path) == ["a"]
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    assert names(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        '{"metaData": ',
        '{"metaData": {"schemaString": "{"}}',
        '{"metaData": {"schemaString": "[]"}}',
        '{"metaData": {"schemaString": 1}}',
        '{"metaData": {"id": "t"}}',
        '{"metaData": 1}',
        '["metaData"]',
        "",
        '{"metaData": ' + "[" * 100_000,
        json.dumps({"metaData": metadata()}),
        json.dumps({"metaData": metadata("a", "A")}),
        json.dumps({"metaData": metadata(field("a", "void"))}),
        json.dumps({"metaData": metadata(field("a", {"type": "array"}))}),
        json.dumps({"metaData": metadata({"name": "a"})}),
    ],
)
def test_metadata_that_tells_nothing(tmp_path, content):
    log_file(tmp_path, f"{0:020}.json", content)
    assert names(tmp_path) is None


def test_a_log_that_tells_nothing(tmp_path):
    assert names(tmp_path) is None
    log_file(tmp_path, "notes.txt", "x")
    assert names(tmp_path) is None
    log_file(tmp_path, f"{0:020}.json", "").write_bytes(b'{"metaData": "\xff"}')
    assert names(tmp_path) is None
    commit(tmp_path, 0, "a")
    staged = tmp_path / "_delta_log" / "_staged_commits"
    staged.mkdir()
    assert names(tmp_path) == ["a"]
    (staged / f"{1:020}.{UUID}.json").write_text("")
    assert names(tmp_path) is None
    log_file(tmp_path / "other", f"{0:020}.checkpoint.parquet", "no Parquet")
    assert names(tmp_path / "other") is None


@pytest.mark.parametrize(
    "options",
    [
        {"timestamp_as_of": "2024-01-31"},
        {"schema_tracking_location": "checkpoints/s"},
        {"spark_options": {"versionAsOf": 0}},
    ],
)
def test_options_that_choose_other_columns(tmp_path, options):
    commit(tmp_path, 0, "a")
    assert found(tmp_path, **options) is None


def test_a_table_that_lies_elsewhere(tmp_path, monkeypatch):
    assert source(table="main.web.clicks").discover() is None
    assert source(path="s3a://bucket/t").discover() is None
    commit(tmp_path, 0, "a")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert found(tmp_path) is None


def test_the_change_feed_has_columns_of_its_own(tmp_path):
    commit(tmp_path, 0, "a")
    assert found(tmp_path, read_change_feed=True) == [("a", "bigint"), *CHANGES]
    assert found(tmp_path, read_change_feed=True, ending_version=0) == [("a", "bigint"), *CHANGES]
    commit(tmp_path, 1, "b", **{"delta.columnMapping.mode": "name"})
    assert found(tmp_path, read_change_feed=True) == [("b", "bigint"), *CHANGES]
    assert found(tmp_path, read_change_feed=True, ending_version=0) is None


# what Spark says


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """A table with a history: columns of all types, a new one, renamed and dropped ones, checkpoints."""
    path = tmp_path_factory.mktemp("delta") / "t"
    spark.sql(
        f"create table delta.`{path}` (id bigint, small smallint, page string, code char(3), price decimal(9,2), "
        "at timestamp, local timestamp_ntz, day date, raw binary, ok boolean, tags array<string>, "
        "info struct<a: int, b: array<bigint>>, counts map<string, double>) using delta partitioned by (day) "
        "tblproperties (delta.enableChangeDataFeed=true, delta.checkpointInterval=3)"
    )
    for number in range(3):
        spark.sql(f"insert into delta.`{path}` (id, day) values ({number}, date'2024-01-31')")
    spark.sql(f"alter table delta.`{path}` add columns (late variant, first int first)")
    for number in range(3):
        spark.sql(f"insert into delta.`{path}` (id, day) values ({number}, date'2024-01-31')")
    spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.columnMapping.mode'='name')")
    spark.sql(f"alter table delta.`{path}` rename column small to short")
    spark.sql(f"alter table delta.`{path}` drop column raw")
    spark.sql(f"insert into delta.`{path}` (id, day) values (7, date'2024-01-31')")
    return path


@logs_of_tables
@pytest.mark.spark
def test_spark_agrees_about_every_version(spark, table):
    versions = len(list((table / "_delta_log").glob(f"{'[0-9]' * 20}.json")))
    assert versions == 12
    assert list((table / "_delta_log").glob("*.checkpoint*.parquet"))
    assert all(
        kind is not None for _, kind in assert_spark_agrees(source(path=str(table)), spark, streaming=False)
    )
    seen = set()
    for version in range(versions):
        made = source(path=str(table), version_as_of=version)
        seen.add(tuple(assert_spark_agrees(made, spark, streaming=False)))
    assert len(seen) == 4


@pytest.mark.spark
def test_spark_agrees_about_streams_and_the_change_feed(spark, table):
    assert assert_spark_agrees(source(path=str(table)), spark, streaming=True)[0] == ("first", "int")
    feed = source(path=str(table), read_change_feed=True)
    assert assert_spark_agrees(feed, spark, streaming=True)[-3:] == CHANGES
    feed = source(path=str(table), read_change_feed=True, starting_version=10)
    assert assert_spark_agrees(feed, spark, streaming=False)[-3:] == CHANGES


@pytest.mark.spark
def test_spark_agrees_about_a_change_feed_that_ends_before_a_column_came(spark, tmp_path):
    path = tmp_path / "t"
    spark.sql(
        f"create table delta.`{path}` (id bigint) using delta tblproperties (delta.enableChangeDataFeed=true)"
    )
    spark.sql(f"insert into delta.`{path}` values (1)")
    spark.sql(f"alter table delta.`{path}` add columns (late int)")
    made = source(path=str(path), read_change_feed=True, starting_version=0, ending_version=1)
    assert assert_spark_agrees(made, spark, streaming=False) == [("id", "bigint"), ("late", "int"), *CHANGES]


@logs_of_tables
@pytest.mark.spark
@pytest.mark.parametrize("without", ["checksums", "first commits"])
def test_spark_agrees_about_a_log_that_has_not_everything(spark, tmp_path, without):
    path = tmp_path / "t"
    spark.sql(
        f"create table delta.`{path}` (id bigint, page string) using delta tblproperties "
        "(delta.checkpointInterval=2, 'delta.feature.v2Checkpoint'='supported', 'delta.checkpointPolicy'='v2')"
    )
    for number in range(3):
        spark.sql(f"insert into delta.`{path}` values ({number}, 'x')")
    log = path / "_delta_log"
    assert list(log.glob("*.checkpoint.*"))
    for file in log.glob("*.crc"):
        file.unlink()
    if without == "first commits":
        (log / f"{0:020}.json").unlink()
    assert read_metadata(log) is not None
    assert assert_spark_agrees(source(path=str(path)), spark, streaming=False) == [
        ("id", "bigint"),
        ("page", "string"),
    ]
