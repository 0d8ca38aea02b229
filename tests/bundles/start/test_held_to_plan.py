"""A bundle of an edited pipeline: its start is stopped by the plan, in its words, before Spark starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import UnseenError
from gem_bundle.changes.record import Record, read_record, write_record
from gem_bundle.check.checker import check_definition
from gem_bundle.errors import GemError
from gem_bundle.pipeline.loader import LoadOptions
from gem_bundler.bundle.inside import Installed
from gem_bundler.start import main
from tests.bundles.bundling import bundle_folder
from tests.bundles.making import built, write_files
from tests.samples import a_started_bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXT = """\
pipeline: NAME
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "page string, amount int"}}
transforms:
  totals: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: max(amount)}}}
targets:
  table: TARGET
"""
SHOWN = TEXT.replace("TARGET", "{gem: console, input: totals, output_mode: complete}")
WRITTEN = TEXT.replace("TARGET", "{gem: delta, input: totals, output_mode: complete, options: {path: out}}")
WORDS = 'transform `totals`: `aggregates` was `{"n": "max(amount)"}` and is `{"n": "min(amount)"}`'


def edited(text: str) -> str:
    """The numbers of the old rule would get into the new results, without a word from Spark."""
    assert "max(amount)" in text
    return text.replace("max(amount)", "min(amount)")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "h" + sha256(request.node.nodeid.encode()).hexdigest()[:10]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[str], str]:
    """Build a bundle and have it in place of the one before; gives its package. The current folder is the root."""
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path / "root")
    made: list[Path] = []

    def install(text: str) -> str:
        files: dict[str, str | bytes] = {f"{name}.yaml": text.replace("NAME", name)}
        wheel = built(write_files(tmp_path / "project", files), f"{name}.yaml")
        archive = tmp_path / f"{len(made)}.zip"
        archive.write_bytes(wheel.data)
        for module in [found for found in sys.modules if found.partition(".")[0] == wheel.manifest.package]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.syspath_prepend(str(archive))
        made.append(archive)
        return wheel.manifest.package

    return install


def left_by_a_start(package: str, root: Path) -> Path:
    """What a start of a bundle leaves: a checkpoint with one micro-batch, and the record beside it."""
    inside = Installed(package)
    plan = check_definition(inside.load(inside.pipeline(None), root, LoadOptions(environment={}))).plan
    assert plan is not None
    place = root / plan.definition.checkpoint("table")
    files: dict[str, str | bytes] = {
        "metadata": '{"id": "q"}',
        "offsets/0": 'v2\n{"batchWatermarkMs": 0, "conf": {}}\nclicks:{"logOffset": 0}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs": 0}',
    }
    write_files(place, files)
    write_record(str(place), Record("table", (version_of(plan, "table"),), "q"))
    return place


def all_files(folder: Path) -> dict[Path, bytes]:
    """What is in a folder, but for leases and locks."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path: path.read_bytes() for path in found if ".lease." not in path.name and path.suffix != ".lock"
    }


def test_a_start_is_stopped_before_anything_happens(
    install: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def started(*_: object, **__: object) -> Any:
        raise GemError("GB512", "Spark was to start", "")

    monkeypatch.setattr("gem_bundle.run.api.open_for", started)
    package = install(SHOWN)
    left_by_a_start(package, tmp_path / "root")
    assert main(package, ["--plan"]) == 0
    assert capsys.readouterr().out.startswith("target table: same\n")
    assert main(package, []) == 1
    assert "error[GB512]: Spark was to start" in capsys.readouterr().err

    package = install(edited(SHOWN))
    before = all_files(tmp_path / "root")
    assert main(package, ["--plan"]) == 1
    planned = capsys.readouterr().out
    assert planned.startswith("target table: mixed\n")
    (told,) = (line for line in planned.splitlines() if "mixed[GB423]: " in line)
    words = told.partition("mixed[GB423]: ")[2]
    assert words.startswith(WORDS)

    assert main(package, ["--available-now"]) == 1
    said = capsys.readouterr().err
    assert f"yaml:5:83: error[GB423]: mixed: {words}\n" in said
    assert "To run it nevertheless: `--accept GB423:totals`." in said
    assert "Spark was to start" not in said
    assert all_files(tmp_path / "root") == before

    assert main(package, ["--plan", "--accept", "GB423:totals"]) == 0
    assert f"mixed[GB423] (accepted): {words}\n" in capsys.readouterr().out
    assert main(package, ["--plan", "--accept", "GB423:clicks"]) == 1
    assert "GB408" not in capsys.readouterr().err
    assert main(package, ["--plan", "--accept", "GB423:total"]) == 1
    assert "warning[GB408]: nothing is accepted by `GB423:total`: it names no node" in capsys.readouterr().err
    assert main(package, ["--plan", "--fresh", "tables"]) == 1
    assert "error[GB108]" in capsys.readouterr().err
    assert main(package, ["--plan", "--fresh", "table"]) == 0
    assert capsys.readouterr().out.startswith("target table: from_now_on\n")
    assert main(package, ["--accept", "GB423:totals"]) == 1
    said = capsys.readouterr().err
    assert "error[GB512]: Spark was to start" in said
    assert "GB423" not in said


def test_a_start_tells_the_warnings_of_its_run_once(
    install: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def unseen(*_: object) -> Any:
        raise UnseenError("ImportError: Install s3fs to access S3")

    session = SimpleNamespace(spark=None, drop_classes=lambda: None)
    monkeypatch.setattr("gem_bundle.run.api.open_for", lambda *_, **__: nullcontext(session))
    monkeypatch.setattr("gem_bundle.run.api._hold_to_session", lambda *_: None)
    monkeypatch.setattr("gem_bundle.run.api.run_queries", lambda *_, **__: None)
    spare = "  spare: {gem: filter, input: clicks, options: {condition: amount > 0}}\ntargets:"
    package = install(SHOWN.replace("targets:", spare))
    left_by_a_start(package, tmp_path / "root")
    monkeypatch.setattr("gem_bundle.changes.history.read_checkpoint", unseen)
    assert main(package, ["--available-now", "--accept", "GB423:total"]) == 0
    said = capsys.readouterr().err
    assert (
        said.count("warning[GB405]: no record is kept of what runs on the checkpoint of target `table`") == 1
    )
    assert said.count("warning[GB408]: nothing is accepted by `GB423:total`: it names no node") == 1
    assert said.count("warning[GB103]: the transform `spare` is not used") == 1  # both checks find it


def test_one_that_is_kept_alive_does_not_take_its_plan_for_a_stream_that_runs(
    install: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_by_a_start(install(SHOWN), tmp_path / "root")
    assert main(install(edited(SHOWN)), ["--keep-alive"]) == 1
    said = capsys.readouterr().err
    assert "error[GB423]: mixed: " in said
    assert "nothing to do" not in said


@pytest.mark.programs
def test_submit_sh_says_the_plan_without_any_java(
    install: Callable[[str], str], tmp_path: Path, name: str
) -> None:
    left_by_a_start(install(SHOWN), tmp_path / "root")
    install(edited(SHOWN))
    bundle = tmp_path / "dist" / "bundle"
    bundle_folder(tmp_path / "project", bundle, f"{name}.yaml", thin=True)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexit 1\n")
    java.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java.parents[1])}
    environment.pop("PYSPARK_DRIVER_PYTHON", None)

    def submitted(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", bundle / "submit.sh", "--plan", "--", *arguments],
            cwd=tmp_path / "root",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    done = submitted()
    assert (done.returncode, done.stderr) == (1, "")
    assert f"mixed[GB423]: {WORDS}" in done.stdout
    done = submitted("--accept", "GB423:totals")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"mixed[GB423] (accepted): {WORDS}" in done.stdout
    assert not (tmp_path / "asked").exists()


@a_started_bundle
@pytest.mark.spark
def test_the_second_start_of_an_edited_pipeline(
    install: Callable[[str], str],
    tmp_path: Path,
    name: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def add(number: int, *amounts: int) -> None:
        lines = [json.dumps({"page": "a", "amount": amount}) for amount in amounts]
        write_files(tmp_path / "root" / "in", {f"{number}.json": "\n".join(lines)})

    def written() -> list[tuple[str, int]]:
        return [tuple(row) for row in spark.read.format("delta").load(str(tmp_path / "root/out")).collect()]

    add(1, 10, 20)
    assert main(install(WRITTEN), ["--available-now"]) == 0, capsys.readouterr().err
    assert written() == [("a", 20)]
    add(2, 15)
    package = install(edited(WRITTEN))
    capsys.readouterr()
    with monkeypatch.context() as nothing:
        nothing.setattr("gem_bundle.run.api.open_for", pytest.fail)
        assert main(package, ["--available-now"]) == 1
    assert f"error[GB423]: mixed: {WORDS}" in capsys.readouterr().err
    assert written() == [("a", 20)]
    assert main(package, ["--available-now", "--accept", "GB423:totals"]) == 0, capsys.readouterr().err
    assert written() == [("a", 15)]  # neither the old rule's 20 nor the new one's 10
    record = read_record(str(tmp_path / "root/checkpoints" / name / "table"))
    assert record is not None
    assert [(one.code, one.node) for v in record.versions for one in v.accepted] == [("GB423", "totals")]
    assert main(package, ["--plan"]) == 0
    assert capsys.readouterr().out.startswith("target table: same\n")

    # And back, with new state.
    package = install(WRITTEN)
    add(3, 5)
    assert main(package, ["--available-now"]) == 1
    assert main(package, ["--available-now", "--fresh", "table"]) == 0, capsys.readouterr().err
    assert written() == [("a", 5)]
