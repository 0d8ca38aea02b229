"""What newcomers are told exists, and runs as they are told."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from gem_bundle.cli import main
from tests.guard import MARKS
from tests.test_matrix import DAILY

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HELP = (ROOT / "scripts" / "test").read_text(encoding="utf-8")
OF_PYTEST = {"--pdb"}
# Folders and files in the top level are named with what follows them.
PATH = re.compile(
    r"(?<![\w/~.])((?:core|gems|bundles|docs|tests|scripts|examples)/[\w./-]*\w|[\w-]+\.(?:py|toml|md))"
)


def test_every_path_is_there() -> None:
    named = set(PATH.findall(PAGE))
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("line", sorted(set(re.findall(r"`(gem-bundle [^`]+)`", PAGE))))
def test_every_command_takes_what_it_is_given(line: str) -> None:
    command, words = main, line.split()[1:]
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("line", sorted(set(re.findall(r"`(scripts/\w+ [^`]*-[^`]*)`", PAGE))))
def test_every_script_takes_what_it_is_given(line: str) -> None:
    script, *words = line.split()
    program = ROOT / "tests" / f"{Path(script).name}" / "__main__.py"
    told = (ROOT / script).read_text() + (program.read_text() if program.exists() else "")
    options = {word for word in words if word.startswith("--")} - OF_PYTEST
    assert [option for option in options if option not in told] == []


def test_every_mark_is_explained() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    marks = {mark.partition(":")[0] for mark in declared["tool"]["pytest"]["ini_options"]["markers"]}
    assert set(MARKS) <= marks
    assert [mark for mark in MARKS if f"- `{mark}`: " not in PAGE] == []


@pytest.mark.parametrize("option", ["--fast", "--long", "--seed"])
def test_the_tiers_are_those_of_the_script(option: str) -> None:
    assert option in PAGE
    assert f"{option})" in HELP


def test_a_hook_asks_for_what_the_tests_ask_for() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repository in hooks["repos"] for hook in repository["hooks"]]
    for entry in entries:
        program, *arguments = entry.removesuffix(" --force-exclude").split()
        assert (ROOT / program).stat().st_mode & 0o111
        assert f'"$bin/{Path(program).name}" {" ".join(arguments)}\n' in HELP


def test_ci_runs_the_same_command() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert runs == ["scripts/test", "scripts/test --long"]
    for job in jobs.values():
        (ran, kept) = job["steps"][-2:]
        assert ran["env"]["GEM_BUNDLE_PICTURES"] == kept["with"]["path"]
        assert kept["if"] == "always()", "what failed is to be seen above all"


@pytest.mark.parametrize("name", ["ci", "release"])
def test_each_workflow_that_tests_has_the_pythons_of_the_matrix(name: str) -> None:
    """Else `scripts/matrix` would make a Debian for them, which takes root."""
    asked = {place.removeprefix("--python ") for place in DAILY if place.startswith("--python ")}
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))[
        "jobs"
    ]
    testing = [
        job["steps"]
        for job in jobs.values()
        if any(step.get("run", "").startswith("scripts/test") for step in job["steps"])
    ]
    assert testing
    for steps in testing:
        (setup,) = [step for step in steps if step.get("uses", "").startswith("actions/setup-python@")]
        *others, python = setup["with"]["python-version"].split()
        assert asked <= set(others), "the last one is what `python3` is"
        assert python == "3.11"


def test_who_reports_something_is_asked_for_the_version_and_the_debug_output() -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8"))
    asked = {field["attributes"]["label"]: field.get("validations") for field in form["body"]}
    assert asked["gem-bundle --version"] == {"required": True}
    assert asked["The command with --debug"] == {"required": True}
