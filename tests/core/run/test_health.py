"""How well targets are, when queries are started again, and how long they are behind; without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem_bundle.errors import GemError, PassingError, UnreachableError
from gem_bundle.pipeline.health import Health, Limit, Restarts
from gem_bundle.pipeline.model import Node
from gem_bundle.run.behind import KEPT, Behind
from gem_bundle.run.health import TargetHealth, failing
from gem_bundle.run.held import HeldRows
from gem_bundle.run.passing import passing_reason
from gem_bundle.run.restarts import RestartPlan
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from gem_bundle.run.progress import MicroBatch

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class Clock:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def node(*limits: Limit, name: str = "table", group: str = "") -> Node:
    return Node(name, "target", "any", {}, (), ("targets", name), health=Health(limits), group=group)


def watched(*limits: Limit) -> tuple[TargetHealth, Clock]:
    clock = Clock()
    return TargetHealth(node(*limits), clock, lambda: START.timestamp() + clock.time - 1000), clock


def test_a_limit_is_broken_once_and_well_again_once() -> None:
    health, _ = watched(Limit("batch_time", "seconds", fail=60))
    assert health.look() == []
    health.ended(replace(BATCH, duration_ms=60_000))
    assert health.look() == []
    health.ended(replace(BATCH, duration_ms=60_001))
    (broken,) = health.look()
    assert (broken.event, broken.target, broken.unwell.level) == ("unhealthy", "table", "fail")
    assert broken.unwell.reason == "`batch_time` is 60 s, more than 60 s"
    assert broken.unwell.since == "2026-01-05T09:00:00Z"
    assert failing([broken.unwell.as_dict()]) == [broken.unwell.reason]
    assert health.look() == []
    health.ended(replace(BATCH, duration_ms=1))
    assert [change.event for change in health.look()] == ["healthy"]
    assert health.unwell == {}


def test_with_another_start_nothing_is_broken() -> None:
    health, _ = watched(Limit("batch_time", "seconds", fail=1))
    health.ended(BATCH)
    (broken,) = health.look()
    assert health.begin() == [replace(broken, event="healthy")]
    assert (health.begin(), health.unwell, health.look()) == ([], {}, [])


def test_levels_follow_each_other_and_last() -> None:
    health, clock = watched(Limit("state_rows", "count", warn=10, fail=20, lasting=30))
    health.ended(replace(BATCH, state_rows=25))
    assert health.look() == []
    clock.time += 29
    assert health.look() == []
    clock.time += 1
    assert [change.unwell.level for change in health.look()] == ["fail"]
    health.ended(replace(BATCH, state_rows=15))
    (change,) = health.look()
    assert (change.event, change.unwell.level, failing([change.unwell.as_dict()])) == (
        "unhealthy",
        "warn",
        [],
    )
    health.ended(replace(BATCH, state_rows=25))
    assert health.look() == [], "the level fail begins anew"
    clock.time += 30
    assert [change.unwell.level for change in health.look()] == ["fail"]


def test_no_progress_is_about_a_query_at_work() -> None:
    health, clock = watched(Limit("no_progress", "seconds", fail=600))
    assert health.asks_for_progress
    clock.time += 599
    health.rests()
    clock.time += 600
    assert health.look() == []
    clock.time += 1
    assert [change.unwell.limit for change in health.look()] == ["no_progress"]
    health.ended(BATCH)
    assert [change.event for change in health.look()] == ["healthy"]


@pytest.mark.parametrize(
    ("limit", "batch", "value"),
    [
        ("behind.records", replace(BATCH, lag={"a": 3, "b": 4}), 7),
        ("behind.time", replace(BATCH, lag_seconds={"a": 3.0, "b": 4.0}), 4.0),
        ("watermark_behind", replace(BATCH, watermark="2026-01-05T08:59:00.000Z"), 60.0),
        ("rejected", replace(BATCH, rows_in=200, held=HeldRows({"x": 3, "y": 1})), 0.02),
    ],
)
def test_what_is_measured(limit: str, batch: MicroBatch, value: float) -> None:
    unit = {"behind.time": "seconds", "watermark_behind": "seconds", "rejected": "share"}.get(limit, "count")
    for bound, broken in ((value, False), (value * 0.99, True)):
        health, _ = watched(Limit(limit, unit, fail=bound))  # type: ignore[arg-type]
        assert health.look() == [], "nothing is known yet"
        health.ended(batch)
        found = health.look()
        assert [change.unwell.value for change in found] == ([value] if broken else [])


def test_the_share_of_rejected_rows_is_that_of_the_last_micro_batches() -> None:
    health, _ = watched(Limit("rejected", "share", fail=0.1))
    bad = replace(BATCH, rows_in=10, held=HeldRows({"x": 10}))
    good = replace(BATCH, rows_in=10, held=HeldRows())
    health.ended(bad)
    assert [change.event for change in health.look()] == ["unhealthy"]
    for _ in range(9):
        health.ended(good)
    assert [change.event for change in health.look()] == ["healthy"]


def test_a_query_is_started_again_as_often_as_it_may() -> None:
    clock = Clock()
    plan, table = RestartPlan(clock), [node(name="table")]
    limits = Restarts(most=2, within=100, wait=10)
    assert not plan
    assert plan.take(table, limits)
    assert (bool(plan), plan.waiting(), plan.due()) == (True, ["table"], [])
    clock.time += 10
    assert plan.due() == [tuple(table)]
    assert (plan.waiting(), plan.due()) == ([], [])
    assert plan.take(table, limits)
    clock.time += 89
    assert plan.due() == [tuple(table)]
    assert not plan.take(table, limits)
    clock.time += 1
    assert plan.take(table, limits), "the first one was long ago"
    assert plan.take([node(name="other")], limits), "each query has its own"
    assert [found.id for found in plan.drop("table")] == ["table"]
    assert plan.waiting() == ["other"]
    assert plan.drop("table") == ()


def test_targets_of_a_group_wait_together() -> None:
    clock = Clock()
    plan = RestartPlan(clock)
    group = [node(name="a", group="both"), node(name="b", group="both")]
    assert plan.take(group, Restarts(most=1, wait=0))
    assert not plan.take(group[::-1], Restarts(most=1, wait=0))
    assert len(plan.due()) == 1


_JAVA = "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query x terminated with exception: "
_TRACE = 'Traceback (most recent call last):\n  File "/home/u/f.py", line 3, in f\n    x()\n'


@pytest.mark.parametrize(
    "text",
    [
        f"{_JAVA}org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment.",
        f"{_JAVA}java.net.ConnectException: Connection refused",
        f"{_JAVA}io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] Files were added",
        f"{_JAVA}org.postgresql.util.PSQLException: FATAL: terminating connection due to administrator command",
        f"{_JAVA}com.amazonaws.services.s3.model.AmazonS3Exception: Please reduce: SlowDown",
        f"{_JAVA}Job aborted: ExecutorLostFailure (executor 3 exited caused by one of the running tasks)",
        f"{_JAVA}the lease of table `t` was lost",
        f"{_JAVA}\n{_TRACE}ConnectionRefusedError: [Errno 111] Connection refused\n",
        f"{_JAVA}\n{_TRACE}gem_bundle.errors.PassingError: the registry can't be reached\n",
    ],
)
def test_what_passes(text: str) -> None:
    assert passing_reason([RuntimeError(text)])


@pytest.mark.parametrize(
    "text",
    [
        f"{_JAVA}java.lang.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero",
        f"{_JAVA}[UNRESOLVED_COLUMN] x",
        f"{_JAVA}[CAST_INVALID_INPUT] The value 'Connection refused' is malformed. SQLSTATE: 22018",
        f"{_JAVA}[USER_RAISED_EXCEPTION] Broken pipe SQLSTATE: P0001",
        f"{_JAVA}org.apache.spark.SparkFileNotFoundException: File does not exist",
        f"{_JAVA}[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] …",
        f"{_JAVA}org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host",
        f"{_JAVA}org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
        f"{_JAVA}\n{_TRACE}ValueError: Connection refused\n",
        f"{_JAVA}\n{_TRACE}gem_bundle.errors.UnreachableError: it refuses the login: Connection refused\n",
        f"{_JAVA}\n{_TRACE}KeyError: 'TimeoutException'\n",
        "",
    ],
)
def test_what_comes_again(text: str) -> None:
    assert passing_reason([RuntimeError(text)]) == ""


def test_of_several_failures_all_have_to_pass() -> None:
    passing, lasting = ConnectionResetError("reset"), ValueError("odd")
    assert passing_reason([passing]) == "a connection failed: ConnectionResetError"
    assert passing_reason([passing, lasting]) == ""
    assert passing_reason([GemError("GB503", "Connection refused")]) == ""
    assert passing_reason([UnreachableError("the login is refused")]) == ""
    assert passing_reason([PassingError("Connection refused")]) == "a system outside can't be reached"
    assert passing_reason([]) == ""


def at(second: float, newest: int, lag: int) -> MicroBatch:
    began = (START + timedelta(seconds=second)).isoformat()
    return replace(BATCH, timestamp=began, lag={"t": lag}, newest={"t": newest})


def test_how_long_it_is_behind() -> None:
    behind = Behind()
    assert behind.told(at(0, 1000, 400)).lag_seconds == {"t": 0.0}, "since when is not known"
    assert behind.told(at(10, 1100, 300)).lag_seconds == {"t": 10.0}, "at least so long"
    assert behind.told(at(20, 1200, 150)).lag_seconds == {"t": 15.0}, "halfway between the first two"
    assert behind.told(at(30, 1200, 0)).lag_seconds == {"t": 0.0}
    assert behind.told(at(40, 50, 50)).lag_seconds == {"t": 0.0}, "the topic was made anew"
    assert behind.told(BATCH) == BATCH


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(1, 30))
def test_it_is_right_within_a_micro_batch(came: list[int], pace: int) -> None:
    """Records come evenly within each second; a micro-batch a second reads so many of them."""
    behind, newest, read = Behind(), 0, 0
    history = [0]
    for second, records in enumerate(came, 1):
        newest += records
        history.append(newest)
        read = min(newest, read + pace)
        (seconds,) = behind.told(at(second, newest, newest - read)).lag_seconds.values()
        if read == newest:
            assert seconds == 0
            continue
        after = next(s for s, there in enumerate(history) if there > read)
        if after <= 1:
            assert seconds == second - 1, "it was there before the first micro-batch"
        else:
            assert second - after <= seconds <= second - after + 1


def test_what_it_remembers_is_bounded() -> None:
    behind = Behind()
    for second in range(5 * KEPT):
        told = behind.told(at(second, second * 10, second * 10))
    assert len(behind._newest["t"]) <= KEPT
    assert told.lag_seconds == {"t": 5 * KEPT - 1.0}
