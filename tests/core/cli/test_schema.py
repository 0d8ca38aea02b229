"""`gem-bundle schema`: the JSON Schema of pipeline files and of their tests, printed or written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.pipeline.document import parse
from gem_bundle.testing.declared.files import find_test_files
from gem_bundle.testing.declared.model import TestFileShape
from tests.core.cli.conftest import PIPELINE
from tests.schemas import validator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.cli.conftest import Cli, Installer


@pytest.mark.usefixtures("acme")
def test_the_schema_knows_the_installed_gems(cli: Cli) -> None:
    result = cli("schema")
    assert (result.exit_code, result.stderr) == (0, "")
    schema = json.loads(result.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    taken = validator(schema)
    assert taken.is_valid(parse(PIPELINE, "orders.yaml").values)
    for old, new in (("max_rows", "max_row"), ("gem: orders\n", "gem: kafka\n"), ("input: incoming", "")):
        assert not taken.is_valid(parse(PIPELINE.replace(old, new), "orders.yaml").values)


@pytest.mark.usefixtures("acme")
def test_it_is_written_to_a_file(cli: Cli, project: Callable[..., Path]) -> None:
    folder = project().parent
    result = cli("schema", "-o", "pipeline.schema.json")
    assert (result.exit_code, result.output) == (0, "")
    assert (folder / "pipeline.schema.json").read_text() == cli("schema").stdout
    assert cli("schema", "--output", "pipeline.schema.json").exit_code == 0


def test_a_place_that_cannot_be_written_to(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    result = cli("schema", "-o", "no/such/folder/schema.json")
    assert result.exit_code == 1
    assert result.stderr == "error: no/such/folder/schema.json: No such file or directory\n"
    assert cli("schema", "-o", ".").exit_code == 2


def test_what_is_missing_is_said(cli: Cli, install: Installer, monkeypatch: pytest.MonkeyPatch) -> None:
    install("bad", "import no_such_module", version="0.3")
    monkeypatch.setenv("GEM_BUNDLE_PLUGINS", "bad,rate")
    result = cli("schema")
    assert result.exit_code == 0
    assert result.stderr == (
        "The gems of `bad-gems 0.3` are missing, they can't be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'\n"
    )
    assert json.loads(result.stdout)["$defs"]["sources"].keys() == {"generate", "rate", "rate_micro_batch"}
    assert cli("schema", "--quiet").stderr == ""


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("file", list(find_test_files(ROOT / "examples")))
def test_the_schema_of_test_files(cli: Cli, file: str) -> None:
    result = cli("schema", "--tests")
    assert (result.exit_code, result.stderr) == (0, "")
    taken = validator(json.loads(result.stdout))
    text = Path(file).read_text()
    assert [error.message for error in taken.iter_errors(parse(text, file).values)] == []
    for old, new in (("steps:", "step:"), ("add:", "adds:"), ("tests:", "test:")):
        assert old in text
        assert not taken.is_valid(parse(text.replace(old, new), file).values)


def test_the_schema_of_test_files_takes_what_is_a_text_for_those_who_read_it(cli: Cli) -> None:
    taken = validator(json.loads(cli("schema", "--tests").stdout))
    test = """
    x-rows: &rows [{id: 1}]
    environment: {PORT: 9092, FAST: true, HOST: h}
    secrets: {kafka/password: 123}
    tests:
      t: {steps: [{add: {ticks: *rows}, expect: {screen: *rows}}]}
    """
    values = parse(test, "t.test.yaml").values
    assert taken.is_valid(values)
    TestFileShape.model_validate({key: value for key, value in values.items() if key != "x-rows"})
