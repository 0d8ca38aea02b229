"""The source `file`: options, what is said before a run, and what Spark reads."""

import itertools
import json
import os

import pytest
from pydantic import ValidationError

from gem_bundle import Column, GemError, ReadContext, StreamReadContext, WriteContext
from gem_file.paths import archive_is_read_again, is_missing
from gem_file.source import FileSource
from gem_file.target import FileTarget
from tests.gems.draining import drain, make, micro_batches

GUIDE = [
    "path",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "latestFirst",
    "fileNameOnly",
    "maxFileAge",
    "cleanSource",
    "sourceArchiveDir",
    "maxCachedFiles",
    "discardCachedInputRatio",
    "pathGlobFilter",
    "recursiveFileLookup",
    "modifiedBefore",
    "modifiedAfter",
    "ignoreMissingFiles",
    "ignoreCorruptFiles",
    "basePath",
]
# What Spark's own option lists have that is no option of reading files in a pipeline.
OTHER_NAMES = {"charset", "delimiter", "codec", "parquet.compression", "orc.compress"}
INTERNAL = {"useUnsafeRow"}
WRITING = {
    *("compression", "escapeQuotes", "quoteAll", "extension"),
    *("ignoreNullFields", "pretty", "sortKeys", "writeNonAsciiCharacterAsCodePoint"),
    *("arrayElementName", "declaration", "indent", "rootTag", "validateName"),
}


def source(folder=None, **raw):
    return make(FileSource, raw, folder)


def findings(made, *, streaming):
    made.streaming = streaming
    return [(f.code, f.severity, f.option) for f in made.check()]


def problem(**raw):
    with pytest.raises(ValidationError) as caught:
        source(**raw)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


START = 1_760_000_000
"""A moment of the past, in seconds since 1970."""


def write_json(folder, name, *rows):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", GUIDE)
def test_it_has_every_option_of_the_guide_in_sparks_spelling(name):
    field = FileSource.options_type.canonical(name)
    assert field is not None
    assert FileSource.options_type.spark_name(field) == name
    assert FileSource.options_type.canonical(name.lower()) == field


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [
        "catalyst.csv.CSVOptions",
        "catalyst.json.JSONOptions",
        "execution.datasources.text.TextOptions",
        "execution.datasources.parquet.ParquetOptions",
        "execution.datasources.orc.OrcOptions",
        "catalyst.xml.XmlOptions",
    ],
)
def test_it_has_every_option_of_sparks_readers(spark, name):
    companion = (
        spark._jvm.java.lang.Class.forName(f"org.apache.spark.sql.{name}$").getField("MODULE$").get(None)
    )
    valid = companion.getAllOptions().mkString(" ").split()
    wanted = set(valid) - OTHER_NAMES - INTERNAL - WRITING
    assert wanted
    assert {option for option in wanted if FileSource.options_type.canonical(option) is None} == set()


def test_only_what_is_given_goes_to_spark_in_its_own_terms():
    options = source(
        format="csv",
        path="in",
        schema="a int",
        maxFileAge="2 days",
        max_bytes_per_trigger="10m",
        header=True,
        mode="failfast",
        spark_options={"maxCachedFiles": 5},
    ).options
    assert options.to_spark() == {
        "maxFileAge": "172800000ms",
        "maxBytesPerTrigger": "10485760",
        "header": "true",
        "mode": "FAILFAST",
        "maxCachedFiles": "5",
    }


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"format": "parquet", "header": True}, "`header` is for csv, and the format is parquet"),
        ({"format": "text", "multi_line": True}, "`multi_line` is for csv and json, and the format is text"),
        ({"format": "json", "merge_schema": True}, "`merge_schema` is for parquet and orc"),
        (
            {"format": "csv", "wholetext": True, "avro_schema": '"int"'},
            "`avro_schema` is for avro; `wholetext` is for text",
        ),
        (
            {"max_files_per_trigger": 1, "max_bytes_per_trigger": 1},
            "`max_files_per_trigger` or `max_bytes_per_trigger`",
        ),
        ({"schema": "a int", "infer_schema": True}, "give `schema` or `infer_schema`, not both"),
        ({"clean_source": "archive"}, "`clean_source: archive` needs `source_archive_dir`"),
        ({"source_archive_dir": "old"}, "`source_archive_dir` is for `clean_source: archive`"),
        (
            {"clean_source": "archive", "source_archive_dir": "in/old"},
            "archived files in `/in/old` would be read again as part of `/in`",
        ),
        ({"format": "avro", "avro_schema": '"int"', "avro_schema_url": "s"}, "not both"),
        ({"format": "xml"}, "the format xml needs `row_tag`"),
        ({"row_tag": "book"}, "`row_tag` is for xml, and the format is json"),
    ],
)
def test_options_that_do_not_go_together(raw, message):
    assert message in problem(**{"format": "json", "path": "in", **raw})


def test_an_avro_schema_that_spark_makes_no_columns_of_is_told_before_a_start():
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    raw = {"path": "in", "format": "avro", "avro_schema": node}
    assert findings(source(**raw), streaming=False) == [("GB205", "error", "avro_schema")]
    assert findings(source(**raw, recursive_field_max_depth=3), streaming=False) == []
    assert findings(source(**raw, schema="next struct<next: void>"), streaming=True) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "xlsx"),
        ("max_files_per_trigger", 0),
        ("max_bytes_per_trigger", "much"),
        ("max_file_age", "1 month"),
        ("max_file_age", 7),
        ("clean_source", "remove"),
        ("discard_cached_input_ratio", 1.5),
        ("modified_before", "yesterday"),
        ("mode", "STRICT"),
        ("quote", "''"),
    ],
)
def test_values_that_are_refused(name, value):
    with pytest.raises(ValidationError) as caught:
        source(**{"format": "csv", "path": "in", name: value})
    assert {error["loc"][0] for error in caught.value.errors()} == {name}


@pytest.mark.parametrize(
    ("path", "archive", "again"),
    [
        ("/hello?/spark/*", "/hello1/spark/archive/dir", True),
        ("/hello?/spark/*", "/hello1/spark", True),
        ("/hello?/spark/*", "/archived/here", False),
        ("/in", "/in/old", True),
        ("/in/x", "/", True),
        ("/in", "/old", False),
        ("/in", "/in/../old", False),
        ("/{a,b}/in", "/b/in/old", True),
        ("/{a,b}/in", "/c/in/old", False),
        ("s3a://one/in", "s3a://one/in/old", True),
        ("s3a://one/in", "s3a://one/old", False),
        ("s3a://one/in", "s3a://two/in", False),
        ("s3a://one/in", "/in", False),
    ],
)
def test_an_archive_must_lie_outside_of_what_is_read(path, archive, again):
    assert archive_is_read_again(path, archive) is again


def test_what_a_stream_needs_is_said_before_it_runs():
    assert findings(source(format="json", path="in"), streaming=True) == [("GB206", "error", None)]
    assert findings(source(format="json", path="in"), streaming=False) == []
    assert findings(source(format="json", path="in", infer_schema=True), streaming=True) == []
    assert findings(source(format="text", path="in"), streaming=True) == []


def test_options_of_a_batch_and_of_a_stream_are_told_apart():
    batch = source(format="json", path="in", schema="a int", modified_after="2024-01-31T10:00:00")
    assert findings(batch, streaming=True) == [("GB312", "error", "modified_after")]
    assert findings(batch, streaming=False) == []
    stream = source(format="json", path="in", schema="a int", max_files_per_trigger=1, latest_first=True)
    assert findings(stream, streaming=True) == []
    assert findings(stream, streaming=False) == [
        ("GB207", "warning", "max_files_per_trigger"),
        ("GB207", "warning", "latest_first"),
    ]


def test_an_age_that_spark_would_ignore_is_a_warning():
    raw = {"format": "json", "path": "in", "schema": "a int", "latest_first": True, "max_file_age": "1 day"}
    assert findings(source(**raw), streaming=True) == []
    assert findings(source(**raw, max_files_per_trigger=1), streaming=True) == [
        ("GB207", "warning", "max_file_age")
    ]


def test_without_a_mode_nothing_is_said():
    assert list(source(format="json", path="in").check()) == []


def test_the_columns_of_a_schema_are_known():
    assert source(format="csv", path="in", schema={"a": "long", "b c": "string"}).infer().columns == (
        Column("a", "bigint"),
        Column("b c", "string"),
    )
    assert source(format="text", path="in").infer().columns == (Column("value", "string"),)
    assert source(format="text", path="in", infer_schema=True).infer().columns is None
    assert source(format="parquet", path="in").infer().columns is None


@pytest.mark.parametrize(
    ("path", "missing"),
    [
        *(("in", False), ("in/a.json", False), ("i*/*.json", False), ("{x,in}", False), ("i[^x]", False)),
        *(("out", True), ("in/*.csv", True), ("{x,y}", True), ("i[^n]", True)),
    ],
)
def test_the_preflight_looks_at_local_paths(tmp_path, path, missing):
    write_json(tmp_path / "in", "a.json", {"a": 1})
    made = source(tmp_path, format="json", path=path)
    assert [(f.code, f.option) for f in made.connect()] == ([("GB505", "path")] if missing else [])
    assert is_missing(f"file:{tmp_path}/{path}") is missing
    assert is_missing(f"file://{tmp_path}/{path}") is missing


@pytest.mark.parametrize("variable", ["SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION", "HADOOP_CONF_DIR"])
def test_where_paths_may_lie_elsewhere_only_spark_can_tell(monkeypatch, variable):
    assert is_missing("/nowhere/at/all")
    assert not is_missing("s3a://nowhere/at/all")
    monkeypatch.setenv(variable, "x")
    assert not is_missing("/nowhere/at/all")


CLICK = """/* Ours. */
{"type": "record", "name": "Click", "fields": [
  // where it was
  {"name": "page", "type": "string", "doc": "http://wiki/page"}, {"name": "n", "type": "long", "default": 7}]}
end"""
LINKED = {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]}


def of_schema(gem, url, folder=None, **more):
    """What is told before a start of a schema at a path or an address."""
    made = make(gem, {"path": "here", "format": "avro", "avro_schema_url": url, **more}, folder)
    if folder is not None:
        (folder / "here").mkdir(exist_ok=True)
    return [(f.code, f.option, f.message) for f in made.connect() if f.option != "path"]


@pytest.mark.parametrize("gem", [FileSource, FileTarget])
def test_an_avro_schema_at_a_path_is_looked_at_before_a_start(tmp_path, gem):
    (tmp_path / "a.avsc").write_text(CLICK)
    (tmp_path / "wide.avsc").write_text(CLICK, encoding="utf-16")
    (tmp_path / "b.avsc").write_text('{"type": "record", "name": "Click", "fields": [{"name": "n"}]}')
    (tmp_path / "c.avsc").write_bytes(b'"\xff"')
    for name in ("a.avsc", f"file://{tmp_path}/a.avsc", "wide.avsc", "s3a://bucket/a.avsc"):
        assert of_schema(gem, name, tmp_path) == []
    told = [
        (name, *of_schema(gem, f"{tmp_path}/{name}", tmp_path)[0])
        for name in ("b.avsc", "c.avsc", "d.avsc", "here")
    ]
    assert [(name, code) for name, code, _, _ in told] == [
        ("b.avsc", "GB205"),
        ("c.avsc", "GB205"),
        ("d.avsc", "GB505"),
        ("here", "GB505"),
    ]
    assert {option for _, _, option, _ in told} == {"avro_schema_url"}
    assert "takes: at `fields[0]`: the field `n` has no `type`" in told[0][3]
    assert told[2][3] == f"no Avro schema is at `{tmp_path}/d.avsc`"
    assert told[3][3].endswith("can't be read: is a directory")


def test_an_avro_schema_that_columns_are_taken_from_has_them(tmp_path):
    (tmp_path / "n.avsc").write_text(json.dumps(LINKED))
    ((code, _, message),) = of_schema(FileSource, "n.avsc", tmp_path)
    assert (code, message.rpartition(": ")[2]) == (
        "GB205",
        "the record `n` holds itself, which Spark has no type for",
    )
    (tmp_path / "n.avsc").write_text('"int"')
    ((_, _, message),) = of_schema(FileSource, "n.avsc", tmp_path)
    assert message.endswith("it describes no record, which is what has columns")
    assert of_schema(FileSource, "n.avsc", tmp_path, schema="n int") == []
    assert of_schema(FileSource, "n.avsc", tmp_path, recursive_field_max_depth=3) == []


@pytest.mark.servers
def test_an_avro_schema_at_an_address_is_asked_for_before_a_start(rest_service, monkeypatch):
    rest_service.files["/click.avsc"] = CLICK
    assert of_schema(FileTarget, f"{rest_service.url}/click.avsc") == []
    told = [
        (path, *of_schema(FileTarget, f"{rest_service.url}/{path}")[0])
        for path in ("text", "404/a.avsc", "500/a.avsc", "closed/a.avsc")
    ]
    with monkeypatch.context() as impatient:
        impatient.setattr("gem_file.avro_schema._SECONDS", 0.2)
        told += [("slow", *of_schema(FileTarget, f"{rest_service.url}/slow/a.avsc")[0])]
    assert [(path, code) for path, code, _, _ in told] == [
        ("text", "GB205"),
        ("404/a.avsc", "GB505"),
        ("500/a.avsc", "GB503"),
        ("closed/a.avsc", "GB503"),
        ("slow", "GB503"),
    ]
    assert told[1][3].endswith("(HTTP 404)")
    assert told[2][3].endswith("answers HTTP 500, and no Avro schema")
    assert told[4][3].endswith("no answer within 0.2 seconds")
    rest_service.close()
    ((code, _, message),) = of_schema(FileTarget, f"{rest_service.url}/click.avsc")
    assert code == "GB503"
    assert "Connection refused" in message


@pytest.mark.spark
def test_spark_reads_such_schemas_by_paths_and_by_addresses(spark, tmp_path, rest_service):
    (tmp_path / "click.avsc").write_text(CLICK)
    rest_service.files["/click.avsc"] = CLICK
    context = WriteContext(node="t")
    rows = spark.createDataFrame([("home", 1)], "page string, n long").coalesce(1)
    target = make(FileTarget, {"path": "in", "format": "avro", "avro_schema_url": "click.avsc"}, tmp_path)
    target.write(rows, context)
    made = source(tmp_path, format="avro", path="in", avro_schema_url=f"{rest_service.url}/click.avsc")
    assert [*target.connect(), *made.connect()] == []
    made.streaming = False
    assert [tuple(row) for row in made.read(ReadContext(node="x", spark=spark)).collect()] == [("home", 1)]
    assert "GET /click.avsc" in [line for line, _ in rest_service.asked[1:]], "Spark has asked for it too"


def test_avro_brings_a_jar():
    assert list(source(format="avro", path="in").jars()) == ["org.apache.spark:spark-avro_{scala}:{spark}"]
    assert list(source(format="json", path="in").jars()) == []


def test_a_preview_reads_little_and_leaves_files_alone():
    made = source(
        format="json",
        path="/in",
        schema="a int",
        max_bytes_per_trigger=1,
        clean_source="archive",
        source_archive_dir="/old",
        path_glob_filter="*.json",
    )
    assert made.for_preview().options.to_spark() == {"maxFilesPerTrigger": "1", "pathGlobFilter": "*.json"}
    assert made.options.to_spark()["cleanSource"] == "archive"


def batch(spark, made):
    return made.read(ReadContext(node="x", spark=spark))


def stream(spark, made):
    return made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))


@pytest.mark.spark
@pytest.mark.parametrize("form", ["csv", "json", "parquet", "orc", "avro", "xml"])
def test_a_batch_and_a_stream_read_the_same(spark, tmp_path, form):
    rows = [(1, "a", 1.5), (2, "b", None)]
    schema = "id bigint, name string, share double"
    more = {"row_tag": "person"} if form == "xml" else {}
    spark.createDataFrame(rows, schema).write.format(form).option("rowTag", "person").save(
        str(tmp_path / "in")
    )
    made = source(tmp_path, format=form, path="in", schema=schema, **more)
    assert sorted(map(tuple, batch(spark, made).collect())) == rows
    df = stream(spark, made)
    assert df.isStreaming
    assert [Column(name, kind) for name, kind in df.dtypes] == list(made.infer().columns)
    assert sorted(drain(df, tmp_path / "checkpoint")) == rows


@pytest.mark.spark
def test_csv_as_it_is_found_in_the_wild(spark, tmp_path):
    text = "# from a till\nday;amount;note\n31.01.2024; 1,5 ;'a;b'\nx;NA;c\n"
    (tmp_path / "till.csv").write_text(text, encoding="utf-16")
    made = source(
        tmp_path,
        format="csv",
        path="till.csv",
        schema="day date, amount string, note string, bad string",
        header=True,
        sep=";",
        quote="'",
        comment="#",
        encoding="utf-16",
        null_value="NA",
        ignore_leading_white_space=True,
        ignore_trailing_white_space=True,
        date_format="dd.MM.yyyy",
        multi_line=True,
        column_name_of_corrupt_record="bad",
    )
    found = batch(spark, made).selectExpr("cast(day as string)", "amount", "note", "bad is null").collect()
    assert [tuple(row) for row in found] == [("2024-01-31", "1,5", "a;b", True), (None, None, "c", False)]


DAMAGED = {
    "wrong attribute": '<b id="z"><p>1</p></b>',
    "wrong element": "<b><p>z</p></b>",
    "wrong item": "<b><k>z</k></b>",
    "no entity": "<b><t>a & b</t></b>",
    "torn element": "<b><t>a</q></b>",
    "outer entity": "<b><t>&file;</t></b>",
}


@pytest.mark.spark
@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_row_of_xml_takes_no_other_along(spark, tmp_path, damaged):
    # Asked of Spark's other parser: it ends the query at the first of them, and loses the last row of `torn element`.
    good = '<b id="{}"><p>1.5</p><k>1</k><k>2</k></b>'
    entity = '<!DOCTYPE bs [<!ENTITY file SYSTEM "file:///etc/hostname">]>'
    text = f"{entity}<bs>{good.format(1)}{DAMAGED[damaged]}{good.format(2)}</bs>"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text(text)
    schema = "_id int, t string, p double, k array<int>, bad string"
    raw = {"format": "xml", "row_tag": "b", "schema": schema, "column_name_of_corrupt_record": "bad"}
    found = batch(spark, source(tmp_path, path="in", **raw)).collect()
    kept = [(row._id, row.p, row.k) for row in found if row.bad is None]
    assert kept == [(1, 1.5, [1, 2]), (2, 1.5, [1, 2])]
    assert [row.bad for row in found if row.bad is not None] == [DAMAGED[damaged]]


@pytest.mark.spark
def test_text_needs_no_schema(spark, tmp_path):
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a.txt").write_text("one\ntwo\n")
    made = source(tmp_path, format="text", path=".")
    assert drain(stream(spark, made), tmp_path.parent / "checkpoint_text") == [("one",), ("two",)]
    whole = source(tmp_path, format="text", path=".", wholetext=True, schema="value string, day int")
    assert [tuple(row) for row in batch(spark, whole).collect()] == [("one\ntwo\n", 1)]


@pytest.mark.spark
def test_the_schema_is_read_from_the_files_when_that_is_asked_for(spark, tmp_path):
    folder = tmp_path / "in" / "day=2024-01-31"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("page,hits\nhome,3\n")
    raw = {"format": "csv", "path": "in", "header": True}
    made = source(tmp_path, **raw, infer_schema=True)
    expected = [("page", "string"), ("hits", "int"), ("day", "date")]
    assert batch(spark, made).dtypes == expected
    assert stream(spark, made).dtypes == expected
    assert len(drain(stream(spark, made), tmp_path / "checkpoint")) == 1
    assert batch(spark, source(tmp_path, **raw)).dtypes[1] == ("hits", "string")


@pytest.mark.spark
def test_the_rows_have_exactly_the_columns_of_the_schema(spark, tmp_path):
    write_json(tmp_path / "in" / "day=2024-01-31" / "hour=10", "a.json", {"a": 1, "b": "x"})
    for schema, row in [
        ("a int", (1,)),
        ("b string, a int, hour int", ("x", 1, 10)),
        ("a int, day string, hour int", (1, "2024-01-31", 10)),
    ]:
        made = source(tmp_path, format="json", path="in", schema=schema)
        assert [tuple(found) for found in batch(spark, made).collect()] == [row]
        df = stream(spark, made)
        assert [Column(name, kind) for name, kind in df.dtypes] == list(made.infer().columns)
        assert drain(df, tmp_path / f"checkpoint{len(row)}{row[0]}") == [row]
    hidden = batch(spark, source(tmp_path, format="json", path="in", schema="a int")).select(
        "_metadata.file_name"
    )
    assert hidden.first()[0] == "a.json"


@pytest.mark.spark
def test_a_folder_column_before_others_is_refused_for_a_stream(spark, tmp_path):
    write_json(tmp_path / "in" / "day=2024-01-31", "a.json", {"a": 1})
    made = source(tmp_path, format="json", path="in", schema="day date, a int")
    assert batch(spark, made).columns == ["day", "a"]
    with pytest.raises(GemError, match="must stand last") as caught:
        stream(spark, made)
    assert (caught.value.code, caught.value.option) == ("GB205", "schema")
    assert "schema: a int, day date" in caught.value.hint


@pytest.mark.spark
def test_folders_that_appear_later_are_read_when_their_column_stands_last(spark, tmp_path):
    (tmp_path / "in").mkdir()
    df = stream(spark, source(tmp_path, format="json", path="in", schema="a int, day string"))
    write_json(tmp_path / "in" / "day=2024-01-31", "a.json", {"a": 1})
    assert drain(df, tmp_path / "checkpoint") == [(1, "2024-01-31")]


@pytest.mark.spark
@pytest.mark.parametrize("read", [batch, stream])
@pytest.mark.parametrize("hadoop", [False, True])
def test_a_missing_path_is_named(spark, tmp_path, monkeypatch, read, hadoop):
    if hadoop:
        # Then only Spark knows where the path lies, and says so itself.
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(GemError, match="nothing is at") as caught:
        read(spark, source(tmp_path, format="json", path="nowhere", schema="a int"))
    assert (caught.value.code, caught.value.option) == ("GB505", "path")
    assert str(tmp_path / "nowhere") in caught.value.message


@pytest.mark.spark
@pytest.mark.parametrize("read", [batch, stream])
def test_an_empty_folder_has_no_columns_to_infer(spark, tmp_path, read):
    with pytest.raises(GemError, match="no file") as caught:
        read(spark, source(tmp_path, format="json", path=".", infer_schema=True))
    assert caught.value.code == "GB505"


def test_a_schema_that_spark_can_not_read_is_named(tmp_path):
    with pytest.raises(ValidationError, match="there is no type `strng`") as caught:
        source(tmp_path, format="json", path=".", schema="a strng")
    assert caught.value.errors()[0]["loc"] == ("schema",)


@pytest.mark.spark
def test_what_can_not_be_a_stream_is_refused_before_spark(spark, tmp_path):
    with pytest.raises(GemError) as caught:
        stream(spark, source(tmp_path, format="json", path="."))
    assert caught.value.code == "GB206"
    with pytest.raises(GemError) as caught:
        stream(spark, source(tmp_path, format="json", path=".", schema="a int", modified_before="2024-01-31"))
    assert (caught.value.code, caught.value.option) == ("GB312", "modified_before")


@pytest.mark.spark
def test_a_batch_can_leave_files_out(spark, tmp_path):
    for name in ("a.json", "b.json", "c.txt"):
        write_json(tmp_path, name, {"a": name})
    raw = {"format": "json", "path": ".", "schema": "a string"}
    assert batch(spark, source(tmp_path, **raw)).count() == 3
    assert batch(spark, source(tmp_path, **raw, path_glob_filter="*.json")).count() == 2
    assert batch(spark, source(tmp_path, **raw, modified_after="2999-01-31")).count() == 0
    assert batch(spark, source(tmp_path, **raw, modified_before="2999-01-31T10:00:00")).count() == 3


@pytest.mark.spark
def test_micro_batches_are_limited_and_a_restart_reads_only_what_is_new(spark, tmp_path):
    moments = itertools.count(1_700_000_000)

    def add(name):
        import os

        path, moment = write_json(tmp_path / "in", name, {"a": name}), next(moments)
        os.utime(path, (moment, moment))

    for name in ("a", "b", "c"):
        add(name)
    raw = {"format": "json", "path": "in", "schema": "a string", "max_files_per_trigger": 2}
    first = stream(spark, source(tmp_path, **raw))
    assert micro_batches(first, tmp_path / "checkpoint") == [[("a",), ("b",)], [("c",)]]
    add("d")
    again = stream(spark, source(tmp_path, **raw))
    assert micro_batches(again, tmp_path / "checkpoint") == [[("d",)]]
    newest = stream(spark, source(tmp_path, **raw, latest_first=True))
    assert [set(rows) for rows in micro_batches(newest, tmp_path / "other")] == [
        {("d",), ("c",)},
        {("b",), ("a",)},
    ]
    small = stream(
        spark, source(tmp_path, format="json", path="in", schema="a string", max_bytes_per_trigger="1b")
    )
    assert [len(rows) for rows in micro_batches(small, tmp_path / "small")] == [1, 1, 1, 1]


@pytest.mark.spark
@pytest.mark.parametrize("way", ["archive", "delete"])
def test_files_that_were_read_are_cleaned_up_but_not_by_a_preview(spark, tmp_path, way):
    for number, name in enumerate(("a.json", "b.json")):
        # Of files of one moment the first is the one that the file system lists first.
        os.utime(write_json(tmp_path / "in", name, {"a": name}), (START + number, START + number))
    raw = {
        "format": "json",
        "path": "in",
        "schema": "a string",
        "max_files_per_trigger": 1,
        "clean_source": way,
    }
    if way == "archive":
        raw["source_archive_dir"] = "old"
    made = source(tmp_path, **raw)
    assert len(drain(stream(spark, made.for_preview()), tmp_path / "preview")) == 2
    assert len(list((tmp_path / "in").iterdir())) == 2
    spark.conf.set("spark.sql.streaming.fileSource.cleaner.numThreads", "0")
    try:
        assert len(drain(stream(spark, made), tmp_path / "checkpoint")) == 2
    finally:
        spark.conf.unset("spark.sql.streaming.fileSource.cleaner.numThreads")
    # Spark cleans up when the next micro-batch is committed, so the last file stays.
    assert [path.name for path in (tmp_path / "in").glob("*.json")] == ["b.json"]
    assert [path.name for path in (tmp_path / "old").rglob("*.json")] == (
        ["a.json"] if way == "archive" else []
    )


def test_braces_that_nobody_would_write_take_no_time():
    path = "/data/" + "{a,b}" * 40
    assert not is_missing(path)
    assert not is_missing("/data/{" + "a," * 100_000 + "b}")
    assert not archive_is_read_again(path, "/data/" + "a" * 40)
