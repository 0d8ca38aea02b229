"""Work that is measured in a process of its own, in a session that is warm."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.benchmarks.timing import clean_environment

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process that does one kind of work whenever it is asked, and says how long it took.

    Args:
        module: The module that does the work: run with what follows, it calls `answer`.
        work: The name of the work.
        folder: Where its data lie; it makes them.
        size: How large they are.
    """

    def __init__(self, module: str, work: str, folder: Path, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / "spark.log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, work, folder, str(size)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=clean_environment(),
            text=True,
        )
        self._answer()  # it is ready

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._log.close()

    def run(self, way: str = "") -> float:
        """Run it once; the seconds it took."""
        assert self._process.stdin is not None
        print(way, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("> "):
                return line[2:].strip()
        raise RuntimeError(f"the benchmark's worker ended, see {self._log.name}")


def answer(run: Callable[[str], float]) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run.

    Args:
        run: Runs it in the way that the line says.
    """
    print("> ready", flush=True)
    for line in sys.stdin:
        print(f"> {run(line.strip())}", flush=True)
