"""A Spark Connect server goes away before the run has ended: who is told what, by pyspark's own exceptions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pyspark.errors import (
    AnalysisException,
    PySparkAssertionError,
    PySparkException,
    PySparkRuntimeError,
)
from pyspark.errors.exceptions.connect import SparkConnectException, SparkConnectGrpcException
from pyspark.sql.connect.client.retries import DefaultPolicy, Retrying

from gem_bundle.check.checker import check_definition
from gem_bundle.cli.errors import explain
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run import lost_server as module
from gem_bundle.run.failures import build_failure, query_failure
from gem_bundle.run.lost_server import Patience, address_of, lost_server, socket_of, watched
from gem_bundle.run.lost_spark import told_of_its_end
from gem_bundle.run.passing import passing_reason
from gem_bundle.run.progress import Totals
from gem_bundle.run.report import Report
from gem_bundle.run.session import Session
from gem_bundle.run.steering import StopRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gem_bundle.pipeline.plan import Plan

URL = "sc://spark.example.com:15002/;token=secret;use_ssl=true"
REFUSED = "failed to connect to all addresses; last error: UNKNOWN: connect: Connection refused (111)"


class Unanswered(grpc.RpcError):
    """What gRPC raises where nobody answers."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        return None

    def details(self) -> str:
        return REFUSED


Unanswered.__module__ = "grpc._channel"


def told(code: str) -> str:
    """The text that pyspark makes of gRPC's error."""
    return f'<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.{code}\n\tdetails = "{REFUSED}"\n>'


def of_server(said: str = REFUSED, status: Any = grpc.StatusCode.UNAVAILABLE) -> SparkConnectGrpcException:
    try:
        return SparkConnectGrpcException(said, grpc_status_code=status)
    except TypeError:  # before Spark 4.1
        return SparkConnectGrpcException(said)


def plan_of(folder: Path, trigger: str = "available_now: true") -> Plan:
    file = folder / "p.yaml"
    file.write_text(
        "pipeline: p\nsources: {ticks: {gem: rate}}\n"
        f"targets: {{out: {{gem: noop, input: ticks, trigger: {{{trigger}}}}}}}\n"
    )
    plan = check_definition(load_file(file)).plan
    assert plan is not None
    return plan


class Connected:
    """A session over Spark Connect, of which nothing is asked."""

    __module__ = "pyspark.sql.connect.session"


CONNECTED: Any = Connected()


@pytest.fixture(autouse=True)
def connected(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    monkeypatch.setattr(module, "_connected", [(address_of(URL), None)])
    yield
    assert not recwarn.list, "pyspark tells by itself that it has given up"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock shows; pyspark's client sleeps by it."""
    shown = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: shown[0]))
    return shown


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (of_server(told("UNAVAILABLE")), "went away"),
        (Unanswered(), "went away"),
        (of_server("[INVALID_HANDLE.SESSION_CHANGED] The handle a-b is invalid.", grpc.StatusCode.INTERNAL), "again"),
        (of_server("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle is invalid.", grpc.StatusCode.INTERNAL), "again"),
        # Once it has been told so, the client has closed itself.
        (SparkConnectException(errorClass="NO_ACTIVE_SESSION", messageParameters={}), "again"),
        (PySparkAssertionError("Received incorrect server side session identifier for request."), "again"),
    ],
)  # fmt: skip
def test_it_is_known_by_what_pyspark_raises(error: Exception, says: str) -> None:
    lost = lost_server(error)
    assert lost is not None
    assert lost.code == "GB525"
    assert lost.message.startswith("the Spark Connect server at sc://spark.example.com:15002 ")
    assert says in lost.message
    assert "a run goes on where its checkpoints are" in lost.hint
    assert passing_reason([error]) == ""


@pytest.mark.parametrize(
    "error",
    [
        of_server("Division by zero", grpc.StatusCode.INTERNAL),
        # What a function of the user's says of another server.
        of_server(f"PythonException: Traceback: {told('UNAVAILABLE')}", grpc.StatusCode.INTERNAL),
        AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] no table of the name INVALID_HANDLE"),
        PySparkException("whatever"),
        PySparkRuntimeError(errorClass="NO_ACTIVE_SESSION", messageParameters={}),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_other_failures_are_not_blamed_on_it(error: Exception) -> None:
    assert lost_server(error) is None


@pytest.mark.parametrize("failure", [build_failure, query_failure])
def test_it_is_no_node_s_affair(failure: Any, tmp_path: Path) -> None:
    found = failure(plan_of(tmp_path), "out", of_server(told("UNAVAILABLE")))
    assert (found.code, found.node) == ("GB525", None)


def test_no_command_calls_it_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(of_server(told("UNAVAILABLE")), "gem-bundle test") == 1
    said = capsys.readouterr().err
    assert said.startswith("error[GB525]: the Spark Connect server at sc://spark.example.com:15002 went away")
    assert "bug" not in said
    assert "secret" not in said


SHUTTING_DOWN = [
    of_server(told("UNKNOWN").replace(REFUSED, "Application error processing RPC"), grpc.StatusCode.UNKNOWN),
    of_server("Job 3 cancelled because SparkContext was shut down", grpc.StatusCode.INTERNAL),
]


@pytest.mark.parametrize("error", SHUTTING_DOWN)
def test_one_that_is_about_to_end_is_waited_for(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_connected", [("sc://there", ("127.0.0.1", 1))])
    looks = [False, False, True]
    monkeypatch.setattr(module, "_refuses", lambda _: looks.pop(0))
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.001)
    lost = lost_server(error)
    assert lost is not None
    assert lost.message == "the Spark Connect server at sc://there went away: nobody answers there any more"
    assert looks == []


@pytest.mark.servers
@pytest.mark.parametrize("error", SHUTTING_DOWN)
def test_what_fails_while_it_lives_is_not_blamed_on_it(
    error: Exception, listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_connected", [("sc://there", ("127.0.0.1", listening))])
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.01)
    assert lost_server(error) is None
    assert module.ending_server("Job 3 cancelled because SparkContext was shut down") is None
    monkeypatch.setattr(module, "_connected", [])
    assert lost_server(error) is None


# What a run makes of it


@pytest.mark.parametrize(
    ("trigger", "status", "said", "asked"),
    [
        ("processing_time: 1 second", "finished", "", True),
        ("available_now: true", "finished", "", False),
        ("processing_time: 1 second", "stopped", "", False),
        ("available_now: true", "failed", "SparkContext was shut down", True),
        ("available_now: true", "failed", "Division by zero", False),
    ],
)
def test_a_run_whose_server_was_told_to_end_has_failed(
    trigger: str, status: Any, said: str, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is told to end stops its queries, which looks as if they had come to their end."""
    monkeypatch.setattr(module, "_refuses", lambda _: True)
    monkeypatch.setattr(module, "_connected", [("sc://there", ("127.0.0.1", 1))])
    plan = plan_of(tmp_path, trigger)
    report = Report("p", "1", targets={"out": Totals("out")})
    if said:
        report.diagnostics.append(Diagnostic("GB508", "error", said, "out"))
    stop = StopRequest()
    with told_of_its_end(plan, [plan.node("out")], Session(CONNECTED, True, ()), report, stop):
        report.end(status, 1.0)
    codes = [found.code for found in report.diagnostics]
    assert codes == (["GB525"] if asked else ["GB508"] if said else [])
    assert report.status == ("failed" if asked else status)
    assert ("out" in stop.failures) is asked


def test_a_run_that_can_not_reach_it_any_more_has_failed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    report, stop = Report("p", "1", targets={"out": Totals("out")}), StopRequest()
    with told_of_its_end(plan, [plan.node("out")], Session(CONNECTED, True, ()), report, stop):
        raise of_server(told("UNAVAILABLE"))
    assert ([found.code for found in report.diagnostics], report.status) == (["GB525"], "failed")


# How long it is asked for


def waited(port: int, clock: list[float]) -> float:
    """For how long pyspark's client asks for a server at a port that never answers."""
    client = Client()
    patience = watched(SimpleNamespace(client=client), f"sc://127.0.0.1:{port}")  # type: ignore[arg-type]
    assert not patience.closing
    return asked(client, clock)


class Client:
    """The part of pyspark's client that has to do with its patience."""

    def __init__(self) -> None:
        self._policies = [DefaultPolicy(max_retries=8)]

    def get_retry_policies(self) -> list[DefaultPolicy]:
        return list(self._policies)

    def set_retry_policies(self, policies: list[DefaultPolicy]) -> None:
        self._policies = policies


def asked(client: Client, clock: list[float]) -> float:
    began = clock[0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    def ask() -> None:
        for attempt in Retrying(client.get_retry_policies(), sleep=sleep):
            with attempt:
                raise Unanswered

    with pytest.raises((grpc.RpcError, PySparkException)) as raised:
        ask()
    assert lost_server(raised.value) is not None
    return clock[0] - began


@pytest.mark.servers
def test_a_server_that_has_ended_is_not_asked_for_long(closed: int, clock: list[float]) -> None:
    assert 10 <= waited(closed, clock) < 30


@pytest.mark.servers
def test_one_that_may_come_back_is_asked_for_as_long_as_pyspark_does(
    listening: int, clock: list[float]
) -> None:
    assert waited(listening, clock) > 100


@pytest.mark.servers
def test_once_it_is_gone_nothing_waits_for_it(closed: int, clock: list[float]) -> None:
    client = Client()
    watched(SimpleNamespace(client=client), f"sc://127.0.0.1:{closed}")  # type: ignore[arg-type]
    asked(client, clock)
    assert asked(client, clock) == 0


@pytest.mark.servers
def test_refusals_that_lie_apart_are_not_one_failure(closed: int, clock: list[float]) -> None:
    patience = Patience(("127.0.0.1", closed))
    assert not patience.is_over()
    clock[0] += 3600
    assert not patience.is_over()
    clock[0] += 10
    assert patience.is_over()


@pytest.mark.servers
def test_a_session_that_is_closed_waits_for_nobody(listening: int, clock: list[float]) -> None:
    client = Client()
    spark = SimpleNamespace(client=client, stop=lambda: stopped.append(asked(client, clock)))
    stopped: list[float] = []
    patience = watched(spark, f"sc://127.0.0.1:{listening}")  # type: ignore[arg-type]
    Session(spark, True, (), _patience=patience).close()  # type: ignore[arg-type]
    assert stopped[0] < 30


def test_of_a_session_that_was_there_nothing_is_put_back_then() -> None:
    def refuse(*_: str) -> None:
        raise of_server(told("UNAVAILABLE"))

    spark = SimpleNamespace(conf=SimpleNamespace(set=refuse, unset=refuse))
    Session(spark, False, (), _before={"spark.sql.shuffle.partitions": "3"}).close()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "address", "place"),
    [
        ("sc://spark.example.com", "sc://spark.example.com", ("spark.example.com", 15002)),
        (URL, "sc://spark.example.com:15002", ("spark.example.com", 15002)),
        ("unix:///databricks/grpc.sock", "unix:///databricks/grpc.sock", None),
        ("local[2]", "local[2]", None),
    ],
)
def test_addresses(
    url: str, address: str, place: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "getproxies", dict)
    assert (address_of(url), socket_of(url)) == (address, place)
    monkeypatch.setattr(module, "getproxies", lambda: {"http": "http://proxy:3128"})
    assert socket_of(url) is None
