"""`gem-bundle preview` as a command: what it refuses. What it shows is tested in tests/integration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.core.cli.conftest import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orders.yaml"], "Missing argument 'NODE'"),
        (["orders.yaml", "incoming", "-n", "0"], "0 is not in the range"),
        (["orders.yaml", "incoming", "--timeout", "0"], "0.0 is not in the range"),
    ],
)
def test_a_wrong_use(arguments: list[str], said: str, cli: Cli) -> None:
    result = cli("preview", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.usefixtures("acme")
def test_a_pipeline_with_errors_does_not_start(cli: Cli, project: Callable[..., Path]) -> None:
    project(text=PIPELINE.replace("input: incoming", "input: incomming"))
    result = cli("preview", "orders.yaml", "incoming")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "orders.yaml:9:29: error[GB101]" in result.stderr
