"""Where declared tests are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIXES = (".test.yaml", ".test.yml")
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})


def is_test_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds declared tests, by its name."""
    name = os.path.basename(path)  # noqa: PTH119 (pytest asks for every file there is)
    return name.endswith(SUFFIXES) and name not in SUFFIXES


def find_test_files(folder: str | os.PathLike[str]) -> Iterator[str]:
    """The test files in a folder and below, in the order of their names.

    Hidden folders and virtual environments are left out.

    Args:
        folder: The folder; the files' names begin as it was given.
    """
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _LEFT_OUT
            and not Path(at, name, "pyvenv.cfg").is_file()
        )
        yield from (str(Path(at, name)) for name in sorted(files) if is_test_file(name))


def declared_beside(pipeline: str | os.PathLike[str]) -> str | None:
    """The test file beside a pipeline file; None when there is none."""
    path = Path(pipeline)
    beside = (path.with_name(f"{path.stem}{suffix}") for suffix in SUFFIXES)
    return next((str(found) for found in beside if found.is_file()), None)
