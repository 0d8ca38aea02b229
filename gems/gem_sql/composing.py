"""Queries over the rows of other queries: what comes of what, from tables to the columns of the last one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle import Kept, Lineage, Made
from gem_bundle.lineage import UNCERTAIN, Term, collapsed, results_of, uses_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Values = Mapping[str, tuple[str, ...]] | None

_CONDITION = "where"


def behind(inner: Lineage, outer: Lineage, asked: frozenset[str] | None = None) -> Lineage | None:
    """What two queries make of what together; None where both keep something, or one keeps rows.

    Args:
        inner: What the inner one makes of its tables.
        outer: What the outer one makes of the inner one's columns, as those of an input 0.
        asked: The names of the inner one's columns that the outer one's conditions need; None where all that
            they are over may be needed.
    """
    if inner.kept is not None and _finds_no_duplicates(inner, inner.kept, outer):
        inner, outer = replace(inner, kept=replace(inner.kept, once=True)), replace(outer, kept=None)
    if inner.kept is not None and (outer.kept is not None or inner.kept.rows):
        return None
    columns = {key: _moved(inner, made) for key, made in outer.columns.items()}
    decides = _moved(inner, outer.rows)
    kept = outer.kept
    if kept is not None:
        kept = _kept_behind(inner, outer, kept)
    elif inner.kept is not None:
        kept = _kept_before(inner, inner.kept, outer, decides, asked)
    asks = None
    if inner.kept is None and inner.asks is not None and outer.asks is not None:
        asks = inner.asks | _as_they_are(inner, outer.asks)
    read = [Made(uses=inner.reads), Made(uses=outer.reads)]
    read[1] = _moved(inner, read[1])
    only = inner.only_nulls if outer.rows == Made() and kept is None else frozenset[frozenset[str]]()
    return Lineage(
        columns,
        both(inner.rows, decides),
        kept,
        uses_of(read),
        asks,
        only_nulls=only,
        several=inner.several,
        terms=_terms(inner, outer) if kept is None else (),
    )


def _terms(inner: Lineage, outer: Lineage) -> tuple[Term, ...]:
    """The conditions of two queries that keep nothing, where each is told by its terms."""
    if any(lineage.rows != Made() and not lineage.terms for lineage in (inner, outer)):
        return ()
    moved = (
        Term(
            _moved(inner, term.made),
            None if term.asks is None else _as_they_are(inner, term.asks),
            term.fails if all(_is_as_it_is(inner, use) for use in term.made.uses or ()) else None,
        )
        for term in outer.terms
    )
    return (*inner.terms, *moved)


def _finds_no_duplicates(inner: Lineage, kept: Kept, outer: Lineage) -> bool:
    """Whether a query drops duplicates of groups, and has all that they are grouped by."""
    if outer.kept is None or outer.kept.rows or outer.kept.values:
        return False
    passed = {_key(use) for made in outer.columns.values() if made.rule == "=" for use in made.uses or ()}
    return kept.are_told_by(passed, inner.columns)


def united(names: Sequence[str], one: Lineage, other: Lineage) -> Lineage | None:
    """The rows of two queries one after the other, by their columns' places; None where one keeps something.

    Args:
        names: What the columns are told apart by.
        one: What the first query makes of what.
        other: The same of the second.
    """
    pairs = list(zip(one.columns.values(), other.columns.values(), strict=False))
    if one.kept is not None or other.kept is not None or not len(one.columns) == len(pairs) == len(names):
        return None
    columns: dict[str, Made] = {}
    for name, pair in zip(names, pairs, strict=True):
        as_they_are = all(made.rule == "=" for made in pair)
        rule = "union" if as_they_are else f"union of {[(m.rule, sorted(m.uses or ())) for m in pair]}"
        nulls = [made.uses if made.rule == "=" and made.nulls is None else made.nulls for made in pair]
        known = None if None in nulls else frozenset[str]().union(*filter(None, nulls))
        columns[name] = Made(rule, uses_of(pair), known, tuple(use for m in pair for use in m.in_order))
    conditions = (one.rows, other.rows)
    rows = Made(f"union of {[(m.rule, sorted(m.uses or ())) for m in conditions]}", uses_of(conditions))
    places = [_places(found) for found in (one, other)]
    if all(made == Made() for made in conditions) and all(places) and not places[0] & places[1]:
        rows = Made()  # each row of theirs once
    reads = None if one.reads is None or other.reads is None else one.reads | other.reads
    return Lineage(columns, rows, None, reads)


def _places(lineage: Lineage) -> set[str]:
    """The positions of the tables that a query certainly reads."""
    return {use.partition(":")[0] for made in lineage.columns.values() for use in made.uses or ()}


def both(one: Made, other: Made) -> Made:
    """Two conditions, one behind the other.

    Args:
        one: The first; one without a rule leaves out nothing.
        other: The second.
    """
    if Made() in (one, other):
        return other if one == Made() else one
    return Made(f"{one.rule} then {other.rule}", uses_of([one, other]))


def _key(use: str) -> str:
    return use.partition(":")[2]


def _as_they_are(inner: Lineage, uses: Iterable[str]) -> frozenset[str]:
    """The columns of tables that columns of the inner query are; without those that are something else."""
    as_they_are = (inner.columns[_key(use)] for use in uses if _is_as_it_is(inner, use))
    return frozenset().union(*(made.uses or () for made in as_they_are))


def _is_as_it_is(inner: Lineage, use: str) -> bool:
    """Whether a column of the inner query is one of a table."""
    return inner.columns.get(_key(use), Made("?")).rule == "="


def _moved(inner: Lineage, made: Made) -> Made:
    """Something made of the inner query's columns, as made of its tables."""
    if made.uses is None:
        return made
    if made.rule == "=" and len(made.uses) == 1 and _key(*made.uses) in inner.columns:
        return inner.columns[_key(*made.uses)]
    found = [inner.columns.get(_key(use)) for use in made.uses]
    known = [one for one in found if one is not None]
    uses = uses_of(known) if len(known) == len(found) else None
    order = [inner.columns.get(_key(use), Made()) for use in made.order]
    return Made(
        f"{made.rule}{_named(inner, made.uses)}",
        uses,
        _nulls(inner, made.nulls),
        tuple(use for one in order for use in one.in_order),
    )


def _named(inner: Lineage, uses: Iterable[str] | None) -> str:
    """What the names in a rule stand for, where they aren't those of the tables' columns."""
    keys = sorted(inner.columns if uses is None else map(_key, uses))
    told: list[tuple[str, str, list[str]]] = []
    for key in keys:
        made = inner.columns.get(key, Made("?", None))
        if made.rule != "=" or {_key(use) for use in made.uses or ()} != {key}:
            told.append((key, made.rule, sorted(made.uses or ())))
    return f" of {told}" if told else ""


def _nulls(inner: Lineage, nulls: frozenset[str] | None) -> frozenset[str] | None:
    if nulls is None:
        return None
    found: set[str] = set()
    for null in nulls:
        if ":" not in null:
            found.add(null)
            continue
        made = inner.columns.get(_key(null), Made("?", None))
        of = made.uses if made.rule == "=" and made.nulls is None else made.nulls
        found |= {UNCERTAIN} if of is None else of
    return frozenset(found)


def _kept_behind(inner: Lineage, outer: Lineage, kept: Kept) -> Kept:
    """What the outer query keeps, of columns that the inner one makes."""
    values: dict[str, Values] = {}
    for column, functions in kept.values.items():
        made = outer.columns.get(column)
        named = _named(inner, None if made is None else made.uses)
        values[column] = None if functions is None else {f"{f}{named}": k for f, k in functions.items()}
    return replace(
        kept,
        keys=tuple(_moved(inner, key) for key in kept.keys),
        parts=tuple(_moved(inner, part) for part in kept.parts),
        taken=both(inner.rows, _moved(inner, kept.taken)),
        values=values,
    )


def _kept_before(
    inner: Lineage, kept: Kept, outer: Lineage, decides: Made, needed: frozenset[str] | None
) -> Kept:
    """What the inner query keeps, by the columns that the outer one makes of its results."""
    values: dict[str, Values] = {}
    for column, made in outer.columns.items():
        found = _values(kept, made.order or made.uses)
        if found is None or found:
            values[column] = found
    asked = {_key(use) for use in outer.rows.uses or ()}
    by_rows = Made(uses=frozenset(u for u in outer.rows.uses or () if needed is None or _key(u) in needed))
    asks_for = uses_of([outer.rows if outer.rows.uses is None else by_rows, Made(uses=outer.reads)])
    tested = _values(kept, None if asks_for is None else {*asks_for, *kept.reads})
    taken = kept.taken
    if outer.rows != Made():
        # What is asked of results is asked of those that come out; all else Spark asks for before.
        taken = taken if outer.rows.uses and asked <= set(kept.values) else both(taken, decides)
    if tested is None or tested:
        values[_CONDITION] = tested
    order, results = kept.order, results_of(inner)
    if not order and (results is None or collapsed(results, outer, outer.columns) is None):
        order = tuple(_values(kept, None) or ())
    return replace(kept, values=values, reads=frozenset(values) & {_CONDITION}, taken=taken, order=order)


def _values(kept: Kept, uses: Iterable[str] | None) -> Values:
    """What is kept for some columns of the inner query; by default for all."""
    found: dict[str, tuple[str, ...]] = {}
    wanted = kept.values if uses is None else dict.fromkeys(_key(use) or use for use in uses)
    for column in wanted:
        functions = kept.values.get(column, {})
        if functions is None:
            return None
        found |= functions
    return found
