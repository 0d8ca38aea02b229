"""The transform `to_avro`: columns into Avro messages."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_avro.options import AVRO_JAR, AvroFile, AvroText, header
from gem_avro.schema import AvroSchema
from gem_bundle import Column, Facts, Field, Finding, Lineage, Made, Transform
from gem_bundle.expressions import check_expression, keyed, made_of, split_alias
from gem_bundle.lineage import passed
from gem_bundle.schema import SchemaOptions
from gem_bundle.types import ColumnExpressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class ToAvroOptions(SchemaOptions):
    """Options of the transform `to_avro`."""

    default_change = "from_now_on"

    columns: ColumnExpressions | None = Field(
        None,
        min_length=1,
        passed=False,
        description="What to pack, as a list of expressions or as a mapping of field to expression; "
        "by default all columns.",
        examples=[["page", "clicks"], {"page": "page", "n": "clicks"}],
    )
    column: str = Field(
        "value", min_length=1, passed=False, description="The name of the column with the messages."
    )
    keep: bool = Field(
        False,
        passed=False,
        description="Keep the input's columns, the packed ones too; one called like `column` is replaced.",
    )
    schema: AvroText | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The Avro schema of the record to write, as JSON or as YAML; by default Spark makes one "
        "of the columns.",
    )
    schema_file: AvroFile | None = Field(
        None, passed=False, description="A file with that schema, on a disk.", examples=["click.avsc"]
    )
    schema_id: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        passed=False,
        description="The id of the schema, to be put before each message as deserializers of schema "
        "registries want it: a zero byte, and the id in four bytes.",
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if self.schema is not None and self.schema_file is not None:
            raise ValueError("give `schema` or `schema_file`, not both")
        if self.avro is not None and not self.avro.is_record:
            raise ValueError("the schema has to be that of a record, whose fields are the columns")
        if self.schema_id is not None and self.avro is None:
            raise ValueError("`schema_id` is the id of a schema: give that by `schema` or `schema_file`")
        return self

    @property
    def avro(self) -> AvroSchema | None:
        """The schema, where one is given."""
        text = self.schema or self.schema_file
        return None if text is None else AvroSchema(text)


class ToAvro(Transform[ToAvroOptions]):
    """Pack columns into one column of Avro messages.

    Each row becomes one record, written by Spark's own Avro; its fields are found by their names. Without
    `keep` it is the only column that goes on. A null where the schema has no null fails the query.
    """

    example = {"columns": ["page", "clicks"], "column": "value"}

    def jars(self) -> tuple[str, ...]:
        """Spark's Avro."""
        return (AVRO_JAR,)

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The messages, alone or beside the input's columns."""
        from pyspark.sql.avro.functions import to_avro
        from pyspark.sql.functions import col, concat, expr, lit, struct

        (df,) = inputs
        options = self.options
        if options.columns is None:
            packed = [col("*")]
        elif isinstance(options.columns, dict):
            packed = [expr(body).alias(name) for name, body in options.columns.items()]
        else:
            packed = [expr(expression) for expression in options.columns]
        message = to_avro(struct(*packed), "" if options.avro is None else options.avro.text)
        if options.schema_id is not None:
            message = concat(lit(header(options.schema_id)), message)
        if options.keep:
            return df.withColumns({options.column: message})
        return df.select(message.alias(options.column))

    def infer(self, *inputs: Facts) -> Facts:
        """The column of bytes, in the place of one of its name or behind the kept ones."""
        (facts,) = inputs
        message = Column(self.options.column, "binary")
        if not self.options.keep:
            return facts.with_columns([message])
        if facts.columns is None:
            return facts
        name = message.name.lower()
        columns = [message if c.name.lower() == name else c for c in facts.columns]
        return facts.with_columns(columns if message in columns else [*columns, message])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The message of what is packed; kept columns as they are."""
        (facts,) = inputs
        through = passed(facts.columns)
        if through is None:
            return None
        options = self.options
        if options.columns is None:
            packed, rules = [*through.values()], list(through)
        else:
            packed = [made_of(split_alias(body)[0], facts.columns) for _, body in keyed(options.columns)]
            rules = [f"{key} {body}" for key, body in keyed(options.columns)]
        uses = (
            None
            if any(made.uses is None for made in packed)
            else frozenset[str]().union(*(made.uses or () for made in packed))
        )
        written = "" if options.avro is None else options.avro.text
        message = {options.column.lower(): Made(f"{rules} {written} {options.schema_id}", uses)}
        return Lineage(through | message if options.keep else message)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist."""
        for key, expression in keyed(self.options.columns or ()):
            if not split_alias(expression)[0].endswith("*"):
                yield from check_expression(
                    expression, inputs[0], ("columns", key), aggregates="allowed", generators=False
                )
