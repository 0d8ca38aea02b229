"""Lists of steps in Python, and the engine below them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Pipeline
from gem_bundle.schema import fields_of
from gem_bundle.testing import (
    AddRows,
    AdvanceWatermark,
    CheckRows,
    CheckWatermark,
    ExpectFailure,
    Process,
    Replace,
    Restart,
    Step,
    StepsFailed,
    Stop,
    run_steps,
)
from gem_bundle.testing.running import engine, runner
from gem_bundle.testing.running.stand_ins import read_lines, to_lines
from gem_bundle.testing.values import Reader, fields_of_schema, take_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.testing import TestOutcome
    from gem_bundle.testing.running.outcome import StepOutcome

    Run = Callable[..., TestOutcome]

ORDERS = (
    Pipeline("orders")
    .source("orders", "file", {"format": "json", "path": "x", "schema": "shop string, at timestamp, n int"})
    .source("names", "delta", {"path": "names"}, mode="batch")
    .transform("timely", "watermark", "orders", {"column": "at", "delay": "10 minutes"})
    .transform(
        "hourly",
        "aggregate",
        "timely",
        {
            "window": {"column": "at", "duration": "1 hour"},
            "group_by": ["shop"],
            "aggregates": {"n": "sum(n)"},
        },
    )
    .transform("flat", "select", "hourly", {"columns": {"hour": "window.start", "shop": "shop", "n": "n"}})
    .transform("named", "join", ["orders", "names"], {"how": "left", "on": ["shop"]})
    .target("table", "delta", "flat", {"path": "out"})
    .target("whole", "memory", "flat", output_mode="complete")
    .target("raw", "console", "orders")
    .target("named_table", "console", "named")
)


@pytest.fixture
def run(spark: SparkSession) -> Run:
    """Takes steps with the pipeline above."""

    def run(steps: Sequence[Step], **said: Any) -> TestOutcome:
        return run_steps(said.pop("pipeline", ORDERS), steps, lambda: spark, **said)

    return run


def order(clock: str, n: int = 1, shop: str | None = "Oslo") -> dict[str, Any]:
    return {"shop": shop, "at": f"2026-01-05 {clock}", "n": n}


@pytest.mark.spark
def test_steps_add_process_check_stop_restart_and_let_event_time_pass(run: Run) -> None:
    nine = {"hour": "2026-01-05 09:00:00", "shop": "Oslo", "n": 3}

    outcome = run(
        [
            AddRows("orders", [order("09:05", 1)]),
            AddRows("orders", [["Oslo", datetime(2026, 1, 5, 9, 20), 2]]),
            CheckRows("table", []),
            CheckRows("whole", [nine]),
            CheckWatermark("2026-01-05 09:10"),
            Stop(),
            AddRows("orders", [order("09:00", 0)]),
            Process(),
            CheckRows("table", count=0, schema="hour timestamp, shop string, n bigint"),
            AdvanceWatermark("2026-01-05 10:00"),
            CheckRows("table", [nine]),
            CheckWatermark(datetime(2026, 1, 5, 10), "table"),
            AddRows("orders", [order("09:59", 100)]),
            CheckRows("table", []),
            CheckRows("whole", [{"n": 103}, {"n": None}], subset=True),
            Restart(),
            AdvanceWatermark("2026-01-05 12:00", {"orders": [order("12:10", 7, "Rome")]}),
            CheckRows("table", [["2026-01-05 10:00:00", None, None]], ordered=True),
        ]
    )

    assert outcome.ok
    assert len(outcome.steps) == 18
    assert outcome.steps[12 + 1].captured["table"].late_rows == 1


@pytest.mark.spark
def test_a_step_that_goes_wrong_is_shown_with_an_arrow_and_what_came(run: Run) -> None:
    with pytest.raises(StepsFailed) as caught:
        run(
            [
                AddRows("orders", [order("09:05"), order("10:15", 5)]),
                CheckRows("raw", [order("09:05"), order("10:15", 6)]),
                CheckRows("raw", count=100),
            ],
            name="test_orders",
        )

    lines = str(caught.value).splitlines()
    assert lines[0] == "step 2 of 3 went wrong"
    assert [line[:6] for line in lines[1:4]] == ["    1.", "--> 2.", "    3."]
    assert lines[3] == "    3. CheckRows('raw', count=100)"
    assert "expected 6, got 5" in str(caught.value)
    assert "target `raw` got 2 rows" in lines
    assert '    {shop: Oslo, at: "2026-01-05 10:15:00", n: 5}' in lines
    assert isinstance(caught.value, AssertionError)
    assert caught.value.outcome.name == "test_orders"


FAILING: list[tuple[list[Step], dict[str, Any], str]] = [
    ([AddRows("orders", [{"n": "one"}]), CheckRows("raw", [])], {}, "`orders`, row 1: `n`: "),
    ([AddRows("named", [{"n": 1}]), CheckRows("raw", [])], {}, "reach no target of this test"),
    ([CheckRows("raw", [{"m": 1}])], {}, "there is no column `m`"),
    ([CheckRows("rows", [])], {}, "`rows` is no target of the pipeline"),
    ([CheckRows("named_table", [])], {}, "the columns of `names` aren't known"),
    ([CheckWatermark("2026-01-05")], {"targets": ["raw"]}, "no query has a watermark"),
    ([CheckWatermark("noon")], {"targets": ["raw"]}, "`noon` is not a timestamp"),
    ([ExpectFailure("GB507")], {"targets": ["raw"]}, "it was to fail with GB507, and didn't fail"),
    (
        [AdvanceWatermark("2026-01-05 09:00:00", {"orders": [order("09:09")]})],
        {"targets": ["table"]},
        "was to advance to 2026-01-05 09:00:00, and is 2026-01-05 08:59:00",
    ),
    (
        [AdvanceWatermark("2026-01-05")],
        {"targets": ["named_table"], "replace": {"names": Replace("shop string")}},
        "GB710",
    ),
]


@pytest.mark.spark
@pytest.mark.parametrize(("steps", "said", "message"), FAILING)
def test_what_goes_wrong_is_said(steps: list[Step], said: dict[str, Any], message: str, run: Run) -> None:
    with pytest.raises(StepsFailed) as caught:
        run(steps, **said)

    assert message in str(caught.value)


@pytest.mark.spark
def test_rows_in_the_place_of_a_node_need_nothing_before_it(run: Run) -> None:
    steps = [
        AddRows("names", [{"shop": "Oslo", "name": "O"}], schema="shop string, name string"),
        AddRows("orders", [order("09:05")]),
        CheckRows("named_table", [{**order("09:05"), "name": "O"}]),
    ]
    assert run(steps).ok
    steps = [
        AddRows("named", [{"shop": "Rome", "more": [1, 2]}], "shop string, more array<int>"),
        CheckRows("named_table", [["Rome", [1, 2]]]),
    ]
    assert run(steps).ok


FRAGILE = """
def guarded(df, mended):
    import os

    from pyspark.sql.functions import udf

    @udf("int")
    def check(n):
        if n == 13 and not os.path.exists(mended):
            raise ValueError("13 is no number")
        return n

    return df.withColumn("n", check("n"))
"""


@dataclass(frozen=True)
class Mend(Step):
    """What somebody does outside between two runs."""

    file: Path

    def take(self, course: Any, found: StepOutcome) -> None:
        self.file.touch()


@pytest.mark.spark
def test_a_micro_batch_that_failed_is_run_again_with_its_own_rows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fragile_of_tests.py").write_text(FRAGILE)
    mended = tmp_path / "mended"
    function = {"function": "fragile_of_tests:guarded", "arguments": {"mended": str(mended)}}
    pipeline = (
        Pipeline("fragile", folder=tmp_path)
        .source("numbers", "file", {"format": "json", "path": "numbers", "schema": "n int"})
        .transform("checked", "python", "numbers", function)
        .target("out", "console", "checked")
    )
    steps = [
        AddRows("numbers", [{"n": 13}]),
        ExpectFailure("GB507", "13 is no number"),
        Mend(mended),
        AddRows("numbers", [{"n": 1}]),
        CheckRows("out", [{"n": 13}, {"n": 1}], ordered=True),
    ]

    outcome = run(steps, pipeline=pipeline)

    assert outcome.steps[-1].captured["out"].micro_batches == 2


def test_a_pipeline_that_is_wrong_fails_as_expected_without_a_session() -> None:
    def no_session() -> SparkSession:
        raise AssertionError("nothing here needs a session")

    wrong = Pipeline("wrong").source("ticks", "rates").target("screen", "console", "ticks")

    assert run_steps(wrong, [ExpectFailure("GB201", "rates")], no_session).ok
    with pytest.raises(StepsFailed, match="it was to fail with GB301, and failed with GB201"):
        run_steps(wrong, [ExpectFailure("GB301")], no_session)
    with pytest.raises(StepsFailed, match="GB201"):
        run_steps(wrong, [Process()], no_session)


# One micro-batch


JOINED = (
    Pipeline("joined")
    .source("left", "file", {"format": "json", "path": "left", "schema": "n int"})
    .source("right", "file", {"format": "json", "path": "right", "schema": "n int"})
    .transform("both", "union", ["left", "right"])
    .target("out", "console", "both")
)


def split_the_files(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let the query go on between the files of one step, as when the machine is busy."""
    let_in = engine._Query.let_in
    done: list[int] = []

    def let_in_one_by_one(self: Any) -> None:
        arriving = self._arriving
        if self.query is None or len(done) >= times:
            let_in(self)
            return
        done.append(len(arriving))
        for one in arriving:
            self._arriving = [one]
            let_in(self)
            self.query.processAllAvailable()

    monkeypatch.setattr(engine._Query, "let_in", let_in_one_by_one)
    return done


TOGETHER = [
    AddRows("left", [{"n": 1}]),
    Process(),
    AddRows("left", [{"n": 2}]),
    AddRows("right", [{"n": 3}]),
    CheckRows("out", [{"n": 2}, {"n": 3}]),
]


@pytest.mark.spark
def test_a_test_whose_rows_did_not_arrive_together_is_begun_anew(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = split_the_files(monkeypatch, times=1)

    outcome = run(TOGETHER, pipeline=JOINED)

    assert done == [2]
    assert len(outcome.steps) == len(TOGETHER)
    assert outcome.steps[-1].captured["out"].micro_batches == 1


@pytest.mark.spark
def test_a_test_whose_rows_never_arrive_together_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    split_the_files(monkeypatch, times=100)
    monkeypatch.setattr(runner, "_ATTEMPTS", 2)

    with pytest.raises(StepsFailed, match="GB707"):
        run(TOGETHER, pipeline=JOINED)


# The session


@pytest.mark.spark
def test_settings_are_set_back_and_those_that_are_fixed_are_said(spark: SparkSession) -> None:
    static = "spark.sql.warehouse.dir"
    name = "spark.sql.session.timeZone"
    before = {key: spark.conf.get(key, "none") for key in (name, static, "spark.my.own")}
    pipeline = Pipeline("zoned", spark={name: "Asia/Tokyo", static: "elsewhere", "spark.my.own": 1})
    pipeline.source("ticks", "rate").target("screen", "console", "ticks")
    steps = [
        AddRows("ticks", [["2026-01-05 09:00:00", 1], [datetime(2026, 1, 5, 0, tzinfo=UTC), 2]]),
        CheckRows("screen", [["2026-01-05 09:00:00", 1], ["2026-01-05 09:00:00+09:00", 2]]),
    ]

    outcome = run_steps(pipeline, steps, lambda: spark)

    assert outcome.time_zone == "Asia/Tokyo"
    assert [(found.code, static in found.message) for found in outcome.diagnostics] == [("GB709", True)]
    assert {key: spark.conf.get(key, "none") for key in before} == before


def test_a_server_with_another_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import AnalysisException

    class NotThere(AnalysisException):
        def getCondition(self) -> str:  # noqa: N802 (Spark's name)
            return "PATH_NOT_FOUND"

    class Remote:
        __module__ = "pyspark.sql.connect.session"

        @property
        def read(self) -> Any:
            return self

        def text(self, place: str) -> None:
            raise NotThere(place)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(StepsFailed, match="GB708") as refused:
        run_steps(JOINED, TOGETHER, Remote)  # type: ignore[arg-type]
    assert str(tmp_path) in str(refused.value)
    assert list(tmp_path.iterdir()) == []


# Rows in and out


ALL_TYPES = (
    "a string, b boolean, c tinyint, d smallint, e int, f bigint, g float, h double, i decimal(38,18), "
    "j date, k timestamp, l timestamp_ntz, m binary, n array<decimal(5,2)>, o struct<x: int, y: timestamp>, "
    "p map<string, bigint>, q map<int, struct<z: date>>, r array<map<date, double>>, s varchar(5), "
    "t map<string, map<bigint, string>>, u struct<v: map<int, int>>, w interval day to second, x variant"
)
FULL = {
    "a": 'tab\t"quoted" \u2028 \N{SNOWMAN}\n',
    "b": False,
    "c": -128,
    "d": 32767,
    "e": -(2**31),
    "f": 2**63 - 1,
    "g": 0.1,
    "h": float("-inf"),
    "i": Decimal("12345678901234567890.123456789012345678"),
    "j": date(1582, 10, 4),
    "k": "1969-12-31 23:59:59.999999Z",
    "l": "2026-03-29 02:30:00.000001",
    "m": b"\x00\xff",
    "n": ["1.5", None],
    "o": {"x": None, "y": "2026-10-25 02:30:00+01:00"},
    "p": {"one": 1, "": None},
    "q": [{"key": 1, "value": {"z": "2026-01-05"}}, {"key": 2, "value": None}],
    "r": [{"2026-01-05": 1.5}, None, {}],
    "s": "äöü",
    "t": {"x": [{"key": 5, "value": "five"}], "y": None},
    "u": {"v": [{"key": 1, "value": 2}]},
    "w": timedelta(days=-3, hours=1, microseconds=7),
    "x": {"a": [1, "two", None]},
}


@pytest.mark.spark
@pytest.mark.parametrize("time_zone", ["UTC", "Europe/Oslo"])
def test_values_come_back_exactly_as_they_were_given(
    time_zone: str, spark: SparkSession, tmp_path: Path
) -> None:
    fields = fields_of(ALL_TYPES)
    assert fields is not None
    given = [Reader(time_zone).row(row, fields) for row in (FULL, {}, {"h": float("nan"), "o": {}, "p": {}})]
    (tmp_path / "rows.json").write_text(to_lines(given, fields), encoding="utf-8")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", time_zone)
    try:
        df = read_lines(spark.read, tmp_path, fields)
        came = [take_row(row, fields) for row in df.collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))

    assert [str(found.type) for found in fields_of_schema(df.schema)] == [
        str(found.type).replace("varchar(5)", "string") for found in fields
    ]
    for wanted, got in zip(given, came, strict=True):
        for field, one, other in zip(fields, wanted, got, strict=True):
            assert one == other or repr(one) == repr(other), field.name  # NaN is not equal to itself
