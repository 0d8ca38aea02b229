"""How formats that are read elsewhere name a file: from the root of the checked out repository."""

from __future__ import annotations

import os
from pathlib import Path

WORKSPACE = "GITHUB_WORKSPACE"


def checkout() -> Path:
    """The folder that files are named from: GitHub's checkout where we are in one, else the current one."""
    here = Path.cwd()
    workspace = os.environ.get(WORKSPACE)
    if workspace and here.is_relative_to(workspace):
        return Path(workspace)
    return here


def relative(file: str, root: Path) -> str:
    """The file's path from the root with slashes; absolute where it lies elsewhere.

    Args:
        file: The file as the user named it, from the current folder.
        root: An absolute folder.
    """
    path = Path(os.path.abspath(file))  # noqa: PTH100 (resolving links would name another file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
