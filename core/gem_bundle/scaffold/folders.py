"""Write a folder as a whole or not at all, and never over anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import listed_names
from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from gem_bundle.scaffold.trees import Tree

_MOST_NAMED = 20


def write(tree: Tree, parent: Path) -> Path:
    """Write a tree into a folder of its own.

    The files are written beside it, into a folder that is then renamed: whoever looks sees all of them
    or none. An empty folder is taken, what else is there is left as it is.

    Args:
        tree: The files.
        parent: Where the folder is made; it has to exist.

    Returns:
        The folder.

    Raises:
        GemError: GB803 when something is there.
        OSError: When it can't be written.
    """
    folder = parent / tree.folder
    _refuse_what_is_there(tree, folder)
    beside = Path(mkdtemp(dir=parent, prefix=f".{tree.folder}-"))
    try:
        whole = beside / tree.folder
        for path, text in tree.texts.items():
            file = whole / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        try:
            os.rename(whole, folder)  # noqa: PTH104 (Path.rename is the same, and hides what it does here)
        except OSError:
            _refuse_what_is_there(tree, folder)  # somebody was quicker
            raise
    finally:
        shutil.rmtree(beside)
    return folder


def _refuse_what_is_there(tree: Tree, folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise GemError("GB803", f"`{folder}` is there already, and is no folder", _HINT)
    if folder.is_symlink():
        raise GemError("GB803", f"`{folder}` is there already, and is a link to another folder", _HINT)
    there = [path for path in tree.texts if os.path.lexists(folder / path)]
    others = sorted(found.name for found in folder.iterdir())
    if there:
        what = f"{len(there)} of the files that would be written: {listed_names(there, most=_MOST_NAMED)}"
    elif others:
        what = f"something in it: {listed_names(others, most=_MOST_NAMED)}"
    else:
        return
    raise GemError("GB803", f"the folder `{folder}` is there already, with {what}", _HINT)


_HINT = "Nothing was written. Choose another name, go to another folder, or remove what is there."
