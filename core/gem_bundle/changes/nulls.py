"""Which columns Spark takes for never null, by the form of its plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.lineage import column_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage, Made

IS_NULL = re.compile(
    r"\(<class 'sqlglot\.expressions\.core\.Is'>, \(\('this', \('[^']*',\)\), "
    r"\('expression', \(<class 'sqlglot\.expressions\.core\.Null'>"
)
"""How the rule of a condition begins that asks whether a column is null: `is true` is written otherwise."""
_ASKS_FOR_NULLS = re.compile(
    rf"(?:\(<class 'sqlglot\.expressions\.core\.Not'>, \(\('this', )*{IS_NULL.pattern}"
)


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

    def folded(self, name: str, lineage: Lineage) -> set[str]:
        """The columns for which Spark reads nothing: whether one is null that never is."""
        asking = {key: made for key, made in lineage.columns.items() if _asks_for_nulls(made)}
        never = self.before(name) if asking else {}
        return {key for key, made in asking.items() if all(never.get(use) for use in made.uses or ())}


def _asks_for_nulls(made: Made) -> bool:
    """Whether something is nothing but whether a column is null, or isn't."""
    return made.uses is not None and _ASKS_FOR_NULLS.match(made.rule) is not None
