"""The transform `from_json`: JSON text into columns."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, model_validator

from gem_bundle import Facts, Field, Finding, Lineage, Made, Rejects, Transform
from gem_bundle.expressions import find, made_of, missing_columns, reference
from gem_bundle.lineage import passed
from gem_bundle.schema import SchemaOptions, columns_of, with_article
from gem_bundle.types import Schema
from gem_json.fitting import reasons

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_PARSED = "__gem_bundle_parsed"
_TEXT_TYPES = ("string", "binary", "varchar", "char")

Mode = Annotated[
    Literal["PERMISSIVE", "FAILFAST"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]


class FromJsonOptions(SchemaOptions):
    """Options of the transform `from_json`: its own, and those of Spark's JSON reader for one text."""

    default_change = "from_now_on"

    column: str = Field(
        min_length=1,
        passed=False,
        description="The column that holds the JSON, as text or as bytes in UTF-8.",
        examples=["value"],
    )
    schema: Schema = Field(  # type: ignore[assignment]
        passed=False,
        description="The fields to take, with their types; a field that the JSON lacks is null.",
        examples=["page string, at timestamp"],
    )
    keep: bool = Field(
        False,
        passed=False,
        description="Keep the input's other columns, in front of the fields.",
    )
    mode: Mode = Field(
        "PERMISSIVE",
        description="What to do with text that doesn't fit: `PERMISSIVE` makes its fields null, "
        "`FAILFAST` fails the query.",
    )
    rejects: bool = Field(
        False,
        passed=False,
        description="Hand text that isn't JSON, or doesn't fit, to the output `rejected`, and not to the "
        "ordinary one. A field with `not null` in `schema` has to be there then.",
    )
    column_name_of_corrupt_record: str | None = Field(
        None,
        description="A text column of `schema` that gets the whole text where it doesn't fit; "
        "by default the one called `_corrupt_record`, if there is one.",
    )
    timestamp_format: str | None = Field(
        None, description="Pattern of timestamps.", examples=["yyyy-MM-dd HH:mm:ss"]
    )
    timestamp_ntz_format: str | None = Field(
        None, spark="timestampNTZFormat", description="Pattern of timestamps without time zone."
    )
    date_format: str | None = Field(None, description="Pattern of dates.", examples=["dd.MM.yyyy"])
    time_zone: str | None = Field(
        None,
        description="Time zone of timestamps that name none; by default the session's.",
        examples=["Europe/Berlin"],
    )
    locale: str | None = Field(
        None, description="Language of month and day names in patterns.", examples=["en-US"]
    )
    enable_date_time_parsing_fallback: bool | None = Field(
        None,
        advanced=True,
        description="Try Spark 1's and 2's way of reading dates and times when the pattern fails.",
    )
    allow_comments: bool = Field(
        False, advanced=True, description="Accept comments in Java's and C++'s style."
    )
    allow_unquoted_field_names: bool = Field(
        False, advanced=True, description="Accept field names without quotes."
    )
    allow_single_quotes: bool = Field(
        True, advanced=True, description="Accept single quotes as well as double quotes."
    )
    allow_numeric_leading_zeros: bool = Field(
        False, advanced=True, description="Accept zeros in front of numbers."
    )
    allow_backslash_escaping_any_character: bool = Field(
        False, advanced=True, description="Accept a backslash in front of any character."
    )
    allow_unquoted_control_chars: bool = Field(
        False, advanced=True, description="Accept control characters such as tabs within texts."
    )
    allow_non_numeric_numbers: bool = Field(
        True, advanced=True, description="Accept `NaN`, `Infinity` and `-Infinity` as numbers."
    )
    spark_options: dict[str, str | int | float | bool] = Field(
        {}, passed=False, advanced=True, description="Further options, passed to Spark as they are."
    )

    @model_validator(mode="after")
    def _one_place(self) -> "FromJsonOptions":
        if not self.rejects:
            return self
        if self.mode == "FAILFAST":
            raise ValueError(
                "`mode: FAILFAST` fails the query where `rejects` would go on: remove one of the two"
            )
        names = [column.name for column in columns_of(self.schema) or ()]
        if self.column_name_of_corrupt_record is not None or "_corrupt_record" in names:
            raise ValueError(
                "with `rejects` text that doesn't fit goes to the output `rejected`, and no column gets it: "
                "remove `column_name_of_corrupt_record`, and `_corrupt_record` from `schema`"
            )
        return self


class FromJson(Transform[FromJsonOptions]):
    """Turn JSON text into columns.

    The fields of the schema become columns. Without `keep` nothing else stays; with it the column
    that held the JSON is replaced by its fields. Bytes, as Kafka delivers them, are read as UTF-8.

    With `rejects: true` the rows whose text isn't one object of JSON with the fields of the schema go to the
    output `rejected`: null and empty texts, broken ones, ones with something behind the object, bytes that
    are no UTF-8, values of another type or out of its range, and where a field is `not null` its absence.
    Of a name that is there twice the last value counts, and what the schema doesn't name is passed over.
    """

    example = {"column": "value", "schema": "page string, at timestamp"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The fields as columns."""
        from pyspark.sql.functions import col, from_json, size

        (df,) = inputs
        options = self.options
        text = col(options.column).cast("string")
        if options.rejects:
            df = df.filter(size(reasons(text, options.schema, options.to_spark())) == 0)
        # Spark Connect refuses an empty mapping of options.
        parsed = from_json(text, options.schema, options.to_spark() or None).alias(_PARSED)
        if not options.keep:
            return df.select(parsed).select(f"{_PARSED}.*")
        source = self._source_column()
        df = df.select("*", parsed)
        # Dropped first: a field of the schema may have the same name.
        return (df.drop(source) if source else df).select("*", f"{_PARSED}.*").drop(_PARSED)

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows whose text doesn't fit."""
        from pyspark.sql.functions import col

        options = self.options
        text = col(options.column).cast("string")
        return Rejects(inputs[0], reasons(text, options.schema, options.to_spark()))

    def infer(self, *inputs: Facts) -> Facts:
        """The schema's columns, behind the kept ones."""
        (facts,) = inputs
        fields = columns_of(self.options.schema)
        if not self.options.keep:
            return facts.with_columns(fields)
        if facts.columns is None or fields is None:
            return facts.with_columns(None)
        source = self._source_column()
        kept = [c for c in facts.columns if source is None or c.name.lower() != source.lower()]
        return facts.with_columns([*kept, *fields])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each field of the text, with its type and how it is read; kept columns as they are."""
        (facts,) = inputs
        fields = columns_of(self.options.schema)
        text = made_of(self.options.column, facts.columns)
        through = passed(facts.columns) if self.options.keep else {}
        if fields is None or through is None:
            return None
        reading = self.options.model_dump_json(exclude={"schema", "column", "keep"}, exclude_defaults=True)
        source = (self._source_column() or "").lower()
        made = {
            field.name.lower(): Made(f"{field.name}: {field.type} {reading} {text.rule}", text.uses)
            for field in fields
        }
        columns = {key: kept for key, kept in through.items() if key != source} | made
        taken = (
            Made(f"fits {self.options.schema} {reading} {text.rule}", text.uses)
            if self.options.rejects
            else Made()
        )
        return Lineage(columns, taken)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and holds text, and no kept column has the name of a field."""
        (facts,) = inputs
        options = self.options
        yield from missing_columns([options.column], facts, "column")
        parts = reference(options.column)
        column = find(parts, facts.columns or ()) if parts else None
        if column is not None and column.type and not column.type.lower().startswith(_TEXT_TYPES):
            yield Finding(
                "GB205",
                f"`{options.column}` is {with_article(column.type)}; JSON is read from text or bytes",
                "Name the column that holds the JSON.",
                "column",
                "warning",
            )
        if options.keep and facts.columns is not None:
            source = (self._source_column() or "").lower()
            kept = {c.name.lower() for c in facts.columns} - {source}
            for field in columns_of(options.schema) or ():
                if field.name.lower() in kept:
                    yield Finding(
                        "GB205",
                        f"there will be two columns `{field.name}`: the field, and a kept one",
                        "Rename or drop the other column first.",
                        "keep",
                        "warning",
                    )

    def _source_column(self) -> str | None:
        """The name of the column that its fields replace; None for a field of a struct, which stays."""
        parts = reference(self.options.column)
        if parts is None:
            return self.options.column
        return parts[0] if len(parts) == 1 else None
