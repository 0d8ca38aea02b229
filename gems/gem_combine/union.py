"""The transform `union`: inputs one after the other."""

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from gem_bundle import Column, Facts, Field, Finding, Lineage, Made, Operator, Options, Transform, combined
from gem_bundle.expressions import common_type
from gem_bundle.lineage import MAYBE_NULL, column_keys
from gem_bundle.schema import differ_for_certain, with_article

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class UnionOptions(Options):
    """Options of the transform `union`."""

    by_name: bool = Field(
        True,
        description="Bring columns together by their names; false takes them by position.",
        change="from_now_on",
    )
    allow_missing_columns: bool = Field(
        False, description="Fill a column that an input lacks with nulls.", change="from_now_on"
    )

    @model_validator(mode="after")
    def _names_tell_what_is_missing(self) -> "UnionOptions":
        if self.allow_missing_columns and not self.by_name:
            raise ValueError("`allow_missing_columns` needs `by_name: true`")
        return self


class Union(Transform[UnionOptions]):
    """Put the rows of several inputs together; duplicates stay.

    The first input's names count, and its event time: where it carries no watermark, the union carries none.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, None)
    example = {"allow_missing_columns": True}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows of all inputs."""
        options = self.options
        if not options.by_name:
            return reduce(lambda all_rows, df: all_rows.union(df), inputs)
        missing = options.allow_missing_columns
        return reduce(lambda all_rows, df: all_rows.unionByName(df, allowMissingColumns=missing), inputs)

    def infer(self, *inputs: Facts) -> Facts:
        """The first input's columns, with those that only others have behind them if that is allowed."""
        facts = combined(Operator("union"), inputs)
        first, *others = (found.columns for found in inputs)
        for columns in others:
            if first is None:
                return facts
            first = self._united(first, columns)
        return facts.with_all_columns(first)

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of those of the inputs that come under it."""
        made = column_keys(self.infer(*inputs).columns)
        known = [column_keys(facts.columns) for facts in inputs]
        if made is None or any(keys is None for keys in known):
            return None
        found: dict[str, Made] = {}
        for place, name in enumerate(made):
            uses = set()
            for position, keys in enumerate(known):
                if keys and self.options.by_name:
                    uses |= {f"{position}:{name}"} if name in keys else set()
                elif keys:
                    uses.add(f"{position}:{keys[place]}")
            filled = frozenset({MAYBE_NULL}) if len(uses) < len(known) else frozenset()
            found[name] = Made("union", frozenset(uses), filled | uses)
        return Lineage(found)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The inputs have the same columns, as far as they must."""
        options = self.options
        first, *others = inputs
        names = self.input_names or tuple(str(position + 1) for position in range(len(inputs)))
        for name, other in zip(names[1:], others, strict=False):
            if first.columns is None or other.columns is None:
                continue
            yield from self._unfit((names[0], first), (name, other))
            if options.allow_missing_columns:
                continue
            here, there = len(first.columns), len(other.columns)
            if options.by_name:
                yield from _differences((names[0], first), (name, other))
                yield from _differences((name, other), (names[0], first))
            elif here != there:
                yield Finding(
                    "GB205",
                    f"`{names[0]}` has {here} columns and `{name}` has {there}",
                    "Select the same number of columns in the same order, or use `by_name: true`.",
                    "by_name",
                )

    def _unfit(self, one: tuple[str, Facts], other: tuple[str, Facts]) -> "Iterator[Finding]":
        """A finding for each column whose types can't become one."""
        columns = one[1].columns or ()
        if self.options.by_name:
            pairs = [(column, other[1].column(column.name)) for column in columns]
        else:
            pairs = list(zip(columns, other[1].columns or (), strict=False))
        for column, second in pairs:
            if second is not None and differ_for_certain(column.type, second.type):
                yield Finding(
                    "GB213",
                    f"`{column.name}` is {with_article(column.type)} in `{one[0]}` and `{second.name}` "
                    f"{with_article(second.type)} in `{other[0]}`: they can't be one column",
                    "Cast one of them before, or leave it out.",
                )

    def _united(
        self, first: tuple[Column, ...], second: tuple[Column, ...] | None
    ) -> tuple[Column, ...] | None:
        """The columns of a union of two, or None when they can't be known."""
        options = self.options
        if second is None:
            if options.allow_missing_columns:
                return None
            return tuple(replace(column, type=None) for column in first)
        if not options.by_name:
            pairs = zip(first, second, strict=False)
            return tuple(_as_one(column, other) for column, other in pairs)
        others = {column.name.lower(): column for column in second}
        united = [
            _as_one(column, others[column.name.lower()]) if column.name.lower() in others else column
            for column in first
        ]
        if options.allow_missing_columns:
            known = {column.name.lower() for column in first}
            # For the first input's rows they are nulls, so they are no event time.
            added = (column for column in second if column.name.lower() not in known)
            united += [replace(column, delay=None) for column in added]
        return tuple(united)


def _as_one(column: Column, other: Column) -> Column:
    """The column of a union: the first input's, of the type that Spark makes of both."""
    if column.type == other.type and not other.entered:
        return column
    kind = common_type([column.type, other.type])
    return replace(column, type=kind, entered=(*column.entered, *other.entered))


def _differences(one: tuple[str, Facts], other: tuple[str, Facts]) -> "Iterator[Finding]":
    """A finding when one input has columns that another input lacks."""
    columns = one[1].columns or ()
    lacking = [f"`{c.name}`" for c in columns if other[1].column(c.name) is None]
    if lacking:
        yield Finding(
            "GB205",
            f"`{other[0]}` lacks {', '.join(lacking)} of `{one[0]}`",
            "Select the same columns, or fill with nulls: `allow_missing_columns: true`.",
            "allow_missing_columns",
        )
