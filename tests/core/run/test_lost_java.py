"""Java ends before the run does: who is told what, with a process and a port that stand in for it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from gem_bundle.cli.errors import explain
from gem_bundle.run import lost_java
from gem_bundle.run.session import Session

if TYPE_CHECKING:
    from pathlib import Path


class Process:
    """A process that answers each look with the next status, and from then on with the last one."""

    def __init__(self, *statuses: int | None) -> None:
        self._statuses = list(statuses)

    def poll(self) -> int | None:
        return self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]


def connect(monkeypatch: pytest.MonkeyPatch, port: int, process: Process | None) -> None:
    gateway = SimpleNamespace(gateway_parameters=SimpleNamespace(address="127.0.0.1", port=port))
    if process is not None:
        gateway.proc = process
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(lost_java, "_LOOK_SECONDS", 0.001)


@pytest.mark.parametrize(
    ("status", "says", "hint"),
    [
        (-9, "is gone: it was ended by SIGKILL", "memory runs out"),
        (137, "is gone: it was ended by SIGKILL", "memory runs out"),
        (143, "is gone: it was ended by SIGTERM", "KillMode=mixed"),
        (-15, "is gone: it was ended by SIGTERM", "KillMode=mixed"),
        (52, "is gone: it had no memory left", "spark.driver.memory"),
        (-6, "is gone: it was ended by SIGABRT", "Spark's log is"),
        (1, "is gone: it ended with status 1", "Spark's log is"),
    ],
)
@pytest.mark.servers
def test_it_is_told_how_it_ended(
    status: int, says: str, hint: str, closed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, closed, Process(status))

    lost = lost_java.lost_java("ValueError: whatever", tmp_path / "spark.log")

    assert lost is not None
    assert lost.code == "GB524"
    assert lost.message.endswith(says)
    assert hint in lost.hint
    assert f"{tmp_path / 'spark.log'}" in lost.hint
    assert "The next run goes on" in lost.hint


@pytest.mark.servers
def test_the_process_of_somebody_else_is_known_by_its_port(
    closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, closed, None)
    lost = lost_java.lost_java("ConnectionRefusedError: [Errno 111] Connection refused")
    assert lost is not None
    assert lost.message == "Java, in which Spark runs, is gone"


@pytest.mark.servers
def test_its_hooks_are_waited_for(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, listening, Process(None, None, None, 143))
    assert lost_java.lost_java("Job 3 cancelled because SparkContext was shut down") is not None


@pytest.mark.servers
def test_what_fails_while_it_lives_is_not_blamed_on_it(
    listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, listening, Process(None))
    monkeypatch.setattr(lost_java, "_PATIENCE_SECONDS", 0.01)
    for said in ("ConnectionRefusedError: a broker's", "py4j.protocol.Py4JNetworkError: a moment's"):
        assert lost_java.lost_java(said) is None
    assert not lost_java.has_lost_java()


def test_none_is_looked_for_over_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # by pyspark, as soon as it talks to a server
    monkeypatch.delattr("pyspark.SparkContext")  # `pyspark-client` has none
    assert lost_java.lost_java("Py4JNetworkError") is None
    assert not lost_java.has_lost_java()
    lost_java.forget_java()


def test_there_is_none_before_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    assert lost_java.lost_java("Py4JNetworkError") is None
    assert not lost_java.has_lost_java()


@pytest.mark.servers
def test_a_session_has_nothing_to_stop_then(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, closed, Process(-9))
    monkeypatch.setattr(SparkContext, "_jvm", object())
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    for name in ("_instantiatedSession", "_activeSession"):  # a worker has a session of its own
        monkeypatch.setattr(SparkSession, name, None)

    Session(spark=None, owned=True, settings=()).close()  # type: ignore[arg-type]

    assert SparkContext._gateway is SparkContext._jvm is SparkContext._active_spark_context is None


@pytest.mark.servers
def test_no_command_calls_it_a_bug(
    closed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(monkeypatch, closed, Process(-9))
    assert explain(ConnectionRefusedError(111, "Connection refused"), "gem-bundle check") == 1
    said = capsys.readouterr().err
    assert said.startswith("error[GB524]: Java, in which Spark runs, is gone")
    assert "bug" not in said


def test_py4j_tells_nothing_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    with lost_java.untold_by_py4j():
        logging.exception("Exception while sending command.")
        logging.error("Somebody else's trouble.")
    logging.error("Exception while sending command.")
    assert [record.message for record in caplog.records] == [
        "Somebody else's trouble.",
        "Exception while sending command.",
    ]
