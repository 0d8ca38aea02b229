"""Coordinates, and where jars and Spark are looked for; resolving itself is in test_ivy.py."""

import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from gem_bundle.errors import GemError
from gem_bundle.run.jars import cache_folder, fill, resolve, spark_home, spark_version


def test_nothing_is_asked_for_nothing() -> None:
    assert resolve([], overrides={}, cache=Path("/nowhere")) == []


@pytest.mark.parametrize(
    "coordinate", ["", "a:b", "a:b:c:d", "a:b:[1,2)", "a:b:1.+", "a b:c:1", "a:b:{kafka}"]
)
def test_only_one_exact_version_is_a_coordinate(coordinate: str) -> None:
    with pytest.raises(GemError) as caught:
        resolve([coordinate], overrides={})
    error = caught.value
    assert error.code == "GB502"
    assert error.message == f"`{coordinate}` is not a Maven coordinate"
    assert "{spark_minor}" in error.hint


@pytest.mark.parametrize(
    ("coordinate", "version", "filled"),
    [
        ("g:a_{scala}:{spark}", "4.2.0", "g:a_2.13:4.2.0"),
        ("io.delta:delta-spark_{spark_minor}_{scala}:4.4.0", "4.1.1", "io.delta:delta-spark_4.1_2.13:4.4.0"),
        ("g:a:1.0", "4.2.0", "g:a:1.0"),
    ],
)
def test_placeholders_are_filled(coordinate: str, version: str, filled: str) -> None:
    assert fill(coordinate, spark_version=version) == filled


def test_the_version_of_hadoop_is_that_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(GemError, match="brings no Hadoop") as caught:
        fill("g:a:{hadoop}", spark_version="4.2.0")
    assert caught.value.code == "GB509"
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-client-api-3.5.0.jar").touch()
    assert fill("g:a:{hadoop}", spark_version="4.2.0") == "g:a:3.5.0"


def test_an_unknown_placeholder_is_no_coordinate() -> None:
    with pytest.raises(GemError, match=r"`g:a:\{flink\}` is not a Maven coordinate"):
        fill("g:a:{flink}", spark_version="4.2.0")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"GEM_BUNDLE_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/gem-bundle")),
        ({}, Path.home() / ".cache" / "gem-bundle"),
    ],
)
def test_where_the_cache_is(environment: Mapping[str, str], folder: Path) -> None:
    assert cache_folder(environment) == folder


def test_spark_home_is_that_of_pyspark_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert (spark_home() / "jars" / f"spark-core_2.13-{spark_version()}.jar").is_file()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert spark_home() == tmp_path


def test_a_spark_without_ivy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(GemError, match="has no Ivy") as caught:
        resolve(["g:a:1.0"], overrides={}, cache=tmp_path)
    assert caught.value.code == "GB509"


def test_without_pyspark_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    # A Spark that pip didn't install is one too.
    assert re.fullmatch(r"4\.\d+\.\d+", spark_version())
    monkeypatch.setitem(sys.modules, "pyspark.version", None)
    with pytest.raises(GemError, match="needs pyspark, which isn't installed") as caught:
        spark_version()
    assert (caught.value.code, caught.value.hint) == (
        "GB509",
        "Install it with `pip install 'gem-bundle[spark]'`.",
    )
