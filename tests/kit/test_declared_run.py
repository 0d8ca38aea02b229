"""Declared tests are run by Spark: rows arrive step by step, and what targets get is what a run would give."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.testing import AddRows, AdvanceClock, CheckRows, run_steps
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import prepare_test, run_test
from gem_bundle.testing.running.report import explanation
from tests.conftest import has_processors_of_rows
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.testing.running.outcome import TestOutcome

    Run = Callable[..., TestOutcome]

a_declared_test = some_of("what a declared test does", 4)

pytestmark = pytest.mark.matrix

ORDERS = """
    pipeline: orders
    parameters: {delay: 30 minutes}
    profiles: {strict: {delay: 1 minute}}
    sources:
      orders:
        gem: kafka
        options: {bootstrap_servers: ["nowhere:9092"], subscribe: [orders], spark_options: {a: "${secret:kafka/a}"}}
      shops:
        gem: file
        mode: batch
        options: {format: csv, path: shops, header: true, schema: "shop string, country string"}
    transforms:
      parsed:
        gem: from_json
        input: orders
        options: {column: value, schema: "shop string, at timestamp, amount int"}
      timely:
        gem: watermark
        input: parsed
        options: {column: at, delay: "${delay}"}
      named:
        gem: join
        inputs: [timely, shops]
        options: {how: left, on: [shop]}
      hourly:
        gem: aggregate
        input: named
        options:
          window: {column: at, duration: 1 hour}
          group_by: [country]
          aggregates: {orders: count(*), sales: sum(amount)}
      flat:
        gem: select
        input: hourly
        options: {columns: {hour: window.start, country: country, orders: orders, sales: sales}}
    targets:
      table: {gem: delta, input: flat, options: {path: /nowhere/orders}}
      changes: {gem: foreach_batch, input: flat, output_mode: update, options: {function: "nowhere:write"}}
      all: {gem: memory, input: flat, output_mode: complete}
      raw: {gem: kafka, input: orders, options: {bootstrap_servers: ["nowhere:9092"], topic: copy}}
      each: {gem: foreach, input: parsed, options: {function: "nowhere:write"}}
"""


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """Runs one test: what stands below its name, and what stands above `tests`."""

    def run(steps: str, top: str = "", pipeline: str = ORDERS, **how: bool) -> TestOutcome:
        (tmp_path / "orders.yaml").write_text(dedent(pipeline).lstrip("\n"))
        body = indent(dedent(steps).strip("\n"), "    ")
        (tmp_path / "orders.test.yaml").write_text(f"{dedent(top).strip()}\ntests:\n  it works:\n{body}\n")
        found = load_tests(tmp_path / "orders.test.yaml")
        assert found.diagnostics == (), list(map(str, found.diagnostics))
        (test,) = found.tests

        def session() -> SparkSession:
            assert request.node.get_closest_marker("spark"), "nothing here needs a session"
            spark: SparkSession = request.getfixturevalue("spark")
            return spark

        return run_test(test, session, **how)

    return run


def passed(outcome: TestOutcome) -> bool:
    """Whether it has, with why it hasn't in the report of pytest."""
    if not outcome.ok:
        pytest.fail("\n".join([outcome.name, *explanation(outcome)]))
    return True


SILENCE = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Silence(StatefulProcessor):
    def __init__(self, clock):
        self.clock = clock

    def init(self, handle):
        self.handle = handle
        time = {"ttlDurationMs": 3_600_000} if self.clock else {}
        self.seen = handle.getValueState("seen", "n bigint", **time)

    def handleInputRows(self, key, rows, timerValues):
        times = [int(row.at.timestamp() * 1000) for row in rows]
        now = timerValues.getCurrentProcessingTimeInMs() if self.clock else max(times)
        self.seen.update(((self.seen.get()[0] if self.seen.exists() else 0) + len(times),))
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(now + 30 * 60_000)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(device=key[0], seen=self.seen.get()[0])

    def close(self):
        pass
"""
SILENT = """
    pipeline: orders
    sources:
      readings: {{gem: file, options: {{format: json, path: in, schema: "device string, at timestamp"}}}}
    transforms:
      timely: {{gem: watermark, input: readings, options: {{column: at, delay: 10 minutes}}}}
      silent:
        gem: stateful
        input: timely
        options:
          processor: silence_of_declared_tests:Silence
          arguments: {{clock: {0}}}
          group_by: device
          schema: device string, seen bigint
          time: {1}
    targets:
      alarms: {{gem: noop, input: silent}}
"""


@pytest.fixture
def silence(user_modules: Path) -> None:
    (user_modules / "silence_of_declared_tests.py").write_text(SILENCE, encoding="utf-8")


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("silence")
def test_timers_by_the_clock_go_by_that_of_the_test(run: Run) -> None:
    outcome = run(
        """
        steps:
          - clock: 2026-03-01 08:00:00
            add: {readings: [{device: pump, at: 2026-03-01 07:59:00}, {device: pump, at: 2026-03-01 07:58:00}]}
            expect: {alarms: []}
          - clock: 2026-03-01 08:20:00
            add: {readings: [{device: fan, at: 2026-03-01 08:19:00}]}
            expect: {alarms: []}
          - clock: 2026-03-01 08:29:59
            expect: {alarms: []}
          - clock: 2026-03-01 08:30:00
            expect: {alarms: [{device: pump, seen: 2}]}
          - restart: true
            clock: 2026-03-01 08:49:59
            expect: {alarms: []}
          - clock: 2026-03-01 08:50:00
            expect: {alarms: [{device: fan, seen: 1}]}
          - description: What the pump has seen is kept for an hour.
            clock: 2026-03-01 09:10:00
            add: {readings: [{device: pump, at: 2026-03-01 09:10:00}, {device: fan, at: 2026-03-01 09:10:00}]}
            expect: {alarms: []}
          - clock: 2026-03-01 09:40:00
            expect: {alarms: [{device: fan, seen: 2}, {device: pump, seen: 1}]}
        """,
        pipeline=SILENT.format("true", "processing"),
    )
    assert passed(outcome)
    back = run(
        """
        steps:
          - {clock: 2026-03-01 08:00:00, expect: {alarms: []}}
          - {clock: 2026-03-01 07:00:00, expect: {alarms: []}}
        """,
        pipeline=SILENT.format("true", "processing"),
    )
    (found,) = back.diagnostics
    assert (found.code, "can't go back" in found.message) == ("GB704", True)


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("silence")
def test_steps_in_python_set_the_clock_too(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "orders.yaml").write_text(dedent(SILENT.format("true", "processing")).lstrip("\n"))
    steps = [
        AdvanceClock("2026-03-01 08:00:00"),
        AddRows("readings", [["pump", "2026-03-01 07:59:00"]]),
        CheckRows("alarms", []),
        AdvanceClock("2026-03-01 08:30:00"),
        CheckRows("alarms", [["pump", 1]]),
    ]
    assert run_steps(tmp_path / "orders.yaml", steps, lambda: spark).ok


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("silence")
def test_timers_by_event_time_go_by_the_watermark_of_the_rows(run: Run) -> None:
    outcome = run(
        """
        steps:
          - add: {readings: [{device: pump, at: 2026-03-01 08:00:00}, {device: fan, at: 2026-03-01 08:02:00}]}
            expect: {alarms: []}
          - add: {readings: [{device: pump, at: 2026-03-01 08:42:00}]}
            expect: {alarms: [{device: fan, seen: 1}]}
            watermark: 2026-03-01 08:32:00
        """,
        pipeline=SILENT.format("false", "event"),
    )
    assert passed(outcome)


if not has_processors_of_rows():  # which a check says: tests/core/check/test_processors.py
    del test_timers_by_the_clock_go_by_that_of_the_test
    del test_steps_in_python_set_the_clock_too
    del test_timers_by_event_time_go_by_the_watermark_of_the_rows


# Windows, watermarks, output modes


@a_declared_test
@pytest.mark.spark
def test_rows_arrive_step_by_step_and_late_ones_are_dropped(run: Run) -> None:
    outcome = run("""
        replace:
          shops: {rows: [{shop: Oslo, country: Norway}, [Bergen, Norway]]}
        steps:
          - add:
              orders:
                - {value: '{"shop": "Oslo", "at": "2026-01-05 09:05:00", "amount": 10}'}
                - {value: '{"shop": "Rome", "at": "2026-01-05 09:10:00", "amount": 7}'}
            expect:
              table: []
              changes: &nine
                - {hour: "2026-01-05 09:00:00", country: Norway, orders: 1, sales: 10}
                - {hour: "2026-01-05 09:00:00", country: null, orders: 1, sales: 7}
              all: *nine
            watermark: "2026-01-05 08:40:00"
          - add: {orders: [{value: '{"shop": "Bergen", "at": "2026-01-05 10:45:00", "amount": 1}'}]}
            expect:
              table: *nine
              changes: &ten [{hour: "2026-01-05 10:00:00", country: Norway, orders: 1, sales: 1}]
              all: {count: 3}
          - add: {orders: [{value: '{"shop": "Oslo", "at": "2026-01-05 09:06:00", "amount": 99}'}]}
            expect: {table: [], changes: [], all: {count: 3}}
            watermark: {table: "2026-01-05 10:15:00", changes: "2026-01-05 10:15:00"}
          - restart: true
            expect: {table: [], all: {count: 3}}
          - add: {orders: [{value: '{"shop": "Oslo", "at": "2026-01-05 11:31:00", "amount": 99}'}]}
            expect: {table: *ten}
    """)

    assert passed(outcome)
    first, _, third, *_ = outcome.steps
    assert (first.captured["table"].micro_batches, first.captured["all"].micro_batches) == (2, 1)
    assert (third.captured["table"].late_rows, third.captured["table"].state_rows) == (1, 1)
    assert third.watermarks["table"] == "2026-01-05T10:15:00.000Z"


@pytest.mark.spark
def test_a_target_is_never_touched_and_a_stateless_query_has_no_watermark(run: Run) -> None:
    outcome = run("""
        targets: [raw, each]
        steps:
          - add: {orders: [{key: k1, value: '{"shop": "Oslo"}'}, {value: "0x00ff"}]}
            expect:
              raw: {rows: [{key: k1, value: '{"shop": "Oslo"}'}, {key: null, value: "0x00FF"}], columns: subset}
              each: {count: 2, schema: "shop string, at timestamp, amount int"}
            watermark: 2026-01-05
    """)

    assert [str(found) for found in outcome.steps[0].mismatches] == [
        "no query has a watermark, and 2026-01-05 was expected"
    ]


@a_declared_test
@pytest.mark.spark
def test_what_differs_is_said_with_the_step_and_the_watermark(run: Run, tmp_path: Path) -> None:
    text = """
        steps:
          - add: {parsed: [{shop: Oslo, at: "2026-01-05 09:05:00", amount: 10}]}
            expect: {table: []}
          - add: {parsed: [{shop: Oslo, at: "2026-01-05 10:45:00", amount: 10}]}
            watermark: "2026-01-05 10:00:00"
            expect: {table: [{hour: "2026-01-05 09:00:00", country: null, orders: 1, sales: 11}]}
          - expect: {table: []}
    """
    outcome = run(text)

    assert not outcome.ok
    assert [step.ok for step in outcome.steps] == [True, False]
    wrong = outcome.wrong
    assert wrong is not None
    assert (wrong.number, wrong.place.line) == (2, 7)
    rows, watermark = wrong.mismatches
    assert (rows.aspect, rows.target, rows.place.line) == ("rows", "table", 9)
    assert "expected 11, got 10" in str(rows)
    assert (watermark.aspect, watermark.place.line) == ("watermark", 8)
    expected = "target `table`: the watermark is 2026-01-05 10:15:00, and 2026-01-05 10:00:00 was expected"
    assert str(watermark) == expected
    assert wrong.captured["table"].watermark == "2026-01-05T10:15:00.000Z"

    assert [step.ok for step in run(text, keep_going=True).steps] == [True, False, True]


@pytest.mark.spark
def test_a_transform_that_gets_rows_keeps_its_watermark(run: Run) -> None:
    assert passed(
        run("""
        profile: strict
        steps:
          - add: {timely: [{shop: Oslo, at: "2026-01-05 09:05:00", amount: 10}]}
            expect: {table: []}
            watermark: "2026-01-05 09:04:00"
          - add: {timely: [{at: "2026-01-05 10:01:00"}]}
            expect: {table: {count: 1}}
    """)
    )


TWO = """
    pipeline: two
    sources:
      views: {gem: file, options: {format: json, path: views, schema: "page string, at timestamp"}}
      clicks: {gem: file, options: {format: json, path: clicks, schema: "page string, at timestamp"}}
    transforms:
      viewed: {gem: watermark, input: views, options: {column: at, delay: 0 seconds}}
      clicked: {gem: watermark, input: clicks, options: {column: at, delay: 0 seconds}}
      both:
        gem: join
        inputs: [viewed, clicked]
        options:
          how: left
          condition: >-
            viewed.page = clicked.page and clicked.at >= viewed.at
            and clicked.at <= viewed.at + interval 1 minute
      named: {gem: select, input: both, options: {columns: {page: viewed.page, at: viewed.at, clicked: clicked.at}}}
      again: {gem: union, inputs: {left: views, right: views}}
    targets:
      out: {gem: console, input: named}
      double: {gem: console, input: again}
"""


@a_declared_test
@pytest.mark.spark
@pytest.mark.parametrize("restart", [False, True])
def test_two_streams_have_one_watermark_that_follows_the_slower_one_until_a_restart(
    restart: bool, run: Run
) -> None:
    # Spark forgets with a restart how far each of the inputs had come (not how far they had come together).
    again = "- restart: true\n            add" if restart else "- add"
    last = '"2026-01-05 09:00:00"' if restart else '"2026-01-05 11:00:00"'
    rows = "[]" if restart else '[{page: home, at: "2026-01-05 09:00:00", clicked: null}]'
    outcome = run(
        f"""
        steps:
          - add: {{views: [{{page: home, at: "2026-01-05 09:00:00"}}], clicks: [{{page: cart, at: "2026-01-05 09:00:00"}}]}}
            expect: {{out: []}}
            watermark: "2026-01-05 09:00:00"
          - add: {{views: [{{page: help, at: "2026-01-05 12:00:00"}}]}}
            expect: {{out: []}}
            watermark: "2026-01-05 09:00:00"
          {again}: {{clicks: [{{page: cart, at: "2026-01-05 11:00:00"}}]}}
            watermark: {last}
            expect: {{out: {rows}}}
        """,
        pipeline=TWO,
    )

    assert passed(outcome)


@pytest.mark.spark
def test_a_source_that_is_read_twice_gives_its_rows_twice_in_one_micro_batch(run: Run) -> None:
    outcome = run(
        """
        steps:
          - add: {views: [{page: home}, {page: cart}]}
            expect: {double: [[home, null], [home, null], [cart, null], [cart, null]]}
          - add: {views: [{page: help}]}
            expect: {double: [{page: help}, {page: help}]}
        """,
        pipeline=TWO,
    )

    assert passed(outcome)
    assert [step.captured["double"].micro_batches for step in outcome.steps] == [1, 1]


SMALL = """
    pipeline: small
    parameters: {rows: 2, factor: {type: integer}}
    spark: {spark.sql.session.timeZone: Europe/Oslo, spark.sql.shuffle.partitions: 3}
    sources:
      numbers: {gem: file, options: {format: json, path: "${env:PLACE}", schema: "n int, at timestamp"}}
      names: {gem: rows, mode: batch, options: {rows: [{n: 1, name: one}, {n: 2, name: two}]}}
      more: {gem: file, mode: batch, options: {format: csv, path: more, header: true, infer_schema: true}}
    transforms:
      times: {gem: with_columns, input: numbers, options: {columns: {n: "n * ${factor}", hour: hour(at)}}}
      first: {gem: limit, input: times, options: {rows: "${rows}"}}
      named: {gem: join, inputs: [times, names], options: {on: [n]}}
      added: {gem: join, inputs: [named, more], options: {how: left, on: [n]}}
    targets:
      screen: {gem: console, input: first}
      table: {gem: delta, input: named, options: {path: out}}
      copy: {gem: console, input: added}
"""
GIVEN = "environment: {PLACE: /nowhere}\nparameters: {factor: 1}"


@pytest.mark.spark
def test_parameters_settings_and_limits_count(run: Run, spark: SparkSession) -> None:
    settings = ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
    before = [spark.conf.get(name) for name in settings]

    outcome = run(
        """
        parameters: {factor: 10, rows: 3}
        spark: {spark.sql.shuffle.partitions: 2}
        steps:
          - add: {numbers: [{n: 1, at: "2026-01-05 09:05:00"}, {n: 2, at: "2026-01-05 09:05:00Z"}]}
            expect:
              screen: {rows: [[10, "2026-01-05 09:05:00", 9], [20, "2026-01-05 10:05:00", 10]], ordered: true}
          - add: {numbers: [{n: 3}, {n: 4}]}
            expect: {screen: [{n: 30}]}
        """,
        GIVEN,
        SMALL,
    )

    assert passed(outcome)
    assert outcome.time_zone == "Europe/Oslo"
    assert [spark.conf.get(name) for name in settings] == before


@a_declared_test
@pytest.mark.spark
def test_static_rows_are_seen_by_queries_that_start_after_them(run: Run) -> None:
    outcome = run(
        """
        replace:
          more: {schema: "n int, more string"}
        steps:
          - add: {numbers: [{n: 1}], more: [{n: 1, more: x}]}
            expect: {copy: {rows: [{n: 1, name: one, more: x}], columns: subset}}
          - add: {numbers: [{n: 2}], more: [{n: 2, more: y}]}
            expect: {copy: {rows: [{n: 2, name: two, more: null}], columns: subset}}
          - restart: true
            add: {numbers: [{n: 2}, {n: 1}]}
            expect: {copy: {rows: [{n: 2, more: y}, {n: 1, more: x}], columns: subset}}
        """,
        GIVEN,
        SMALL,
    )

    assert passed(outcome)


@pytest.mark.spark
def test_nodes_are_replaced_by_other_gems_and_by_what_they_really_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "more.csv").write_text("n,more\n2,x\n")

    outcome = run(
        """
        replace:
          more: {real: true}
          times: {gem: filter, options: {condition: n > 1}}
        steps:
          - add: {numbers: [{n: 1}, {n: 2}]}
            expect: {copy: [{n: 2, at: null, name: two, more: x}]}
        """,
        GIVEN,
        SMALL,
    )
    assert passed(outcome)

    outcome = run("replace: {times: {gem: filtr}}\nsteps: [{expect: {table: []}}]", GIVEN, SMALL)
    (found,) = (found for found in outcome.diagnostics if found.code == "GB201")
    assert found.file.endswith("orders.test.yaml")
    assert (found.line, found.column) == (5, 15)


# Python, several outputs, failures

ROUTES = """
    def by_size(df):
        return {"small": df.where("n < 10"), "large": df.where("n >= 10")}

    def checked(df):
        from pyspark.sql.functions import udf

        @udf("int")
        def check(n):
            if n == 13:
                raise ValueError("13 is no number")
            return n

        return df.withColumn("n", check("n"))

"""
ROUTED = """
    pipeline: routed
    sources:
      numbers: {gem: file, options: {format: json, path: numbers, schema: n int}}
    transforms:
      checked: {gem: python, input: numbers, options: {function: "routes_of_tests:checked"}}
      routed: {gem: python, input: checked, options: {function: "routes_of_tests:by_size", outputs: [small, large]}}
    targets:
      small: {gem: console, input: routed.small}
      large: {gem: foreach_batch, input: routed.large, options: {function: "nowhere:write"}}
"""


@pytest.fixture
def routes(tmp_path: Path) -> None:
    (tmp_path / "routes_of_tests.py").write_text(dedent(ROUTES))


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("routes")
def test_a_failure_is_expected_by_its_code_and_what_comes_after_it_goes_on(run: Run) -> None:
    outcome = run(
        """
        targets: [small, large]
        steps:
          - add: {numbers: [{n: 1}, {n: 100}]}
            expect: {small: [{n: 1}], large: [[100]]}
          - add: {numbers: [{n: 13}]}
            fails: {code: GB507, message: 13 is no number}
          - restart: true
            fails: GB507
        """,
        pipeline=ROUTED,
    )

    assert passed(outcome)
    assert outcome.steps[1].expected_failure == "GB507"
    assert "ValueError" in outcome.steps[1].failures[0].message


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("routes")
@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("{add: {numbers: [{n: 1}]}, fails: GB507}", "it was to fail with GB507, and didn't fail"),
        ("{add: {numbers: [{n: 13}]}, fails: GB508}", "it was to fail with GB508, and failed with GB507: "),
        (
            "{add: {numbers: [{n: 13}]}, fails: {code: GB507, message: the moon}}",
            "but does not say `the moon`",
        ),
    ],
)
def test_another_outcome_than_the_failure_is_a_mismatch(step: str, says: str, run: Run) -> None:
    outcome = run(f"targets: [small]\nsteps:\n- {step}", pipeline=ROUTED)

    assert not outcome.ok
    (mismatch,) = outcome.steps[0].mismatches
    assert mismatch.aspect == "failure"
    assert says in mismatch.message


@a_declared_test
@pytest.mark.spark
@pytest.mark.usefixtures("routes")
def test_outputs_get_rows_and_a_failure_nobody_expects_fails_the_test(run: Run) -> None:
    top = 'replace: {routed.small: {schema: n int}, routed.large: {schema: "n int, why string"}}'
    outcome = run(
        """
        steps:
          - add: {routed.large: [{n: 1, why: it is}], routed.small: [[2]]}
            expect: {large: [{n: 1, why: it is}], small: [{n: 2}]}
        """,
        top,
        ROUTED,
    )
    assert passed(outcome)

    outcome = run("steps:\n- {add: {numbers: [{n: 13}]}, expect: {small: []}}", pipeline=ROUTED)
    assert not outcome.ok
    assert [found.code for found in outcome.steps[0].failures] == ["GB507"]
    assert outcome.steps[0].mismatches == []


@pytest.mark.spark
def test_a_pipeline_that_spark_refuses_fails_at_its_start(run: Run) -> None:
    wrong = ORDERS.replace("orders: count(*)", "orders: counted(*)")

    assert passed(run("targets: [all]\nfails: {code: GB320, message: counted}", pipeline=wrong))
    assert passed(run("targets: [all]\nsteps: [{fails: GB320}]", pipeline=wrong))
    assert not run("steps: [{expect: {all: []}}]", pipeline=wrong).ok
    outcome = run("targets: [raw]\nfails: GB320", pipeline=wrong)
    assert [mismatch.message for mismatch in outcome.mismatches] == [
        "it was to fail with GB320, and didn't fail"
    ]


# Batch


@pytest.mark.spark
def test_in_a_batch_pipeline_every_step_is_a_run_over_all_rows_so_far(run: Run) -> None:
    outcome = run(
        """
        steps:
          - add: {hours: [{hour: 1, late: 5}, {hour: 2, late: 7}, {hour: 3, late: 6}]}
            expect: {screen: {rows: [{hour: 2, late: 7}, {hour: 3, late: 6}], ordered: true}}
          - add: {hours: [{hour: 4, late: 6.5}]}
            expect: {screen: {rows: [[2, 7], [4, 6.5]], ordered: true}}
          - expect: {screen: {rows: [[4, 6.5], [2, 7]], ordered: true}}
        """,
        'replace: {hours: {schema: "hour int, late double"}}',
        """
        pipeline: worst
        mode: batch
        sources: {hours: {gem: delta, options: {path: out/hours}}}
        transforms:
          sorted: {gem: sort, input: hours, options: {by: [late desc]}}
          worst: {gem: limit, input: sorted, options: {rows: 2}}
        targets:
          screen: {gem: delta, input: worst, options: {path: out/worst}}
        """,
    )

    assert [step.ok for step in outcome.steps] == [True, True, False]
    assert outcome.diagnostics == []


# Without Spark


def test_a_pipeline_that_is_wrong_needs_no_session_to_fail(run: Run) -> None:
    wrong = ORDERS.replace(
        "input: parsed\n        options: {column: at", "input: parsed\n        options: {column: when"
    )

    assert passed(run("fails: {code: GB210, message: when}", pipeline=wrong))
    assert passed(run("steps: [{fails: GB210}, {expect: {table: []}}]", pipeline=wrong))

    outcome = run("steps: [{expect: {table: []}}]", pipeline=wrong)
    assert not outcome.ok
    assert outcome.steps == []
    assert "GB210" in {found.code for found in outcome.diagnostics}


NAMES = [
    ("steps: [{expect: {tabel: []}}]", "`tabel` is no target of the pipeline", (4, 23), "`table`"),
    ("steps: [{expect: {parsed: []}}]", "`parsed` is no target: it is a transform", (4, 23), ""),
    ("targets: [tabel]\nsteps: [{fails: GB507}]", "`tabel` is no target", (4, 15), ""),
    ("steps: [{watermark: {tabel: 2026-01-05}}]", "`tabel` is no target", (4, 26), ""),
    ("steps: [{add: {oders: []}, fails: GB507}]", "no node `oders` to give rows to", (4, 27), "`orders`"),
    ("steps: [{add: {table: []}, fails: GB507}]", "the target `table` can't be given rows", (4, 27), ""),
    ("steps: [{add: {shops: []}, expect: {raw: []}}]", "reach no target of this test", (4, 27), "`raw`"),
    ("steps: [{add: {orders.x: []}, expect: {raw: []}}]", "`orders.x` is no output", (4, 30), ""),
    ("replace: {shop: {real: true}}\nfails: GB507", "no node `shop` to replace", (4, 15), "`shops`"),
    ("replace: {parsed: {real: true}}\nfails: GB507", "`parsed` is a transform", (4, 15), ""),
    ("replace: {table: {schema: a int}}\nfails: GB507", "the target `table` can't be", (4, 15), ""),
]


@pytest.mark.parametrize(("steps", "message", "place", "hint"), NAMES)
def test_a_name_that_means_nothing_is_said_with_its_place(
    steps: str, message: str, place: tuple[int, int], hint: str, run: Run
) -> None:
    outcome = run(steps)

    assert [found.code for found in outcome.diagnostics] == ["GB702"]
    (found,) = outcome.diagnostics
    assert message in found.message
    assert (found.line, found.column) == place
    assert hint in found.hint
    assert not outcome.ok


def test_a_secret_needs_a_value_only_where_its_name_will_not_do(run: Run) -> None:
    secret = ORDERS.replace('["nowhere:9092"]', '["${secret:kafka/broker}"]', 1)

    outcome = run("steps: [{expect: {raw: []}}]", pipeline=secret)

    (found,) = (found for found in outcome.diagnostics if found.is_error)
    assert found.code == "GB205"
    hint = "The test gives no value for `kafka/a`, `kafka/broker`: say one with `secrets: {kafka/a: …}`."
    assert found.hint.endswith(hint)
    with pytest.raises(AssertionError, match="needs a session"):
        run("steps: [{expect: {raw: []}}]", "secrets: {kafka/broker: b:1}", secret)


@pytest.mark.spark
def test_rows_that_do_not_fit_are_all_said_before_a_step_is_taken(run: Run) -> None:
    outcome = run("""
        steps:
          - add: {parsed: [{shop: Oslo, amount: ten}]}
            expect: {table: []}
          - add: {parsed: [{shop: 1}, {shop: x}, {shops: x}]}
            expect: {table: {file: nowhere.csv}}
    """)

    assert not outcome.ok
    assert outcome.steps == []
    assert sorted((found.code, found.line) for found in outcome.diagnostics) == [
        ("GB703", 8),
        ("GB704", 5),
        ("GB704", 7),
        ("GB704", 7),
    ]


def test_only_the_needed_part_is_built_and_only_known_columns_are_stood_for(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(dedent(SMALL))
    (tmp_path / "small.test.yaml").write_text(
        f"{GIVEN}\ntests:\n  a: {{steps: [{{expect: {{table: []}}}}]}}\n  b: {{steps: [{{expect: {{copy: []}}}}]}}\n"
    )
    first, second = load_tests(tmp_path / "small.test.yaml").tests

    prepared = prepare_test(first)
    assert prepared.targets == ("table",)
    assert "more" not in prepared.needed
    assert set(prepared.fed) == {"numbers"}
    assert prepared.real == {"names"}  # its rows stand in the pipeline

    with pytest.raises(PipelineError) as caught:
        prepare_test(second)
    (found,) = caught.value.diagnostics
    assert (found.code, found.line) == ("GB705", 5)
    assert "`more`" in found.message
    assert "replace: {more: {schema:" in found.hint


FILES = """
    pipeline: orders
    sources:
      orders: {gem: file, options: {format: json, path: in, schema: "id int", rejects: true}}
    transforms:
      told: {gem: select, input: orders.rejected, options: {columns: [row, "reasons[0].name as why"]}}
    targets:
      good: {gem: delta, input: orders, options: {path: /nowhere/good}}
      bad: {gem: delta, input: told, options: {path: /nowhere/bad}}
"""


@pytest.mark.spark
def test_what_a_source_rejects_is_given_or_nothing(run: Run) -> None:
    outcome = run(
        """
        steps:
          - add: {orders: [{id: 1}]}
            expect: {good: [{id: 1}], bad: []}
          - add: {orders.rejected: [{row: '{}', reasons: [{name: wrong_type, words: it is}]}]}
            expect: {good: [], bad: [{row: '{}', why: wrong_type}]}
        """,
        pipeline=FILES,
    )
    assert passed(outcome)
