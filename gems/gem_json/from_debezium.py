"""The transform `from_debezium`: what Debezium tells in JSON of a database's rows, into columns."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_bundle import Column, Facts, Field, Finding, Lineage, Rejects, Transform, ending, reason
from gem_bundle.packing import PARSED, Unpacking
from gem_bundle.schema import SchemaOptions, columns_of
from gem_bundle.types import ReadSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_TEXT_TYPES = ("string", "binary", "varchar", "char")
_CORRUPT = "__gem_bundle_corrupt"
_CHANGE = "a change of a row"


class FromDebeziumOptions(SchemaOptions):
    """Options of the transform `from_debezium`."""

    default_change = "from_now_on"

    column: str = Field(
        "value",
        min_length=1,
        passed=False,
        description="The column that holds Debezium's envelopes, as text or as bytes in UTF-8.",
        examples=["value"],
    )
    schema: ReadSchema = Field(  # type: ignore[assignment]
        passed=False,
        description="The columns of the database's table, with the types that they have in the JSON; one "
        "that a change lacks is null.",
        examples=["id bigint, name string"],
    )
    source: ReadSchema | None = Field(
        None,
        passed=False,
        description="Fields of the envelope's `source` that become columns too: what tells which of two "
        "changes of one moment is the later one.",
        examples=["lsn bigint", "pos bigint, row int"],
    )
    keep: bool = Field(
        False, passed=False, description="Keep the input's other columns, in front of the fields."
    )
    rejects: bool = Field(
        False,
        passed=False,
        description="Hand what isn't a change of a row to the output `rejected`; else it fails the query.",
    )

    @model_validator(mode="after")
    def _apart(self) -> Self:
        names = [column.name.lower() for column in self.row] + ["op", "ts_ms"]
        names += [column.name.lower() for column in self.of_source]
        doubled = [name for name in names if names.count(name) > 1]
        if doubled:
            raise ValueError(f"there would be two columns `{doubled[0]}`")
        return self

    @property
    def row(self) -> tuple[Column, ...]:
        """The columns of the database's table."""
        return tuple(columns_of(self.schema) or ())

    @property
    def of_source(self) -> tuple[Column, ...]:
        """The fields of the envelope's `source` that become columns."""
        return tuple(columns_of(self.source) or ()) if self.source is not None else ()


class FromDebezium(Transform[FromDebeziumOptions]):
    """Turn the changes that Debezium captures from a database into rows for `merge` and `history`.

    Each change is a row: the columns of the database's table as they are behind the change, or, of a delete,
    as they were before it; then `op` (`c` created, `r` read by a snapshot, `u` updated, `d` deleted), `ts_ms`
    (when Debezium saw it, in milliseconds) and what `source` names. Envelopes may have their schema with them
    or not.

    Tombstones, the empty messages behind deletes, make no rows, and neither do messages that somebody wrote
    into the database's log (`op: m`). Anything else that isn't a change of a row fails the query, or with
    `rejects: true` goes to the output `rejected`: a truncated table (`op: t`), which no row can tell of, text
    that isn't an envelope, values that don't fit, and a change without the row that its `op` promises.
    """

    example = {"column": "value", "schema": "id bigint, name string", "source": "lsn bigint"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The columns of the changed rows."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        options = self.options
        wrong = self._wrong()
        fits = F.size(wrong) == 0
        if not options.rejects:
            first = F.element_at(wrong, 1)
            # The name of the rule is of all of them: Spark wants one that it knows before there are rows.
            end = ending(self.node, _CHANGE, first.getField("words"), F.struct(self._text().alias("text")))
            fits = F.when(fits, F.lit(True)).otherwise(end)
        parsed = self._parsed(inputs[0]).filter(fits)
        row = F.when(_said("op") == "d", _said("before")).otherwise(_said("after"))
        made = F.struct(
            *(row.getField(column.name).alias(column.name) for column in options.row),
            _said("op").alias("op"),
            _said("ts_ms").alias("ts_ms"),
            *(_said("source").getField(column.name).alias(column.name) for column in options.of_source),
        )
        return self._unpacking().placed(parsed.withColumn(PARSED, made))

    def ends(self) -> bool:
        """What isn't a change of a row does, where it isn't rejected."""
        return not self.options.rejects

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """What isn't a change of a row."""
        return Rejects(self._parsed(inputs[0]), self._wrong())

    def _text(self) -> "SparkColumn":
        from pyspark.sql.functions import col

        return col(self.options.column).cast("string")

    def _parsed(self, df: "DataFrame") -> "DataFrame":
        """The rows whose envelope may be a change, with what it says."""
        from pyspark.sql import functions as F  # noqa: N812

        options = self.options
        names = ["op", "ts_ms", "before", "after", *(["source"] if options.of_source else [])]
        row = f"struct<{options.schema}>"
        types = ["string", "bigint", row, row, f"struct<{options.source}>"]
        change = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=False))
        envelope = f"{change}, payload struct<{change}>, {_CORRUPT} string"
        read = F.from_json(self._text(), envelope, {"columnNameOfCorruptRecord": _CORRUPT})
        df = df.filter(F.length(self._text()) > 0).withColumn(PARSED, read)
        return df.filter(~_said("op").eqNullSafe("m"))

    def _wrong(self) -> "SparkColumn":
        """Why an envelope isn't a change of a row; an empty array where it is one."""
        from pyspark.sql import functions as F  # noqa: N812

        operation = _said("op")
        deletes = operation == "d"

        def one(name: str, words: str) -> "SparkColumn":
            return F.array(reason(name, words))

        return (
            F.when(
                operation.isNull(),
                one("not_a_change", "the text isn't an envelope of Debezium: it has no `op`"),
            )
            .when(operation == "t", one("truncated", "the table was truncated, and no row tells of that"))
            .when(~operation.isin("c", "r", "u", "d"), one("unknown_op", "its `op` is none that is known"))
            .when(
                F.col(f"{PARSED}.{_CORRUPT}").isNotNull(), one("wrong_type", "a value doesn't fit the schema")
            )
            .when(deletes & _said("before").isNull(), one("no_row", "it deletes a row, and has no `before`"))
            .when(~deletes & _said("after").isNull(), one("no_row", "it has no `after`"))
            .otherwise(F.filter(one("", ""), lambda _: F.lit(False)))
        )

    def infer(self, *inputs: Facts) -> Facts:
        """The columns of the row, `op`, `ts_ms` and those of `source`, behind the kept ones."""
        return self._unpacking().infer(inputs[0])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of the row, with its type; kept columns as they are."""
        return self._unpacking().lineage(inputs[0], f"debezium {self.options.rejects}", self.options.schema)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The column exists and holds text, and no kept column has the name of one that is made."""
        wanted, hint = "JSON is read from text or bytes", "Name the column that holds Debezium's envelopes."
        yield from self._unpacking().check(inputs[0], _TEXT_TYPES, wanted, hint, certain=False)

    def _unpacking(self) -> Unpacking:
        options = self.options
        more = [Column("op", "string"), Column("ts_ms", "bigint"), *options.of_source]
        fields = None if columns_of(options.schema) is None else [*options.row, *more]
        return Unpacking(options.column, options.keep, fields)


def _said(name: str) -> "SparkColumn":
    """What an envelope says; with its schema it is the payload of another one."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(F.col(f"{PARSED}.payload.{name}"), F.col(f"{PARSED}.{name}"))
