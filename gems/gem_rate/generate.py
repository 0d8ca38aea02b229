"""The source `generate`: rows made up by a description, the same ones for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator, model_validator

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    Options,
    ReadContext,
    Source,
    SourceSemantics,
    StreamReadContext,
)
from gem_bundle.expressions import check_expression, check_steady, column_of
from gem_bundle.schema import quoted
from gem_bundle.types import Expression
from gem_rate.making import Making, kind_of, sql_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_NUMBER = "__gem_bundle_number"


class GenerateOptions(Options):
    """Options of the source `generate`."""

    default_change = "from_now_on"

    columns: dict[str, Expression | Making] = Field(
        min_length=1,
        description="The columns, as a mapping of name to how its values are made, or to an expression over "
        "the columns before it.",
        examples=[
            {
                "id": {"sequence": {"start": 1}},
                "page": {"choice": {"home": 5, "cart": 1}},
                "amount": {"number": {"min": 0, "max": 100, "digits": 2}, "nulls": 0.1},
                "cents": "cast(amount * 100 as int)",
            }
        ],
    )
    rows: int = Field(1000, ge=0, description="How many rows a batch has; a stream makes rows for ever.")
    rows_per_batch: int = Field(100, gt=0, description="How many rows a micro-batch of a stream has.")
    seed: int = Field(
        0, description="Another number makes other rows; the same one the same, on every machine."
    )
    num_partitions: int | None = Field(
        None,
        gt=0,
        description="Partitions of the rows; by default Spark's default parallelism.",
        change="continues",
    )

    @field_validator("columns")
    @classmethod
    def _names_differ(cls, columns: dict[str, str | Making]) -> dict[str, str | Making]:
        seen: set[str] = set()
        for name in columns:
            if name.lower() in seen:
                raise ValueError(f"`{name}` stands twice: Spark ignores case")
            seen.add(name.lower())
        return columns

    @model_validator(mode="after")
    def _something_made(self) -> GenerateOptions:
        if all(isinstance(made, str) for made in self.columns.values()):
            raise ValueError("one column at least must be made, for example `id: {sequence: {}}`")
        return self


class GenerateSource(Source[GenerateOptions]):
    """Make rows up by a description, for tests and demonstrations, as a batch or as a stream.

    A value depends on the seed, its column's name and the number of its row alone. So every run has the
    same rows, on whatever machine and in whatever partitions, and a stream's are those of a batch that
    goes on.

    In visual tools: RandomDataCreator, SyntheticDataGenerator.
    """

    semantics = SourceSemantics(backlog=False)
    example = {
        "columns": {"id": {"sequence": {"start": 1}}, "page": {"choice": ["home", "cart"]}},
        "rows": 10,
    }

    def read(self, context: ReadContext) -> DataFrame:
        """So many rows."""
        options = self.options
        numbers = context.spark.range(0, options.rows, 1, options.num_partitions)
        return self._made(numbers.withColumnRenamed("id", _NUMBER))

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        """A stream whose rows depend on the micro-batch's number only."""
        options = self.options
        reader = context.reader.format("rate-micro-batch").option("rowsPerBatch", options.rows_per_batch)
        if options.num_partitions is not None:
            reader = reader.option("numPartitions", options.num_partitions)
        return self._made(reader.load().withColumnRenamed("value", _NUMBER))

    def infer(self) -> Facts:
        """The columns as they are described."""
        found: list[Column] = []
        for name, made in self.options.columns.items():
            if isinstance(made, str):
                found.append(Column(name, column_of(made, name, found).type))
            else:
                found.append(Column(name, kind_of(made)))
        return Facts(columns=tuple(found), qualifiers=frozenset())

    def check(self, *inputs: Facts) -> Iterator[Finding]:  # noqa: ARG002 (a source has none)
        """Expressions are over the columns before them, and give the same in every run."""
        before: list[Column] = []
        for name, made in self.options.columns.items():
            if isinstance(made, str):
                facts = Facts(streaming=False, columns=tuple(before), qualifiers=frozenset())
                place = ("columns", name)
                found = list(check_expression(made, facts, place, analytic=False, generators=False))
                yield from found or check_steady(made, facts, place)
                before.append(Column(name, column_of(made, name, before).type))
            else:
                before.append(Column(name, kind_of(made)))

    def _made(self, numbers: DataFrame) -> DataFrame:
        """The rows of their numbers."""
        from pyspark.sql.functions import col, expr

        df = numbers.select(_NUMBER)
        for name, made in self.options.columns.items():
            text = made if isinstance(made, str) else sql_of(made, name, self.options.seed, _NUMBER)
            df = df.withColumn(name, expr(text))
        return df.select(*(col(quoted(name)) for name in self.options.columns))
