"""What a micro-batch reads: from which entry of each stream to which, in which parts, and what is gone.

Redis numbers entries by time, not one by one, so it can't be told from two ids how many entries are, or
were, between them. A position therefore keeps beside the id how many entries had ever been added up to it:
when the oldest entry of a stream is newer than the position, that number tells whether any was deleted
that hadn't been read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gem_bundle import GemError
from gem_redis_streams.ids import NONE, EntryId
from gem_redis_streams.pages import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from redis import Redis

    from gem_redis_streams.connection import Settings
    from gem_redis_streams.pages import Page

_COUNTED = 10_000

log = logging.getLogger("gem_redis_streams")


@dataclass(frozen=True)
class Position:
    """How far a stream has been read.

    Args:
        id: The last id that was read, or that no longer needs to be.
        added: How many entries were ever added up to it.
    """

    id: EntryId
    added: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Position:
        """A position of an offset."""
        return cls(EntryId.parse(value["id"]), value["added"])

    def to_json(self) -> dict[str, Any]:
        """The position as an offset has it."""
        return {"id": str(self.id), "added": self.added}


@dataclass(frozen=True)
class Span:
    """Entries of a stream that one task reads: those behind `after`, up to `until`."""

    stream: str
    after: EntryId
    until: EntryId
    count: int


def first_position(client: Redis, stream: str, place: str) -> Position:
    """Where reading begins with a stream that wasn't read before.

    Args:
        client: The server.
        stream: Its key; it needn't exist yet.
        place: ``earliest``, ``latest``, or the id of the first entry to read.
    """
    page = look(client, stream, NONE, None, 1)
    if place == "latest":
        return Position(page.last, page.added)
    if place == "earliest":
        return Position(page.first.before() if page.length else page.last, page.added - page.length)
    wanted = EntryId.parse(place).before()
    while True:
        passed_over = _count(client, stream, wanted)
        now = look(client, stream, wanted, None, 1)
        if now.first == page.first:
            return Position(wanted, now.added - now.length + passed_over)
        page = now  # it was trimmed while its entries were counted


def last_id(client: Redis, stream: str, place: str = "latest") -> EntryId:
    """Where reading a stream ends now.

    Args:
        client: The server.
        stream: Its key.
        place: ``latest``, or the last id to read.
    """
    return look(client, stream, NONE, None, 1).last if place == "latest" else EntryId.parse(place)


class Walk:
    """Goes along a stream, page by page, and notes the parts.

    Args:
        client: The server.
        settings: How large a part may be, and what to do about losses.
        stream: The key.
        position: Where to begin.
        until: The last id to go to; None is where the stream ends.
    """

    def __init__(
        self, client: Redis, settings: Settings, stream: str, position: Position, until: EntryId | None = None
    ) -> None:
        self._client = client
        self._settings = settings
        self._stream = stream
        self._until = until
        self.position = position
        self.spans: list[Span] = []
        self.ended = False

    def step(self, most: int) -> int:
        """Go on by some entries, as many as the server is asked for at once; returns how many they are.

        Raises:
            GemError: When entries are gone that weren't read.
        """
        room = self._settings.per_partition - self.spans[-1].count if self.spans else 0
        asked = min(most, self._settings.fetch, room or self._settings.per_partition)
        page = look(self._client, self._stream, self.position.id, self._until, asked)
        if problem := loss(page, self.position):
            self._tell(problem)
            if _made_anew(page, self.position):
                self.position = Position(NONE, 0)
                return self.step(most)
            self.position = Position(self.position.id, page.added - page.length)
        self.ended = page.count < asked
        if page.count:
            self._take(page, joined=room > 0)
        return page.count

    def to_the_end(self) -> list[Span]:
        """Go on to where the walk ends; returns the parts."""
        while not self.ended:
            self.step(self._settings.fetch)
        return self.spans

    def _take(self, page: Page, *, joined: bool) -> None:
        before, added = self.position.id, self.position.added
        if joined:
            last = self.spans.pop()
            self.spans.append(Span(self._stream, last.after, page.end, last.count + page.count))
        else:
            self.spans.append(Span(self._stream, before, page.end, page.count))
        if page.end == page.last:
            added = page.added
        else:
            added += page.count
        self.position = Position(page.end, added)

    def _tell(self, problem: str) -> None:
        sentence = f"the stream `{self._stream}` {problem}"
        if self._settings.fail_on_loss:
            raise data_loss(sentence)
        log.warning("%s; reading goes on, since fail_on_data_loss is false", sentence)


def loss(page: Page, position: Position) -> str:
    """What is gone of a stream that wasn't read, in words; empty when nothing is.

    Args:
        page: The stream now.
        position: How far it was read.
    """
    if _made_anew(page, position):
        what = "was deleted and made anew" if page.exists else "was deleted"
        return f"{what} since entry {position.id} was read: entries may be lost"
    if page.length and page.first <= position.id:
        return ""  # the oldest entry was read long ago, so nothing behind it was trimmed
    gone = page.added - position.added - page.length
    if gone <= 0:
        return ""
    what = "one entry was" if gone == 1 else f"{gone} entries were"
    return f"was trimmed: {what} deleted behind {position.id} before being read"


def plan_limited(walks: Iterable[Walk], limit: int) -> None:
    """Let several streams have their share of one limit; what one doesn't need is for the others.

    Args:
        walks: The streams.
        limit: How many entries may be read of all of them.
    """
    going = [walk for walk in walks if not walk.ended]
    while going and limit > 0:
        # The one that is furthest behind comes first, lest a small limit never reaches it.
        going.sort(key=lambda walk: walk.position.id)
        share = max(1, limit // len(going))
        for walk in going:
            limit -= walk.step(min(share, limit)) if limit > 0 else 0
        going = [walk for walk in going if not walk.ended]


def data_loss(sentence: str) -> GemError:
    """The error of entries that are gone."""
    return GemError(
        "GB508",
        sentence,
        "Keep entries for longer than a run may be down (XADD … MAXLEN, XTRIM). To go on with what is left, "
        "set `fail_on_data_loss: false`.",
        "fail_on_data_loss",
    )


def _made_anew(page: Page, position: Position) -> bool:
    return page.added < position.added


def _count(client: Redis, stream: str, until: EntryId) -> int:
    """How many entries there are up to an id."""
    found, after = 0, NONE
    while (page := look(client, stream, after, until, _COUNTED)).count:
        found, after = found + page.count, page.end
    return found
