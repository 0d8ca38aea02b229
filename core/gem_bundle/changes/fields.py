"""Which fields of a nested column a join keeps in the place of the whole: those that somebody reads.

It is Spark's rule `NestedColumnAliasing`: what is taken out of a column behind a join is taken out before it,
as long as nobody reads the whole, and the fields are fewer than all.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.flow import ALL, values_for
from gem_bundle.changes.forms import form_of
from gem_bundle.changes.parts import lets_through
from gem_bundle.changes.taken import EACH, column_taken, fields_of, taken_by, taken_by_rows, taken_in
from gem_bundle.ddl import DataType, SchemaError, read_type
from gem_bundle.lineage import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.taken import Path, Taken
    from gem_bundle.lineage import Lineage, Made

_NESTED = ("struct<", "array<", "map<")


class _Read(NamedTuple):
    """What is read of one of the columns that a join keeps.

    Args:
        column: The column, behind its side of the join.
        path: The way into it; empty for all of it.
    """

    column: str
    path: Path = ()


class _Given(NamedTuple):
    """What a column behind a join is read for.

    Args:
        read: What of the join's columns.
        is_it: It is what is read, so that a field of it is a field of that.
        fields: What each of its fields is read for, where it is put together of some.
    """

    read: tuple[_Read, ...]
    is_it: bool
    fields: Mapping[str, _Given] = MappingProxyType({})


_NOTHING = _Given((), is_it=False)


def is_nested(kind: str | None) -> bool:
    """Whether a column of a type has fields, or may have.

    Args:
        kind: The type, as `gem_bundle.facts.Column` has it.
    """
    return kind is not None and kind.startswith(_NESTED)


def fields_read(
    flow: Flow, join: str, way: Sequence[tuple[str, int]], left: Mapping[str, Sequence[Made]]
) -> dict[str, list[Path]]:
    """What is read, behind a join and by itself, of the columns that come to it.

    Args:
        flow: The version.
        join: The join.
        way: The readers behind it, nearest first, as `gem_bundle.changes.sides.Side.paths` has them.
        left: The nodes behind it of whose conditions parts are asked before it, each with what is left.

    Returns:
        For each column, behind its side of the join, the ways into it, in the order in which Spark comes upon
        them; an empty one for all of it.
    """
    lineage = flow.lineage(join)
    if lineage is None:
        return {}
    asked = list(_read_of_pairs(lineage))
    given = {key: _of_sides(made, lineage.sides_of(key)) for key, made in lineage.columns.items()}
    for number, (name, position) in enumerate(way):
        node, made = flow.side.nodes[name], flow.lineage(name, _output_on(flow, way, number))

        def of(use: str, given: Mapping[str, _Given] = given) -> _Given:
            # A query tells the columns in its conditions by its tables, which may be in another order.
            return given.get(use.partition(":")[2], _NOTHING)

        if made is None or not lets_through(flow.side, name, made):
            if node.kind == "transform" and made is not None and made.kept is not None:
                return _ways(asked, _read_for_state(made, flow.needed(name), of))
            needed = flow.needed_of(name, position)
            return _ways(
                asked,
                (read for key, one in given.items() if key in needed or ALL in needed for read in one.read),
            )
        conditions = left[name] if name in left else [term.made for term in made.terms] or [made.rows]
        asked = [*(read for rows in conditions for read in _reads(taken_by_rows(rows), of)), *asked]
        known = flow.folded(name, made)
        given = {k: _NOTHING if k in known else _made(column, of) for k, column in made.columns.items()}
    return _ways(asked, (read for one in given.values() for read in one.read))


def kept_fields(kind: str, ways: Iterable[Path]) -> dict[str, str] | None:
    """The fields that are kept of a nested column, each by the way to it, with their types.

    Args:
        kind: The type of the column.
        ways: What is read of it, as `fields_read` has it.

    Returns:
        None where it is kept as a whole.
    """
    try:
        whole = read_type(kind).type
    except SchemaError:
        return None
    found: dict[Path, DataType] = {}
    for way in ways:
        path, reached = _into(whole, way)
        if not path:
            return None
        found.setdefault(path, reached)
    if sum(path[0] == EACH for path in found) > 1:
        return None  # of what is taken apart Spark keeps one field, or all
    found = {p: reached for p, reached in found.items() if not any(p[:n] in found for n in range(1, len(p)))}
    if not found or sum(map(_leaves, found.values())) >= _leaves(whole):
        return None
    return {".".join(path): str(reached) for path, reached in found.items()}


def _output_on(flow: Flow, way: Sequence[tuple[str, int]], number: int) -> str:
    """By which of its outputs a node is read on a way."""
    if number + 1 == len(way):
        return ""
    reader, position = way[number + 1]
    return flow.side.nodes[reader].inputs[position].output


def _ways(asked: Iterable[_Read], last: Iterable[_Read]) -> dict[str, list[Path]]:
    """What is read of each column: what columns are made of stands before what is asked of them."""
    ways: dict[str, list[Path]] = {}
    for read in (*last, *asked):
        ways.setdefault(read.column, []).append(read.path)
    return ways


def _of_sides(made: Made, sides: Iterable[int]) -> _Given:
    """What a column of a join is read for, of its sides."""

    def of(use: str) -> _Given:
        return _Given(tuple(_Read(f"{side}:{use.partition(':')[2]}") for side in sorted(sides)), is_it=True)

    return _made(made, of)


def _read_of_pairs(joined: Lineage) -> Iterator[_Read]:
    """What a join's own condition reads, but for what is asked of one side before it."""
    pairs = joined.kept.pairs if joined.kept is not None else None

    def of(use: str) -> _Given:
        # The columns in a condition are told by its sides.
        return _Given((_Read(use),), is_it=True) if pairs is None or use in pairs else _NOTHING

    yield from _reads(taken_by_rows(joined.rows), of)


def _read_for_state(made: Lineage, needed: set[str], of: Callable[[str], _Given]) -> Iterator[_Read]:
    """What an aggregation reads, or another transform that keeps state."""
    kept = made.kept or Kept()
    for key in kept.keys:
        yield from _reads(taken_by(key), of)
    functions = values_for(kept, needed).values()
    forms = [form_of(text) for found in functions for text in found or ()]
    if not kept.values or None in functions or None in forms:
        # It may read all of any column.
        uses = {use for column in (*made.columns.values(), made.rows) for use in column.uses or ()}
        for use in sorted(uses):
            yield from of(use).read
    for form in filter(None, forms):
        yield from _reads(taken_in(form), of)


def _made(made: Made, of: Callable[[str], _Given]) -> _Given:
    """What a column is read for that is made of others."""
    if (taken := column_taken(made)) is not None:
        return _field_of(of(taken[0]), taken[1])
    fields = {name: _given(parts, of) for name, parts in fields_of(made).items()}
    return _given(taken_by(made), of)._replace(fields=fields)


def _given(taken: Iterable[Taken], of: Callable[[str], _Given]) -> _Given:
    """What something is read for that takes parts of columns."""
    parts = list(taken)
    if len(parts) == 1:
        return _field_of(of(parts[0][0]), parts[0][1])
    return _Given(tuple(_reads(parts, of)), is_it=False)


def _reads(taken: Iterable[Taken], of: Callable[[str], _Given]) -> Iterator[_Read]:
    for use, path in taken:
        yield from _field_of(of(use), path).read


def _field_of(given: _Given, path: Path) -> _Given:
    name = path[0].strip("[]").lower() if path else ""
    if name in given.fields:
        return _field_of(given.fields[name], path[1:])
    if not given.is_it:
        return given
    return _Given(tuple(read._replace(path=(*read.path, *path)) for read in given.read), is_it=True)


def _into(kind: DataType, way: Path) -> tuple[Path, DataType]:
    """The last field on a way into a column, and its type: an element alone isn't taken out before."""
    last: tuple[Path, DataType] = (), kind
    for number, step in enumerate(way, 1):
        reached = _step(kind, step)
        if reached is None:
            return (), kind
        # A text in brackets names a field of a struct.
        if kind.name == "struct" or (kind.name == "array" and step != EACH and not step.startswith("[")):
            last = way[:number], reached
        kind = reached
    return last


def _step(kind: DataType, step: str) -> DataType | None:
    if step == EACH:
        return kind if kind.name == "array" else None
    if kind.name == "map":
        return kind.parts[1]
    if kind.name == "array":
        if step.startswith("["):
            return kind.parts[0]
        # A field of the elements is an array of those.
        reached = _step(kind.parts[0], step) if kind.parts[0].name == "struct" else None
        return None if reached is None else DataType("array", parts=(reached,))
    return next((f.type for f in kind.fields if f.name.lower() == step.strip("[]").lower()), None)


def _leaves(kind: DataType) -> int:
    """How many plain values a type has, as Spark counts them."""
    parts = [field.type for field in kind.fields] or kind.parts
    return sum(map(_leaves, parts)) if parts else 1
