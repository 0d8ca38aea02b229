"""Which columns Spark takes for never null, by the form of its plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.forms import form_of, tree_of
from gem_bundle.lineage import column_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage

IS_NULL = re.compile(
    r"\(<class 'sqlglot\.expressions\.core\.Is'>, \(\('this', \('[^']*',\)\), "
    r"\('expression', \(<class 'sqlglot\.expressions\.core\.Null'>"
)
"""How the rule of a condition begins that asks whether a column is null: `is true` is written otherwise."""


class Nulls:
    """What is never null in one version.

    Args:
        side: The version.
        lineage: What a node makes of what in one of its outputs, by its id; None where that isn't known.
    """

    def __init__(self, side: Side, lineage: Callable[[str, str], Lineage | None]) -> None:
        self._side, self._lineage = side, lineage
        self._never: dict[tuple[str, str], Mapping[str, bool | None]] = {}

    def never(self, name: str, output: str = "") -> Mapping[str, bool | None]:
        """Which columns behind a node Spark takes for never null, by its plan's form; None where unknown."""
        if (name, output) not in self._never:
            node = self._side.nodes[name]
            lineage = self._lineage(name, output) if node.kind == "transform" else None
            if node.kind == "source":
                # Of what it reads from outside, Spark takes all for what may be null.
                facts = None if output else self._side.facts.get(name)
                found: dict[str, bool | None] = dict.fromkeys(
                    column_keys(facts.columns if facts else None) or (), False
                )
            elif lineage is None:
                found = {}
            else:
                coming = self.before(name)
                found = {key: made.never_null(coming) for key, made in lineage.columns.items()}
            self._never[name, output] = found
        return self._never[name, output]

    def before(self, name: str) -> dict[str, bool | None]:
        """The same of what comes to a node, each column behind the position of its input."""
        return {
            f"{position}:{key}": never
            for position, edge in enumerate(self._side.nodes[name].inputs)
            for key, never in self.never(edge.node, edge.output).items()
        }

    def counted(self, name: str, function: str) -> str:
        """An aggregate function as Spark keeps it: of what is never null it counts the rows.

        So its rule `NullPropagation` has it, but for what is counted once.

        Args:
            name: The node.
            function: The function, as `gem_bundle.lineage.Kept.values` has it.
        """
        call, some, of_which = function.partition(" Filter ")
        if not call.startswith("('count', ("):
            return function
        form, never = form_of(call), self.never_before(name)
        trees = (
            [tree_of(part) for part in cast("Sequence[Form]", form[1])] if form is not None and never else []
        )
        from gem_bundle.expressions.deciding import is_there

        if trees and all(tree is not None and is_there(tree, lambda n: n[0] in never) for tree in trees):
            return f"count(1){some}{of_which}"
        return function

    def never_before(self, name: str) -> frozenset[str]:
        """The columns that come to a node and are never null.

        Args:
            name: The node.
        """
        return frozenset(use for use, known in self.before(name).items() if known)
