"""What CONTRIBUTING.md tells to do for a gem, a diagnostic, a command and a page, done in a copy of the project.

Each step is what the page says in so many words. With all of them the project's own tests pass, and where one is
left out, the test that the page promises fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.programs

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
SUITES: Final = "tests/kit/conformance/test_targets.py"
CHECKER: Final = "core/gem_bundle/check/checker.py"
# It draws for longer than all other tests here take; with `--long` it is asked.
DRAWN: Final = "tests/differential/test_generator.py::test_every_gem_is_drawn_or_it_is_said_why_not"
RULES: Final = "gem_bundle.check.stages.untitled"
SETUP: Final = """
import json, runpy, setuptools
setuptools.setup = lambda **given: print(json.dumps(given["entry_points"]))
runpy.run_path("setup.py")
"""
COPIED: Final = ("core", "gems", "bundles", "tests", "docs", "examples", "scripts")


@dataclass(frozen=True)
class Step:
    """One step.

    Args:
        says: What the page says.
        do: Does it in a copy.
        asked_by: The test that fails without it; none for what everything else stands on.
    """

    says: str
    do: Callable[[Path], None]
    asked_by: str = ""


def write(place: str, text: str) -> Callable[[Path], None]:
    """A new file."""

    def do(copy: Path) -> None:
        (copy / place).parent.mkdir(exist_ok=True)
        (copy / place).write_text(text, encoding="utf-8")

    return do


def both(*steps: Callable[[Path], None]) -> Callable[[Path], None]:
    """One after the other."""

    def do(copy: Path) -> None:
        for step in steps:
            step(copy)

    return do


def put(place: str, text: str, before: str) -> Callable[[Path], None]:
    """A text before each place of another in a file."""

    def do(copy: Path) -> None:
        there = (copy / place).read_text(encoding="utf-8")
        assert before in there, f"{place} hasn't got {before!r} any more"
        (copy / place).write_text(there.replace(before, text + before), encoding="utf-8")

    return do


def reference(copy: Path) -> None:
    """What `scripts/docs` writes first."""
    done = run(copy, "-m", "gem_bundle.reference", "docs/reference", "--distribution", "gem-bundle")
    assert done.returncode == 0, done.stderr


FAMILY = '''"""Greetings."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("target", "greeting", "gem_greeting.target:GreetingTarget")
'''
GEM = '''"""The target `greeting`: throws rows away, and is polite about it."""

from typing import TYPE_CHECKING

from gem_bundle import Field, Options, Target, TargetSemantics, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class GreetingOptions(Options):
    """Options of the target `greeting`."""

    word: str = Field("Hello", description="What is said.", change="continues")


class GreetingTarget(Target[GreetingOptions]):
    """Throw rows away, and be polite about it."""

    semantics = TargetSemantics(delivery="none", condition="It keeps nothing.")
    example = {"word": "Hello"}

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Take the rows."""
        df.write.format("noop").mode("append").save()
'''
SUITE = """class TestGreeting(TargetConformance):
    gem = GreetingTarget


"""
RULE = '''"""Sources have a name."""

from collections.abc import Iterator

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.plan import Plan


def check_untitled(plan: Plan) -> Iterator[Diagnostic]:
    """Say of sources that they have no name of their own."""
    for node in plan.definition.of_kind("source"):
        if node.id == "untitled":
            place = plan.definition.locator.place(node.path, key=True)
            yield Diagnostic(
                "GB111", "note", "the source has no name", node.id, node.path, place, "Give it one."
            )
'''
CODE = '''    note(
        "GB111",
        "a source without a name",
        why="""
            A source is known by its name for as long as there is a checkpoint: `untitled` says nothing of it.
        """,
        breaks="""
            sources:
              untitled: {gem: rate}
            targets:
              screen: {gem: console, input: untitled}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
        """,
    ),
'''
WORDS = '''"""The words of a rule."""

from tests.core.checking import check


def test_a_source_is_to_have_a_name() -> None:
    text = "pipeline: p\\nsources: {untitled: {gem: rate}}\\ntargets: {t: {gem: noop, input: untitled}}\\n"
    (found,) = [d for d in check(text).diagnostics if d.code == "GB111"]
    assert (found.message, found.line, found.column) == ("the source has no name", 2, 11)
'''
COMMAND = '''"""`gem-bundle greet`: say hello."""

import click


@click.command("greet", short_help="Say hello.", epilog="Example: gem-bundle greet Ada")
@click.argument("name")
def command(name: str) -> None:
    """Say hello to somebody."""
    click.echo(f"Hello, {name}.")
'''
TEST_OF_COMMAND = '''"""`gem-bundle greet`."""

from tests.core.cli.conftest import Cli


def test_it_says_hello(cli: Cli) -> None:
    assert cli("greet", "Ada").stdout == "Hello, Ada.\\n"
'''
WRITTEN = """# Greetings

<!-- file: hello.yaml -->
```yaml
pipeline: hello
sources: {ticks: {gem: rate}}
targets: {out: {gem: greeting, input: ticks}}
```

```console
$ gem-bundle check hello.yaml
hello.yaml: ok (2 nodes)
$ gem-bundle greet Ada
Hello, Ada.
```
"""

STEPS: Final = (
    Step("A new family is a package of the same shape", write("gems/gem_greeting/__init__.py", FAMILY)),
    Step("come options, class, helpers, in this order", write("gems/gem_greeting/target.py", GEM)),
    Step(
        "the lists of families in `pyproject.toml` want its name, and a test says so",
        put("pyproject.toml", '    "gem_greeting",\n', before='    "gem_jdbc",\n'),
        "tests/test_imports.py::test_the_import_contracts_know_every_gem_family",
    ),
    Step(
        "`tests/kit/conformance` gives it a class",
        both(
            put(SUITES, "from gem_greeting.target import GreetingTarget\n", before="from gem_jdbc.target"),
            put(SUITES, SUITE, before="class TestMemory("),
        ),
        "tests/kit/conformance/test_registry.py::test_every_gem_is_in_the_suite[target-greeting]",
    ),
    Step(
        "or say in `UNDRAWN` why that can't be",
        put(
            "tests/differential/generator.py",
            '    ("target", "greeting"): "nobody greets at random",\n',
            before='}\n"""The gems that no pipeline is drawn with',
        ),
        DRAWN,
    ),
    Step(
        "Its code goes into the module of its subject in `core/gem_bundle/codes`",
        put("core/gem_bundle/codes/graph.py", CODE, before=")\n"),
        "tests/core/test_codes.py::test_every_code_in_the_sources_is_in_the_catalogue",
    ),
    Step(
        "The rule goes where its stage is, below `core/gem_bundle/check`",
        both(
            write("core/gem_bundle/check/stages/untitled.py", RULE),
            put(CHECKER, f"from {RULES} import check_untitled\n", before="from gem_bundle.diagnostics"),
            put(
                CHECKER,
                "        found += check_untitled(plan)\n",
                before="        found += check_sources(plan)",
            ),
        ),
        "tests/core/test_codes.py::test_every_code_in_the_catalogue_is_used",
    ),
    Step(
        "Write one for the words",
        write("tests/core/check/test_untitled.py", WORDS),
        "tests/core/test_codes.py::test_every_code_has_a_test_beside_those_here",
    ),
    Step("A module in `core/gem_bundle/cli`", write("core/gem_bundle/cli/greet.py", COMMAND)),
    Step(
        "It is listed in `core/gem_bundle/cli/main.py` and in `tests/core/cli/test_main.py`",
        both(
            put("core/gem_bundle/cli/main.py", '    "greet",\n', before='    "new",\n    "gems",'),
            put("tests/core/cli/test_main.py", '"greet", ', before='"new", "gems", "describe",'),
        ),
    ),
    Step(
        "has its test in `tests/core/cli`",
        write("tests/core/cli/test_greet.py", TEST_OF_COMMAND),
        "tests/core/cli/test_main.py::test_every_command_has_tests[greet]",
    ),
    Step("Pages lie in `docs/`", write("docs/greetings.md", WRITTEN)),
    Step(
        "`scripts/docs` writes its page",
        reference,
        "tests/kit/test_reference.py::test_what_is_kept_is_what_is_installed",
    ),
)
SHOWN: Final = (
    "tests/core/test_codes.py::test_every_code_is_explained[GB111]",
    "tests/core/test_codes.py::test_examples_do_what_they_say[GB111-breaks]",
    "tests/core/test_codes.py::test_examples_do_what_they_say[GB111-keeps]",
    "tests/core/check/test_untitled.py",
    "tests/core/cli/test_main.py::test_the_commands",
    "tests/core/cli/test_main.py::test_a_commands_help_has_a_sentence_and_an_example[greet]",
    "tests/core/cli/test_greet.py",
    "tests/kit/test_docs_site.py::test_pages_do_what_they_say[greetings]",
)


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python's in the copy, with the copy's packages."""
    path = [copy, *(copy / root for root in ("core", "gems", "bundles"))]
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )


def install(copy: Path) -> None:
    """Let the copy be known as a distribution, with the entry points that `setup.py` finds in it."""
    # In a program of its own: setuptools warns of what was imported before it.
    done = run(copy, "-c", SETUP)
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str]] = json.loads(done.stdout)
    lines = [line for group, points in told.items() for line in (f"[{group}]", *points)]
    known = f"Metadata-Version: 2.1\nName: gem-bundle\nVersion: {metadata.version('gem-bundle')}\n"
    write("gem_bundle-0.dist-info/METADATA", known)(copy)
    write("gem_bundle-0.dist-info/entry_points.txt", "\n".join(lines))(copy)


def walked(copy: Path, *, without: Step | None = None) -> None:
    """Make the copy, and do in it what the page says."""
    # This file names what is made here, and a code that a test names has a test.
    ignored = shutil.ignore_patterns("__pycache__", Path(__file__).name)
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for pattern in ("*.toml", "*.py", "*.md"):
        for file in ROOT.glob(pattern):
            shutil.copy(file, copy)
    for step in STEPS[:-1]:
        if step is not without:
            step.do(copy)
    install(copy)
    if STEPS[-1] is not without:
        STEPS[-1].do(copy)


def outcome_of(copy: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy."""
    return run(copy, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *names)


def test_all_steps_of_the_page_are_done_here() -> None:
    for step in STEPS:
        assert step.says in PAGE
    sections = dict(re.findall(r"## (A gem|A diagnostic|A command) (.*?)(?= ## )", PAGE))
    assert len(sections) == 3
    for text in sections.values():
        for told in re.split(r" ?\b\d\. ", text)[1:] or [text]:
            assert any(step.says in told for step in STEPS), told


def test_who_does_what_the_page_says_passes_the_tests(tmp_path: Path) -> None:
    walked(tmp_path)
    asked = dict.fromkeys(step.asked_by for step in STEPS if step.asked_by not in ("", DRAWN))
    done = outcome_of(tmp_path, *asked, *SHOWN)
    assert done.returncode == 0, done.stdout


@pytest.mark.sample(0)
@pytest.mark.parametrize("step", [step for step in STEPS if step.asked_by], ids=lambda step: step.says)
def test_what_is_left_out_is_asked_for(tmp_path: Path, step: Step) -> None:
    walked(tmp_path, without=step)
    assert outcome_of(tmp_path, step.asked_by).returncode == 1
