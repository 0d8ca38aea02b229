"""Files that somebody else may have written: what can be read of them without harm."""

from __future__ import annotations

import json
from typing import Any

from gem_bundle.files import open_folder

NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
"""What is raised of no file, or of a folder where one should be: stores tell one for the other."""

_DEEPEST = 200


def loaded(text: str | bytes) -> Any:
    """What a text says in JSON.

    Raises:
        ValueError: When it isn't JSON, is nested deeper than anything that is meant, or can't be written
            again: a half of a character has no place in a file or on a screen.
    """
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    check_plain(found)
    return found


def check_plain(value: Any) -> None:
    """See to it that a value of JSON can be gone through, and written again.

    Raises:
        ValueError: When it can't be.
    """
    inner = [value]
    for _ in range(_DEEPEST):
        following: list[Any] = []
        for one in inner:
            if isinstance(one, str):
                one.encode()
            elif isinstance(one, dict):
                following += one
                following += one.values()
            elif isinstance(one, list):
                following += one
        if not following:
            return
        inner = following
    raise ValueError("is nested too deep")


def whole(value: object) -> int | None:
    """A value of JSON that is a whole number; None for any other."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def names_in(location: str) -> list[str]:
    """The names in a folder, without those that are hidden; none where it isn't there.

    Args:
        location: Its location.
    """
    return [name for name in open_folder(location).names() if not name.startswith(".")]
