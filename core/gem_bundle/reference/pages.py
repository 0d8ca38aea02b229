"""Pages that are kept as files: written, and compared with what they would be now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MARK = "<!-- Generated from what is installed, by gem_bundle.reference: edits are lost. -->"
"""The first line of every page; a file without it is somebody's own, and is left alone."""


def as_file(page: str) -> str:
    """A page as its file holds it."""
    return f"{MARK}\n\n{page.strip()}\n"


def stale(folder: Path, pages: Mapping[str, str]) -> dict[str, str]:
    """What in a folder is not as it should be: the names of files, and what is wrong with each.

    Args:
        folder: Where the pages are kept.
        pages: The pages by the names of their files, relative to the folder.
    """
    found = dict.fromkeys(_kept(folder) - pages.keys(), "no such page any more")
    for name, page in pages.items():
        file = folder / name
        if not file.is_file():
            found[name] = "missing"
        elif file.read_text(encoding="utf-8") != as_file(page):
            found[name] = "out of date"
    return dict(sorted(found.items()))


def write(folder: Path, pages: Mapping[str, str]) -> dict[str, str]:
    """Bring a folder up to date.

    Args:
        folder: Where the pages are kept.
        pages: The pages by the names of their files, relative to the folder.

    Returns:
        What was not as it should be, as `stale` tells it.
    """
    wrong = stale(folder, pages)
    for name in wrong:
        file = folder / name
        if name in pages:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(as_file(pages[name]), encoding="utf-8")
        else:
            file.unlink()
    return wrong


def _kept(folder: Path) -> set[str]:
    """The generated pages in a folder, by their marks."""
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*.md")
        if file.read_text(encoding="utf-8").startswith(MARK)
    }
