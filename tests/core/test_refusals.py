"""Rows that a target learns were refused, where Spark Connect hands them to it one by one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator


def through(deliver: Any, rows: int) -> list[tuple[Any, str, str]]:
    """What is refused of a partition of so many rows, as Spark calls a table function."""
    function = refusals._table_function(deliver)()
    for row in range(rows):
        assert function.eval(row, f"token {row}") is None
    return list(function.terminate())


def odd(rows: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, str, str]]:
    for row, token in rows:
        if row % 2:
            yield token, "odd", f"{row} is odd"


def test_a_partition_is_delivered_once_and_whole() -> None:
    partitions = []

    def deliver(rows: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, str, str]]:
        partitions.append([row for row, _ in rows])
        yield from odd(iter([(3, "token 3")]))

    assert through(deliver, 5) == [("token 3", "odd", "3 is odd")]
    assert partitions == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_no_more_rows_are_kept_than_are_asked_for(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_AHEAD", 2)
    assert through(odd, rows) == [(f"token {n}", "odd", f"{n} is odd") for n in range(1, rows, 2)]


def test_who_tells_nothing_refuses_nothing() -> None:
    def silent(rows: Iterator[tuple[Any, Any]]) -> None:
        list(rows)

    assert through(silent, 3) == []


@pytest.mark.parametrize("taken", [0, 1])
def test_what_it_raises_fails_the_partition(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_AHEAD", 1)

    def broken(rows: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, str, str]]:
        for _ in range(taken):
            next(rows)
        raise ConnectionError("nobody is there")
        yield

    # Nobody takes the rows that come after it: whoever hands them over would wait for ever.
    with pytest.raises(ConnectionError, match="nobody is there"):
        through(broken, 10)


def test_executors_need_not_have_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import cloudpickle

    pickled = cloudpickle.dumps(refusals._table_function(len))  # type: ignore[no-untyped-call]
    monkeypatch.setitem(sys.modules, "gem_bundle.refusals", None)
    assert {"eval", "terminate"} <= set(dir(cloudpickle.loads(pickled)))
