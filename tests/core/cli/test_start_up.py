"""How long the command takes to answer `--help`, as a multiple of what click alone takes."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

import pytest

LIMIT = 2.5
RUNS = 5


def seconds(code: str) -> float:
    """Processor time of a Python process: unlike time on the clock it doesn't depend on who else works."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@pytest.mark.parametrize("arguments", [["--help"], ["run", "-h"]])
def test_help_is_instant(arguments: list[str]) -> None:
    ours = f"from gem_bundle.cli import main; main({arguments!r}, prog_name='gem-bundle')"
    pairs = [(seconds("import click"), seconds(ours)) for _ in range(RUNS)]
    ratio = statistics.median(help_ for _, help_ in pairs) / statistics.median(click for click, _ in pairs)
    assert ratio < LIMIT


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
