"""The transform `select`: the columns that go on, as they are or computed."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Finding, Options, Transform
from gem_bundle.expressions import missing_columns, project, reference
from gem_bundle.types import ColumnExpressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class SelectOptions(Options):
    """Options of the transform `select`."""

    columns: ColumnExpressions = Field(
        min_length=1,
        description="The columns as a list of expressions, or as a mapping of name to expression.",
        examples=[["page", "amount * 100 as cents"], {"page": "page", "cents": "amount * 100"}],
    )


class Select(Transform[SelectOptions]):
    """Choose, rename and compute columns; all others are gone.

    A list takes what Spark's ``selectExpr`` takes: ``*``, ``orders.*``, ``expression as name``.
    Event time stays event time where a column is passed on as it is, also under another name; any
    expression over it is a plain timestamp.
    """

    example = {"columns": {"page": "lower(page)", "at": "at"}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The chosen columns, in the order given."""
        from pyspark.sql.functions import expr

        columns = self.options.columns
        if isinstance(columns, dict):
            return inputs[0].select(*[expr(body).alias(name) for name, body in columns.items()])
        return inputs[0].select(*[expr(expression) for expression in columns])

    def infer(self, *inputs: Facts) -> Facts:
        """The columns, where each has a name or is one of the input's."""
        return inputs[0].with_columns(project(self.options.columns, inputs[0]))

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Plain names are columns of the input, and a star stands alone."""
        columns = self.options.columns
        if not isinstance(columns, dict):
            yield from missing_columns(columns, inputs[0], "columns")
            return
        yield from missing_columns(columns.values(), inputs[0], "columns", also=columns)
        yield from named_stars(columns)


def named_stars(columns: dict[str, str]) -> "Iterator[Finding]":
    """A finding for each ``*`` that is to become one column."""
    for name, expression in columns.items():
        star = expression.removesuffix("*").strip().removesuffix(".")
        if expression.endswith("*") and (not star or reference(star) is not None):
            yield Finding(
                "GB205",
                f"`{expression}` is several columns and can't be called `{name}`",
                "Write `columns` as a list to use a star.",
                "columns",
            )
