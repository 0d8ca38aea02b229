"""Bundles as their users make and start them: by `gem-bundle build`, and by `submit.sh` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# For a machine that is busy with other things; nothing waits longer than what it waits for takes.
TIMEOUT: Final = 600.0


def build(file: Path, *options: str, python_path: Path | None = None, **variables: str) -> Path:
    """The folder of the bundle that `gem-bundle build` makes of a pipeline, beside it, with its jars.

    Args:
        file: The pipeline file.
        options: Further options of the command.
        python_path: A folder in which more distributions are installed.
        variables: Further environment variables.
    """
    paths = [str(python_path or ""), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gem_bundle",
            "build",
            file,
            "-o",
            file.parent / "dist",
            "--vendor-jars",
            # They load it soon, as part of the test.
            "--no-executors",
            *options,
        ],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    (bundle,) = (file.parent / "dist").iterdir()
    # The command names what it has made, by the shortest path from where it was started.
    assert done.stdout.splitlines()[-1].startswith(f"dist/{bundle.name}: "), done.stdout
    return bundle


class Submission:
    """A bundle that runs on this machine's Spark, in a process group of its own: it can be killed as a whole.

    What it says is read all the time, so that it never waits for its reader, and kept in a file.

    Args:
        bundle: The bundle's folder.
        arguments: What is for the pipeline.
        environment: The environment variables; see `bare_environment`.
        folder: Where it is started.
        log: The file for what it says, and for Spark's log.
    """

    def __init__(
        self, bundle: Path, *arguments: str, environment: dict[str, str], folder: Path, log: Path
    ) -> None:
        self._log = log
        self._events: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        log.write_bytes(b"")
        with log.open("ab") as spark_log:
            self._process = subprocess.Popen(
                [
                    *("bash", bundle / "submit.sh", "--master", "local[2]", "--driver-memory", "1g"),
                    # Delta makes 50 tasks of a snapshot by default, for each micro-batch.
                    *("--conf", "spark.databricks.delta.snapshotPartitions=2"),
                    *("--conf", "spark.ui.enabled=false", "--", *arguments),
                ],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # In one pipe, a line of Spark's log may come in the middle of an event.
                stderr=spark_log,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def said(self) -> str:
        """All that it has said."""
        return self._log.read_text()

    def progress(self) -> Iterator[dict[str, Any]]:
        """The micro-batches that end, as they come; fails when the run ends."""
        while True:
            try:
                event = self._events.get(timeout=TIMEOUT)
            except Empty:
                raise AssertionError(
                    f"no micro-batch has ended for {TIMEOUT:.0f} s:\n{self._tail()}"
                ) from None
            if event is None:
                raise AssertionError(f"the run has ended:\n{self._tail()}")
            if event["event"] == "progress":
                yield event

    def until(self, rows: int) -> int:
        """Wait until its micro-batches have read that many rows; returns how many it were then."""
        return next(int(e["total_rows_in"]) for e in self.progress() if e["total_rows_in"] >= rows)

    def wait(self) -> int:
        """Wait for the end; returns the exit status."""
        status = self._process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return status

    def end(self) -> dict[str, Any]:
        """The report of a run that came to its end."""
        assert self.wait() == 0, self._tail()
        events = []
        while (event := self._events.get(timeout=TIMEOUT)) is not None:
            events.append(event)
        assert events, self._tail()
        assert events[-1]["event"] == "ended", self._tail()
        return events[-1]

    def kill(self) -> None:
        """End all of its processes at once, as if the machine went down; they are gone afterwards."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()
        assert not self._reader.is_alive(), "a process of the group is still there"

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines, self._log.open("a") as log:
            for line in lines:
                log.write(line)
                log.flush()
                if line.startswith('{"event"'):
                    self._events.put(json.loads(line))
        self._events.put(None)

    def _tail(self) -> str:
        return self.said[-6000:]
