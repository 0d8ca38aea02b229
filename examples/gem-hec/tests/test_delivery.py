"""No event is lost, whatever the collector does; those that are sent twice are known by their ids."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from collector_server import TOKEN, LocalCollector

from gem_bundle import GemError
from gem_hec.collector import Address, Collector
from gem_hec.delivery import Delivery, Patience, Sender, payloads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HASTY = Patience(retry_for=20.0, backoff=0.01, max_backoff=0.05, acknowledge_within=5.0)


def rows(count: int) -> list[tuple[str, bool]]:
    return [(json.dumps({"event": {"id": number, "text": "é" * 20}}), False) for number in range(count)]


def deliver(
    collector: LocalCollector,
    events: Iterable[tuple[str, bool]],
    max_payload: int = 1_000,
    patience: Patience = HASTY,
    **address: Any,
) -> None:
    where = Address(
        f"{collector.url}/services/collector/event", **{"token": TOKEN, "timeout": 0.3, **address}
    )
    Delivery(where, max_payload, patience)(iter(events))


# Payloads


def test_events_are_split_over_posts_that_are_as_full_as_they_may_be(collector: LocalCollector) -> None:
    deliver(collector, rows(100), max_payload=1_000)

    assert [event["event"]["id"] for event in collector.events] == list(range(100))
    sizes = [post.size for post in collector.posts]
    largest = max(len(text.encode()) for text, _ in rows(100))
    assert max(sizes) <= 1_000
    assert min(sizes[:-1]) > 1_000 - largest - 1


@pytest.mark.parametrize("limit", range(3, 14))
def test_payloads_hold_all_events_and_never_more_than_the_limit(limit: int) -> None:
    texts = ["a", "bb", "ccc", "d", "é", "f"]
    given = [((text, False), None) for text in texts]

    found = [b"\n".join(event.content for event in events) for events in payloads(given, limit)]

    assert b"\n".join(found).decode().split("\n") == texts
    assert all(len(payload) <= limit for payload in found)


def test_no_rows_are_no_post(collector: LocalCollector) -> None:
    deliver(collector, [])

    assert collector.tries == 0


def test_an_event_that_is_too_large_is_named_and_nothing_behind_it_is_sent(collector: LocalCollector) -> None:
    large = json.dumps({"event": {"id": 7, "text": "é" * 1_000}}, ensure_ascii=False)

    with pytest.raises(GemError) as caught:
        deliver(collector, [*rows(7), (large, False), *rows(3)])

    assert '2,032 bytes, and `max_payload` is 1,000: `{"event": {"id": 7, "text": "éé' in str(caught.value)
    assert caught.value.option == "max_payload"
    assert len(str(caught.value)) < 400
    assert 7 not in collector.ids
    assert len(collector.events) <= 7


def test_an_event_without_content_is_named(collector: LocalCollector) -> None:
    with pytest.raises(GemError, match=r'a row has no event, .*`{"time":1.5}`'):
        deliver(collector, [('{"time":1.5}', True)])

    assert collector.events == []


# Failures


@pytest.mark.parametrize("fault", ["500", "502", "503", "504", "429", "408", "drop", "a page"])
def test_what_was_not_taken_is_sent_again(collector: LocalCollector, fault: str) -> None:
    collector.faults = [fault, "", fault, fault]

    deliver(collector, rows(30))

    assert collector.ids == list(range(30))
    assert collector.tries == len(collector.posts) + 3


@pytest.mark.parametrize("fault", ["lose the answer", "half an answer", "silence"])
def test_what_may_have_been_taken_is_sent_again_too(collector: LocalCollector, fault: str) -> None:
    collector.faults = ["", fault]

    deliver(collector, rows(30))

    assert sorted(set(collector.ids)) == list(range(30))
    twice = [event["event"]["id"] for event in collector.posts[1].events]
    assert collector.posts[2].events == collector.posts[1].events
    assert len(collector.ids) == 30 + len(twice)


def test_any_order_of_failures_loses_nothing(collector: LocalCollector) -> None:
    faults = ["503", "", "drop", "lose the answer", "429:0", "", "half an answer", "500", "a page", ""]
    collector.fault = lambda number: faults[number * 7 % 10]

    deliver(collector, rows(200))

    assert sorted(set(collector.ids)) == list(range(200))


def test_a_refusal_is_an_error_at_once_and_says_which_event(collector: LocalCollector) -> None:
    events = rows(5)
    events[3] = ('{"index":"unknown","event":{"id":3}}', False)

    with pytest.raises(GemError) as caught:
        deliver(collector, events)

    assert str(caught.value).startswith(
        "the collector refuses events, 400, code 7: Incorrect index; it is about"
    )
    assert '`{"index":"unknown","event":{"id":3}}`' in str(caught.value)
    assert collector.tries == 1


def test_an_answer_never_shows_the_token(collector: LocalCollector) -> None:
    with pytest.raises(GemError) as caught:
        deliver(collector, rows(1), token="wrong-token")

    assert (
        caught.value.message == "the collector refuses events, 403, code 4: Invalid token Splunk **********"
    )
    assert caught.value.hint.startswith("Correct `token`")


def test_a_redirection_is_told_and_not_followed(collector: LocalCollector) -> None:
    collector.faults = ["307"]

    with pytest.raises(GemError, match=r"It points to https://elsewhere\.example\.com/"):
        deliver(collector, rows(1))


def test_nobody_there_is_an_error_when_the_time_is_up() -> None:
    with pytest.raises(GemError) as caught:
        deliver(
            LocalCollector("http://127.0.0.1:1"),
            rows(1),
            patience=Patience(retry_for=0.2, backoff=0.05, max_backoff=0.05),
        )

    assert "ConnectionRefusedError" in caught.value.message
    assert caught.value.option == "retry_for"
    assert "No row is lost" in caught.value.hint


# Refusals that are told


def refused(collector: LocalCollector, events: Iterable[tuple[str, bool]], **address: Any) -> dict[int, str]:
    """What is told of the events by their number, when those that are refused don't end it."""
    where = Address(
        f"{collector.url}/services/collector/event", **{"token": TOKEN, "timeout": 0.3, **address}
    )
    told = list(Delivery(where, 1_000, HASTY).of_each((row, number) for number, row in enumerate(events)))
    found = {number: name for number, name, _ in told}
    assert len(found) == len(told), "an event was told twice"
    return found


def unknown_index(number: int) -> tuple[str, bool]:
    return f'{{"index":"unknown","event":{{"id":{number}}}}}', False


@pytest.mark.parametrize("bad", [{0}, {3, 4, 5}, {199}, set(range(200)), set(range(0, 200, 7))])
@pytest.mark.parametrize("says_which", [True, False])
def test_a_refused_event_is_told_and_the_others_arrive(
    collector: LocalCollector, bad: set[int], says_which: bool
) -> None:
    collector.says_which = says_which
    events = [unknown_index(n) if n in bad else row for n, row in enumerate(rows(200))]

    assert refused(collector, events) == dict.fromkeys(bad, "refused")
    assert set(collector.ids) == set(range(200)) - bad
    assert all(collector.ids.count(n) <= 2 for n in set(collector.ids)) or not says_which


def test_what_can_not_be_sent_is_told(collector: LocalCollector) -> None:
    events = rows(20)
    events[4] = ('{"time":1.5}', True)
    events[7] = (json.dumps({"event": {"id": 7, "text": "x" * 1_000}}), False)
    events[19] = ("{}", True)

    assert refused(collector, events) == {4: "no_event", 7: "too_large", 19: "no_event"}
    assert collector.ids == [n for n in range(20) if n not in {4, 7, 19}]


def test_a_post_that_is_too_large_for_the_collector_is_split(collector: LocalCollector) -> None:
    collector.takes = 300
    events = [*rows(20), (json.dumps({"event": {"id": 20, "text": "x" * 400}}), False)]

    assert refused(collector, events) == {20: "too_large"}
    assert collector.ids == list(range(20))


def test_all_failures_in_turn_lose_and_reject_nothing_else(collector: LocalCollector) -> None:
    faults = ["503", "", "drop", "lose the answer", "429:0", "", "half an answer", "500", "silence", ""]
    collector.fault = lambda number: faults[number % 10]
    events = [unknown_index(n) if n % 9 == 0 else row for n, row in enumerate(rows(200))]

    assert refused(collector, events) == dict.fromkeys(range(0, 200, 9), "refused")
    assert set(collector.ids) == {n for n in range(200) if n % 9}


@pytest.mark.parametrize("wrong", [{"token": "other"}, {"acknowledged": True}])
def test_what_is_not_about_events_is_an_error_still(collector: LocalCollector, wrong: dict[str, Any]) -> None:
    with pytest.raises(GemError):
        refused(collector, rows(3), **wrong)


def test_nothing_is_told_when_the_time_is_up(collector: LocalCollector) -> None:
    collector.fault = lambda _: "500"
    where = Address(f"{collector.url}/services/collector/event", TOKEN)
    patience = Patience(retry_for=0.1, backoff=0.02, max_backoff=0.02)

    with pytest.raises(GemError, match="hasn't taken some events"):
        list(Delivery(where, 1_000, patience).of_each((row, None) for row in rows(5)))


# Waiting


class Clock:
    """Time that passes by waiting only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._made: list[Collector] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def sender(self, collector: LocalCollector, patience: Patience, **address: Any) -> Sender:
        where = Address(f"{collector.url}/services/collector/event", TOKEN, **address)
        self._made.append(Collector(where))
        return Sender(self._made[-1], patience, self.sleep, lambda: self.now)

    def close(self) -> None:
        for collector in self._made:
            collector.close()


@pytest.fixture
def clock() -> Iterator[Clock]:
    with closing(Clock()) as found:
        yield found


def test_waits_double_up_to_the_longest_and_half_of_each_is_random(
    collector: LocalCollector, clock: Clock
) -> None:
    collector.faults = ["503"] * 6

    clock.sender(collector, Patience(backoff=1.0, max_backoff=8.0)).send(b'{"event":{"id":1}}')

    assert len(clock.waits) == 6
    for wait, longest in zip(clock.waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert longest / 2 <= wait <= longest
    assert len(set(clock.waits)) == 6
    assert collector.ids == [1]


def test_a_wait_is_as_long_as_the_collector_asks_for(collector: LocalCollector, clock: Clock) -> None:
    collector.faults = ["503:17", "429:0", "503:Fri, 31 Dec 1999 23:59:59 GMT", "503:soon"]

    clock.sender(collector, Patience(backoff=1.0, max_backoff=1.0)).send(b'{"event":{"id":1}}')

    assert clock.waits[0] == 17.0
    assert all(0.5 <= wait <= 1.0 for wait in clock.waits[1:])
    assert collector.ids == [1]


def test_who_asks_for_longer_than_there_is_time_is_not_waited_for(
    collector: LocalCollector, clock: Clock
) -> None:
    collector.faults = ["503:3600"]

    with pytest.raises(GemError, match=r"Server is busy, and asks to be left alone for 3600 s"):
        clock.sender(collector, Patience(retry_for=300.0)).send(b'{"event":{"id":1}}')

    assert clock.waits == []


def test_it_is_tried_for_as_long_as_it_may(collector: LocalCollector, clock: Clock) -> None:
    collector.faults = ["503"] * 1_000

    with pytest.raises(GemError, match=r"hasn't taken some events in .* tries"):
        clock.sender(collector, Patience(retry_for=100.0, backoff=1.0, max_backoff=10.0)).send(b"{}")

    assert 90.0 <= clock.now <= 100.0


# Acknowledgement


def test_acknowledgements_are_waited_for(collector: LocalCollector) -> None:
    collector.acknowledges = 3

    deliver(collector, rows(30), acknowledged=True)

    assert collector.questions == 4
    assert collector.ids == list(range(30))


def test_events_that_are_not_acknowledged_in_time_are_an_error(
    collector: LocalCollector, clock: Clock
) -> None:
    collector.acknowledges = 1_000_000
    sender = clock.sender(collector, Patience(acknowledge_within=60.0), acknowledged=True)
    sender.send(b'{"event":{"id":1}}')

    with pytest.raises(GemError, match="1 of the POSTs were taken but not written within 60 s"):
        sender.wait_for_acknowledgements()

    assert 30.0 <= clock.now <= 60.0


def test_a_collector_that_acknowledges_nothing_is_an_error(collector: LocalCollector) -> None:
    with pytest.raises(GemError, match="won't say when they are written"):
        deliver(collector, rows(1), acknowledged=True)


def test_a_token_that_wants_acknowledgements_says_what_to_set(collector: LocalCollector) -> None:
    collector.acknowledges = 0

    with pytest.raises(GemError, match="set `acknowledge: true`"):
        deliver(collector, rows(1))


# The rest of HTTP


def test_what_is_sent_can_be_compressed(collector: LocalCollector) -> None:
    deliver(collector, rows(30), compressed=True)

    assert all(post.compressed for post in collector.posts)
    assert collector.ids == list(range(30))


def test_the_limit_is_for_what_is_not_compressed_yet(collector: LocalCollector) -> None:
    deliver(collector, rows(30), compressed=True, max_payload=500)

    assert max(post.size for post in collector.posts) <= 500


def test_an_address_does_not_show_the_token() -> None:
    assert TOKEN not in repr(Address("https://localhost:8088", TOKEN))
