"""The transform `unpivot`: columns into rows."""

from typing import TYPE_CHECKING

from pydantic import model_validator

from gem_bundle import Column, Facts, Field, Finding, GemError, Lineage, Made, Operator, Options, Transform
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import backquoted, check_expression, common_type, missing_names
from gem_bundle.lineage import column_keys, same
from gem_bundle.schema import differ_for_certain, quoted, with_article
from gem_bundle.types import StringList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame


class UnpivotOptions(Options):
    """Options of the transform `unpivot`, from Spark's ``DataFrame.unpivot``."""

    ids: StringList | None = Field(
        None,
        description="The columns that stay; by default all that aren't among `values`.",
        examples=[["page", "at"]],
        change="from_now_on",
    )
    values: StringList | None = Field(
        None,
        min_length=1,
        description="The columns that become rows; by default all that aren't among `ids`. Their types must "
        "go together.",
        examples=[["views", "clicks"]],
        change="from_now_on",
    )
    variable_column_name: str = Field(
        "variable",
        min_length=1,
        description="The column that gets the name of the column that a value is from.",
        examples=["metric"],
        change="from_now_on",
    )
    value_column_name: str = Field(
        "value", min_length=1, description="The column that gets the values.", change="from_now_on"
    )
    include_nulls: bool = Field(
        True, description="Whether a value that is null makes a row too.", change="from_now_on"
    )

    @model_validator(mode="after")
    def _told_apart(self) -> "UnpivotOptions":
        if self.ids is None and self.values is None:
            raise ValueError("say which columns stay (`ids`), or which become rows (`values`)")
        for option in ("ids", "values"):
            seen: set[str] = set()
            for name in getattr(self, option) or ():
                if name.lower() in seen:
                    raise ValueError(f"`{name}` stands twice in `{option}`")
                seen.add(name.lower())
        made = {self.variable_column_name.lower(), self.value_column_name.lower()}
        if len(made) == 1:
            raise ValueError("`variable_column_name` and `value_column_name` must be two names")
        return self


class Unpivot(Transform[UnpivotOptions]):
    """Make a row of each of several columns, with the column's name beside its value.

    Names are taken as they stand, without backquotes. Columns that are neither among `ids` nor among
    `values`, where both are given, are gone. Every row makes its rows by itself, so a stream keeps no state.

    In visual tools: Unpivot.
    """

    example = {"ids": ["page"], "values": ["views", "clicks"], "variable_column_name": "metric"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """A row for each column and row.

        Raises:
            GemError: When the input lacks one of the columns, or nothing is left to make rows of.
        """
        from pyspark.sql.functions import col

        (df,) = inputs
        options = self.options
        for option in ("ids", "values"):
            for name in getattr(options, option) or ():
                if name.lower() not in {known.lower() for known in df.columns}:
                    hint = suggest(name, df.columns, what="columns")
                    raise GemError("GB205", f"there is no column `{name}`", hint, option)
        ids, values = self._parted(df.columns)
        if not values:
            raise GemError("GB205", _NOTHING_LEFT, _LEAVE_SOME, "ids")
        made = df.unpivot(
            [col(quoted(name)) for name in ids],
            [col(quoted(name)) for name in values],
            options.variable_column_name,
            options.value_column_name,
        )
        if options.include_nulls:
            return made
        return made.filter(col(quoted(options.value_column_name)).isNotNull())

    def infer(self, *inputs: Facts) -> Facts:
        """The columns that stay, the names and the values."""
        (facts,) = inputs
        facts = facts if self.options.include_nulls else facts.after(Operator("filter", "include_nulls"))
        found = self._columns(facts)
        if found is None:
            return facts.with_all_columns(None)
        ids, values = found
        return facts.with_all_columns(
            [
                *ids,
                Column(self.options.variable_column_name, "string"),
                Column(self.options.value_column_name, common_type(column.type for column in values)),
            ]
        )

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The columns that stay as they are, the values of all that become rows."""
        found = self._columns(inputs[0])
        # A column that stays may be called as the one of names is, or the one of values.
        keys = column_keys(self.infer(*inputs).columns)
        if found is None or keys is None:
            return None
        ids, values = ([column.name.lower() for column in columns] for columns in found)
        rule = " ".join(values)
        uses = frozenset(f"0:{key}" for key in values)
        told = [Made(f"unpivot {rule}", nulls=frozenset()), Made(f"unpivot {rule}", uses, uses)]
        made = dict(zip(keys, [*map(same, ids), *told], strict=True))
        nulls = self.options.include_nulls
        # Of one column there is one row for each, as there was before.
        alone = len(values) == 1 and nulls
        rows = Made() if alone else Made(f"unpivot {rule} {nulls}", frozenset() if nulls else uses)
        return Lineage(made, rows, expands=True)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns exist, and the types of those that become rows go together."""
        (facts,) = inputs
        for option in ("ids", "values"):
            yield from missing_names(getattr(self.options, option) or (), facts, option)
        for name in dict.fromkeys(column.name.lower() for column in facts.columns or ()):
            yield from check_expression(backquoted(name), facts, "values")
        found = self._columns(facts)
        if found is None:
            return
        ids, values = found
        if not values:
            yield Finding("GB205", _NOTHING_LEFT, _LEAVE_SOME, "ids")
        first = values[0] if values else None
        for column in values[1:]:
            if first is not None and _differ(first.type, column.type):
                yield Finding(
                    "GB213",
                    f"`{first.name}` is {with_article(first.type)} and `{column.name}` "
                    f"{with_article(column.type)}: they can't be one column",
                    "Name `values` that go together, or cast one of them before.",
                    "values",
                )
        stays = {column.name.lower() for column in ids}
        for option in ("variable_column_name", "value_column_name"):
            name = getattr(self.options, option)
            if name.lower() in stays:
                yield Finding(
                    "GB205",
                    f"there will be two columns `{name}`: the new one, and one that stays",
                    "Choose another name.",
                    option,
                    "warning",
                )

    def _columns(self, facts: Facts) -> tuple[list[Column], list[Column]] | None:
        """The columns that stay and those that become rows; None when that can't be told."""
        names = [column.name.lower() for column in facts.columns or ()]
        if facts.columns is None or len(set(names)) < len(names):
            return None
        ids, values = (
            [facts.column(name) for name in names]
            for names in self._parted([column.name for column in facts.columns or ()])
        )
        known = [column for column in (*ids, *values) if column is not None]
        if len(known) < len(ids) + len(values):
            return None
        return known[: len(ids)], known[len(ids) :]

    def _parted(self, names: "Sequence[str]") -> tuple[list[str], list[str]]:
        """The names of the columns that stay and of those that become rows, as the input writes them."""
        ids, values = self.options.ids, self.options.values
        written = {name.lower(): name for name in names}
        rest = {name.lower() for name in ids or values or ()}
        others = [name for name in names if name.lower() not in rest]
        chosen_ids = others if ids is None else [written.get(name.lower(), name) for name in ids]
        chosen = others if values is None else [written.get(name.lower(), name) for name in values]
        return chosen_ids, chosen


def _differ(first: str | None, second: str | None) -> bool:
    """Whether Spark finds no common type: other than a union, `unpivot` makes no texts of values."""
    kinds = {first, second}
    if "string" in kinds and len(kinds) > 1:
        return bool(kinds & _NO_TEXTS)
    return differ_for_certain(first, second)


_NO_TEXTS = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "binary"),
    *("date", "timestamp", "timestamp_ntz"),
}
_NOTHING_LEFT = "all columns are among `ids`, so none is left to become rows"
_LEAVE_SOME = "Leave out of `ids` what is to become rows, or name `values`."
