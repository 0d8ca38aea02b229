"""A place of the matrix is what it is called: the other tests there show what works in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


class Fault(NamedTuple):
    """A mistake that is none in most places.

    Args:
        file: Where it is made.
        before: What it is made of, which is there once.
        made: What stands there then.
        told: What a test says of it.
    """

    file: str
    before: str
    made: str
    told: str


def in_front(line: str, told: str) -> Fault:
    """A line of code in front of what reads a stream of files."""
    before = "        reader = context.reader.options(**self._options())\n"
    return Fault("gems/gem_file/source.py", before, f"        {line}\n{before}", told)


FAULTS = {
    "--spark 4.0": in_front("from pyspark.sql.functions import quote", "cannot import name 'quote'"),
    "--spark 4.1": in_front(
        "from pyspark.sql.functions import time_bucket", "cannot import name 'time_bucket'"
    ),
    "--spark 4.2": Fault(
        "core/gem_bundle/contexts.py",
        "reader.name(self.name)",
        "reader.named(self.name)",
        "attribute 'named'",
    ),
    "--python 3.13": in_front("from locale import resetlocale", "cannot import name 'resetlocale'"),
    "--connect": in_front(
        "context.spark.sparkContext.setJobDescription('files')", "JVM_ATTRIBUTE_NOT_SUPPORTED"
    ),
}
# Where each of them is none. The Spark of 4.1 is asked for more than that of 4.0 has.
UNSEEN = {
    "--spark 4.2": ("--spark 4.0", "--spark 4.1", "--python 3.13", "--connect"),
    "--spark 4.1": ("--spark 4.0", "--spark 4.2"),
}


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
@pytest.mark.sample(2)  # a minute or more for each place
@pytest.mark.parametrize("place", DAILY)
def test_a_place_of_the_matrix_passes_its_smoke(place: str) -> None:
    assert_passes(smoke(place))


@pytest.mark.programs
@pytest.mark.network
@pytest.mark.sample(0)  # a minute for each place
@pytest.mark.parametrize("place", FAULTS)
def test_a_place_fails_by_a_fault_that_is_planted_for_it(place: str, tmp_path: Path) -> None:
    done = smoke(place, planted(tmp_path, FAULTS[place]))
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-2000:]
    assert FAULTS[place].told in done.stdout


@pytest.mark.programs
@pytest.mark.network
@pytest.mark.sample(0)
@pytest.mark.parametrize(("place", "others"), UNSEEN.items())
def test_a_fault_of_another_place_is_none_there(place: str, others: tuple[str, ...], tmp_path: Path) -> None:
    assert_passes(smoke(place, planted(tmp_path, *(FAULTS[other] for other in others))))


def smoke(place: str, modules: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the smoke of a place.

    Args:
        place: The place, as `scripts/matrix` takes it.
        modules: A folder with modules that stand in for those that are installed there.
    """
    variables = clean_variables()
    del variables["SPARK_HOME"]  # a place has its own
    if modules is not None:
        variables["PYTHONPATH"] = str(modules)
    return subprocess.run(
        ["scripts/matrix", *place.split(), "-q", *SMOKE],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def assert_passes(done: subprocess.CompletedProcess[str]) -> None:
    """What a smoke ended with that has found nothing."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(SMOKE)} passed" in done.stdout


def planted(folder: Path, *faults: Fault) -> Path:
    """A folder with copies of the packages in which mistakes are made.

    Args:
        folder: Where they are put.
        faults: The mistakes.
    """
    for fault in faults:
        kind, package, *_ = fault.file.split("/")
        if not (folder / package).exists():
            shutil.copytree(ROOT / kind / package, folder / package)
        file = folder / fault.file.partition("/")[2]
        text = file.read_text()
        assert text.count(fault.before) == 1
        file.write_text(text.replace(fault.before, fault.made))
    return folder


def _extra(name: str) -> Requirement:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["spark"]
    (found,) = [made for text in declared if (made := Requirement(text)).name == name]
    return found
