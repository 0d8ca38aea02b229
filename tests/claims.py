"""Processes that share the tests that start nothing: each claims a file of tests at a time.

A scheduler that hands tests out is told of every step of each. Of ten thousand tests that take some milliseconds each,
that is a quarter of the processors' time.

    python -m tests.claims ARGS     pytest with these arguments, one process for each processor
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def add_options(parser: pytest.Parser) -> None:
    """Take the option of one of the processes."""
    parser.getgroup("claims").addoption("--claims", type=Path, help="the folder where files are claimed")


class Claims:
    """What one of the processes runs, and how it came out.

    Args:
        folder: Where all of them claim files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests of the files that nobody else has claimed."""
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest says itself what couldn't be collected
        ours = self._ours(session.items)
        item = next(ours, None)
        while item is not None:
            following = next(ours, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def _ours(self, items: list[pytest.Item]) -> Iterator[pytest.Item]:
        claimed: dict[Path, bool] = {}
        for item in items:
            if item.path not in claimed:
                claimed[item.path] = self._claim(item.nodeid.partition("::")[0])
            if claimed[item.path]:
                yield item

    def _claim(self, name: str) -> bool:
        try:
            (self._folder / name.replace("/", ".")).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Leave behind how many tests came out how."""
        stats = terminalreporter.stats
        counts = {how: len(stats[how]) for how in stats if how not in {"", "deselected"}}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(counts))


def main(*arguments: str) -> int:
    """Run pytest in as many processes as there are processors; what the others say comes behind the first one's.

    Args:
        arguments: Those of pytest.

    Returns:
        The first exit status that isn't 0.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gem-bundle-claims-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "pytest", f"--claims={name}", *arguments]
        others = []
        for number in range(1, len(os.sched_getaffinity(0))):
            with (folder / f"{number}.out").open("w") as out:
                others.append(subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL))
        statuses = [subprocess.run(command, check=False).returncode]
        statuses += [other.wait() for other in others]
        for number in range(1, len(statuses)):
            sys.stdout.write((folder / f"{number}.out").read_text())
        counts: Counter[str] = Counter()
        for file in folder.glob("*.json"):
            counts.update(json.loads(file.read_text()))
    told = ", ".join(f"{count:,} {how}" for how, count in counts.items())
    print(f"All {len(statuses)} processes: {told} in {time.monotonic() - began:.1f} s")
    return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
