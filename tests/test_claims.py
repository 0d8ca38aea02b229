"""Processes that share the fast tests: each file is run by one of them, whoever comes first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.claims import Claims, longest_first

if TYPE_CHECKING:
    from collections.abc import Iterator


class File(NamedTuple):
    path: Path

    @property
    def nodeid(self) -> str:
        return str(self.path)


def items_of(file: File) -> Iterator[tuple[str, int]]:
    return ((file.path.stem, number) for number in range(3))


def test_every_test_is_run_by_one_process(tmp_path: Path) -> None:
    files = [File(Path(f"/tests/{name}.py")) for name in "abcde"]
    first, second = (Claims(tmp_path)._ours(files, items_of) for _ in range(2))

    slow = [next(first)]
    quick = [next(second) for _ in range(8)]
    slow += first
    quick += second

    assert [name for name, _ in slow] == ["a"] * 3 + ["e"] * 3
    assert sorted(slow + quick) == [test for file in files for test in items_of(file)]


def test_the_longest_file_is_claimed_first(tmp_path: Path) -> None:
    for name, text in {"a": "1", "c": "22", "b": "22", "d": "333"}.items():
        (tmp_path / name).write_text(text)
    found = longest_first(File(tmp_path / name) for name in "abcd")
    assert [file.path.name for file in found] == ["d", "b", "c", "a"]
