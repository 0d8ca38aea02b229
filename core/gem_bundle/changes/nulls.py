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
        never = self.never_before(name)
        call, some, of_which = function.partition(" Filter ")
        if some and never and _is_true_by(of_which, never):
            some = of_which = ""
        if call.startswith("('count', (") and never and _is_count_of(call, never):
            call = "count(1)"
        return f"{call}{some}{of_which}"

    def never_before(self, name: str) -> frozenset[str]:
        """The columns that come to a node and are never null.

        Args:
            name: The node.
        """
        return frozenset(use for use, known in self.before(name).items() if known)


def _is_count_of(call: str, never: frozenset[str]) -> bool:
    """Whether what a function counts is never null."""
    from gem_bundle.expressions.deciding import is_there

    form = form_of(call)
    trees = [tree_of(part) for part in cast("Sequence[Form]", form[1])] if form is not None else []
    return bool(trees) and all(tree is not None and is_there(tree, lambda n: n[0] in never) for tree in trees)


def _is_true_by(where: str, never: frozenset[str]) -> bool:
    """Whether an aggregate function's own condition holds: it asks whether what never is null is."""
    from gem_bundle.expressions.deciding import decided_by_form

    match form_of(where):
        case (_, (("this", condition),)):
            tree = tree_of(cast("Form", condition))
            return tree is not None and decided_by_form(tree, lambda n: n[0] in never) is True
    return False
