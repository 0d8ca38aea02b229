"""Looking at streams: where their entries begin and end, and how many there are, without fetching them.

A script does it inside Redis, so that what it says about a stream and about some of its entries is of one
moment, and so that the driver, which plans, isn't sent the entries that executors will read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gem_bundle import GemError
from gem_redis_streams.ids import NONE, EntryId

if TYPE_CHECKING:
    from redis import Redis

# XINFO says `entries-added` since Redis 7.
_SCRIPT = """
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
local found = {}
for i = 1, #info, 2 do found[info[i]] = info[i + 1] end
local first = found['first-entry']
local page = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])
return {
    found['length'],
    first and first[1] or '0-0',
    found['last-generated-id'],
    found['entries-added'] or -1,
    #page,
    #page > 0 and page[#page][1] or '0-0'
}
"""


@dataclass(frozen=True)
class Page:
    """Some entries of a stream that follow each other, and the stream at that moment.

    Args:
        exists: Whether there is such a stream.
        length: How many entries it has.
        first: The oldest one; `NONE` where it has none.
        last: The newest that it ever had.
        added: How many were ever added to it.
        count: How many entries are on the page.
        end: The last of them.
    """

    exists: bool = False
    length: int = 0
    first: EntryId = NONE
    last: EntryId = NONE
    added: int = 0
    count: int = 0
    end: EntryId = NONE


def look(client: Redis, stream: str, after: EntryId, until: EntryId | None, count: int) -> Page:
    """The entries behind an id.

    Args:
        client: The server.
        stream: The key.
        after: The page begins behind it.
        until: The page ends with it at the latest; None is where the stream ends.
        count: The most entries on it.

    Raises:
        GemError: When the server is too old.
    """
    end = "+" if until is None else str(until)
    found = cast("list[Any]", client.eval(_SCRIPT, 1, stream, f"({after}", end, str(count)))
    if not found:
        return Page()
    length, first, last, added, size, final = found
    if added == -1:
        raise GemError(
            "GB503",
            "the server doesn't say how many entries a stream ever had, so that losses would go unnoticed",
            "Use Redis 7 or newer, or Valkey.",
            "url",
        )
    return Page(True, length, _id(first), _id(last), added, size, _id(final))


def _id(text: bytes) -> EntryId:
    return EntryId.parse(text.decode())
