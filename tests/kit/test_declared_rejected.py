"""What nodes reject, as declared tests and tests in Python expect it: by name, taken by a target or not."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from gem_bundle.contexts import is_over_connect
from gem_bundle.schema import fields_of
from gem_bundle.testing import AddRows, CheckRows
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import run_test
from gem_bundle.testing.declared.update import update
from gem_bundle.testing.rows.compare import compare
from gem_bundle.testing.running.outcome import Captured, Mismatch, Rows, StepOutcome, TestOutcome
from gem_bundle.testing.running.report import explanation
from gem_bundle.testing.steps import StepsFailed, run_steps
from gem_bundle.testing.values import Reader
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.testing.declared.load import TestFile

rejected_in_tests = some_of("rejected rows in a declared test", 1)

pytestmark = pytest.mark.matrix

ORDERS = """
pipeline: orders
sources:
  lines: {gem: kafka, options: {bootstrap_servers: ["nowhere:9092"], subscribe: orders}}
transforms:
  parsed:
    gem: from_json
    input: lines
    options: {column: value, schema: "id int not null, at timestamp, amount int", rejects: true}
  timely: {gem: watermark, input: parsed, options: {column: at, delay: 1 minute}}
  plausible: {gem: expect, input: timely, options: {rules: {paid: amount > 0}}}
targets:
  table: {gem: delta, input: plausible, options: {path: /nowhere/orders}}
  unread: {gem: delta, input: parsed.rejected, options: {path: /nowhere/unread}}
  posted: {gem: foreach, input: plausible, options: {function: "nowhere:post", rejects: true}}
"""


def loaded(folder: Path, text: str, pipeline: str = ORDERS) -> TestFile:
    (folder / "orders.yaml").write_text(pipeline)
    (folder / "orders.test.yaml").write_text(dedent(text).strip() + "\n")
    found = load_tests(folder / "orders.test.yaml")
    assert found.diagnostics == (), list(map(str, found.diagnostics))
    return found


@rejected_in_tests
@pytest.mark.spark
def test_rejected_rows_are_expected_by_the_name_of_the_output(spark: SparkSession, tmp_path: Path) -> None:
    (test,) = loaded(
        tmp_path,
        """
        tests:
          bad rows:
            steps:
              - add: {lines: [{value: '{"id": 1, "at": "2026-01-05 09:00:00", "amount": 5}'}, {value: '{"id"'}]}
                expect:
                  table: [{id: 1, at: "2026-01-05 09:00:00", amount: 5}]
                  unread: {count: 1}
                  parsed.rejected: [{reasons: [{name: not_json, words: the text isn't one value of JSON}]}]
                  plausible.rejected: []
              - restart: true
                add: {lines: [{value: '{"id": 2, "at": "2026-01-05 09:05:00", "amount": 0}'}]}
                expect:
                  table: []
                  parsed.rejected: {count: 0}
                  plausible.rejected:
                    - reasons: [{name: paid, words: "`amount > 0` is false"}]
                      row: '{"id":2,"at":"2026-01-05T09:05:00.000000Z","amount":0}'
                      event_time: "2026-01-05 09:05:00"
                watermark: {plausible.rejected: "2026-01-05 09:04:00"}
        """,
    ).tests

    outcome = run_test(test, lambda: spark)

    assert outcome.ok, "\n".join(explanation(outcome))

    steps = [
        AddRows("lines", [{"value": "{"}, {"value": "7"}]),
        CheckRows("parsed.rejected", [{"node": "parsed"}]),
    ]
    with pytest.raises(StepsFailed) as failed:
        run_steps(tmp_path / "orders.yaml", steps, lambda: spark)
    assert "`parsed.rejected`: 1 row is unexpected" in str(failed.value)
    assert "`parsed.rejected` got 2 rows" in str(failed.value)


COMPARED = """
pipeline: orders
sources:
  orders: {gem: kafka, options: {bootstrap_servers: ["nowhere:9092"], subscribe: orders}}
  shops: {gem: rows, mode: batch, options: {schema: "shop string", rows: [[Oslo], [Rome]]}}
transforms:
  read: {gem: select, input: orders, options: {columns: {id: "cast(cast(value as string) as int)"}}}
  shop: {gem: with_columns, input: read, options: {columns: {shop: "if(id > 7, 'Nice', 'Oslo')"}}}
  plausible:
    gem: expect
    inputs: [shop, shops]
    options:
      rules:
        alone: {column: id, unique: true}
        known: {column: shop, foreign_key: {input: shops, column: shop}}
      max_rejected: 2
targets:
  good: {gem: delta, input: plausible, group: both, options: {path: /nowhere/good}}
  again: {gem: delta, input: plausible, group: both, options: {path: /nowhere/again}}
"""


@rejected_in_tests
@pytest.mark.spark
def test_a_node_that_compares_rows_has_the_micro_batch_of_its_group(
    spark: SparkSession, tmp_path: Path
) -> None:
    (test,) = loaded(
        tmp_path,
        """
        tests:
          bad rows:
            steps:
              - add: {read: [{id: 1}, {id: 2}, {id: 1}, {id: 8}]}
                expect:
                  good: [{id: 1, shop: Oslo}, {id: 2, shop: Oslo}]
                  plausible.rejected:
                    - reasons: [{name: alone, words: "`id is unique` is false"}]
                    - reasons: [{name: known, words: "`shop is in shops.shop` is false"}]
              - add: {read: [{id: 1}]}
                expect: {good: [{id: 1, shop: Oslo}], plausible.rejected: []}
              - add: {read: [{id: 8}, {id: 9}, {id: 10}]}
                fails: {code: GB515, message: "3 of 3 rows are rejected, and 2 may be"}
        """,
        COMPARED,
    ).tests

    outcome = run_test(test, lambda: spark)

    if is_over_connect(spark):
        told = "\n".join(explanation(outcome))
        assert "GB386" in told
        assert "the group `both` can't be written over Spark Connect" in told
    else:
        assert outcome.ok, "\n".join(explanation(outcome))

    batch = COMPARED.replace("sources:", "mode: batch\nsources:").replace(", mode: batch", "")
    (test,) = loaded(
        tmp_path,
        """
        tests:
          bad rows:
            steps:
              - add: {read: [{id: 1}, {id: 1}, {id: 8}]}
                expect: {good: [{id: 1, shop: Oslo}], plausible.rejected: {count: 2}}
              - add: {read: [{id: 9}]}
                fails: {code: GB515, message: "3 of 4 rows are rejected, and 2 may be"}
        """,
        batch,
    ).tests

    outcome = run_test(test, lambda: spark)

    assert outcome.ok, "\n".join(explanation(outcome))


REMEMBERED = """
pipeline: shop
sources:
  orders: {gem: kafka, options: {bootstrap_servers: ["nowhere:9092"], subscribe: orders}}
  known: {gem: rows, mode: batch, options: {schema: "id int", rows: [[1], [2], [3]]}}
transforms:
  read: {gem: select, input: orders, options: {columns: {id: "cast(cast(value as string) as int)", at: timestamp}}}
  timely: {gem: watermark, input: read, options: {column: at, delay: 10 minutes}}
  plausible:
    gem: expect
    inputs: [timely, known]
    options:
      rules:
        alone: {column: id, unique: within_watermark}
        known: {column: id, foreign_key: {input: known, column: id}}
targets:
  good: {gem: delta, input: plausible, group: both, options: {path: /nowhere/good}}
"""


@rejected_in_tests
@pytest.mark.spark
def test_what_a_node_remembers_is_so_in_a_test(spark: SparkSession, tmp_path: Path) -> None:
    (test,) = loaded(
        tmp_path,
        """
        tests:
          twice:
            steps:
              - add: {read: [{id: 1, at: "2024-01-01 10:00:00"}, {id: 9, at: "2024-01-01 10:00:00"}]}
                expect: {good: {count: 1}, plausible.rejected: {count: 1}}
              - restart: true
                add:
                  read:
                    - {id: 1, at: "2024-01-01 10:09:00"}
                    - {id: 9, at: "2024-01-01 10:09:00"}
                    - {id: 2, at: "2024-01-01 11:00:00"}
                expect:
                  good: [{id: 2, at: "2024-01-01 11:00:00"}]
                  plausible.rejected:
                    - reasons: [{name: alone, words: "`id is unique within the watermark` is false"}]
                    - reasons: [{name: known, words: "`id is in known.id` is false"}]
              - add: {read: [{id: 1, at: "2024-01-01 11:00:00"}, {id: 3, at: "2024-01-01 10:00:00"}]}
                expect: {good: [{id: 1, at: "2024-01-01 11:00:00"}], plausible.rejected: []}
        """,
        REMEMBERED,
    ).tests

    outcome = run_test(test, lambda: spark)

    if is_over_connect(spark):
        assert "the group `both` can't be written over Spark Connect" in "\n".join(explanation(outcome))
        return
    assert outcome.ok, "\n".join(explanation(outcome))


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("plausibel.rejected", "no node `plausibel` that could reject", "`plausible.rejected`"),
        ("plausible.rejcted", "of outputs rows are expected of `rejected` only", "`plausible.rejected`"),
        ("timely.rejected", "with its options `timely` (`watermark`) rejects no rows", "`parsed.rejected`"),
        ("posted.rejected", "`posted` is a target, and a test delivers nothing", "what the target gets"),
    ],
)
def test_a_name_of_an_output_that_means_nothing_is_said_with_its_place(
    name: str, message: str, hint: str, tmp_path: Path
) -> None:
    text = "tests:\n  bad rows:\n    steps:\n      - expect:\n          table: []\n          NAME: []"
    (test,) = loaded(tmp_path, text.replace("NAME", name)).tests

    outcome = run_test(test, lambda: pytest.fail("no session is needed"))

    (found,) = outcome.diagnostics
    assert found.code == "GB702"
    assert message in found.message
    assert hint in found.hint
    assert (found.line, found.column) == (6, 11)


def test_an_update_says_of_rejected_rows_what_comes_again(tmp_path: Path) -> None:
    file = loaded(
        tmp_path,
        """
        tests:
          bad rows:
            steps:
              - expect:
                  plausible.rejected: []
              - expect:
                  plausible.rejected:
                    - {node: plausible, row: "2"}
        """,
    )
    fields = fields_of("node string, reasons array<string>, row string, rejected_at timestamp")
    assert fields is not None
    outcome = TestOutcome(file.tests[0].name, file.tests[0].file, file.tests[0].place)
    for declared in file.tests[0].steps:
        came = [
            {"node": "plausible", "reasons": ["paid"], "row": r, "rejected_at": "2026-01-05"} for r in "23"
        ]
        rows = Rows(fields, tuple(Reader().row(row, fields) for row in came))
        ((name, delivery),) = declared.expect.items()
        difference = compare(delivery.expected(delivery.shape.rows), rows.rows, rows.fields)
        assert difference is not None
        step = StepOutcome(declared.number, declared.place, {name: Captured(name, rows=rows)})
        step.mismatches.append(Mismatch("rows", difference.message, name, difference))
        outcome.steps.append(step)

    text = update(file, {outcome.name: outcome}).text

    steps = load_steps(tmp_path, text)
    assert steps == [
        [{"reasons": ["paid"], "row": "2"}, {"reasons": ["paid"], "row": "3"}],
        [{"node": "plausible", "row": "2"}, {"node": "plausible", "row": "3"}],
    ]


def load_steps(folder: Path, text: str) -> list[object]:
    """The rejected rows that the steps of an updated file expect."""
    (folder / "orders.test.yaml").write_text(text)
    (test,) = load_tests(folder / "orders.test.yaml").tests
    return [step.expect["plausible.rejected"].shape.rows for step in test.steps]
