"""Which fields somebody reads of the structs that nodes put together: for the others Spark reads nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.extracted import SIZE, extracted, is_built, is_collection, taken_before
from gem_bundle.changes.forms import columns_in, form_of, is_column, kind_of
from gem_bundle.changes.taken import form_taken, puts_together, taken_by_rows, taken_in
from gem_bundle.ddl import SchemaError, read_type
from gem_bundle.lineage import column_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from gem_bundle.changes.extracted import Path
    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage, Made

    Values = Mapping[str, tuple[str, ...]] | None

_PASSED = frozenset({"filter", "generate", "join", "limit", "repartition", "sample", "sort", "union"})
"""What Spark takes fields out of columns before."""
_MADE_ONE_WITH = frozenset({"filter", "union"})
"""What Spark moves computed columns through, so that it makes one of those before and behind."""
_ALL = "*"
"""All columns of a node."""
_Ways = dict[tuple[str, ...], int]
"""What is read of a column: the ways into it, each with how often a reader computes something of it."""
_Read = tuple[str, tuple[str, ...], int]
"""What is read: the column, behind the position of its input, the way into it, and how often."""
_WHOLE: Path = ()
"""The way to all of a column."""
_ALL_OF_IT: _Ways = {_WHOLE: 1}


class Parts:
    """The fields that are read of the columns of nodes.

    Spark makes one of a field of a struct and what that is put together of: its rules `CollapseProject` and
    `SimplifyExtractValueOps`.

    Args:
        side: The version.
        lineages: What each output of its transforms makes of what, by their ids; None where that isn't known.
    """

    def __init__(self, side: Side, lineages: Mapping[str, Sequence[Lineage | None]]) -> None:
        self._side, self._lineages = side, lineages
        # By node: what is read of its columns.
        self._read: dict[str, dict[str, _Ways]] = {}
        known = [lineage for of_node in lineages.values() for lineage in of_node if lineage is not None]
        if not any(map(_is_put_together, (made for one in known for made in one.columns.values()))):
            return
        for name in reversed(side.order):
            node = side.nodes[name]
            if node.kind == "source":
                continue
            taken: list[_Read] | None = []
            for lineage in lineages.get(name, [None]):
                taken = None if lineage is None or taken is None else [*taken, *self._taken(name, lineage)]
            moves = side.kinds_at(name) <= _MADE_ONE_WITH
            for position, edge in enumerate(node.inputs):
                by_this: dict[str, _Ways] = {} if taken is not None else {_ALL: {}}
                for use, path, often in taken or ():
                    place, _, key = use.partition(":")
                    # A query tells the columns in its conditions by its tables.
                    if int(place) == position or len(node.inputs) > 1:
                        here = by_this.setdefault(key, {})
                        here[path] = here.get(path, 0) + often
                read = self._read.setdefault(edge.node, {})
                for key, given in by_this.items():
                    ways = given if moves else self._taken_before(edge, key, given)
                    of_others = read.setdefault(key, {})
                    of_others |= {way: max(often, of_others.get(way, 0)) for way, often in ways.items()}

    def narrowed(self, name: str, lineage: Lineage) -> Lineage:
        """What a node makes of what, without what nobody reads of its structs.

        Args:
            name: The node.
            lineage: What it makes of what.
        """
        read = self._read.get(name)
        if read is None or _ALL in read or self._stays_apart(name, lineage, read):
            return lineage
        columns = dict(lineage.columns)
        for key, made in lineage.columns.items():
            wanted = read.get(key)
            if not wanted or _WHOLE in wanted or not _is_put_together(made):
                continue
            form = form_taken(made)
            uses = tuple(use for way in wanted for use, _ in taken_in(extracted(form, way)))
            columns[key] = replace(made, uses=frozenset(uses), order=uses)
        return replace(lineage, columns=columns)

    def results(self, name: str, lineage: Lineage, values: Mapping[str, Values]) -> dict[str, Values]:
        """What groups keep for their columns, without what nobody reads of what they put together.

        Args:
            name: The node.
            lineage: What it makes of what.
            values: What it keeps for each column that is read.
        """
        read, found = self._read.get(name), dict(values)
        if read is None or _ALL in read or self._stays_apart(name, lineage, read):
            return found
        for key, functions in values.items():
            made, wanted = lineage.columns.get(key), read.get(key)
            if made is None or not functions or not wanted or _WHOLE in wanted or not _is_put_together(made):
                continue
            form = form_taken(made)
            unread = {*_calls_in(form)}.difference(*(_calls_in(extracted(form, way)) for way in wanted))
            found[key] = {text: types for text, types in functions.items() if _call(text) not in unread}
        return found

    def _stays_apart(self, name: str, lineage: Lineage, read: Mapping[str, _Ways]) -> bool:
        """Whether Spark leaves a node apart from what reads it: its rule `CollapseProject`.

        It doesn't compute anything twice that it has computed once, unless that is cheap. Of what is put
        together only what is taken out of it counts.
        """
        for key, made in lineage.columns.items():
            ways = read.get(key, {})
            if sum(ways.values()) > 1:
                form = form_taken(made)
                each = [
                    (extracted(form, _to_fields(way)) if is_collection(form) else form, n)
                    for way, n in ways.items()
                ]
                if sum(n for taken, n in each if not self._is_cheap(name, taken)) > 1:
                    return True
        return False

    def _is_cheap(self, name: str, form: Form) -> bool:
        uses = columns_in(form)
        return not uses or (is_column(form) and not self._are_results(name, uses))

    def _are_results(self, name: str, uses: Set[str]) -> bool:
        """Whether something is made of results of groups, of which Spark makes one with it."""
        while uses:
            node = self._side.nodes[name]
            name = node.inputs[0].node if len(node.inputs) == 1 else ""
            lineage = next(iter(self._lineages.get(name, ())), None)
            if lineage is None:
                return False
            keys = {use.partition(":")[2] for use in uses}
            if lineage.kept is not None:
                return bool(keys & lineage.kept.values.keys())
            if self._side.kinds_at(name) or lineage.expands:
                return False
            made = (lineage.columns[key] for key in keys & lineage.columns.keys())
            uses = {use for one in made for use in one.uses or ()}
        return False

    def _taken(self, name: str, lineage: Lineage) -> Iterator[_Read]:
        """What a node reads of its inputs, for those columns of which somebody reads anything."""
        read = self._read.get(name, {})
        kept = lineage.kept
        groups = kept is not None and not kept.rows
        if kept is not None and groups:
            for one in kept.keys:
                yield from ((use, way, 1) for use, way in taken_in(form_taken(one)))
        # A condition is asked before columns are computed, of what they are made of.
        yield from ((use, way, 0) for use, way in taken_by_rows(lineage.rows))
        passes = lets_through(self._side, name, lineage)
        for key, made in lineage.columns.items():
            wanted = _ALL_OF_IT if _ALL in read else read.get(key, {})
            form = form_taken(made)
            apart = is_built(form) or (is_column(form) and passes)
            for way, often in (wanted if apart or not wanted else _ALL_OF_IT).items():
                yield from ((use, path, often) for use, path in taken_in(extracted(form, way)))

    def _taken_before(self, edge: InputRecord, key: str, ways: _Ways) -> _Ways:
        """What is read of a column before a node that Spark doesn't make one with others."""
        facts = self._side.facts.get(edge.key)
        columns = facts.columns if facts is not None else None
        types = [column.type or "" for column in columns or ()]
        kinds = dict(zip(column_keys(columns) or (), types, strict=True))
        try:
            of = read_type(kinds.get(key, "")).type
        except SchemaError:
            return ways
        # Each is taken out once, and then is a column of its own.
        return {taken_before(of, way)[0]: 1 for way in ways}


def _to_fields(way: Path) -> Path:
    """A way without how many there are, which isn't taken out of anything."""
    return way[:-1] if way[-1:] == (SIZE,) else way


def _calls_in(form: Form) -> Iterator[Form]:
    """The calls in an expression."""
    if kind_of(form):
        yield form
    for part in form:
        if isinstance(part, tuple):
            yield from _calls_in(part)


def _call(function: str) -> Form | None:
    """The call of an aggregate function, as what it keeps is called by it."""
    return ("count", (("Star", ()),)) if function == "count(1)" else form_of(function)


def _is_put_together(made: Made) -> bool:
    return puts_together(made) and is_built(form_taken(made))


def lets_through(side: Side, name: str, made: Lineage) -> bool:
    """Whether Spark takes fields out before a node of what goes through it.

    Args:
        side: The version.
        name: The node.
        made: What it makes of what.
    """
    if side.nodes[name].kind != "transform":
        return False
    kinds = side.kinds_at(name)
    if made.kept is not None and kinds != {"limit"} and not made.kept.rows:
        return False
    # What makes rows of several columns keeps the others as they are; what takes one apart doesn't.
    spreads = made.expands and not any(map(_takes_apart, made.columns.values()))
    return kinds <= _PASSED and not spreads


def _takes_apart(made: Made) -> bool:
    return "explode" in made.rule or "inline" in made.rule
