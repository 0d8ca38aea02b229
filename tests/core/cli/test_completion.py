"""Shell completion: the scripts, and what a real bash offers with one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli

TEXT = """
pipeline: orders
parameters: {topic: orders, rows: 10}
profiles: {prod: {rows: 20}, test: {}}
sources: {incoming: {gem: kafka}}
transforms: {parsed: {gem: from_json, input: incoming}}
targets: {table: {gem: delta, input: parsed}, copy: {gem: noop, input: parsed}}
"""

CODE = "from gem_bundle.cli import main; main(prog_name='gem-bundle')"


@pytest.mark.programs
@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o nosort"), ("zsh", "#compdef gem-bundle"), ("fish", "complete ")]
)
def test_the_scripts(shell: str, sign: str, cli: Cli) -> None:
    result = cli("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert sign in result.stdout
    assert "_GEM_BUNDLE_COMPLETE" in result.stdout


def test_another_shell(cli: Cli) -> None:
    assert cli("completion", "tcsh").exit_code == 2


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `gem-bundle` to put on the PATH, and with the script that it prints for bash."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "gem-bundle"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{CODE}" "$@"\n')
    program.chmod(0o755)
    script = subprocess.run([program, "completion", "bash"], capture_output=True, text=True, check=True)
    (folder / "completion.bash").write_text(script.stdout)
    return folder


@pytest.fixture
def offered(project: Callable[..., Path], programs: Path) -> Callable[..., list[str]]:
    """What bash offers for the last word of a command line, through the script that we print."""
    folder = project("orders.yaml", TEXT).parent
    project("other.yml", "")
    project("broken.yaml", "a: [")
    (folder / "data").mkdir()
    bash = shutil.which("bash")
    assert bash is not None

    def complete(*words: str) -> list[str]:
        script = (
            f'source "{programs}/completion.bash"\n'
            'COMP_WORDS=(gem-bundle "$@"); COMP_CWORD=$#; compopt() { echo "files" >&2; }\n'
            "_gem_bundle_completion gem-bundle\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            [bash, "-c", script, "bash", *words],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        )
        return [*done.stdout.split(), *done.stderr.split()]

    return complete


@pytest.mark.programs
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ch"], ["check", "checkpoint"]),
        (["check", "--for"], ["--format"]),
        (["check", "--wa"], ["--watch"]),
        (["check", "--format", ""], ["text", "json", "sarif", "github"]),
        (["sch"], ["schema"]),
        (["schema", "--out"], ["--output"]),
        (["schema", "--output", "da"], ["files"]),
        (["check", "o"], ["orders.yaml", "other.yml"]),
        (["check", "./or"], ["./orders.yaml"]),
        (["check", "da"], ["files"]),
        (["check", "no/such/folder/x"], []),
        (["check", "orders.yaml", "-p", ""], ["topic=", "rows="]),
        (["check", "orders.yaml", "--profile", "p"], ["prod"]),
        (["preview", "orders.yaml", ""], ["incoming", "parsed", "table", "copy"]),
        (["run", "orders.yaml", "--target", ""], ["table", "copy"]),
        (["run", "--target", "t"], []),
        (["preview", "broken.yaml", ""], []),
        (["preview", "gone.yaml", ""], []),
        (["describe", "rate_"], ["rate_micro_batch"]),
        (["describe", "target", "rate_"], []),
        (["gems", "--kind", "target", "rate_"], []),
        (["explain", "gb10"], [f"GB10{digit}" for digit in range(1, 10)]),
        (["completion", "z"], ["zsh"]),
    ],
    ids=" ".join,
)
def test_what_is_offered(words: list[str], expected: list[str], offered: Callable[..., list[str]]) -> None:
    assert offered(*words) == expected
