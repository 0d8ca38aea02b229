"""The catalogue of codes: complete, used, tested, and with examples that do what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import types
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.cli import main
from gem_bundle.codes import CODES, Code
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.secrets import SecretStore
from gem_bundle.plugins import GROUP, load_registry
from gem_bundle.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "core" / "gem_bundle" / "codes"
CODE = re.compile(r"\bGB\d{3}\b")


def codes_in(*folders: str) -> dict[str, set[str]]:
    """The codes that Python files name, and the files that name each."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if file != Path(__file__) and CATALOGUE not in file.parents:
                for code in CODE.findall(file.read_text(encoding="utf-8")):
                    found.setdefault(code, set()).add(str(file.relative_to(ROOT)))
    return found


# Complete


def test_every_code_in_the_sources_is_in_the_catalogue() -> None:
    used = codes_in("core", "gems", "bundles")

    assert {code: files for code, files in used.items() if code not in CODES} == {}


def test_every_code_in_the_catalogue_is_used() -> None:
    assert sorted(CODES.keys() - codes_in("core", "gems", "bundles")) == []


def test_every_code_has_a_test_beside_those_here() -> None:
    assert sorted(CODES.keys() - codes_in("tests")) == []


@pytest.mark.parametrize("code", list(CODES.values()), ids=lambda code: code.code)
def test_every_code_is_explained(code: Code) -> None:
    assert re.fullmatch(r"GB[0-8]\d\d", code.code)
    assert code.severity in {"error", "warning", "note"}
    assert code.title[0].islower() or code.title.startswith(("YAML", "Python", "Spark"))
    assert not code.title.endswith(".")
    assert len(code.why) > 60
    assert code.why.endswith(".")
    assert code.breaks
    assert code.keeps
    assert code.breaks != code.keeps
    for text in (code.why, code.breaks, code.keeps):
        assert text == text.strip()
        assert "\t" not in text
    assert max(map(len, f"{code.breaks}\n{code.keeps}".splitlines())) <= 96


def test_the_catalogue_is_in_order() -> None:
    assert list(CODES) == sorted(CODES)
    assert all(name == code.code for name, code in CODES.items())


@pytest.mark.programs
def test_a_check_does_not_import_the_catalogue() -> None:
    probe = "import sys, gem_bundle.check; print('gem_bundle.codes' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert result.stdout == "False\n"


@pytest.mark.programs
def test_the_catalogue_is_cheap_to_import() -> None:
    probe = (
        "import sys, gem_bundle.codes; "
        "print([m for m in ('pydantic', 'yaml', 'pluggy', 'pyspark') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"


# Examples


class Example(NamedTuple):
    """What an example is made of.

    Args:
        pipeline: The piece of a pipeline file, or an empty string.
        files: Other files by name.
        commands: Command lines.
    """

    pipeline: str
    files: dict[str, str]
    commands: list[str]


def read(text: str) -> Example:
    """Take an example apart: files begin with their name in a comment, commands with ``$``."""
    pipeline = ""
    files: dict[str, str] = {}
    commands: list[str] = []
    name = "clicks.yaml"
    for line in text.splitlines():
        header = re.fullmatch(r"# ([\w./-]+\.\w+)", line)
        if header:
            name = header[1]
        elif line.startswith("$ "):
            commands.append(line[2:])
        elif name == "clicks.yaml":
            pipeline += line + "\n"
        else:
            files[name] = files.get(name, "") + line + "\n"
    return Example(pipeline if pipeline.strip() else "", files, commands)


SECTIONS = {
    "pipeline": "pipeline: clicks\n",
    "sources": "sources:\n  ticks: {gem: rate}\n",
    "targets": "targets:\n  screen: {gem: console, input: ticks}\n",
}


def completed(piece: str) -> str:
    """A piece of a pipeline file with the sections that it leaves out behind it."""
    there = set(re.findall(r"^(\w+):", piece, re.MULTILINE))
    return piece + "".join(text for name, text in SECTIONS.items() if name not in there)


@cache
def installed() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


EXAMPLES = [
    pytest.param(code, kind, id=f"{code.code}-{kind}")
    for code in CODES.values()
    for kind in ("breaks", "keeps")
]


# Which examples can't be carried out without a JVM, a broker or another run; all others are.
NOT_BY_A_CHECK = {c for c in CODES if c[:3] in {"GB4", "GB5", "GB6", "GB7", "GB8"} and c != "GB506"} | {
    "GB020",
    "GB108",
    "GB320",
    "GB384",
    "GB386",
}


@pytest.mark.sample(250)
@pytest.mark.parametrize(("code", "kind"), EXAMPLES)
def test_examples_do_what_they_say(
    code: Code, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = read(getattr(code, kind))
    (tmp_path / "clicks.yaml").write_text(completed(example.pipeline), encoding="utf-8")
    for name, text in example.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GEM_BUNDLE_SETTINGS", raising=False)
    found = list(carry_out(example))
    codes = {diagnostic.code for diagnostic in found}
    errors = [str(diagnostic) for diagnostic in found if diagnostic.is_error]

    if kind == "keeps":
        assert code.code not in codes
        assert errors == []
    elif code.code in NOT_BY_A_CHECK:
        assert errors == []
    else:
        assert code.code in codes
        assert {diagnostic.severity for diagnostic in found if diagnostic.code == code.code} == {
            code.severity
        }
        # What else is worth saying of an example is said of the kept form too.
        assert {d.code for d in found if d.is_error} <= {code.code}


def carry_out(example: Example) -> Iterator[Diagnostic]:
    """What is found when the example's pipeline is checked as its command line says."""
    try:
        load_settings(Path.cwd())
    except PipelineError as error:
        yield from error.diagnostics
    packages = [name.removesuffix("/__init__.py") for name in example.files if "/" in name]
    points = [*installed(), *(EntryPoint(name, name, GROUP) for name in packages)]
    for name in packages:
        module = types.ModuleType(name)
        exec(example.files[f"{name}/__init__.py"], module.__dict__)
        sys.modules[name] = module
    try:
        registry = load_registry({}, points)
    finally:
        for name in packages:
            del sys.modules[name]
    if registry.broken:
        from gem_bundle.diagnostics import Diagnostic

        yield Diagnostic("GB203", "warning", registry.broken[0].error)
    command = invocation(next((c for c in example.commands if re.search(r"(^|[ &])gem-bundle \w", c)), ""))
    environment = dict(command.environment)
    options = LoadOptions(
        dict(p.split("=", 1) for p in command.parameters),
        command.profile,
        environment,
        SecretStore(environment) if command.name == "run" else None,
        # What is open when a bundle is built is given when it starts.
        skip_env=command.name == "build",
        require_parameters=command.name != "build",
    )
    if "parameters:" not in example.pipeline:
        options.parameters = {}  # they are declared in the part of the file that isn't shown
    file = Path(command.file).name
    yield from check_definition(load_file(file, options), registry).diagnostics


class Invocation(NamedTuple):
    """A command line of gem-bundle, taken apart by its own parser."""

    name: str = "check"
    file: str = "clicks.yaml"
    environment: tuple[tuple[str, str], ...] = ()
    parameters: tuple[str, ...] = ()
    profile: str | None = None


def invocation(line: str) -> Invocation:
    if not line:
        return Invocation()
    words = shlex.split(line.rpartition("&& ")[2].removesuffix(" &"))
    environment = []
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment.append((name, value))
    assert words[0] == "gem-bundle"
    # With the group's settings: click keeps the help option that a command is first asked for.
    group = click.Context(main, **main.context_settings)
    command = main.get_command(group, words[1])
    assert command is not None, f"there is no command {words[1]}"
    with click.Context(command, info_name=words[1], parent=group) as context:
        given, _, _ = command.make_parser(context).parse_args(args=words[2:])
    # A bundle is of a pipeline that is there too.
    files = given.get("files") or [given.get("file") or "clicks.yaml"]
    return Invocation(
        words[1],
        files[0],
        tuple(environment),
        tuple(given.get("parameters") or ()),
        given.get("profile"),
    )


KNOWN_COMMANDS = {"gem-bundle", "ls", "mkdir", "mv", "pip", "rm", "start-connect-server.sh"}
KNOWN_COMMANDS |= {"./submit.sh", "python"}  # of a bundle


@pytest.mark.parametrize(("code", "kind"), EXAMPLES)
def test_command_lines_can_be_typed(code: Code, kind: str) -> None:
    for line in read(getattr(code, kind)).commands:
        words = shlex.split(line.rpartition("&& ")[2])
        while "=" in words[0]:
            del words[0]
        assert words[0] in KNOWN_COMMANDS
        if words[0] == "gem-bundle":
            assert invocation(line).file.endswith("clicks.yaml") or code.code == "GB001"


def test_the_texts_name_only_variables_that_exist() -> None:
    sources = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "core" / "gem_bundle").rglob("*.py")
    )
    for code in CODES.values():
        for name in re.findall(r"GEM_BUNDLE_[A-Z]+(?:_[A-Z]+)*", code.why):
            assert f'"{name}' in sources, (code.code, name)


def test_the_texts_name_only_gems_that_exist() -> None:
    registry = load_registry({}, installed())
    for code in CODES.values():
        for text in (code.breaks, code.keeps):
            for gem in re.findall(r"gem: (\w+)", text):
                known = any(registry.has(kind, gem) for kind in ("source", "transform", "target"))
                assert known or gem in {"rates", "report"}, (code.code, gem)


def test_explain_shows_every_code() -> None:
    from click.testing import CliRunner

    listed = CliRunner().invoke(main, ["explain"]).output
    for code in CODES.values():
        assert f"{code.code}" in listed
        shown = CliRunner().invoke(main, ["explain", code.code]).output
        assert code.title in shown
        assert os.linesep.join(f"    {line}".rstrip() for line in code.keeps.splitlines()) in shown
