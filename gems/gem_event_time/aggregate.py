"""The transform `aggregate`: groups of rows, also by windows over event time."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, model_validator

from gem_bundle import (
    AggregateOperator,
    Column,
    Facts,
    Field,
    Finding,
    Kept,
    Lineage,
    Made,
    Operator,
    OptionChange,
    Options,
    Transform,
    event_times,
)
from gem_bundle.expressions import (
    WINDOW_TYPE,
    analyse,
    asked_by,
    buffers_of,
    check_expression,
    column_of,
    find,
    keyed,
    made_of,
    project,
    reference,
    several_windows,
    split_alias,
    tested_by,
    time_delay,
    windows_over,
)
from gem_bundle.lineage import MAYBE_NULL, column_keys
from gem_bundle.operators import any_of
from gem_bundle.types import ColumnExpressions, Expression, Interval, interval_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_GROUPING_SETS = re.compile(r"\s*(rollup|cube|grouping\s+sets)\s*\(", re.IGNORECASE)
_PIVOT = "__gem_bundle_pivot"
_PIVOTED_TWICE = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
}
_STAR = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_STARTS_WITH_NUMBER = re.compile(r"\s*(interval\s+)?[+-]?\d", re.IGNORECASE)


def _fixed(interval: str) -> str:
    months, microseconds = interval_length(interval)
    if months:
        raise ValueError("a window can't be measured in months or years: they differ in length")
    if not microseconds:
        raise ValueError("a window can't have the length zero")
    return interval


def _interval_or_expression(gap: object) -> object:
    """A gap that starts with a number is an interval: as an expression ``5 mins`` is 5, called `mins`."""
    if isinstance(gap, int | float):
        raise ValueError(f"a gap needs a unit: `{gap} seconds`?")
    if isinstance(gap, str) and _STARTS_WITH_NUMBER.match(gap) and not any(interval_length(gap)):
        raise ValueError("a gap can't have the length zero: no row would be in a session")
    return gap


def _as_texts(values: object) -> object:
    """Values as Spark writes them: YAML reads `1` and `true` as numbers and booleans."""
    if not isinstance(values, list):
        return values
    plain = (isinstance(value, str | int) for value in values)
    if not all(plain):
        raise ValueError("values are texts, whole numbers, true or false; write others in quotes")
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


WindowLength = Annotated[Interval, AfterValidator(_fixed)]
Gap = Annotated[Expression, BeforeValidator(_interval_or_expression)]


class WindowOptions(Options):
    """Tumbling windows, or sliding ones when `slide` is given (guide: *Types of time windows*)."""

    column: Expression = Field(
        description="The event time; or the `window` of an earlier aggregation.", examples=["at"]
    )
    duration: WindowLength = Field(description="How long a window is.", examples=["1 hour"])
    slide: WindowLength | None = Field(
        None,
        description="How long after a window the next one starts; by default its `duration`, so "
        "that each row is in one window.",
        examples=["15 minutes"],
    )
    start_offset: Interval | None = Field(
        None,
        description="How long after 1970-01-01 00:00 UTC windows start; less than `slide`.",
        examples=["15 minutes"],
    )

    @model_validator(mode="after")
    def _lengths_agree(self) -> "WindowOptions":
        step = interval_length(self.slide or self.duration)
        if step > interval_length(self.duration):
            raise ValueError("`slide` can't be longer than `duration`: rows between would be lost")
        if self.start_offset is not None and interval_length(self.start_offset) >= step:
            raise ValueError("`start_offset` must be shorter than the step from window to window")
        return self


class SessionOptions(Options):
    """Session windows, which end when no row comes for a while (guide: *Types of time windows*)."""

    column: Expression = Field(description="The event time.", examples=["at"])
    gap: Gap = Field(
        description="How long no row may come for a session to end: an interval, or an expression "
        "that gives one for each row.",
        examples=["5 minutes", "case when page = 'video' then '1 hour' else '5 minutes' end"],
    )


class PivotOptions(Options):
    """Values of a column that become columns (SQL reference: *PIVOT*)."""

    column: Expression = Field(
        description="What is looked at, as a text: a number as it is written, true and false in words.",
        examples=["team"],
    )
    values: Annotated[list[str], BeforeValidator(_as_texts)] = Field(
        min_length=1,
        description="The values that become columns. Rows with others, or null, are in none of them.",
        examples=[["web", "shop"]],
    )

    @model_validator(mode="after")
    def _each_once(self) -> "PivotOptions":
        seen: set[str] = set()
        for value in self.values:
            if value.lower() in seen:
                raise ValueError(f"`{value}` stands twice among the `values`: Spark ignores case in names")
            seen.add(value.lower())
        return self


class AggregateOptions(Options):
    """Options of the transform `aggregate`."""

    group_by: ColumnExpressions = Field(
        [],
        description="What to group by, as a list of expressions or as a mapping of name to "
        "expression; by default all rows are one group.",
        examples=[["page"], {"day": "date(at)"}],
        change="mixed",
    )
    window: WindowOptions | None = Field(
        None, description="Group by time windows too; they become the column `window`.", change="mixed"
    )
    session: SessionOptions | None = Field(
        None, description="Group by sessions too; they become the column `session_window`.", change="mixed"
    )
    aggregates: dict[str, Expression] = Field(
        min_length=1,
        description="The columns to compute, as a mapping of name to aggregate expression.",
        examples=[{"clicks": "count(*)", "latest": "max(at)"}],
        change="mixed",
    )
    pivot: PivotOptions | None = Field(
        None,
        description="Compute the aggregates for each of these values by itself, as columns: `web`, or of "
        "several aggregates `web_clicks`, `web_latest`. For numbers alone Spark aggregates twice, and what "
        "has no row is null; with others it does once, and a count is 0 there.",
        change="refused",
    )
    having: Expression | None = Field(
        None,
        description="A condition over the result's columns; groups that don't meet it are left out.",
        examples=["clicks > 10"],
        change="mixed",
    )

    @model_validator(mode="after")
    def _one_kind_of_window(self) -> "AggregateOptions":
        if self.window is not None and self.session is not None:
            raise ValueError("give either `window` or `session`")
        return self


class Aggregate(Transform[AggregateOptions]):
    """Aggregate rows by groups and by windows over event time.

    The result has the window first, then the groups, then the aggregates. The window is a struct of
    `start` and `end`, as in Spark. It keeps the watermark of the column it is over, so it can
    be grouped by, joined on or windowed again as it is; `window.start` on its own can't.

    In visual tools: Aggregate.
    """

    example = {
        "window": {"column": "at", "duration": "1 minute"},
        "group_by": ["page"],
        "aggregates": {"clicks": "count(*)"},
    }

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """One row for each group."""
        from pyspark.sql.functions import expr

        options = self.options
        groups = [*self._window_column()]
        if isinstance(options.group_by, dict):
            groups += [expr(body).alias(name) for name, body in options.group_by.items()]
        else:
            groups += [expr(expression) for expression in options.group_by]
        if options.pivot is None:
            computed = [expr(body).alias(name) for name, body in options.aggregates.items()]
            grouped = inputs[0].groupBy(*groups).agg(*computed)
        else:
            df = inputs[0].withColumn(_PIVOT, expr(options.pivot.column).cast("string"))
            # Spark takes no star there.
            stars = {name: _STAR.sub("count(1)", body) for name, body in options.aggregates.items()}
            computed = [expr(body).alias(name) for name, body in stars.items()]
            grouped = df.groupBy(*groups).pivot(_PIVOT, list(options.pivot.values)).agg(*computed)
        return grouped if options.having is None else grouped.filter(options.having)

    def infer(self, *inputs: Facts) -> Facts:
        """The window, the groups and the aggregates; a mark stays where Spark keeps it."""
        (before,) = inputs
        operator = self._operator(before)
        facts = before.after(operator)
        groups = project(self.options.group_by, before)
        if before.columns is None or groups is None:
            return facts.with_all_columns(None)
        keys = [*self._window_facts(before.columns), *groups]
        made = project(self.options.aggregates, before, earlier=keys)
        if self.options.pivot is not None and made is not None:
            facts = _pivoted(before, operator, made)
            several = len(made) > 1
            made = tuple(
                Column(f"{value}_{column.name}" if several else value, column.type)
                for value in self.options.pivot.values
                for column in made
            )
        return facts.with_all_columns(None if made is None else [*keys, *made])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each aggregate of its arguments; the window and the groups decide which rows there are."""
        from gem_bundle.expressions import grouped_by  # no check asks for lineages

        (facts,) = inputs
        columns, made = facts.columns, self.infer(facts).columns
        names = column_keys(made)
        if columns is None or made is None or names is None:
            return None
        groups = [*self._window_made(columns), *(made_of(body, columns) for body in self._groups())]
        grouped: dict[str, Made] = dict(zip(names, groups, strict=False))
        types = [column.type for column in made[: len(groups)]]
        pivot = self.options.pivot
        texts: list[str | None] = [*([None] * (len(groups) - len(self._groups()))), *self._groups()]
        told = list(zip(texts, groups, types, strict=True))
        twice = pivot is not None and _is_pivoted_twice(made[len(groups) :])
        if twice is None:
            return None
        if pivot is not None and twice:
            told.append((None, made_of(f"cast({pivot.column} as string)", columns), "string"))
        keys, key_types = grouped_by(told, self.options.aggregates.values())
        aggregated: dict[str, Made] = {}
        values: dict[str, Mapping[str, tuple[str, ...]] | None] = {}
        bodies: dict[str, str] = {}
        for name, (value, body) in zip(names[len(groups) :], self._computed(), strict=True):
            found = made_of(body, columns, earlier=grouped)
            buffers = buffers_of(body, columns, self._groups())
            if pivot is not None:
                never = frozenset[str]() if not twice and found.nulls == frozenset() else None
                found = replace(_of_value(value, made_of(pivot.column, columns), found), nulls=never)
                if not twice and buffers is not None:
                    buffers = {f"{value}: {text}": kinds for text, kinds in buffers.items()}
            aggregated[name], values[name], bodies[name] = found, buffers, body
        having = made_of(self.options.having or "true", made)
        uses = None if any(group.uses is None for group in groups) else _all_of(groups)
        groups_by = keys[: len(keys) - bool(twice)]
        rows = Made(" ".join([*(group.rule for group in groups_by), having.rule]), uses)
        tested = tested_by(self.options.having or "true", bodies, ())
        read = frozenset(name for name in names if tested is None or name in tested)
        # What is asked of groups and not of results Spark asks for before.
        asks_groups = having.uses is None or bool(having.uses & {f"0:{name}" for name in grouped})
        asked = asked_by(self.options.having or "true", [made]) or frozenset()
        asks = frozenset(use.partition(":")[2] for use in asked)
        kept = Kept(keys, key_types, values, read, taken=having if asks_groups else Made(), asks=asks)
        return Lineage(grouped | aggregated, rows, kept, asks=self._timely(columns))

    def _timely(self, columns: tuple[Column, ...]) -> frozenset[str]:
        """What its windows are over: a row for which that is null belongs to none."""
        over = [window.column for window in (self.options.window, self.options.session) if window is not None]
        over += [text for body in self._groups() for text in windows_over(body)]
        found = (asked_by(f"({text}) is not null", [columns]) for text in over)
        return frozenset[str]().union(*filter(None, found))

    def _computed(self) -> "Iterator[tuple[str, str]]":
        """What is computed, column by column, each behind the value of the pivot that it is for."""
        for value in self.options.pivot.values if self.options.pivot is not None else ("",):
            for body in self.options.aggregates.values():
                yield value, body

    def _window_made(self, columns: tuple[Column, ...]) -> "Iterator[Made]":
        """How the window is made."""
        over, session = self.options.window, self.options.session
        if over is not None:
            made = made_of(over.column, columns)
            lengths = [over.duration, over.slide or over.duration, over.start_offset or "0 seconds"]
            measured = [interval_length(length) for length in lengths]
            # Of windows that overlap, Spark takes each for one that may be null.
            nulls = frozenset[str]() if measured[0] == measured[1] else frozenset({MAYBE_NULL})
            yield Made(f"window {measured} {made.rule}", made.uses, nulls)
        elif session is not None:
            made = made_of(session.column, columns)
            fixed = _STARTS_WITH_NUMBER.match(session.gap)
            gap = Made(str(interval_length(session.gap))) if fixed else made_of(session.gap, columns)
            uses = None if made.uses is None or gap.uses is None else made.uses | gap.uses
            yield Made(f"session {gap.rule} {made.rule}", uses, frozenset())

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Other values of a pivot, or in another order, as many as before: Spark takes the state for theirs.

        By the values it aggregates twice, and the state of the second aggregation, in which each value has
        its place, is empty between two micro-batches.
        """
        pivot = self.options.pivot
        if option == "pivot" and before and pivot is not None and len(before["values"]) == len(pivot.values):
            return OptionChange("mixed")
        return None

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Expressions are over columns that exist; aggregates stand where they belong, and only there."""
        (facts,) = inputs
        options = self.options
        for option in ("window", "session"):
            over = getattr(options, option)
            if over is not None:
                place = (option, "column")
                yield from check_expression(over.column, facts, place, wants="timestamp", analytic=False)
        if options.session is not None and not _STARTS_WITH_NUMBER.match(options.session.gap):
            yield from check_expression(options.session.gap, facts, ("session", "gap"), analytic=False)
        groups = options.group_by
        names = {name.lower() for name in groups} if isinstance(groups, dict) else set()
        for key, body in keyed(groups):
            yield from check_expression(
                body, facts, ("group_by", key), also=names, analytic=False, generators=False, stars=False
            )
        if options.pivot is not None:
            yield from check_expression(
                options.pivot.column,
                facts,
                ("pivot", "column"),
                analytic=False,
                generators=False,
                stars=False,
            )
        also = names | set(self._window_names()) | {name.lower() for name in options.aggregates}
        for name, body in options.aggregates.items():
            yield from check_expression(
                body,
                facts,
                ("aggregates", name),
                also=also,
                aggregates="allowed" if options.pivot is None else "required",
                analytic=False,
                stars=options.pivot is None,
                groups=self._groups(),
            )
        yield from self._several_windows()
        if options.having is not None:
            yield from check_expression(
                options.having,
                self.infer(facts),
                "having",
                wants="boolean",
                analytic=False,
                generators=False,
            )

    def _several_windows(self) -> "Iterator[Finding]":
        """A finding for a second time window."""
        over, session = self.options.window, self.options.session
        made: list[tuple[str, tuple[int, int]]] = []
        if over is not None and reference(over.column) is not None:
            made.append(("window", interval_length(over.duration)))
        if session is not None and reference(session.column) is not None:
            try:
                made.append(("session_window", interval_length(session.gap)))
            except ValueError:
                return  # a gap for each row, which may be any length
        if made or (over is None and session is None):
            bodies = [*self._groups(), *self.options.aggregates.values()]
            yield from several_windows(bodies, "group_by", made=made, home="an aggregation")

    def _operator(self, facts: Facts) -> AggregateOperator:
        """What Spark's rules ask of an aggregation."""
        columns = facts.columns
        windowed = self.options.window is not None or self.options.session is not None
        functions = {name: analyse(body, columns) for name, body in self.options.aggregates.items()}
        groups = [analyse(body, columns) for body in self._groups()]
        distinct = [name for name, found in functions.items() if found.distinct]
        # What a function is about may be a group, which has been computed before.
        grouped = any(group.clock for group in groups)
        timely = [name for name, found in functions.items() if found.clock_aggregated and not grouped]
        varying = sum(not group.constant for group in groups) + windowed
        keys = self._grouping_columns(facts)
        marks = [column.watermarked for column in keys or ()]
        if keys is None and facts.watermarked is not False and varying:
            marks = [None]
        carried = {column.delay for column in keys or () if column.watermarked}
        sessions = self.options.session is not None or any(column.session for column in keys or ())
        return AggregateOperator(
            option=next((name for name in ("window", "session") if getattr(self.options, name)), "group_by"),
            event_time=any_of(marks),
            sessions=sessions or (None if keys is None else False),
            alone=sessions and varying == 1,
            distinct=tuple(self.options.aggregates[name] for name in distinct),
            distinct_option=("aggregates", distinct[0]) if distinct else None,
            windowed=windowed or any(_is_window(column) for column in keys or ()),
            folds=self._folds(facts),
            duration=self.options.window.duration if self.options.window else None,
            delay=carried.pop() if len(carried) == 1 else None,
            event_times=tuple(column.name for column in event_times(keys or ())),
            clock=self.options.aggregates[timely[0]] if timely else "",
            clock_option=("aggregates", timely[0]) if timely else None,
        )

    def _folds(self, facts: Facts) -> bool:
        """Whether a group is an expression that is event time nevertheless: `struct(at).at`."""
        computed = [
            body for body in self._groups() if reference(body) is None and "window" not in body.lower()
        ]
        return any(column_of(body, "key", facts.columns or ()).delay for body in computed)

    def _grouping_columns(self, facts: Facts) -> list[Column] | None:
        """The groups that are columns as they are, which may carry a watermark; None if not known."""
        bodies = self._groups()
        if facts.columns is None or any(_GROUPING_SETS.match(body) for body in bodies):
            return None
        found = list(self._window_facts(facts.columns))
        for body in bodies:
            parts = reference(body)
            column = None
            if parts is not None:
                column = find(parts, facts.columns)
                if len(parts) > 1 and any(c.name.lower() == parts[0].lower() for c in facts.columns):
                    column = None  # a field of a struct carries none when it is grouped by
            elif "window" in body.lower():
                column = column_of(body, "window", facts.columns)
            if column is not None:
                found.append(column)
        return found

    def _groups(self) -> tuple[str, ...]:
        """What is grouped by, without the names given to it."""
        return tuple(split_alias(body)[0] for _, body in keyed(self.options.group_by))

    def _window_names(self) -> list[str]:
        if self.options.window is not None:
            return ["window"]
        return ["session_window"] if self.options.session is not None else []

    def _window_column(self) -> "Iterator[SparkColumn]":
        from pyspark.sql.functions import expr, session_window, window

        over, session = self.options.window, self.options.session
        if over is not None:
            yield window(expr(over.column), over.duration, over.slide, over.start_offset)
        elif session is not None:
            fixed = _STARTS_WITH_NUMBER.match(session.gap)
            yield session_window(expr(session.column), session.gap if fixed else expr(session.gap))

    def _window_facts(self, columns: tuple[Column, ...]) -> "Iterator[Column]":
        over, session = self.options.window, self.options.session
        used = over or session
        if used is not None:
            name = "window" if over is not None else "session_window"
            delay = time_delay(used.column, columns)
            yield Column(name, _window_type(used.column, columns), delay, session=session is not None)


def _all_of(made: list[Made]) -> frozenset[str]:
    return frozenset[str]().union(*(found.uses or () for found in made))


def _of_value(value: str, pivot: Made, made: Made) -> Made:
    """An aggregate of the rows that have one of the pivot's values."""
    uses = None if pivot.uses is None or made.uses is None else pivot.uses | made.uses
    return Made(f"pivot {value} {pivot.rule} {made.rule}", uses)


def _is_pivoted_twice(made: "Iterable[Column]") -> bool | None:
    """Whether Spark aggregates by the pivot's values too, as it does where all it computes are numbers."""
    heads = {None if column.type is None else column.type.partition("(")[0] for column in made}
    if heads - {None} - _PIVOTED_TWICE:
        return False
    return None if None in heads else True


def _pivoted(before: Facts, operator: AggregateOperator, made: "tuple[Column, ...]") -> Facts:
    """The rows behind a pivot."""
    twice = _is_pivoted_twice(made)
    if twice is False:
        return before.after(operator)
    operator = replace(operator, alone=False, event_times=())
    behind = Operator("unknown") if twice is None else replace(operator, distinct=(), clock="")
    return before.after(operator).after(behind)


def _is_window(column: Column) -> bool:
    return column.session or column.type == WINDOW_TYPE


def _window_type(expression: str, columns: tuple[Column, ...]) -> str | None:
    """The type of a window over a column; None where the column's type decides and isn't known."""
    parts = reference(expression)
    if parts is None:
        made = column_of(f"window({expression}, '1 minute')", "window", columns)
        return None if made is None else made.type
    column = find(parts, columns)
    kind = column.type if column is not None else None
    if kind in {"timestamp", "string", WINDOW_TYPE}:
        return WINDOW_TYPE
    return WINDOW_TYPE.replace("timestamp", "timestamp_ntz") if kind == "timestamp_ntz" else None
