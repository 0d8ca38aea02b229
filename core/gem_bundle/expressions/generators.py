"""Functions that make several rows of one, with several columns: which those are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gem_bundle.expressions.analysis import parsed
from gem_bundle.expressions.kinds import marks_of
from gem_bundle.expressions.names import split_alias
from gem_bundle.expressions.scope import Scope
from gem_bundle.facts import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.schema import DataType

_OUTER = "_outer"
_Null = Literal["never", "maybe", "unknown"]
_Given = list[tuple[str, str | None, _Null]]


@dataclass(frozen=True, slots=True)
class Generated:
    """What a generator makes.

    Args:
        call: The generator, without the names that it is given.
        columns: Its columns.
        nulls: For each of them whether Spark takes it for one that may be null.
    """

    call: str
    columns: tuple[Column, ...]
    nulls: tuple[_Null, ...]


def generated(expression: str, columns: Sequence[Column] | None) -> Generated | None:
    """The columns of a generator that makes several, as ``explode(m) as (k, v)`` and ``stack(2, …)`` do.

    Args:
        expression: An expression, with the names that it gives.
        columns: The columns it is over.

    Returns:
        None where it is something else, makes one column, or which ones can't be told.
    """
    tree = parsed(expression) if split_alias(expression)[1] is None else None
    if tree is None:
        return None
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare
    from gem_bundle.expressions.walk import Walk

    names = [part.name for part in tree.expressions] if isinstance(tree, exp.Aliases) else None
    call = bare(tree.this if isinstance(tree, exp.Aliases) else tree)
    if not isinstance(call, exp.Anonymous):
        return None
    walk = Walk(Scope(columns))
    types = [walk.run(argument).type for argument in call.expressions]
    given = _given(call, types)
    if given is None or len(given) < 2 or (names is not None and len(names) != len(given)):
        return None
    if walk.unsteady is not None or any(marks_of(kind) for kind in types):
        return None  # how far it goes that is known of single columns isn't known of these
    made = (
        Column(name, kind)
        for name, (_, kind, _) in zip(names or [n for n, _, _ in given], given, strict=True)
    )
    return Generated(call.sql(dialect="spark"), tuple(made), tuple(null for _, _, null in given))


def _given(call: exp.Anonymous, types: Sequence[DataType | None]) -> _Given | None:
    """The names, types and nulls of what a generator makes, as it calls them itself."""
    name = call.name.lower()
    plain = name.removesuffix(_OUTER)
    first = types[0] if types else None
    if plain in {"explode", "posexplode"} and first is not None:
        never: _Null = "maybe" if name.endswith(_OUTER) else "never"
        unknown: _Null = "maybe" if name.endswith(_OUTER) else "unknown"
        found: _Given = [("pos", "int", never)] if plain == "posexplode" else []
        if first.name == "array":
            return [*found, ("col", str(first.parts[0]), unknown)]
        if first.name == "map":
            key, value = map(str, first.parts)
            return [*found, ("key", key, never), ("value", value, unknown)]
    if plain == "inline" and first is not None and first.name == "array" and first.parts[0].name == "struct":
        return [
            (f.name, str(f.type), "maybe" if name.endswith(_OUTER) else "unknown")
            for f in first.parts[0].fields
        ]
    if name == "json_tuple" and len(types) > 1:
        return [(f"c{place}", "string", "maybe") for place in range(len(types) - 1)]
    if name == "stack" and len(types) > 1:
        return _stacked(call, types)
    return None


def _stacked(call: exp.Anonymous, types: Sequence[DataType | None]) -> _Given | None:
    rows = call.expressions[0].name
    if not rows.isdecimal() or not int(rows):
        return None
    width = -(-(len(types) - 1) // int(rows))
    kinds = [None if kind is None else str(kind) for kind in types[1:]]
    return [(f"col{place}", _same(kinds[place::width]), "maybe") for place in range(width)]


def _same(kinds: Sequence[str | None]) -> str | None:
    """The type of what stands in one column: Spark takes no others beside it but nulls."""
    found = {kind for kind in kinds if kind != "void"}
    return found.pop() if len(found) == 1 else None
