"""What `check` says of expressions: findings about names, types and functions that can't stand there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from gem_bundle.diagnostics import Finding, suggest
from gem_bundle.expressions.analysis import has_star, of_reference, time_windows, walked
from gem_bundle.expressions.calls import NO_TIME_FOR_WINDOWS
from gem_bundle.expressions.kinds import family, is_window, read
from gem_bundle.expressions.names import VALUES, reference, split_alias
from gem_bundle.expressions.readable import unreadable
from gem_bundle.expressions.scope import Problem, Scope
from gem_bundle.schema import with_article, without_equality, without_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.diagnostics import Severity
    from gem_bundle.expressions.analysis import TimeWindow
    from gem_bundle.expressions.walk import Walk
    from gem_bundle.facts import Facts
    from gem_bundle.operators import Option
    from gem_bundle.schema import DataType

Wanted = Literal["boolean", "timestamp", "interval", "order", "equality"]
_LONGEST = 60
_CAST = re.compile(r"cast\s*\(|::", re.IGNORECASE)
_HINTS = {
    "boolean": "Compare it with something, for example `{0} > 0`.",
    "timestamp": "Make a time of it first, for example by `to_timestamp({0})`.",
    "interval": "Write it as a text, for example `'5 minutes'`.",
    "order": "Take a part of it, or make a text of it: `to_json({0})`.",
    "equality": "Take a part of it, or make a text of it: `to_json({0})`.",
}
_NEEDED = {
    "boolean": "a condition must be true or false",
    "timestamp": "windows are over times",
    "interval": "a length of time is needed, as a text",
    "order": "Spark can't put such values in order",
    "equality": "Spark can't tell two of them equal",
}
# The families of types that certainly can't be used so.
_REFUSED = {"boolean": "ifnsxdtvycamr", "timestamp": NO_TIME_FOR_WINDOWS, "interval": "bifnxdtvyamr"}
_SEVERITIES: dict[str, Severity] = {"GB216": "warning", "GB219": "warning"}
_STAR = Problem("GB212", "`*` can't stand for all columns here", "Name the columns.")
_NO_AGGREGATE = Problem("GB212", "there is no aggregate function in it", "Use one, for example `max(…)`.")


def check_expression(
    expression: str,
    facts: Facts,
    option: Option,
    *,
    also: Iterable[str] = (),
    dropped: Iterable[str] | None = (),
    wants: Wanted | None = None,
    aggregates: Literal["no", "allowed", "required"] = "no",
    analytic: bool = True,
    generators: bool = True,
    stars: bool = True,
    groups: Sequence[str] | None = None,
) -> Iterator[Finding]:
    """What is certainly wrong with an expression; whatever can't be told is passed over.

    Args:
        expression: The expression; it may name itself by ``as name``.
        facts: What it is over; names are checked only when its columns are known.
        option: Where it stands, for the finding's place.
        also: Other names it may use: the ones that the same option defines.
        dropped: Names of columns that earlier nodes dropped. Spark finds them in conditions, sort keys
            and partition keys, and nowhere else. None when there may be any.
        wants: What it must be: a condition, a time that windows can be made over, a length of time, or of
            a type whose values can be put in order, or be told equal.
        aggregates: Whether it may have aggregate functions, or must.
        analytic: Whether it may have window functions (``OVER``).
        generators: Whether it may have functions that make several rows of one.
        stars: Whether it may have a star for all columns: Spark puts them there in a list of columns, also
            of aggregates, and in the condition of a filter.
        groups: The expressions that its rows are grouped by: other columns may then only stand in
            aggregates.

    Yields:
        Findings: GB210 unknown column, GB211 ambiguous column, GB212 a function that can't stand there,
        GB213 wrong type, GB214 unreadable, GB215 wrong number of arguments, GB370 a type that only newer
        Sparks have; and the warnings GB216 unknown function, GB219 a name that is no column but a value.
    """
    body, _ = split_alias(expression)
    if _CAST.search(body):
        from gem_bundle.expressions.casts import check_types

        types = list(check_types(body, option, f"`{_short(body)}`"))
        yield from types
        if any(not found.since for found in types):
            return
    for problem in _problems(
        body,
        Scope(facts.columns, also=also, dropped=dropped, qualifiers=facts.qualifiers),
        wants=wants,
        aggregates=aggregates,
        analytic=analytic,
        generators=generators,
        stars=stars,
        groups=groups,
    ):
        severity = _SEVERITIES.get(problem.code, "error")
        since, word = problem.since, problem.word
        yield Finding(problem.code, problem.message, problem.hint, option, severity, word=word, since=since)


def _problems(
    body: str,
    scope: Scope,
    *,
    wants: Wanted | None,
    aggregates: str,
    analytic: bool,
    generators: bool,
    stars: bool,
    groups: Sequence[str] | None,
) -> list[Problem]:
    parts = reference(body)
    if parts is not None and groups is None:
        meaning = scope.resolve(parts)
        if not meaning.fields:
            problem = scope.problem(parts, meaning)
            if problem is not None:
                return [problem]
            if aggregates == "required":
                return [_NO_AGGREGATE]
            plain = of_reference(parts, scope, None)
            kind = None if plain is None else plain.column.type
            return _mismatch(body, None if kind is None else read(kind), wants)
    reason = unreadable(body)
    if reason is not None:
        return [Problem("GB214", f"`{_short(body)}` can't be read: {reason}")]
    found = walked(body, scope, groups)
    if found is None:
        return []
    walk, value = found
    wrong = [
        *walk.problems,
        *_misplaced(walk, aggregates, analytic=analytic, generators=generators),
        *((_STAR,) if not stars and has_star(body) else ()),
        *(
            Problem(
                "GB212",
                f"`{name}` is neither grouped by nor within an aggregate function",
                f"Group by it, or take one of its values, for example `max({name})`.",
            )
            for name in walk.ungrouped
        ),
    ]
    return wrong or _mismatch(body, value.type, wants)


def _mismatch(body: str, kind: DataType | None, wants: Wanted | None) -> list[Problem]:
    if wants is None or kind is None:
        return []
    refused = family(kind) in set(_REFUSED.get(wants, ()))
    if wants == "order":
        refused = without_order(kind)
    if wants == "equality":
        refused = without_equality(str(kind))
    if wants == "boolean":
        refused |= kind.name == "void"
    if wants == "timestamp" and kind.name == "struct":
        refused = not is_window(kind)
    if not refused:
        return []
    text = _short(body)
    told = f"`{text}` is {with_article(kind)}, and {_NEEDED[wants]}"
    return [Problem("GB213", told, _HINTS[wants].format(text))]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def check_functions(query: str, option: Option) -> Iterator[Finding]:
    """The warning GB216 for each function of a query, wherever in it, that Spark doesn't have.

    Args:
        query: The query.
        option: Where it stands.
    """
    from gem_bundle.expressions.functions import unknown
    from gem_bundle.expressions.query import exp, query_tree

    tree = query_tree(query)
    for call in tree.find_all(exp.Anonymous) if tree is not None else ():
        # In `from` stand functions of another kind, and behind a dot those of a schema.
        told = (
            None if isinstance(call.parent, exp.Dot | exp.Lateral | exp.Table) else unknown(call.name.lower())
        )
        if told is not None:
            yield Finding("GB216", *told, option, "warning", word=call.name)


def several_windows(
    expressions: Iterable[str], option: Option, *, made: Iterable[TimeWindow] = (), home: str = "a node"
) -> Iterator[Finding]:
    """A finding when there are different time windows in a node: Spark makes one at a time.

    Args:
        expressions: The expressions of the node.
        option: Where they stand.
        made: The windows that the node makes besides, by function and length.
        home: Where one of them can be made instead.
    """
    windows = time_windows(expressions)
    windows.update((window, window[0]) for window in made)
    names = list(windows.values())
    if len(names) > 1:
        yield Finding(
            "GB212",
            f"there are two time windows, `{names[0]}` and `{names[1]}`, and a node can have one",
            f"Make one of them in {home} of its own.",
            option,
        )


def missing_columns(
    expressions: Iterable[str], facts: Facts, option: Option, *, also: Iterable[str] = ()
) -> Iterator[Finding]:
    """A finding for each expression that is nothing but the name of a column that doesn't exist.

    Args:
        expressions: Expressions; those that are more than a name are passed over.
        facts: What they are over; nothing is found when its columns are unknown.
        option: The option they stand in.
        also: Other names they may mean: the ones that the same option defines.
    """
    if facts.columns is None:
        return
    defined = {name.lower() for name in also}
    for expression in expressions:
        body, alias = split_alias(expression)
        parts = reference(body)
        # Columns such as `_metadata` of files exist without being among the known ones.
        name = parts[0] if parts is not None and len(parts) == 1 else "_"
        if not name.startswith("_") and name.lower() not in defined | VALUES:
            yield from missing_names([name], facts, option)
        if alias is not None:
            defined.add(alias.lower())


def missing_names(names: Iterable[str], facts: Facts, option: Option) -> Iterator[Finding]:
    """A finding for each name, taken as it stands, that no known column has."""
    if facts.columns is None:
        return
    for name in names:
        if facts.column(name) is None:
            known = [column.name for column in facts.columns]
            yield Finding(
                "GB210", f"there is no column `{name}`", suggest(name, known, what="columns"), option
            )


def _misplaced(walk: Walk, aggregates: str, *, analytic: bool, generators: bool) -> Iterator[Problem]:
    if aggregates == "no" and walk.aggregates:
        name = walk.aggregates[0]
        yield Problem(
            "GB212",
            f"`{name}` is an aggregate function, which can't stand here",
            "Compute it in an `aggregate` before this node.",
        )
    if aggregates == "required" and not (walk.aggregates or walk.foreign):
        yield _NO_AGGREGATE
    if not analytic and walk.analytic:
        yield Problem(
            "GB212",
            "a window function (`over`) can't stand here",
            "Compute it in a `with_columns` before this node.",
        )
    if not generators and walk.generators:
        yield Problem(
            "GB212",
            f"`{walk.generators[0]}` makes several rows of one, which can't be done here",
            "Use it in a `select` before this node.",
        )
