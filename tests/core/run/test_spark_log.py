"""Where Spark's own log goes, also where nothing can be written.

A file in the place of a folder keeps everybody from writing there, also who may write everywhere else.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run import api, environment, lost_spark, session
from gem_bundle.run import java as javas
from gem_bundle.run.options import RunOptions
from gem_bundle.run.session import Session, SessionRequest, open_session
from gem_bundle.run.spark_log import begin_log

if TYPE_CHECKING:
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.java import Java

PIPELINE = "pipeline: p\nsources: {a: {gem: rate}}\ntargets: {b: {gem: noop, input: a}}\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, which isn't there yet."""
    monkeypatch.setenv("GEM_BUNDLE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_log_of_a_pipeline_is_in_the_cache(cache: Path, temporary: Path) -> None:
    assert begin_log(None, "clicks") == cache / "logs" / "clicks.log"
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("in_the_way", ["the cache", "the folder of logs", "the log"])
def test_where_the_cache_cannot_be_written_the_log_is_a_temporary_file(
    cache: Path, temporary: Path, in_the_way: str
) -> None:
    match in_the_way:
        case "the cache":
            cache.write_text("")
        case "the folder of logs":
            cache.mkdir()
            (cache / "logs").write_text("")
        case _:
            (cache / "logs" / "clicks.log").mkdir(parents=True)
    log = begin_log(None, "clicks")
    assert log == temporary / f"gem-bundle-{os.getuid()}" / "clicks.log"
    assert log.parent.stat().st_mode & 0o777 == 0o700
    log.write_text("of a run")
    assert begin_log(None, "clicks") == log
    assert log.read_text() == "of a run"


@pytest.mark.parametrize("in_the_way", ["nothing can be written", "the folder is somebody else's", "a link"])
def test_where_nothing_can_be_written_no_log_is_kept(
    cache: Path, temporary: Path, in_the_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("")
    own = temporary / f"gem-bundle-{os.getuid()}"
    match in_the_way:
        case "nothing can be written":
            own.write_text("")
        case "the folder is somebody else's":
            (temporary / "gem-bundle-12345").mkdir()
            monkeypatch.setattr(os, "getuid", lambda: 12345)
        case _:
            (temporary / "elsewhere").mkdir()
            own.symlink_to(temporary / "elsewhere")
    assert begin_log(None, "clicks") == Path(os.devnull)


def test_a_log_that_somebody_names_and_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_running", lambda: None)
    (tmp_path / "file").write_text("")
    log = tmp_path / "file" / "logs" / "spark.log"
    with pytest.raises(GemError) as caught:
        open_session(SessionRequest("clicks", spark_log=log))
    assert caught.value.code == "GB511"
    assert caught.value.message == f"Spark's log can't be written to {log}: Not a directory"
    assert caught.value.hint


@pytest.mark.parametrize("elsewhere", ["SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION"])
def test_no_log_is_asked_for_where_spark_is_somebody_elses(
    tmp_path: Path, cache: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[SessionRequest] = []
    monkeypatch.setattr(session, "_running", lambda: None)
    monkeypatch.setattr(environment, "open_session", requests.append)
    plan = plan_in(tmp_path)
    monkeypatch.setenv(elsewhere, "1")
    environment.open_plan_session(plan)
    monkeypatch.delenv(elsewhere)
    environment.open_plan_session(plan)
    assert [(request.spark_log, request.log_name) for request in requests] == [(None, ""), (None, "p")]


def test_a_log_is_begun_with_the_spark_that_writes_it(
    tmp_path: Path, cache: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_running", lambda: None)
    monkeypatch.setattr(session, "_connect", lambda _, request: session._adopt(object(), request, owned=True))
    monkeypatch.setattr(session, "_adopt", lambda spark, _, owned: Session(spark, owned, ()))
    monkeypatch.setattr(session, "_build", lambda _: object())
    monkeypatch.setattr(javas, "find_java", lambda: java)
    server = open_session(SessionRequest("p", {"spark.remote": "sc://somewhere"}, log_name="p"))
    assert (server.log, cache.exists()) == (None, False)
    own = open_session(SessionRequest("p", log_name="p"))
    assert own.log == cache / "logs" / "p.log"
    assert own.log.is_file()


def test_java_that_ends_under_somebody_elses_session_has_no_log_of_ours(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, object]] = []

    def lost(said: str, log: object = None) -> GemError:
        told.append((said, log))
        return GemError("GB524", "Java is gone")

    theirs = Session(SimpleNamespace(conf=None), owned=False, settings=())
    monkeypatch.setattr(api, "open_plan_session", lambda *_, **__: theirs)
    monkeypatch.setattr(api, "check_jars", lambda *_: [])
    monkeypatch.setattr(lost_spark, "lost_java", lost)
    with (
        pytest.raises(PipelineError, match="Java is gone"),
        api.open_for(plan_in(tmp_path), ["b"], RunOptions()),
    ):
        raise OSError("nobody answers")
    assert told == [("OSError: nobody answers", None)]
    assert not cache.exists()


def plan_in(folder: Path) -> Plan:
    (folder / "p.yaml").write_text(PIPELINE)
    plan = check_definition(load_file(folder / "p.yaml")).plan
    assert plan is not None
    return plan
