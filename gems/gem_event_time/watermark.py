"""The transform `watermark`: which column is event time, and how late rows may be."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    Facts,
    Field,
    Finding,
    Lineage,
    Made,
    OptionChange,
    Options,
    Transform,
    WatermarkOperator,
)
from gem_bundle.expressions import check_expression, reference
from gem_bundle.lineage import passed
from gem_bundle.schema import with_article
from gem_bundle.types import Interval, interval_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class WatermarkOptions(Options):
    """Options of the transform `watermark`."""

    column: str = Field(
        min_length=1,
        description="The column with the event time: a timestamp, or a window; not a field of a struct.",
        examples=["at"],
        change="mixed",
    )
    delay: Interval = Field(
        description="How much later than the newest row a row may come and still be counted.",
        examples=["10 minutes"],
        change="from_now_on",
    )


class Watermark(Transform[WatermarkOptions]):
    """Say which column is event time and how late its rows may be.

    Aggregations, joins and deduplication behind it can forget what is older than the newest event
    time less the delay (guide: *Handling late data and watermarking*). A stream has one: a second
    one on the same way is refused (GB329). On a static relation it does nothing.

    In visual tools: Watermark.
    """

    example = {"column": "at", "delay": "10 minutes"}

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Another text may be the same time, or the same column."""
        if not isinstance(before, str):
            return None
        if option == "delay" and _length(before) == interval_length(self.options.delay):
            return OptionChange("continues", "it is as long as it was")
        if option == "column":
            old, new = reference(before), reference(self.options.column)
            if old is not None and new is not None and [n.lower() for n in old] == [n.lower() for n in new]:
                return OptionChange("continues", "it is the same column")
        return None

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The same rows, with the mark on the column."""
        return inputs[0].withWatermark(self.options.column, self.options.delay)

    def infer(self, *inputs: Facts) -> Facts:
        """The delay stands on this column and on no other."""
        (facts,) = inputs
        parts = reference(self.options.column)
        if facts.streaming is False:
            return facts
        options = self.options
        facts = facts.after(WatermarkOperator(option="column", column=options.column, delay=options.delay))
        if facts.columns is None:
            return facts
        if parts is None or len(parts) > 1:
            # What Spark makes of it isn't known here; no column may pass as certain.
            return facts.with_columns(None)
        name = parts[0].lower()
        return facts.with_columns(
            replace(column, delay=self.options.delay if column.name.lower() == name else None)
            for column in facts.columns
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns and rows as they are; what is late is decided by those behind it."""
        from gem_bundle.expressions import made_of

        (facts,) = inputs
        through = passed(facts.columns)
        if through is None:
            return None
        # Spark reads it though nothing behind does, so that state before it is kept with it.
        reads = made_of(self.options.column, facts.columns).uses
        return Lineage(through, Made("=", frozenset()), reads=reads)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and is a timestamp."""
        (facts,) = inputs
        if facts.streaming is False:
            return
        parts = reference(self.options.column)
        if parts is None or len(parts) > 1:
            return
        yield from check_expression(self.options.column, facts, "column")
        column = facts.column(parts[0])
        if column is None or column.type is None:
            return
        kind = column.type.lower()
        # A window counts by its end.
        if kind != "timestamp" and not kind.startswith("struct"):
            yield Finding(
                "GB205",
                f"`{column.name}` is {with_article(column.type)}; event time must be a timestamp",
                f"Make one first, for example `{column.name}: to_timestamp({column.name})` in a "
                "`with_columns`.",
                "column",
            )


def _length(text: str) -> tuple[int, int] | None:
    """How long an interval is; None for a text that is none, or isn't known."""
    try:
        return interval_length(text)
    except ValueError:
        return None
