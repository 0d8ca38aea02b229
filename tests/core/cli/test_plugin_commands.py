"""Commands that plugins add, as installed distributions do it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs

PLUGIN = """
from gem_bundle import hookimpl

@hookimpl
def gem_bundle_register_commands(register):
    register("{command}", "{module}_cli:{attribute}")
"""
COMMAND = """
import click

@click.command("deploy", short_help="Bring a pipeline to production.")
@click.argument("file")
def command(file):
    click.echo(f"deployed {file}")

nothing = 5
"""


def install(
    folder: Path, name: str, *, command: str = "deploy", attribute: str = "command", body: str | None = None
) -> None:
    """An installed distribution with a command."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gem_bundle.commands]\n{name} = {name}\n")
    text = PLUGIN.format(command=command, module=name, attribute=attribute) if body is None else body
    (folder / f"{name}.py").write_text(text)
    (folder / f"{name}_cli.py").write_text(COMMAND)


def gem_bundle(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gem_bundle", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100", **environment},
        check=False,
    )


def test_a_plugin_adds_a_command(tmp_path: Path) -> None:
    install(tmp_path, "acme")

    assert "  deploy      Bring a pipeline to production." in gem_bundle(tmp_path, "--help").stdout
    assert gem_bundle(tmp_path, "deploy", "x.yaml").stdout == "deployed x.yaml\n"
    assert "--debug" in gem_bundle(tmp_path, "deploy", "--help").stdout
    assert "Did you mean `deploy`?" in gem_bundle(tmp_path, "deplyo").stderr


def test_a_plugin_that_is_switched_off_adds_none(tmp_path: Path) -> None:
    install(tmp_path, "acme")

    result = gem_bundle(tmp_path, "deploy", "x.yaml", GEM_BUNDLE_DISABLE_PLUGINS="acme")

    assert result.returncode == 2
    assert "There is no command `deploy`" in result.stderr
    assert "deploy" not in gem_bundle(tmp_path, "--help", GEM_BUNDLE_PLUGINS="rate").stdout


def test_own_commands_are_never_replaced(tmp_path: Path) -> None:
    install(tmp_path, "acme", command="check")

    assert gem_bundle(tmp_path, "--help").stdout.count("  check ") == 1
    assert "Say whether pipelines can run" in gem_bundle(tmp_path, "--help").stdout


def test_a_broken_plugin_leaves_the_help_as_it_is(tmp_path: Path) -> None:
    install(tmp_path, "broken", body="raise SystemExit('no')")
    install(tmp_path, "acme")

    result = gem_bundle(tmp_path, "--help")

    assert result.returncode == 0
    assert "deploy" in result.stdout


@pytest.mark.parametrize(
    ("attribute", "problem"), [("missing", "AttributeError"), ("nothing", "it is no command of click's")]
)
def test_a_command_that_is_none(tmp_path: Path, attribute: str, problem: str) -> None:
    install(tmp_path, "acme", attribute=attribute)

    result = gem_bundle(tmp_path, "deploy", "x.yaml")

    assert result.returncode == 1
    assert (
        f"The command `deploy` of `acme` can't be loaded from `acme_cli:{attribute}`: {problem}"
        in result.stderr
    )
    assert "Traceback" not in result.stderr
    # The others can still be seen.
    assert "check" in gem_bundle(tmp_path, "--help").stdout


def test_the_help_loads_no_plugin_that_adds_none(tmp_path: Path) -> None:
    info = tmp_path / "gems-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gems\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gem_bundle]\ngems = gems_of_acme\n")
    (tmp_path / "gems_of_acme.py").write_text("print('loaded')")

    assert "loaded" not in gem_bundle(tmp_path, "--help").stdout
    assert "loaded" in gem_bundle(tmp_path, "gems").stdout
