"""The command as a whole: help, version, colours, exit statuses, errors of all kinds."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.cli.main import COMMANDS
from gem_bundle.pipeline.secrets import SecretStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.cli.conftest import Cli, Installer

TESTS = Path(__file__).parents[2]

# A gem whose `jars` does what a test wants, in the middle of `gem-bundle describe`.
TRAP = """
import os
from gem_bundle import Source, hookimpl

class TrapSource(Source):
    def jars(self):
        {}

@hookimpl
def gem_bundle_register_gems(register):
    register("source", "trap", TrapSource)
"""


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "gem_bundle", *arguments], text=True, **options)


def test_the_commands() -> None:
    assert (
        *("new", "gems", "describe", "check", "run", "runs", "status", "stop", "resume", "metrics"),
        *("preview", "test", "checkpoint", "graph", "ui", "plan", "backfill", "rejected", "replay"),
        *("explain", "schema", "jars", "completion"),
    ) == COMMANDS


def test_the_help_lists_them_in_order_with_a_sentence_each(cli: Cli) -> None:
    result = cli("--help")
    assert result.exit_code == 0
    lines = result.stdout.partition("Commands:\n")[2].splitlines()
    listed = [line.split(maxsplit=1) for line in lines if line.startswith("  ")]
    assert [name for name, _ in listed[: len(COMMANDS)]] == list(COMMANDS)
    assert all(text.endswith(".") for _, text in listed[: len(COMMANDS)])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_help_has_a_sentence_and_an_example(command: str, cli: Cli) -> None:
    result = cli(command, "--help")
    assert result.exit_code == 0
    assert cli(command, "-h").stdout == result.stdout
    usage, text, *_ = result.stdout.split("\n\n")
    assert usage.startswith(f"Usage: gem-bundle {command}")
    assert text.strip()
    assert f"gem-bundle {command} " in result.stdout.partition("Example")[2]
    assert "--debug" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_parameter_of_a_command_is_explained(command: str) -> None:
    for parameter in import_module(f"gem_bundle.cli.{command}").command.params:
        if parameter.param_type_name == "option":
            assert getattr(parameter, "help", None), parameter.name


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_tests(command: str) -> None:
    (file,) = (TESTS / "core" / "cli").glob(f"test_{command}.py")
    assert f'cli("{command}"' in file.read_text()


@pytest.mark.programs
@pytest.mark.parametrize(
    ("commands", "imported"),
    [([[]], {"pluggy"}), ([[name] for name in COMMANDS], set())],
    ids=["all", "each"],
)
def test_no_help_imports_anything_heavy(commands: list[list[str]], imported: set[str]) -> None:
    code = (
        "import sys\nfrom gem_bundle.cli import main\n"
        f"for arguments in {commands!r}:\n"
        "    main([*arguments, '--help'], standalone_mode=False)\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(commands)
    heavy = {"pydantic", "yaml", "pluggy", "rich", "sqlglot", "pyspark", "py4j", "fsspec", "kafka"}
    # The commands of plugins are found through pluggy, which is small.
    assert heavy & set(done.stderr.split()) == imported


def test_the_version_names_all_that_matter(cli: Cli) -> None:
    gem_bundle, python, pyspark = cli("--version").stdout.splitlines()
    assert gem_bundle == f"gem-bundle {version('gem-bundle')}"
    assert python == f"Python {sys.version.split()[0]}"
    assert pyspark == f"pyspark {version('pyspark')}"


def test_the_version_without_pyspark(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_pyspark(name: str) -> str:
        if name == "pyspark":
            raise PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr("importlib.metadata.version", without_pyspark)
    assert cli("--version").stdout.splitlines()[2] == "pyspark not installed"


def test_a_misspelt_command_is_answered_with_the_nearest(cli: Cli) -> None:
    result = cli("chekc")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no command `chekc`. Did you mean `check`?" in result.stderr
    assert (
        "Known commands: `backfill`, `build`, `check`, `checkpoint`, `completion`" in cli("frobnicate").stderr
    )


def test_an_unknown_option_is_a_wrong_use(cli: Cli) -> None:
    result = cli("--frobnicate")
    assert result.exit_code == 2
    assert "--frobnicate" in result.stderr


def test_what_should_not_happen_is_one_sentence(cli: Cli, install: Installer) -> None:
    install("trap", TRAP.format("raise KeyError('lost')"))
    result = cli("describe", "trap")
    assert (result.exit_code, result.stdout) == (1, "")
    sentence, remedy = result.stderr.splitlines()
    assert sentence == "error: `gem-bundle describe` failed in a way that it should not: KeyError: 'lost'"
    assert "report it" in remedy
    assert "--debug" in remedy


@pytest.mark.parametrize("arguments", [("--debug", "describe", "trap"), ("describe", "trap", "--debug")])
def test_debug_shows_the_traceback(arguments: tuple[str, ...], cli: Cli, install: Installer) -> None:
    install("trap", TRAP.format("raise KeyError('lost')"))
    result = cli(*arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "trap_gems.py" in result.stderr
    assert "error: `gem-bundle describe` failed" in result.stderr


def test_secrets_are_not_in_what_is_printed(
    cli: Cli, install: Installer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secrets/store/key"
    secret.parent.mkdir(parents=True)
    secret.write_text("from-a-file\n")
    monkeypatch.setenv("GEM_BUNDLE_SECRETS_DIR", str(tmp_path / "secrets"))
    monkeypatch.setenv("GEM_BUNDLE_SECRET_STORE_OTHER", "from-a-variable")
    for key in ("key", "other"):
        assert SecretStore().find("store", key)[0]
    said = f"__import__('pathlib').Path({str(secret)!r}).read_text() + os.environ['GEM_BUNDLE_SECRET_STORE_OTHER']"
    install("trap", TRAP.format(f"raise ValueError({said})"))
    for result in (cli("describe", "trap"), cli("describe", "trap", "--debug")):
        assert "ValueError: **********\n**********" in result.stderr
        assert "from-a-" not in result.output


def test_an_error_of_the_system_names_the_file(cli: Cli, install: Installer) -> None:
    install("trap", TRAP.format("open('/does/not/exist')"))
    result = cli("describe", "trap")
    assert result.exit_code == 1
    assert result.stderr == "error: /does/not/exist: No such file or directory\n"


def test_an_interrupt_has_its_own_status(cli: Cli, install: Installer) -> None:
    install("trap", TRAP.format("raise KeyboardInterrupt"))
    result = cli("describe", "trap")
    assert result.exit_code == 128 + signal.SIGINT
    assert result.stderr == "\nInterrupted.\n"


@pytest.mark.programs
def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with start("explain", stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.programs
@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(environment: dict[str, str], coloured: bool) -> None:
    main_end, terminal = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    with start("explain", "GB310", stdout=terminal, env=inherited | environment) as process:
        os.close(terminal)
        shown = os.read(main_end, 4096)
    os.close(main_end)
    assert process.returncode == 0
    assert b"GB310" in shown
    assert (b"\x1b[" in shown) is coloured


@pytest.mark.programs
def test_colours_are_not_for_files() -> None:
    with start("explain", "GB310", stdout=subprocess.PIPE) as process:
        stdout, _ = process.communicate(timeout=60)
    assert "\x1b" not in stdout


@pytest.mark.programs
def test_results_and_errors_go_different_ways(project: Callable[..., Path]) -> None:
    project()
    with start("graph", "gone.yaml", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert stdout == ""
    assert "gone.yaml: error[GB001]" in stderr
