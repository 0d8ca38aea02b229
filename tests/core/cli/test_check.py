"""`gem-bundle check`: verdicts in all formats, and what may be silenced or asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.core.cli.conftest import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli, Installer

WRONG = """
pipeline: wrong
sources:
  incoming: {gem: ordrs, options: {}}
targets:
  out: {gem: orders, input: incomming}
  late: {gem: orders, input: incoming, output_mode: update}
"""
SETTINGS = """
[check]
disable = ["ACME013", "GB103", "GB203", "GB310"]
"""


@pytest.mark.usefixtures("acme")
def test_a_pipeline_that_can_run(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    result = cli("check", "orders.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "orders.yaml: ok (2 nodes)\n"
    assert cli("check", "./orders.yaml").stdout == "./orders.yaml: ok (2 nodes)\n"
    assert cli("check", "--quiet", "orders.yaml").output == ""


@pytest.mark.usefixtures("acme")
def test_all_that_is_wrong_with_places_and_remedies(cli: Cli, project: Callable[..., Path]) -> None:
    project("wrong.yaml", WRONG)
    result = cli("check", "wrong.yaml")
    assert result.exit_code == 1
    assert result.stderr == (
        "wrong.yaml:4:19: error[GB201]: `incoming`: there is no source gem `ordrs`\n"
        "    Did you mean `orders`?\n"
        "wrong.yaml:6:29: error[GB101]: `out`: there is no node `incomming` to read from\n"
        "    Did you mean `incoming`?\n"
        "wrong.yaml:7:53: error[GB310]: target `late`: `orders` can't take the output mode `update`, "
        "only `append`\n"
        "    Use `append`, or a target that takes `update`.\n"
    )
    assert result.stdout == "wrong.yaml: 3 errors\n"


@pytest.mark.usefixtures("acme")
def test_several_files(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("wrong.yaml", WRONG)
    result = cli("check", "orders.yaml", "wrong.yaml", "gone.yaml")
    assert result.exit_code == 1
    assert result.stdout == "orders.yaml: ok (2 nodes)\nwrong.yaml: 3 errors\ngone.yaml: 1 error\n"
    assert "gone.yaml: error[GB001]: the file can't be read: No such file" in result.stderr


@pytest.mark.usefixtures("acme")
def test_as_json(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("wrong.yaml", WRONG)
    result = cli("check", "orders.yaml", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"ok": True, "diagnostics": []})
    result = cli("check", "orders.yaml", "wrong.yaml", "--format", "json")
    assert (result.exit_code, result.stderr) == (1, "")
    verdict = json.loads(result.stdout)
    assert verdict["ok"] is False
    assert [d["code"] for d in verdict["diagnostics"]] == ["GB201", "GB101", "GB310"]
    assert verdict["diagnostics"][0] == {
        "code": "GB201",
        "severity": "error",
        "message": "`incoming`: there is no source gem `ordrs`",
        "hint": "Did you mean `orders`?",
        "node": "incoming",
        "path": ["sources", "incoming", "gem"],
        "file": "wrong.yaml",
        "line": 4,
        "column": 19,
    }


@pytest.mark.usefixtures("acme")
def test_as_sarif(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("wrong.yaml", WRONG)
    result = cli("check", "orders.yaml", "--format", "sarif")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["runs"][0]["results"] == []
    result = cli("check", "orders.yaml", "wrong.yaml", "--format", "sarif")
    assert (result.exit_code, result.stderr) == (1, "")
    (run,) = json.loads(result.stdout)["runs"]
    assert [found["ruleId"] for found in run["results"]] == ["GB201", "GB101", "GB310"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["GB101", "GB201", "GB310"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "wrong.yaml"
    assert place["region"] == {"startLine": 4, "startColumn": 19}


@pytest.mark.usefixtures("acme")
def test_as_annotations_of_github(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("wrong.yaml", WRONG)
    result = cli("check", "orders.yaml", "--format", "github")
    assert (result.exit_code, result.output) == (0, "")
    result = cli("check", "orders.yaml", "wrong.yaml", "--format", "github")
    assert (result.exit_code, result.stderr) == (1, "")
    first, *others = result.stdout.splitlines()
    assert first == (
        "::error file=wrong.yaml,line=4,col=19,title=GB201::"
        "`incoming`: there is no source gem `ordrs`%0ADid you mean `orders`?"
    )
    assert [line.partition("::")[0] for line in others] == ["", ""]
    unlucky = cli("check", "orders.yaml", "-p", "rows=13", "--format", "github")
    assert unlucky.stdout.startswith("::warning file=orders.yaml,line=7,col=47,title=ACME013::")
    assert cli("check", "orders.yaml", "-p", "rows=13", "--format", "github", "--quiet").output == ""


@pytest.mark.usefixtures("acme")
def test_warnings_are_no_errors_unless_denied(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    unlucky = ("check", "orders.yaml", "-p", "rows=13")
    result = cli(*unlucky)
    assert (result.exit_code, result.stdout) == (0, "orders.yaml: ok, 1 warning (2 nodes)\n")
    assert result.stderr.startswith("orders.yaml:7:47: warning[ACME013]: source `incoming`: thirteen")
    assert json.loads(cli(*unlucky, "--format", "json").stdout)["ok"] is True
    assert cli(*unlucky, "--quiet").output == ""
    denied = cli(*unlucky, "--deny-warnings")
    assert (denied.exit_code, denied.stdout) == (1, "orders.yaml: 1 warning (denied)\n")
    assert json.loads(cli(*unlucky, "--deny-warnings", "--format", "json").stdout)["ok"] is False
    assert "ACME013" in cli(*unlucky, "--deny-warnings", "--quiet").stderr
    assert cli("check", "orders.yaml", "-p", "rows=14", "--deny-warnings").exit_code == 0


@pytest.mark.usefixtures("acme")
def test_the_projects_settings_silence_warnings_and_notes(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("wrong.yaml", WRONG)
    project("gem-bundle.toml", SETTINGS)
    for rows in ("13", "14"):
        result = cli("check", "orders.yaml", "-p", f"rows={rows}", "--deny-warnings")
        assert (result.exit_code, result.output) == (0, "orders.yaml: ok (2 nodes)\n")
    assert "GB310" in cli("check", "wrong.yaml").stderr


@pytest.mark.usefixtures("acme")
def test_wrong_settings_are_a_part_of_the_verdict(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    project("gem-bundle.toml", "[chek]\n")
    result = cli("check", "orders.yaml", "--format", "json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)["diagnostics"]
    assert (found["code"], found["line"]) == ("GB018", 1)
    assert found["file"].endswith("gem-bundle.toml")


@pytest.mark.usefixtures("acme")
def test_parameters_and_profiles(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=PIPELINE + "profiles: {unlucky: {rows: 13}}\n")
    assert cli("check", "orders.yaml", "--profile", "unlucky").stdout.endswith("ok, 1 warning (2 nodes)\n")
    given = cli("check", "orders.yaml", "--profile", "unlucky", "--parameter", "rows=12")
    assert given.stdout.endswith("ok (2 nodes)\n")
    assert "GB013" in cli("check", "orders.yaml", "--profile", "lucky").stderr
    assert "GB012" in cli("check", "orders.yaml", "-p", "rows=many").stderr
    assert "GB010" in cli("check", "orders.yaml", "-p", "row=1").stderr


@pytest.mark.usefixtures("acme")
def test_environment_variables_may_be_missing_when_asked(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=PIPELINE.replace("acme:9092", "${env:ACME_BROKER_OF_NOBODY}"))
    result = cli("check", "orders.yaml")
    assert (result.exit_code, "GB014" in result.stderr) == (1, True)
    result = cli("check", "orders.yaml", "--skip-env")
    assert (result.exit_code, result.output) == (0, "orders.yaml: ok (2 nodes)\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'FILE...'"),
        (["orders.yaml", "-p", "rows"], "`rows` is not of the form name=value"),
        (["orders.yaml", "-p", "=1"], "`=1` is not of the form name=value"),
        (["orders.yaml", "-p", "rows=1", "-p", "rows=2"], "`rows` is given twice"),
        (["orders.yaml", "--format", "yaml"], "'yaml' is not one of 'text', 'json', 'sarif', 'github'"),
        (["orders.yaml", "--watch", "--format", "json"], "it doesn't go with `--format json`"),
        (["orders.yaml", "--watch", "--engine"], "it doesn't go with `--engine`"),
    ],
)
def test_a_wrong_use(arguments: list[str], said: str, cli: Cli) -> None:
    result = cli("check", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.usefixtures("acme")
def test_a_broken_plugin_is_one_warning_at_the_end(
    cli: Cli, project: Callable[..., Path], install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("bad", "import no_such_module", version="0.3")
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme,bad")
    project()
    project("again.yaml")
    result = cli("check", "orders.yaml", "again.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "warning[GB203]: the plugin `bad` of `bad-gems 0.3` can't be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'\n"
        "    Update or remove it, or switch it off with GEM_BUNDLE_DISABLE_PLUGINS=bad.\n"
    )
    assert cli("check", "orders.yaml", "--deny-warnings").exit_code == 1
    (found,) = json.loads(cli("check", "orders.yaml", "--format", "json").stdout)["diagnostics"]
    assert (found["code"], found["file"]) == ("GB203", "")
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme,amce")
    assert "there is no such plugin\n    Correct GEM_BUNDLE_PLUGINS.\n" in cli("check", "orders.yaml").stderr
    project("gem-bundle.toml", SETTINGS)
    assert cli("check", "orders.yaml", "--deny-warnings").output == "orders.yaml: ok (2 nodes)\n"


@pytest.mark.usefixtures("acme")
def test_connect_tries_what_the_gems_need(
    cli: Cli, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project()
    result = cli("check", "orders.yaml", "--connect")
    reached = "everything it needs can be reached; columns of `incoming` stay unknown"
    assert result.stdout == f"orders.yaml: ok (2 nodes; {reached})\n"
    project(text=PIPELINE.replace("max_rows:", "password: '${secret:acme/orders}', max_rows:"))
    assert cli("check", "orders.yaml").exit_code == 0
    assert "GB015" in cli("check", "orders.yaml", "--connect").stderr
    monkeypatch.setenv("GEM_BUNDLE_SECRET_ACME_ORDERS", 'hunter"2')
    for arguments in ((), *(("--format", name) for name in ("json", "sarif", "github"))):
        result = cli("check", "orders.yaml", "--connect", *arguments)
        assert result.exit_code == 1
        assert "acme:9092 refuses the password **********" in result.output
        assert "hunter" not in result.output


SHUFFLE = """
from gem_bundle import Transform, hookimpl

class Shuffle(Transform):
    def apply(self, df):
        return df.orderBy("value")

@hookimpl
def gem_bundle_register_gems(register):
    register("transform", "shuffle", Shuffle)
"""
ENGINE = """
pipeline: engine
sources: {ticks: {gem: rate}}
transforms: {shuffled: {gem: shuffle, input: ticks}}
targets: {out: {gem: orders, input: INPUT}}
"""


@pytest.mark.spark
@pytest.mark.usefixtures("acme", "spark")
def test_sparks_own_analyser_is_asked(
    cli: Cli, project: Callable[..., Path], install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("shuffle", SHUFFLE)
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "acme,rate,shuffle")
    project("plain.yaml", ENGINE.replace("INPUT", "ticks"))
    project("sorted.yaml", ENGINE.replace("INPUT", "shuffled"))
    assert cli("check", "plain.yaml", "sorted.yaml").exit_code == 0
    result = cli("check", "plain.yaml", "sorted.yaml", "--engine")
    assert result.exit_code == 1
    assert result.stdout == (
        "plain.yaml: ok, 1 warning (3 nodes; Spark's analyser agrees)\nsorted.yaml: 1 error\n"
    )
    assert "error[GB320]" in result.stderr
    assert "Sorting is not supported on streaming DataFrames" in result.stderr


@pytest.mark.programs
def test_an_engine_that_cannot_start_is_a_diagnostic(tmp_path: Path) -> None:
    file = tmp_path / "ticks.yaml"
    file.write_text(
        "pipeline: ticks\nsources: {ticks: {gem: rate}}\ntargets: {out: {gem: noop, input: ticks}}\n"
    )
    # A process of its own: in this one a session may be running, and that would be asked.
    done = subprocess.run(
        [sys.executable, "-m", "gem_bundle", "check", file, "--engine", "--format", "json"],
        env={**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["diagnostics"]
    assert (found["code"], found["file"]) == ("GB501", str(file))


def test_a_strangers_file_does_not_drive_the_terminal(cli: Cli, project: Callable[..., Path]) -> None:
    project("evil.yaml", 'pipeline: evil\nsources:\n  "a\\e[2Jb": {gem: rate}\n')
    result = cli("check", "evil.yaml", color=True)
    assert result.exit_code == 1
    assert "a\\x1b[2Jb" in result.stderr
    assert "\x1b[2J" not in result.stderr


def test_severities_have_their_colours(cli: Cli, project: Callable[..., Path]) -> None:
    project("wrong.yaml", "pipeline: wrong\n")
    assert "\x1b[31m\x1b[1merror[GB107]:\x1b[0m" in cli("check", "wrong.yaml", color=True).stderr
