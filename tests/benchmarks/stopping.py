"""How soon a run is over that another process has asked to stop, once its micro-batches have ended.

Two queries of it are in the middle of slow micro-batches. From the moment on when the last of those has ended that were
under way when `gem-bundle stop` was typed, everything counts: that the run has seen what it is asked, that its
queries stop, that Spark and Java end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.benchmarks.timing import clean_environment, in_turn

if TYPE_CHECKING:
    from tests.benchmarks.timing import Comparison

GEM_BUNDLE: Final = Path(sys.executable).with_name("gem-bundle")
MOST_SECONDS: Final = 5
PIPELINE: Final = """
pipeline: stopped
spark: {spark.master: 'local[2]', spark.driver.memory: 1g}
sources:
  ticks: {gem: rate, options: {rows_per_second: 10}}
targets:
  long: {gem: foreach_batch, input: ticks, options: {function: "works:long"}}
  short: {gem: foreach_batch, input: ticks, options: {function: "works:short"}}
"""
WORKS: Final = '''
"""Micro-batches that take a while."""

import time


def short(df, batch_id):
    df.count()
    time.sleep(2)


def long(df, batch_id):
    df.count()
    time.sleep(4)
'''


def stop(pairs: int, folder: Path) -> Comparison:
    """From the end of the micro-batches under way to the end of the process."""
    folder.mkdir()
    (folder / "stopped.yaml").write_text(PIPELINE)
    (folder / "works.py").write_text(WORKS)
    took: list[float] = []

    def stopped() -> float:
        seconds, batch = _stopped(folder)
        took[:] = [batch]
        return seconds

    found = in_turn(stopped, lambda: took[0] if took else 0.0, pairs)
    return found.compared(
        "stop",
        "from the end of the micro-batches under way to that of `gem-bundle run`, after a `gem-bundle stop`",
        "the longest of these micro-batches",
        seconds=MOST_SECONDS,
    )


def _stopped(folder: Path) -> tuple[float, float]:
    """The seconds that a run goes on after its micro-batches, and those of the longest of them."""
    with subprocess.Popen(
        [GEM_BUNDLE, "run", "stopped.yaml", "--log-format", "json"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    ) as process:
        assert process.stderr is not None
        said: list[str] = []
        # The long one has begun its next micro-batch when it tells of one.
        for line in process.stderr:
            said.append(line)
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("target") == "long" and event["batch_id"] >= 1:
                break
        asked = time.time()
        _gem_bundle(folder, "stop", "stopped.yaml")
        said += process.stderr
    ended = time.time()
    if process.returncode != 0:
        raise RuntimeError(f"the run failed:\n{''.join(said)}")
    (run,) = json.loads(_gem_bundle(folder, "status", "stopped.yaml", "--format", "json", status=1))["runs"]
    under_way = [
        next(batch for batch in target["recent"] if _end(batch) > asked) for target in run["targets"].values()
    ]
    return ended - max(map(_end, under_way)), max(batch["duration_ms"] for batch in under_way) / 1000


def _end(batch: dict[str, Any]) -> float:
    """When a micro-batch ended."""
    began = datetime.fromisoformat(batch["timestamp"])
    return (began + timedelta(milliseconds=batch["duration_ms"])).timestamp()


def _gem_bundle(folder: Path, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [GEM_BUNDLE, *arguments],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != status:
        raise RuntimeError(f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
