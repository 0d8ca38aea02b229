"""Sessions that somebody else started: what is lacking there, by sessions that stand in for a server's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from gem_bundle import StreamReadContext
from gem_bundle.changes.damage import has_source_evolution
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.elsewhere import check_jars, check_version, lacking
from gem_bundle.run.session import Session, SessionRequest, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.pipeline.plan import Plan

TIMELY = """
pipeline: timely
sources:
  ticks: {gem: kafka, options: {bootstrap_servers: ["b:1"], subscribe: [t]}}
  files: {gem: file, options: {path: PLACE/in, format: json, schema: id int}}
targets:
  at_once: {gem: console, input: rows, output_mode: update, trigger: {real_time: 5 minutes}}
  later: {gem: file, input: files, options: {path: PLACE/out, format: json}}
transforms:
  rows: {gem: select, input: ticks, options: {columns: {value: cast(value as string)}}}
checkpoints: PLACE/checkpoints
"""
NAMING = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
QUIET = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class PathNotFound(AnalysisException):
    """As a server says it."""

    def getCondition(self) -> str:  # noqa: N802
        return "PATH_NOT_FOUND"


class SparkSession:
    """A session over Spark Connect that tells only what it has to, and sees no file of this machine."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, version: str = "4.2.0") -> None:
        self.version = version
        self.conf = SimpleNamespace(get=self._refuse, set=self._refuse, unset=self._refuse)
        self.read = SimpleNamespace(text=self._nowhere)
        self.readStream = SimpleNamespace(name=lambda _: pytest.fail("a name is refused"))

    def _refuse(self, key: str, *_: object) -> None:
        raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available.")

    def _nowhere(self, path: str) -> None:
        raise PathNotFound(f"[PATH_NOT_FOUND] Path does not exist: {path}.")


def plan_of(folder: Path, place: str = "/data") -> Plan:
    file = folder / "timely.yaml"
    file.write_text(TIMELY.replace("PLACE", place))
    checked = check_definition(load_file(file))
    assert checked.plan is not None, checked.diagnostics
    return checked.plan


def test_an_older_server_lacks_what_pyspark_here_has(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    (found,) = check_version(plan, SparkSession("4.1.1"), plan.order)  # type: ignore[arg-type]
    assert (found.code, found.severity, found.node) == ("GB370", "error", "at_once")
    assert found.message.endswith("PySpark has the trigger `real_time` since 4.2, not in 4.1.1")
    assert found.hint == "Run it on a server of a newer Spark, or do without."
    assert check_version(plan, SparkSession("4.1.1"), ["files", "later"]) == []  # type: ignore[arg-type]
    assert check_version(plan, SparkSession("4.2.0"), plan.order) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("databricks", "place", "unseen"),
    [
        (False, "/Volumes/main/streams", True),
        (True, "/Volumes/main/streams", False),
        (True, "/Workspace/streams", False),
        (True, "/tmp/streams", True),
    ],
)
def test_places_that_databricks_shares_are_seen_by_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, databricks: bool, place: str, unseen: bool
) -> None:
    if databricks:
        monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.5.0")
    plan = plan_of(tmp_path, place)
    session = Session(SparkSession(), False, ())  # type: ignore[arg-type]
    found = [diagnostic.code for diagnostic in lacking(plan, session, plan.order)]
    assert found == (["GB514"] if unseen else [])


def test_a_session_that_keeps_its_settings_to_itself_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = SparkSession()
    monkeypatch.setattr("gem_bundle.run.session._running", lambda: spark)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "client.5.0")
    session = open_session(SessionRequest("mine", settings={"spark.sql.shuffle.partitions": 3}))
    assert "spark.sql.shuffle.partitions" in {setting.key for setting in session.refused}
    plan = plan_of(tmp_path)
    assert check_jars(plan, session, plan.order) == []
    reader = StreamReadContext("ticks", spark, "ticks").reader
    assert reader is spark.readStream, "without a name, as nobody knows that it may have one"
    session.close()


@pytest.mark.parametrize("before", [None, "false"])
def test_sources_have_names_where_the_session_lets_them(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = SparkSession()
    monkeypatch.setattr("pyspark.sql.SparkSession.active", lambda: spark)
    assert not has_source_evolution({}), "a restart goes on without names, as the first run had to"
    settings = {} if before is None else {NAMING: before}
    spark.conf = SimpleNamespace(get=settings.get, set=settings.__setitem__, unset=settings.pop)
    assert has_source_evolution({})
    assert settings == ({} if before is None else {NAMING: before}), "it is as it was"


def test_what_a_server_refuses_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a session that was there; by itself pyspark's client prints it as JSON, too."""
    monkeypatch.setattr("gem_bundle.run.session._running", SparkSession)
    for name in QUIET:
        monkeypatch.setattr(PySparkLogger.getLogger(name), "disabled", False)
    session = open_session(SessionRequest("mine"))
    assert all(PySparkLogger.getLogger(name).disabled for name in QUIET)
    session.close()
    assert not any(PySparkLogger.getLogger(name).disabled for name in QUIET)
