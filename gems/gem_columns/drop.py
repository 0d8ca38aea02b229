"""The transform `drop`: columns that don't go on."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Finding, Lineage, Options, Transform
from gem_bundle.expressions import missing_names
from gem_bundle.lineage import passed
from gem_bundle.types import StringList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class DropOptions(Options):
    """Options of the transform `drop`."""

    columns: StringList = Field(
        min_length=1,
        description="The names of the columns to leave out.",
        examples=[["offset"]],
        change="from_now_on",
    )


class Drop(Transform[DropOptions]):
    """Leave columns out; all others stay.

    Names are taken as they stand, without backquotes; a field of a struct can't be dropped.
    """

    example = {"columns": ["offset", "partition"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The columns that are not named."""
        return inputs[0].drop(*self.options.columns)

    def infer(self, *inputs: Facts) -> Facts:
        """The columns that are not named."""
        (facts,) = inputs
        if facts.columns is None:
            return facts
        gone = {name.lower() for name in self.options.columns}
        return facts.with_columns(c for c in facts.columns if c.name.lower() not in gone)

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The columns that stay, as they are."""
        through = passed(self.infer(*inputs).columns)
        return None if through is None else Lineage(through)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The names exist: Spark says nothing about one that doesn't."""
        for finding in missing_names(self.options.columns, inputs[0], "columns"):
            message = f"{finding.message}, so nothing is dropped for it"
            yield replace(finding, message=message, severity="warning")
