"""Which rows of a table a batch replaces: what `replace_where` may say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Facts, Finding
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import check_expression, check_repeatable, columns_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_delta.log import TableMetadata

_OPTION = "replace_where"


def check_replaced(condition: str, rows: Facts, there: TableMetadata | None) -> Iterator[Finding]:
    """What is wrong with the condition.

    Delta takes away the rows of the table for which it holds, and takes no rows for which it doesn't.

    Args:
        condition: The condition.
        rows: The rows that come.
        there: The table that is there; None when nothing is known of it.
    """
    lacking = _lacking(condition, rows)
    found = list(
        check_expression(
            condition,
            Facts(columns=rows.columns if there is None else there.columns, qualifiers=frozenset()),
            _OPTION,
            # A table of which nothing is known may have more columns than the rows.
            also=lacking if there is None else (),
            wants="boolean",
            analytic=False,
            generators=False,
            stars=False,
        )
    )
    if any(finding.severity == "error" for finding in found):
        yield from found
        return
    yield from check_repeatable(
        condition,
        rows,
        _OPTION,
        rule="Delta takes conditions on a row of the table alone",
        hint="Compare with values, or with columns of the table.",
        subqueries=True,
    )
    yield from found
    for name in lacking:
        yield Finding(
            "GB210",
            f"the rows have no column `{name}`, and Delta takes only rows for which `replace_where` holds",
            suggest(name, [column.name for column in rows.columns or ()], what="columns"),
            _OPTION,
            "warning",
        )


def _lacking(condition: str, rows: Facts) -> list[str]:
    """The names in a condition that no column of the rows has."""
    if rows.columns is None:
        return []
    return [name for name in columns_named(condition) or () if rows.column(name) is None]
