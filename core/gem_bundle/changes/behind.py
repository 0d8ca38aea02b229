"""What the conditions ask that stand behind a node, as far as Spark puts them before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.carried import asked_before_join, equal_before_join
from gem_bundle.changes.clauses import asked_by
from gem_bundle.changes.conditions import asked_before, equal_below, pushed_below
from gem_bundle.changes.forms import form_made_by, tree_of
from gem_bundle.changes.made import as_made_before
from gem_bundle.changes.needed import of_input
from gem_bundle.lineage import UNCHANGED, Lineage, Made

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form

_Flags = dict[str, tuple[Made, dict[str, Made]]]
"""Columns that are computed, each with how, and with how the columns that it is computed of are made."""


def asked_behind(flow: Flow, name: str, *, sides: bool = False, far: bool = True) -> set[str]:
    """The columns of a node's inputs that conditions behind it ask for, and that Spark puts before it.

    Each is behind the position of its input, as in `gem_bundle.lineage.Made.uses`.

    Args:
        flow: The version.
        name: The node.
        sides: Each is behind its side of a join.
        far: By the conditions of pairs of what comes of the node by another join too.
    """
    found: set[str] = set()
    for _, lineage, known in conditions_behind(
        flow, name, pairs=True, far=far, flags=True, sides=sides, joins=True
    ):
        found |= as_they_were(known, lineage.asks)
    return found


def as_they_were(known: Mapping[str, Made], uses: Iterable[str] | None) -> set[str]:
    """Which columns some others are, or are taken out of, without those that are made otherwise.

    Args:
        known: How the columns are made.
        uses: Some of them, each behind the position of its input.
    """
    columns = {use.partition(":")[2] for use in uses or ()}
    passed = (known[key] for key in columns & known.keys())
    return {use for made in passed if lacks_what_it_is_of(made) for use in made.uses or ()}


def lacks_what_it_is_of(made: Made) -> bool:
    """Whether something is null where what it is made of is: it is a column, or a field taken out of one."""
    return made.rule in UNCHANGED or made.whole == "unpacked"


def conditions_behind(
    flow: Flow,
    name: str,
    *,
    pairs: bool = False,
    far: bool = False,
    flags: bool = False,
    sides: bool = False,
    joins: bool = False,
    groups: bool = False,
) -> Iterator[tuple[str, Lineage, Mapping[str, Made]]]:
    """The nodes whose conditions Spark puts before one, with what the columns before them are made of.

    Args:
        flow: The version.
        name: The node.
        pairs: Those of pairs too, as `pushed_below` has them.
        far: Those of pairs of what comes of the node by another join too.
        flags: What columns ask for that are conditions themselves too, over those they are made of.
        sides: What a join makes of columns is told by its sides, not by the positions of its inputs.
        joins: Other joins too, with what they ask and want to be equal of what comes of the node alone, and
            the conditions behind groups by whose keys they go.
        groups: What groups ask of the rows that get into them too.

    Yields:
        The id of each of them, what it does, and how the columns that come to it are made of those that come
        to the node.
    """
    lineage = flow.lineage(name)
    start: tuple[str, str, dict[str, Made], _Flags]
    made_of = {} if lineage is None else _by_side(lineage) if sides else dict(lineage.columns)
    start = name, "", made_of, {}
    waiting = [start]
    while waiting:
        before, read, known, computed = waiting.pop()
        for other in flow.side.readers_of.get(before, ()):
            inputs = flow.side.nodes[other].inputs
            if len(inputs) != 1:
                places = [
                    place for place, edge in enumerate(inputs) if (edge.node, edge.output) == (before, read)
                ]
                for place in places if joins else ():
                    equals = equal_before_join(flow, other, place, name)
                    asks = asked_before_join(flow, other, place, name)
                    yield other, Lineage({}, rows=Made(uses=asks), asks=asks, equals=equals), known
                waiting += [(other, "", _of_side(flow, other, place, known), {}) for place in places]
                continue
            if inputs[0].output != read:
                continue
            for output in flow.outputs(other):
                lineage = flow.lineage(other, output)
                if lineage is None:
                    continue
                if lineage.kept and lineage.kept.rows:
                    tables = sorted(set().union(*lineage.kept.tables.values()))
                    waiting += [(other, output, _of_table(lineage, table, known), {}) for table in tables]
                    continue
                if lineage.kept:
                    edge = inputs[0]
                    if groups and (before_them := lineage.before_groups) is not None:
                        yield other, before_them, known
                        continue
                    uses = frozenset(
                        use for use in lineage.asks or () if name in asked_before(flow, edge, use)
                    )
                    equals = tuple(e for e in lineage.equals if name in equal_below(flow, edge, e))
                    if uses or equals:
                        yield other, replace(lineage, rows=Made(uses=uses), asks=uses, equals=equals), known
                    if joins:
                        keys = lineage.columns.keys() - lineage.kept.values
                        by: dict[str, Made] = {
                            key: as_made_before(known, lineage.columns[key]) for key in keys
                        }
                        waiting.append((other, output, by, {}))
                    continue
                if name in pushed_below(flow, other, output, pairs=pairs, far=far, through=joins):
                    yield other, lineage, known
                    for asked, columns in _of_computed(lineage, computed) if flags else ():
                        yield other, replace(lineage, rows=Made(uses=asked), asks=asked), columns
                made = {key: as_made_before(known, column) for key, column in lineage.columns.items()}
                waiting.append((other, output, made, _flags_behind(lineage, known, computed)))


def _flags_behind(lineage: Lineage, known: dict[str, Made], computed: _Flags) -> _Flags:
    """The columns behind a node that it computes, or hands on that have been, with what they are made of."""
    found = {key: (made, known) for key, made in lineage.columns.items() if made.rule not in UNCHANGED}
    for key, made in lineage.columns.items():
        before = "".join(of_input(made.uses or (), 0)) if made.rule == "=" else ""
        if before in computed:
            found[key] = computed[before]
    return found


def _of_computed(lineage: Lineage, computed: _Flags) -> Iterator[tuple[frozenset[str], Mapping[str, Made]]]:
    """What a node asks for by columns that are computed, each with how the columns are made that it is over.

    It is what they would be null without, and of one that is its condition what that asks for.
    """
    condition = "".join(of_input(lineage.rows.uses or (), 0)) if lineage.rows.rule == "=" else ""
    for name in {condition, *of_input(lineage.asks or (), 0)} & computed.keys():
        made, columns = computed[name]
        form = form_made_by(made)
        if form is None:
            continue
        asked = frozenset(asked_by(form) if name == condition else _needed_by(form))
        if asked:
            yield asked, columns


def _needed_by(form: Form) -> set[str]:
    """The columns that an expression would be null without."""
    from gem_bundle.expressions.asked import needed_by

    tree = tree_of(form)
    return set() if tree is None else needed_by(tree)


def _of_side(flow: Flow, name: str, place: int, known: Mapping[str, Made]) -> dict[str, Made]:
    """How columns behind a union or a join are made of those before one of its inputs, without all others.

    Args:
        flow: The version.
        name: The node.
        place: The position of the input.
        known: How the columns of that are made.
    """
    lineage = flow.lineage(name)
    columns = lineage.columns if lineage is not None else {}
    own = {key: of_input(made.uses or (), place) for key, made in columns.items() if made.rule in UNCHANGED}
    return {
        key: as_made_before(known, Made("=", frozenset(f"0:{column}" for column in found)))
        for key, found in own.items()
        if found
    }


def _of_table(joined: Lineage, table: int, known: Mapping[str, Made]) -> dict[str, Made]:
    """The same of one of the tables of an input that is joined with itself."""
    of = joined.kept.tables if joined.kept is not None else {}
    own = {key: joined.columns[key] for key, numbers in of.items() if numbers == frozenset({table})}
    return {key: as_made_before(known, made) for key, made in own.items() if made.rule in UNCHANGED}


def _by_side(joined: Lineage) -> dict[str, Made]:
    """How the columns behind a join are made: what they use is told by its sides, not by its inputs."""

    def placed(key: str, made: Made) -> Made:
        of = joined.sides_of(key)
        if made.uses is None or len(of) != 1:
            return made
        return replace(made, uses=frozenset(f"{min(of)}:{use.partition(':')[2]}" for use in made.uses))

    return {key: placed(key, made) for key, made in joined.columns.items()}
