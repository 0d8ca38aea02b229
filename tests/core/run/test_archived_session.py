"""Which sessions are started with an archive of classes, and which do without; no Java is started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run import java as javas
from gem_bundle.run import session as sessions
from gem_bundle.run.environment import open_plan_session
from gem_bundle.run.session import SessionRequest, open_session
from gem_bundle.testing.running.session import open_session_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gem_bundle.run.java import Java
    from gem_bundle.run.spark_settings import Setting

GIVEN = "spark.driver.defaultJavaOptions"
MORE = "spark.driver.extraJavaOptions"
PIPELINE = "pipeline: p\nsources: {a: {gem: rate}}\ntargets: {b: {gem: noop, input: a}}\n"


@pytest.fixture
def started(tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The settings of each Spark that would have been started here, in a process without one."""
    from pyspark import SparkContext

    found: list[dict[str, str]] = []

    def build(settings: Mapping[str, Setting]) -> Any:
        found.append({key: setting.value for key, setting in settings.items()})
        return SimpleNamespace(stop=lambda: None)

    monkeypatch.setattr(sessions, "_running", lambda: None)
    monkeypatch.setattr(sessions, "_build", build)
    monkeypatch.setattr(javas, "find_java", lambda: java)
    monkeypatch.setattr(SparkContext, "getSystemProperty", lambda _: "jars")
    monkeypatch.setenv("GEM_BUNDLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    # So that they are put back.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "python")
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    return found


def request(folder: Path, **given: Any) -> SessionRequest:
    return SessionRequest(
        "archived", spark_log=folder / "spark.log", class_archive=folder / "classes", **given
    )


@pytest.mark.parametrize("brief", [True, False])
def test_what_an_archive_takes_comes_behind_the_defaults(
    tmp_path: Path, started: list[dict[str, str]], *, brief: bool
) -> None:
    open_session(request(tmp_path, settings={MORE: "-Da='b c' -XX:+UseZGC"}, brief=brief))
    (told,) = started
    given = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m " if brief else ""
    assert told[GIVEN].startswith(f"{given}-Xlog:class+load=debug:file={tmp_path}/classes/")
    assert told[MORE] == "-Da='b c' -XX:+UseZGC"


@pytest.mark.parametrize("by", ["pipeline", "project", "machine"])
def test_java_options_that_somebody_gives_stay_as_they_are(
    tmp_path: Path, started: list[dict[str, str]], by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "class_archive", forbidden)
    options = {GIVEN: "-Da=b -XX:+UseZGC"}
    if by == "machine":
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text(f"{GIVEN} {options[GIVEN]}\n")
    settings = options if by == "pipeline" else {}
    defaults = options if by == "project" else {}
    open_session(request(tmp_path, settings=settings, defaults=defaults, brief=True))
    (told,) = started
    assert told[GIVEN] == options[GIVEN]
    assert MORE not in told
    assert not (tmp_path / "classes").exists()


def test_on_databricks_nothing_is_asked_or_written(
    tmp_path: Path, started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "class_archive", forbidden)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    open_session(request(tmp_path))
    (told,) = started
    assert GIVEN not in told
    assert not (tmp_path / "classes").exists()


def forbidden(*_: Any, **__: Any) -> None:
    pytest.fail("it was asked for an archive of classes")


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("tests", [True, False], ids=["tests", "run"])
def test_a_project_that_wants_none_uses_none_and_writes_none(
    tmp_path: Path, started: list[dict[str, str]], *, tests: bool, wanted: bool
) -> None:
    (tmp_path / "gem-bundle.toml").write_text(f"[session]\nclass_archive = {str(wanted).lower()}\n")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    if tests:
        open_session_for(folder=tmp_path)
    else:
        plan = check_definition(load_file(tmp_path / "p.yaml")).plan
        assert plan is not None
        open_plan_session(plan)
    (told,) = started
    assert ("class+load" in told.get(GIVEN, "")) is wanted
    assert (tmp_path / "cache" / "classes").exists() is wanted
