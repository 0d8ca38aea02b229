"""`gem-bundle run` as a command: what it refuses before anything starts. Runs are tests/integration's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.cli.params import Acceptance
from gem_bundle.errors import GemError
from tests.core.cli.conftest import PIPELINE
from tests.core.cli.left_by_runs import left_by_a_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'FILE'"),
        (["orders.yaml", "-p", "rows"], "`rows` is not of the form name=value"),
        (["orders.yaml", "--log-format", "xml"], "'xml' is not one of"),
        (["orders.yaml", "--stop-timeout", "-1"], "-1.0 is not in the range"),
        (["orders.yaml", "--serve", "here"], "`here` is not of the form [HOST:]PORT, as in 8080"),
        (["orders.yaml", "--accept", "GB999"], "`GB999` is not a code of a change, such as GB423, or"),
        (["orders.yaml", "--accept", "GB105:some"], "`GB105:some` is not a code of a change"),
        (["orders.yaml", "--accept", "GB402"], "`GB402` is not a code of a change"),
        (["orders.yaml", "--accept", "GB454"], "`GB454` is not a code of a change"),
        (["orders.yaml", "--accept", "some:GB423"], "`some:GB423` is not a code of a change"),
        (["orders.yaml", "--accept", "GB444:some"], "`GB444:some` never stops a run, so there is nothing to"),
        (["orders.yaml", "--allow-control"], "`--allow-control` is about the server that `--serve` starts"),
    ],
)
def test_a_wrong_use(arguments: list[str], said: str, cli: Cli) -> None:
    result = cli("run", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("said", "taken"),
    [("GB411", ("GB411", "")), ("gb423:some", ("GB423", "some")), (" GB423: some ", ("GB423", "some"))],
)
def test_a_change_is_accepted_by_its_code_and_the_node_that_it_is_for(
    said: str, taken: tuple[str, str]
) -> None:
    assert Acceptance().convert(said, None, None) == taken


COUNTED = """pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string"}}
transforms:
  counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""


def test_a_change_that_is_accepted_of_another_node_is_told_and_stops(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(COUNTED)
    left_by_a_run(file)
    file.write_text(COUNTED.replace("count(*)", "count(page)"))
    result = cli("run", file, "--accept", "GB423:cuonts")
    assert result.exit_code == 1
    first, second = (result.stderr.index(f"{said}[GB4") for said in ("warning", "error"))
    assert first < second
    assert "warning[GB408]: nothing is accepted by `GB423:cuonts`: it names no node" in result.stderr
    assert "Did you mean `counts`?" in result.stderr
    assert "error[GB423]: mixed: transform `counts`" in result.stderr
    assert "GB408" not in cli("run", file, "--accept", "GB423:cuonts", "--quiet").stderr
    assert "GB408" not in cli("run", file, "--accept", "GB423:out").stderr


def test_what_a_batch_accepts_of_no_node_is_told_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_session(*_: object) -> None:
        raise GemError("no Spark here")

    monkeypatch.setattr("gem_bundle.run.api.open_for", no_session)
    file = tmp_path / "shop.yaml"
    file.write_text(COUNTED.replace("shop\n", "shop\nmode: batch\n", 1).replace(", output_mode: update", ""))
    result = cli("run", file, "--accept", "GB423:cuonts")
    assert "warning[GB408]: nothing is accepted by `GB423:cuonts`: it names no node" in result.stderr


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("arguments", [(), ("--quiet",)])
def test_a_pipeline_with_errors_does_not_start(
    arguments: tuple[str, ...], cli: Cli, project: Callable[..., Path]
) -> None:
    project(text=PIPELINE.replace("input: incoming", "input: incomming"))
    result = cli("run", "orders.yaml", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "orders.yaml:9:29: error[GB101]" in result.stderr
    assert "Did you mean `incoming`?" in result.stderr


@pytest.mark.usefixtures("acme")
def test_a_server_that_strangers_reach_wants_a_token(
    cli: Cli, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEM_BUNDLE_SERVE_TOKEN", raising=False)
    project()
    result = cli("run", "orders.yaml", "--serve", "0.0.0.0:0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB518]: a server at 0.0.0.0 is reached from other machines" in result.stderr


@pytest.mark.usefixtures("acme")
def test_an_unknown_target(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    result = cli("run", "orders.yaml", "--target", "output")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB108]: the pipeline has no target `output`" in result.stderr
