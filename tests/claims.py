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
from typing import TYPE_CHECKING, Protocol, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")


class _File(Protocol):
    @property
    def path(self) -> Path: ...

    @property
    def nodeid(self) -> str: ...


File = TypeVar("File", bound=_File)


def add_options(parser: pytest.Parser) -> None:
    """Take the option of one of the processes."""
    parser.getgroup("claims").addoption("--claims", type=Path, help="the folder where files are claimed")


class Claims:
    """What one of the processes runs, and how it came out.

    It reads no more files than it claims: to find the tests in all of them would be a good part of its work.

    Args:
        folder: Where all of them claim files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[pytest.File] = []
        self._reads = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Leave each file unread until it is claimed."""
        if self._reads or not isinstance(collector, pytest.File) or collector.config.option.collectonly:
            return None
        self._files.append(collector)
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests of the files that nobody else has claimed."""
        if session.config.option.collectonly:
            return None
        self._reads = True
        ours = self._ours(longest_first(self._files), lambda file: _items_of(session, file))
        count = 0
        item = next(ours, None)
        while item is not None:
            # With what follows it: what the whole run has isn't given up for each file.
            following = next(ours, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            count += 1
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        session.testscollected = count  # of all files, and not of the last one
        return True

    def _ours(self, files: Iterable[File], items_of: Callable[[File], Iterable[Item]]) -> Iterator[Item]:
        for file in files:
            if self._claim(file.nodeid):
                yield from items_of(file)

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


def longest_first(files: Iterable[File]) -> list[File]:
    """Files in the order in which they are claimed, so that no process begins with a long one when all else is done.

    Args:
        files: The files.
    """
    return sorted(files, key=lambda file: (-file.path.stat().st_size, file.path))


def _items_of(session: pytest.Session, file: pytest.File) -> list[pytest.Item]:
    items = list(session.genitems(file))
    session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
    return items


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
        # How far it is nobody knows who doesn't know all tests, and what is collected is no news for each file.
        quiet = ["-q", "--override-ini=console_output_style=classic"]
        command = [sys.executable, "-m", "pytest", f"--claims={name}", *quiet, *arguments]
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
