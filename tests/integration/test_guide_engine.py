"""The examples of Spark's guide, asked of Spark itself: it says what the guide says, or a file says why not."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from gem_bundle.codes import CODES
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.plugins import load_registry
from gem_bundle.run.engine import check_engine
from gem_bundle.run.frames import Frames
from tests.core.test_guide import FILES, FOLDER, expected, remark
from tests.differential.engine import plan_of
from tests.integration.pipelines import add_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# What Spark's check of a query is about; it doesn't look at sinks, sources and triggers.
QUERY = re.compile(r"GB3(0[1-9]|2[1-9]|36)")


def refused_by_checker(file: Path) -> bool:
    """Whether the checker refuses the query itself."""
    codes = {code for code, _ in expected(file.read_text(encoding="utf-8"))}
    return any(QUERY.fullmatch(code) and CODES[code].severity == "error" for code in codes)


def said_of(file: Path) -> str | None:
    """Why Spark's check says something else than the checker, if it does."""
    return remark(file.read_text(encoding="utf-8"), "engine")


NOT_ASKED = {
    "14_output_sinks__table_to_table": "the table that it reads isn't there",
    "16_asynchronous_progress__other_sink": "its options aren't valid, so there is no query",
}
ASKED = [file for file in FILES if file.stem not in NOT_ASKED]


@pytest.mark.parametrize("file", ASKED, ids=lambda file: file.stem)
def test_spark_says_the_same(file: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))  # the examples' own functions
    definition = load_file(file, LoadOptions(environment={})).definition
    assert definition is not None
    plan = plan_of(definition, load_registry({}))
    assert plan is not None
    for name, value in plan.definition.spark.items():
        spark.conf.set(name, value)
    try:
        found = check_engine(plan, spark)
    finally:
        for name in plan.definition.spark:
            spark.conf.unset(name)

    said = said_of(file)
    refused = refused_by_checker(file)
    if said is not None:
        refused = not refused
        assert said.startswith("refuses; " if refused else "accepts; ")
    assert {diagnostic.code for diagnostic in found} == ({"GB320"} if refused else set()), "\n".join(
        map(str, found)
    )


# Why a query that Spark's check lets pass fails when it runs.
REASONS = {
    "03_types_of_time_windows__session_alone": "Global aggregation with session window",
    "07_stream_stream_joins__inner_without_equality": "without equality predicate",
    "08_support_matrix__stream_stream_cross": "without equality predicate",
}


def test_every_file_that_only_the_checker_refuses_is_started() -> None:
    accepted = [file for file in FILES if (said_of(file) or "").startswith("accepts; ")]
    assert {file.stem for file in accepted} == REASONS.keys()


@pytest.mark.parametrize("name", REASONS)
def test_what_only_the_checker_refuses_fails_when_it_runs(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    copy = shutil.copy(FOLDER / f"{name}.yaml", tmp_path)
    definition = load_file(copy, LoadOptions(environment={})).definition
    assert definition is not None
    plan = plan_of(definition, load_registry({}))
    assert plan is not None
    for source in definition.of_kind("source"):
        add_rows(tmp_path / source.options["path"], "1.json", [{}])
    (target,) = definition.of_kind("target")
    df = Frames(plan, spark).of(target.inputs[0].node)

    query = (
        df.writeStream.format("noop")
        .outputMode(target.output_mode)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException, match=REASONS[name]):
        query.awaitTermination(120)
