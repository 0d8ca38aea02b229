"""A place of the matrix is what it is called: the other tests there show what works in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from tests.connect_server import is_over_connect
from tests.kit.clean import clean_variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
DAILY = ("--spark 4.0", "--spark 4.1", "--python 3.13")
# A place in a minute: rows, a restart, a target and a declared test. All of what is marked `matrix` takes twenty.
SMOKE = (
    "tests/test_matrix.py::test_the_environment_is_the_place",
    "tests/test_matrix.py::test_the_session_is_that_of_the_place",
    "tests/kit/conformance/test_sources.py::TestFile::test_reads_on_after_a_restart",
    "tests/kit/conformance/test_targets.py::TestDelta::test_appends_a_stream",
    "tests/kit/test_declared_run.py::test_rows_arrive_step_by_step_and_late_ones_are_dropped",
)


@pytest.mark.matrix
def test_the_environment_is_the_place() -> None:
    name, _, wanted = os.environ.get("GEM_BUNDLE_PLACE", "").partition(" ")
    if name == "python":
        assert ".".join(map(str, sys.version_info[:2])) == wanted
    spark = version("pyspark")
    if name == "spark":
        assert spark.rpartition(".")[0] == wanted
    else:
        assert f"<={spark}" in str(_extra("pyspark").specifier), "the newest one, where no other is asked for"
    assert _extra("pyspark").specifier.contains(spark)


@pytest.mark.spark
@pytest.mark.matrix
def test_the_session_is_that_of_the_place(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    over_connect = is_over_connect(request.config)
    assert type(spark).__module__ == (
        "pyspark.sql.connect.session" if over_connect else "pyspark.sql.session"
    )
    name, _, wanted = os.environ.get("GEM_BUNDLE_PLACE", "").partition(" ")
    # Its Java's word, or the server's: a `SPARK_HOME` would start that of another place.
    assert spark.version == version("pyspark")
    assert name != "spark" or spark.version.startswith(f"{wanted}.")


@pytest.mark.programs
@pytest.mark.network
@pytest.mark.parametrize("place", DAILY)
def test_a_place_of_the_matrix_passes_its_smoke(place: str) -> None:
    variables = clean_variables()
    del variables["SPARK_HOME"]  # a place has its own
    done = subprocess.run(
        ["scripts/matrix", *place.split(), "-q", *SMOKE],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(SMOKE)} passed" in done.stdout


def _extra(name: str) -> Requirement:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["spark"]
    (found,) = [made for text in declared if (made := Requirement(text)).name == name]
    return found
