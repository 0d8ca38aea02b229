"""Which failures pass by themselves: what a query that is started again may get over.

Only what is known to pass counts. A mistake in the pipeline, its functions or its data comes again with every
start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError, PassingError
from gem_bundle.python import TRACEBACK, user_error
from gem_bundle.rejected import read_ending
from gem_bundle.run.failures import BROKER_AWAY, error_texts
from gem_bundle.run.lost_server import lost_server

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of errors that Python code raises these are about the network, and the others about the code.
_OF_THE_NETWORK = frozenset(
    {
        *("BrokenPipeError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError"),
        *("ConnectionResetError", "TimeoutError", "ConnectTimeout", "ReadTimeout", "gaierror"),
        *("OperationalError", "InterfaceError", "EndpointConnectionError", "ServiceUnavailable"),
    }
)
_UNREACHED = "a system outside can't be reached"
# What never passes, whatever else the text says. By SQL's states Spark tells of values that it can't compute
# with, of what it doesn't know or do, and of what an expression raises: such a text may quote any row.
_LASTING = re.compile(
    r"UNKNOWN_TOPIC_OR_PARTITION|UnknownTopicOrPartition|AuthenticationException|AuthorizationException"
    r"|SaslAuthentication|SslAuthentication|No resolvable bootstrap urls|ConfigException"
    r"|password authentication|SQLSTATE: (?:0A|21|22|42|P0)"
)
_PASSING: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "the broker can't be reached, or doesn't answer in time",
        re.compile(BROKER_AWAY),
    ),
    (
        "another one has changed the table at the same time",
        re.compile(
            r"Concurrent(?:Append|Write|Transaction|DeleteRead|DeleteDelete)Exception|DELTA_CONCURRENT_"
            r"|MetadataChangedException|ProtocolChangedException"
            r"|deadlock detected|could not serialize access"
        ),
    ),
    ("a lease was lost", re.compile(r"\b[Ll]ease\b.*\b(?:lost|expired|taken)\b|\blost (?:the|its) lease\b")),
    (
        "a connection failed",
        re.compile(
            r"java\.net\.(?:ConnectException|SocketException|SocketTimeoutException|NoRouteToHostException"
            r"|UnknownHostException)|Connection (?:refused|reset|timed out)|Broken pipe"
            r"|SQL(?:Transient|NonTransientConnection|TransientConnection|Recoverable)\w*Exception"
            r"|terminating connection due to administrator command"
            r"|the database system is (?:starting up|shutting)"
        ),
    ),
    (
        "the store is too busy",
        re.compile(r"SlowDown|ServiceUnavailable|503 Service|Reduce your request rate|TooManyRequests"),
    ),
    (
        "an executor was lost",
        re.compile(
            r"ExecutorLostFailure|FetchFailed(?:Exception)?\b|MetadataFetchFailed|executor \d+ exited"
        ),
    ),
)


def passing_reason(errors: Sequence[BaseException]) -> str:
    """Why a query may be started again after what it has failed with.

    Args:
        errors: All that it has failed with.

    Returns:
        A reason, as the end of a sentence; empty where one of them may come again with every start.
    """
    reasons = [_reason(error) for error in errors]
    return reasons[0] if reasons and all(reasons) else ""


def _reason(error: BaseException) -> str:
    if lost_server(error) is not None:  # and its session with it
        return ""
    if isinstance(error, GemError):
        return _UNREACHED if isinstance(error, PassingError) else ""
    text = error_texts(error)
    if read_ending(text) is not None or _LASTING.search(text):
        return ""
    if TRACEBACK in text:
        user = user_error(text)
        if user is not None and user.type.rpartition(".")[2] == PassingError.__name__:
            return _UNREACHED
        if user is not None and user.type.rpartition(".")[2] not in _OF_THE_NETWORK:
            return _reason_of_java(f"{user.type}: {user.message}") if "Py4JJavaError" in user.type else ""
        if user is not None:
            return f"a connection failed: {user.type}"
    elif type(error).__name__ in _OF_THE_NETWORK:
        return f"a connection failed: {type(error).__name__}"
    return _reason_of_java(text)


def _reason_of_java(text: str) -> str:
    return next((reason for reason, sign in _PASSING if sign.search(text)), "")
