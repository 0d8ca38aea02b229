"""``python -m tests.differential --edits N``: edits drawn at random, what is said of them, and what is true."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from gem_bundle.plugins import load_registry
from tests.differential.edits.known import Known
from tests.differential.edits.run import FURTHER, EditTally, Tried, try_edits
from tests.differential.edits.truth import Experiments
from tests.differential.engine import started
from tests.differential.processes import in_processes

WORSE = 0.01
_PROGRESS = 20


def work(
    seed: str, job: int, jobs: int, count: int, truths: Path | None = None, states: int = 0, at_once: int = 1
) -> EditTally:
    """Try edits in a session of one's own: those of every so many pipelines of a seed.

    Args:
        seed: What the pipelines come from.
        job: Which of the processes this is.
        jobs: How many there are.
        count: How many edits.
        truths: The file of what became of edits before; each process has one.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.
    """
    tally = EditTally()
    registry = load_registry()
    known = Known(truths and truths.with_name(f"{truths.name}.{job}"))
    with tempfile.TemporaryDirectory(prefix="gem-bundle-edits-") as name, started(Path(name)) as spark:
        experiments = Experiments(spark, Path(name) / "runs")
        began = time.perf_counter()
        number = job
        done = 0
        while done < count:
            pipeline = f"{seed}:{number}"
            for tried in try_edits(
                pipeline,
                experiments,
                registry,
                known=known,
                further=FURTHER,
                asked=True,
                states=states,
                at_once=at_once,
            ):
                tally.add(tried)
                done += 1
                _tell(tried)
                if done % _PROGRESS == 0:
                    pace = (time.perf_counter() - began) / done
                    print(f"{done} edits, {pace:.1f} s each: {dict(tally.counts)}", flush=True)
            number += jobs
    return tally


def _tell(tried: Tried) -> None:
    if tried.judged in {"better", "refused missed", "worse"}:
        print(tried, flush=True)


def run(
    seed: str, count: int, jobs: int, truths: Path | None = None, states: int = 0, at_once: int = 1
) -> int:
    """Try edits, in several processes if that is asked for.

    Args:
        seed: What the pipelines come from.
        count: How many edits.
        jobs: How many processes.
        truths: Where to keep what became of them, so that other verdicts can be judged by it.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.

    Returns:
        The exit status: 1 when an edit was called better than it is, or too many worse.
    """
    print(f"seed {seed}, {count} edits", flush=True)
    tally = EditTally()
    share = -(-count // jobs)
    for part in in_processes(
        work, [(seed, job, jobs, share, truths, states, at_once) for job in range(jobs)]
    ):
        tally.counts += part.counts
        tally.kinds += part.kinds
        for judged, shown in part.shown.items():
            tally.shown.setdefault(judged, []).extend(shown)
    print("\n".join(tally.lines()))
    return 1 if tally.dangerous or tally.counts["worse"] > WORSE * tally.told else 0
