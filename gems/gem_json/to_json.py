"""The transform `to_json`: columns into JSON text."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Finding, Lineage, Options, Transform
from gem_bundle.packing import Packing
from gem_bundle.types import ColumnExpressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class ToJsonOptions(Options):
    """Options of the transform `to_json`: its own, and those of Spark's JSON writer for one text."""

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
        "value", min_length=1, passed=False, description="The name of the column with the JSON."
    )
    keep: bool = Field(
        False,
        passed=False,
        description="Keep the input's columns, the packed ones too; one called like `column` is replaced.",
    )
    ignore_null_fields: bool | None = Field(
        None,
        description="Leave fields out whose value is null; by default the session setting "
        "`spark.sql.jsonGenerator.ignoreNullFields`, which is true.",
    )
    pretty: bool = Field(False, description="Write JSON over several lines, indented.")
    timestamp_format: str | None = Field(
        None, description="Pattern of timestamps.", examples=["yyyy-MM-dd HH:mm:ss"]
    )
    timestamp_ntz_format: str | None = Field(
        None, spark="timestampNTZFormat", description="Pattern of timestamps without time zone."
    )
    date_format: str | None = Field(None, description="Pattern of dates.", examples=["dd.MM.yyyy"])
    time_zone: str | None = Field(
        None,
        description="Time zone that timestamps are written in; by default the session's.",
        examples=["UTC"],
    )
    locale: str | None = Field(
        None, description="Language of month and day names in patterns.", examples=["en-US"]
    )
    write_non_ascii_character_as_code_point: bool = Field(
        False, advanced=True, description="Write characters outside ASCII as `\\u` escapes."
    )
    spark_options: dict[str, str | int | float | bool] = Field(
        {}, passed=False, advanced=True, description="Further options, passed to Spark as they are."
    )


class ToJson(Transform[ToJsonOptions]):
    """Pack columns into one column of JSON text.

    Each row becomes one JSON object. Without `keep` it is the only column that goes on.
    """

    example = {"columns": ["page", "clicks"], "column": "value"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The JSON text, alone or beside the input's columns."""
        from pyspark.sql.functions import to_json

        packing = self._packing()
        # Spark Connect refuses an empty mapping of options.
        return packing.placed(inputs[0], to_json(packing.packed(), self.options.to_spark() or None))

    def infer(self, *inputs: Facts) -> Facts:
        """The text column, in the place of one of its name or behind the kept ones."""
        return self._packing().infer(inputs[0], "string")

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The text of what is packed; kept columns as they are."""
        excluded = {"columns", "column", "keep"}
        writing = self.options.model_dump_json(exclude=excluded, exclude_defaults=True)
        return self._packing().lineage(inputs[0], writing)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist; a star stands for all of them."""
        yield from self._packing().check(inputs[0])

    def _packing(self) -> Packing:
        return Packing(self.options.columns, self.options.column, self.options.keep)
