"""The source `rows`: rows that stand in the pipeline file."""

import json
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from gem_bundle import Facts, Field, GemError, ReadContext, Source, SourceSemantics, analysed
from gem_bundle.schema import SchemaOptions, columns_of, fields_of, schema_of
from gem_bundle.types import Schema
from gem_rows.values import Misfit, fields_to_json, inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5


class RowsOptions(SchemaOptions):
    """Options of the source `rows`."""

    default_change = "from_now_on"

    rows: list[dict[str, Any] | list[Any]] = Field(
        passed=False,
        description="The rows: each a mapping of columns to values, or a list of values in the schema's "
        "order. A column that a mapping leaves out is null. Bytes are written in base64.",
        examples=[[{"page": "home", "hits": 3}], [["home", 3]]],
    )
    schema: Schema | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The columns; without it they are taken from simple values: texts, numbers, true and "
        "false.",
        examples=["page string, hits int"],
    )

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        try:
            fields = fields_of(self.ddl()) or ()
        except Misfit as misfit:
            raise ValueError(str(misfit)) from None
        problems = []
        for number, row in enumerate(self.rows, 1):
            try:
                fields_to_json(row, fields)
            except Misfit as misfit:
                problems.append(f"row {number}: {misfit}")
        if problems:
            more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
            raise ValueError("; ".join([*problems[:_SHOWN], *more]))
        return self

    def ddl(self) -> str:
        """The schema, declared or taken from the values.

        Raises:
            Misfit: When it can't be told from the values.
        """
        if self.schema is not None:
            return self.schema
        columns = inferred(self.rows)
        if not columns:
            raise Misfit("without any row there must be a `schema`")
        return schema_of(columns)


class RowsSource(Source[RowsOptions]):
    """Rows that stand in the pipeline file, for tests and small tables that seldom change.

    Every value must fit its column's type as it stands: `gem-bundle check` says which one doesn't.
    Times without a time zone are in the session's.

    In visual tools: Seed.
    """

    semantics = SourceSemantics(streaming=False, inline=True)
    example = {
        "rows": [{"page": "home", "team": "web"}, {"page": "cart", "team": "shop"}],
        "schema": "page string, team string",
    }

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows, read by Spark with the schema.

        Raises:
            GemError: GB205 when Spark can't read the schema.
        """
        from pyspark.errors import AnalysisException
        from pyspark.sql.functions import col, from_json

        ddl = self.options.ddl()
        fields = fields_of(ddl) or ()
        texts = [(json.dumps(fields_to_json(row, fields)),) for row in self.options.rows]
        lines = context.spark.createDataFrame(texts, "line string")
        try:
            parsed = lines.select(from_json(col("line"), ddl, {"mode": "FAILFAST"}).alias("row"))
            return analysed(parsed.select("row.*"))
        except AnalysisException as error:
            message = f"Spark can't read rows with the schema `{ddl}`: {error.getCondition()}"
            raise GemError("GB205", message, "Correct the types.", "schema") from error

    def infer(self) -> Facts:
        """The columns of the schema, or those of the rows."""
        return Facts(columns=columns_of(self.options.ddl()), qualifiers=frozenset())
