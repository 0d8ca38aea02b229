"""`gem-bundle stop`: what reaches the run, and whom nobody can ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.run import asking
from gem_bundle.runs.record import TargetState
from gem_bundle.runs.requests import Request, who
from tests.clock import set_clock
from tests.core.cli.known_runs import ELSEWHERE, GONE, PIPELINE, asked, known_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


@pytest.fixture
def root(project: Callable[..., Path]) -> Path:
    return project("clicks.yaml", PIPELINE).parent / "checkpoints"


def test_a_run_is_asked_to_stop_also_one_on_another_machine(cli: Cli, root: Path) -> None:
    record = known_run(root, process=ELSEWHERE)
    result = cli("stop", "clicks.yaml")
    assert (result.exit_code, result.stdout) == (
        0,
        "clicks: asked process 4711 on spark-1 to stop, when the running micro-batches have ended.\n",
    )
    assert asked(root, record) == [Request("stop", by=who())]
    cli("stop", "clicks.yaml", "--now")
    assert asked(root, record) == [Request("stop", now=True, by=who())]


def test_single_targets_are_asked_of_the_runs_that_have_them(cli: Cli, root: Path) -> None:
    one = known_run(root, "1", targets={"table": TargetState("running")})
    other = known_run(root, "2", targets={"other": TargetState("running")})
    assert cli("stop", "clicks.yaml", "--target", "other").exit_code == 0
    assert (asked(root, one), asked(root, other)) == ([], [Request("stop", "other", by=who())])
    wrong = cli("stop", "clicks.yaml", "--target", "tabel")
    assert (wrong.exit_code, "GB108" in wrong.stderr, asked(root, one)) == (1, True, [])


def test_where_nothing_is_alive_there_is_nobody_to_ask(cli: Cli, root: Path) -> None:
    assert "GB517" in cli("stop", "clicks.yaml").stderr
    record = known_run(root, process=GONE)
    result = cli("stop", "clicks.yaml")
    assert result.exit_code == 1
    assert "error[GB517]: no run of `clicks` is alive" in result.stderr
    assert "died, its process is gone" in result.stderr
    assert asked(root, record) == []


@pytest.mark.parametrize(
    ("fields", "status"), [({"state": "stopped"}, 0), ({"state": "failed"}, 1), ({"process": GONE}, 1)]
)
def test_waiting_ends_with_the_run(
    cli: Cli,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, object],
    status: int,
) -> None:
    record = known_run(root)
    set_clock(monkeypatch, asking, sleep=lambda _: known_run(root, record.id, **fields))
    result = cli("stop", "clicks.yaml", "--wait")
    assert result.exit_code == status
    assert "after 10.0 s" in result.stdout


def test_waiting_for_a_target_ends_when_it_has_stopped(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = known_run(root)
    stopped = {**record.targets, "table": TargetState("stopped")}

    def step(_: float) -> None:
        asked(root, record)
        known_run(root, record.id, targets=stopped)

    set_clock(monkeypatch, asking, sleep=step)
    result = cli("stop", "clicks.yaml", "--target", "table", "--wait")
    assert (result.exit_code, "  table: stopped" in result.stdout.splitlines()) == (0, True)


def test_a_run_that_may_not_be_meant_is_left_alone(cli: Cli, root: Path) -> None:
    record = known_run(root)
    for arguments, code in [(("--profile", "prdo"), "GB013"), (("-p", "rot=there"), "GB010")]:
        result = cli("stop", "clicks.yaml", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"error[{code}]" in result.stderr
    assert asked(root, record) == []


def test_a_run_is_stopped_whatever_is_wrong_elsewhere_in_the_file(cli: Cli, root: Path) -> None:
    record = known_run(root)
    wrong = "mode: bath\ntransforms: {t: {gem: nothing, options: {x: '${env:GEM_BUNDLE_ABSENT}'}}}\n"
    root.with_name("clicks.yaml").write_text(PIPELINE + wrong)
    assert cli("stop", "clicks.yaml").exit_code == 0
    assert asked(root, record) == [Request("stop", by=who())]


@pytest.mark.parametrize("command", ["stop", "resume"])
def test_a_target_that_runs_is_asked_whatever_the_file_says_of_it(cli: Cli, root: Path, command: str) -> None:
    file, record = root.with_name("clicks.yaml"), known_run(root)
    request = Request("stop" if command == "stop" else "resume", "other", by=who())
    for text in (
        PIPELINE.replace("other: {gem: file, input:", "other: {gem: file, inputt:"),
        PIPELINE[: PIPELINE.index("  other:")],
    ):
        file.write_text(text)
        result = cli(command, "clicks.yaml", "--target", "other")
        assert (result.exit_code, asked(root, record)) == (0, [request]), result.output
        wrong = cli(command, "clicks.yaml", "--target", "tabel", "--target", "other")
        assert (wrong.exit_code, "GB108" in wrong.stderr, asked(root, record)) == (1, True, [])
    known_run(root, process=GONE)
    result = cli(command, "clicks.yaml", "--target", "other")
    assert (result.exit_code, "error[GB517]" in result.stderr) == (1, True)
