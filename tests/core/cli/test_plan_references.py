"""`gem-bundle plan` of files that refer to the environment and to secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.record import read_record
from gem_bundle.pipeline.loader import LoadOptions
from tests.checked import plan_of
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Cli = Callable[..., Result]

TEXT = """pipeline: shop
parameters:
  least: {type: integer, default: 1}
sources:
  clicks:
    gem: file
    options:
      format: json
      path: "${env:DIR}/in"
      schema: "page string, n int"
transforms:
  some: {gem: filter, input: clicks, options: {condition: "n > ${least} and page <> '${env:WORD}'"}}
  counts: {gem: aggregate, input: some, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""
VARIABLES = {"DIR": "/one", "WORD": "a-word"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "shop.yaml"
    file.write_text(TEXT)
    left_by_a_run(file, environment=VARIABLES)
    return file


@pytest.mark.parametrize("reference", ["${env:WORD}", "${secret:shop/word}"])
def test_an_edit_beside_a_reference_is_seen(file: Path, cli: Cli, reference: str) -> None:
    text = TEXT.replace("${env:WORD}", reference)
    file.write_text(text)
    left_by_a_run(file, environment=VARIABLES)
    assert "target out: same" in cli("plan", str(file)).stdout
    file.write_text(text.replace("n > $", "n >= $"))
    result = cli("plan", str(file))
    assert result.exit_code == 1
    told = f"`condition` was `n > 1 and page <> '{reference}'` and is `n >= 1 and page <> '{reference}'`"
    assert told in result.stdout
    assert "mixed[GB423]" in result.stdout
    assert "a-word" not in result.stdout


def test_another_value_of_a_parameter_beside_a_reference_is_seen(file: Path, cli: Cli) -> None:
    assert cli("plan", str(file)).exit_code == 0
    result = cli("plan", str(file), "-p", "least=2")
    assert result.exit_code == 1
    assert "and is `n > 2 and page <> '${env:WORD}'`" in result.stdout


def test_a_text_that_looks_like_a_reference_is_no_reference(file: Path, cli: Cli) -> None:
    file.write_text(TEXT.replace("'${env:WORD}'", "'$${env:WORD}'"))
    assert "mixed[GB423]" in cli("plan", str(file)).stdout


def test_the_same_place_by_another_variable_is_no_change(
    file: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOT", "/one")
    file.write_text(TEXT.replace("${env:DIR}", "${env:ROOT}"))
    assert "target out: same" in cli("plan", str(file)).stdout
    file.write_text(TEXT.replace("${env:DIR}", "/one"))
    assert "target out: same" in cli("plan", str(file)).stdout
    monkeypatch.setenv("DIR", "/two")
    file.write_text(TEXT)
    result = cli("plan", str(file))
    assert "`path` was `/one/in` and is `/two/in`" in result.stdout
    assert result.exit_code == 1


def test_with_a_record_without_the_texts_nothing_has_changed(file: Path, cli: Cli) -> None:
    location = plan_of(file, LoadOptions(environment=VARIABLES)).definition.record("out")
    record = file.parent / "checkpoints/shop/.out.record.json"
    content = json.loads(record.read_text())
    marked = [
        value
        for node in content["versions"][0]["nodes"]
        for value in node["options"].values()
        if isinstance(value, dict) and value.pop("written", None)
    ]
    assert marked == [{"environment": True}, {"environment": True}]
    record.write_text(json.dumps(content))
    assert read_record(location) is not None
    result = cli("plan", str(file))
    assert result.exit_code == 0
    assert "target out: same" in result.stdout
    file.write_text(TEXT.replace("[page]", "[n]"))
    result = cli("plan", str(file))
    assert "`condition`" not in result.stdout
    assert "`group_by` was" in result.stdout


TYPED = TEXT.replace(
    "      format: json\n", '      format: json\n      max_files_per_trigger: "${env:MOST}"\n'
)
UNSET = "shop.yaml:9:30: error[GB014]: the environment variable `MOST` is not set"


@pytest.mark.parametrize("more", [(), ("--markdown",), ("--format", "json"), ("--against", "before.yaml")])
def test_without_a_variable_that_an_option_needs_there_is_no_plan_and_that_is_said(
    file: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(file.parent)
    (file.parent / "before.yaml").write_text(TEXT)
    file.write_text(TYPED)
    result = cli("plan", "shop.yaml", *more)
    assert result.exit_code == 1
    if "json" in more:
        content = json.loads(result.stdout)
        assert not content["ok"]
        assert [found["code"] for found in content["diagnostics"]] == ["GB014"]
    else:
        assert UNSET in result.stdout + result.stderr
        assert "same" not in result.stdout


def test_a_variable_that_the_other_version_needs_is_asked_for(
    file: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    (file.parent / "before.yaml").write_text(TYPED)
    result = cli("plan", "shop.yaml", "--against", "before.yaml")
    assert result.exit_code == 1
    assert UNSET.replace("shop", "before") in result.stdout + result.stderr


def test_a_target_that_there_is_not_is_told_beside_what_is_not_set(file: Path, cli: Cli) -> None:
    file.write_text(TYPED)
    result = cli("plan", str(file), "--target", "nonsense")
    assert result.exit_code == 1
    assert "GB108" in result.stdout + result.stderr
    assert "GB014" in result.stdout + result.stderr


def test_a_secret_that_no_text_can_stand_for_is_named(file: Path, cli: Cli) -> None:
    file.write_text(TYPED.replace("${env:MOST}", "${secret:shop/most}"))
    result = cli("plan", str(file))
    assert result.exit_code == 1
    told = result.stdout + result.stderr
    assert f"{file}:9:30: error[GB409]: source `clicks`: `max_files_per_trigger` is a secret" in told


@pytest.mark.parametrize(
    "line",
    [
        "checkpoints: ${env:ROOT}/of",
        "parameters: {least: 1, root: {type: string, default: '${env:ROOT}'}}\ncheckpoints: ${root}",
        "spark: {spark.sql.shuffle.partitions: '${env:ROOT}'}",
    ],
)
def test_without_the_place_of_the_checkpoints_nothing_is_called_new(file: Path, cli: Cli, line: str) -> None:
    head, _, rest = TEXT.partition("parameters:\n  least: {type: integer, default: 1}\n")
    least = "" if "parameters" in line else "parameters: {least: 1}\n"
    file.write_text(f"{head}{least}{line}\n{rest}")
    result = cli("plan", str(file))
    assert result.exit_code == 1
    assert "`ROOT` is not set" in result.stdout + result.stderr
    assert "new" not in result.stdout


def test_a_place_whose_variable_is_not_set_is_not_told_to_be_another(
    file: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DIR")
    monkeypatch.delenv("WORD")
    result = cli("plan", str(file))
    assert result.exit_code == 0
    assert "target out: same" in result.stdout
    assert "whether `path` of source `clicks` is the place that it was can't be known" in result.stdout
    file.write_text(TEXT.replace("[page]", "[n]"))
    result = cli("plan", str(file))
    assert "`group_by` was" in result.stdout
    assert "`path` was" not in result.stdout
