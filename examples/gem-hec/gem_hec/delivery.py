"""Sending the events of a partition so that none is lost: payloads, retries and acknowledgements.

This runs on executors. A partition is done when the collector has taken each of its events; in any other
case it raises, Spark runs the partition or the micro-batch again, and all of its events are sent again.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_hec.collector import FAILURES, Collector, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gem_hec.collector import Address, Answer

_SHOWN = 120
_SHORTEST_WAIT = 0.01


@dataclass(frozen=True)
class Patience:
    """How long to wait for a collector, in seconds.

    Args:
        retry_for: How long to go on trying to send one POST.
        backoff: The wait before the second try; each further one is twice as long.
        max_backoff: The longest wait.
        acknowledge_within: How long to wait for acknowledgements.
    """

    retry_for: float = 300.0
    backoff: float = 0.5
    max_backoff: float = 30.0
    acknowledge_within: float = 300.0

    def wait(self, tries: int) -> float:
        """How long to wait after so many tries; half of it is random, lest all executors come at once."""
        longest = min(self.max_backoff, self.backoff * 2.0 ** min(tries - 1, 60))
        return max(_SHORTEST_WAIT, longest * (0.5 + random.random() / 2))


@dataclass(frozen=True)
class Delivery:
    """Sends the events of one partition; what Spark calls with the rows of `gem_hec.events`.

    Args:
        address: Where they go.
        max_payload: The most bytes in one POST.
        patience: How long to wait.
    """

    address: Address
    max_payload: int
    patience: Patience

    def __call__(self, rows: Iterable[tuple[str, bool]]) -> None:
        """Send them all.

        Raises:
            GemError: When one of them can't be sent.
        """
        collector = Collector(self.address)
        try:
            sender = Sender(collector, self.patience)
            for payload in payloads(rows, self.max_payload):
                sender.send(payload)
            if self.address.acknowledged:
                sender.wait_for_acknowledgements()
        finally:
            collector.close()


def payloads(rows: Iterable[tuple[str, bool]], limit: int) -> Iterator[bytes]:
    """The events, as many together as fit into one POST.

    Args:
        rows: The JSON of each event, and whether it is empty.
        limit: The most bytes in one.

    Raises:
        GemError: When an event is empty, or too large by itself.
    """
    waiting: list[bytes] = []
    size = 0
    for text, empty in rows:
        if empty:
            raise GemError(
                "GB508",
                f"a row has no event, and collectors take none without: {_shown(text)}",
                "Filter such rows out, or give their event a value.",
                "event_column",
            )
        event = text.encode()
        if len(event) > limit:
            raise GemError(
                "GB508",
                f"an event has {len(event):,} bytes, and `max_payload` is {limit:,}: {_shown(text)}",
                "Raise `max_payload`, if the collector takes more at once, or shorten the event.",
                "max_payload",
            )
        if size + len(event) + len(waiting) > limit:
            yield b"\n".join(waiting)
            waiting, size = [], 0
        waiting.append(event)
        size += len(event)
    if waiting:
        yield b"\n".join(waiting)


class Sender:
    """Sends payloads to a collector until it has taken them.

    Args:
        collector: The collector.
        patience: How long to wait.
        sleep: Waits for so many seconds.
        clock: The time in seconds.
    """

    def __init__(
        self,
        collector: Collector,
        patience: Patience,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collector = collector
        self._patience = patience
        self._sleep = sleep
        self._clock = clock
        self._unacknowledged: list[int] = []

    def send(self, payload: bytes) -> None:
        """Send a payload, again and again where that may help.

        Raises:
            GemError: When the collector refuses it, or doesn't take it in time.
        """
        began = self._clock()
        tries = 0
        while True:
            tries += 1
            asked: float | None = None
            try:
                answer = self._collector.post(payload)
            except FAILURES as error:
                problem = said(error)
            else:
                if answer.outcome == "taken":
                    self._keep(answer)
                    return
                if answer.outcome == "refused":
                    raise _refusal(answer, payload)
                problem, asked = f"it answers {answer.reason}", answer.retry_after
            wait = max(self._patience.wait(tries), asked or 0.0)
            if self._clock() - began + wait > self._patience.retry_for:
                raise self._given_up(tries, self._clock() - began, problem, asked)
            self._sleep(wait)

    def wait_for_acknowledgements(self) -> None:
        """Wait until the indexers have written all that was sent.

        Raises:
            GemError: When they haven't in time. All is sent again then.
        """
        began = self._clock()
        tries = 0
        problem = ""
        while self._unacknowledged:
            tries += 1
            try:
                found = self._collector.acknowledged(self._unacknowledged)
            except FAILURES as error:
                problem = f": {said(error)}"
            else:
                self._unacknowledged = [each for each in self._unacknowledged if each not in found]
                problem = ""
            if not self._unacknowledged:
                return
            wait = self._patience.wait(tries)
            if self._clock() - began + wait > self._patience.acknowledge_within:
                raise GemError(
                    "GB508",
                    f"{len(self._unacknowledged)} of the POSTs were taken but not written within "
                    f"{self._patience.acknowledge_within:g} s{problem}",
                    "They are sent again at the next start. Behind a load balancer, questions must reach the "
                    "collector that took the events: make its sessions sticky.",
                    "acknowledge_within",
                )
            self._sleep(wait)

    def _keep(self, answer: Answer) -> None:
        if not self._collector.wants_acknowledgements:
            return
        number = answer.said.get("ackId")
        if not isinstance(number, int):
            raise GemError(
                "GB508",
                "the collector has taken events and won't say when they are written",
                "Switch indexer acknowledgement on for the token, or remove `acknowledge`.",
                "acknowledge",
            )
        self._unacknowledged.append(number)

    def _given_up(self, tries: int, passed: float, problem: str, asked: float | None) -> GemError:
        asks = f", and asks to be left alone for {asked:g} s" if asked else ""
        return GemError(
            "GB503",
            f"the collector hasn't taken some events in {tries} {'try' if tries == 1 else 'tries'} and "
            f"{passed:.1f} s: {problem}{asks}",
            "No row is lost: the next start sends the micro-batch again. Raise `retry_for` to wait longer.",
            "retry_for",
        )


def _refusal(answer: Answer, payload: bytes) -> GemError:
    number = answer.said.get("invalid-event-number")
    events = payload.split(b"\n")
    which = ""
    if isinstance(number, int) and 0 <= number < len(events):
        which = f"; it is about {_shown(events[number].decode())}"
    return GemError("GB508", f"the collector refuses events, {answer.reason}{which}", answer.hint)


def _shown(text: str) -> str:
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"
