"""JSON that somebody else may have written: what can be read of it without harm."""

from __future__ import annotations

import json
from typing import Any

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
