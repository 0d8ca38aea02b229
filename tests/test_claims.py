"""Processes that share the fast tests: each file is run by one of them, whoever comes first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.claims import Claims, files_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def items_of(file: Path) -> Iterator[tuple[str, int]]:
    return ((file.stem, number) for number in range(3))


def test_every_test_is_run_by_one_process(tmp_path: Path) -> None:
    files = [Path(f"/tests/{name}.py") for name in "abcde"]
    first, second = (Claims(tmp_path)._ours(files, items_of) for _ in range(2))

    slow = [next(first)]
    quick = [next(second) for _ in range(8)]
    slow += first
    quick += second

    assert [name for name, _ in slow] == ["a"] * 3 + ["e"] * 3
    assert sorted(slow + quick) == [test for file in files for test in items_of(file)]


def test_the_longest_file_is_claimed_first(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in {
        "test_a.py": "1",
        "deep/test_b.py": "22",
        "deep/test_test.py": "22",
        "c.py": "333",
    }.items():
        (tmp_path / name).write_text(text)
    found = files_of([str(tmp_path)], ["test_*.py", "*_test.py"])
    assert [file.name for file in found] == ["test_b.py", "test_test.py", "test_a.py"]
