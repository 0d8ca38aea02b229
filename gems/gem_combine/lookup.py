"""The transform `lookup`: columns of a small table beside each row."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from gem_bundle import (
    AggregateOperator,
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    JoinOperator,
    Lineage,
    Made,
    Operator,
    Options,
    Transform,
    combined,
)
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import analyse, backquoted, check_expression, made_of, missing_names
from gem_bundle.lineage import passed, uses_of
from gem_bundle.schema import differ_for_certain, quoted, with_article, without_equality, without_order
from gem_bundle.types import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_FOUND, _KEY = "__gem_bundle_found", "__gem_bundle_key_"


def _named(value: Any) -> Any:
    """A list of columns is a mapping of each to itself."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: name for name in value}
    return value


_NAMES = {"type": "array", "items": {"type": "string"}}
Named = Annotated[
    dict[str, str],
    BeforeValidator(_named),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": {"type": "string"}},
                _NAMES,
                {"type": "string"},
            ]
        }
    ),
]


class RangeOptions(Options):
    """A range that a value has to be in, from one column of the table up to another."""

    value: Expression = Field(description="What is looked up, of the rows.", examples=["amount", "at"])
    start: str = Field(description="The table's column where a range begins; null is the very beginning.")
    end: str = Field(description="The table's column where a range ends; null is no end.")
    end_inclusive: bool = Field(False, description="Whether the end belongs to the range.")


class LookupOptions(Options):
    """Options of the transform `lookup`."""

    default_change = "from_now_on"

    columns: Named = Field(
        min_length=1,
        description="What is taken from the table: its columns, as a list or as a mapping of new name to "
        "column.",
        examples=[["team"], {"country_name": "name"}],
    )
    on: Named = Field(
        {},
        description="Columns whose values must be equal, as a list or as a mapping of the rows' column to "
        "the table's. Null equals nothing.",
        examples=[["page"], {"country": "code"}],
    )
    range: RangeOptions | None = Field(
        None,
        description="A range that a value of the row has to be in.",
        examples=[{"value": "at", "start": "valid_from", "end": "valid_to"}],
    )
    prefer: Expression | None = Field(
        None,
        description="Where several rows of the table fit, the one for which this is greatest counts. Without "
        "it a row for which several fit ends the query.",
        examples=["updated_at"],
    )
    missing: Literal["null", "drop"] = Field(
        "null", description="What becomes of a row for which none fits: it gets nulls, or is left out."
    )

    @model_validator(mode="after")
    def _some_way_to_find(self) -> "LookupOptions":
        if not self.on and self.range is None:
            raise ValueError("say how a row is found in the table: `on`, `range` or both")
        for option in ("columns", "on"):
            names = [name.lower() for name in getattr(self, option)]
            doubled = next((name for name in names if names.count(name) > 1), None)
            if doubled is not None:
                raise ValueError(f"`{doubled}` stands twice in `{option}`: Spark ignores case")
        return self


class Lookup(Transform[LookupOptions]):
    """Look columns up in a small table, by equal values or by ranges; each row stays one row.

    The first input are the rows, a stream or not, the second is the table, which is static and sent to every
    executor. A row never becomes several: of several that fit one is preferred, or the query ends. Names
    in `on` and `columns` are taken as they stand, without backquotes.

    In visual tools: Lookup.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, 2)
    example = {"on": ["page"], "columns": ["team"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows with the columns that were found.

        Raises:
            GemError: When a column isn't there, or would be there twice.
        """
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        rows, table = inputs
        options = self.options
        self._there(options.on, rows.columns, "on")
        for option, names in self._of_table().items():
            self._there(names, table.columns, option)
        for name in options.columns:
            if name.lower() in {known.lower() for known in rows.columns}:
                raise GemError("GB205", f"there would be two columns `{name}`", _OTHER_NAME, "columns")
        keys = [f"{_KEY}{position}" for position in range(len(options.on))]
        own = [F.col(quoted(name)).alias(key) for key, name in zip(keys, options.on.values(), strict=True)]
        kept = table.select(*own, F.struct(*self._kept()).alias(_FOUND))
        sides = F.broadcast(kept.groupBy(*keys).agg(F.collect_list(_FOUND).alias(_FOUND)))
        if keys:
            pairs = [rows[quoted(name)] == sides[key] for key, name in zip(keys, options.on, strict=True)]
            joined = rows.join(sides, on=pairs, how="left")
        else:
            joined = rows.join(sides, how="cross")
        one = self._one(F.col(_FOUND), kept)
        joined = joined.withColumn(_FOUND, one)
        if options.missing == "drop":
            joined = joined.filter(F.col(_FOUND).isNotNull())
        made = {name: F.col(_FOUND)[f"c{position}"] for position, name in enumerate(options.columns)}
        return joined.withColumns(made).drop(_FOUND, *keys)

    def infer(self, *inputs: Facts) -> Facts:
        """The columns of the rows, and those that are looked up."""
        rows, table = inputs
        names = self.input_names or ("rows", "table")
        operator = JoinOperator(
            option="on",
            how="left" if self.options.on else "cross",
            names=(names[0], names[1]),
            equality=bool(self.options.on),
            event_time_key=False,
        )
        # Spark finds the rows of a key by an aggregation of the table.
        sides = table.after(AggregateOperator(option="on", event_time=False, sessions=False))
        facts = combined(operator, [rows, sides])
        if self.options.missing == "drop":
            facts = facts.after(Operator("filter", "missing"))
        if rows.columns is None:
            return facts.with_all_columns(None)
        found = [table.column(name) for name in self.options.columns.values()]
        made = [
            Column(name, None if column is None else column.type)
            for name, column in zip(self.options.columns, found, strict=True)
        ]
        return facts.with_all_columns([*rows.columns, *made])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The columns of the rows as they are, and those of the table by what a row is found with."""
        rows, table = inputs
        found = passed(rows.columns)
        if found is None:
            return None
        options = self.options
        asked = [made_of(backquoted(name), rows.columns) for name in options.on]
        if options.range is not None:
            asked.append(made_of(options.range.value, rows.columns))
        bounds = [*options.on.values(), *self._of_table()["range"]]
        asked += [made_of(backquoted(name), table.columns, position=1) for name in bounds]
        if options.prefer is not None:
            asked.append(made_of(options.prefer, table.columns, position=1))
        way = f"{options.on} {options.range} {options.prefer}".lower()
        for name, column in options.columns.items():
            taken = made_of(backquoted(column), table.columns, position=1)
            found[name.lower()] = Made(f"lookup {column.lower()} {way}", uses_of([*asked, taken]))
        drops = options.missing == "drop"
        return Lineage(found, Made(f"lookup {way}", uses_of(asked)) if drops else Made())

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The table is static, and the columns are there, once, and can be compared."""
        rows, table = inputs
        options = self.options
        if table.streaming:
            yield Finding(
                "GB205",
                f"the table, `{(self.input_names or ('rows', 'table'))[1]}`, is a stream, and a lookup needs "
                "all of it",
                "Read it with `mode: batch`, or use a `join`, which keeps state of both.",
            )
        yield from missing_names(options.on, rows, "on")
        for option, names in self._of_table().items():
            yield from missing_names(names, table, option)
        for name in options.columns:
            if rows.column(name) is not None:
                yield Finding("GB205", f"there would be two columns `{name}`", _OTHER_NAME, ("columns", name))
        for name, other in options.on.items():
            first, second = rows.column(name), table.column(other)
            if first is None or second is None:
                continue
            if differ_for_certain(first.type, second.type):
                yield Finding(
                    "GB213",
                    f"`{name}` is {with_article(first.type)} and `{other}` {with_article(second.type)}: they "
                    "are never equal",
                    "Cast one of them before.",
                    ("on", name),
                )
            elif without_equality(first.type):
                yield Finding(
                    "GB213", f"`{name}` is {with_article(first.type)}, which nothing equals", "", ("on", name)
                )
        if options.range is not None:
            yield from self._range(options.range, rows, table)
        if options.prefer is not None:
            yield from check_expression(
                options.prefer, table, "prefer", wants="order", analytic=False, generators=False
            )

    def _range(self, within: RangeOptions, rows: Facts, table: Facts) -> "Iterator[Finding]":
        """The value can be put in order with the bounds."""
        found = list(
            check_expression(
                within.value, rows, ("range", "value"), wants="order", analytic=False, generators=False
            )
        )
        yield from found
        kind = None if found else analyse(within.value, rows.columns).column.type
        for option, name in (("start", within.start), ("end", within.end)):
            bound = table.column(name)
            if bound is not None and differ_for_certain(kind, bound.type):
                yield Finding(
                    "GB213",
                    f"`{within.value}` is {with_article(kind)} and `{name}` {with_article(bound.type)}: they "
                    "can't be compared",
                    "Cast one of them before.",
                    ("range", option),
                )
            elif bound is not None and without_order(bound.type):
                message = f"`{name}` is {with_article(bound.type)}, and Spark can't put such values in order"
                yield Finding("GB213", message, "Name another column.", ("range", option))

    def _of_table(self) -> "Mapping[str, list[str]]":
        """The table's columns that are named, by option."""
        options = self.options
        bounds = [] if options.range is None else [options.range.start, options.range.end]
        return {"on": list(options.on.values()), "columns": list(options.columns.values()), "range": bounds}

    def _there(self, names: "Mapping[str, str] | list[str]", known: list[str], option: str) -> None:
        lower = {name.lower() for name in known}
        for name in names:
            if name.lower() not in lower:
                hint = suggest(name, known, what="columns")
                raise GemError("GB205", f"there is no column `{name}`", hint, option)

    def _kept(self) -> "Iterator[SparkColumn]":
        """What is kept of a row of the table."""
        from pyspark.sql import functions as F  # noqa: N812

        options = self.options
        if options.prefer is not None:
            yield F.expr(options.prefer).alias("preferred")
        if options.range is not None:
            yield F.col(quoted(options.range.start)).alias("start")
            yield F.col(quoted(options.range.end)).alias("end")
        for position, name in enumerate(options.columns.values()):
            yield F.col(quoted(name)).alias(f"c{position}")

    def _one(self, found: "SparkColumn", kept: "DataFrame") -> "SparkColumn":
        """The one row of the table among those with equal keys that fits; null where none does."""
        from pyspark.sql import functions as F  # noqa: N812

        options = self.options
        within = options.range
        if within is not None:
            value = F.expr(within.value)

            def fits(row: "SparkColumn") -> "SparkColumn":
                begun = row["start"].isNull() | (row["start"] <= value)
                last = row["end"] >= value if within.end_inclusive else row["end"] > value
                return value.isNotNull() & begun & (row["end"].isNull() | last)

            found = F.filter(found, fits)
        if options.prefer is not None:
            # What has no order can't be a part of what is compared, and is found again by its place.
            fields = cast("StructType", kept.schema[_FOUND].dataType).fields
            names = [field.name for field in fields if not without_order(field.dataType.simpleString())]
            if len(names) == len(fields):
                return F.array_max(found)
            compared = F.transform(
                found, lambda row, at: F.struct(*(row[name].alias(name) for name in names), at.alias("at"))
            )
            return F.get(found, F.array_max(compared)["at"])
        several = F.raise_error(F.lit(_SEVERAL.format(node=self.node)))
        return F.when(F.size(found) > 1, several).otherwise(F.get(found, F.lit(0)))


_OTHER_NAME = "Give it another name: `columns: {new_name: column}`."
_SEVERAL = (
    "lookup `{node}`: several rows of the table fit one row. Say with `prefer` which one counts, or make the "
    "table's keys unique."
)
