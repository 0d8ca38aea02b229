"""The transform `deduplicate`: each row once."""

from typing import TYPE_CHECKING

from gem_bundle import (
    DeduplicateOperator,
    Facts,
    Field,
    Finding,
    Kept,
    Lineage,
    Made,
    Options,
    Transform,
    entering,
)
from gem_bundle.expressions import missing_names
from gem_bundle.lineage import column_keys, passed, same
from gem_bundle.operators import any_of
from gem_bundle.schema import with_article, without_equality
from gem_bundle.types import StringList
from gem_event_time.key_order import key_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class DeduplicateOptions(Options):
    """Options of the transform `deduplicate`, from the guide's *Streaming deduplication*."""

    columns: StringList | None = Field(
        None,
        min_length=1,
        description="Rows that agree in these columns are duplicates; by default all columns.",
        examples=[["id"], ["id", "at"]],
        change="mixed",
    )
    within_watermark: bool = Field(
        False,
        description="Remember a row only as long as the watermark's delay; duplicates that come "
        "later go through.",
        change="refused",
    )


class Deduplicate(Transform[DeduplicateOptions]):
    """Let the first of several equal rows through and drop the others.

    On a stream what was seen is state. It grows for ever unless the columns include event time
    with a watermark, or `within_watermark` is set. Names are taken as they stand, without
    backquotes.

    In visual tools: Deduplicate.
    """

    example = {"columns": ["id"], "within_watermark": True}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows without their duplicates."""
        columns = self.options.columns
        if self.options.within_watermark:
            return inputs[0].dropDuplicatesWithinWatermark(columns)
        return inputs[0].dropDuplicates(columns)

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before; on a stream what was seen is state."""
        within = self.options.within_watermark
        facts, times = entering(inputs[0], lambda column: within or self._compares(column.name))
        return facts.after(
            DeduplicateOperator(
                option="within_watermark" if within else "columns",
                event_time=self._by_event_time(facts),
                watermarked=facts.watermarked,
                within_watermark=within,
                event_times=times,
            )
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; those that decide are kept."""
        (facts,) = inputs
        through, keys = passed(facts.columns), column_keys(facts.columns)
        if through is None or keys is None:
            return None
        chosen = [
            (key, column)
            for key, column in zip(keys, facts.columns or (), strict=True)
            if self._compares(column.name)
        ]
        names = key_order(self.options.columns or [column.name for _, column in chosen])
        wanted = [name.lower() for name in names]
        chosen.sort(key=lambda found: wanted.index(found[1].name.lower()))
        kept = Kept(
            tuple(same(key) for key, _ in chosen),
            tuple(column.type for _, column in chosen),
            {"": {"expiry": ("bigint!",)}} if self.options.within_watermark else {},
        )
        rule = "within watermark" if self.options.within_watermark else "once"
        return Lineage(through, Made(rule, frozenset(f"0:{key}" for key, _ in chosen)), kept)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns exist, and `within_watermark` has a watermark to be within."""
        (facts,) = inputs
        yield from missing_names(self.options.columns or (), facts, "columns")
        if not self.options.within_watermark:
            yield from self._unequal(facts)
            return
        if facts.streaming is False:
            yield Finding(
                "GB205",
                "`within_watermark` is for streams; a static relation has no watermark",
                "Remove it: without it all duplicates of a static relation are dropped.",
                "within_watermark",
            )

    def _unequal(self, facts: Facts) -> "Iterator[Finding]":
        """A finding for each column that decides and whose values are never equal."""
        for column in facts.columns or ():
            if self._compares(column.name) and without_equality(column.type):
                kind = with_article(column.type or "")
                yield Finding(
                    "GB213",
                    f"`{column.name}` is {kind}, and Spark can't tell two of them equal",
                    "Name other `columns`, or make a text of it before: `to_json(…)`.",
                    "columns",
                )

    def _by_event_time(self, facts: Facts) -> bool | None:
        """Whether a column that decides carries a watermark."""
        if self.options.columns is None:
            return facts.watermarked
        if facts.columns is None:
            return None
        return any_of(column.watermarked for column in facts.columns if self._compares(column.name))

    def _compares(self, name: str) -> bool:
        """Whether a column decides."""
        columns = self.options.columns
        return columns is None or name.lower() in {wanted.lower() for wanted in columns}
