"""What the integration tests share: pipeline files, input files that appear whole, runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.api import run_pipeline
from gem_bundle.run.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gem_bundle.run.report import Report
    from gem_bundle.run.supervisor import View


def write_pipeline(folder: Path, text: str, name: str = "pipeline.yaml") -> Path:
    """A pipeline file in a folder."""
    file = folder / name
    file.write_text(text)
    return file


def add_rows(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """A file of JSON rows that a file source sees at once and whole."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder.parent / f".{folder.name}.{name}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(folder / name)


def run(file: Path, view: View | None = None, **options: Any) -> Report:
    """Run a pipeline file in this process, in the session that is there."""
    return run_pipeline(lambda load: load_file(file, load), RunOptions(quiet=True, **options), view)


def command(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start `gem-bundle` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "gem_bundle", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The progress of a running command, line by line."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{"):
            yield json.loads(line)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a command: its exit status and what it printed."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err
