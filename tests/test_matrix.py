"""A place of the matrix is what it is called: the other tests there show what works in it."""

import os
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


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


def _extra(name: str) -> Requirement:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]["spark"]
    (found,) = [made for text in declared if (made := Requirement(text)).name == name]
    return found
