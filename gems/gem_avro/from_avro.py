"""The transform `from_avro`: Avro messages into columns."""

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_avro.options import (
    AVRO_CLASS,
    AVRO_JAR,
    CONNECT_SECONDS,
    HEADER_BYTES,
    RegistryOptions,
    header,
)
from gem_bundle import Facts, Field, Finding, GemError, Lineage, Rejects, Transform, reason
from gem_bundle.avro import AvroSchema, SparkAvroFile, SparkAvroText, avro_schema
from gem_bundle.diagnostics import listed_names
from gem_bundle.packing import PARSED, ParseMode, Unpacking
from gem_bundle.schema import SchemaOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from gem_avro.registry import Registry

_BODY = "__gem_bundle_body"
_END = "__gem_bundle_end"
_MESSAGE = "message"
# Behind each message, so that Spark tells when it has read less of it than there is, or more.
_MARK = bytes.fromhex("9f4c1d7be2a05836c7d19e0b64f38a25")


class _ReadingOptions(SchemaOptions):
    """Those that have nothing to do with a registry, which come first."""

    column: str = Field(
        min_length=1,
        passed=False,
        description="The column that holds the messages, as bytes.",
        examples=["value"],
    )
    schema: SparkAvroText | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The Avro schema of a record whose fields become columns, as JSON or as YAML. It is the "
        "reader's, and the writer's too where neither `writer_schema` nor a registry says otherwise.",
        examples=[{"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]}],
    )
    schema_file: SparkAvroFile | None = Field(
        None,
        passed=False,
        description="A file with that schema, beside the pipeline file.",
        examples=["click.avsc"],
    )
    writer_schema: SparkAvroText | None = Field(
        None,
        passed=False,
        description="The schema that the messages were written with, where it is another one: fields that "
        "the reader's doesn't have are passed over, and those that only it has get their defaults.",
    )
    writer_schema_file: SparkAvroFile | None = Field(
        None, passed=False, description="A file with the writer's schema, beside the pipeline file."
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


class FromAvroOptions(RegistryOptions, _ReadingOptions):
    """Options of the transform `from_avro`."""

    default_change = "from_now_on"

    record: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The record's full name, for a subject whose name has it.",
        examples=["org.example.Click"],
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if self.schema is not None and self.schema_file is not None:
            raise ValueError("give `schema` or `schema_file`, not both")
        if self.writer_schema is not None and self.writer_schema_file is not None:
            raise ValueError("give `writer_schema` or `writer_schema_file`, not both")
        if self.registry is None and self.reader is None:
            raise ValueError("give `schema` or `schema_file`, or the address of a `registry`")
        if self.reader is not None and self.reader.record is None:
            raise ValueError("the schema has to be that of a record, whose fields become columns")
        if self.registry is not None:
            self._check_registry()
        if self.rejects and self.mode == "FAILFAST":
            raise ValueError(
                "`mode: FAILFAST` fails the query where `rejects` would go on: remove one of the two"
            )
        return self

    def _check_registry(self) -> None:
        fixed = [
            n for n in ("schema_id", "writer_schema", "writer_schema_file") if n in self.model_fields_set
        ]
        if fixed:
            raise ValueError(f"the registry has the schema of each message: remove `{fixed[0]}`")
        naming = [n for n in ("subject", "topic", "record") if n in self.model_fields_set]
        if self.reader is not None and naming:
            message = f"the reader's schema is given, so no subject is asked for it: remove `{naming[0]}`"
            raise ValueError(message)
        if self.reader is None and self.subject_for(self.record) is None:
            raise ValueError(self.missing_for_subject())

    @property
    def reader(self) -> AvroSchema | None:
        """The schema of the columns; None where the registry has it."""
        text = self.schema or self.schema_file
        return None if text is None else avro_schema(text)

    @property
    def writer(self) -> AvroSchema | None:
        """The schema of the messages; None where the registry has it."""
        written = self.writer_schema or self.writer_schema_file
        return self.reader if written is None else avro_schema(written)


class FromAvro(Transform[FromAvroOptions]):
    """Turn Avro messages into columns.

    The fields of the record become columns, with the types that Spark has for them: a union of several types
    is a struct of `member0`, `member1` …, an enum is a text. Without `keep` nothing else stays; with it the
    column that held the messages is replaced by their fields. Spark's own Avro reads them.

    With `registry` each message has the id of its schema before it, and is read by that: messages of several
    schemas may come side by side. The columns are those of the given schema, or of the latest one of the
    subject when a run starts. A registry that can't be reached fails the micro-batch, which is begun anew by
    the next run.

    With `rejects: true` the rows whose message can't be read go to the output `rejected`: null ones, ones
    that end too early or go on behind the record, ones whose values the reader's schema doesn't take, and
    with `schema_id` or `registry` those that lack the header, or have an id that isn't known.

    In visual tools: Avro.
    """

    example = {
        "column": "value",
        "schema": {"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]},
    }

    _latest: AvroSchema | None = None

    def jars(self) -> tuple[str, ...]:
        """Spark's Avro."""
        return (AVRO_JAR,)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows it by."""
        return (AVRO_CLASS,)

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The fields as columns."""
        from pyspark.sql.functions import col, lit

        (df,) = inputs
        if self.options.rejects:
            # What is null has no end: there are no reasons just where the end is the mark.
            whole = self._parsed(df).filter(col(PARSED).getField(_END) == lit(_MARK))
            fields = PARSED if self._is_flat() else f"{PARSED}.{_MESSAGE}"
            return self._unpacking().placed(whole, fields).drop(_END)
        df = self._with_bodies(df)
        return self._unpacking().placed(df.select("*", self._read().alias(PARSED)))

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows whose message can't be read."""
        return Rejects(self._parsed(inputs[0]), self._reasons())

    def infer(self, *inputs: Facts) -> Facts:
        """The fields' columns, behind the kept ones."""
        return self._unpacking().infer(inputs[0])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each field of the message, with its type and how it is read; kept columns as they are."""
        options, reader = self.options, self._known_reader()
        # Which schemas a registry's messages were written with isn't decided here.
        writer = "" if options.registry is not None or options.writer is None else options.writer.text
        written = f"{writer} {options.schema_id} {options.mode}"
        fits = reader.text if options.rejects and reader is not None else None
        return self._unpacking().lineage(inputs[0], written, fits)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and holds bytes, and no kept column has the name of a field."""
        hint = "Name the column that holds the messages, as Kafka delivers them."
        yield from self._unpacking().check(inputs[0], ("binary",), "Avro is read from bytes", hint)

    def discover(self) -> None:
        """Ask the registry for the columns, where it has them."""
        if self._known_reader() is None:
            with suppress(GemError):  # `connect` says what is wrong
                self._reader(self.options.client().at_once(CONNECT_SECONDS))

    def connect(self) -> "Iterator[Finding]":
        """The registry answers, and has the subject where it is asked for the schema."""
        if self.options.registry is None:
            return
        client = self.options.client().at_once(CONNECT_SECONDS)
        try:
            if self.options.reader is not None:
                client.schema(1)  # whether there is one or not, it has answered
                return
            yield self._taken(client)
        except GemError as error:
            option = error.option or "registry"
            yield Finding(error.code, error.message, error.hint, option)

    def _taken(self, client: "Registry") -> Finding:
        """What the columns are by, said to the user."""
        reader = self._reader(client)
        names = listed_names(column.name for column in reader.columns or ())
        message = f"messages become the columns {names}, by the latest schema of `{self._subject()}` now"
        return Finding(
            "GB523", message, "Give the schema by `schema_file` where it mustn't change.", severity="note"
        )

    def _subject(self) -> str:
        return self.options.subject_for(self.options.record) or ""

    def _known_reader(self) -> AvroSchema | None:
        """The reader's schema, as far as it is known without asking."""
        return self.options.reader or self._latest

    def _reader(self, client: "Registry | None" = None) -> AvroSchema:
        """The reader's schema: of a registry the latest when it is first asked, and that one from then on.

        Raises:
            GemError: When the registry can't be asked, or has none that is of use.
        """
        found = self._known_reader()
        if found is None:
            from gem_avro.latest import latest

            found = self._latest = latest(client or self.options.client(), self._subject())[0]
        return found

    def _body(self) -> "SparkColumn":
        """The message without its header; null where it hasn't the right one."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        message = F.col(self.options.column)
        if self.options.registry is not None:
            return F.col(_BODY).getField("message")
        if self.options.schema_id is None:
            return message
        begins = F.substring(message, 1, HEADER_BYTES) == F.lit(header(self.options.schema_id))
        rest = F.substring(message, F.lit(HEADER_BYTES + 1), F.length(message))
        body = F.when(begins, rest)
        if self.options.mode != "FAILFAST":
            return body
        words = f"a message doesn't begin with a zero byte and the id {self.options.schema_id}"
        return body.when(message.isNotNull(), F.raise_error(words).cast("binary"))

    def _with_bodies(self, df: "DataFrame") -> "DataFrame":
        """The rows, with a registry each with its message in the reader's schema."""
        from pyspark.sql import functions as F  # noqa: N812

        options = self.options
        if options.registry is None:
            return df
        from gem_avro.reading import BODY_TYPE, Reading

        reading = Reading(options.client(), self._reader().text, options.mode == "FAILFAST")
        # What it gives depends on more than its argument; and a filter would have it computed twice.
        body = F.udf(reading, BODY_TYPE, useArrow=False).asNondeterministic()
        return df.select("*", body(F.col(options.column)).alias(_BODY))

    def _read(self) -> "SparkColumn":
        from pyspark.sql.avro.functions import from_avro

        reader, writer = self._reader(), self.options.writer
        options = {"mode": self.options.mode, "avroSchema": reader.text}
        return from_avro(self._body(), (writer or reader).text, options)

    def _parsed(self, df: "DataFrame") -> "DataFrame":
        """The rows with what was read: the message, and what stood behind it."""
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.avro.functions import from_avro

        reader, writer = self._reader(), self.options.writer
        flat = self._is_flat()
        options = {"mode": "PERMISSIVE", "avroSchema": _marked(reader, flat=flat)}
        body = F.concat(self._body(), F.lit(_MARK))
        parsed = from_avro(body, _marked(writer or reader, flat=flat), options)
        return Unpacking.read_once(self._with_bodies(df), F.array(parsed))

    def _is_flat(self) -> bool:
        """Whether the mark behind a message is one more of its fields."""
        return all(map(_is_plain, (self._reader(), self.options.writer or self._reader())))

    def _reasons(self) -> "SparkColumn":
        from pyspark.sql import functions as F  # noqa: N812

        message, parsed = F.col(self.options.column), F.col(PARSED)
        none = F.filter(F.array(reason("", "")), lambda _: F.lit(False))
        found = F.when(message.isNull(), F.array(reason("no_message", "there is no message: it is null")))
        if self.options.registry is not None:
            body = F.col(_BODY)
            told = F.struct(body.getField("name").alias("name"), body.getField("words").alias("words"))
            found = found.when(body.getField("name").isNotNull(), F.array(told))
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

    def _unpacking(self) -> Unpacking:
        reader = self._known_reader()
        return Unpacking(self.options.column, self.options.keep, None if reader is None else reader.columns)


def _is_plain(schema: AvroSchema) -> bool:
    """Whether a message is the fields of a record and nothing else: one that may be null isn't."""
    root = json.loads(schema.text)
    return isinstance(root, dict) and root.get("type") in {"record", "error"}


def _marked(schema: AvroSchema, *, flat: bool) -> str:
    """The schema of a message with the mark behind it: a record is no more than its fields, one by one.

    Spark takes several times as long for a record in a record, so the mark is rather one of its fields.
    """
    root = json.loads(schema.text)
    mark = {"type": "fixed", "name": f"{_END}_bytes", "namespace": "", "size": len(_MARK)}
    end = {"name": _END, "type": mark}
    if flat:
        return json.dumps({**root, "fields": [*root["fields"], end]})
    fields = [{"name": _MESSAGE, "type": root}, end]
    return json.dumps({"type": "record", "name": "__gem_bundle_marked", "fields": fields})
