"""What the source `file` says of other options that decide which files a stream reads, and what Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import StreamReadContext
from gem_file.source import FileSource
from tests.gems.draining import drain, make
from tests.gems.test_change import gem, said

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


FILES: dict[str, Any] = {"format": "json", "path": "/data/incoming"}
NEWEST: dict[str, Any] = {"latest_first": True, "max_files_per_trigger": 5}


@pytest.mark.parametrize(
    ("option", "before", "options", "effect"),
    [
        ("file_name_only", False, {"file_name_only": True}, "skipped"),
        ("file_name_only", None, {"file_name_only": True}, "skipped"),
        ("file_name_only", True, {}, "from_now_on"),
        ("file_name_only", None, {"file_name_only": False}, "continues"),
        # Spark minds `max_file_age` unless the newest come first, some at a time.
        ("latest_first", True, {}, "skipped"),
        ("latest_first", True, {"max_files_per_trigger": 5}, "skipped"),
        ("latest_first", None, {"latest_first": True}, "continues"),
        ("latest_first", None, {"latest_first": False}, "continues"),
        ("latest_first", None, NEWEST, "from_now_on"),
        ("max_files_per_trigger", 5, {"latest_first": True}, "skipped"),
        ("max_bytes_per_trigger", 5, {"latest_first": True}, "skipped"),
        ("max_bytes_per_trigger", 5, {"spark_options": {"latestFirst": True}}, "skipped"),
        ("max_bytes_per_trigger", 5, NEWEST, None),
        ("max_files_per_trigger", 4, NEWEST, None),
        ("max_files_per_trigger", None, NEWEST, "from_now_on"),
        ("max_files_per_trigger", 5, {}, None),
        ("max_files_per_trigger", None, {"max_files_per_trigger": 5}, None),
        ("max_file_age", "86400000ms", {"max_file_age": "1 hour"}, "skipped"),
        ("max_file_age", "3600000ms", {"max_file_age": "1 day"}, "from_now_on"),
        ("max_file_age", "3600000ms", {}, "from_now_on"),
        ("max_file_age", None, {"max_file_age": "6 days"}, "skipped"),
        ("max_file_age", None, {"max_file_age": "8 days"}, "from_now_on"),
        ("max_file_age", None, {"max_file_age": "7 days"}, "continues"),
        ("max_file_age", {"environment": True}, {}, "skipped"),
        ("max_file_age", "86400000ms", {"max_file_age": "1 hour", **NEWEST}, "continues"),
        ("path_glob_filter", None, {"path_glob_filter": "*.json"}, "skipped"),
        ("path_glob_filter", "*.txt", {"path_glob_filter": "*.json"}, "skipped"),
        ("path_glob_filter", "*.txt", {}, "from_now_on"),
        ("path_glob_filter", "*.txt", {"path_glob_filter": "*"}, "from_now_on"),
        ("path_glob_filter", None, {"path_glob_filter": "*"}, "continues"),
        ("recursive_file_lookup", None, {"recursive_file_lookup": True}, "from_now_on"),
        ("recursive_file_lookup", True, {}, "skipped"),
        ("recursive_file_lookup", None, {"recursive_file_lookup": False}, "continues"),
    ],
)
def test_which_files_are_read(option: str, before: Any, options: dict[str, Any], effect: str | None) -> None:
    assert said("source", "file", option, before, **{**FILES, **options}) == effect


DEEP: dict[str, Any] = {"recursive_file_lookup": True}


@pytest.mark.parametrize(
    ("before", "after", "options", "effect"),
    [
        ("/data/incoming", "/data/other", {}, "refused"),
        ("/data/incoming", "/data/incoming/new", {}, "refused"),
        ("/data/incoming", "s3a://data/incoming", {}, "refused"),
        ("s3a://one/incoming", "s3a://two/incoming", {}, "refused"),
        ("/data/*/json", "/data/incoming", {}, "refused"),
        ({"environment": True}, "/data/incoming", {}, "refused"),
        # The same place.
        ("/data/incoming", "file:///data/incoming", {}, "continues"),
        ("/data/incoming", "/data/x/../incoming/", {}, "continues"),
        ("s3a://b/data/*", "s3a://b/./data/*", {}, "continues"),
        # A folder above, of which Spark lists those below only where they are columns, or where it is told to.
        ("/data/incoming", "/data", {}, "skipped"),
        ("/data/incoming", "/data", DEEP, "from_now_on"),
        ("/data/day=1/hour=2", "/data", {}, "from_now_on"),
        ("/data/*/*.json", "/data", DEEP, "from_now_on"),
        ("/data/*/*.json", "/data", {}, "skipped"),
        # Spark goes by the texts of both.
        ("/data/incoming", "/data/in", {}, "skipped"),
        # Of a glob Spark knows no folder that all files lie below.
        ("/data/incoming", "/data/incoming/*", {}, "from_now_on"),
        ("/data/incoming", "/data/*", {}, "from_now_on"),
        ("/data/incoming", "/data/{incoming,other}", {}, "from_now_on"),
        ("/data/incoming", "/data/{other,more}", {}, "skipped"),
        ("/data/incoming", "/data/incoming/*.json", {}, "skipped"),
        ("/data/incoming", "/other/*", {}, "skipped"),
        ("/data/incoming", "/other/*", {"base_path": "/other"}, "refused"),
        ("/data/incoming", "/data/*", {"base_path": "/data"}, "from_now_on"),
        ("/data/in*/a", "/data/*/a", {}, "from_now_on"),
        ("/data/*/a", "/data/in*/a", {}, "skipped"),
        ({"environment": True}, "/data/*", {}, "skipped"),
    ],
)
def test_other_paths_of_files(before: Any, after: str, options: dict[str, Any], effect: str) -> None:
    assert said("source", "file", "path", before, **{**FILES, **options, "path": after}) == effect


def test_files_that_wait_are_said_to_be_left_out_or_taken() -> None:
    source = gem("source", "file", **FILES, path_glob_filter="*.json")
    found = source.change("path_glob_filter", "*.txt")
    assert found is not None
    assert "don't match are passed over, and files that it passed over and takes now are read" in found.why
    narrower = source.change("path_glob_filter", None)
    assert narrower is not None
    assert narrower.why == "files that wait and whose names don't match are passed over"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("before", "after", "options", "read"),
    [
        ("in", "in/*", {}, ["sub", "wait"]),
        ("in", "other/../in", {}, ["wait"]),
        ("in", ".", {}, ["above"]),
        ("in", ".", DEEP, ["above", "old", "other", "sub", "wait"]),
        ("in", "i", {}, []),
        ("in", "*ther", {}, ["old", "other"]),
        ("in", "other", {}, None),
        ("in", "in/sub", {}, None),
    ],
)
def test_what_is_said_of_another_path_is_what_spark_does(
    spark: SparkSession,
    before: str,
    after: str,
    options: dict[str, Any],
    read: list[str] | None,
    tmp_path: Path,
) -> None:
    from pyspark.errors import StreamingQueryException

    def add(*files: str) -> None:
        for file in files:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(f'{{"name": "{(tmp_path / file).stem}"}}')

    def rows(path: str, **more: Any) -> list[str]:
        raw = {"format": "json", "path": f"{tmp_path}/{path}", "schema": "name string", **more}
        df = make(FileSource, raw).read_stream(StreamReadContext(node="x", spark=spark, name="x"))
        return sorted(name for (name,) in drain(df, tmp_path / "_checkpoint"))

    add("in/first.json")
    assert rows(before) == ["first"]
    add("in/wait.json", "in/sub/sub.json", "above.json", "other/other.json", "other/old.json", "i/_.json")
    effect = said(
        "source", "file", "path", f"{tmp_path}/{before}", **FILES | options | {"path": f"{tmp_path}/{after}"}
    )
    if read is None:
        assert effect == "refused"
        with pytest.raises(StreamingQueryException, match="Wrong basePath"):
            rows(after, **options)
        return
    assert rows(after, **options) == read
    assert effect == ("skipped" if "wait" not in read else "continues" if read == ["wait"] else "from_now_on")
