"""How often a query may be started again, and when its next start is due."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gem_bundle.pipeline.health import Restarts
    from gem_bundle.pipeline.model import Node


@dataclass(frozen=True, slots=True)
class Start:
    """A query that waits for its next start.

    Args:
        targets: The targets that it writes.
        due: When it is due, by the clock of its `RestartPlan`.
    """

    targets: tuple[Node, ...]
    due: float


@dataclass(frozen=True, slots=True)
class Restarting:
    """That the query of a target will be started again, as views are told.

    Args:
        target: The id of the target.
        reason: Why, in words.
        restarts: How often it was started again, this time counted.
        wait: How long it waits before that.
        failure: The diagnostic of what the target has failed with, as ``--format json`` has diagnostics; None
            where it was another one of the same query.
    """

    target: str
    reason: str
    restarts: int
    wait: float
    failure: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """It as JSON takes it."""
        return asdict(self)


class RestartPlan:
    """The queries of a run that wait for their next start, and how often they had one.

    Args:
        now: A clock that goes on evenly, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._had: dict[str, deque[float]] = {}
        self._waiting: dict[str, Start] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, targets: Sequence[Node], limits: Restarts) -> bool:
        """Let a query wait for another start; False where it had as many as it may have.

        Args:
            targets: The targets that it writes.
            limits: How often it may be started again.
        """
        now = self._now()
        name = _name(targets)
        had = self._had.setdefault(name, deque())
        while had and now - had[0] >= limits.within:
            had.popleft()
        if len(had) >= limits.most:
            return False
        had.append(now)
        self._waiting[name] = Start(tuple(targets), now + limits.wait)
        return True

    def due(self) -> list[tuple[Node, ...]]:
        """The targets of the queries whose start is due; they don't wait any more."""
        found = [name for name, start in self._waiting.items() if start.due <= self._now()]
        return [self._waiting.pop(name).targets for name in found]

    def drop(self, target: str) -> tuple[Node, ...]:
        """Let the query of a target wait no more: the targets that it writes, none where it didn't."""
        for name, start in list(self._waiting.items()):
            if any(node.id == target for node in start.targets):
                del self._waiting[name]
                return start.targets
        return ()

    def waiting(self) -> list[str]:
        """The ids of the targets whose queries wait."""
        return [node.id for start in self._waiting.values() for node in start.targets]


def _name(targets: Sequence[Node]) -> str:
    return targets[0].group or targets[0].id
