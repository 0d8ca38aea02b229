"""Processes that share the fast tests: each file is run by one of them, whoever comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tests.claims import Claims

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Item(NamedTuple):
    path: str
    number: int

    @property
    def nodeid(self) -> str:
        return f"{self.path}::test_{self.number}"


def test_every_test_is_run_by_one_process(tmp_path: Path) -> None:
    items = [Item(f"tests/{file}.py", number) for file in "abcde" for number in range(3)]
    first, second = (cast("Iterator[Any]", Claims(tmp_path)._ours(cast("Any", items))) for _ in range(2))

    slow = [next(first)]
    quick = [next(second) for _ in range(8)]
    slow += first
    quick += second

    assert [item.path for item in slow] == ["tests/a.py"] * 3 + ["tests/e.py"] * 3
    assert sorted(slow + quick) == items
