"""The transform `to_json`: columns into JSON text."""

from typing import TYPE_CHECKING

from gem_bundle import Column, Facts, Field, Finding, Lineage, Made, Options, Transform
from gem_bundle.expressions import check_expression, keyed, made_of, split_alias
from gem_bundle.lineage import passed
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
        from pyspark.sql.functions import col, expr, struct, to_json

        (df,) = inputs
        options = self.options
        if options.columns is None:
            packed = [col("*")]
        elif isinstance(options.columns, dict):
            packed = [expr(body).alias(name) for name, body in options.columns.items()]
        else:
            packed = [expr(expression) for expression in options.columns]
        # Spark Connect refuses an empty mapping of options.
        text = to_json(struct(*packed), options.to_spark() or None)
        if options.keep:
            return df.withColumns({options.column: text})
        return df.select(text.alias(options.column))

    def infer(self, *inputs: Facts) -> Facts:
        """The text column, in the place of one of its name or behind the kept ones."""
        (facts,) = inputs
        text = Column(self.options.column, "string")
        if not self.options.keep:
            return facts.with_columns([text])
        if facts.columns is None:
            return facts
        name = text.name.lower()
        columns = [text if c.name.lower() == name else c for c in facts.columns]
        return facts.with_columns(columns if text in columns else [*columns, text])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The text of what is packed; kept columns as they are."""
        (facts,) = inputs
        through = passed(facts.columns)
        if through is None:
            return None
        options = self.options
        if options.columns is None:
            packed = [*through.values()]
            rules = list(through)
        else:
            packed = [made_of(split_alias(body)[0], facts.columns) for _, body in keyed(options.columns)]
            rules = [f"{key} {body}" for key, body in keyed(options.columns)]
        uses = (
            None
            if any(made.uses is None for made in packed)
            else frozenset[str]().union(*(made.uses or () for made in packed))
        )
        writing = options.model_dump_json(exclude={"columns", "column", "keep"}, exclude_defaults=True)
        text = {options.column.lower(): Made(f"{rules} {writing}", uses)}
        return Lineage(through | text if options.keep else text)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The expressions are over columns that exist; a star stands for all of them."""
        for key, expression in keyed(self.options.columns or ()):
            if not split_alias(expression)[0].endswith("*"):
                place = ("columns", key)
                yield from check_expression(
                    expression, inputs[0], place, aggregates="allowed", generators=False
                )
