"""The transform `to_avro`: columns into Avro messages."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_avro.options import AVRO_JAR, AvroFile, AvroText, header
from gem_bundle import Facts, Field, Finding, Lineage, Transform
from gem_bundle.avro import AvroSchema, avro_schema
from gem_bundle.packing import Packing
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
        if self.avro is not None and self.avro.record is None:
            raise ValueError("the schema has to be that of a record, whose fields are the columns")
        if self.schema_id is not None and self.avro is None:
            raise ValueError("`schema_id` is the id of a schema: give that by `schema` or `schema_file`")
        return self

    @property
    def avro(self) -> AvroSchema | None:
        """The schema, where one is given."""
        text = self.schema or self.schema_file
        return None if text is None else avro_schema(text)


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
        from pyspark.sql.functions import concat, lit

        options, packing = self.options, self._packing()
        message = to_avro(packing.packed(), "" if options.avro is None else options.avro.text)
        if options.schema_id is not None:
            message = concat(lit(header(options.schema_id)), message)
        return packing.placed(inputs[0], message)

    def infer(self, *inputs: Facts) -> Facts:
        """The column of bytes, in the place of one of its name or behind the kept ones."""
        return self._packing().infer(inputs[0], "binary")

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The message of what is packed; kept columns as they are."""
        written = "" if self.options.avro is None else self.options.avro.text
        return self._packing().lineage(inputs[0], f"{written} {self.options.schema_id}")

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist."""
        yield from self._packing().check(inputs[0])

    def _packing(self) -> Packing:
        return Packing(self.options.columns, self.options.column, self.options.keep)
