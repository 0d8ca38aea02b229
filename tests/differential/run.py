"""Comparing many pipelines, in this process or in one of several."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.plugins import load_registry
from tests.differential.compare import Comparison
from tests.differential.engine import asking, started
from tests.differential.generator import draw
from tests.differential.starting import Starter
from tests.differential.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

PROGRESS = 1000


def work(seeds: list[str], proofs: int, samples: int) -> Tally:
    """Compare the pipelines of these seeds, in a session of its own."""
    if not seeds:
        return Tally()
    with comparing(proofs, samples) as comparison:
        return compare_all(seeds, comparison, progress=True)


@contextmanager
def comparing(proofs: int, samples: int = 0) -> Iterator[Comparison]:
    """A comparison with a Spark of its own."""
    with tempfile.TemporaryDirectory(prefix="gem-bundle-differential-") as name:
        folder = Path(name)
        with (
            started(folder, _jars()) as session,
            comparison_in(session, folder, proofs, samples) as comparison,
        ):
            yield comparison


def _jars() -> list[Path]:
    """Spark's Avro, as tests have it."""
    from tests.conftest import AVRO, jars_of

    return jars_of(AVRO)


@contextmanager
def comparison_in(session: SparkSession, folder: Path, proofs: int, samples: int = 0) -> Iterator[Comparison]:
    """A comparison with a session that is there.

    Args:
        session: The session.
        folder: Where files may be.
        proofs: How many queries are started for each deliberate difference.
        samples: How many queries that both accept are started.
    """
    with asking(session) as spark:
        yield Comparison(spark, load_registry(), Starter(session, folder), proofs, samples)


def compare_all(seeds: Iterable[str], comparison: Comparison, *, progress: bool = False) -> Tally:
    """Compare the pipelines of these seeds."""
    tally = Tally()
    began = time.perf_counter()
    for seed in seeds:
        drawn = draw(seed)
        tally.add(drawn, comparison.of(drawn.values))
        if progress and tally.pipelines % PROGRESS == 0:
            pace = 1000 * (time.perf_counter() - began) / tally.pipelines
            print(f"{tally.pipelines} pipelines, {pace:.0f} ms each", file=sys.stderr, flush=True)
    tally.seconds = time.perf_counter() - began
    return tally
