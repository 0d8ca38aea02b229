"""Offsets, parts and rows, as Spark asks for them, over a real server and without Spark.

Each test plays Spark: it plans micro-batches, reads their parts, restarts, and runs micro-batches again.
"""

from __future__ import annotations

import json
import pickle
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from gem_bundle import GemError
from gem_redis_streams.connection import Settings
from gem_redis_streams.data_source import Part, RedisStreamsReader, RedisStreamsStreamReader
from gem_redis_streams.ids import NONE, EntryId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis_server import RedisServer

Offset = dict[str, Any]


class Query:
    """A query, as Spark runs it.

    Args:
        server: The server.
        streams: The keys that it reads.
        settings: What else there is to set.
    """

    def __init__(self, server: RedisServer, *streams: str, **settings: Any) -> None:
        self.settings = Settings(**{"url": server.url, "streams": streams, "fetch": 3, **settings})
        self.reader = RedisStreamsStreamReader(self.settings)
        self.offset: Offset = self.reader.initialOffset()
        self.batches: list[tuple[Offset, Offset]] = []

    def restart(self, **changes: Any) -> None:
        """End, and go on from the checkpoint with a reader of its own."""
        self.reader.stop()
        self.settings = Settings(**{**self.settings.__dict__, **changes})
        self.reader = RedisStreamsStreamReader(self.settings)

    def plan(self) -> tuple[Offset, Offset] | None:
        """Plan a micro-batch; None where nothing is new."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())))
        if end == self.offset:
            return None
        found = (self.offset, end)
        self.offset = end
        self.batches.append(found)
        return found

    def parts(self, batch: tuple[Offset, Offset]) -> list[Part]:
        found = pickle.loads(pickle.dumps(self.reader.partitions(*batch)))
        assert all(isinstance(part, Part) for part in found)
        return list(found)

    def rows(self, batch: tuple[Offset, Offset]) -> list[tuple[Any, ...]]:
        """What executors read of a micro-batch."""
        reader = pickle.loads(pickle.dumps(self.reader))
        return [row for part in self.parts(batch) for row in reader.read(part)]

    def run(self) -> list[tuple[Any, ...]]:
        """Run a micro-batch; no rows where nothing is new."""
        batch = self.plan()
        return self.rows(batch) if batch else []

    def drain(self) -> list[tuple[Any, ...]]:
        """Run micro-batches until nothing is new."""
        found = []
        while batch := self.plan():
            found += self.rows(batch)
        return found


@pytest.fixture
def start(server: RedisServer) -> Iterator[Callable[..., Query]]:
    """Starts queries, which end with the test."""
    started: list[Query] = []

    def one(*streams: str, **settings: Any) -> Query:
        started.append(Query(server, *streams, **settings))
        return started[-1]

    yield one
    for query in started:
        query.reader.stop()


@pytest.fixture
def query(start: Callable[..., Query], key: str) -> Query:
    """A query of one stream."""
    return start(key)


def add(server: RedisServer, key: str, count: int, start: int = 1) -> list[str]:
    """Add entries with the ids ``1-0``, ``2-0`` and so on; returns the ids."""
    ids = [f"{number}-0" for number in range(start, start + count)]
    for entry in ids:
        server.client.xadd(key, {"number": entry}, id=entry)
    return ids


def ids_in(server: RedisServer, key: str) -> list[str]:
    """The ids that a stream has now."""
    found: Any = server.client.xrange(key)
    return [entry.decode() for entry, _ in found]


def ids(rows: list[tuple[Any, ...]]) -> list[str]:
    return [row[1] for row in rows]


# What comes out


def test_an_entry_is_a_row(server: RedisServer, key: str, query: Query) -> None:
    server.client.xadd(key, {"shop": "Oslo", "Größe": "7 ☂", "": ""}, id="1767600000123-4")

    at = datetime(2026, 1, 5, 8, 0, 0, 123000, tzinfo=UTC)
    assert query.run() == [(key, "1767600000123-4", at, {"shop": "Oslo", "Größe": "7 ☂", "": ""})]


def test_all_entries_come_once_in_order_over_many_micro_batches(
    server: RedisServer, key: str, query: Query
) -> None:
    wanted = add(server, key, 20)
    first = query.run()
    wanted += add(server, key, 7, start=21)
    query.restart()

    assert ids(first + query.run()) == wanted
    assert query.run() == []


def test_nothing_new_is_the_same_offset(server: RedisServer, key: str, query: Query) -> None:
    add(server, key, 3)
    query.run()

    assert query.plan() is None
    assert query.reader.partitions(query.offset, query.offset) == []
    query.restart()
    assert query.plan() is None


def test_a_stream_may_come_later(server: RedisServer, key: str, query: Query) -> None:
    assert query.run() == []
    wanted = add(server, key, 2)

    assert ids(query.run()) == wanted


def test_a_stream_may_join_and_leave(server: RedisServer, key: str, query: Query) -> None:
    other = f"{key}-other"
    add(server, key, 2)
    query.run()
    add(server, other, 3)
    query.restart(streams=(key, other))
    joined = query.run()
    query.restart(streams=(other,))
    add(server, key, 2, start=3)
    add(server, other, 2, start=4)

    assert ids(joined) == ["1-0", "2-0", "3-0"]
    assert ids(query.run()) == ["4-0", "5-0"]


@pytest.mark.parametrize("entry", [f"{2**64 - 1}-{2**64 - 1}", "0-1", "1-18446744073709551615"])
def test_any_id_is_read(server: RedisServer, key: str, query: Query, entry: str) -> None:
    server.client.xadd(key, {"a": "b"}, id=entry)

    ((_, found, at, _),) = query.run()

    assert found == entry
    assert (at is None) == entry.startswith("18446744073709551615")


def test_values_can_be_bytes(server: RedisServer, start: Callable[..., Query], key: str) -> None:
    server.client.xadd(key, {"raw": b"\xff\x00"})
    query = start(key, binary=True)
    ((_, _, _, fields),) = query.run()

    assert fields == {"raw": b"\xff\x00"}


def test_bytes_that_are_no_text_are_an_error(server: RedisServer, key: str, query: Query) -> None:
    server.client.xadd(key, {"raw": b"\xff\x00"}, id="7-0")

    with pytest.raises(
        GemError, match=f"entry 7-0 of the stream `{key}` has a field that is no text"
    ) as caught:
        query.run()

    assert caught.value.option == "values"


# Parts


def test_each_stream_has_its_parts_and_large_ones_are_split(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    other = f"{key}-other"
    wanted = [*add(server, key, 10), *add(server, other, 2)]
    query = start(key, other, f"{key}-empty", per_partition=4)
    batch = query.plan()
    assert batch is not None
    parts = query.parts(batch)
    planned_again = start(key, other, per_partition=4).parts(batch)
    rows = query.rows(batch)

    assert [(part.stream, part.count) for part in parts] == [(key, 4), (key, 4), (key, 2), (other, 2)]
    assert parts == planned_again
    assert ids(rows) == wanted


# Limits


def test_a_micro_batch_has_no_more_than_it_may(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    wanted = add(server, key, 20)
    query = start(key, limit=7)
    found = [query.run() for _ in range(4)]

    assert [len(rows) for rows in found] == [7, 7, 6, 0]
    assert [entry for rows in found for entry in ids(rows)] == wanted


def test_streams_share_a_limit_and_leave_what_they_do_not_need(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    few, many, more = (f"{key}-{name}" for name in ("few", "many", "more"))
    for stream, count in ((few, 2), (many, 50), (more, 50)):
        add(server, stream, count)
    query = start(few, many, more, limit=30)
    rows = query.run()

    counts = [sum(row[0] == stream for row in rows) for stream in (few, many, more)]
    assert sum(counts) == 30
    assert counts[0] == 2
    assert abs(counts[1] - counts[2]) <= 1


def test_a_limit_below_the_number_of_streams_reaches_them_all(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    streams = [f"{key}-{number}" for number in range(5)]
    for stream in streams:
        add(server, stream, 4)
    query = start(*streams, limit=2)
    rows = [row for _ in range(10) for row in query.run()]

    assert sorted(row[:2] for row in rows) == sorted((s, f"{n}-0") for s in streams for n in range(1, 5))


def test_all_available_is_more_than_the_limit(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    add(server, key, 20)
    query = start(key, limit=7)
    end = query.reader.latestOffset({}, ReadAllAvailable())

    assert end[key]["id"] == "20-0"
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(7)


def test_available_now_ends_where_the_streams_ended_when_it_began(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    wanted = add(server, key, 10)
    query = start(key, f"{key}-later", limit=4)
    query.reader.prepareForTriggerAvailableNow()
    add(server, key, 10, start=11)
    add(server, f"{key}-later", 1)
    found = query.drain()

    assert ids(found) == wanted
    query.restart()
    assert len(query.drain()) == 11


# Where it starts


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("earliest", [3, 4, 5, 6, 7]),
        ("latest", [6, 7]),
        ("4-0", [4, 5, 6, 7]),
        ("3-1", [4, 5, 6, 7]),
        ("1-0", [3, 4, 5, 6, 7]),
        ("5-0", [5, 6, 7]),
        ("6-0", [6, 7]),
        ("7-0", [7]),
    ],
)
def test_a_first_run_starts_where_it_should(
    server: RedisServer, start: Callable[..., Query], key: str, place: str, wanted: list[int]
) -> None:
    add(server, key, 5)
    server.client.xtrim(key, minid="3-0", approximate=False)
    query = start(key, starting={key: place})
    first = query.run()
    add(server, key, 2, start=6)

    assert ids(first + query.run()) == [f"{number}-0" for number in wanted]


@pytest.mark.parametrize("place", ["earliest", "latest", "4-0"])
def test_the_first_micro_batch_has_the_same_rows_when_it_is_run_again(
    server: RedisServer, start: Callable[..., Query], key: str, place: str
) -> None:
    add(server, key, 5)
    query = start(key, starting=place if place.isalpha() else {key: place})
    batch = query.plan()
    assert batch is not None
    rows = query.rows(batch)
    add(server, key, 5, start=6)
    query.restart()

    assert query.rows(batch) == rows


# Batch


@pytest.mark.parametrize(
    ("starting", "ending", "wanted"),
    [
        ("earliest", "latest", range(1, 11)),
        ("4-0", "latest", range(4, 11)),
        ("earliest", "7-0", range(1, 8)),
        ("4-0", "7-9", range(4, 8)),
        ("latest", "latest", []),
        ("8-0", "3-0", []),
    ],
)
def test_a_batch_read_has_a_start_and_an_end(
    server: RedisServer, key: str, starting: str, ending: str, wanted: list[int]
) -> None:
    add(server, key, 10)
    settings = Settings(
        server.url, (key, f"{key}-missing"), starting={key: starting}, ending={key: ending}, per_partition=4
    )
    reader = RedisStreamsReader(settings)

    parts = pickle.loads(pickle.dumps(reader.partitions()))
    rows = [row for part in parts for row in reader.read(part)]

    assert ids(rows) == [f"{number}-0" for number in wanted]
    assert len(parts) == max(1, -(-len(wanted) // 4))


# Losses


def test_entries_that_are_trimmed_unread_are_an_error(server: RedisServer, key: str, query: Query) -> None:
    add(server, key, 5)
    query.run()
    add(server, key, 5, start=6)
    server.client.xtrim(key, minid="8-0", approximate=False)

    with pytest.raises(GemError) as caught:
        query.run()

    assert caught.value.message == (
        f"the stream `{key}` was trimmed: 2 entries were deleted behind 5-0 before being read"
    )
    assert caught.value.option == "fail_on_data_loss"


def test_so_are_all_of_them(server: RedisServer, key: str, query: Query) -> None:
    add(server, key, 5)
    query.run()
    add(server, key, 1, start=6)
    server.client.xtrim(key, maxlen=0, approximate=False)

    with pytest.raises(GemError, match="one entry was deleted behind 5-0 before being read"):
        query.run()


@pytest.mark.parametrize("keep", [0, 1, 2, 3])
def test_entries_that_are_trimmed_when_they_were_read_are_none(
    server: RedisServer, key: str, query: Query, keep: int
) -> None:
    add(server, key, 5)
    query.run()
    server.client.xtrim(key, maxlen=keep, approximate=False)
    add(server, key, 2, start=6)
    if not keep:
        server.client.xtrim(key, minid="6-0", approximate=False)

    assert ids(query.run()) == ["6-0", "7-0"]


def test_entries_that_were_deleted_one_by_one_long_ago_are_none(
    server: RedisServer, key: str, query: Query
) -> None:
    add(server, key, 6)
    server.client.xdel(key, "2-0", "3-0")
    query.run()
    server.client.xtrim(key, maxlen=0, approximate=False)
    add(server, key, 1, start=7)

    assert ids(query.run()) == ["7-0"]


def test_reading_can_go_on_with_what_is_left(
    server: RedisServer, start: Callable[..., Query], key: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(server, key, 5)
    query = start(key, fail_on_loss=False)
    query.run()
    add(server, key, 5, start=6)
    server.client.xtrim(key, minid="8-0", approximate=False)
    found = query.run()
    server.client.xtrim(key, maxlen=1, approximate=False)
    nothing = query.run()

    assert ids(found) == ["8-0", "9-0", "10-0"]
    assert nothing == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "2 entries were deleted behind 5-0" in caplog.text


@pytest.mark.parametrize("again", [0, 3, 9])
def test_a_stream_that_was_made_anew_is_an_error(
    server: RedisServer, key: str, query: Query, again: int
) -> None:
    add(server, key, 5)
    query.run()
    server.client.delete(key)
    add(server, key, again)

    if again <= 5:
        with pytest.raises(GemError, match=f"the stream `{key}` was deleted"):
            query.run()
    else:  # it has more entries than the old one ever had: those that have the ids of old ones are lost
        assert ids(query.run()) == ["6-0", "7-0", "8-0", "9-0"]


def test_a_stream_that_was_made_anew_can_be_read_from_its_start(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    add(server, key, 5)
    query = start(key, fail_on_loss=False)
    query.run()
    server.client.delete(key)
    wanted = add(server, key, 3)
    batch = query.plan()
    assert batch is not None
    rows = query.rows(batch)
    query.restart()

    assert ids(rows) == wanted
    assert query.rows(batch) == rows


def test_entries_that_vanish_between_planning_and_reading_are_an_error(
    server: RedisServer, key: str, query: Query
) -> None:
    add(server, key, 10)
    batch = query.plan()
    assert batch is not None
    server.client.xtrim(key, minid="4-0", approximate=False)

    with pytest.raises(GemError, match=f"3 entries were deleted from the stream `{key}` while"):
        query.rows(batch)


def test_a_micro_batch_that_is_run_again_misses_what_was_trimmed(
    server: RedisServer, key: str, query: Query
) -> None:
    add(server, key, 5)
    first = query.plan()
    add(server, key, 5, start=6)
    second = query.plan()
    assert first is not None
    assert second is not None
    server.client.xtrim(key, minid="7-0", approximate=False)
    query.restart()

    with pytest.raises(GemError, match="6 entries were deleted behind 0-18446744073709551615"):
        query.rows(first)
    with pytest.raises(GemError, match="one entry was deleted behind 5-0"):
        query.rows(second)


def test_what_is_trimmed_before_the_start_is_not_missed(
    server: RedisServer, start: Callable[..., Query], key: str
) -> None:
    add(server, key, 5)
    query = start(key, starting={key: "3-0"}, limit=1)
    first = query.run()
    server.client.xtrim(key, minid="3-0", approximate=False)
    second = query.run()
    server.client.xtrim(key, minid="5-0", approximate=False)

    assert ids(first + second) == ["3-0", "4-0"]
    assert ids(query.run()) == ["5-0"]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_an_entry_is_read_once_or_missed_aloud(
    server: RedisServer, start: Callable[..., Query], key: str, seed: int
) -> None:
    """Entries are added, trimmed and read at random: what is read and what is said to be gone is all of it."""
    dice = random.Random(seed)
    query = start(key, limit=dice.choice([None, 3, 10]), per_partition=dice.choice([2, 100]))
    unread: list[str] = []
    last: list[str] = []
    added = 0
    done = {"read": 0, "missed": 0, "run again": 0}
    for _ in range(120):
        action = dice.choice(["add", "add", "read", "read", "trim", "restart", "again"])
        there = ids_in(server, key)
        gone = [entry for entry in unread if entry not in there]
        if action == "add":
            count = dice.randint(1, 6)
            unread += add(server, key, count, start=added + 1)
            added += count
        elif action == "trim":
            server.client.xtrim(key, maxlen=dice.randint(0, 6), approximate=False)
        elif action == "restart":
            query.restart()
        elif action == "again" and last and set(last) <= set(there):
            query.restart()
            assert ids(query.rows(query.batches[-1])) == last
            done["run again"] += 1
        elif action == "read" and gone and query.offset:
            with pytest.raises(GemError, match="deleted"):
                query.plan()
            query.offset, unread, last = {}, there, []
            query.restart()
            done["missed"] += 1
        elif action == "read":
            unread = [entry for entry in unread if entry in there]
            if batch := query.plan():
                last = ids(query.rows(batch))
                assert last == unread[: query.settings.limit]
                unread = unread[len(last) :]
                done["read"] += 1
            else:
                assert unread == []
    assert min(done.values()) > 0, done


# Ids


def test_ids_are_ordered_as_redis_orders_them() -> None:
    texts = ["0-1", "1-0", "1-9", "1-10", "9-0", "10-0"]

    parsed = [EntryId.parse(text) for text in texts]

    assert sorted(parsed, reverse=True)[::-1] == parsed
    assert [str(entry) for entry in parsed] == texts
    assert EntryId.parse("5") == EntryId(5, 0)
    assert all(entry.before().after() == entry for entry in parsed)
    assert NONE.before() == NONE
    assert str(EntryId(3).before()) == "2-18446744073709551615"


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-a", "1.5", f"{2**64}-0", "$", "1-0 "])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="isn't one"):
        EntryId.parse(text)
