"""The transform `repartition`: rows over partitions anew."""

from typing import TYPE_CHECKING

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, Lineage, Operator, Options, Transform
from gem_bundle.expressions import check_expression
from gem_bundle.lineage import passed, uses_of
from gem_bundle.types import ExpressionList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class RepartitionOptions(Options):
    """Options of the transform `repartition`."""

    partitions: int | None = Field(
        None,
        gt=0,
        description="How many partitions; by default `spark.sql.shuffle.partitions`.",
        change="continues",
    )
    columns: ExpressionList = Field(
        [],
        description="Rows with equal values of these expressions come into one partition; "
        "without any, rows are dealt out in turn.",
        examples=[["page"], "date(at)"],
        change="continues",
    )

    @model_validator(mode="after")
    def _at_least_one(self) -> "RepartitionOptions":
        if self.partitions is None and not self.columns:
            raise ValueError("give `partitions`, `columns` or both")
        return self


class Repartition(Transform[RepartitionOptions]):
    """Shuffle the rows into another number of partitions, or by the values of columns.

    In visual tools: Repartition.
    """

    example = {"partitions": 8, "columns": ["page"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The same rows in other partitions."""
        from pyspark.sql.functions import expr

        columns = [expr(expression) for expression in self.options.columns]
        if self.options.partitions is None:
            return inputs[0].repartition(*columns)
        return inputs[0].repartition(self.options.partitions, *columns)

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        return inputs[0].after(Operator("repartition"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns and rows as they are: shuffling changes none."""
        from gem_bundle.expressions import made_of

        columns = inputs[0].columns
        through = passed(columns)
        if through is None:
            return None
        return Lineage(through, reads=uses_of(made_of(text, columns) for text in self.options.columns))

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist."""
        (facts,) = inputs
        for position, expression in enumerate(self.options.columns):
            place = ("columns", position)
            yield from check_expression(
                expression,
                facts,
                place,
                dropped=facts.hidden,
                analytic=False,
                generators=False,
                stars=False,
            )
