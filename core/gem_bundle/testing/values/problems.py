"""What is said of values that don't fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gem_bundle.schema import with_article

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.schema import DataType


class MisfitError(ValueError):
    """A value that its column can't hold.

    Args:
        path: Where it is: the column, then the fields and indexes inside.
        reason: What is wrong, in a sentence that says the value.
    """

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"`{spelled(self.path)}`: {self.reason}" if self.path else self.reason


def misfit(value: object, kind: DataType, hint: str) -> MisfitError:
    """The error that says that a value is none of a type.

    Args:
        value: The value.
        kind: The type.
        hint: What to write.
    """
    return MisfitError((), f"{shortened(value)} is not {with_article(kind)}: {hint}")


def spelled(path: Iterable[str | int]) -> str:
    """A path as people write it: ``items[2].price``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def shortened(value: object, most: int = 80) -> str:
    """A value between backquotes, for a sentence."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"`{text[: most - 1]}…`" if len(text) > most else f"`{text}`"
