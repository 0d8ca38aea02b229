"""The transform `from_json`: JSON text into columns."""

from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, Lineage, Rejects, Transform
from gem_bundle.packing import PARSED, ParseMode, Unpacking
from gem_bundle.schema import SchemaOptions, columns_of
from gem_bundle.types import ReadSchema
from gem_json.fitting import CORRUPT, FITTED, REASONS, judged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

_TEXT_TYPES = ("string", "binary", "varchar", "char")


class FromJsonOptions(SchemaOptions):
    """Options of the transform `from_json`: its own, and those of Spark's JSON reader for one text."""

    default_change = "from_now_on"

    column: str = Field(
        min_length=1,
        passed=False,
        description="The column that holds the JSON, as text or as bytes in UTF-8.",
        examples=["value"],
    )
    schema: ReadSchema = Field(  # type: ignore[assignment]
        passed=False,
        description="The fields to take, with their types; a field that the JSON lacks is null.",
        examples=["page string, at timestamp"],
    )
    keep: bool = Field(
        False,
        passed=False,
        description="Keep the input's other columns, in front of the fields.",
    )
    mode: ParseMode = Field(
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
    duplicate_names: Literal["last", "reject"] = Field(
        "last",
        passed=False,
        description="What to do with an object that has a name twice: `last` takes the last value, as Spark "
        "does, `reject` hands it to the output `rejected`, which takes `rejects`. Objects within aren't "
        "looked at.",
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
            if self.duplicate_names == "reject":
                raise ValueError(
                    "`duplicate_names: reject` needs the output for rejected rows: add `rejects: true`"
                )
            return self
        raw = {key.lower(): value for key, value in self.spark_options.items()}
        mode = str(raw.get("mode", self.mode)).upper()
        if mode == "FAILFAST":
            raise ValueError(
                "`mode: FAILFAST` fails the query where `rejects` would go on: remove one of the two"
            )
        if mode != "PERMISSIVE":
            raise ValueError(
                f"`mode: {mode}` does something else than `rejects` with text that doesn't fit: remove one "
                "of the two"
            )
        names = [column.name for column in columns_of(self.schema) or ()]
        corrupt = raw.get("columnnameofcorruptrecord", self.column_name_of_corrupt_record)
        if corrupt is not None or "_corrupt_record" in names:
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
    Of a name that is there twice the last value counts, unless `duplicate_names: reject`, and what the schema
    doesn't name is passed over.

    In visual tools: ColumnParser.
    """

    example = {"column": "value", "schema": "page string, at timestamp"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The fields as columns."""
        from pyspark.sql.functions import col, from_json, size

        (df,) = inputs
        options = self.options
        if options.rejects:
            whole = self._judged(df).filter(size(col(PARSED).getField(REASONS)) == 0)
            return self._unpacking().placed(whole, f"{PARSED}.{FITTED}").drop(CORRUPT)
        text = col(options.column).cast("string")
        # Spark Connect refuses an empty mapping of options.
        parsed = from_json(text, options.schema, options.to_spark() or None).alias(PARSED)
        return self._unpacking().placed(df.select("*", parsed))

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows whose text doesn't fit."""
        from pyspark.sql.functions import col

        return Rejects(self._judged(inputs[0]), col(PARSED).getField(REASONS))

    def infer(self, *inputs: Facts) -> Facts:
        """The schema's columns, behind the kept ones."""
        return self._unpacking().infer(inputs[0])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each field of the text, with its type and how it is read; kept columns as they are."""
        options = self.options
        reading = options.model_dump_json(exclude={"schema", "column", "keep"}, exclude_defaults=True)
        return self._unpacking().lineage(inputs[0], reading, options.schema if options.rejects else None)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and holds text, and no kept column has the name of a field."""
        wanted, hint = "JSON is read from text or bytes", "Name the column that holds the JSON."
        yield from self._unpacking().check(inputs[0], _TEXT_TYPES, wanted, hint, certain=False)

    def _judged(self, df: "DataFrame") -> "DataFrame":
        """The rows with what their text was read as, and why it doesn't fit."""
        from pyspark.sql.functions import col

        options = self.options
        text = col(options.column).cast("string")
        once = options.duplicate_names == "reject"
        return Unpacking.read_once(df, judged(text, options.schema, options.to_spark(), names_once=once))

    def _unpacking(self) -> Unpacking:
        options = self.options
        return Unpacking(options.column, options.keep, columns_of(options.schema))
