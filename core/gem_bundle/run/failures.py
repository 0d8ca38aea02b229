"""From what Spark and user code raise to a diagnostic: the node it belongs to, then the cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle.check.report import from_gem_error
from gem_bundle.diagnostics import NOWHERE, Diagnostic
from gem_bundle.errors import GemError
from gem_bundle.files import EXPIRED, NEW_CREDENTIALS
from gem_bundle.python import TRACEBACK, user_error
from gem_bundle.rejected import read_ending
from gem_bundle.run.jars import fill, spark_version
from gem_bundle.run.lost_server import lost_server

if TYPE_CHECKING:
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_CONDITION = re.compile(r"^\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}")
# Spark Connect puts the kind of an error before its text.
_OVER_CONNECT = re.compile(r"^\((?:[A-Z][A-Z0-9_.]*|[\w.$]+(?:Exception|Error))\)\s+")
# Py4J puts what it was asked for before what Java says, with the kinds of its errors from the outermost on.
_CALLING = re.compile(
    r"\AAn error occurred while calling \S+\n: ((?:[\w$]+\.)+[\w$]+(?:: |$))+", re.MULTILINE
)
_CAUSED_BY = re.compile(r"^Caused by: [\w.$]+: (.*?)(?=^\s+at |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a kind of failure: a sign in Spark's text, the code, the remedy, and other words.

    In the words stands what the groups of the sign match; without any the sentence is Spark's.
    """

    sign: re.Pattern[str]
    code: str
    hint: str
    words: str = ""


BROKER_AWAY = (
    r"org\.apache\.kafka\.common\.errors\.(?:RetriableException|TimeoutException|DisconnectException"
    r"|NetworkException|NotLeaderOrFollowerException|LeaderNotAvailableException"
    r"|BrokerNotAvailableException|CoordinatorNotAvailableException|CoordinatorLoadInProgressException"
    r"|NotEnoughReplicas\w*Exception|KafkaStorageException)"
    r"|Timed out waiting for a node assignment|Cannot fetch record for offset .* in \d+ milliseconds"
)
"""What Kafka's client says while a broker can't be reached, or has just come back."""

_NOTHING_LOST = "Nothing is lost: the next run begins with the micro-batch that wasn't committed."
_KNOWN = (
    _Known(EXPIRED, "GB503", f"The credentials have expired. {NEW_CREDENTIALS} {_NOTHING_LOST}"),
    _Known(
        # So the SDK calls what has no reason: the answer to a HEAD has no room for one.
        re.compile(r"(?:Bad Request|null) \(Service: S3, Status Code: 400\b"),
        "GB503",
        "The store gives no reason for that. Where the credentials are temporary, they have expired. "
        f"{NEW_CREDENTIALS} {_NOTHING_LOST} Where they aren't, correct the region or the endpoint.",
    ),
    _Known(
        re.compile(r"DUPLICATE_SOURCE_NAMES"),
        "GB508",
        "This is a bug of gem-bundle: please report it with the pipeline file.",
    ),
    _Known(
        re.compile(r"MALFORMED_LOG_FILE|Failed to read log file|Incomplete log file|batch \d+ doesn't exist"),
        "GB402",
        "Restore the checkpoint from a copy, or move it away to start anew.",
    ),
    _Known(
        re.compile(r"UNKNOWN_TOPIC_OR_PARTITION|UnknownTopicOrPartition|This server does not host this"),
        "GB504",
        "Create the topic, or correct its name.",
    ),
    _Known(
        re.compile(
            BROKER_AWAY + r"|Failed to construct kafka|bootstrap urls|Cannot fetch record for offset"
            r"|kafka\.common\.errors\.(?:Timeout|Disconnect|Network)Exception"
            r"|TimeoutException: Topic|describeTopics|listOffsets|Connection refused"
        ),
        "GB503",
        "Try `gem-bundle check --connect`, which says what can't be reached.",
    ),
    _Known(
        re.compile(r"No FileSystem for scheme|Class org\.apache\.hadoop\.fs\.\S+ not found"),
        "GB502",
        "This Spark lacks the jars of that store. Name them in gem-bundle.toml, such as [jars] packages = "
        '["org.apache.hadoop:hadoop-aws:{hadoop}"].',
    ),
    _Known(
        re.compile(
            r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. File does"
        ),
        "GB505",
        "Put it back. Of a Delta table `VACUUM` removes files that only older versions have: then read a "
        "newer one.",
        "the file {} is gone, which was there when Spark looked what there is to read",
    ),
    _Known(
        re.compile(r"PATH_NOT_FOUND|Path does not exist|FileNotFoundException|DELTA_PATH_DOES_NOT_EXIST"),
        "GB505",
        "Create it, or correct the path; relative paths are relative to the pipeline file.",
    ),
    _Known(
        re.compile(r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|DELTA_MISSING_DELTA_TABLE"),
        "GB510",
        "Create the table, or correct its name.",
    ),
    _Known(
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|multiple streaming queries.*using the same"),
        "GB401",
        "Stop the other run; two runs on one checkpoint corrupt it.",
    ),
)
# By SQL's states, what Spark can't compute with and what an expression raises: such a text quotes values. The
# state 22000 says nothing, and records that Kafka has lost are told with it.
_OF_VALUES = re.compile(r"SQLSTATE: (?:22(?!000)|P0)")
_BUILD_CODE = "GB320"
# What a gem raises about a micro-batch; on its way through Spark it becomes a text.
_OF_GEMS = {"GemError": "GB508", "UnreachableError": "GB503", "PassingError": "GB503"}
_MEND = (
    "Nothing of the row's micro-batch is committed, and the next run begins with it: mend the data or the "
    "rule, or let the rule `reject`."
)


def build_failure(plan: Plan, node_id: str, error: Exception) -> Diagnostic:
    """What was raised while a node's part of the query was built or its query started.

    Args:
        plan: The pipeline.
        node_id: The node.
        error: What its gem, or Spark's analyser, raised.
    """
    node = plan.node(node_id)
    if isinstance(error, GemError):
        return from_gem_error(plan.definition, node, error, plan.gems.get(node.id))
    return _described(plan, node, error, default=_analysis_code(error))


def query_failure(plan: Plan, target: str, error: Exception) -> Diagnostic:
    """What a running query ended with.

    Args:
        plan: The pipeline.
        target: The target whose query it was.
        error: What Spark says of it.
    """
    return _described(plan, plan.node(target), error, default="GB508")


def stuck_failure(plan: Plan, target: str) -> Diagnostic:
    """That a query doesn't stop.

    Args:
        plan: The pipeline.
        target: The target whose query it is.
    """
    sentence = "its query doesn't stop, as its micro-batch is in code that Spark can't interrupt"
    hint = "Give what its function waits for a time limit. The next run does the micro-batch once more."
    return _at(plan, plan.node(target), "GB508", sentence, hint)


def root_cause(error: BaseException) -> BaseException:
    """The error that Spark wrapped in others, as "Task failed while writing rows" does."""
    # PySpark keeps the chain in an attribute of its own, and has no public way to it.
    while (cause := getattr(error, "_cause", None)) is not None and str(cause).strip():
        error = cause
    return error


def _said_by_server(error: BaseException) -> str:
    """What lies at the bottom of an error over Spark Connect, which has its causes in a text only."""
    stack = getattr(error, "getStackTrace", lambda: None)() or ""
    causes: list[str] = _CAUSED_BY.findall(stack)
    return causes[-1].strip() if causes else ""


def headline(error: BaseException) -> str:
    """The sentence in Spark's error: without its plan, its stack and its codes for programs."""
    text = _said_by_server(error) or str(error)
    parameters = getattr(error, "getMessageParameters", lambda: None)()
    if (
        text == str(error)
        and parameters
        and getattr(error, "getCondition", lambda: None)() == "STREAM_FAILED"
    ):
        text = parameters.get("message", text)
    text = _OVER_CONNECT.sub("", text)
    text = text.split("\n=== Streaming Query ===", 1)[0].split("\n\nJVM stacktrace:", 1)[0]
    if TRACEBACK in text:
        return text
    text = re.split(r"\n\s*at [\w$.<>]+\(|; line \d+ pos \d+;?\n|\n'|\n\+- ", text, maxsplit=1)[0]
    text = _SQLSTATE.sub("", text).strip()
    calling = _CALLING.match(text)
    if calling:
        text = calling.group(1).rpartition(".")[2] + text[calling.end() :]
    # Spark wraps the cause of a failed task in sentences about the task; the cause comes last.
    task = re.search(r"(?:Lost task|Task \d+ in stage).*?: ([\w.$]+(?:Exception|Error)): (.*)", text, re.S)
    if task:
        text = f"{task.group(1).rsplit('.', 1)[-1]}: {task.group(2)}"
    text = text.splitlines()[0] if text else type(error).__name__
    return text if len(text) <= 1000 else f"{text[:1000]}…"


def error_texts(error: BaseException) -> str:
    """All that an error says: its own text, that of what it wraps, and what a server says of it."""
    return f"{error}\n{root_cause(error)}\n{_said_by_server(error)}"


def _described(plan: Plan, node: Node, error: Exception, default: str) -> Diagnostic:
    lost = lost_server(error)
    if lost is not None:  # which is no node's affair
        place = plan.definition.locator.place(())
        return Diagnostic(lost.code, "error", lost.message, place=place, hint=lost.hint)
    text = headline(root_cause(error))
    full = error_texts(error)
    ended = read_ending(full)
    if ended is not None and ended.node in plan.definition.nodes:
        message = f"a row breaks the rule `{ended.rule}`: {ended.words}. The row: {ended.row}"
        return _at(plan, plan.node(ended.node), "GB515", message, _MEND)
    user = user_error(text) if TRACEBACK in text else None
    if user is None and TRACEBACK in full:
        user = user_error(full)
    if user is not None and user.type.rpartition(".")[2] in _OF_GEMS:
        return _at(plan, node, _OF_GEMS[user.type.rpartition(".")[2]], user.message, "")
    if user is not None:
        where = f" ({user.file}:{user.line})" if user.file else ""
        message = f"Python code raised {user.type}: {user.message}{where}"
        return _at(plan, node, "GB507", message, "Mend the function, then run again: no row is lost.")
    sentence = _CONDITION.sub("", text)
    condition = _CONDITION.match(text)
    for known in () if _OF_VALUES.search(full) else _KNOWN:
        found = known.sign.search(full)
        if found is not None:
            return _at(plan, node, known.code, known.words.format(*found.groups()) or sentence, known.hint)
    if "DATA_SOURCE_NOT_FOUND" in full and (jars := list(plan.gems[node.id].jars())):
        packages = ",".join(fill(jar, spark_version=spark_version()) for jar in jars)
        hint = f"The session hasn't got its jars. Start it, or the server, with `--packages {packages}`."
        return _at(plan, node, "GB502", sentence, hint)
    hint = f"Spark calls this {condition.group(1)}." if condition else ""
    return _at(plan, node, default, sentence, hint)


def _analysis_code(error: Exception) -> str:
    """Spark's analyser refuses a query with AnalysisException or ParseException; the rest are failures."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return _BUILD_CODE if names & {"AnalysisException", "ParseException"} else "GB508"


def _at(plan: Plan, node: Node, code: str, sentence: str, hint: str) -> Diagnostic:
    place = plan.definition.locator.place(node.path, key=True) if node.path else NOWHERE
    message = f"{node.kind} `{node.id}`: {sentence}"
    return Diagnostic(code, "error", message, node.id, node.path, place, hint)
