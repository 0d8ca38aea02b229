"""`gem-bundle rejected`: what it prints of what was counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle.replay import counts as counting
from gem_bundle.replay.counts import Counted, OfNode, Reason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli

FOUND = Counted(
    (
        Reason("parsed", "not_json", "2026-01-31", 1204, 7, ('{"value":"{oh"}', '{"value":"☂"}')),
        Reason("parsed", "no_text", "2026-01-31", 1, 0, ('{"value":null}',)),
    ),
    (OfNode("held", 1, 0, None), OfNode("parsed", 1204, 1, 7)),
)


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        (
            FOUND,
            'parsed: not_json, 2026-01-31: 1,204\n  {"value":"{oh"}\n  {"value":"☂"}\n'
            'parsed: no_text, 2026-01-31: 1\n  {"value":null}\n'
            "held: 1 row in all\n"
            "parsed: 1,204 rows in all, 1 under more than one reason, 7 replayed already\n",
        ),
        (Counted(), "nothing was rejected\n"),
    ],
)
def test_lines(
    cli: Cli,
    project: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    found: Counted,
    printed: str,
) -> None:
    project("shop.yaml", "pipeline: shop\n")
    monkeypatch.setattr(counting, "counts", lambda *_: found)
    result = cli("rejected", "shop.yaml", "--in", "out/broken")
    assert (result.exit_code, result.stdout) == (0, printed)


def test_json(cli: Cli, project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project("shop.yaml", "pipeline: shop\n")
    monkeypatch.setattr(counting, "counts", lambda *_: FOUND)
    result = cli("rejected", "shop.yaml", "--in", "out/broken", "--format", "json")
    told = json.loads(result.stdout)
    assert told["nodes"][0] == {"node": "held", "rows": 1, "several": 0, "replayed": None}
    (first, _) = told["rejected"]
    assert first == {
        "node": "parsed",
        "reason": "not_json",
        "day": "2026-01-31",
        "rows": 1204,
        "replayed": 7,
        "samples": ['{"value":"{oh"}', '{"value":"☂"}'],
    }


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["shop.yaml"], (True, "")),
        (["shop.yaml", "--in", "out/broken"], (True, "out/broken")),
        (["out/broken"], (False, "out/broken")),
        (["table:main.bad"], (False, "table:main.bad")),
    ],
)
def test_a_file_or_a_place(
    cli: Cli,
    project: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    asked: tuple[bool, str],
) -> None:
    project("shop.yaml", "pipeline: shop\n")
    calls: list[tuple[bool, str]] = []

    def counts(load: object, _: object, place: str = "") -> Counted:
        calls.append((load is not None, place))
        return Counted()

    monkeypatch.setattr(counting, "counts", counts)
    assert cli("rejected", *arguments).exit_code == 0
    assert calls == [asked]
