"""What is known of an expression over known columns."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from gem_bundle.expressions.functions import UNSTEADY
from gem_bundle.expressions.kinds import marks_of
from gem_bundle.expressions.names import CURRENT_TIME, VALUE_TYPES, reference, split_alias
from gem_bundle.expressions.scope import Scope
from gem_bundle.facts import Column, Unsteady

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.walk import Value, Walk
    from gem_bundle.operators import EventTime

# A literal beside `and` or `or`, or in branches; something that stands there twice, or is put together.
_LITERAL = r"""(?:\d|'|"|\btrue\b|\bfalse\b|\bnull\b)"""
_BRANCHES = r"\b(?:and|or|case|iff?|nvl2|coalesce|ifnull|nvl|nullif|is|isnull|isnotnull)\b"
_MAY_BE_DECIDED = re.compile(
    rf"(?is){_BRANCHES}.*{_LITERAL}|{_LITERAL}.*\b(?:and|or)\b|[-+*/%<>=]\s*null\b|\bnull\s*[-+*/%<>=]"
    rf"|(?:{_BRANCHES}|<=>).*?\b([a-z_]\w*)\b.*\b\1\b|\b([a-z_]\w*)\b.*(?:<=>|\band\b|\bor\b).*\b\2\b"
    r"|\b(?:array|map|named_struct|struct)\s*\(.*\)\s*[.\[]"
)
# What Spark calls the columns of values that are written without brackets.
_VALUE_NAMES = {
    **{name: f"{name}()" for name in ("current_date", "current_timestamp")},
    **dict.fromkeys(("current_user", "session_user", "user"), "current_user()"),
}
_LONGEST_NAME = 500
# So often is an expression walked through on the average, and twice as often in the worst pipelines.
_WALKS = 5


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of one expression over known columns.

    Args:
        column: The column that it makes: its name is empty where only Spark knows it.
        parsed: Whether it could be read; otherwise nothing else is known.
        aggregates: It has an aggregate function outside of an ``OVER``.
        distinct: Its distinct aggregates as they are written, for example ``count(distinct page)``.
        analytic: It has a function with an ``OVER``.
        generator: It has a function that makes several rows of one, such as `explode`.
        row_ids: It numbers rows by `monotonically_increasing_id`.
        current_time: It asks for the current time or date.
        clock: It asks for it in one of the ways that Spark replaces by the time of the micro-batch, and
            which so become non-deterministic when the query runs.
        clock_aggregated: An aggregate function has that among its arguments.
        constant: It is nothing but a literal, maybe with a sign or a cast.
        grouped_wrongly: The columns outside of its aggregates that are not grouped by, as they are
            written, when the groups were given.
    """

    column: Column
    parsed: bool = True
    aggregates: bool = False
    distinct: tuple[str, ...] = ()
    analytic: bool = False
    generator: bool = False
    row_ids: bool = False
    current_time: bool = False
    clock: bool = False
    clock_aggregated: bool = False
    constant: bool = False
    grouped_wrongly: tuple[str, ...] = ()


def analyse(
    expression: str,
    columns: Sequence[Column] | None,
    *,
    name: str | None = None,
    earlier: Sequence[Column] = (),
    groups: Sequence[str] | None = None,
) -> Analysis:
    """What is known of an expression.

    Args:
        expression: An expression; it may name itself by ``as name``.
        columns: The columns it is over, or None when they are unknown.
        name: The name it is given; by default its own.
        earlier: What the same projection made before it.
        groups: The expressions that its rows are grouped by, when it stands in an aggregation.
    """
    body, alias = split_alias(expression)
    return analysed(body, Scope(columns, earlier), name or alias, groups)


def analysed(
    body: str, scope: Scope, name: str | None = None, groups: Sequence[str] | None = None
) -> Analysis:
    """What is known of an expression without an alias, over names that are told already."""
    parts = reference(body)
    if parts is not None and groups is None:
        plain = of_reference(parts, scope, name)
        if plain is not None:
            return plain
    found = walked(body, scope, groups)
    if found is None:
        return Analysis(Column(name or "", delay=scope.possible_delay), parsed=False)
    walk, value = found
    kind = None if value.type is None else str(value.type)
    qualifier = value.column.qualifier if value.column is not None and name is None else None
    if name is None and len(body) <= _LONGEST_NAME:
        name = walk.auto_name()
    return Analysis(
        Column(
            name or "",
            kind,
            value.delay,
            value.session,
            qualifier,
            marks_of(value.type),
            _entered(value),
            _made_as(walk.unsteady, name),
        ),
        aggregates=bool(walk.aggregates),
        distinct=tuple(walk.distinct),
        analytic=walk.analytic,
        generator=bool(walk.generators),
        row_ids=walk.row_ids,
        current_time=walk.current_time,
        clock=walk.clock,
        clock_aggregated=walk.clock_aggregated,
        constant=walk.constant,
        grouped_wrongly=tuple(walk.ungrouped),
    )


def _made_as(unsteady: Unsteady | None, name: str | None) -> Unsteady | None:
    """Why an expression isn't steady: where one of its columns is why, that one goes on."""
    return replace(unsteady, column=name or "") if unsteady is not None and not unsteady.column else unsteady


def _entered(value: Value) -> tuple[EventTime, ...]:
    """What the column that an expression is nothing but was; none for a field of it."""
    return value.column.entered if value.column is not None and value.plain else ()


def of_reference(parts: Sequence[str], scope: Scope, name: str | None) -> Analysis | None:
    """What is known of a plain reference without parsing it; None when it has fields to be followed."""
    meaning = scope.resolve(parts)
    column = meaning.column
    if meaning.fields:
        return None
    if column is None:
        timely = meaning.outcome == "value" and parts[0].lower() in CURRENT_TIME
        delay = None if meaning.outcome == "value" else scope.possible_delay
        given = name or (_VALUE_NAMES.get(parts[0].lower(), "") if meaning.outcome == "value" else parts[-1])
        return Analysis(
            Column(
                given,
                VALUE_TYPES.get(parts[0].lower()) if meaning.outcome == "value" else None,
                delay,
                unsteady=Unsteady(given, parts[0].lower(), UNSTEADY[parts[0].lower()]) if timely else None,
            ),
            current_time=timely,
            clock=timely and parts[0].lower() != "current_time",
        )
    qualifier = column.qualifier if name is None else None
    return Analysis(
        Column(
            name or parts[-1],
            column.type,
            column.delay,
            column.session,
            qualifier,
            column.marks,
            column.entered,
            column.unsteady,
        )
    )


def walked(expression: str, scope: Scope, groups: Sequence[str] | None = None) -> tuple[Walk, Value] | None:
    """A finished walk through an expression and what it is; None when it can't be read."""
    from gem_bundle.expressions.walk import Walk

    if _effort.left is not None:
        _effort.walks -= 1
    tree = parsed(expression) if _effort.left is None or _effort.walks >= 0 else None
    if tree is None:
        return None
    trees = None if groups is None else [parsed(split_alias(group)[0]) for group in groups]
    known = None if trees is None or None in trees else [tree for tree in trees if tree is not None]
    try:
        walk = Walk(scope, expression, known)
        return walk, walk.run(tree)
    except RecursionError:
        return None


@lru_cache(maxsize=4096)
def parsed(expression: str) -> exp.Expr | None:
    """The tree of an expression; None when it can't be read. Don't change it: it is kept."""
    from gem_bundle.expressions.spark_parser import tree_of

    if _effort.left is not None:
        _effort.left -= 1
        if _effort.left < 0:
            return None
    return tree_of(expression)


def folded(expression: str) -> exp.Expr | None:
    """The same without those of its conditions that literals decide. Don't change it: it is kept.

    Args:
        expression: The expression.
    """
    tree = parsed(expression)
    return tree if tree is None or not _MAY_BE_DECIDED.search(expression) else _folded(expression)


@lru_cache(maxsize=4096)
def _folded(expression: str) -> exp.Expr | None:
    from gem_bundle.expressions.folding import without_decided

    tree = parsed(expression)
    return None if tree is None else without_decided(tree)


def has_star(expression: str) -> bool:
    """Whether an expression has a star that stands for all columns."""
    tree = parsed(expression) if "*" in expression else None
    if tree is None:
        return False
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import means_all_columns

    return any(means_all_columns(star) for star in tree.find_all(exp.Star))


def calls_functions(expression: str) -> bool:
    """Whether an expression may call a function: without one it neither aggregates nor makes rows.

    The current time can be asked for without brackets.
    """
    return "(" in expression or any(name in expression.lower() for name in CURRENT_TIME)


class _Effort:
    """How many more expressions may be read, and walked through, which is done again; None is any number."""

    left: int | None = None
    walks: int = 0


_effort = _Effort()


@contextmanager
def limited(expressions: int) -> Iterator[None]:
    """Read so many expressions at most, each a few times; of all others nothing is known.

    A file of a size that is allowed can have more of them than can be read within the time that a
    check should take.
    """
    before = _effort.left
    _effort.left, _effort.walks = expressions, _WALKS * expressions
    try:
        yield
    finally:
        if _effort.left is not None and _effort.left < 0:
            parsed.cache_clear()  # what wasn't read this time may be the next time
        _effort.left = before


TimeWindow = tuple[str, tuple[int, int]]


def time_windows(expressions: Iterable[str]) -> dict[TimeWindow, str]:
    """The time windows (``window(at, '1 hour')``) in some expressions that are certainly different ones.

    Spark allows one in a projection or aggregation, as often as it is written; whether two over one
    length are the same can't be told from the text.

    Returns:
        The calls as they are written, by function and length.
    """
    from gem_bundle.types import interval_length

    found: dict[TimeWindow, str] = {}
    for expression in expressions:
        tree = parsed(split_alias(expression)[0]) if "window" in expression.lower() else None
        if tree is None:
            continue
        from gem_bundle.expressions.spark_parser import exp

        for call in tree.find_all(exp.Anonymous):
            name = call.name.lower()
            if name not in {"window", "session_window"} or not call.expressions[1:]:
                continue
            if reference(call.expressions[0].sql(dialect="spark")) is None:
                return {}  # a window of windows, maybe
            try:
                length = interval_length(call.expressions[1].name)
            except ValueError:
                continue
            found.setdefault((name, length), call.sql(dialect="spark", normalize_functions=False))
    return found
