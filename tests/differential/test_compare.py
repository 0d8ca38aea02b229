"""What counts as a disagreement, Spark's verdicts being given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.plugins import load_registry
from tests.differential.compare import Compared, Comparison
from tests.differential.engine import Verdict
from tests.differential.starting import Run

if TYPE_CHECKING:
    from gem_bundle.pipeline.plan import Plan

SCHEMA = "id bigint, at timestamp"
PIPELINE: dict[str, Any] = {
    "pipeline": "drawn",
    "sources": {
        "a": {"gem": "file", "options": {"format": "parquet", "path": "a", "schema": SCHEMA}},
        "s": {
            "gem": "file",
            "mode": "batch",
            "options": {"format": "parquet", "path": "s", "schema": SCHEMA},
        },
    },
    "transforms": {
        "later": {"gem": "sql", "input": "s", "options": {"query": "select id from s offset 5"}},
        "joined": {"gem": "join", "inputs": ["a", "later"], "options": {"on": ["id"]}},
        "chosen": {
            "gem": "sql",
            "inputs": ["a", "later"],
            "options": {"query": "select * from a where id in (select id from later)"},
        },
    },
    "targets": {
        "refused": {"gem": "noop", "input": "joined"},
        "fine": {"gem": "noop", "input": "chosen"},
    },
}
OFFSET = Verdict("streaming", "refused", "", "Offset is not supported on streaming DataFrames/Datasets;")
ACCEPTED = Verdict("accepted")


class Given:
    """A Spark whose verdicts are known."""

    def __init__(self, **verdicts: Verdict) -> None:
        self._given = verdicts

    def verdicts(self, plan: Plan) -> dict[str, Verdict]:
        """Those of the plan's targets."""
        return {target.id: self._given[target.id] for target in plan.definition.of_kind("target")}


def disagreements(**verdicts: Verdict) -> list[tuple[str, str, tuple[str, ...]]]:
    comparison = Comparison(Given(**verdicts), load_registry())  # type: ignore[arg-type]
    targets = {name: PIPELINE["targets"][name] for name in verdicts}
    compared = comparison.of({**PIPELINE, "targets": targets})
    return [(found.target, found.kind, found.codes) for found in compared.disagreements]


def test_what_is_said_of_a_node_counts_for_the_target_that_is_the_reason() -> None:
    """An offset before a join with a stream is refused, one in a subquery is not, and both need the node."""
    assert disagreements(refused=OFFSET, fine=ACCEPTED) == []


@pytest.mark.parametrize("others", [{}, {"fine": ACCEPTED}])
def test_a_false_alarm_is_one_with_other_targets_too(others: dict[str, Verdict]) -> None:
    assert disagreements(refused=ACCEPTED, **others) == [("refused", "false alarm", ("GB305",))]


class Started:
    """A starter whose queries all end in the same way."""

    def __init__(self, error: str) -> None:
        self.error = error
        self.count = 0

    def start(self, _plan: Plan, _target: str) -> Run:
        """What becomes of any query."""
        self.count += 1
        return Run(error=ValueError(self.error))


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        ("Stream-stream join without equality predicate is not supported", []),
        ("[CAST_INVALID_INPUT] The value 'page' cannot be cast to TIMESTAMP", []),
        ("something else", ["false alarm"]),
    ],
)
def test_a_row_that_ends_the_query_says_nothing_of_a_deliberate_difference(
    error: str, kinds: list[str]
) -> None:
    started = Started(error)
    comparison = Comparison(Given(crossed=ACCEPTED), load_registry(), started, proofs=1)  # type: ignore[arg-type]
    sources = dict.fromkeys("ab", PIPELINE["sources"]["a"])
    joined = {"gem": "sql", "inputs": ["a", "b"], "options": {"query": "select a.id from a cross join b"}}
    values = {
        "pipeline": "drawn",
        "sources": sources,
        "transforms": {"joined": joined},
        "targets": {"crossed": {"gem": "noop", "input": "joined"}},
    }
    compared = [comparison.of(values) for _ in range(2)]
    assert [found.kind for found in compared[0].disagreements] == kinds
    assert started.count == (2 if "CAST" in error else 1)


def test_a_missed_target_is_one() -> None:
    assert disagreements(refused=OFFSET, fine=OFFSET) == [("fine", "missed", ())]


def compared(values: dict[str, Any], **verdicts: Verdict) -> Compared:
    return Comparison(Given(**verdicts), load_registry()).of({"pipeline": "drawn", **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "undeclared", "kinds"),
    [
        ("This output mode is not supported for aggregations without watermark", ["out"], []),
        ("Distinct aggregations are not supported", [], ["missed"]),
    ],
)
def test_only_a_table_knows_which_of_its_columns_are_marked(
    message: str, undeclared: list[str], kinds: list[str]
) -> None:
    options = {"group_by": ["page"], "aggregates": {"n": "count(*)"}}
    counted = {"gem": "aggregate", "input": "a", "options": options}
    values = {
        "sources": {"a": {"gem": "delta", "options": {"table": "shop.clicks"}}},
        "transforms": {"counted": counted},
        "targets": {"out": {"gem": "noop", "input": "counted"}},
    }
    found = compared(values, out=Verdict("streaming", "out", "", message))
    assert found.undeclared == undeclared
    assert [each.kind for each in found.disagreements] == kinds


@pytest.mark.parametrize(
    ("key", "verdict", "found", "kinds"),
    [
        ("id", ACCEPTED, [], []),
        ("nothing", Verdict("analysis", "out", "UNRESOLVED_COLUMN"), ["out"], []),
        ("nothing", ACCEPTED, [], ["false alarm"]),
    ],
)
def test_spark_has_its_say_on_how_rows_change_others(
    key: str, verdict: Verdict, found: list[str], kinds: list[str]
) -> None:
    merge = {"on": [key], "sequence_by": "at"}
    values = {
        "sources": {"a": PIPELINE["sources"]["a"]},
        "targets": {"out": {"gem": "delta", "input": "a", "options": {"path": "t", "merge": merge}}},
    }
    result = compared(values, out=verdict)
    assert result.found == found
    assert [each.kind for each in result.disagreements] == kinds


def test_what_is_said_of_a_target_is_not_about_the_rows_that_it_rejects() -> None:
    judge = {"function": "tests.differential.called:judge_row", "rejects": True}
    values = {
        "sources": {"a": PIPELINE["sources"]["a"]},
        "targets": {
            "out": {"gem": "foreach", "input": "a", "output_mode": "complete", "options": judge},
            "bad": {"gem": "noop", "input": "out.rejected"},
        },
    }
    refused = Verdict("streaming", "out", "", "Complete output mode not supported")
    assert compared(values, out=refused, bad=ACCEPTED).disagreements == []


def test_of_what_keeps_state_behind_a_fork_spark_is_not_asked() -> None:
    service = {"url": "https://api.example.com/{id}", "schema": "n int", "rejects": True}
    rules = {"once": {"column": "n", "unique": True}}
    values = {
        "sources": {"a": PIPELINE["sources"]["a"]},
        "transforms": {
            "asked": {"gem": "rest_enrich", "input": "a", "options": service},
            "counted": {"gem": "aggregate", "input": "asked", "options": {"aggregates": {"n": "count(*)"}}},
            "once": {"gem": "expect", "input": "counted", "options": {"rules": rules}},
        },
        "targets": {"out": {"gem": "noop", "input": "once", "group": "one"}},
    }
    assert compared(values, out=ACCEPTED).disagreements == []


def test_the_output_mode_of_an_aggregation_behind_a_fork_is_none_that_spark_can_judge() -> None:
    """Where rejected rows of a node before it are written too, Spark is asked about what comes to that node."""
    there = {"rules": {"there": {"column": "id", "not_null": True}}}
    once = {"rules": {"once": {"column": "n", "unique": True}}}
    values = {
        "sources": {"a": PIPELINE["sources"]["a"]},
        "transforms": {
            "held": {"gem": "expect", "input": "a", "options": there},
            "counted": {"gem": "aggregate", "input": "held", "options": {"aggregates": {"n": "count(*)"}}},
            "once": {"gem": "expect", "input": "counted", "options": once},
        },
        "targets": {
            "out": {"gem": "noop", "input": "once", "group": "one", "output_mode": "complete"},
            "bad": {"gem": "noop", "input": "held.rejected"},
        },
    }
    refused = Verdict("streaming", "out", "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "no aggregations")
    assert compared(values, out=refused, bad=ACCEPTED).disagreements == []
