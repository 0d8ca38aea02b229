"""How text is laid out: straight columns, lines that fit a terminal, whole lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.formats.text import as_text
from gem_bundle.cli.output import aligned, counted, wrapped
from gem_bundle.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = [("a", "bb", "one two three four five six seven eight nine ten"), ("aaa", "b", "one")]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def of_width(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))

    return of_width


def test_a_row_is_a_line_where_there_is_no_terminal() -> None:
    assert aligned(ROWS, "  ") == [f"  a    bb  {ROWS[0][2]}", "  aaa  b   one"]
    assert aligned([]) == []


def test_a_long_last_column_is_wrapped_on_a_terminal(terminal: Callable[[int], None]) -> None:
    terminal(40)
    assert aligned(ROWS) == [
        "a    bb  one two three four five six",
        "         seven eight nine ten",
        "aaa  b   one",
    ]


def test_a_narrow_terminal_still_gets_words(terminal: Callable[[int], None]) -> None:
    terminal(10)
    assert wrapped("one two three", "a heading: ", "  ") == ["a heading: one two three"]


def test_no_text_is_no_trailing_space(terminal: Callable[[int], None]) -> None:
    assert wrapped("", "  ") == [""]
    terminal(80)
    assert wrapped("", "  ") == [""]


@pytest.mark.parametrize(("number", "text"), [(0, "0 jars"), (1, "1 jar"), (2000, "2,000 jars")])
def test_counted(number: int, text: str) -> None:
    assert counted(number, "jar") == text


@pytest.mark.parametrize(
    ("diagnostic", "text"),
    [
        (Diagnostic("GB107", "error", "no target"), "error[GB107]: no target"),
        (Diagnostic("GB1", "note", "m", place=Place("f.yaml")), "f.yaml: note[GB1]: m"),
        (
            Diagnostic("GB1", "note", "m", place=Place("f", 2, 3), hint="do\nit"),
            "f:2:3: note[GB1]: m\n    do\n    it",
        ),
        (Diagnostic("GB1", "error", "two\nlines"), "error[GB1]: two\n    lines"),
        (Diagnostic("GB1", "error", ""), "error[GB1]: "),
    ],
)
def test_a_diagnostic_as_text(diagnostic: Diagnostic, text: str) -> None:
    assert as_text(diagnostic) == text


def test_the_parts_of_a_diagnostic_are_painted_by_their_roles() -> None:
    diagnostic = Diagnostic("GB1", "error", "m", place=Place("f", 2, 3), hint="do")
    painted = as_text(diagnostic, lambda text, role: f"<{role}>{text}</>")
    assert painted == "<place>f:2:3:</> <error>error[GB1]:</> m\n<hint>    do</>"
