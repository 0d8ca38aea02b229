"""How much work a small run is, counted: the programs it starts, the jars it resolves, the jobs that Spark runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from gem_bundle.run.environment import find_jars
from tests.checked import plan_of
from tests.counting import ROOT
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.warm_spark import WarmSpark

pytestmark = pytest.mark.spark

PIPELINE: Final = """
pipeline: small
sources:
  orders:
    gem: file
    options: {path: in, format: json, schema: "id int, amount int", max_files_per_trigger: 1}
transforms:
  large: {gem: filter, input: orders, options: {condition: amount >= 10}}
targets:
  out: {gem: TARGET, input: large, options: {OPTIONS}}
"""
INTO: Final = {
    "noop": PIPELINE.replace("TARGET", "noop").replace("{OPTIONS}", "{}"),
    "file": PIPELINE.replace("TARGET", "file").replace("OPTIONS", "path: out, format: json"),
    "delta": PIPELINE.replace("TARGET", "delta").replace("OPTIONS", "path: out"),
}
# Writes down what it has started and whom it has asked, to the end of Python.
COUNTED: Final = """
import atexit, json, sys
from pathlib import Path
from tests.guard import TELLING, started_by

place, *arguments = sys.argv[1:]
started = []
atexit.register(lambda: Path(place).write_text(json.dumps(started)))

def hear(event, given):
    what = started_by(event, given) if event in TELLING else None
    if what is not None:
        started.append(what)

sys.addaudithook(hear)
from gem_bundle.cli import main
main(arguments, prog_name="gem-bundle")
"""


def test_a_run_starts_spark_and_nothing_else_and_resolves_no_jar(
    tmp_path: Path, warm_spark: WarmSpark
) -> None:
    file = write_pipeline(tmp_path, INTO["delta"])
    add_rows(tmp_path / "in", "1.json", [{"id": 1, "amount": 10}])
    plan = plan_of(file)
    assert find_jars(plan)  # from now on the cache has them

    done = subprocess.run(
        [sys.executable, "-c", COUNTED, tmp_path / "started", "run", file, "--available-now"],
        env={**os.environ, **warm_spark.variables(), "PYTHONPATH": _path()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "_delta_log").is_dir()
    assert "Resolving" not in done.stderr
    program, *others = json.loads((tmp_path / "started").read_text())
    assert "/bin/spark-submit " in program
    assert others == ["a server (on localhost)"], "PySpark's own, for accumulators"


def _path() -> str:
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("target", "jobs"), [("noop", 1), ("file", 1), ("delta", 2)])
def test_a_micro_batch_is_so_many_jobs_and_none_where_nothing_is_new(
    spark: SparkSession, tmp_path: Path, target: str, jobs: int
) -> None:
    file = write_pipeline(tmp_path, INTO[target])

    def available(*files: str) -> int:
        for number, name in enumerate(files):
            add_rows(tmp_path / "in", name, [{"id": number, "amount": 10}])
        return jobs_of(spark, lambda: run(file, available_now=True).ok)

    assert [available("1.json"), available("2.json", "3.json"), available()] == [jobs, 2 * jobs, 0]


def jobs_of(spark: SparkSession, function: Callable[[], bool]) -> int:
    """How many jobs Spark runs until a function returns."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before: int = scheduler.numTotalJobs()
    assert function()
    return int(scheduler.numTotalJobs()) - before
