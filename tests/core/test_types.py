"""Types for options: what each accepts, and what a gem reads."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gem_bundle import types


def read(kind: Any, value: object, **context: object) -> Any:
    return TypeAdapter(kind).validate_python(value, context=context or None)


def refusal(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    return str(caught.value.errors()[0]["msg"])


@pytest.mark.parametrize(
    "text",
    [
        "10 minutes",
        "1 hour 30 minutes",
        "interval 5 minutes",
        "INTERVAL 5 MINUTES",
        "1.5 seconds",
        "+5 seconds",
        "0 seconds",
        "1 day",
        "1 week",
        "10 milliseconds",
        "5 microseconds",
        "1 month",
    ],
)
def test_lengths_of_time_that_spark_takes_everywhere(text: str) -> None:
    assert read(types.Duration, text) == text
    assert read(types.Interval, f" {text} ") == text


@pytest.mark.parametrize("text", ["5m", "5 min", "2 hr", "10minutes", "5s", "1.5 minutes", "10 ms"])
def test_lengths_of_time_that_are_no_intervals_to_spark(text: str) -> None:
    assert read(types.Duration, text) == text
    assert "`10 minutes`" in refusal(types.Interval, text)


@pytest.mark.parametrize(
    "value",
    ["", "ten minutes", "10", "10 parsecs", "minutes", "10 minutes,", "5 minutes 3", 10, 1.5],
)
def test_what_is_no_length_of_time(value: object) -> None:
    assert refusal(types.Duration, value)
    assert refusal(types.Interval, value)


def test_a_length_of_time_can_not_be_negative_and_needs_a_unit() -> None:
    assert "negative" in refusal(types.Duration, "-5 minutes")
    assert "negative" in refusal(types.Duration, "1 hour -5 minutes")
    assert "`10 seconds`" in refusal(types.Duration, 10)


@pytest.mark.parametrize(
    ("text", "months", "microseconds"),
    [
        ("1 microsecond", 0, 1),
        ("1.000001 seconds", 0, 1_000_001),
        ("1 minute 1 second", 0, 61_000_000),
        ("1 week", 0, 7 * 86_400_000_000),
        ("1 year 2 months 1 day", 14, 86_400_000_000),
    ],
)
def test_how_long_an_interval_is(text: str, months: int, microseconds: int) -> None:
    assert types.interval_length(text) == (months, microseconds)


@pytest.mark.parametrize(
    ("text", "found"),
    [("10 minutes", "600000ms"), ("5s", "5000ms"), ("7d", "604800000ms"), ("1 h 30 m", "5400000ms")],
)
def test_a_time_that_is_no_interval_is_read_as_milliseconds(text: str, found: str) -> None:
    assert read(types.FixedDuration, text) == found


def test_months_have_no_fixed_length() -> None:
    assert "no fixed length" in refusal(types.FixedDuration, "1 month")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a int", "a int"),
        (" page string, at timestamp ", "page string, at timestamp"),
        ("a: int, b :struct<c: int>", "a int, b struct<c: int>"),
        ("a decimal(10, 2), b map<string, array<int>>", "a decimal(10, 2), b map<string, array<int>>"),
        ("`odd, name` string", "`odd, name` string"),
        ("a struct<b: int, c: string> not null", "a struct<b: int, c: string> not null"),
        ("a int comment 'x, (y'", "a int comment 'x, (y'"),
        ({"a": "int", "b c": "string"}, "`a` int, `b c` string"),
    ],
)
def test_schemas(value: object, found: str) -> None:
    assert read(types.Schema, value) == found


@pytest.mark.parametrize(
    "value", ["", " ", "a", "a int, b", "a array<int", "a array<int>>", "a int,", {}, 5, ["a int"]]
)
def test_what_is_no_schema(value: object) -> None:
    assert refusal(types.Schema, value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("amount * 100", "amount * 100"),
        (" a ", "a"),
        ("concat('(', a, \"]\")", "concat('(', a, \"]\")"),
        (r"'it\'s' || x", r"'it\'s' || x"),
        ("`odd)name`", "`odd)name`"),
        ("a < b and c > d", "a < b and c > d"),
        (1, "1"),
        (0.5, "0.5"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_expressions(value: object, found: str) -> None:
    assert read(types.Expression, value) == found


@pytest.mark.parametrize("value", ["", "  ", "f(a", "f(a))", "a[1", "'open", "a, b", None, ["a"]])
def test_what_is_no_expression(value: object) -> None:
    assert refusal(types.Expression, value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (["a", "f(a, b) as c"], ["a", "f(a, b) as c"]),
        ("a", ["a"]),
        ("a, f(a, b)", ["a", "f(a, b)"]),
        (1, ["1"]),
        ({"x": "a + 1", "y": 2}, {"x": "a + 1", "y": "2"}),
    ],
)
def test_columns(value: object, found: object) -> None:
    assert read(types.ColumnExpressions, value) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [(["a", "b"], ["a", "b"]), ("a, b,", ["a", "b"]), ("a", ["a"]), ("", []), ([], [])],
)
def test_lists_of_names(value: object, found: list[str]) -> None:
    assert read(types.StringList, value) == found


@pytest.mark.parametrize("value", [5, {"a": 1}, ["a", 5], None])
def test_what_is_no_list_of_names(value: object) -> None:
    assert refusal(types.StringList, value)


@pytest.mark.parametrize(
    "value", [["localhost:9092"], ["10.0.0.1:9092", "b-1.example.com:443"], ["[::1]:9092"]]
)
def test_brokers(value: list[str]) -> None:
    assert read(types.BrokerList, value) == value
    assert read(types.BrokerList, ", ".join(value)) == value


@pytest.mark.parametrize(
    "value",
    [[], "", "localhost", "localhost:", ":9092", "a:0", "a:65536", "a:x", "http://a:1", "a b:1", "a:1\n"],
)
def test_what_are_no_brokers(value: object) -> None:
    assert "`host:port`" in refusal(types.BrokerList, [value] if isinstance(value, str) else value)


@pytest.mark.parametrize("text", ["jobs:clean", "a.b.c:Class.method", "_x:_y"])
def test_functions(text: str) -> None:
    assert read(types.FunctionReference, text) == text


@pytest.mark.parametrize("text", ["jobs", "jobs:", ":clean", "a-b:c", "a/b.py:c", "a:b()", "a:b\n"])
def test_what_is_no_function(text: str) -> None:
    assert "`module:name`" in refusal(types.FunctionReference, text)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("data/x", "/base/data/x"),
        ("./data", "/base/data"),
        ("../data", "/base/../data"),
        ("data/*.csv", "/base/data/*.csv"),
        ("/data/x", "/data/x"),
        ("s3a://bucket/x", "s3a://bucket/x"),
        ("dbfs:/x", "dbfs:/x"),
        ("file:/x", "file:/x"),
        ("C:x", "/base/C:x"),
    ],
)
def test_paths_are_relative_to_the_pipeline_file(path: str, found: str) -> None:
    assert read(types.DataPath, path, base_dir=Path("/base")) == found
    assert read(types.DataPath, path) == path


def test_a_path_can_not_be_empty() -> None:
    assert "empty" in refusal(types.DataPath, " ")


@pytest.mark.parametrize(
    ("path", "remote"),
    [("s3a://b/x", True), ("dbfs:/x", True), ("file:/x", False), ("file:///x", False), ("x", False)],
)
def test_remote_paths(path: str, remote: bool) -> None:
    assert types.is_remote(path) is remote


def test_the_place_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)

    assert types.local_path("/x") == "/x"
    assert types.local_path("file:///x") == "/x"
    assert types.local_path("s3a://b/x") is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert types.local_path("/x") is None
    assert types.local_path("file:/x") == "/x"
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert types.local_path("file:/x") is None


@pytest.mark.parametrize("text", ["t", "db.t", "cat.db.t", "`odd name`.t", "`a``b`"])
def test_tables(text: str) -> None:
    assert read(types.TableName, text) == text


@pytest.mark.parametrize("text", ["", "a-b", "1t", "a..b", ".a", "a b", "`a", "t\n"])
def test_what_is_no_table(text: str) -> None:
    assert refusal(types.TableName, text)


@pytest.mark.parametrize(
    ("value", "found"), [(5, 5), ("5", 5), ("1k", 1024), ("2 MB", 2 << 20), ("10g", 10 << 30)]
)
def test_sizes(value: object, found: int) -> None:
    assert read(types.ByteSize, value) == found


@pytest.mark.parametrize("value", ["", "x", "1.5g", "-1", "5 bytes"])
def test_what_is_no_size(value: object) -> None:
    assert "`512m`" in refusal(types.ByteSize, value)


@pytest.mark.parametrize("text", ["2024-01-31", "2024-01-31T10:00:00", "2024-01-31 10:00:00+01:00"])
def test_points_in_time(text: str) -> None:
    assert read(types.Timestamp, text) == text


@pytest.mark.parametrize("text", ["", "yesterday", "31.1.2024", "2024-13-01"])
def test_what_is_no_point_in_time(text: str) -> None:
    assert "2024-01-31" in refusal(types.Timestamp, text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b", ["a", " b"]),
        ("f(a, b), c", ["f(a, b)", " c"]),
        ("'a, b', \"c, d\", `e, f`", ["'a, b'", ' "c, d"', " `e, f`"]),
        ("a[1, 2], m<b, c>", ["a[1, 2]", " m<b, c>"]),
        (r"'it\'s, x', y", [r"'it\'s, x'", " y"]),
        ("", [""]),
    ],
)
def test_splitting_outside_brackets_and_quotes(text: str, parts: list[str]) -> None:
    assert types.split_top_level(text) == parts


def test_a_text_file_is_read_where_the_pipeline_is(tmp_path: Path) -> None:
    adapter = TypeAdapter(types.TextFile)
    (tmp_path / "a.txt").write_text("tëxt", encoding="utf-8")
    assert adapter.validate_python("a.txt", context={"base_dir": tmp_path}) == "tëxt"
    brought = {"a.txt": b"another"}.get
    given = {"base_dir": tmp_path, "within": brought}
    assert adapter.validate_python("file:a.txt", context=given) == "another"
    (tmp_path / "b.txt").write_bytes(b"\xff")
    for path, said in {
        "gone.txt": "`gone.txt` can't be read: no such file",
        "b.txt": "`b.txt` can't be read: it isn't utf-8",
        " ": "a path can't be empty",
        "s3://bucket/a.txt": "it lies beside the pipeline",
    }.items():
        with pytest.raises(ValidationError) as raised:
            adapter.validate_python(path, context=given)
        assert said in str(raised.value)


def test_every_public_type_is_exported() -> None:
    assert set(types.__all__) <= set(vars(types))
    with_documentation = {name for name in vars(types) if name[0].isupper() and name != "Any"}
    helpers = {"Annotated", "AfterValidator", "BeforeValidator", "Path", "PurePosixPath"}
    helpers |= {"Literal", "PydanticKnownError", "TYPE_CHECKING", "ValidationInfo", "WithJsonSchema"}
    assert with_documentation - helpers <= set(types.__all__)
