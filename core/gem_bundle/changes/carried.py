"""What joins behind a join want to be equal of its rows alone: Spark makes keys of it before them.

A join asks what its condition wants of one input alone before it (`PushPredicateThroughJoin`), and what
follows from two of the things that it wants to be equal (`InferFiltersFromConstraints`): from `l.n = r.k`
and `l.m = r.k` that `n` and `m` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.conditions import ASKED_BEFORE, asked_before, equal_below, how_it_joins
from gem_bundle.changes.made import equal_before
from gem_bundle.changes.needed import of_input
from gem_bundle.changes.sides import in_order
from gem_bundle.lineage import Equality, column_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gem_bundle.changes.flow import Flow
    from gem_bundle.lineage import Made

_BY_ROW = frozenset({"filter", "repartition"})


def equal_before_join(flow: Flow, name: str, place: int, below: str) -> tuple[Equality, ...]:
    """What a join, and what stands behind it, wants to be equal of the rows of one of its inputs alone.

    Args:
        flow: The version.
        name: The join.
        place: The position of the input.
        below: The node before it that this has to get before.

    Returns:
        What is to be equal, over the columns of the input, each behind its position.
    """
    edge = flow.side.nodes[name].inputs[place]
    return tuple(equal for equal in _of_input(flow, name, place) if below in equal_below(flow, edge, equal))


def asked_before_join(flow: Flow, name: str, place: int, below: str) -> frozenset[str]:
    """The columns of one of its inputs that a join asks for, whoever they pair with.

    Args:
        flow: The version.
        name: The join.
        place: The position of the input.
        below: The node before it that this has to get before.

    Returns:
        The columns, each behind the position of the input.
    """
    lineage, edge = flow.lineage(name), flow.side.nodes[name].inputs[place]
    if lineage is None or how_it_joins(flow, name) not in (["inner"], ["left_semi"]):
        return frozenset()
    asked = (f"0:{key}" for key in of_input(lineage.asks or (), place))
    return frozenset(use for use in asked if below in asked_before(flow, edge, use))


def _of_input(flow: Flow, name: str, place: int) -> Iterator[Equality]:
    lineage, joins = flow.lineage(name), how_it_joins(flow, name)
    if (
        lineage is None
        or len(joins) != 1
        or _side_at(flow, name, place) not in ASKED_BEFORE.get(joins[0], ())
    ):
        return
    wanted = [*lineage.equals, *_moved(lineage.columns, _behind(flow, name))]
    types = _types(flow, name)
    for equal in dict.fromkeys((*wanted, *_inferred(wanted, types))):
        if all(len(of_input(side, place)) == len(side) for side in equal.sides):
            yield equal


def _side_at(flow: Flow, name: str, place: int) -> int:
    """The side of a join that an input is, 0 for the left one: a query may name them in any order."""
    order = in_order(flow.side.nodes[name], flow.side.gems.get(name))
    return list(order).index(place) if order is not None and place in order else place


def _behind(flow: Flow, name: str) -> Iterator[Equality]:
    """What is asked to be equal behind a node, of the columns that come out of it."""
    for reader in flow.side.readers_of.get(name, ()):
        inputs = flow.side.nodes[reader].inputs
        if len(inputs) > 1:
            for place, edge in enumerate(inputs):
                if edge.node == name and not edge.output:
                    yield from (_placed(equal) for equal in _of_input(flow, reader, place))
            continue
        for output in flow.outputs(reader) if not inputs[0].output else ():
            lineage = flow.lineage(reader, output)
            if lineage is None or lineage.expands:
                continue
            if lineage.kept is None and flow.side.kinds_at(reader) <= _BY_ROW:
                yield from lineage.equals
                yield from _moved(lineage.columns, _behind(flow, reader))
            elif lineage.kept is not None and lineage.kept.values and not lineage.kept.rows:
                keys = lineage.columns.keys() - lineage.kept.values
                yield from _moved({key: lineage.columns[key] for key in keys}, _behind(flow, reader))


def _moved(columns: Mapping[str, Made], behind: Iterator[Equality]) -> Iterator[Equality]:
    """What is to be equal behind a node, by what those of its columns are made of that it may be about."""
    return (moved for equal in behind if (moved := equal_before(columns, equal)) is not None)


def _placed(equal: Equality) -> Equality:
    """The same over the columns of an input, as those of the node they come from."""
    one, other = (frozenset(f"0:{use.partition(':')[2]}" for use in side) for side in equal.sides)
    return equal._replace(sides=(one, other))


def _types(flow: Flow, name: str) -> dict[str, str | None]:
    """The types of the columns that come to a node, each behind the position of its input."""
    found: dict[str, str | None] = {}
    for place, edge in enumerate(flow.side.nodes[name].inputs):
        facts = flow.side.facts.get(edge.key)
        columns = facts.columns if facts is not None else None
        for key, column in zip(column_keys(columns) or (), columns or (), strict=False):
            found[f"{place}:{key}"] = column.type
    return found


def _inferred(wanted: list[Equality], types: Mapping[str, str | None]) -> Iterator[Equality]:
    """What follows from two of the things that are to be equal, as Spark infers it.

    In the one a column is put in the place of the column that it equals in the other.
    """
    for equal in wanted:
        for column, instead in _replaceable(equal, types):
            for other in wanted:
                if other != equal:
                    yield from _with_instead(other, column, instead)


def _replaceable(
    equal: Equality, types: Mapping[str, str | None]
) -> Iterator[tuple[str, tuple[frozenset[str], str]]]:
    """The columns that something may be put in the place of, each with that: a cast stays where it is."""
    if equal.takes_nulls or any(equal.rules) or any(len(side) != 1 for side in equal.sides):
        return
    (one,), (other,) = equal.sides
    kinds = types.get(one), types.get(other)
    if None in kinds:
        return
    from gem_bundle.expressions import common_type

    common = common_type(kinds)
    for column, kind, instead, of_instead in (
        (one, kinds[0], other, kinds[1]),
        (other, kinds[1], one, kinds[0]),
    ):
        if kind == common:
            yield column, (frozenset({instead}), "" if of_instead == common else f"cast {common}")


def _with_instead(equal: Equality, column: str, instead: tuple[frozenset[str], str]) -> Iterator[Equality]:
    uses, rule = instead
    sides, rules = [], []
    for side, of_side in zip(equal.sides, equal.rules, strict=True):
        has_it = column in side
        sides.append((side - {column}) | uses if has_it else side)
        rules.append(f"{of_side}{rule}" if has_it else of_side)
    if tuple(sides) != equal.sides and (sides[0], rules[0]) != (sides[1], rules[1]):
        yield Equality((sides[0], sides[1]), equal.takes_nulls, (rules[0], rules[1]))
