"""Which fields somebody reads of the structs that nodes put together: for the others Spark reads nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.taken import column_taken, fields_of, taken_by, taken_by_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.changes.sides import Side
    from gem_bundle.changes.taken import Taken
    from gem_bundle.lineage import Lineage, Made

_PASSED = frozenset({"filter", "generate", "join", "limit", "repartition", "sample", "sort", "union"})
"""What Spark takes fields out of columns before."""
_ALL = "*"
"""All columns of a node, or all fields of a column."""


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
        # By node: what is read of its columns, each as often as the reader that does so most often.
        self._read: dict[str, dict[str, Counter[str]]] = {}
        known = [lineage for of_node in lineages.values() for lineage in of_node if lineage is not None]
        if not any(fields_of(made) for lineage in known for made in lineage.columns.values()):
            return
        for name in reversed(side.order):
            node = side.nodes[name]
            if node.kind == "source":
                continue
            taken: list[Taken] | None = []
            for lineage in lineages.get(name, [None]):
                taken = (
                    None if lineage is None or taken is None else [*taken, *self._taken(side, name, lineage)]
                )
            for position, edge in enumerate(node.inputs):
                by_this: dict[str, Counter[str]] = {} if taken is not None else {_ALL: Counter()}
                for use, path in taken or ():
                    place, _, key = use.partition(":")
                    # A query tells the columns in its conditions by its tables.
                    if int(place) == position or len(node.inputs) > 1:
                        way = path[0].strip("[]").lower() if path else _ALL
                        by_this.setdefault(key, Counter())[way] += 1
                read = self._read.setdefault(edge.node, {})
                for key, ways in by_this.items():
                    read[key] = read.get(key, Counter()) | ways

    def narrowed(self, name: str, lineage: Lineage) -> Lineage:
        """What a node makes of what, without what nobody reads of its structs.

        Args:
            name: The node.
            lineage: What it makes of what.
        """
        read = self._read.get(name)
        if read is None or _ALL in read:
            return lineage
        columns = dict(lineage.columns)
        for key, made in lineage.columns.items():
            fields = fields_of(made)
            wanted = read.get(key, Counter())
            if fields and wanted and wanted.keys() <= fields.keys():
                if sum(n for way, n in wanted.items() if self._are_results(name, fields[way])) > 1:
                    continue  # Spark would compute the struct twice, and so doesn't make one of it and groups
                columns[key] = replace(made, uses=frozenset(use for w in wanted for use, _ in fields[w]))
        return replace(lineage, columns=columns)

    def _are_results(self, name: str, taken: Sequence[Taken]) -> bool:
        """Whether something is made of results of groups, of which Spark makes one with it."""
        uses = {use for use, _ in taken}
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

    def _taken(self, side: Side, name: str, lineage: Lineage) -> Iterator[Taken]:
        """What a node takes of its inputs, for those columns of which somebody reads anything."""
        read = self._read.get(name, {})
        kept = lineage.kept
        if kept is not None and not kept.rows:
            whole = [*lineage.columns.values(), lineage.rows, *kept.keys]
            yield from ((use, ()) for made in whole for use in made.uses or ())
        yield from taken_by_rows(lineage.rows)
        passes = lets_through(side, name, lineage)
        for key, made in lineage.columns.items():
            wanted = Counter({_ALL: 1}) if _ALL in read else read.get(key, Counter())
            fields = fields_of(made)
            found = column_taken(made)
            if found is not None and not found[1] and wanted and not passes:
                yield found
            elif found is not None and not found[1]:
                yield from ((found[0], () if way == _ALL else (way,)) for way in wanted.elements())
            elif fields and wanted.keys() <= fields.keys():
                yield from (one for way in wanted.elements() for one in fields[way])
            elif wanted:
                yield from taken_by(made)


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
