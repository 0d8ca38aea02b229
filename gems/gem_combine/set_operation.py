"""The transform `set_operation`: what several inputs have in common, or only the first has."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from gem_bundle import (
    AggregateOperator,
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    Kept,
    Lineage,
    Made,
    Operator,
    Options,
    Transform,
    combined,
)
from gem_bundle.expressions import UNKNOWN_DELAY
from gem_bundle.lineage import column_keys, same
from gem_bundle.schema import differ_for_certain, quoted, with_article, without_equality

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame


class SetOperationOptions(Options):
    """Options of the transform `set_operation`, from Spark's *Set operators*."""

    operation: Literal["intersect", "except"] = Field(
        description="Which rows go on: those that all inputs have (`intersect`), or those of the first that "
        "none of the others has (`except`).",
        examples=["except"],
        change="mixed",
    )
    all: bool = Field(
        False,
        description="Count rows that are equal: `intersect` keeps as many as each input has, `except` takes "
        "one away for each one of the others. False lets a row through once.",
        change="refused",
    )
    by_name: bool = Field(
        True,
        description="Bring columns together by their names; false takes them by position.",
        change="mixed",
    )


class SetOperation(Transform[SetOperationOptions]):
    """Keep the rows that all inputs have, or that only the first has: intersect and except.

    Rows are equal when all their columns are, and two nulls are equal. The first input's names and order of
    columns count. Of streams Spark takes one only, as the first input of `except` without `all`; what has
    come through is state then, and in the output mode `update` a row goes on once for each micro-batch that
    has it. `union` puts rows together.

    In visual tools: SetOperation.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, None)
    example = {"operation": "except"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows that all have, or only the first.

        Raises:
            GemError: When the inputs haven't the same columns.
        """
        made, *others = inputs
        for name, other in zip(self._names(len(inputs))[1:], others, strict=True):
            made = self._of_two(made, self._in_order(made.columns, other, name))
        return made

    def infer(self, *inputs: Facts) -> Facts:
        """The first input's columns; a row that came through once is state of a stream."""
        made, *others = inputs
        for other in others:
            columns = self._columns(made, other)
            if self.options.operation == "intersect":
                operator = Operator("intersect", "operation")
            else:
                operator = _once(made.with_columns(columns))
            made = combined(operator, [made, other]).with_all_columns(columns)
        return made

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The first input's columns; all columns of all inputs decide which rows come out."""
        made = self.infer(*inputs).columns
        known = [column_keys(facts.columns) for facts in inputs]
        keys = known[0]
        if made is None or keys is None or len(keys) != len(made):
            return None
        found: dict[str, Made] = {}
        for key, column, before in zip(keys, made, inputs[0].columns or (), strict=True):
            as_it_is = column.type is not None and column.type == before.type
            found[key] = same(key) if as_it_is else Made(f"as {column.type}", frozenset({f"0:{key}"}))
        uses = [f"{position}:{key}" for position, names in enumerate(known) for key in names or ()]
        by = "by name" if self.options.by_name else f"by position {known}"
        rows = Made(
            f"{self.options.operation} {self.options.all} {by}",
            None if None in known else frozenset(uses),
        )
        keeps = self.options.operation == "except" and inputs[0].streaming is not False
        types = tuple(column.type for column in made)
        return Lineage(found, rows, Kept(tuple(found.values()), types, taken=rows) if keeps else None)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The inputs have the same columns, whose values can be told equal."""
        first, *others = inputs
        names = self._names(len(inputs))
        if self.options.all and self.options.operation == "except" and first.streaming:
            yield Finding(
                "GB205",
                f"`{names[0]}` is a stream, and Spark counts no rows of one away with `all`: the query would "
                "fail when it runs",
                "Leave `all` out, or use a `join` with `how: left_anti` to keep rows that are equal.",
                "all",
            )
        for column in first.columns or ():
            if without_equality(column.type):
                yield Finding(
                    "GB213",
                    f"`{column.name}` is {with_article(column.type)}, and `{self.options.operation}` can't "
                    "tell two of them equal",
                    "Leave it out, or make a text of it before: `to_json(…)`.",
                    "operation",
                )
        for name, other in zip(names[1:], others, strict=False):
            if first.columns is None or other.columns is None:
                continue
            problem = self._unlike(
                [column.name for column in first.columns], [column.name for column in other.columns], name
            )
            if problem is not None:
                yield Finding("GB205", problem, _HINT, "by_name")
                continue
            for one, second in zip(first.columns, self._ordered(first, other) or (), strict=False):
                if differ_for_certain(one.type, second.type):
                    yield Finding(
                        "GB213",
                        f"`{one.name}` is {with_article(one.type)} in `{names[0]}` and `{second.name}` "
                        f"{with_article(second.type)} in `{name}`: no row of one is a row of the other",
                        "Cast one of them before, or leave it out.",
                    )

    def _names(self, count: int) -> tuple[str, ...]:
        return self.input_names or tuple(str(position + 1) for position in range(count))

    def _of_two(self, left: "DataFrame", right: "DataFrame") -> "DataFrame":
        if self.options.operation == "intersect":
            return left.intersectAll(right) if self.options.all else left.intersect(right)
        return left.exceptAll(right) if self.options.all else left.subtract(right)

    def _in_order(self, names: "Sequence[str]", other: "DataFrame", input_name: str) -> "DataFrame":
        """Another input with its columns in the order of the first one's."""
        problem = self._unlike(names, other.columns, input_name)
        if problem is not None:
            raise GemError("GB205", problem, _HINT, "by_name")
        if not self.options.by_name or [name.lower() for name in names] == [n.lower() for n in other.columns]:
            return other
        return other.select(*(quoted(name) for name in names))

    def _unlike(self, names: "Sequence[str]", others: "Sequence[str]", input_name: str) -> str | None:
        """Why two inputs haven't the same columns; None when they have."""
        first = self._names(2)[0]
        if not self.options.by_name:
            if len(names) != len(others):
                return f"`{first}` has {len(names)} columns and `{input_name}` has {len(others)}"
            return None
        for owner, known, lacking, lacks in (
            (first, names, others, input_name),
            (input_name, others, names, first),
        ):
            there = {name.lower() for name in lacking}
            missing = [f"`{name}`" for name in known if name.lower() not in there]
            if missing:
                return f"`{lacks}` lacks {', '.join(missing)} of `{owner}`"
            if len({name.lower() for name in known}) < len(known):
                return f"`{owner}` has several columns of one name, which can't be told apart by their names"
        return None

    def _ordered(self, first: Facts, other: Facts) -> "Sequence[Column] | None":
        """The other input's columns, each at the place of the first one's."""
        if first.columns is None or other.columns is None:
            return None
        if self._unlike([c.name for c in first.columns], [c.name for c in other.columns], "") is not None:
            return None
        if not self.options.by_name:
            return other.columns
        return [found for column in first.columns if (found := other.column(column.name)) is not None]

    def _columns(self, first: Facts, other: Facts) -> list[Column] | None:
        """The first input's columns, as far as nothing is cast for the other one."""
        if first.columns is None:
            return None
        others = self._ordered(first, other)
        if others is None:
            others = [Column(column.name) for column in first.columns]
        return [_as_first(column, second) for column, second in zip(first.columns, others, strict=True)]


_HINT = "Select the same columns in all inputs, or use `by_name: false` to take them by position."


def _as_first(column: Column, other: Column) -> Column:
    same = column.type is not None and column.type == other.type
    delay = column.delay if same or column.delay is None else UNKNOWN_DELAY
    entered = (*column.entered, *other.entered)
    return replace(column, type=column.type if same else None, delay=delay, entered=entered)


def _once(facts: Facts) -> AggregateOperator:
    """Rows of the first input that come through once: an aggregation over all columns."""
    return AggregateOperator(
        kind="except",
        option="operation",
        event_time=facts.watermarked,
        sessions=None if facts.columns is None else any(column.session for column in facts.columns),
        rows=True,
        windowed=False,
    )
