"""Golden trees: what `gem-bundle new` writes, file by file, in one text for each kind.

``python -m tests.kit.scaffolds`` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.plugins import KINDS
from gem_bundle.scaffold import gem_names, gem_tree, project_names, project_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.scaffold import Tree

GOLDEN = Path(__file__).with_name("golden")
PROJECT = "shop-orders"
GEM = "acme_queue"


def trees() -> Iterator[tuple[str, Tree]]:
    """A tree of each kind, with the name of its golden file."""
    yield "new-project.txt", project_tree(project_names(PROJECT))
    for kind in KINDS:
        yield f"new-gem-{kind}.txt", gem_tree(gem_names(GEM, kind))


def as_text(folder: Path) -> str:
    """All files below a folder, with their paths, their modes and what is in them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return "".join(_as_text(path, folder) for path in found)


def _as_text(path: Path, folder: Path) -> str:
    return (
        f"==== {path.relative_to(folder)} {path.stat().st_mode & 0o777:o}\n{path.read_text(encoding='utf-8')}"
    )


def main() -> None:
    """Write all golden files."""
    import os
    from tempfile import TemporaryDirectory

    from gem_bundle.scaffold import write

    os.umask(0o022)
    GOLDEN.mkdir(exist_ok=True)
    for name, tree in trees():
        with TemporaryDirectory() as folder:
            (GOLDEN / name).write_text(as_text(write(tree, Path(folder)).parent), encoding="utf-8")


if __name__ == "__main__":
    main()
