"""Import paths that the docs have told: whoever followed them, whenever that was, needs no edit.

A path that a page tells anew is added here, and none goes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOLD = {
    "gem_bundle": (
        "Column",
        "Facts",
        "Field",
        "Finding",
        "GemError",
        "Options",
        "Pipeline",
        "PipelineView",
        "ReadContext",
        "Register",
        "Source",
        "SourceSemantics",
        "StreamReadContext",
        "Target",
        "TargetSemantics",
        "Transform",
        "WriteContext",
        "hookimpl",
    ),
    "gem_bundle.rejected": ("restored_rows",),
    "gem_bundle.testing": (
        "AddRows",
        "AdvanceWatermark",
        "CheckRows",
        "Restart",
        "SourceConformance",
        "TargetConformance",
    ),
    "gem_bundle.types": ("ByteSize", "DataPath", "FixedDuration", "StringList", "local_path"),
}
STARTED = ("gem_bundle.reference", "gem_bundle.describe.reference")
"""What is started with ``python -m``."""

_IMPORT = re.compile(r"\bfrom (gem_bundle[\w.]*) import (\([^)]*\)|[^\n`]*)")
_START = re.compile(r"\bpython -m (gem_bundle\.[\w.]+\w)")


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in TOLD.items() for name in names])
def test_what_the_docs_have_told_is_there(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)


@pytest.mark.programs
@pytest.mark.parametrize("module", STARTED)
def test_what_the_docs_have_told_is_started(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "-h"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: python -m gem_bundle.reference [OPTIONS] FOLDER\n")


def test_a_former_name_is_the_module_of_today() -> None:
    assert import_module("gem_bundle.describe.reference") is import_module("gem_bundle.reference")


def test_what_the_docs_tell_today_is_listed() -> None:
    listed = {(module, name) for module, names in TOLD.items() for name in names}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    told, started = set(), set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        started |= set(_START.findall(text))
        for module, names in _IMPORT.findall(text):
            told |= {(module, name) for name in re.findall(r"\w+", re.sub(r"#.*", "", names))}
    assert ("gem_bundle", "hookimpl") in told
    assert told - listed == set()
    assert started - {*STARTED} == set()
