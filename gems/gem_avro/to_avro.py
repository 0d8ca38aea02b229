"""The transform `to_avro`: columns into Avro messages."""

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_avro.fitting import misfits
from gem_avro.options import (
    AVRO_CLASS,
    AVRO_JAR,
    CONNECT_SECONDS,
    RegisterOptions,
    RegistryOptions,
    header,
)
from gem_bundle import Facts, Field, Finding, GemError, Lineage, Transform
from gem_bundle.avro import AvroSchema, SparkAvroFile, SparkAvroText, avro_schema
from gem_bundle.packing import Packing
from gem_bundle.types import ColumnExpressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_avro.registry import Registry


class _WritingOptions(RegisterOptions):
    """Those that have nothing to do with a registry, which come first."""

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
    schema: SparkAvroText | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The Avro schema of the record to write, as JSON or as YAML; by default the latest one "
        "of the registry's subject, or without a registry one that Spark makes of the columns.",
    )
    schema_file: SparkAvroFile | None = Field(
        None,
        passed=False,
        description="A file with that schema, beside the pipeline file.",
        examples=["click.avsc"],
    )
    schema_id: int | None = Field(
        None,
        ge=0,
        le=2**31 - 1,
        passed=False,
        description="The id of the schema, to be put before each message as deserializers of schema "
        "registries want it: a zero byte, and the id in four bytes.",
    )


class ToAvroOptions(RegistryOptions, _WritingOptions):
    """Options of the transform `to_avro`."""

    default_change = "from_now_on"

    register: bool = Field(
        False,
        passed=False,
        description="Register the schema in the registry's subject when a run starts, where it isn't there. "
        "Without that a schema that isn't there is an error.",
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if self.schema is not None and self.schema_file is not None:
            raise ValueError("give `schema` or `schema_file`, not both")
        if self.avro is not None and self.avro.record is None:
            raise ValueError("the schema has to be that of a record, whose fields are the columns")
        if self.schema_id is not None and self.avro is None:
            raise ValueError("`schema_id` is the id of a schema: give that by `schema` or `schema_file`")
        if self.registry is not None:
            if self.schema_id is not None:
                raise ValueError("the registry has the id of the schema: remove `schema_id`")
            if self.register and self.avro is None:
                raise ValueError("`register` takes a schema: give that by `schema` or `schema_file`")
            if self.wanted_subject is None:
                raise ValueError(self.missing_for_subject())
        return self

    @property
    def avro(self) -> AvroSchema | None:
        """The schema, where one is given."""
        text = self.schema or self.schema_file
        return None if text is None else avro_schema(text)

    @property
    def wanted_subject(self) -> str | None:
        """The subject in the registry; None where something is missing that its name is made of."""
        return self.subject_for(None if self.avro is None else self.avro.name)


class ToAvro(Transform[ToAvroOptions]):
    """Pack columns into one column of Avro messages.

    Each row becomes one record, written by Spark's own Avro; its fields are found by their names. Without
    `keep` it is the only column that goes on. A null where the schema has no null fails the query.

    With `registry` the schema's id stands before each message. The registry is asked for it once, when a run
    starts.

    In visual tools: Avro.
    """

    example = {"columns": ["page", "clicks"], "column": "value"}

    _changes_nothing = False
    _found: tuple[AvroSchema, int] | None = None

    def jars(self) -> tuple[str, ...]:
        """Spark's Avro."""
        return (AVRO_JAR,)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows it by."""
        return (AVRO_CLASS,)

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The messages, alone or beside the input's columns."""
        from pyspark.sql.avro.functions import to_avro
        from pyspark.sql.functions import concat, lit

        packing, schema, schema_id = self._packing(), self.options.avro, self.options.schema_id
        if self.options.registry is not None:
            schema, schema_id = self._registered(self.options.client())
        message = to_avro(packing.packed(), "" if schema is None else schema.text)
        if schema_id is not None:
            message = concat(lit(header(schema_id)), message)
        return packing.placed(inputs[0], message)

    def for_preview(self) -> "ToAvro":
        """One that registers nothing: messages of a schema that isn't registered have the id 0."""
        harmless = ToAvro(self.options)
        harmless.input_names, harmless.node = self.input_names, self.node
        harmless._changes_nothing = True
        return harmless

    def infer(self, *inputs: Facts) -> Facts:
        """The column of bytes, in the place of one of its name or behind the kept ones."""
        return self._packing().infer(inputs[0], "binary")

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The message of what is packed; kept columns as they are."""
        options = self.options
        written = "" if options.avro is None else options.avro.text
        which = options.schema_id if options.registry is None else options.wanted_subject
        return self._packing().lineage(inputs[0], f"{written} {which}")

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist, and what is packed is what the schema has."""
        packing, schema = self._packing(), self._known_schema()
        found = list(packing.check(inputs[0]))
        yield from found
        fields = packing.fields(inputs[0])
        if schema is None or fields is None or found:
            return
        option = next((n for n in ("schema", "schema_file", "subject", "topic") if self._has(n)), "column")
        for words, hint in misfits(fields, schema):
            yield Finding("GB205", words, hint, option)

    def discover(self) -> None:
        """Ask the registry for the schema, where it has it."""
        if self.options.registry is not None and self.options.avro is None:
            with suppress(GemError):  # `connect` says what is wrong
                self._found = self._latest(self.options.client().at_once(CONNECT_SECONDS))

    def connect(self) -> "Iterator[Finding]":
        """The registry answers, and has the schema or takes it."""
        options = self.options
        if options.registry is None:
            return
        client, subject = options.client().at_once(CONNECT_SECONDS), options.wanted_subject or ""
        try:
            if options.avro is None:
                self._found = self._latest(client)
                message = f"messages are written with the latest schema of `{subject}` now"
                hint = "Give the schema by `schema_file` where it mustn't change."
                yield Finding("GB523", message, hint, severity="note")
            elif client.find(subject, options.avro.text) is None:
                if not options.register:
                    yield _finding(self._not_there(client))
                elif (why := client.fits(subject, options.avro.text)) is not None:
                    yield _finding(self._not_taken(client, why))
        except GemError as error:
            yield _finding(error)

    def _has(self, option: str) -> bool:
        return getattr(self.options, option) is not None

    def _known_schema(self) -> AvroSchema | None:
        """The schema, as far as it is known without asking."""
        return self.options.avro or (self._found[0] if self._found is not None else None)

    def _latest(self, client: "Registry") -> tuple[AvroSchema, int]:
        from gem_avro.latest import latest

        return self._found or latest(client, self.options.wanted_subject or "")

    def _registered(self, client: "Registry") -> tuple[AvroSchema, int]:
        """The schema and its id: the same as long as this node is there.

        Raises:
            GemError: GB522 when it isn't registered, or the registry doesn't take it, GB503 when that can't
                be asked.
        """
        if self._found is None:
            schema = self.options.avro
            self._found = self._latest(client) if schema is None else (schema, self._id(client, schema.text))
        return self._found

    def _id(self, client: "Registry", text: str) -> int:
        from gem_avro.registry import Refused

        subject = self.options.wanted_subject or ""
        found = client.find(subject, text)
        if found is not None:
            return found
        if not self.options.register:
            raise self._not_there(client)
        if self._changes_nothing:
            return 0
        try:
            return client.register(subject, text)
        except Refused as refused:
            raise self._not_taken(client, refused.words) from None

    def _not_there(self, client: "Registry") -> GemError:
        message = f"{client.told} doesn't have the schema in `{self.options.wanted_subject}`"
        hint = "Register it there, or let the run do that by `register: true`."
        return GemError("GB522", message, hint, "registry")

    def _not_taken(self, client: "Registry", why: str) -> GemError:
        message = f"{client.told} doesn't take the schema as the next one of `{self.options.wanted_subject}`"
        hint = "Change the schema so that it fits the ones before it, or the subject's rule."
        return GemError("GB522", f"{message}: {why}", hint, "register")

    def _packing(self) -> Packing:
        return Packing(self.options.columns, self.options.column, self.options.keep)


def _finding(error: GemError) -> Finding:
    return Finding(error.code, error.message, error.hint, error.option or "registry")
