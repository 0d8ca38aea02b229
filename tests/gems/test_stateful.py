"""The transform `stateful` in Spark: what processors give is what plain Python makes of the rows."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError
from gem_bundle.contexts import StreamReadContext
from gem_python.stateful import Stateful
from tests.gems.draining import forget_last_commit, micro_batches
from tests.gems.transforms import made
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

what_processors_do = some_of("processors of state", 1)

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
DELAY = timedelta(minutes=10)
MODULE = """
from datetime import datetime

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


def milliseconds(at):
    return int(at.timestamp() * 1000)


class Silence(StatefulProcessor):
    def __init__(self, minutes):
        self.milliseconds = minutes * 60_000

    def init(self, handle):
        self.handle = handle
        self.latest = handle.getValueState("latest", "at bigint, value bigint")

    def handleInputRows(self, key, rows, timerValues):
        read = [(milliseconds(row.at), row.value) for row in rows]
        if self.latest.exists():
            read.append(tuple(self.latest.get()))
        self.latest.update(max(read))
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(max(read)[0] + self.milliseconds)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        at, value = self.latest.get()
        self.latest.clear()
        yield Row(device=key[0], last=value)

    def close(self):
        pass


class Sessions(StatefulProcessor):
    # The sessions of a key: what lies no further apart than the gap is one.
    def __init__(self, minutes):
        self.gap = minutes * 60_000

    def init(self, handle):
        self.handle = handle
        self.open = handle.getMapState("open", "start bigint", "end bigint, n bigint")

    def handleInputRows(self, key, rows, timerValues):
        parts = [(milliseconds(row.at), milliseconds(row.at), 1) for row in rows]
        parts += [(start, *held) for (start,), held in self.open.iterator()]
        merged = []
        for start, end, n in sorted(parts):
            if merged and start - merged[-1][1] < self.gap:
                first, last, count = merged[-1]
                merged[-1] = (first, max(last, end), count + n)
            else:
                merged.append((start, end, n))
        self.open.clear()
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        for start, end, n in merged:
            self.open.updateValue((start,), (end, n))
            self.handle.registerTimer(end + self.gap)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        due = expiredTimerInfo.getExpiryTimeInMs()
        for (start,), (end, n) in list(self.open.iterator()):
            if end + self.gap <= due:
                self.open.removeKey((start,))
                yield Row(device=key[0], began=start, n=n)

    def close(self):
        pass


class Sums(StatefulProcessor):
    def init(self, handle):
        self.sum = handle.getValueState("sum", "s bigint")

    def handleInputRows(self, key, rows, timerValues):
        found = (self.sum.get() or (0,))[0] + sum(row.value for row in rows)
        self.sum.update((found,))
        yield Row(device=key[0], s=found)

    def handleInitialState(self, key, initialState, timerValues):
        self.sum.update((initialState.s,))

    def close(self):
        pass


class SumsOfFrames(StatefulProcessor):
    def init(self, handle):
        self.sum = handle.getValueState("sum", "s bigint")

    def handleInputRows(self, key, rows, timerValues):
        found = (self.sum.get() or (0,))[0] + sum(int(frame["value"].sum()) for frame in rows)
        self.sum.update((found,))
        yield pd.DataFrame({"device": [key[0]], "s": [found]})

    def close(self):
        pass


class Short(StatefulProcessor):
    def init(self, handle):
        pass

    def handleInputRows(self, key, rows):
        return iter(())

    def close(self):
        pass


class Other:
    pass
"""
Reading = tuple[str, datetime, int]


@pytest.fixture(scope="module", autouse=True)
def processors(user_modules: Path) -> None:
    (user_modules / "processors_of_tests.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The suite's session, with the settings that the runtime takes over from the gem."""
    asked = stateful("Sums", "s bigint").session_settings()
    for key, value in asked.items():
        spark.conf.set(key, value)
    yield spark
    for key in asked:
        spark.conf.unset(key)


def stateful(name: str, schema: str, *inputs: str, **options: Any) -> Stateful:
    given = {"processor": f"processors_of_tests:{name}", "group_by": ["device"]} | options
    found = made(Stateful, *inputs, schema=f"device string, {schema}", **given)
    assert isinstance(found, Stateful)
    return found


class Readings:
    """A folder of files into which readings come, one file for each micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        folder.mkdir()

    def add(self, rows: Sequence[Reading]) -> None:
        number = len(list(self._folder.iterdir()))
        lines = [json.dumps({"device": d, "at": at.isoformat(), "value": v}) for d, at, v in rows]
        (self._folder / f"{number:05}.json").write_text("\n".join(lines), encoding="utf-8")

    def stream(self) -> DataFrame:
        reader = StreamReadContext("readings", self._spark, "readings").reader
        reader = reader.schema("device string, at timestamp, value bigint").option("maxFilesPerTrigger", "1")
        return reader.json(str(self._folder)).withWatermark("at", "10 minutes")


def drawn(seed: int, count: int) -> list[list[Reading]]:
    """Two micro-batches of readings that are late by less than ten minutes, and one that ends all sessions."""
    random = Random(seed)
    rows = [
        (random.choice("abcde"), START + timedelta(seconds=random.randrange(36_000)), number)
        for number in range(count)
    ]
    rows.sort(key=lambda row: row[1] + timedelta(minutes=random.randrange(9)))
    return [rows[: count // 2], rows[count // 2 :], [("end", START + timedelta(days=1), 0)]]


def silences(parts: Sequence[Sequence[Reading]], gap: timedelta) -> list[tuple[str, int]]:
    """Who fell silent, and its last reading: after each micro-batch, by the watermark that it leaves."""
    found, latest = [], dict[str, tuple[datetime, int]]()
    newest = START
    for rows in parts:
        for device, at, value in rows:
            latest[device] = max(latest.get(device, (at, value)), (at, value))
            newest = max(newest, at)
        for device, (at, value) in list(latest.items()):
            if at + gap <= newest - DELAY:
                found.append((device, value))
                del latest[device]
    return found


def sessions(rows: Sequence[Reading], gap: timedelta) -> list[tuple[str, list[tuple[datetime, int]]]]:
    """The readings of each session, by device, in plain Python."""
    by: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for device, at, value in rows:
        by[device].append((at, value))
    found = []
    for device, readings in by.items():
        readings.sort()
        for reading in readings:
            last = found[-1] if found and found[-1][0] == device else None
            if last is not None and reading[0] - last[1][-1][0] < gap:
                last[1].append(reading)
            else:
                found.append((device, [reading]))
    return found


@what_processors_do
@pytest.mark.spark
def test_a_device_that_fell_silent_and_sessions_are_those_of_plain_python(
    session: SparkSession, tmp_path: Path
) -> None:
    """Each run goes on with what the one before it kept."""
    readings = Readings(session, tmp_path / "in")
    gap = timedelta(minutes=12)
    silent = stateful("Silence", "last bigint", arguments={"minutes": 12}, time="event")
    parted = stateful("Sessions", "began bigint, n bigint", arguments={"minutes": 12}, time="event")
    alarms, closed = [], []
    parts = drawn(7, 60)
    for rows in parts:
        readings.add(rows)
        alarms += [
            row for rows in micro_batches(silent.apply(readings.stream()), tmp_path / "a") for row in rows
        ]
        closed += [
            row for rows in micro_batches(parted.apply(readings.stream()), tmp_path / "b") for row in rows
        ]
    expected = sessions([row for rows in parts[:-1] for row in rows], gap)
    assert len(expected) > 20
    assert sorted(alarms) == sorted(silences(parts, gap))
    began = [(device, int(found[0][0].timestamp() * 1000), len(found)) for device, found in expected]
    assert sorted(closed) == sorted(began)


@what_processors_do
@pytest.mark.spark
def test_state_is_kept_once_where_a_micro_batch_runs_again(session: SparkSession, tmp_path: Path) -> None:
    """As rows and as data frames, and with a state to begin with."""
    known = session.sql("select 'a' as device, 100L as s")
    ways = {
        "rows": stateful("Sums", "s bigint", output_mode="update"),
        "frames": stateful("SumsOfFrames", "s bigint", output_mode="update", form="pandas"),
    }
    for name, gem in ways.items():
        readings = Readings(session, tmp_path / f"in_{name}")
        readings.add([("a", START, 1), ("b", START, 2), ("a", START, 3)])
        assert sorted(micro_batches(gem.apply(readings.stream()), tmp_path / name)[0]) == [("a", 4), ("b", 2)]
        readings.add([("a", START, 5)])
        assert micro_batches(gem.apply(readings.stream()), tmp_path / name) == [[("a", 9)]]
        forget_last_commit(tmp_path / name)
        assert micro_batches(gem.apply(readings.stream()), tmp_path / name)[0] == [("a", 9)]
    begun = stateful("Sums", "s bigint", "readings", "known", output_mode="update", initial_state="known")
    found = micro_batches(begun.apply(readings.stream(), known), tmp_path / "begun")
    assert sorted(found[0]) == [("a", 104), ("b", 2)]


@pytest.mark.spark
def test_a_processor_that_spark_could_not_call_is_told_before(session: SparkSession) -> None:
    rows = session.sql("select 'a' as device, 1L as value")
    for name, code, words in (
        ("Other", "GB506", "is no class derived from"),
        ("Short", "GB507", r"can't be called as `handleInputRows\(key, rows, timerValues\)`"),
        ("Silence", "GB507", "minutes"),
    ):
        with pytest.raises(GemError, match=words) as raised:
            stateful(name, "s bigint").apply(rows)
        assert raised.value.code == code
    assert [tuple(row) for row in stateful("Sums", "s bigint").apply(rows).collect()] == [("a", 1)]
