"""The transform `filter`: the rows that meet a condition."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Options, Transform
from gem_bundle.types import Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FilterOptions(Options):
    """Options of the transform `filter`."""

    condition: Expression = Field(
        description="A boolean expression; rows for which it is false or null are left out.",
        examples=["amount > 0 and country is not null"],
    )


class Filter(Transform[FilterOptions]):
    """Keep the rows that meet a condition."""

    example = {"condition": "amount > 0"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows for which the condition is true."""
        return inputs[0].filter(self.options.condition)

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        return inputs[0]
