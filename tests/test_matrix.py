"""A place of the matrix is what it is called: the other tests there show what works in it."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.kit.clean import clean_variables

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
# A place in a minute: rows, a restart, a target and a declared test. All of what is marked `matrix` takes twenty.
SMOKE = (
    "tests/test_matrix.py::test_the_environment_is_the_place",
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


@pytest.mark.programs
@pytest.mark.network
@pytest.mark.parametrize("place", ["--spark 4.0", "--spark 4.1", "--python 3.13"])
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
