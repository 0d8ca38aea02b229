"""`gem-bundle schema`: the JSON Schema of the pipeline file, printed or written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from gem_bundle.pipeline.document import parse
from tests.core.cli.conftest import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli, Installer


@pytest.mark.usefixtures("acme")
def test_the_schema_knows_the_installed_gems(cli: Cli) -> None:
    result = cli("schema")
    assert (result.exit_code, result.stderr) == (0, "")
    schema = json.loads(result.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    taken = Draft202012Validator(schema)
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
    assert json.loads(result.stdout)["$defs"]["sources"].keys() == {"rate", "rate_micro_batch"}
    assert cli("schema", "--quiet").stderr == ""
