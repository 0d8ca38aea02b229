"""Which fields of a nested column a join keeps in the place of the whole: those that somebody reads.

It is Spark's rule `NestedColumnAliasing`: what is taken out of a column behind a join is taken out before it,
as long as nobody reads the whole, and the fields are fewer than all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.extracted import EACH, extracted, taken_before
from gem_bundle.changes.forms import form_of
from gem_bundle.changes.needed import ALL, values_for
from gem_bundle.changes.parts import lets_through
from gem_bundle.changes.taken import form_taken, put_over, taken_by_rows, taken_in
from gem_bundle.ddl import SchemaError, read_type
from gem_bundle.lineage import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gem_bundle.changes.extracted import Path
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.taken import Taken
    from gem_bundle.ddl import DataType
    from gem_bundle.lineage import Lineage, Made

_NESTED = ("struct<", "array<", "map<")
_NOTHING: Form = ()
"""The form of what isn't made of columns."""


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

        def of(use: str, given: Mapping[str, Form] = given) -> Form:
            # A query tells the columns in its conditions by its tables, which may be in another order.
            return given.get(use.partition(":")[2], _NOTHING)

        if made is None or not lets_through(flow.side, name, made):
            if node.kind == "transform" and made is not None and made.kept is not None:
                return _ways(asked, _read_for_state(made, flow.needed.behind(name), of))
            needed = flow.needed.of_input(name, position)
            last = (one for key, one in given.items() if key in needed or ALL in needed)
            return _ways(asked, (read for one in last for read in taken_in(one)))
        conditions = left[name] if name in left else [term.made for term in made.terms] or [made.rows]
        asked = [*(read for rows in conditions for read in _reads(taken_by_rows(rows), of)), *asked]
        given = {key: _made(column, of) for key, column in made.columns.items()}
    return _ways(asked, (read for one in given.values() for read in taken_in(one)))


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
        path, reached = taken_before(whole, way)
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


def _ways(asked: Iterable[Taken], last: Iterable[Taken]) -> dict[str, list[Path]]:
    """What is read of each column: what columns are made of stands before what is asked of them."""
    ways: dict[str, list[Path]] = {}
    for column, path in (*last, *asked):
        ways.setdefault(column, []).append(path)
    return ways


def _of_sides(made: Made, sides: Iterable[int]) -> Form:
    """A column of a join, of its sides."""
    each = sorted(sides)

    def of(use: str) -> Form:
        forms = tuple((f"{side}:{use.partition(':')[2]}",) for side in each)
        return forms[0] if len(forms) == 1 else forms

    return _made(made, of)


def _read_of_pairs(joined: Lineage) -> Iterator[Taken]:
    """What a join's own condition reads, but for what is asked of one side before it."""
    pairs = joined.kept.pairs if joined.kept is not None else None
    # The columns in a condition are told by its sides.
    yield from (read for read in taken_by_rows(joined.rows) if pairs is None or read[0] in pairs)


def _read_for_state(made: Lineage, needed: set[str], of: Callable[[str], Form]) -> Iterator[Taken]:
    """What an aggregation reads, or another transform that keeps state."""
    kept = made.kept or Kept()
    for key in kept.keys:
        yield from taken_in(_made(key, of))
    functions = values_for(kept, needed).values()
    forms = [form_of(text) for found in functions for text in found or ()]
    if not kept.values or None in functions or None in forms:
        # It may read all of any column.
        uses = {use for column in (*made.columns.values(), made.rows) for use in column.uses or ()}
        for use in sorted(uses):
            yield from taken_in(of(use))
    for form in filter(None, forms):
        yield from taken_in(put_over(form, of))


def _made(made: Made, of: Callable[[str], Form]) -> Form:
    """A column that is made of others, over those of the join."""
    return put_over(form_taken(made), of)


def _reads(taken: Iterable[Taken], of: Callable[[str], Form]) -> Iterator[Taken]:
    for use, way in taken:
        yield from taken_in(extracted(of(use), way))


def _leaves(kind: DataType) -> int:
    """How many plain values a type has, as Spark counts them."""
    parts = [field.type for field in kind.fields] or kind.parts
    return sum(map(_leaves, parts)) if parts else 1
