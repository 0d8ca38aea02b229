"""How much the command does to answer `--help`, as a multiple of importing click alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.counting import calls_of_command, calls_of_program

pytestmark = pytest.mark.programs


@pytest.mark.parametrize(("arguments", "times"), [(["--help"], 6), (["run", "-h"], 2)])
def test_help_does_little_more_than_import_click(arguments: list[str], times: int) -> None:
    assert calls_of_command(*arguments) < times * calls_of_program("import click")


@pytest.mark.parametrize(
    ("arguments", "collects"),
    [(["explain", "GB101"], False), (["run", "--help"], True), (["check", "--watch", "--help"], True)],
)
def test_only_commands_that_stay_collect_garbage(arguments: list[str], collects: bool) -> None:
    script = (
        "import gc, sys\n"
        "from gem_bundle.cli import entry\n"
        f"sys.argv = ['gem-bundle', *{arguments!r}]\n"
        "try:\n    entry()\nexcept SystemExit:\n    print(gc.isenabled())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(collects)
