"""The transform `sample`: a part of the rows."""

from typing import TYPE_CHECKING

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, Lineage, Made, Operator, Options, Transform
from gem_bundle.expressions import backquoted, check_expression
from gem_bundle.lineage import passed
from gem_bundle.schema import quoted
from gem_bundle.types import StringList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_PARTS = 1_000_000


class SampleOptions(Options):
    """Options of the transform `sample`, from Spark's ``DataFrame.sample``."""

    fraction: float = Field(
        ge=0,
        description="About which part of the rows goes on: 0.1 is a tenth. With replacement it may be more "
        "than 1.",
        examples=[0.1],
        change="from_now_on",
    )
    by: StringList | None = Field(
        None,
        min_length=1,
        description="Columns whose values decide, by a hash: rows that agree in them go on together or not "
        "at all, in every run alike. Without it chance decides for each row.",
        examples=[["user"]],
        change="from_now_on",
    )
    with_replacement: bool = Field(
        False, description="A row may be drawn several times.", change="from_now_on"
    )
    seed: int | None = Field(
        None,
        description="Another number draws other rows; the same one, of the same data in the same partitions, "
        "the same. Without it each run draws others, or with `by` the same.",
        examples=[42],
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _possible(self) -> "SampleOptions":
        if self.with_replacement and self.by is not None:
            raise ValueError("`by` takes each row once or not at all: leave `with_replacement` out")
        if self.fraction > 1 and not self.with_replacement:
            raise ValueError("more than all rows can only be drawn `with_replacement`; write a tenth as 0.1")
        return self


class Sample(Transform[SampleOptions]):
    """Let a part of the rows through, drawn by chance or by the values of columns.

    A stream can only be sampled `by` columns: by chance a micro-batch that is run again would give other rows
    (guide: *Unsupported operations*). Names in `by` are taken as they stand, without backquotes.

    In visual tools: SampleRows.
    """

    example = {"fraction": 0.1, "by": ["user"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows that were drawn."""
        from pyspark.sql.functions import col, lit, pmod, xxhash64

        options = self.options
        if options.by is None:
            return inputs[0].sample(options.with_replacement, options.fraction, options.seed)
        keys = (col(quoted(name)) for name in options.by)
        part = pmod(xxhash64(lit(options.seed or 0), *keys), lit(_PARTS))
        return inputs[0].filter(part < lit(round(options.fraction * _PARTS)))

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before."""
        return inputs[0].after(
            Operator("sample", "fraction") if self.options.by is None else Operator("filter", "by")
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; those that decide decide which rows stay."""
        through = passed(inputs[0].columns)
        if through is None:
            return None
        by, seed = self.options.by, self.options.seed
        uses = frozenset(f"0:{name.lower()}" for name in by or ())
        return Lineage(through, Made(f"sample {self.options.fraction} {seed} {by}".lower(), uses))

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns that decide exist, and have values that can be hashed."""
        (facts,) = inputs
        for position, name in enumerate(self.options.by or ()):
            yield from check_expression(backquoted(name), facts, ("by", position))
            column = facts.column(name)
            if column is not None and (column.type or "").startswith("map<"):
                yield Finding(
                    "GB213",
                    f"`{name}` is a map, and Spark makes no hash of one",
                    f"Name other columns, or make a text of it before: `to_json({name})`.",
                    "by",
                )
