"""Spark plans edits of running pipelines, and tells by that alone which state it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.model import Change, TargetChanges
from gem_bundle.diagnostics import Place
from gem_bundle.plugins import load_registry
from gem_bundle.run.frames import NodeFailure
from tests.differential.edits.draw import Edit
from tests.differential.edits.drawn import Drawn, plan_of
from tests.differential.edits.planned import Planning, judge_run
from tests.differential.edits.truth import SETTINGS, Experiments

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.changes.model import Verdict
    from gem_bundle.pipeline.plan import Plan

pytestmark = pytest.mark.spark


def pipeline(aggregate: str, asked: str = "n > 1") -> Plan:
    """A pipeline that counts."""
    plan = plan_of(
        {
            "pipeline": "drawn",
            "sources": {
                "a": {
                    "gem": "file",
                    "options": {"format": "json", "path": "a", "schema": "page string, k int"},
                }
            },
            "transforms": {
                "g": {
                    "gem": "aggregate",
                    "input": "a",
                    "options": {"group_by": ["page"], "aggregates": {"n": aggregate}},
                },
                "f": {"gem": "filter", "input": "g", "options": {"condition": asked}},
            },
            "targets": {"out": {"gem": "noop", "input": "f", "output_mode": "update"}},
        },
        load_registry(),
    )
    assert plan is not None
    return plan


def changes(verdict: Verdict) -> TargetChanges:
    """A verdict with a change that says so."""
    return TargetChanges("out", (Change(verdict, "GB423", "", "g", (), Place("drawn")),))


def test_spark_tells_by_its_plans_which_state_it_refuses(spark: SparkSession, tmp_path: Path) -> None:
    planning = Planning(spark, tmp_path / "planned")
    counted = pipeline("count(*)")
    before = {key: spark.conf.get(key, None) for key in SETTINGS}

    assert planning.refusal(counted, counted, "out") is None
    assert planning.refusal(counted, pipeline("count(*)", "n > 2"), "out") is None
    assert not planning.changes_before_state
    assert planning.refusal(counted, pipeline("count(*)", "page = 'cart'"), "out") is None
    assert planning.changes_before_state, "a condition on a key goes before the groups"
    # Both are a number, and one may be null.
    assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in str(
        planning.refusal(counted, pipeline("sum(k)"), "out")
    )
    assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in str(
        planning.refusal(counted, pipeline("avg(k)"), "out")
    )
    assert planning.refusal(pipeline("sum(k)"), counted, "out") is None

    assert {key: spark.conf.get(key, None) for key in SETTINGS} == before
    assert [file.name for file in (tmp_path / "planned").iterdir()] == ["first"]


def test_a_version_that_spark_does_not_plan_tells_nothing(spark: SparkSession, tmp_path: Path) -> None:
    planning = Planning(spark, tmp_path / "planned")
    counted = pipeline("count(*)")
    with pytest.raises(NodeFailure):
        planning.refusal(counted, pipeline("count(*)", "known_to_nobody(page)"), "out")
    assert planning.refusal(counted, counted, "out") is None


def test_rows_decide_where_spark_plans_otherwise_than_told(spark: SparkSession, tmp_path: Path) -> None:
    experiments = Experiments(spark, tmp_path / "runs")
    counted, averaged = pipeline("count(*)"), pipeline("avg(k)")

    def found(old: Plan, new: Plan, *said: str) -> list[str]:
        drawn = Drawn(0, "out", {}, old, Edit("other", {}, "g"), {}, new, stateful=True, kept=None)  # type: ignore[arg-type]
        first = experiments.first("planned", old, "out")
        return [judge_run(drawn, changes(one), first, experiments) for one in said]

    try:
        assert found(counted, averaged, "refused", "mixed") == ["planned otherwise", "refused missed"]
        # Each pipeline's edits go on from what it has left itself.
        assert found(averaged, averaged, "refused", "same") == ["worse", "right"]
        # What was counted of all rows is not what is counted of some of them.
        asked = pipeline("count_if(k > 1)")
        assert found(counted, asked, "continues", "mixed") == ["better", "planned otherwise"]
    finally:
        experiments.close()
