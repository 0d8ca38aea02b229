"""What a query makes of what: queries within it, unions, and what can't be followed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import Facts, Kept, Lineage, Made
from gem_bundle.expressions import GENERATORS, buffers_of, tested_by, united_type
from gem_bundle.lineage import column_keys
from gem_sql.composing import behind, united
from gem_sql.join_lineage import of_joined, of_joined_groups
from gem_sql.lateral_lineage import of_lateral
from gem_sql.reading import facts_of
from gem_sql.table_lineage import is_plain, of_table, table_named, table_of
from gem_sql.tree import UnknownQuery, is_a_table, only, sql_of, without_strategies, without_twins
from gem_sql.unread import without_unread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_sql.table_lineage import Tables

_OTHERS = ""
_VALUES = frozenset({"?max", "?min", "?any_value", "?mode"})


def lineage_of(query: str, inputs: Mapping[str, Facts], made: Facts) -> Lineage | None:
    """What a query makes of what; of one that isn't plain, only what kinds of aggregates it keeps.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names, in the order of the node's inputs.
        made: The facts of its rows.
    """
    from gem_bundle.expressions.query import query_tree

    tree = query_tree(query)
    names = column_keys(made.columns)
    if tree is None or names is None or made.columns is None:
        return None
    read = without_unread(without_twins(without_strategies(tree)))
    if read is not tree:
        tree, query = read, read.sql(dialect="spark")
    tables = {name.lower(): (position, facts) for position, (name, facts) in enumerate(inputs.items())}
    return _followed(tree, tables, names, made) or _whole(tree, query, names)


def _whole(tree: Any, query: str, names: list[str]) -> Lineage:
    """A query of which it isn't known what comes of what: everything may."""
    from gem_bundle.expressions.query import exp

    rule = Made(" ".join(query.split()), None)
    items = tree.expressions if isinstance(tree, exp.Select) and not tree.args.get("distinct") else []
    # Of its own results Spark keeps what somebody reads; those of queries within it any of them may need.
    owner = (
        {id(item): name for item, name in zip(items, names, strict=False)} if len(items) == len(names) else {}
    )
    values: dict[str, dict[str, tuple[str, ...]]] = {_OTHERS: {}}
    for call in tree.find_all(exp.Anonymous):
        whole: Any = call
        while isinstance(whole.parent, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            whole = whole.parent
        at: Any = whole
        # What a query within an item gives is the same for all rows.
        while at is not None and id(at) not in owner:
            at = None if isinstance(at, exp.Query) else at.parent
        calls = values.setdefault(owner.get(id(at), _OTHERS), {})
        for text, kinds in (buffers_of(sql_of(whole), None) or {}).items():
            # Whatever is one of the values that came is kept as such a value.
            calls[text] = tuple("?value" if kind in _VALUES else kind for kind in kinds)
    kept = Kept((rule,), None, values)
    return Lineage(dict.fromkeys(names, rule), rule, kept)


def _followed(tree: Any, tables: Tables, names: list[str], made: Facts) -> Lineage | None:
    """What a query makes of what, that of which it reads included; None of one that isn't plain."""
    from gem_bundle.expressions.query import exp

    try:
        known, queries = _with(tree, tables)
        if isinstance(tree, exp.Union):
            return _united(tree, known, names, made)
        inner, called = _read_by(tree, queries)
        if inner is None:
            return _plain_or_none(tree, known, names, made)
        if not is_plain(tree):
            return None
        facts, first = _of_query(inner, known)
        second = of_table(tree, 0, facts.called(called), names, made)
    except UnknownQuery:
        return None
    return behind(first, second, _asked_of(tree, first)) if second is not None else None


def _asked_of(tree: Any, inner: Lineage) -> frozenset[str] | None:
    """The columns of an inner query that are needed for the condition of a query; None where they may be any.

    Spark doesn't ask whether what is never null is null, as the array that `collect_list` gives.
    """
    from gem_bundle.expressions.query import exp

    calls = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    if calls & {*GENERATORS, "window"}:
        return None  # they decide on rows too
    where = tree.args.get("where")
    never = {key for key, made in inner.columns.items() if made.nulls == frozenset()}
    return tested_by(sql_of(where.this), {}, never) if where is not None else frozenset()


def _of_query(query: Any, tables: Tables) -> tuple[Facts, Lineage]:
    """The rows of a query within another one, and what it makes of what.

    Raises:
        UnknownQuery: When that isn't known.
    """
    from gem_bundle.expressions.query import exp

    while isinstance(query, exp.Subquery):
        only(query, frozenset({"this"}))
        query = query.this
    facts = facts_of(query, {name: found for name, (_, found) in tables.items()})
    names = column_keys(facts.columns)
    found = None if names is None else _followed(query, tables, names, facts)
    if found is None:
        raise UnknownQuery
    return facts, found


def _united(tree: Any, tables: Tables, names: list[str], made: Facts) -> Lineage | None:
    """The rows of two queries, each row once where that is asked for."""
    only(tree, frozenset({"this", "expression", "distinct", "with_"}))
    (left, one), (right, other) = (_of_query(side, tables) for side in (tree.this, tree.expression))
    found = united(names, one, other)
    if found is None or not tree.args.get("distinct"):
        return found
    sides = zip(left.columns or (), right.columns or (), strict=False)
    types = tuple(united_type(column.type, of_other.type) for column, of_other in sides)
    kept = Kept(tuple(found.columns.values()), types, taken=found.rows)
    return replace(found, kept=kept if made.streaming else None)


def _with(tree: Any, tables: Tables) -> tuple[Tables, dict[str, Any]]:
    """The tables, with those that are only called otherwise, and the queries that have a name."""
    clause = tree.args.get("with_")
    known, queries = dict(tables), {}
    for cte in clause.expressions if clause is not None else ():
        name = cte.alias.lower()
        if clause.args.get("recursive") or cte.args["alias"].args.get("columns") or name in known:
            raise UnknownQuery
        table = table_named(cte.this.args["from_"].this, known) if is_a_table(cte.this) else None
        if table is not None:
            known[name] = (table[0], table[1].called(name))
        else:
            queries[name] = cte.this
    return known, queries


def _read_by(tree: Any, queries: Mapping[str, Any]) -> tuple[Any, str]:
    """The query that a query reads from, with what it is called there; None where it reads tables."""
    from gem_bundle.expressions.query import exp

    if not isinstance(tree, exp.Select):
        raise UnknownQuery
    clause = tree.args.get("from_")
    source = clause.this if clause is not None else None
    found = None
    if isinstance(source, exp.Subquery):
        only(source, frozenset({"this", "alias"}))
        found = source.this
    elif isinstance(source, exp.Table) and source.name.lower() in queries:
        only(source, frozenset({"this", "alias"}))
        found = queries[source.name.lower()]
    return (None, "") if found is None or source is None else (found, source.alias_or_name)


def _plain_or_none(tree: Any, tables: Tables, names: list[str], made: Facts) -> Lineage | None:
    if tree.args.get("joins"):
        return of_joined(tree, tables, names) or of_joined_groups(tree, tables, names, made)
    if tree.args.get("laterals"):
        return of_lateral(tree, tables, names, made)
    table = table_of(tree, tables)
    if table is None or not is_plain(tree):
        return None
    return of_table(tree, *table, names, made)
