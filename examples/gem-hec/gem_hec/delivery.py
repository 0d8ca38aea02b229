"""Sending the events of a partition so that none is lost: payloads, retries and acknowledgements.

This runs on executors. A partition is done when the collector has taken each of its events; in any other
case it raises, Spark runs the partition or the micro-batch again, and all of its events are sent again.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle import GemError
from gem_hec.collector import FAILURES, Collector, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gem_hec.collector import Address, Answer

_SHOWN = 120
_SHORTEST_WAIT = 0.01
_TOO_LARGE = 413


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


class Event(NamedTuple):
    """An event on its way.

    Args:
        content: Its JSON.
        token: What its row is known by.
    """

    content: bytes
    token: Any = None


Refused = tuple[Any, str, str]
"""The token of an event, the name of the reason for which it was refused, and words."""


class RefusedError(GemError):
    """A collector won't take some events, now or later.

    Args:
        answer: What it answers.
        payload: What it was sent.
    """

    def __init__(self, answer: Answer, payload: bytes) -> None:
        events = payload.split(b"\n")
        number = answer.refused_event
        which = ""
        if number is not None and 0 <= number < len(events):
            which = f"; it is about {_shown(events[number].decode())}"
        super().__init__("GB508", f"the collector refuses events, {answer.reason}{which}", answer.hint)
        self.answer = answer


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
        with self._sender() as sender:
            for payload in payloads((((text, empty), None) for text, empty in rows), self.max_payload):
                sender.send(_joined(payload))

    def of_each(self, rows: Iterable[tuple[tuple[str, bool], Any]]) -> Iterator[Refused]:
        """Send them all but those that the collector refuses, which are told.

        Args:
            rows: The rows of `gem_hec.events`, each with a token.

        Raises:
            GemError: When the collector takes none for now, or refuses more than events.
        """
        refused: list[Refused] = []
        with self._sender() as sender:
            for payload in payloads(rows, self.max_payload, refused):
                refused += _send(sender, payload)
                yield from refused
                refused.clear()
        yield from refused

    @contextmanager
    def _sender(self) -> Iterator[Sender]:
        collector = Collector(self.address)
        try:
            sender = Sender(collector, self.patience)
            yield sender
            if self.address.acknowledged:
                sender.wait_for_acknowledgements()
        finally:
            collector.close()


def _send(sender: Sender, payload: list[Event]) -> Iterator[Refused]:
    """Send the events of a payload, and tell those that the collector refuses.

    What stands before a refused event a collector may have taken or not, so it is sent again.
    """
    waiting = [payload]
    while waiting:
        events = waiting.pop()
        try:
            sender.send(_joined(events))
        except RefusedError as refusal:
            answer = refusal.answer
            if not answer.is_about_events:
                raise
            at = answer.refused_event
            if len(events) == 1:
                at = 0
            if at is not None and 0 <= at < len(events):
                name = "too_large" if answer.status == _TOO_LARGE else "refused"
                yield events[at].token, name, answer.reason
                parts = [events[at + 1 :], events[:at]]
            else:
                half = len(events) // 2
                parts = [events[half:], events[:half]]
            waiting += [part for part in parts if part]


def payloads(
    rows: Iterable[tuple[tuple[str, bool], Any]], limit: int, refused: list[Refused] | None = None
) -> Iterator[list[Event]]:
    """The events, as many together as fit into one POST.

    Args:
        rows: The JSON of each event and whether it is empty, with the token of the row.
        limit: The most bytes in one, with a line break between two events.
        refused: Where those go that can't be sent.

    Raises:
        GemError: When an event is empty, or too large by itself, and `refused` is None.
    """
    waiting: list[Event] = []
    size = 0
    for (text, empty), token in rows:
        event = Event(text.encode(), token)
        problem = _unsendable(event, empty, limit)
        if problem is not None:
            name, error = problem
            if refused is None:
                raise error
            refused.append((token, name, error.message))
            continue
        if size + len(event.content) + len(waiting) > limit:
            yield waiting
            waiting, size = [], 0
        waiting.append(event)
        size += len(event.content)
    if waiting:
        yield waiting


def _unsendable(event: Event, empty: bool, limit: int) -> tuple[str, GemError] | None:
    """Why an event can't be sent, as a name and an error; None when it can."""
    if empty:
        return "no_event", GemError(
            "GB508",
            f"a row has no event, and collectors take none without: {_shown(event.content.decode())}",
            "Filter such rows out, give their event a value, or say `rejects: true`.",
            "event_column",
        )
    size = len(event.content)
    if size > limit:
        return "too_large", GemError(
            "GB508",
            f"an event has {size:,} bytes, and `max_payload` is {limit:,}: {_shown(event.content.decode())}",
            "Raise `max_payload`, if the collector takes more at once, shorten the event, or say "
            "`rejects: true`.",
            "max_payload",
        )
    return None


def _joined(events: list[Event]) -> bytes:
    return b"\n".join(event.content for event in events)


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
                    raise RefusedError(answer, payload)
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


def _shown(text: str) -> str:
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"
