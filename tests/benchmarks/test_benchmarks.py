"""The benchmarks that need no JVM hold, and what the README quotes is what was measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import commands, declared_tests
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.report import DOCS, README, markdown, table, with_table
from tests.benchmarks.timing import Comparison, Pairs, in_turn

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# On a machine that runs other things at the same time, a median of a few is not a bench's median of
# many; what these two tests are for is the import that somebody adds and that doubles the time.
SLACK = 1.4


def test_help_costs_little_more_than_importing_click() -> None:
    found = commands.help_text(pairs=7)
    assert found.value <= found.bound * SLACK, found


def test_checking_a_hundred_nodes_costs_little_more_than_importing_what_it_uses(tmp_path: Path) -> None:
    found = commands.check(7, tmp_path)
    assert found.value <= found.bound * SLACK, found


def test_checking_a_thousand_nodes_takes_ten_times_as_long_at_most(tmp_path: Path) -> None:
    found = commands.check_many(3, tmp_path)
    assert found.value <= found.bound * SLACK, found


def test_a_bundle_is_built_soon_after_the_check(tmp_path: Path) -> None:
    for name, found in (
        ("thin", commands.build_thin(3, tmp_path / "thin")),
        ("whole", commands.build(3, tmp_path / "b")),
    ):
        assert found.value <= found.bound * SLACK, (name, found)


@pytest.mark.spark
@pytest.mark.parametrize("kind", declared_tests.SECONDS)
def test_a_step_of_a_declared_test_in_a_warm_session(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    found = [declared_tests.step_seconds(spark, tmp_path, kind) for _ in range(4)]
    assert min(found) <= declared_tests.SECONDS[kind] * SLACK, found


def test_the_readme_quotes_the_record() -> None:
    record = json.loads((DOCS / "benchmarks.json").read_text())
    found = [Comparison(**comparison) for comparison in record["comparisons"]]
    assert {"help", "check"} <= {c.name for c in found} <= BENCHMARKS.keys()
    assert all(c.pairs >= 5 for c in found)
    assert (DOCS / "benchmarks.md").read_text() == markdown(found, record["remarks"], record["machine"])
    assert table(found) in README.read_text()


def test_pairs_are_compared_with_their_neighbour() -> None:
    # The machine slows down to half its speed: the ratio doesn't notice.
    pairs = Pairs(ours=(1.0, 2.0, 2.0), theirs=(2.0, 4.0, 4.0))
    assert pairs.ratio == 0.5
    assert pairs.speedup == 2.0
    assert pairs.difference == -2.0


def test_ways_run_in_turn_and_the_first_pair_does_not_count() -> None:
    order: list[str] = []

    def way(name: str) -> float:
        order.append(name)
        return float(len(order))

    pairs = in_turn(lambda: way("a"), lambda: way("b"), 3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert pairs.ours == (4.0, 5.0, 8.0)


@pytest.mark.parametrize(
    ("value", "rule", "holds"),
    [
        (1.0, {"at_most": 1.0}, True),
        (1.1, {"at_most": 1.0}, False),
        (0.2, {"at_least": 5}, True),
        (0.25, {"at_least": 5}, False),
        (3.0, {"more_seconds": 2}, True),
        (3.1, {"more_seconds": 2}, False),
        (3.0, {"seconds": 3}, True),
        (3.1, {"seconds": 3}, False),
    ],
)
def test_a_rule_holds_up_to_its_bound(value: float, rule: dict[str, float], holds: bool) -> None:
    assert Pairs((value,), (1.0,)).compared("x", "ours", "theirs", **rule).holds is holds


def test_the_readmes_table_is_replaced_in_place() -> None:
    found = [Pairs((1.0,), (2.0,)).compared("x", "ours", "theirs", at_least=2)]
    before = "a\n<!-- scripts/bench writes this table -->\nold\n<!-- to here -->\nb\n"
    after = with_table(before, found)
    assert after.startswith("a\n<!-- scripts/bench")
    assert after.endswith("<!-- to here -->\nb\n")
    assert "| ours | theirs | 2.0 times as fast |" in after
    assert "old" not in after
    with pytest.raises(ValueError, match="needs the lines"):
        with_table("no place", found)
