"""The source `file` where it rejects: which records of which formats, whatever is asked of the good rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import ReadContext, StreamReadContext
from gem_bundle.rejected import COLUMNS, Rejecting, rejected_rows
from gem_file.source import FileSource
from tests.core.streams import check
from tests.gems.draining import drain, make

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BY = Rejecting("p", "1", "files", "file")
SCHEMA = "id int not null, size double, name string"

# For each format its options, what the file says, the good ids, and each record that isn't good with why.
CSV = (
    {"format": "csv", "header": True},
    'id,size,name\n1,2.5,a\nx,1,b\n3\n4,1,c,more\n\n5,,\n"6,1,"d\n7,big,e\n,1,f\n99999999999,1,g\n',
    [1, 5],
    {
        "x,1,b": "`id` doesn't fit int",
        "3": "not_csv",
        "4,1,c,more": "not_csv",
        '"6,1,"d': "not_csv",
        "7,big,e": "`size` doesn't fit double",
        None: "missing_field",
        "99999999999,1,g": "`id` doesn't fit int",
    },
)
JSON = (
    {"format": "json"},
    '{"id": 1, "size": 2.5}\n{"id": "x"}\n{"id": 3\n\n"text"\nnull\n{"size": 1}\n{"id": 7, "size": "big"}\n'
    '[{"id": 8}, {"id": 9}]\n{"id": 10, "name": "\\u00e4"}\n',
    [1, 8, 9, 10],
    {
        '{"id": "x"}': "`id` doesn't fit int",
        '{"id": 3': "not_json",
        '"text"': "not_json",
        "null": "not_json",
        None: "missing_field",
        '{"id": 7, "size": "big"}': "`size` doesn't fit double",
    },
)
XML = (
    {"format": "xml", "row_tag": "r"},
    "<rows><r><id>1</id></r><r><id>x</id></r><r><id>3</id><size></r><r><size>1</size></r><r><id>5</id></r></rows>",
    [1, 5],
    {
        "<r><id>x</id></r>": "a value doesn't fit the schema",
        "<r><id>3</id><size></r>": "not_xml",
        None: "missing_field",
    },
)


@pytest.mark.spark
@pytest.mark.parametrize(("options", "text", "good", "bad"), [CSV, JSON, XML], ids=["csv", "json", "xml"])
@pytest.mark.parametrize("streaming", [False, True])
def test_each_record_is_good_or_rejected(
    spark: SparkSession,
    tmp_path: Path,
    streaming: bool,
    options: dict[str, Any],
    text: str,
    good: list[int],
    bad: dict[str | None, str],
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text(text, encoding="utf-8")
    made = make(FileSource, {**options, "path": "in", "schema": SCHEMA, "rejects": True}, tmp_path)

    def read(*, undivided: bool) -> Any:
        if streaming:
            return made.read_stream(StreamReadContext("files", spark, "files", undivided))
        return made.read(ReadContext("files", spark, undivided))

    def rows(df: Any, name: str) -> list[Any]:
        return drain(df, tmp_path / name) if streaming else [tuple(row) for row in df.collect()]

    given = read(undivided=False)
    assert given.columns == ["id", "size", "name"]
    assert sorted(row[0] for row in rows(given, "all")) == good
    # Spark parses only the columns that are asked for, and sees no mistake in others: not here.
    for column in given.columns:
        assert len(rows(given.select(column), column)) == len(good)
    rejected = rejected_rows(made.reject(read(undivided=True)), BY)
    assert rejected.columns == [column.name for column in COLUMNS]
    found = {}
    for _, _, _, node, _, why, row, schema, origin, event_time, _ in rows(rejected, "bad"):
        ((name, words),) = why
        record = json.loads(row)["record"]
        found[record] = name if bad.get(record) == name else words
        assert (node, schema, event_time) == (
            "files",
            "record string, id int, size double, name string",
            None,
        )
        assert origin == {
            "file": f"file:{tmp_path}/in/file",
            "block_start": "0",
            "block_length": str(len(text.encode())),
        }
    assert {**found, None: "missing_field"} == bad
    assert len(rows(rejected, "again")) == len(bad)


@pytest.mark.spark
def test_folder_names_are_columns_of_good_and_rejected_rows(spark: SparkSession, tmp_path: Path) -> None:
    made = make(
        FileSource,
        {"format": "csv", "path": "in", "schema": "id int, day date", "rejects": True},
        tmp_path,
    )
    (tmp_path / "in" / "day=2024-01-31").mkdir(parents=True)
    (tmp_path / "in" / "day=2024-01-31" / "file.csv").write_text("1\nx\n")
    whole = made.read(ReadContext("files", spark, undivided=True))
    assert [tuple(map(str, row)) for row in made.read(ReadContext("files", spark)).collect()] == [
        ("1", "2024-01-31")
    ]
    (row,) = rejected_rows(made.reject(whole), BY).collect()
    assert json.loads(row.row) == {"record": "x", "id": None, "day": "2024-01-31"}
    assert row.reasons[0].words == "`id` doesn't fit int"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"format": "parquet", "schema": "id int"},
            "records of parquet can't be rejected: Spark reads columns",
        ),
        ({"format": "orc", "schema": "id int"}, "records of orc can't be rejected"),
        ({"format": "avro", "schema": "id int"}, "records of avro can't be rejected: Spark reads blocks"),
        ({"format": "text"}, "records of text can't be rejected: each line"),
        ({"format": "csv"}, "`rejects` needs `schema`"),
        ({"format": "csv", "infer_schema": True}, "`rejects` needs `schema`"),
        ({"format": "csv", "schema": "id int", "mode": "failfast"}, "`mode: FAILFAST` does something else"),
        ({"format": "json", "schema": "id int, _corrupt_record string"}, "no column gets them"),
        (
            {"format": "json", "schema": "id int", "column_name_of_corrupt_record": "bad"},
            "no column gets them",
        ),
        ({"format": "json", "schema": "v variant", "single_variant_column": "v"}, "takes every record"),
        (
            {"format": "csv", "schema": "id int", "spark_options": {"mode": "DropMalformed"}},
            "`mode: DROPMALFORMED` does something else",
        ),
        (
            {"format": "csv", "schema": "id int", "spark_options": {"columnNameOfCorruptRecord": "bad"}},
            "no column gets them",
        ),
        (
            {"format": "json", "schema": "v variant", "spark_options": {"singleVariantColumn": "v"}},
            "takes every record",
        ),
    ],
)
def test_what_can_not_be_rejected_is_said(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match="Value error") as refused:
        make(FileSource, {"path": "in", "rejects": True, **options})
    assert says in str(refused.value)


FILES = '{gem: file, options: {path: in, format: json, schema: "id int"REJECTS}}'


def told(targets: str, rejects: str = ", rejects: true") -> list[tuple[str, str]]:
    source = f"sources:\n  files: {FILES.replace('REJECTS', rejects)}\n"
    found = check(f"{source}targets:\n{targets}").diagnostics
    return [(d.code, d.message) for d in found if d.node != "ticks"]


def test_a_check_knows_the_output() -> None:
    good, bad = "  good: {gem: noop, input: files}\n", "  bad: {gem: noop, input: files.rejected}\n"
    assert told(good + bad) == []
    assert told(good) == [
        ("GB109", "the rows that `files` rejects go nowhere: no node takes `files.rejected`")
    ]
    assert told(good + bad, "") == [("GB106", "`bad`: with these options `files` rejects no rows")]
    assert told(good.replace("noop, ", "noop, group: all, ") + bad) == []
