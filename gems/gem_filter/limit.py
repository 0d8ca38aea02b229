"""The transform `limit`: so many rows and no more."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Kept, LimitOperator, Lineage, Made, Options, Transform
from gem_bundle.lineage import passed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LimitOptions(Options):
    """Options of the transform `limit`."""

    rows: int = Field(ge=0, description="How many rows go on at most.", examples=[100], change="mixed")


class Limit(Transform[LimitOptions]):
    """Let the first rows through and drop the rest.

    On a stream it counts over the whole life of the query: after that many rows nothing more comes
    out. Which rows are first is not defined unless they are sorted.

    In visual tools: Limit.
    """

    example = {"rows": 100}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """At most that many rows."""
        return inputs[0].limit(self.options.rows)

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before; on a stream the count is state."""
        return inputs[0].after(LimitOperator(option="rows", rows=self.options.rows))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; how many rows have gone through is kept."""
        through = passed(inputs[0].columns)
        if through is None:
            return None
        rows = Made(f"limit {self.options.rows}")
        return Lineage(through, rows, Kept(key_types=(), taken=rows))
