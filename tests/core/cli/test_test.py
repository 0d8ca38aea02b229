"""`gem-bundle test`: what it runs, what it prints, and its exit status."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from gem_bundle.cli import test as command_module

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.core.cli.conftest import Cli

ORDERS = """
    pipeline: orders
    sources:
      orders: {gem: file, options: {format: json, path: in, schema: "shop string, at timestamp, amount int"}}
    transforms:
      timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
      hours:
        gem: aggregate
        input: timely
        options:
          window: {column: at, duration: 1 hour}
          group_by: [shop]
          aggregates: {orders: count(*), sales: sum(amount)}
      rows: {gem: select, input: hours, options: {columns: {hour: window.start, shop: shop, orders: orders, sales: sales}}}
    targets:
      table: {gem: file, input: rows, options: {format: json, path: out}}
"""
# These need no session: the pipeline can't start, and that is what they expect, or not.
BROKEN = ORDERS.replace("input: timely", "input: timly")
TESTS = """
    tests:
      a node is misspelt:
        fails: GB101
      nothing is wrong:
        fails: GB102
      the Node is misspelt again:
        fails: {code: GB101, message: timly}
    """


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a pipeline and three tests, of which the second one fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(dedent(BROKEN))
    (tmp_path / "orders.test.yaml").write_text(dedent(TESTS))
    return tmp_path


def without_times(text: str) -> list[str]:
    return re.sub(r"\d+\.\d s", "0.1 s", text).splitlines()


def test_a_line_for_each_test_and_all_that_is_known_of_one_that_fails(project: Path, cli: Cli) -> None:
    result = cli("test")

    assert result.exit_code == 1
    lines = without_times(result.stdout)
    assert lines[:2] == [
        "orders.test.yaml:3: a node is misspelt: ok (0.1 s)",
        "orders.test.yaml:5: nothing is wrong: FAILED (0.1 s)",
    ]
    assert lines[-2:] == [
        "orders.test.yaml:7: the Node is misspelt again: ok (0.1 s)",
        "1 failed, 2 passed in 0.1 s",
    ]
    assert any("it was to fail with GB102, and failed with GB101" in line for line in lines)
    assert result.stderr == ""


def test_all_pass(project: Path, cli: Cli) -> None:
    result = cli("test", "-k", "misspelt")

    assert result.exit_code == 0
    assert without_times(result.stdout)[-1] == "2 passed in 0.1 s"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["node again"], [7]),
        (["NODE", "nothing"], [3, 5, 7]),
        (["orders.test nothing"], [5]),
        (["a node is"], [3, 7]),
    ],
)
def test_tests_are_chosen_by_words(project: Path, cli: Cli, words: list[str], lines: list[int]) -> None:
    result = cli("test", *(part for word in words for part in ("-k", word)))

    assert re.findall(r"^orders\.test\.yaml:(\d+): ", result.stdout, re.MULTILINE) == [str(n) for n in lines]


def test_x_stops_after_the_first_failure(project: Path, cli: Cli) -> None:
    result = cli("test", "-x")

    assert result.exit_code == 1
    assert without_times(result.stdout)[-1] == "1 failed, 1 passed, 1 not run in 0.1 s"


def test_quiet_shows_only_what_fails(project: Path, cli: Cli) -> None:
    failing, passing = cli("test", "-q"), cli("test", "-q", "-k", "misspelt")

    assert failing.stdout.startswith("orders.test.yaml:5: nothing is wrong: FAILED")
    assert "passed" not in failing.stdout
    assert (passing.exit_code, passing.output) == (0, "")


@pytest.mark.parametrize("name", ["orders.test.yaml", "orders.yaml", ".", "sub/.."])
def test_tests_are_named_by_file_folder_or_pipeline(project: Path, cli: Cli, name: str) -> None:
    (project / "sub").mkdir()

    result = cli("test", name, *(["orders.test.yaml"] if name == "orders.yaml" else []))

    assert re.search(r"^1 failed, 2 passed", result.stdout, re.MULTILINE)


def test_a_file_with_errors_fails_the_run_and_the_others_go_on(project: Path, cli: Cli) -> None:
    (project / "a.test.yaml").write_text("tests:\n  one: {stepps: []}\n")

    result = cli("test", "-k", "misspelt")

    assert result.exit_code == 1
    assert "a.test.yaml:2:9: error[GB004]: `one`: unknown key `stepps`" in result.stderr
    assert without_times(result.stdout)[-1] == "2 passed, 1 file with errors in 0.1 s"


def test_junit_xml(project: Path, cli: Cli) -> None:
    (project / "a.yaml").touch()
    (project / "a.test.yaml").write_text("tests:\n  one: {stepps: []}\n")

    result = cli("test", "--junit-xml", "report.xml")

    assert result.exit_code == 1
    root = ET.parse(project / "report.xml").getroot()
    assert root.attrib == {"name": "gem-bundle test", "tests": "4", "failures": "1", "errors": "1"}
    broken = root.find("testsuite[@name='a.test.yaml']/testcase/error")
    assert broken is not None
    assert "unknown key `stepps`" in broken.attrib["message"]
    cases = root.findall("testsuite[@name='orders.test.yaml']/testcase")
    assert [(case.get("file"), case.get("line"), case.get("name")) for case in cases] == [
        ("orders.test.yaml", "3", "a node is misspelt"),
        ("orders.test.yaml", "5", "nothing is wrong"),
        ("orders.test.yaml", "7", "the Node is misspelt again"),
    ]
    (failure,) = root.iter("failure")
    assert failure.attrib["message"].startswith("it was to fail with GB102")
    assert "it was to fail with GB102" in (failure.text or "")


def test_what_xml_cant_hold_is_replaced(project: Path, cli: Cli) -> None:
    (project / "orders.test.yaml").write_text('tests: {"a\\x01\\uFFFE": {fails: GB102}}\n')

    cli("test", "--junit-xml", "report.xml")

    (case,) = ET.parse(project / "report.xml").getroot().iter("testcase")
    assert case.get("name") == "a??"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "There is no test file"),
        (["empty"], "There is no test file in `empty` or below: their names end in `.test.yaml`."),
        (
            ["other.yaml"],
            "`other.yaml` has no test file beside it. `gem-bundle test --create other.yaml NODE`",
        ),
        (["-k", "no such words"], "No test has all the words of `no such words` in its name."),
        (["--junit-xml", "nowhere/report.xml"], "The folder of `nowhere/report.xml` doesn't exist."),
        (["-p", "a=1"], "`-p` is for `--create`"),
        (["--profile", "dev"], "`--profile` is for `--create`"),
        (["--create", "orders.yaml"], "Option '--create' requires 2 arguments."),
        (["--create", "orders.yaml", "table", "-x"], "`-x` doesn't go with `--create`."),
        (["--create", "orders.yaml", "table", "--update"], "`--update` doesn't go with `--create`."),
        (["orders.test.yaml", "--create", "orders.yaml", "table"], "`FILE` doesn't go with `--create`."),
        (["--rows", "0"], "0 is not in the range"),
    ],
)
def test_a_wrong_use_ends_with_status_2(project: Path, cli: Cli, arguments: list[str], said: str) -> None:
    (project / "empty").mkdir()
    (project / "other.yaml").touch()

    result = cli("test", *arguments) if arguments != ["nowhere"] else cli("test", "empty", *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_a_file_that_isnt_there_is_an_error(project: Path, cli: Cli) -> None:
    result = cli("test", "order.test.yaml")

    assert result.exit_code == 1
    assert "order.test.yaml: error[GB001]: the file can't be read: No such file or directory" in result.stderr
    assert "Did you mean `orders.test.yaml`?" in result.stderr


def test_update_leaves_failures_to_a_person(project: Path, cli: Cli) -> None:
    before = (project / "orders.test.yaml").read_bytes()

    result = cli("test", "--update")

    assert result.exit_code == 1
    assert (project / "orders.test.yaml").read_bytes() == before


def test_a_terminal_shows_what_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with pytest.raises(SystemExit):
        command_module.command.main(["-k", "misspelt", "-k", "nothing"], prog_name="gem-bundle test")

    first, *_, last, after = re.findall("[^\r]+", terminal.getvalue())
    assert first == "[1/3] orders.test.yaml: a node is misspelt …"
    assert last == "[3/3] orders.test.yaml: the Node is misspelt again …"
    assert after == " " * len(last)
    assert terminal.getvalue().endswith("\r")


@pytest.mark.programs
def test_help_imports_nothing_that_costs_and_has_examples() -> None:
    code = (
        "import sys\n"
        "from gem_bundle.cli import main\n"
        "try:\n    main(['test', '--help'], prog_name='gem-bundle')\n"
        "except SystemExit:\n    print(sorted({'pyspark', 'pydantic', 'yaml', 'rich'} & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"
    assert "gem-bundle test orders.test.yaml -k late -x" in done.stdout


# With a session

REAL = """
    # Orders by shop and hour.
    tests:
      an hour is over:
        steps:
          - add:
              orders:
                - {shop: Oslo, at: "2026-01-05 09:05:00", amount: 10}
                - {shop: Oslo, at: "2026-01-05 09:55:00", amount: 20}
            expect: {table: []}
          - add: {orders: [{shop: Voss, at: "2026-01-05 11:00:00", amount: 1}]}
            expect:
              table:
                # with the fee
                - {hour: "2026-01-05 09:00:00", shop: Oslo, orders: 2, sales: 31}  # of 30
          - add: {orders: [{shop: Voss, at: "2026-01-05 13:00:00", amount: 1}]}
            expect: {table: []}
    """


@pytest.mark.spark
def test_update_makes_a_test_expect_what_comes(project: Path, cli: Cli, spark: SparkSession) -> None:
    (project / "orders.yaml").write_text(dedent(ORDERS))
    (project / "orders.test.yaml").write_text(dedent(REAL))

    failing = cli("test")
    assert failing.exit_code == 1
    assert without_times(failing.stdout)[1:6] == [
        "    step 2 (orders.test.yaml:11:9):",
        "      target `table`: 1 row differs",
        '        ~ {hour: "2026-01-05 09:00:00", shop: Oslo, orders: 2}',
        "              sales  expected 31, got 30",
        "      watermark of `table`: 2026-01-05 10:50:00",
    ]

    updated = cli("test", "--update")
    assert updated.exit_code == 0
    assert updated.stdout.splitlines()[-1] == "orders.test.yaml: 2 expectations updated"
    voss = '[{hour: "2026-01-05 11:00:00", shop: Voss, orders: 1, sales: 1}]'
    before, _, after = dedent(REAL).replace("sales: 31}", "sales: 30}").rpartition("[]")
    assert (project / "orders.test.yaml").read_text() == before + voss + after

    assert cli("test").exit_code == 0
    assert not (project / "out").exists()
    assert not (project / "checkpoints").exists()
