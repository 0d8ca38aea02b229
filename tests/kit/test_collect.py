"""Declared tests as items of pytest."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
import yaml  # noqa: F401 (pytester forgets what is imported inside; PyYAML's parser can't be imported twice)

import gem_bundle.testing.declared.run  # noqa: F401 (nor would it be quick)
from gem_bundle.testing.declared.files import declared_beside, find_test_files, is_test_file

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytest_plugins = "pytester"

PIPELINE = """
    pipeline: orders
    sources:
      orders: {gem: file, options: {format: json, path: in, schema: "shop string, amount int"}}
    transforms:
      large: {gem: filter, input: orders, options: {condition: amount > 10}}
    targets:
      table: {gem: file, input: large, options: {format: json, path: out}}
"""
TESTS = """
    tests:
      small orders are left out:
        steps:
          - add: {orders: [{shop: Oslo, amount: 10}, {shop: Voss, amount: 11}]}
            expect: {table: [{shop: Voss, amount: 11}]}
      large orders come through:
        steps:
          - add: {orders: [{shop: Oslo, amount: 12}]}
            expect: {table: [{shop: Oslo, amount: 13}]}
"""
# The session of this process, as a project's own fixture gives it.
CONFTEST = """
    import pytest

    @pytest.fixture(scope="session")
    def spark():
        from pyspark.sql import SparkSession
        return SparkSession.active()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a pipeline, its tests, and the plugin as its entry point would load it."""
    files = {
        "orders.yaml": PIPELINE,
        "orders.test.yaml": TESTS,
        "conftest.py": CONFTEST,
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (pytester.path / name).write_text(dedent(text))
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    manager = project.parseconfig().pluginmanager
    plugin = [] if manager.hasplugin("gem_bundle") else ["-p", "gem_bundle.testing.plugin"]
    return project.runpytest_inprocess(*plugin, *arguments)


def test_tests_are_collected_with_their_file_and_line(project: pytest.Pytester) -> None:
    result = run(project, "--collect-only", "-q")

    result.stdout.fnmatch_lines(
        [
            "orders.test.yaml::3: small orders are left out",
            "orders.test.yaml::7: large orders come through",
            "2 tests collected*",
        ]
    )


def test_tests_are_chosen_by_name_and_by_id(project: pytest.Pytester) -> None:
    by_name = run(project, "--collect-only", "-q", "-k", "small")
    by_id = run(project, "--collect-only", "-q", "orders.test.yaml::7: large orders come through")

    by_name.stdout.fnmatch_lines(["orders.test.yaml::3: small*", "1/2 tests collected*"])
    by_id.stdout.fnmatch_lines(["orders.test.yaml::7: large*", "1 test collected*"])


def test_a_file_with_errors_is_an_error_of_the_collection(project: pytest.Pytester) -> None:
    (project.path / "orders.test.yaml").write_text("tests:\n  a: {stepps: []}\n  b: 5\n")

    result = run(project)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["orders.test.yaml:2:7: error*", "*Did you mean `steps`?", "orders.test.yaml:3:*: error*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_files_that_are_no_tests_are_left_alone(project: pytest.Pytester) -> None:
    (project.path / "orders.test.yaml").rename(project.path / "orders.tests.yaml")

    result = run(project, "--collect-only")

    result.stdout.fnmatch_lines(["*no tests collected*"])


def test_a_pipeline_with_errors_fails_without_a_session(project: pytest.Pytester) -> None:
    (project.path / "orders.yaml").write_text(dedent(PIPELINE).replace("input: orders", "input: oders"))
    (project.path / "conftest.py").unlink()

    result = run(project, "-k", "small")

    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["orders.test.yaml:3:3: small orders are left out", "*error[[]GB101[]]*`oders`*"]
    )


@pytest.mark.spark
def test_tests_pass_and_fail_with_what_differs(project: pytest.Pytester, spark: SparkSession) -> None:
    result = run(project, "-v")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "orders.test.yaml::3: small orders are left out PASSED*",
            "orders.test.yaml::7: large orders come through FAILED*",
            "orders.test.yaml:7:3: large orders come through",
            "step 1 (orders.test.yaml:9:*",
            "  target `table`: 1 row differs",
            "    ~ {shop: Oslo}",
            "          amount  expected 13, got 12",
            "FAILED orders.test.yaml::7: large orders come through*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.spark
def test_junit_xml_names_file_and_line(project: pytest.Pytester, spark: SparkSession) -> None:
    result = run(project, "--junit-xml=report.xml", "-o", "junit_family=xunit1", "-k", "small")

    result.assert_outcomes(passed=1, deselected=1)
    report = (project.path / "report.xml").read_text()
    assert 'name="3: small orders are left out" file="orders.test.yaml" line="2"' in report


def test_what_fails_otherwise_is_shown_as_pytest_shows_it(project: pytest.Pytester) -> None:
    (project.path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture(scope='session')\ndef spark():\n    raise OSError('no Spark here')\n"
    )

    result = run(project, "-k", "small")

    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*OSError: no Spark here"])


@pytest.mark.programs
def test_the_plugin_costs_a_run_of_other_tests_next_to_nothing() -> None:
    code = "import sys, gem_bundle.testing.plugin; print(sorted({'pyspark', 'pydantic', 'yaml', 'click'} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_test_files_are_found_below_a_folder(tmp_path: Path) -> None:
    for name in (
        *("b/y.test.yml", "b/x.test.yaml", "a.test.yaml", "a.yaml", ".test.yaml", "test.yaml"),
        *(".git/z.test.yaml", "venv/pyvenv.cfg", "venv/lib/z.test.yaml", "node_modules/z.test.yaml"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = [path.removeprefix(f"{tmp_path}/") for path in find_test_files(tmp_path)]

    assert found == ["a.test.yaml", "b/x.test.yaml", "b/y.test.yml"]
    assert is_test_file("x/a.test.yaml")
    assert not is_test_file("x/.test.yaml")
    assert declared_beside(tmp_path / "a.yaml") == str(tmp_path / "a.test.yaml")
    assert declared_beside(tmp_path / "b" / "y.yaml") == str(tmp_path / "b" / "y.test.yml")
    assert declared_beside(tmp_path / "b" / "z.yaml") is None
