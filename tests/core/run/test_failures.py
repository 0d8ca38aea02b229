"""From Spark's errors to sentences; the texts are Spark 4.2.0's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.files import NEW_CREDENTIALS
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.failures import build_failure, headline, query_failure

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = (
    "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This output mode is "
    "not supported for streaming aggregations without watermark on streaming DataFrames/DataSets. "
    "SQLSTATE: 42KDE"
)
UNRESOLVED = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `valu` cannot be "
    "resolved. Did you mean one of the following? [`value`, `timestamp`]. SQLSTATE: 42703; line 1 pos 0;\n"
    "'Project ['valu]\n+- ~StreamingRelationV2 org.apache.spark…"
)
STREAMING = (
    "[USER_RAISED_EXCEPTION] boom 1 SQLSTATE: P0001\n=== Streaming Query ===\n"
    "Identifier: [id = d1d3c5da]\nCurrent Committed Offsets: {}\n"
)
TASK = (
    "Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure: Lost task 0.0 in "
    "stage 4.0 (TID 7) (localhost executor driver): java.lang.NumberFormatException: For input string: abc\n"
    "\tat java.base/java.lang.Integer.parseInt(Integer.java:652)\n\nDriver stacktrace:"
)
CALLING = (
    "An error occurred while calling o66.load.\n: java.lang.RuntimeException: java.lang.ClassNotFoundException: "
    "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found\n\tat org.apache.hadoop.conf.Configuration.getClass"
    "(Configuration.java:2736)"
)


class StreamFailed(Exception):  # noqa: N818 (Spark's name)
    """Spark's wrapper around what ended a query, with the sentence in its parameters."""

    def getCondition(self) -> str:  # noqa: N802
        return "STREAM_FAILED"

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802
        return {"id": "1", "message": "[MALFORMED_LOG_FILE] Log file was malformed. SQLSTATE: KD002"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (REFUSED, REFUSED.removesuffix(" SQLSTATE: 42KDE")),
        (
            UNRESOLVED,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `valu` cannot "
            "be resolved. Did you mean one of the following? [`value`, `timestamp`].",
        ),
        (STREAMING, "[USER_RAISED_EXCEPTION] boom 1"),
        (f"(STREAM_FAILED) {STREAMING}", "[USER_RAISED_EXCEPTION] boom 1"),
        (CALLING, "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"),
        ("An error occurred while calling o6.load.\n: java.lang.StackOverflowError", "StackOverflowError"),
        (TASK, "NumberFormatException: For input string: abc"),
        ("", "ValueError"),
    ],
)
def test_the_sentence_without_plans_and_stacks(text: str, sentence: str) -> None:
    assert headline(ValueError(text)) == sentence


def test_the_cause_and_not_the_wrapper() -> None:
    found = headline(StreamFailed("[STREAM_FAILED] Query [id = 1] terminated with exception: …"))
    assert found == "[MALFORMED_LOG_FILE] Log file was malformed."


def test_a_very_long_sentence_is_cut() -> None:
    assert len(headline(ValueError("x" * 5000))) == 1001


class OverConnectError(Exception):
    """As Spark Connect's client raises: the causes are in a text that comes with it."""

    def getStackTrace(self) -> str:  # noqa: N802 (PySpark's name)
        return (
            "org.apache.spark.sql.streaming.StreamingQueryException\n"
            "\tat org.apache.spark.StreamExecution.run(StreamExecution.scala:390)\n"
            "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows "
            "to file:/out. SQLSTATE: 58030\n"
            "\tat org.apache.spark.Writer.write(Writer.scala:1)\n"
            "Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. "
            "SQLSTATE: 22012\n== SQL (line 1, position 1) ==\n100/id as s\n^^^^^^\n\n"
            "\tat org.apache.spark.Errors.divide(Errors.scala:206)\n\t... 9 more\n"
        )


def test_the_last_cause_of_what_a_server_says() -> None:
    error = OverConnectError(
        "[STREAM_FAILED] Query terminated with exception: [TASK_WRITE_FAILED] Task failed"
    )
    assert headline(error) == "[DIVIDE_BY_ZERO] Division by zero."


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. SQLSTATE: 42K02",
            "`--packages io.delta:delta-spark_",
        ),
        (CALLING, '[jars] packages = ["org.apache.hadoop:hadoop-aws:{hadoop}"]'),
    ],
)
def test_a_session_that_lacks_a_jar(text: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(
        "pipeline: orders\n"
        "sources: {orders: {gem: delta, options: {path: orders}}}\n"
        "targets: {all: {gem: noop, input: orders}}\n"
    )
    plan = check_definition(load_file(tmp_path / "orders.yaml")).plan
    assert plan is not None

    found = build_failure(plan, "orders", ValueError(text))

    assert (found.code, found.node) == ("GB502", "orders")
    assert hint in found.hint


@pytest.mark.parametrize(
    ("said", "code", "says"),
    [
        (
            "The provided token has expired. (Service: S3, Status Code: 400)",
            "GB503",
            "The credentials have exp",
        ),
        ("Bad Request (Service: S3, Status Code: 400)", "GB503", "Where the credentials are temporary"),
        ("Access Denied (Service: S3, Status Code: 403)", "GB508", ""),
    ],
)
def test_credentials_that_have_expired(said: str, code: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "ticks.yaml").write_text(
        "pipeline: ticks\nsources: {ticks: {gem: rate}}\ntargets: {all: {gem: noop, input: ticks}}\n"
    )
    plan = check_definition(load_file(tmp_path / "ticks.yaml")).plan
    assert plan is not None
    text = f"software.amazon.awssdk.services.s3.model.S3Exception: {said}"
    found = query_failure(plan, "all", RuntimeError(text))
    assert (found.code, found.message) == (code, f"target `all`: {text}")
    assert says in found.hint
    assert (NEW_CREDENTIALS in found.hint) is bool(says)


@pytest.mark.parametrize(
    ("kind", "code"), [("GemError", "GB508"), ("UnreachableError", "GB503"), ("PassingError", "GB503")]
)
def test_what_a_gem_says_on_an_executor(kind: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "ticks.yaml").write_text(
        "pipeline: ticks\nsources: {ticks: {gem: rate}}\ntargets: {all: {gem: noop, input: ticks}}\n"
    )
    plan = check_definition(load_file(tmp_path / "ticks.yaml")).plan
    assert plan is not None
    text = (
        "[STREAM_FAILED] Query terminated with exception: Job aborted: Traceback (most recent call last):\n"
        '  File "/opt/gem_avro/registry.py", line 9, in ask\n    raise last\n'
        f"gem_bundle.errors.{kind}: the registry can't be reached: refused; Start it.\n"
    )
    found = query_failure(plan, "all", RuntimeError(text))
    assert (found.code, found.message) == (
        code,
        "target `all`: the registry can't be reached: refused; Start it.",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "org.apache.kafka.common.errors.TimeoutException: Expiring 1 record(s) for t-0:9 ms has passed",
            "GB503",
        ),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 9 milliseconds",
            "GB503",
        ),
        (
            "org.apache.kafka.common.errors.NotLeaderOrFollowerException: For requests intended only …",
            "GB503",
        ),
        ("org.apache.kafka.common.errors.CoordinatorNotAvailableException: not available", "GB503"),
        ("[CAST_INVALID_INPUT] The value 'Connection refused' is malformed. SQLSTATE: 22018", "GB508"),
        ("[USER_RAISED_EXCEPTION] no PATH_NOT_FOUND is meant SQLSTATE: P0001", "GB508"),
    ],
)
def test_what_can_not_be_reached_and_what_only_reads_so(text: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "ticks.yaml").write_text(
        "pipeline: ticks\nsources: {ticks: {gem: rate}}\ntargets: {all: {gem: noop, input: ticks}}\n"
    )
    plan = check_definition(load_file(tmp_path / "ticks.yaml")).plan
    assert plan is not None
    assert query_failure(plan, "all", RuntimeError(f"[STREAM_FAILED] {text}")).code == code


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "ticks.yaml").write_text(
        "pipeline: ticks\nsources: {ticks: {gem: rate}}\ntargets: {all: {gem: noop, input: ticks}}\n"
    )
    plan = check_definition(load_file(tmp_path / "ticks.yaml")).plan
    assert plan is not None
    text = (
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:/t/a {b}.parquet. File does not "
        "exist. It is possible the underlying files have been updated. SQLSTATE: KD001"
    )
    found = query_failure(plan, "all", RuntimeError(text))
    assert (found.code, found.message) == (
        "GB505",
        "target `all`: the file file:/t/a {b}.parquet is gone, which was there when Spark looked what there is to read",
    )
    assert "read a newer one" in found.hint
