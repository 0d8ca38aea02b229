"""What the source `file` finds at its path without Spark."""

import gzip
import json
import os
import struct

import pytest

from gem_file.source import FileSource
from tests.gems.discovering import assert_spark_agrees
from tests.gems.draining import make


def source(folder=None, **raw):
    return make(FileSource, raw, folder)


def found(folder, **raw):
    columns = source(**{"path": str(folder), **raw}).discover()
    return None if columns is None else [(column.name, column.type) for column in columns]


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def csv(folder, **raw):
    return found(folder, **{"format": "csv", "header": True, **raw})


# csv: the header


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("page,at\n1,2\n", {}, ["page", "at"]),
        ("page,at", {}, ["page", "at"]),
        ("page,at\r\n1,2\r\n", {}, ["page", "at"]),
        ("\n  \npage,at\n", {}, ["page", "at"]),
        ('"a page","at, UTC"\n', {}, ["a page", "at, UTC"]),
        ("page;at\n", {"sep": ";"}, ["page", "at"]),
        ("page\tat\n", {"sep": "\\t"}, ["page", "at"]),
        ("page|at\n", {"sep": "|"}, ["page", "at"]),
        ("Straße,größe\n", {}, ["Straße", "größe"]),
        # What can't be told.
        ("page,,at\n", {}, None),
        ("page,at,\n", {}, None),
        ("page,Page\n", {}, None),
        ("page, at\n", {}, None),
        ("page,NA\n", {"null_value": "NA"}, None),
        ('a"b,c\n', {}, None),
        ('"a\nb",c\n', {}, None),
        ('"a""b",c\n', {}, None),
        ("a\\b,c\n", {}, None),
        ("\ufeffpage,at\n", {}, None),
        (b"\xff\xfe,at\n", {}, None),
        ("\n\n", {}, None),
        ("", {}, None),
        ("page,at\n", {"header": False}, None),
        ("page,at\n", {"sep": "::"}, None),
        ("page,at\n", {"encoding": "UTF-16"}, None),
        ("page,at\n", {"comment": "#"}, None),
        ("page,at\n", {"spark_options": {"anything": 1}}, None),
    ],
)
def test_the_header_of_a_csv_file(tmp_path, text, options, names):
    put(tmp_path / "a.csv", text)
    assert csv(tmp_path, **options) == (names and [(name, "string") for name in names])


def test_types_of_csv_values_are_not_known_when_spark_infers_them(tmp_path):
    put(tmp_path / "a.csv", "page,at\n1,2\n")
    assert csv(tmp_path, infer_schema=True) == [("page", None), ("at", None)]


def test_all_csv_files_must_have_the_same_header(tmp_path):
    put(tmp_path / "a.csv", "page,at\n1,2\n")
    put(tmp_path / "b.csv.gz", "page,at\n1,2\n")
    put(tmp_path / "empty.csv", "")
    assert csv(tmp_path) == [("page", "string"), ("at", "string")]
    put(tmp_path / "c.csv", "at,page\n")
    assert csv(tmp_path) is None
    assert csv(tmp_path, path_glob_filter="[ab].csv") is None
    assert csv(tmp_path, path_glob_filter="a.*") == [("page", "string"), ("at", "string")]
    put(tmp_path / "packed" / "d.csv.bz2", "page,at\n")
    assert csv(tmp_path / "packed") is None


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b", b"no gzip", "cut", "changed"])
def test_a_packed_file_that_is_broken(tmp_path, damage):
    file = put(tmp_path / "a.csv.gz", "page,at\n" + "".join(f"{n},{n * n}\n" for n in range(1000)))
    assert csv(tmp_path) == [("page", "string"), ("at", "string")]
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[:12], "changed": whole[:10] + b"\xff" * 100}.get(damage, damage))
    assert csv(tmp_path) is None


# which files, and which folders are columns


def test_names_of_folders_are_columns_of_types_that_are_not_known(tmp_path):
    for day in ("2024-01-31", "2024-02-01"):
        for team in "ab":
            put(tmp_path / f"day={day}" / f"team={team}" / "a.csv", "page\n1\n")
    assert csv(tmp_path) == [("page", "string"), ("day", None), ("team", None)]
    assert csv(tmp_path / "day=2024-01-31") == [("page", "string"), ("team", None)]
    assert csv(tmp_path, recursive_file_lookup=True) == [("page", "string")]
    assert csv(tmp_path / "*" / "*") == [("page", "string")]
    assert csv(tmp_path / "*") is None
    assert csv(tmp_path, base_path=str(tmp_path)) is None


@pytest.mark.parametrize(
    "file",
    [
        "a.csv",
        "day=1/a.csv",
        "team=1/day=1/a.csv",
        "day=1/team=1/x/a.csv",
        "day=1/x/team=1/a.csv",
        "day=/team=1/a.csv",
        "=1/team=1/a.csv",
        "Day=1/team=1/a.csv",
        "_day=1/team=1/a.csv",
        "_metadata",
        "_spark_metadata/0",
        "_delta_log/0",
    ],
)
def test_folders_that_do_not_go_together_tell_nothing(tmp_path, file):
    put(tmp_path / "day=1" / "team=1" / "b.csv", "page\n1\n")
    assert csv(tmp_path) == [("page", "string"), ("day", None), ("team", None)]
    put(tmp_path / file, "page\n1\n")
    assert csv(tmp_path) is None


@pytest.mark.parametrize("key", ["a%3Db", "page", "PAGE"])
def test_folders_whose_column_is_written_in_another_way_or_is_in_the_files_too_tell_nothing(tmp_path, key):
    put(tmp_path / f"{key}=1" / "a.csv", "page\n1\n")
    assert csv(tmp_path) is None


def test_only_data_files_count(tmp_path):
    put(tmp_path / "a.csv", "page\n1\n")
    for name in ("_SUCCESS", ".a.csv.crc", "_temporary/0/b.csv", "b.csv._COPYING_", "archive/c.csv"):
        put(tmp_path / name, "other\n1\n")
    assert csv(tmp_path) == [("page", "string")]
    assert csv(tmp_path / "a.csv") == [("page", "string")]
    assert csv(tmp_path / "?.csv") == [("page", "string")]
    assert csv(tmp_path / "{a,z}.csv") == [("page", "string")]
    assert csv(tmp_path, recursive_file_lookup=True) is None
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    assert csv(tmp_path) is None
    (tmp_path / "link.csv").unlink()
    os.mkfifo(tmp_path / "pipe.csv")
    assert csv(tmp_path) is None


def test_nothing_is_said_of_more_files_than_can_be_looked_at(tmp_path):
    for number in range(1001):
        (tmp_path / f"{number}.csv").write_text("page\n")
    assert csv(tmp_path) is None
    (tmp_path / "0.csv").unlink()
    assert csv(tmp_path) == [("page", "string")]


def test_nothing_is_said_of_what_lies_elsewhere_or_is_not_there(tmp_path, monkeypatch):
    assert csv("s3a://bucket/pages") is None
    assert csv(tmp_path / "nowhere") is None
    assert csv(tmp_path) is None
    put(tmp_path / "a.csv", "page\n1\n")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert csv(tmp_path) is None


# json: the records


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('{"b": 1, "a": "x"}\n{"c": true, "a": null}\n', {"a": "string", "b": "bigint", "c": "boolean"}),
        ('{"b": 1.5, "B2": 1}\r\n\n  \n{"b": 1e3}', {"B2": "bigint", "b": "double"}),
        ('{"a": null}', {"a": "string"}),
        ('{"a": 1}\n{"a": 1.5}\n', {"a": None}),
        ('{"a": 1}\n{"a": "x"}\n', {"a": None}),
        ('{"a": {"x": 1}, "b": [1], "c": [{"x": 2}]}', {"a": None, "b": None, "c": None}),
        ('{"a": {}}\n{"a": {"x": 1}}\n', {"a": None}),
        ('{"a": ""}', {"a": "string"}),
        ('{"a": ""}\n{"a": 1}', {"a": None}),
        # What can't be told.
        ('{"": 1}', None),
        ('{"a": {}}\n{"a": ""}\n', None),
        ('{"a": {}}', None),
        ('{"a": [{}]}', None),
        ('{"a": {"x": null}}', None),
        ('{"a": 1, "a": 2}', None),
        ('{"a": 1, "A": 2}', None),
        ('{"a": 9223372036854775808}', None),
        ('{"a": 1.' + "1" * 400 + "}", None),
        ('{"a": NaN}', None),
        ("{'a': 1}", None),
        ('{"a": 1', None),
        ('{"a": 1} {"a": 2}', None),
        ('[{"a": 1}]', None),
        ("1", None),
        ('{"a": 1}\r{"a": 2}', None),
        ("[" * 100_000, None),
        (b'{"a": "\xff"}', None),
        ("", None),
    ],
)
def test_json_records(tmp_path, text, columns):
    put(tmp_path / "a.json", text)
    assert found(tmp_path, format="json") == (columns and list(columns.items()))


def test_json_of_all_files(tmp_path):
    put(tmp_path / "day=1" / "a.json", '{"b": 1}\n')
    put(tmp_path / "day=2" / "b.json.gz", '{"a": 1}\n{"b": "x"}\n')
    assert found(tmp_path, format="json") == [("a", "bigint"), ("b", None), ("day", None)]
    assert found(tmp_path, format="json", multi_line=True) is None
    assert found(tmp_path, format="json", sampling_ratio=0.5) is None
    put(tmp_path / "day=2" / "c.json.zst", '{"c": 1}\n')
    assert found(tmp_path, format="json") is None


def test_json_that_is_too_much_to_read(tmp_path):
    row = json.dumps({"text": "x" * 1000}) + "\n"
    put(tmp_path / "a.json", row * 15_000)
    assert found(tmp_path, format="json") == [("text", "string")]
    put(tmp_path / "b.json", row * 1_000)
    assert found(tmp_path, format="json") is None


# text


def test_lines_of_text(tmp_path):
    put(tmp_path / "day=1" / "a.txt", "x")
    assert found(tmp_path, format="text", infer_schema=True) == [("value", "string"), ("day", None)]


# avro: the header


def avro_file(schema, *, blocks=1, codec=None):
    def long(number):
        number = (number << 1) ^ (number >> 63)
        out = b""
        while number > 0x7F:
            out += struct.pack("B", number & 0x7F | 0x80)
            number >>= 7
        return out + struct.pack("B", number)

    def text(value):
        return long(len(value.encode())) + value.encode()

    entries = {"avro.codec": codec or "null", "avro.schema": json.dumps(schema)}
    items = [text(key) + text(value) for key, value in entries.items()]
    if blocks == 1:
        body = long(2) + b"".join(items)
    else:
        body = b"".join(long(-1) + long(len(item)) + item for item in items)
    return b"Obj\x01" + body + long(0) + b"s" * 16


def record(*fields):
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]}


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_header_of_an_avro_file(tmp_path, blocks):
    schema = record(
        ("id", "long"),
        ("page", ["null", "string"]),
        ("text", ["string", "null"]),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}),
        ("local", ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]),
        ("day", {"type": "int", "logicalType": "date"}),
        ("raw", {"type": "bytes"}),
        ("money", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("either", ["int", "string"]),
        ("list", {"type": "array", "items": "int"}),
        ("since", {"type": "int", "spark.sql.catalyst.type": "interval year"}),
        ("time", {"type": "int", "logicalType": "time-millis"}),
    )
    put(tmp_path / "a.avro", avro_file(schema, blocks=blocks))
    assert found(tmp_path, format="avro") == [
        ("id", "bigint"),
        ("page", "string"),
        ("text", "string"),
        ("at", "timestamp"),
        ("local", "timestamp_ntz"),
        ("day", "date"),
        ("raw", "binary"),
        ("money", "decimal(9,2)"),
        ("either", "struct<member0: int, member1: string>"),
        ("list", "array<int>"),
        ("since", None),
        ("time", "int"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Obj\x02",
        b"Obj\x01",
        b"Obj\x01\xff\xff",
        avro_file(record(("a", "int")))[:40],
        avro_file({"type": "long"}),
        avro_file("long"),
        avro_file(record()),
        avro_file({"type": "record"}),
        avro_file(record(("a", "int"), ("A", "int"))),
    ],
)
def test_an_avro_file_that_tells_nothing(tmp_path, content):
    put(tmp_path / "a.avro", content)
    assert found(tmp_path, format="avro") is None


def test_avro_files_that_differ(tmp_path):
    put(tmp_path / "a.avro", avro_file(record(("a", "int"), ("b", "int"))))
    put(tmp_path / "b.avro", avro_file(record(("a", "int"), ("b", "long"))))
    assert found(tmp_path, format="avro") == [("a", "int"), ("b", None)]
    assert found(tmp_path, format="avro", avro_schema='"int"') is None
    put(tmp_path / "c.avro", avro_file(record(("b", "int"), ("a", "int"))))
    assert found(tmp_path, format="avro") is None


# parquet and orc: the footer


def test_the_footer_of_parquet_and_orc_that_another_program_wrote(tmp_path):
    import pyarrow as pa
    from pyarrow import orc, parquet

    table = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "small": pa.array([1], pa.int32()),
            "page": pa.array(["x"]),
            "day": pa.array([0], pa.date32()),
            "at": pa.array([0], pa.timestamp("us")),
            "list": pa.array([[1]]),
            "what.ever": pa.array([{"x": 1.0}]),
        }
    )
    for folder in ("p", "o"):
        (tmp_path / folder).mkdir()
    parquet.write_table(table, tmp_path / "p" / "a.parquet")
    orc.write_table(table, tmp_path / "o" / "a.orc")
    columns = [
        ("id", "bigint"),
        ("small", "int"),
        ("page", "string"),
        ("day", "date"),
        ("at", None),
        ("list", None),
        ("what.ever", None),
    ]
    assert found(tmp_path / "p", format="parquet") == columns
    assert found(tmp_path / "o", format="orc") == columns


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_footer_that_is_broken_or_cannot_be_read(tmp_path, form, monkeypatch):
    import pyarrow as pa
    from pyarrow import orc, parquet

    write = {"parquet": parquet.write_table, "orc": orc.write_table}[form]
    write(pa.table({"a": [1]}), tmp_path / "a")
    assert found(tmp_path, format=form) == [("a", "bigint")]
    with monkeypatch.context() as without:
        without.setitem(__import__("sys").modules, "pyarrow", None)
        without.setitem(__import__("sys").modules, f"pyarrow.{form}", None)
        assert found(tmp_path, format=form) is None
    put(tmp_path / "b", "no such thing")
    assert found(tmp_path, format=form) is None


# what Spark says


WRITTEN = (
    "id bigint, small smallint, page string, price decimal(9,2), at timestamp, local timestamp_ntz, day date, "
    "raw binary, ok boolean, ratio double, tags array<string>, info struct<a: int, b: array<bigint>>"
)


def written(spark, folder, form, *partitions):
    spark.sql(
        "select 1L id, 2S small, 'x' page, 1.5bd price, timestamp'2024-01-31' at, "
        "timestamp_ntz'2024-01-31' local, date'2024-01-31' day, x'00' raw, true ok, 1d ratio, "
        "array('a') tags, named_struct('a', 1, 'b', array(1L)) info, 7 team, 'x y' place"
    ).to(spark.createDataFrame([], f"{WRITTEN}, team int, place string").schema).write.partitionBy(
        *partitions
    ).format(form).save(str(folder))
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_spark_agrees_about_files_that_it_wrote(spark, tmp_path, form, streaming):
    known = {
        "parquet": 14,
        "orc": 11,
        "avro": 14,
    }
    flat = source(path=str(written(spark, tmp_path / "flat", form)), format=form, infer_schema=True)
    columns = assert_spark_agrees(flat, spark, streaming=streaming)
    assert sum(kind is not None for _, kind in columns) == known[form], columns
    folder = str(written(spark, tmp_path / "parts", form, "team", "place"))
    parts = source(path=folder, format=form, infer_schema=True)
    columns = assert_spark_agrees(parts, spark, streaming=streaming)
    assert columns[-2:] == [("team", None), ("place", None)]
    below = source(path=f"{folder}/team=7", format=form, infer_schema=True)
    assert assert_spark_agrees(below, spark, streaming=streaming)[-1] == ("place", None)
    for more in ({"recursive_file_lookup": True}, {"path": f"{folder}/*/*"}):
        made = source(**{"path": folder, "format": form, "infer_schema": True, **more})
        assert len(assert_spark_agrees(made, spark, streaming=streaming)) == 12


CSV = {
    "plain": {"a.csv": "page,at\n1,2\n"},
    "quoted": {"a.csv": '"a page","at, UTC"\n1,2\n'},
    "blank lines": {"a.csv": "\n   \npage,at\r\n1,2\r\n"},
    "umlauts": {"a.csv": "Straße,größe\n1,2\n"},
    "several": {
        "a.csv": "page,at\n1,2\n",
        "b.csv.gz": "page,at\n" + "1,2\n" * 50,
        "c.csv": "",
        "d.csv": "\n",
    },
    "partitions": {"day=1/a.csv": "page,at\n1,2\n", "day=x/b.csv": "page,at\n1,2\n"},
    "hidden": {"a.csv": "page\n1\n", "_x.csv": "other\n", ".y.csv": "other\n", "z/b.csv": "other\n1\n"},
}


@pytest.mark.spark
@pytest.mark.parametrize("infer", [False, True])
@pytest.mark.parametrize("case", CSV)
def test_spark_agrees_about_csv(spark, tmp_path, case, infer):
    for name, text in CSV[case].items():
        put(tmp_path / name, text)
    made = source(path=str(tmp_path), format="csv", header=True, infer_schema=infer)
    assert_spark_agrees(made, spark, streaming=False)
    if infer:
        assert_spark_agrees(made, spark, streaming=True)


JSON = {
    "plain": {"a.json": '{"b": 1, "a": "x"}\n\n  \n{"c": true, "a": null, "Z": 1.5}\r\n'},
    "nulls": {"a.json": '{"a": null, "b": {"x": 1}, "c": [1, null]}\n{"b": {}}\n'},
    "empty texts": {"a.json": '{"a": "", "b": "", "c": {}}\n{"a": 1, "c": "x"}\n'},
    "mixed": {"a.json": '{"a": 1, "b": "x"}\n', "b.json.gz": '{"a": 1.5, "b": 2, "c": "2024-01-31"}\n'},
    "order": {"a.json": '{"ä": 1, "Z": 1, "a": 1, "_": 1, "😀": 1, "\uffee": 1, "1": 1}\n'},
    "partitions": {"day=1/a.json": '{"b": 1}\n', "day=2/b.json": '{"a": -0, "d": 1e5}\n'},
}


@pytest.mark.spark
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("case", JSON)
def test_spark_agrees_about_json(spark, tmp_path, case, streaming):
    for name, text in JSON[case].items():
        put(tmp_path / name, text)
    made = source(path=str(tmp_path), format="json", infer_schema=True)
    assert_spark_agrees(made, spark, streaming=streaming)


@pytest.mark.spark
def test_spark_agrees_about_text(spark, tmp_path):
    put(tmp_path / "day=1" / "a.txt", "x")
    made = source(path=str(tmp_path), format="text", infer_schema=True)
    for streaming in (False, True):
        assert_spark_agrees(made, spark, streaming=streaming)


@pytest.mark.spark
def test_spark_agrees_about_files_of_others(spark, tmp_path):
    test_the_footer_of_parquet_and_orc_that_another_program_wrote(tmp_path)
    for form, folder in (("parquet", "p"), ("orc", "o")):
        made = source(path=str(tmp_path / folder), format=form, infer_schema=True)
        assert_spark_agrees(made, spark, streaming=False)
