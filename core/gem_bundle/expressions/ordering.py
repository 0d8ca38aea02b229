"""Whether an expression tells which of several rows comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Finding
from gem_bundle.expressions.findings import check_expression
from gem_bundle.expressions.projection import column_of
from gem_bundle.expressions.qualifying import columns_named
from gem_bundle.expressions.steady import check_steady
from gem_bundle.schema import without_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.facts import Facts
    from gem_bundle.operators import Option


def check_order(expression: str, facts: Facts, option: Option) -> Iterator[Finding]:
    """What is certainly wrong with an expression by which rows are put in order.

    Args:
        expression: The expression.
        facts: What it is over.
        option: Where it stands, for the finding's place.

    Yields:
        What `check_expression` finds; GB212 when it depends on more than its row; GB213 when it is the same
        of all rows, or has a type without an order.
    """
    wrong = list(check_expression(expression, facts, option, analytic=False, generators=False))
    if not any(found.severity == "error" for found in wrong):
        wrong += check_steady(
            expression,
            facts,
            option,
            rule="a row that comes again has to come at the same place",
            hint="Name a column that comes with the rows.",
        )
    yield from wrong
    if any(found.severity == "error" for found in wrong):
        return
    if columns_named(expression) == ():
        told = f"`{expression}` is the same of all rows, so that it puts none of them behind another"
        yield Finding("GB213", told, "Name a column that tells when a row was made.", option)
        return
    kind = None if facts.columns is None else column_of(expression, "order", facts.columns).type
    if without_order(kind):
        yield Finding(
            "GB213", f"`{expression}` is {kind}, which has no order", "Order by something else.", option
        )
