"""What waits in the sources of a query, as they tell it themselves where Spark doesn't."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, cast

from gem_bundle.gem import Source
from gem_bundle.waiting import WaitingContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.progress import MicroBatch
    from gem_bundle.waiting import Position, Waiting

PATIENCE_SECONDS = 1.0
"""For so long a look at the sources may keep the run from looking at its queries."""
SHORT_SECONDS = 0.1
"""A look that takes no longer is made after each micro-batch."""
SHARE = 20
"""At most one part in so many of a run's time goes into longer ones."""


@dataclass
class _Look:
    """A look at the sources, and what it has found when it is over."""

    over: threading.Event = field(default_factory=threading.Event)
    found: list[Waiting] = field(default_factory=list)


class Waits:
    """Asks the sources of one query, after each of its micro-batches, what waits for it.

    A source that takes long is asked less often, and one that doesn't answer not again until it has: then
    nothing is said, rather than what was true before.

    Args:
        sources: The streaming sources.
        checkpoint: The place of the query's checkpoint.
    """

    def __init__(self, sources: Iterable[Source], checkpoint: str) -> None:
        self._sources = [source for source in sources if type(source).waiting is not Source.waiting]
        self._checkpoint = checkpoint
        self._look = _Look()
        self._look.over.set()
        self._next = 0.0

    def told(self, batch: MicroBatch) -> MicroBatch:
        """The micro-batch with what waits behind it."""
        found = self._ask(batch.positions) if self._sources and batch.positions else []
        if not found:
            return batch
        return replace(
            batch,
            lag={**batch.lag, **{waiting.name: waiting.count for waiting in found}},
            lag_units={**batch.lag_units, **{waiting.name: waiting.unit for waiting in found}},
            newest={**batch.newest, **{waiting.name: waiting.newest for waiting in found}},
        )

    def _ask(self, positions: tuple[Position, ...]) -> list[Waiting]:
        began = monotonic()
        if began < self._next or not self._look.over.is_set():
            return []
        self._look = look = _Look()
        # A file system that hangs must not keep the process from ending.
        threading.Thread(
            target=self._answer, args=(look, positions), name="gem-bundle-waiting", daemon=True
        ).start()
        over = look.over.wait(PATIENCE_SECONDS)
        now = monotonic()
        if now - began > SHORT_SECONDS:
            self._next = now + (now - began) * SHARE
        return look.found if over else []

    def _answer(self, look: _Look, positions: tuple[Position, ...]) -> None:
        context = WaitingContext(positions, self._checkpoint)
        for source in self._sources:
            # A run goes on whatever becomes of a number that is only shown.
            with suppress(Exception):
                waiting = source.waiting(context)
                if waiting is not None:
                    look.found.append(waiting)
        look.over.set()


def waits_of(plan: Plan, targets: Iterable[str]) -> Waits:
    """Who asks the sources of the query that writes these targets.

    Args:
        plan: The pipeline.
        targets: The ids of the targets.
    """
    targets = list(targets)
    names = sorted({name for target in targets for name in plan.streaming_sources(target)})
    sources = [cast("Source", plan.gems[name]) for name in names]
    return Waits(sources, plan.definition.checkpoint(targets[0]))
