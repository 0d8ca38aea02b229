"""The transform `sort`: rows in order."""

import re
from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Finding, Lineage, Operator, Options, Transform
from gem_bundle.expressions import check_expression
from gem_bundle.lineage import passed, uses_of
from gem_bundle.types import ExpressionList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

_KEY = re.compile(
    r"(?P<by>.+?)(?:\s+(?P<order>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)


class SortOptions(Options):
    """Options of the transform `sort`."""

    by: ExpressionList = Field(
        min_length=1,
        description="What to sort by: expressions, each with `asc` (default) or `desc` and "
        "`nulls first` or `nulls last` behind it where wanted.",
        examples=[["amount desc", "page"], "amount desc nulls last"],
        change="continues",
    )


class Sort(Transform[SortOptions]):
    """Put all rows into one order.

    A stream can only be sorted after an aggregation, in complete mode (guide: *Unsupported
    operations*).

    In visual tools: OrderBy.
    """

    example = {"by": ["amount desc", "page"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows in order."""
        return inputs[0].orderBy(*[_sort_key(text) for text in self.options.by])

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        return inputs[0].after(Operator("sort", "by"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns and rows as they are: sorting changes none."""
        from gem_bundle.expressions import made_of

        columns = inputs[0].columns
        through = passed(columns)
        if through is None:
            return None
        keys = [match["by"] for text in self.options.by if (match := _KEY.fullmatch(text)) is not None]
        return Lineage(through, reads=uses_of(made_of(text, columns) for text in keys))

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The keys are over columns that exist, and can be put in order."""
        (facts,) = inputs
        # Spark moves what it finds right behind an aggregation into that.
        behind = any(operator.kind == "aggregate" for operator in facts.operators)
        for position, text in enumerate(self.options.by):
            match = _KEY.fullmatch(text)
            assert match is not None, "an expression is not empty"
            place = ("by", position)
            yield from check_expression(
                match["by"],
                facts,
                place,
                dropped=facts.hidden,
                wants="order",
                stars=False,
                aggregates="allowed" if behind else "no",
                analytic=False,
                generators=False,
            )


def _sort_key(text: str) -> "Column":
    """One key: Spark's `expr` would take ``amount desc`` for a column `amount` under the name `desc`."""
    from pyspark.sql.functions import expr

    match = _KEY.fullmatch(text)
    assert match is not None, "an expression is not empty"
    key = expr(match["by"])
    descending = (match["order"] or "asc").lower() == "desc"
    # As in SQL: nulls are the smallest values unless the key says otherwise.
    nulls = (match["nulls"] or ("last" if descending else "first")).lower()
    if descending:
        return key.desc_nulls_last() if nulls == "last" else key.desc_nulls_first()
    return key.asc_nulls_last() if nulls == "last" else key.asc_nulls_first()
