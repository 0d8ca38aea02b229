"""The conformance suite's own rules: what a class gets, and how a test is waived."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Column, Facts, SourceSemantics
from gem_bundle.testing import plugin
from gem_bundle.testing.conformance import SourceConformance, TargetConformance, TransformConformance, streams
from gem_bundle.testing.conformance.outside import kept_inside, kept_short
from gem_bundle.testing.conformance.reading import OwnCode
from gem_bundle.testing.conformance.streams import difference
from gem_bundle.testing.conformance.verdict import refusals
from gem_filter.filter import Filter
from tests.kit.wrong.right import Drawer, Filing, Flag, FolderOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gem_bundle.testing.conformance import GemConformance

KINDS = [SourceConformance, TransformConformance, TargetConformance]


def names_of_tests(suite: type[GemConformance]) -> set[str]:
    return {name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))}


def derived(base: type[GemConformance], **said: Any) -> type[GemConformance]:
    return type("TestDerived", (base,), said)


@pytest.mark.parametrize(("base", "gem"), [*zip(KINDS, (Drawer, Flag, Filing), strict=True)])
def test_a_class_gets_twenty_to_thirty_five_tests(base: type[GemConformance], gem: type[Any]) -> None:
    assert 20 <= len(names_of_tests(derived(base, gem=gem))) <= 35


@pytest.mark.parametrize("base", KINDS)
def test_every_test_says_what_it_is_for(base: type[GemConformance]) -> None:
    for name in names_of_tests(base):
        text = (getattr(base, name).__doc__ or "").strip()
        assert text.endswith("."), name


def test_a_test_that_says_nothing_of_the_gem_is_not_collected() -> None:
    class Restless(Drawer):
        """Make rows while the query runs."""

        semantics = SourceSemantics(batch=False, backlog=False, replayable=False, condition="Never.")

    with_all = names_of_tests(derived(SourceConformance, gem=Drawer))
    left_out = with_all - names_of_tests(derived(SourceConformance, gem=Restless))
    assert left_out >= {"test_reads_a_batch", "test_reads_on_after_a_restart", "test_replays_the_same_rows"}


def test_a_class_derived_from_another_gets_what_its_own_gem_needs() -> None:
    class Silent(Drawer):
        """Say nothing about old rows."""

        semantics = SourceSemantics(batch=False)

    first = derived(SourceConformance, gem=Silent)
    assert "test_reads_a_batch" not in names_of_tests(first)
    assert "test_reads_a_batch" in names_of_tests(derived(first, gem=Drawer))


def test_a_gem_that_can_not_be_made_is_told_so_by_a_test() -> None:
    suite: Any = derived(SourceConformance, gem=Drawer, options={"folder": 5})
    assert names_of_tests(suite) == names_of_tests(SourceConformance)
    with pytest.raises(pytest.fail.Exception, match=r"the sample options .* are refused: folder"):
        suite().test_example_and_sample_are_valid()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"waive": {"test_is_registered": ""}}, "`test_is_registered` needs a reason"),
        ({"waive": {"test_is_registered": "later"}}, "needs a reason, in a sentence"),
        ({"waive": {"test_is_regstered": "it is new here"}}, "`test_is_regstered`, which is no test of"),
        ({"waive": {"test_runs_continuously": "it can't"}}, "`test_runs_continuously`, which is no test of"),
        ({"test_is_registered": lambda self: None}, "replaces `test_is_registered` of the suite; waive it"),
    ],
)
def test_mistakes_in_a_class_are_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        derived(SourceConformance, gem=Drawer, **said)


def test_rows_of_columns_that_are_not_there_are_not_expected() -> None:
    suite: Any = derived(TransformConformance, gem=Flag, expected=[{"id": 1, "gone": None}])
    with pytest.raises(pytest.fail.Exception, match="`expected` has columns that don't come out: `gone`"):
        suite()._expect([{"id": 1, "flag": False}], "of a batch")


class Newest(Drawer):
    """Read what comes, where no token opens what is there."""

    def __init__(self, options: FolderOptions) -> None:
        super().__init__(options)
        if options.token is None:
            self.semantics = SourceSemantics(only_new="token")


def test_tests_are_chosen_by_what_provide_gives_too(tmp_path: Path) -> None:
    suite: Any = derived(SourceConformance, gem=Newest, provide=lambda self: {"folder": ".", **self.more})
    made = suite()
    made.folder = tmp_path
    made.more = {}
    assert made.live().semantics.only_new == "token"
    other = suite()
    other.folder = tmp_path
    other.more = {"token": "open"}
    with pytest.raises(
        pytest.fail.Exception, match=r"\(`test_the_first_run_passes_over_what_is_there`\): let"
    ):
        other.live()


class Hasty(Drawer):
    """Read rows, and say something of some other options."""

    def change(self, option: str, before: Any) -> Any:
        return {"token": "continues"}[option]


def test_what_a_gem_says_of_its_options_has_to_be_an_answer(tmp_path: Path) -> None:
    suite: Any = derived(SourceConformance, gem=Hasty, by_default=["flag"])
    made = suite()
    made.folder = tmp_path
    with pytest.raises(pytest.fail.Exception) as failed:
        made.test_says_what_its_options_mean()
    assert "`change` fails for `folder`: KeyError: 'folder'" in str(failed.value)
    assert "`change` gives 'continues' for `token`; give an `OptionChange`, or None" in str(failed.value)
    assert "`by_default` names `flag`, which is no option" in str(failed.value)


SUITE = """
from gem_bundle.testing import TransformConformance
from tests.kit.wrong.right import Flag

class TestFlag(TransformConformance):
    gem = Flag
    waive = {
        "test_is_registered": "no plugin registers it",
        "test_option_names_are_snake_case": "this is not wrong at all",
    }
"""


@pytest.mark.programs
def test_a_waiver_shows_in_the_report_and_has_to_go_when_it_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "test_flag.py").write_text(SUITE, encoding="utf-8")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "--strict-markers",
                "-m",
                "not spark",
            ),
            *_plugin(),
            *("--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    shown = done.stdout.partition("waived conformance tests")[2]
    assert "test_flag.py::TestFlag::test_is_registered: no plugin registers it" in shown
    assert "[XPASS(strict)] waived: this is not wrong at all" in done.stdout
    told = done.stdout.partition("told by the conformance suite")[2]
    assert "nothing says what another value of `name` does to a pipeline that runs" in told
    assert "1 failed" in done.stdout
    assert "1 xfailed" in done.stdout


def _plugin() -> list[str]:
    """The plugin by its name, where its entry point isn't installed yet."""
    from importlib.metadata import entry_points

    installed = {point.value for point in entry_points(group="pytest11")}
    return [] if plugin.__name__ in installed else ["-p", plugin.__name__]


def test_what_a_gem_does_outside_is_seen(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with kept_inside() as uses:
        (tmp_path / "file").read_text()
        list(tmp_path.iterdir())
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", 1))
    said = " ".join(use for _, use in uses)
    assert f"opens '{tmp_path / 'file'}'" in said
    assert f"lists '{tmp_path}'" in said
    assert "connects to ('127.0.0.1', 1)" in said


@pytest.mark.parametrize(
    ("timeout", "problem"), [(None, "no timeout"), (600.0, "a timeout of 600 seconds"), (10.0, "")]
)
def test_a_preflight_that_may_wait_for_long_is_seen(timeout: float | None, problem: str) -> None:
    with kept_short() as found:
        for address in (("127.0.0.1", 1), ("localhost", 1)):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(address, timeout=timeout)
    assert set(found) == ({f"127.0.0.1:1 with {problem}"} if problem else set())
    # What isn't the preflight's doesn't count: Spark's own connection has no timeout.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", 1))
    assert not any("127.0.0.2" in each for each in found)


@pytest.mark.parametrize(
    ("found", "wanted", "more", "problem"),
    [
        ([{"a": 1, "b": 2}], [{"a": 1}], False, ""),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], True, ""),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], False, "1 rows are there again: {'a': 1}"),
        ([], [{"a": 1}], True, "1 of 1 rows are missing: {'a': 1}"),
        ([{"a": 1}, {"a": 2}], [{"a": 1}], True, "1 rows are there that nobody gave: {'a': 2}"),
        ([{"a": [1, {"k": b"x"}]}], [{"a": [1, {"k": bytearray(b"x")}]}], False, ""),
        ([{"a": ({"k": 1},)}], [{"a": [{"k": 1}]}], False, ""),
        ([], [{"a": [{"k": 1}]}], False, "1 of 1 rows are missing: {'a': [{'k': 1}]}"),
    ],
)
def test_rows_are_compared(
    found: list[dict[str, Any]], wanted: list[dict[str, Any]], more: bool, problem: str
) -> None:
    assert difference(found, wanted, more=more) == problem


@pytest.mark.spark
def test_a_micro_batch_that_ends_while_rows_are_taken_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = tmp_path / "checkpoint" / "commits"

    def committed() -> list[int]:
        return sorted(int(file.name) for file in commits.glob("[0-9]*"))

    take = streams._Taking.take_ended

    def take_slowly(taking: Any) -> streams.Batches:
        found = take(taking)
        while spark.streams.active and len(committed()) == len(found):
            time.sleep(0.02)
        return found

    monkeypatch.setattr(streams._Taking, "take_ended", take_slowly)
    stream = spark.readStream.name("ticks").format("rate-micro-batch").option("rowsPerBatch", 2).load()
    batches = streams.running(stream, tmp_path / "checkpoint", bool, lambda: None)

    assert [number for number, _ in batches] == committed()


def test_a_gem_is_read_with_what_it_is_made_of() -> None:
    code = OwnCode.of(Filter)
    assert code.package == "gem_filter"
    assert {file.name for file in code.files} == {"filter.py"}
    assert "condition" in code.names
    assert not any("limit" in file.name for file in code.files)


def test_what_a_validator_reads_is_not_used() -> None:
    from gem_bundle.testing.conformance import reading

    text = """
    class O:
        @model_validator(mode="after")
        def _check(self):
            return self.checked
        def used(self):
            return self.used_here
    """
    names = {n.attr for n in reading._walk(ast.parse(textwrap.dedent(text))) if isinstance(n, ast.Attribute)}
    assert names == {"used_here"}


def test_the_verdict_is_that_of_a_check() -> None:
    stream = Facts(streaming=True, columns=(Column("id", "bigint"),))
    assert refusals(stream, "append") == []
    (refused,) = refusals(stream, "complete")
    assert "`complete` writes the whole result again" in refused
