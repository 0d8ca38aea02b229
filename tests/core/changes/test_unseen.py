"""A checkpoint that can't be looked at when a run starts: whether that stops it, and what is written down."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes import planning
from gem_bundle.changes.checkpoint import UnseenError
from gem_bundle.changes.history import keep_versions
from gem_bundle.changes.planning import hold_to_plan
from gem_bundle.changes.record import read_record
from gem_bundle.errors import PipelineError
from gem_bundle.files import NEW_CREDENTIALS, below, open_folder
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.run.api import run_pipeline
from tests.checked import plan_of
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.plan import Plan

TEXT = """\
pipeline: shop
checkpoints: ROOT
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string"}}
transforms:
  counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""
BUSY = "OSError: [Errno 16] Please reduce your request rate."


class Shop:
    """A pipeline that has run, and was edited so that a run would mix rows.

    Args:
        file: The pipeline's file.
        text: What stands in it.
    """

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        file.write_text(text)
        left_by_a_run(file)
        self.edit(text.replace("count(*)", "count(page)"))

    def edit(self, text: str) -> None:
        self.file.write_text(text)

    @property
    def plan(self) -> Plan:
        return plan_of(self.file, LoadOptions(environment={}))

    @property
    def versions(self) -> int:
        record = read_record(self.plan.definition.record("out"))
        return 0 if record is None else len(record.versions)

    def run(self, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], object] = object) -> list[Diagnostic]:
        """What a run warns of, whose session is none; something may happen while that starts."""
        warned: list[Diagnostic] = []

        def started(*_: object, **__: object) -> AbstractContextManager[object]:
            opened()
            return nullcontext(SimpleNamespace(spark=None, log=None, drop_classes=lambda: None))

        with monkeypatch.context() as patched:
            patched.setattr("gem_bundle.run.api.open_for", started)
            patched.setattr("gem_bundle.run.api._hold_to_session", lambda *_: None)
            patched.setattr("gem_bundle.run.api.run_queries", lambda *_, **__: None)
            run_pipeline(lambda options: load_file(self.file, options), warn=warned.append)
        return warned


@pytest.fixture
def elsewhere(tmp_path: Path) -> Shop:
    """One whose checkpoint lies in a store."""
    return Shop(tmp_path / "shop.yaml", TEXT.replace("ROOT", f"memory://{uuid.uuid4().hex}"))


def raising(said: str) -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise UnseenError(said)

    return raises


def stopped(shop: Shop, seen: tuple[str, ...] = ()) -> Diagnostic:
    with pytest.raises(PipelineError) as caught:
        hold_to_plan(shop.plan, ["out"], seen=seen)
    (found,) = caught.value.diagnostics
    return found


@pytest.mark.parametrize(
    "said",
    [
        BUSY,
        "OSError: [Errno 121] We encountered an internal error. Please try again.",
        "OSError: Service is unable to handle request.",
        "TimeoutError: Your socket connection was not read from or written to within the timeout period.",
        "HttpError: Too Many Requests",
        "ServiceRequestError: The server is busy",
        "ClientError: SlowDown (503)",
    ],
)
def test_a_store_that_does_not_answer_this_time_stops_the_run(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(planning, "read_checkpoint", raising(said))
    found = stopped(elsewhere)
    assert (found.code, found.line) == ("GB406", 8)
    assert f"the checkpoint of target `out` can't be seen from here: {said}" in found.message
    assert found.hint.startswith("Nothing was processed: ")
    assert "Start the run again" in found.hint


def test_credentials_that_have_expired_stop_it_and_new_ones_are_asked_for(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        planning, "read_checkpoint", raising("PermissionError: The provided token has expired.")
    )
    assert stopped(elsewhere).hint == f"The credentials have expired. {NEW_CREDENTIALS}"


@pytest.mark.parametrize(
    "said",
    [
        "Install s3fs to access S3",
        "NoCredentialsError: Unable to locate credentials",
        "PermissionError: Access Denied",
        "EndpointConnectionError: Could not connect to the endpoint URL",
        "OSError: Unable to load libhdfs",
    ],
)
def test_what_can_not_be_read_from_here_is_left_to_spark_with_a_warning(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr("gem_bundle.changes.history.read_checkpoint", raising(said))
    monkeypatch.setattr("gem_bundle.run.api.read_checkpoint", raising(said))
    monkeypatch.setattr(planning, "read_checkpoint", raising(said))
    assert hold_to_plan(elsewhere.plan, ["out"]) == {}
    (warning,) = elsewhere.run(monkeypatch)
    assert warning.code == "GB405"
    assert said in warning.message
    assert elsewhere.versions == 1


def test_what_could_be_read_a_moment_ago_can_be_read_from_here(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "read_checkpoint", raising("PermissionError: Access Denied"))
    assert stopped(elsewhere, seen=("out",)).code == "GB406"
    with pytest.raises(PipelineError, match="GB406"):
        elsewhere.run(monkeypatch, pytest.fail)
    assert elsewhere.versions == 1


def test_what_can_be_read_when_spark_has_started_is_compared_then(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = raising("PermissionError: Access Denied")

    def answer() -> None:
        back.undo()

    with monkeypatch.context() as back:
        back.setattr("gem_bundle.run.api.read_checkpoint", refused)
        back.setattr(planning, "read_checkpoint", refused)
        with pytest.raises(PipelineError, match="mixed: transform `counts`"):
            elsewhere.run(monkeypatch, answer)
    assert elsewhere.versions == 1

    elsewhere.edit(elsewhere.file.read_text().replace("count(page)", "count(*)"))
    with monkeypatch.context() as back:
        back.setattr("gem_bundle.run.api.read_checkpoint", refused)
        back.setattr(planning, "read_checkpoint", refused)
        assert elsewhere.run(monkeypatch, answer) == []


def test_a_version_that_was_not_compared_is_not_written_down(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = raising("PermissionError: Access Denied")
    monkeypatch.setattr("gem_bundle.run.api.read_checkpoint", refused)
    monkeypatch.setattr(planning, "read_checkpoint", refused)
    (warning,) = elsewhere.run(monkeypatch)
    assert warning.code == "GB405"
    assert "couldn't be looked at before the start" in warning.message
    assert elsewhere.versions == 1


def test_a_record_that_can_not_be_read_this_time_stops_the_run(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: str) -> None:
        raise OSError(16, "Please reduce your request rate.")

    monkeypatch.setattr("gem_bundle.changes.history.read_record", busy)
    found = stopped(elsewhere)
    assert (found.code, found.severity) == ("GB406", "error")
    assert "the record of the checkpoint of target `out` can't be seen from here: OSError" in found.message
    assert "Start the run again" in found.hint


def test_what_lies_on_this_machine_spark_reads_as_the_same_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "shop.yaml", TEXT.replace("ROOT", "checkpoints"))
    monkeypatch.setattr(planning, "read_checkpoint", raising("PermissionError: [Errno 13] Permission denied"))
    assert "as a user who may read it" in stopped(shop).hint
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert hold_to_plan(shop.plan, ["out"]) == {}


def test_a_checkpoint_whose_damage_is_seen_only_then_stops_the_run(
    elsewhere: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_folder(below(elsewhere.plan.definition.checkpoint("out"), "offsets")).write("0", b"")
    assert stopped(elsewhere).code == "GB402"
    assert keep_versions(elsewhere.plan, ["out"], {})[0].code == "GB405"
