"""How the columns are made that expressions make: what of, and what is equal where they are conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.expressions.pairs import equalities
from gem_bundle.expressions.uses import made_over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.facts import Column
    from gem_bundle.lineage import Made


def made_of(
    expression: str,
    columns: Sequence[Column] | None,
    *,
    position: int = 0,
    earlier: Mapping[str, Made] | None = None,
) -> Made:
    """How a column that an expression makes is made.

    Args:
        expression: An expression without an alias.
        columns: The columns it is over.
        position: The position of the input they belong to.
        earlier: What else it may name: columns of the same projection, by name in lower case.
    """
    made = made_over(expression, [(position, columns)], earlier or {})
    equal = equalities(expression, columns, position)
    return replace(made, equals=equal) if equal else made


def made_of_inputs(expression: str, inputs: Sequence[Sequence[Column] | None]) -> Made:
    """How something is made that an expression over several inputs decides."""
    return made_over(expression, list(enumerate(inputs)), {})
