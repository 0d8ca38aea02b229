"""A command that is killed again and again, at moments that are drawn."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.samples import examples, seed

ROOT = Path(__file__).parents[2]
KILLS = examples(1, 20)

# A function, and how often it is called in a micro-batch of a group of three Delta tables, about.
_MOMENTS = (
    ("gem_delta.target:DeltaTarget.write_batch", 3),
    ("gem_bundle.run.groups:GroupQuery._write", 1),
    ("gem_bundle.run.groups:GroupQuery._write_all", 1),
    ("gem_bundle.run.held:Observations.held", 1),
)
_MICRO_BATCHES = 2


def kill_often(*arguments: str | Path) -> list[str]:
    """Run a command so often, and kill it each time at another moment of one of its first micro-batches.

    Args:
        arguments: The command's arguments.

    Returns:
        At which moments it died.
    """
    drawn = Random(seed())
    died = []
    for _ in range(KILLS):
        where, calls = drawn.choice(_MOMENTS)
        when, number = drawn.choice(("before", "behind")), drawn.randint(1, calls * _MICRO_BATCHES)
        kill_at(where, when, number, *arguments)
        died.append(f"{when} {where} {number}")
    return died


def kill_at(where: str, when: str, number: int, *arguments: str | Path) -> None:
    """Run a command until it dies, which it must.

    Args:
        where: At which function, as `tests.integration.killed_program` takes it.
        when: ``before`` or ``behind`` it.
        number: At which of its calls.
        arguments: The command's arguments.
    """
    program = [sys.executable, "-m", "tests.integration.killed_program", where, when, str(number)]
    ended = subprocess.run(
        [*program, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, f"{when} {where} {number}: {ended.stderr[-2000:]}"
