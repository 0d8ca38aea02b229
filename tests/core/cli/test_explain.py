"""`gem-bundle explain`: the rule behind a code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle import codes
from gem_bundle.codes import CODES, Code

if TYPE_CHECKING:
    from tests.core.cli.conftest import Cli

LATE = Code(
    "GB399",
    "warning",
    "rows come late",
    why="Rows behind the watermark\nare dropped.\n\nThat can't be undone.",
    breaks="delay: 0 seconds\n\nor less",
    keeps="delay: 1 minute",
    source="guide, *Handling Late Data*",
)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codes.CODES, "GB399", LATE)


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("code", ["GB399", "gb399"])
def test_a_code(code: str, cli: Cli) -> None:
    result = cli("explain", code)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "warning[GB399]: rows come late\n"
        "\nRows behind the watermark are dropped.\n"
        "\nThat can't be undone.\n"
        "\nBreaks it\n\n    delay: 0 seconds\n\n    or less\n"
        "\nKeeps it\n\n    delay: 1 minute\n"
        "\nFrom: guide, *Handling Late Data*\n"
    )


@pytest.mark.usefixtures("late")
def test_as_json(cli: Cli) -> None:
    found = json.loads(cli("explain", "GB399", "--format", "json").stdout)
    assert (found["code"], found["keeps"]) == ("GB399", "delay: 1 minute")
    listed = json.loads(cli("explain", "--format", "json").stdout)
    assert [code["code"] for code in listed] == list(CODES)


def test_all_codes(cli: Cli) -> None:
    stdout = cli("explain").stdout
    listed = [line.split()[0] for line in stdout.splitlines() if line.startswith("  ")]
    assert listed == list(CODES)
    assert stdout.startswith("The file\n  GB001  error")


@pytest.mark.parametrize("code", CODES)
def test_every_code_can_be_explained(code: str, cli: Cli) -> None:
    first, *_ = cli("explain", code).stdout.splitlines()
    assert first == f"{CODES[code].severity}[{code}]: {CODES[code].title}"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("GB10", "Did you mean `GB101`? `gem-bundle explain` lists them all."),
        ("GB", "There is no code `GB`. `gem-bundle explain` lists them all."),
        ("gb319", "Did you mean `GB310`?"),
        ("GB999", "There is no code `GB999`. `gem-bundle explain` lists them all."),
        ("ACME001", "Codes that don't begin with GB are a plugin's own"),
    ],
)
def test_an_unknown_code(code: str, hint: str, cli: Cli) -> None:
    result = cli("explain", code)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"There is no code `{code}`." in result.stderr
    assert hint in result.stderr
