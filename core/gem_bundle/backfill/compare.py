"""The differences between the rows that are there and those that come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gem_bundle.kept import let_go

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Differences:
    """How the rows of an interval differ.

    Args:
        missing: How many rows come out and aren't there.
        more: How many are there and don't come out.
        differing: How many are both, told apart by what is grouped by, with other values.
        samples: Some of each, as JSON has them.
        columns: The columns that only one of the two has, which aren't compared.
    """

    missing: int = 0
    more: int = 0
    differing: int = 0
    samples: dict[str, list[Any]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.missing or self.more or self.differing or self.columns)


def differences(there: DataFrame | None, made: DataFrame, keys: Sequence[str]) -> Differences:
    """How the rows that are there differ from those that come out; each as often as it is there.

    Args:
        there: The rows that are there; None where there is nothing.
        made: The rows that come out.
        keys: The columns that tell rows apart, in lower case; none where nothing does.
    """
    if there is None:
        there = made.limit(0)
    names = {name.lower() for name in there.columns}
    common = [name for name in made.columns if name.lower() in names]
    known = {name.lower() for name in common}
    other = sorted(name for name in {*there.columns, *made.columns} if name.lower() not in known)
    before, after = _comparable(there, common), _comparable(made, common)
    only_there = before.exceptAll(after).persist()
    only_made = after.exceptAll(before).persist()
    try:
        by = [key for key in keys if key in known]
        if not by or len(by) < len(keys):
            return Differences(
                only_made.count(),
                only_there.count(),
                samples=_samples(missing=only_made, more=only_there),
                columns=tuple(other),
            )
        missing = only_made.join(only_there, _same(only_made, only_there, by), "left_anti")
        more = only_there.join(only_made, _same(only_there, only_made, by), "left_anti")
        pairs = _pairs(only_there, only_made, by)
        found = _samples(missing=missing, more=more)
        found |= {"differing": [{"there": _plain(a), "comes_out": _plain(b)} for a, b in pairs.take(SAMPLES)]}
        return Differences(missing.count(), more.count(), pairs.count(), found, tuple(other))
    finally:
        let_go(only_there)
        let_go(only_made)


def _comparable(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns in one order; of types that Spark doesn't compare, as texts."""
    from pyspark.sql.functions import col, to_json

    kinds = {column.name.lower(): column.dataType.simpleString() for column in df.schema.fields}
    columns: list[Column] = []
    for name in names:
        column = col(f"`{name}`")
        if any(kind in kinds[name.lower()] for kind in ("map<", "variant")):
            column = to_json(column)
        columns.append(column.alias(name))
    return df.select(*columns)


def _same(left: DataFrame, right: DataFrame, keys: Sequence[str]) -> Column:
    from functools import reduce
    from operator import and_

    return reduce(and_, (left[f"`{key}`"].eqNullSafe(right[f"`{key}`"]) for key in keys))


def _pairs(there: DataFrame, made: DataFrame, keys: Sequence[str]) -> DataFrame:
    """What is there beside what comes out in its place."""
    from pyspark.sql.functions import col, struct

    by = [col(f"`{key}`").alias(f"k{number}") for number, key in enumerate(keys)]
    left = there.select(*by, struct(*(col(f"`{name}`") for name in there.columns)).alias("there"))
    right = made.select(*by, struct(*(col(f"`{name}`") for name in made.columns)).alias("made"))
    names = [f"k{number}" for number in range(len(keys))]
    return left.join(right, _same(left, right, names)).select(left["there"], right["made"])


def _samples(**frames: DataFrame) -> dict[str, list[Any]]:
    return {name: [_plain(row) for row in df.take(SAMPLES)] for name, df in frames.items()}


def _plain(value: Any) -> Any:
    """A row as JSON has it."""
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None:
        return {name: _plain(inner) for name, inner in as_dict().items()}
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
