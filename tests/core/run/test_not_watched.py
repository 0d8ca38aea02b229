"""A run that nobody watches imports nothing of what watches, and starts nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.run.test_recorder import PIPELINE

ROOT = Path(__file__).parents[3]
# All of a run but for Spark.
PROGRAM = """
import json, sys, threading
from contextlib import contextmanager
from types import SimpleNamespace
import gem_bundle.run.api as api
from gem_bundle.run.options import RunOptions, ServeOptions

threads = []

@contextmanager
def open_for(*_, **__):
    yield SimpleNamespace(spark=None, drop_classes=lambda: None)

def run_queries(plan, targets, spark, report, view, stop, **_):
    report.start()
    view.started(report)
    threads.extend(thread.name for thread in threading.enumerate())
    report.end("finished", 0.0)

api.open_for, api.run_queries = open_for, run_queries
api.check_groups = lambda *_: []
given = {"serve": ServeOptions(), "lineage": "events.jsonl"} if sys.argv[2:] else {}
assert api.run_file(sys.argv[1], RunOptions(quiet=True, **given)).ok
print(json.dumps({"modules": sorted(sys.modules), "threads": threads}))
"""
WATCHING = {"starlette", "uvicorn", "prometheus_client", "openlineage", "asyncio", "requests", "httpx"}
OWN = ("gem_bundle.run.serving", "gem_bundle.run.openlineage")


def ran(folder: Path, *arguments: str) -> tuple[set[str], set[str]]:
    """The modules of a run that watch it, and the threads that it had."""
    file = folder / "clicks.yaml"
    file.write_text(PIPELINE)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, file, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    modules = {
        name for name in found["modules"] if name.partition(".")[0] in WATCHING or name.startswith(OWN)
    }
    return modules, {name for name in found["threads"] if name.startswith("gem-bundle-")}


@pytest.mark.programs
@pytest.mark.network
def test_what_nobody_asked_for_is_neither_imported_nor_started(tmp_path: Path) -> None:
    assert ran(tmp_path) == (set(), {"gem-bundle-record"})
    modules, threads = ran(tmp_path, "watched")
    assert {"uvicorn", "prometheus_client", "openlineage", "starlette"} <= modules
    assert threads == {"gem-bundle-record", "gem-bundle-serve", "gem-bundle-lineage"}
