"""``gem-bundle test --create``: real rows become a test that passes."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from gem_bundle.cli import main
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import run_test
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

a_made_test = some_of("tests made of real rows", 1)

PIPELINE = """
    pipeline: orders
    parameters:
      least: 5
    sources:
      orders: {gem: file, options: {format: json, path: in, schema: "shop string, at timestamp, amount int"}}
      shops: {gem: file, mode: batch, options: {format: csv, path: shops.csv, header: true}}
    transforms:
      large: {gem: filter, input: orders, options: {condition: "amount >= ${least}"}}
      timely: {gem: watermark, input: large, options: {column: at, delay: 10 minutes}}
      named: {gem: join, inputs: [timely, shops], options: {how: left, on: [shop]}}
      hours:
        gem: aggregate
        input: named
        options:
          window: {column: at, duration: 1 hour}
          group_by: [town]
          aggregates: {orders: count(*), sales: sum(amount)}
      rows: {gem: select, input: hours, options: {columns: {hour: window.start, town: town, orders: orders, sales: sales}}}
    targets:
      table: {gem: file, input: rows, options: {format: json, path: out}}
      copy: {gem: file, input: large, options: {format: json, path: copies}}
"""
ORDERS = [
    {"shop": "a", "at": "2026-01-05 09:05:00", "amount": 10},
    {"shop": "b", "at": "2026-01-05 09:15:00", "amount": 3},
    {"shop": "b", "at": "2026-01-05 09:25:00", "amount": 20},
    {"shop": "a", "at": "2026-01-05 09:35:00"},
    {"shop": "x", "at": "2026-01-05 10:05:00", "amount": 7},
    {"shop": "a", "at": "2026-01-05 12:00:00", "amount": 100},
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a pipeline and rows for its sources."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(dedent(PIPELINE))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.json").write_text("".join(f"{json.dumps(order)}\n" for order in ORDERS))
    (tmp_path / "shops.csv").write_text("shop,town\na,Oslo\nb,Bergen\n")
    return tmp_path


def create(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["test", "--create", *arguments], prog_name="gem-bundle")
    assert "Traceback" not in result.output
    return result


@a_made_test
@pytest.mark.spark
def test_a_test_is_made_of_real_rows_and_passes(project: Path, spark: SparkSession) -> None:
    result = create("orders.yaml", "hours", "--rows", "5", "-p", "least=7")

    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "orders.test.yaml:3: hours of real rows (2 rows of `shops`, 5 rows of `orders`)\n"
    )
    assert "look at both" in result.stderr
    assert (project / "orders.test.yaml").read_text() == dedent(
        """\
        # Tests of orders.yaml: `gem-bundle test` runs them.
        tests:
          hours of real rows:
            parameters: {least: "7"}
            replace:
              shops:
                schema: "shop string, town string"
                rows:
                  - {shop: a, town: Oslo}
                  - {shop: b, town: Bergen}
            steps:
              - add:
                  orders:
                    - {shop: a, at: "2026-01-05 09:05:00", amount: 10}
                    - {shop: b, at: "2026-01-05 09:15:00", amount: 3}
                    - {shop: b, at: "2026-01-05 09:25:00", amount: 20}
                    - {shop: a, at: "2026-01-05 09:35:00"}
                    - {shop: x, at: "2026-01-05 10:05:00", amount: 7}
                expect:
                  table: []
              - add:
                  orders:
                    - {shop: x, at: "2026-01-06 10:05:00", amount: 7}
                expect:
                  table:
                    - {hour: "2026-01-05 09:00:00", town: Bergen, orders: 1, sales: 20}
                    - {hour: "2026-01-05 09:00:00", town: Oslo, orders: 1, sales: 10}
                    - {hour: "2026-01-05 10:00:00", town: null, orders: 1, sales: 7}
        """
    )
    (test,) = load_tests("orders.test.yaml").tests
    assert run_test(test, lambda: spark).ok
    assert not (project / "out").exists()
    assert not (project / "checkpoints").exists()


@a_made_test
@pytest.mark.spark
def test_a_test_is_added_to_those_that_are_there(project: Path, spark: SparkSession) -> None:
    before = "tests: # of orders\n    orders of real rows:\n        fails: GB101 # not any more\n# the end\n"
    (project / "orders.test.yaml").write_text(before)

    result = create("orders.yaml", "copy", "--rows", "1")
    again = create("orders.yaml", "orders", "-q")

    assert result.stdout == "orders.test.yaml:5: copy of real rows (1 row of `orders`)\n"
    assert (again.exit_code, again.output) == (0, "")
    text = (project / "orders.test.yaml").read_text()
    assert text.startswith(before.removesuffix("# the end\n"))
    assert text.endswith("# the end\n")
    file = load_tests("orders.test.yaml")
    assert file.diagnostics == ()
    assert [test.name for test in file.tests] == [
        "orders of real rows",
        "copy of real rows",
        "orders of real rows 2",
    ]
    assert [sorted(test.steps[0].expect) for test in file.tests[1:]] == [["copy"], ["copy", "table"]]
    assert 'copy: [{shop: a, at: "2026-01-05 09:05:00", amount: 10}]' in text
    assert run_test(file.tests[2], lambda: spark).ok


@pytest.mark.spark
def test_a_batch_pipeline_gets_a_test_of_one_step(project: Path, spark: SparkSession) -> None:
    text = dedent(PIPELINE).replace("pipeline: orders\n", "pipeline: orders\nmode: batch\n")
    text = text.replace(
        "input: large, options: {column: at, delay: 10 minutes}",
        "input: large, options: {columns: {one: '1'}}",
    )
    (project / "orders.yaml").write_text(text.replace("gem: watermark", "gem: with_columns"))

    result = create("orders.yaml", "table", "--rows", "20")

    assert result.exit_code == 0, result.output
    (test,) = load_tests("orders.test.yaml").tests
    assert (len(test.steps), sorted(test.steps[0].add)) == (1, ["orders", "shops"])
    assert len(test.steps[0].expect["table"].shape.rows or ()) == 4
    assert run_test(test, lambda: spark).ok


@pytest.mark.spark
def test_what_no_test_can_be_made_of_is_told(project: Path, spark: SparkSession) -> None:
    (project / "in" / "orders.json").write_text("")
    (project / "shops.csv").write_text("shop,town\n")

    nothing = create("orders.yaml", "table")
    (project / "in" / "orders.json").write_text(json.dumps(ORDERS[0]))
    (project / "orders.test.yaml").write_text("tests: {t: {fails: GB101}}\n")
    in_braces = create("orders.yaml", "copy")

    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "error: the sources of the pipeline have no rows" in nothing.stderr
    assert (in_braces.exit_code, in_braces.stdout) == (1, "")
    assert "the tests of `orders.test.yaml` are written so that none can be added" in in_braces.stderr


def test_a_node_that_there_is_none_of_is_told(project: Path) -> None:
    result = create("orders.yaml", "ordrs")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB108]: the pipeline has no node `ordrs`" in result.stderr
    assert "Did you mean `orders`?" in result.stderr
    assert not (project / "orders.test.yaml").exists()


def test_a_pipeline_with_errors_gets_no_test(project: Path) -> None:
    (project / "orders.yaml").write_text(dedent(PIPELINE).replace("input: orders", "input: oders"))

    result = create("orders.yaml", "table")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB101]" in result.stderr
