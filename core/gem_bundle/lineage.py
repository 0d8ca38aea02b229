"""What a transform makes of what: which columns come from which, so that an edit's effect can be followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle.facts import Column


@dataclass(frozen=True, slots=True)
class Made:
    """How something is made of the columns that go in.

    Args:
        rule: The rule, in a form that is the same wherever the rule is.
        uses: The columns it is made of, by `column_keys`, each behind the position of its input: ``0:page``.
            None is unknown: any of them.
    """

    rule: str = ""
    uses: frozenset[str] | None = frozenset()


@dataclass(frozen=True, slots=True)
class Kept:
    """What a transform keeps of a stream from one micro-batch to the next.

    Args:
        keys: What it is kept by, in order.
        key_types: The Spark types of those, None where unknown.
        values: What is kept for each column that comes out: for each of its aggregate functions the types of
            Spark's own buffers; one that is never null ends in ``!``. None where that isn't known.
        reads: The columns that come out of it and that it reads itself, whoever else does.
        rows: Whole rows of the inputs are kept, as far as they are needed.
        taken: Which rows get into it, where the transform itself leaves some out before.
    """

    keys: tuple[Made, ...] = ()
    key_types: tuple[str | None, ...] | None = None
    values: Mapping[str, Mapping[str, tuple[str, ...]] | None] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    rows: bool = False
    taken: Made = field(default_factory=Made)


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a transform makes of what.

    Args:
        columns: For each column that comes out, by `column_keys`, how it is made.
        rows: How it is decided which rows come out, and how many.
        kept: What it keeps of a stream; None where it keeps nothing.
    """

    columns: Mapping[str, Made]
    rows: Made = field(default_factory=Made)
    kept: Kept | None = None


def column_keys(columns: Iterable[Column] | None) -> list[str] | None:
    """What columns are told apart by: their names in lower case, with the input's name in front if need be.

    Returns:
        One for each; None when they are unknown, or can't be told apart.
    """
    if columns is None:
        return None
    known = list(columns)
    names = [column.name.lower() for column in known]
    keys = [
        name if names.count(name) == 1 else f"{column.qualifier}.{column.name}".lower()
        for name, column in zip(names, known, strict=True)
    ]
    return keys if len(set(keys)) == len(keys) else None


def passed(columns: Sequence[Column] | None, position: int = 0) -> dict[str, Made] | None:
    """Columns that go through as they are.

    Args:
        columns: The columns of an input.
        position: The position of the input.
    """
    keys = column_keys(columns)
    return None if keys is None else {key: same(key, position) for key in keys}


def same(key: str, position: int = 0) -> Made:
    """A column that is another one as it is."""
    return Made("=", frozenset({f"{position}:{key}"}))
