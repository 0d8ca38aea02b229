"""No test is judged by a clock: on a busy machine it would fail for nothing. Bounds on time are the benchmark's."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parent
CLOCKS = {
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "thread_time",
    "time",
}
IMPORTS = re.compile(r"^\s*(import time|from time import)\b", re.MULTILINE)
ENDS_A_WAIT = {"deadline", "HANGS"}
"""What a clock may be compared with: it ends a wait that would last for ever, and is far from what one takes."""


def judged(source: str) -> Iterator[int]:
    """The lines of assertions that go by a clock, and not by one that ends a wait."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        told: set[str] = set()
        assignments = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        for assignment in sorted(assignments, key=lambda node: node.lineno):
            if _goes_by_a_clock(assignment.value, told):
                told |= {name for target in assignment.targets for name in _names(target)}
        for node in [node for node in ast.walk(function) if isinstance(node, ast.Assert)]:
            if _goes_by_a_clock(node.test, told) and not ENDS_A_WAIT & set(_names(node.test)):
                yield node.lineno


def _goes_by_a_clock(expression: ast.expr, told: set[str]) -> bool:
    return bool(told & set(_names(expression))) or any(map(_asks_a_clock, ast.walk(expression)))


def _asks_a_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Attribute(value=ast.Name(id="time"), attr=name) | ast.Name(id=name):
            return name in CLOCKS
    return False


def _names(expression: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(expression) if isinstance(node, ast.Name))


def test_no_test_is_judged_by_a_clock() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path, source in sources.items()
        if path != Path(__file__) and IMPORTS.search(source)
        for line in judged(source)
    ]
    assert not found, f"a clock judges, where `scripts/bench --check` should: {', '.join(found)}"


@pytest.mark.parametrize(
    "body",
    [
        "began = time.monotonic(); wait(); assert time.monotonic() - began < 2",
        "began = perf_counter(); wait(); took = perf_counter() - began; assert took < 2",
        "began = time.time(); wait(); took, n = time.time() - began, 1; assert n == 1 and took * 2 < 3, 'slow'",
    ],
)
def test_one_that_is_would_be_found(body: str) -> None:
    assert list(judged(f"def test_it():\n    {body}\n")) == [2]


@pytest.mark.parametrize(
    "body",
    [
        "deadline = time.monotonic() + 60\n    while not done():\n        assert time.monotonic() < deadline",
        "began = time.monotonic(); wait(); assert time.monotonic() - began < HANGS",
        "began = time.monotonic(); found = wait(); assert found == 3",
    ],
)
def test_one_that_ends_a_wait_is_none(body: str) -> None:
    assert list(judged(f"def test_it():\n    {body}\n")) == []
