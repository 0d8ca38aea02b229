"""What Spark leaves out of a query: joins, groups, duplicates and limits of which nobody would know.

Then it keeps no state for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions import is_blind_to_duplicates
from gem_bundle.lineage import UNCHANGED, Made
from gem_bundle.operators import JoinOperator, LimitOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage

# The side of which a join has every row, by how it joins.
_OUTER = {"left": 0, "right": 1}
_OF_UNIONS = frozenset({"aggregate", "cte", "union", "with"})
"""The operators of a query that unites rows, each once."""


class LeftOut:
    """The nodes that Spark leaves out.

    Args:
        side: The version.
        lineage: What a node makes of what, by its id.
        needed: The columns behind a node that somebody reads, by its id.
        functions: The aggregate functions that are needed of a node that forms groups, by its id; None where
            they aren't known.
    """

    def __init__(
        self,
        side: Side,
        lineage: Callable[[str], Lineage | None],
        needed: Callable[[str], set[str]],
        functions: Callable[[str], list[str] | None],
    ) -> None:
        self._side, self._lineage = side, lineage
        self._needed, self._functions = needed, functions
        self._known: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = (
                self._forms_groups_for_nothing(name)
                or self._joins_for_nothing(name)
                or self._tells_apart_for_nothing(name)
                or self._is_below_another_limit(name)
            )
        return self._known[name]

    def _forms_groups_for_nothing(self, name: str) -> bool:
        """Whether those behind a node that forms groups come to the same without.

        So Spark's rule `RemoveRedundantAggregates` has it: what is aggregated of them goes by their keys
        alone, and it makes no difference to it how often a row is there.
        """
        return (
            self._forms_groups(name)
            and self._functions(name) == []
            and all(map(self._takes_each_once, self._side.paths(name)))
        )

    def _joins_for_nothing(self, name: str) -> bool:
        """Whether an outer join only makes rows of its one side come more often, and nobody counts them.

        So Spark's rule `EliminateOuterJoin` has it.
        """
        operators = self._side.operators_at(name)
        if len(operators) != 1 or not isinstance(operators[0], JoinOperator):
            return False
        side, lineage = _OUTER.get(operators[0].how), self._lineage(name)
        if side is None or lineage is None or lineage.kept is None:
            return False
        needed = self._needed(name)
        return (
            needed <= lineage.columns.keys()
            and all(lineage.sides_of(key) == frozenset({side}) for key in needed)
            and all(map(self._takes_each_once, self._side.paths(name)))
        )

    def _takes_each_once(self, path: Iterable[tuple[str, int]]) -> bool:
        """Whether the first node with state on a path forms groups, blind to how often a row is there."""
        for name, _ in path:
            if self._lineage(name) is None:
                return False
            if self._forms_groups(name):
                functions = self._functions(name)
                return functions is not None and all(map(is_blind_to_duplicates, functions))
            if not self._side.kinds_at(name) <= {"filter"}:
                return False
        return False

    def _forms_groups(self, name: str) -> bool:
        """Whether all that a node does with state is to form groups, and not by sessions."""
        kept = [operator for operator in self._side.stateful if operator.node == name]
        return [operator.kind for operator in kept] == ["aggregate"] and not getattr(
            kept[0], "sessions", False
        )

    def _tells_apart_for_nothing(self, name: str) -> bool:
        """Whether a node tells whole rows of a union apart, and a query behind it does it again.

        So Spark's rule `CombineUnions` has it: of unions of which each row is wanted once it makes one.
        """
        operators, lineage = self._side.operators_at(name), self._lineage(name)
        if [operator.kind for operator in operators] != ["deduplicate"] or lineage is None:
            return False
        if getattr(operators[0], "within_watermark", False) or lineage.kept is None:
            return False
        by = {use for key in lineage.kept.keys if key.rule == "=" for use in key.uses or ()}
        before = self._side.nodes[name].inputs[0].node
        paths = self._side.paths(name)
        return (
            by == {f"0:{column}" for column in lineage.columns}
            and self._side.kinds_at(before) == {"union"}
            and bool(paths)
            and all(self._unites_as_they_are(*path[0], list(lineage.columns)) for path in paths)
        )

    def _unites_as_they_are(self, name: str, position: int, columns: Sequence[str]) -> bool:
        """Whether a query unites some columns, in their order, with others, and wants each row once."""
        lineage = self._lineage(name)
        if lineage is None or lineage.kept is None or len(lineage.columns) != len(columns):
            return False
        made = zip(columns, lineage.columns.values(), strict=True)
        return (
            {"union", "aggregate"} <= self._side.kinds_at(name) <= _OF_UNIONS
            and all(f"{position}:{column}" in (one.uses or ()) for column, one in made)
            and all(key.rule in UNCHANGED for key in lineage.kept.keys)
        )

    def _is_below_another_limit(self, name: str) -> bool:
        """Whether Spark puts another limit in the place of a node's, into the branch of a union.

        So its rule `LimitPushDown` has it, where the other one stands behind the union and lets fewer rows
        through, and what is between them does nothing but to compute columns.
        """
        rows = self._rows_of(name)
        paths = self._side.paths(name) if rows is not None else []
        return rows is not None and bool(paths) and all(self._is_below(path, rows) for path in paths)

    def _is_below(self, path: Iterable[tuple[str, int]], rows: int) -> bool:
        united = False
        for reader, _ in path:
            other = self._rows_of(reader)
            if other is not None:
                return united and other < rows
            made = self._lineage(reader) if self._side.nodes[reader].kind == "transform" else None
            kinds = self._side.kinds_at(reader)
            if kinds == {"union"}:
                united = True
            elif kinds or made is None or made.rows != Made():
                return False
        return False

    def _rows_of(self, name: str) -> int | None:
        """How many rows a limit lets through, if a node is nothing but one."""
        operators = self._side.operators_at(name)
        if len(operators) != 1 or not isinstance(operators[0], LimitOperator):
            return None
        return operators[0].rows
