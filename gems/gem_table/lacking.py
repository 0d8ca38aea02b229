"""What Iceberg can't do of what a merge may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Facts, Finding
from gem_bundle.expressions import check_repeatable, column_of
from gem_bundle.merging import SOURCE
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.merging import MergeOptions
    from gem_bundle.schema import DataType

WITHOUT_TYPE = "Make a number or a time of it."
"""What to do about a sequence that Iceberg has no type for."""

_NO_TYPE = frozenset({"interval", "time"})
"""What that is, by the first word of Spark's name."""


def check_lacking(merge: MergeOptions, facts: Facts) -> Iterator[Finding]:
    """What a merge into a table of another format could ask for, at its place.

    Args:
        merge: How rows are merged.
        facts: The rows.
    """
    anywhere = Facts()
    names = [column.name for column in facts.columns or ()]
    # Where rows are only added, each is computed once.
    only_adds = not merge.updated(names) and merge.delete_when is None and merge.unmatched_by_source is None
    for option, expression in merge.assignments():
        if not only_adds:
            yield from check_repeatable(
                expression,
                anywhere,
                option,
                rule="Iceberg's MERGE takes values that are the same each time they are computed",
                hint="Make a column of it before, and take that.",
            )
    columns = facts.called(SOURCE).columns
    for text in merge.sequence_by if merge.remembers and columns is not None else ():
        kind = column_of(text, "sequence", columns or ()).type
        if kind is not None and is_without_type(kind):
            yield Finding("GB213", told_of_type(text, kind), WITHOUT_TYPE, ("merge", "sequence_by"))


def told_of_type(expression: str, kind: str) -> str:
    """That Iceberg has no type for what puts deletes in order.

    Args:
        expression: What does.
        kind: Its type.
    """
    return f"`{expression}` is {kind}, which Iceberg has no type for: deletes can't be remembered by it"


def is_without_type(kind: str) -> bool:
    """Whether Iceberg has no type for one of Spark's, or for one in it.

    Args:
        kind: A type in DDL.
    """

    def holds(kind: DataType) -> bool:
        inner = [*kind.parts, *(field.type for field in kind.fields)]
        return kind.name.split()[0] in _NO_TYPE or any(map(holds, inner))

    read = type_of(kind)
    return read is not None and holds(read)
