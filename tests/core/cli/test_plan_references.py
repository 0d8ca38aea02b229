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
