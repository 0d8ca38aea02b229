"""Which of the distributions that are needed the index in use hasn't got."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError
from gem_bundler.dependencies.download import download
from gem_bundler.dependencies.installed import closure, origin, version
from gem_bundler.dependencies.needed import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundler.bundle.target_platform import Target


def missing_from_index(requirements: Iterable[str], target: Target) -> tuple[str, ...]:
    """Of all that some requirements need, ``name==version`` of what pip doesn't find for a target.

    What was installed here from an index is there, so pip is asked for the rest only.

    Args:
        requirements: As PEP 508 has it.
        target: What they are needed for.

    Raises:
        GemError: GB640 without pip or with one that is too old, GB644 when the index can't be reached.
    """
    asked = tuple(requirements)
    here = closure(asked, target.markers())
    doubtful = [f"{name}=={version(found)}" for name, found in here.items() if origin(found) != "index"]
    doubtful += sorted(text for text in asked if name_of(text) not in here)
    return tuple(text for text in doubtful if not _is_there(text, target))


def _is_there(requirement: str, target: Target) -> bool:
    with tempfile.TemporaryDirectory(prefix="gem-bundle-") as folder:
        try:
            download([requirement], target, Path(folder), dependencies=False)
        except GemError as error:
            if error.code != "GB642":
                raise
            return False
    return True
