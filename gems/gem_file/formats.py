"""What reading and writing files have in common: the formats, and options that only some of them have."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from gem_bundle import Field
from gem_bundle.schema import SchemaOptions
from gem_bundle.types import DataPath

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Format = Literal["csv", "json", "parquet", "orc", "text", "avro", "xml"]
AVRO_JAR = "org.apache.spark:spark-avro_{scala}:{spark}"
AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"

WHY_NOT = {
    "text": "each line of a text is a row, whatever it says",
    "parquet": "Spark reads columns of many rows at a time from it, and can't tell which row is damaged",
    "orc": "Spark reads columns of many rows at a time from it, and can't tell which row is damaged",
    "avro": "Spark reads blocks of many rows at a time from it, and can't tell which row is damaged",
}
"""Why records of some formats can't be rejected: no reader of Spark's tells which one is damaged."""

RawOptions = dict[str, str | int | float | bool]
RebaseMode = Annotated[
    Literal["EXCEPTION", "CORRECTED", "LEGACY"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]


def format_option(formats: str, description: str, **more: Any) -> Any:
    """Declare an option that only some formats have, and that Spark would ignore for the others.

    Args:
        formats: The formats, with spaces between them.
        description: What the option is for; that it is for these formats only is added.
        more: What `Field` takes.
    """
    names = formats.split()
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    info = Field(None, description=f"{description} For {listed}.", **more)
    info.json_schema_extra["gem_bundle"]["formats"] = names
    return info


csv = partial(format_option, "csv")
json_only = partial(format_option, "json")
csv_json = partial(format_option, "csv json")
csv_json_xml = partial(format_option, "csv json xml")


def _avro_text(value: Any) -> Any:
    # Few files have a schema: the others need no module that reads one.
    from gem_bundle.avro import avro_text

    return avro_text(value)


_AvroText = Annotated[
    str, BeforeValidator(_avro_text), WithJsonSchema({"type": ["string", "object", "array"]})
]
avro = partial(format_option, "avro")
xml = partial(format_option, "xml")


class FileOptions(SchemaOptions):
    """Options of both the source and the target `file`."""

    default_change = "from_now_on"

    path: DataPath = Field(passed=False, description="The folder.", place=True)
    format: Format = Field(passed=False, description="The format of the files.")

    header: bool | None = csv("Whether the first line of a file names the columns (default: false).")
    sep: str | None = csv("The separator between values (default: a comma).", examples=[";", "\\t"])
    quote: str | None = csv("The character around values that hold a separator.", max_length=1)
    escape: str | None = csv("The character before a quote within quotes.", max_length=1)
    char_to_escape_quote_escaping: str | None = csv(
        "The character before an escape character that stands for itself.",
        max_length=1,
        advanced=True,
    )
    null_value: str | None = format_option("csv xml", "The text that stands for null.", examples=["NA"])
    empty_value: str | None = csv("The text that stands for an empty text.", advanced=True)
    ignore_leading_white_space: bool | None = csv("Whether to drop white space before values.")
    ignore_trailing_white_space: bool | None = csv("Whether to drop white space after values.")
    date_format: str | None = csv_json_xml("The pattern of dates.", examples=["dd.MM.yyyy"])
    timestamp_format: str | None = csv_json_xml(
        "The pattern of timestamps.", examples=["yyyy-MM-dd HH:mm:ss"]
    )
    timestamp_ntz_format: str | None = csv_json_xml(
        "The pattern of timestamps without time zone.", spark="timestampNTZFormat", advanced=True
    )
    time_format: str | None = csv_json("The pattern of times of day.", since="4.1", advanced=True)
    time_zone: str | None = csv_json_xml(
        "The time zone of timestamps without one (default: the session's).",
        examples=["Europe/Berlin"],
    )
    locale: str | None = csv_json_xml(
        "The language of names in dates, as a tag.", examples=["de-DE"], advanced=True
    )
    encoding: str | None = format_option(
        "csv json text xml", "The character set (default: UTF-8).", examples=["ISO-8859-1"]
    )
    line_sep: str | None = format_option(
        "csv json text", "The separator between records (default: a line's end)."
    )
    avro_schema: _AvroText | None = avro("The Avro schema, as JSON or as YAML.")
    avro_schema_url: DataPath | None = avro("A file with the Avro schema.")
    positional_field_matching: bool | None = avro(
        "Whether to match the Avro schema's fields with columns by position.", advanced=True
    )

    row_tag: str | None = xml("The element that is a row; required.", examples=["book"])
    attribute_prefix: str | None = xml("What the columns of attributes begin with (default: `_`).")
    value_tag: str | None = xml(
        "The column of text in an element that has attributes or elements too (default: `_VALUE`)."
    )

    @model_validator(mode="after")
    def _options_of_the_format(self) -> Self:
        foreign = []
        for name, info in type(self).model_fields.items():
            formats = formats_of(info)
            if name in self.model_fields_set and formats and self.format not in formats:
                foreign.append(f"`{name}` is for {' and '.join(formats)}")
        if foreign:
            raise ValueError(f"{'; '.join(foreign)}, and the format is {self.format}")
        if self.avro_schema is not None and self.avro_schema_url is not None:
            raise ValueError("give `avro_schema` or `avro_schema_url`, not both")
        if self.format == "xml" and self.row_tag is None:
            raise ValueError("the format xml needs `row_tag`, the element that is a row")
        return self


def formats_of(info: "FieldInfo") -> list[str]:
    """The formats that have an option; an empty list when all have it."""
    extra = info.json_schema_extra
    kept = extra.get("gem_bundle") if isinstance(extra, dict) else None
    formats = kept.get("formats") if isinstance(kept, dict) else None
    return [str(name) for name in formats] if isinstance(formats, list) else []
