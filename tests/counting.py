"""How much work something is, counted: the same on every machine, however busy it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ROOT: Final = Path(__file__).parents[1]


def calls_of(function: Callable[[], Any]) -> int:
    """How many functions are called until one returns: those of Python, and those that are written in C."""
    found = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal found
        found += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return found


def calls_of_command(*arguments: str | Path, path: Path | None = None, cwd: Path | None = None) -> int:
    """How many functions are called by `gem-bundle` in a process of its own, its imports among them.

    Args:
        arguments: What is typed behind `gem-bundle`.
        path: A folder that comes first on Python's path.
        cwd: Where it is typed.
    """
    return calls_of_program(_COMMAND, *arguments, path=path, cwd=cwd)


def calls_of_program(
    code: str, *arguments: str | Path, path: Path | None = None, cwd: Path | None = None
) -> int:
    """How many functions a Python program calls, its imports among them.

    Args:
        code: The program.
        arguments: Its arguments.
        path: A folder that comes first on Python's path.
        cwd: Where it runs.
    """
    folders = [str(folder) for folder in (path, ROOT) if folder is not None]
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.counting import calls_of\n{_PROBE}", code, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stderr.splitlines()[-1])


_PROBE: Final = """
import sys
code = sys.argv.pop(1)
print(calls_of(lambda: exec(code, {})), file=sys.stderr)
"""
_COMMAND: Final = """
import sys
from gem_bundle.cli import main
try:
    main(sys.argv[1:], prog_name="gem-bundle")
except SystemExit as end:
    assert not end.code, end.code
"""
