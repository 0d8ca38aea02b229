"""The pytest plugin as a user meets it: light, and with fixtures that tests of pipelines are written with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytest_plugins = ["pytester"]

PIPELINE = """
pipeline: small
sources:
  numbers: {gem: file, options: {format: json, path: numbers, schema: n int}}
transforms:
  even: {gem: filter, input: numbers, options: {condition: n % 2 = 0}}
targets:
  out: {gem: delta, input: even, options: {path: out}}
"""
TESTS = """
    from gem_bundle.testing import AddRows, CheckRows

    def test_even_numbers_pass(gem_bundle_steps, gem_bundle_spark):
        steps = [AddRows("numbers", [{"n": 1}, {"n": 2}]), CheckRows("out", [{"n": 2}])]
        assert gem_bundle_steps("small.yaml", steps).ok
        assert gem_bundle_spark.range(2).count() == 2

    def test_odd_numbers_pass(gem_bundle_steps):
        gem_bundle_steps("small.yaml", [AddRows("numbers", [{"n": 1}]), CheckRows("out", [{"n": 1}])])
"""
PLUGIN = "gem_bundle.testing.plugin"


@pytest.mark.programs
def test_importing_the_plugin_costs_nothing() -> None:
    heavy = ("pyspark", "pydantic", "yaml", "sqlglot", "rich", "ruamel")
    probe = f"import sys, {PLUGIN}; print([m for m in {heavy!r} if m in sys.modules])"

    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"


def test_every_public_name_is_there() -> None:
    from gem_bundle import testing

    assert testing.__all__ == sorted(testing.__all__)
    assert all(getattr(testing, name).__name__ == name for name in testing.__all__)
    assert set(testing.__all__) <= set(dir(testing))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        testing.nothing  # noqa: B018


@pytest.mark.spark
@pytest.mark.usefixtures("spark")  # which is in this process, so the inner run takes it
def test_the_fixtures_run_steps_in_the_session_that_is_there(pytester: pytest.Pytester) -> None:
    (pytester.path / "small.yaml").write_text(PIPELINE)
    pytester.makepyfile(dedent(TESTS))

    result = pytester.runpytest_inprocess(*arguments())

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*StepsFailed: step 2 of 2 went wrong", "*--> 2. CheckRows('out', rows=[[]{'n': 1}])", "*:8):"]
    )
    assert "def run_steps" not in result.stdout.str()


@pytest.mark.spark
def test_a_fixture_of_the_user_gives_the_session(
    pytester: pytest.Pytester, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("spark")
    (pytester.path / "small.yaml").write_text(PIPELINE)
    pytester.makeconftest("""
        import pytest

        @pytest.fixture(scope="session")
        def spark():
            from pyspark.sql import SparkSession

            session = SparkSession.active().newSession()
            session.conf.set("spark.my.mark", "mine")
            return session
    """)
    pytester.makepyfile("""
        def test_it_is_mine(gem_bundle_spark):
            assert gem_bundle_spark.conf.get("spark.my.mark") == "mine"
    """)

    pytester.runpytest_inprocess(*arguments()).assert_outcomes(passed=1)


def arguments() -> list[str]:
    """The plugin is loaded by name where its entry point isn't installed yet."""
    from importlib.metadata import entry_points

    installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    return ["-p", "no:cacheprovider"] if installed else ["-p", PLUGIN, "-p", "no:cacheprovider"]


def test_the_plugin_lies_where_its_entry_point_says() -> None:
    assert (Path(__file__).parents[2] / "core" / Path(*PLUGIN.split("."))).with_suffix(".py").is_file()
