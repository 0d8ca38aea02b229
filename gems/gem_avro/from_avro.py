"""The transform `from_avro`: Avro messages into columns."""

import json
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_avro.options import AVRO_JAR, HEADER_BYTES, AvroFile, AvroText, header
from gem_bundle import Facts, Field, Finding, Lineage, Rejects, Transform, reason
from gem_bundle.avro import AvroSchema, avro_schema
from gem_bundle.packing import PARSED, ParseMode, Unpacking
from gem_bundle.schema import SchemaOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_END = "__gem_bundle_end"
# Behind each message, so that Spark tells when it has read less of it than there is, or more.
_MARK = bytes.fromhex("9f4c1d7be2a05836c7d19e0b64f38a25")


class FromAvroOptions(SchemaOptions):
    """Options of the transform `from_avro`."""

    default_change = "from_now_on"

    column: str = Field(
        min_length=1,
        passed=False,
        description="The column that holds the messages, as bytes.",
        examples=["value"],
    )
    schema: AvroText | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The Avro schema of a record whose fields become columns, as JSON or as YAML. It is the "
        "reader's, and the writer's too where `writer_schema` doesn't say otherwise.",
        examples=[{"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]}],
    )
    schema_file: AvroFile | None = Field(
        None, passed=False, description="A file with that schema, on a disk.", examples=["click.avsc"]
    )
    writer_schema: AvroText | None = Field(
        None,
        passed=False,
        description="The schema that the messages were written with, where it is another one: fields that "
        "the reader's doesn't have are passed over, and those that only it has get their defaults.",
    )
    writer_schema_file: AvroFile | None = Field(
        None, passed=False, description="A file with the writer's schema, on a disk."
    )
    schema_id: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        passed=False,
        description="The id that stands before each message, as serializers of schema registries have it: a "
        "zero byte, and the id in four bytes. A message with another one isn't read by these schemas.",
    )
    keep: bool = Field(
        False, passed=False, description="Keep the input's other columns, in front of the fields."
    )
    mode: ParseMode = Field(
        "PERMISSIVE",
        description="What to do with a message that can't be read: `PERMISSIVE` makes its fields null, "
        "`FAILFAST` fails the query.",
    )
    rejects: bool = Field(
        False,
        passed=False,
        description="Hand messages that can't be read to the output `rejected`, and not to the ordinary one.",
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if (self.schema is None) == (self.schema_file is None):
            raise ValueError("give `schema` or `schema_file`, one of the two")
        if self.writer_schema is not None and self.writer_schema_file is not None:
            raise ValueError("give `writer_schema` or `writer_schema_file`, not both")
        if self.reader.record is None:
            raise ValueError("the schema has to be that of a record, whose fields become columns")
        if self.rejects and self.mode == "FAILFAST":
            raise ValueError(
                "`mode: FAILFAST` fails the query where `rejects` would go on: remove one of the two"
            )
        return self

    @property
    def reader(self) -> AvroSchema:
        """The schema of the columns."""
        return avro_schema(self.schema or self.schema_file or "")

    @property
    def writer(self) -> AvroSchema:
        """The schema of the messages."""
        written = self.writer_schema or self.writer_schema_file
        return self.reader if written is None else avro_schema(written)


class FromAvro(Transform[FromAvroOptions]):
    """Turn Avro messages into columns.

    The fields of the record become columns, with the types that Spark has for them: a union of several types
    is a struct of `member0`, `member1` …, an enum is a text. Without `keep` nothing else stays; with it the
    column that held the messages is replaced by their fields. Spark's own Avro reads them.

    With `rejects: true` the rows whose message can't be read go to the output `rejected`: null ones, ones
    that end too early or go on behind the record, ones whose values the reader's schema doesn't take, and
    with `schema_id` those that lack the header, or have another id.
    """

    example = {
        "column": "value",
        "schema": {"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]},
    }

    def jars(self) -> tuple[str, ...]:
        """Spark's Avro."""
        return (AVRO_JAR,)

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The fields as columns."""
        from pyspark.sql.functions import size

        (df,) = inputs
        if self.options.rejects:
            whole = self._parsed(df).filter(size(self._reasons()) == 0)
            return self._unpacking().placed(whole, f"{PARSED}.message")
        return self._unpacking().placed(df.select("*", self._read().alias(PARSED)))

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows whose message can't be read."""
        return Rejects(self._parsed(inputs[0]), self._reasons())

    def _body(self) -> "SparkColumn":
        """The message without its header; null where it hasn't the right one."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        message = F.col(self.options.column)
        if self.options.schema_id is None:
            return message
        begins = F.substring(message, 1, HEADER_BYTES) == F.lit(header(self.options.schema_id))
        rest = F.substring(message, F.lit(HEADER_BYTES + 1), F.length(message))
        return F.when(begins, rest)

    def _read(self) -> "SparkColumn":
        from pyspark.sql.avro.functions import from_avro

        options = {"mode": self.options.mode, "avroSchema": self.options.reader.text}
        return from_avro(self._body(), self.options.writer.text, options)

    def _parsed(self, df: "DataFrame") -> "DataFrame":
        """The rows with what was read: the message, and what stood behind it."""
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.avro.functions import from_avro

        options = {"mode": "PERMISSIVE", "avroSchema": _marked(self.options.reader)}
        body = F.concat(self._body(), F.lit(_MARK))
        return df.select("*", from_avro(body, _marked(self.options.writer), options).alias(PARSED))

    def _reasons(self) -> "SparkColumn":
        from pyspark.sql import functions as F  # noqa: N812

        message, parsed = F.col(self.options.column), F.col(PARSED)
        none = F.filter(F.array(reason("", "")), lambda _: F.lit(False))
        found = F.when(message.isNull(), F.array(reason("no_message", "there is no message: it is null")))
        if self.options.schema_id is not None:
            wrong = (F.length(message) < HEADER_BYTES) | (F.substring(message, 1, 1) != F.lit(b"\x00"))
            words = "the message doesn't begin with a zero byte and the id of its schema"
            found = found.when(wrong, F.array(reason("no_header", words)))
            number = F.conv(F.hex(F.substring(message, 2, HEADER_BYTES - 1)), 16, 10)
            words_of_id = F.concat(
                F.lit("the message was written with the schema "),
                number,
                F.lit(f", and only {self.options.schema_id} is known"),
            )
            other = F.substring(message, 1, HEADER_BYTES) != F.lit(header(self.options.schema_id))
            found = found.when(other, F.array(reason("unknown_schema", words_of_id)))
        unread = F.array(reason("not_avro", "the message isn't a record of the schema"))
        behind = F.array(reason("not_avro", "the message goes on behind its record"))
        end = parsed.getField(_END)
        return found.when(end.isNull(), unread).when(end != F.lit(_MARK), behind).otherwise(none)

    def infer(self, *inputs: Facts) -> Facts:
        """The fields' columns, behind the kept ones."""
        return self._unpacking().infer(inputs[0])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each field of the message, with its type and how it is read; kept columns as they are."""
        options = self.options
        written = f"{options.writer.text} {options.schema_id} {options.mode}"
        return self._unpacking().lineage(inputs[0], written, options.reader.text if options.rejects else None)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and holds bytes, and no kept column has the name of a field."""
        hint = "Name the column that holds the messages, as Kafka delivers them."
        yield from self._unpacking().check(inputs[0], ("binary",), "Avro is read from bytes", hint)

    def _unpacking(self) -> Unpacking:
        return Unpacking(self.options.column, self.options.keep, self.options.reader.columns)


def _marked(schema: AvroSchema) -> str:
    """The schema of a message with the mark behind it: a record is no more than its fields, one by one."""
    end = {"type": "fixed", "name": f"{_END}_bytes", "size": len(_MARK)}
    fields = [{"name": "message", "type": json.loads(schema.text)}, {"name": _END, "type": end}]
    return json.dumps({"type": "record", "name": "__gem_bundle_marked", "fields": fields})
