"""`gem-bundle resume`: the query of a target is asked for again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.runs.requests import Request, who
from tests.core.cli.known_runs import ELSEWHERE, GONE, PIPELINE, asked, known_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


def test_a_run_that_lives_is_asked_to_go_on_with_a_target(cli: Cli, project: Callable[..., Path]) -> None:
    root = project("clicks.yaml", PIPELINE).parent / "checkpoints"
    assert cli("resume", "clicks.yaml").exit_code == 2
    assert "GB517" in cli("resume", "clicks.yaml", "--target", "table").stderr
    record = known_run(root, process=ELSEWHERE)
    result = cli("resume", "clicks.yaml", "--target", "table")
    assert (result.exit_code, result.stdout) == (
        0,
        "clicks: asked process 4711 on spark-1 to go on with `table`.\n",
    )
    assert asked(root, record) == [Request("resume", "table", by=who())]
    unsure = cli("resume", "clicks.yaml", "--target", "table", "--profile", "prdo")
    assert (unsure.exit_code, "GB013" in unsure.stderr, asked(root, record)) == (1, True, [])
    assert "GB108" in cli("resume", "clicks.yaml", "--target", "tabel").stderr
    known_run(root, process=GONE)
    assert (
        "no run of `clicks` with target `table` is alive"
        in cli("resume", "clicks.yaml", "--target", "table").stderr
    )
