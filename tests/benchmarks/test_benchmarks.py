"""What is measured is little work, and what the README quotes is what was measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.checker import check_file
from tests.benchmarks import commands, declared_tests, scale
from tests.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.pipelines import generate
from tests.benchmarks.report import DOCS, README, falls_short, markdown, table, with_table
from tests.benchmarks.timing import Comparison, Pairs, in_turn
from tests.counting import calls_of_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flights, copied: what a build makes lies beside them."""
    return Path(shutil.copy(commands.FLIGHTS, tmp_path_factory.mktemp("flights")))


@pytest.mark.programs
def test_a_check_of_ten_times_as_many_nodes_is_ten_times_the_work_at_most(tmp_path: Path) -> None:
    few, many = tmp_path / "few.yaml", tmp_path / "many.yaml"
    few.write_text(generate(commands.NODES))
    many.write_text(generate(commands.MANY_NODES))
    assert calls_of_command("check", many) < 10 * calls_of_command("check", few)


@pytest.mark.programs
def test_a_thin_bundle_is_little_more_work_than_the_check(flights: Path, tmp_path: Path) -> None:
    built = calls_of_command("build", flights, "-o", tmp_path, "--thin", "--quiet")
    assert built < 3 * calls_of_command("check", flights)


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "most"), [("stateful", 12), ("stateless", 12)])
def test_a_step_of_a_declared_test_is_few_jobs(
    spark: SparkSession, tmp_path: Path, kind: str, most: int
) -> None:
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    declared_tests.step_seconds(spark, tmp_path, kind)
    assert scheduler.numTotalJobs() - before <= most * declared_tests.STEPS


@pytest.mark.parametrize(
    ("source", "work", "effort"),
    [
        (scale.FROM_FILES, scale.PYTHON, scale.OF_FILES),
        (scale.FROM_FILES, scale.SQL, scale.OF_FILES),
        (scale.FROM_KAFKA, scale.PYTHON, scale.PYTHON_OF_A_TOPIC),
        (scale.FROM_KAFKA, scale.SQL, scale.SQL_OF_A_TOPIC),
    ],
    ids=["python over files", "sql over files", "python over kafka", "sql over kafka"],
)
def test_what_is_measured_on_a_cluster_is_right(source: str, work: str, effort: int, tmp_path: Path) -> None:
    data = "localhost:9092" if source == scale.FROM_KAFKA else str(tmp_path / "data")
    file = scale.write(tmp_path, "spark://127.0.0.1:7077", source, data, work, effort)
    assert check_file(file).diagnostics == []


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


def test_a_check_ends_with_the_rows_that_fall_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(name: str, value: float) -> Comparison:
        return Pairs((value,), (1.0,)).compared(name, f"our {name}", "theirs", at_most=2)

    rows = {
        name: (lambda *_, n=name, v=value: row(n, v), 1) for name, value in (("slow", 2.5), ("quick", 1.0))
    }
    monkeypatch.setattr("tests.benchmarks.__main__.BENCHMARKS", rows)
    before = README.read_text()

    monkeypatch.setattr("sys.argv", ["bench", "--check"])
    assert main() == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == f"BROKEN slow: {falls_short(row('slow', 2.5))}"
    assert "our slow against theirs: 2.50 times as long, where at most 2 times" in said[-1]

    monkeypatch.setattr("sys.argv", ["bench", "--check", "--only", "quick"])
    assert main() == 0
    assert README.read_text() == before


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
