"""What a query makes of what, where it is a plain one: one table, conditions, groups, columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import Kept, Lineage, Made
from gem_bundle.expressions import (
    analyse,
    asked_by,
    buffers_of,
    equal_keys,
    equal_parts,
    made_of,
    made_of_inputs,
    reference,
)
from gem_bundle.lineage import MAYBE_NULL, column_keys, uses_of
from gem_sql.grouping import plain_keys, several_times_over
from gem_sql.tree import UnknownQuery, item_of, sql_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle import Column, Facts

_PLAIN = frozenset({"expressions", "from_", "where", "group", "having", "distinct"})
_HAVING = "having"
_ALL = "*"
_VALUES = frozenset({"?max", "?min", "?any_value", "?mode"})


def lineage_of(query: str, inputs: Mapping[str, Facts], made: Facts) -> Lineage | None:
    """What a query makes of what; of one that isn't plain, only what kinds of aggregates it keeps.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names, in the order of the node's inputs.
        made: The facts of its rows.
    """
    from gem_bundle.expressions.query import exp, query_tree

    tree = query_tree(query)
    names = column_keys(made.columns)
    if tree is None or names is None or made.columns is None:
        return None
    plain = _plain_or_none(tree, inputs, names, made) if isinstance(tree, exp.Select) else None
    return plain or _whole(tree, query, names)


def _whole(tree: Any, query: str, names: list[str]) -> Lineage:
    """A query of which it isn't known what comes of what: everything may."""
    from gem_bundle.expressions.query import exp

    rule = Made(" ".join(query.split()), None)
    calls: dict[str, tuple[str, ...]] = {}
    for call in tree.find_all(exp.Anonymous):
        whole: Any = call
        while isinstance(whole.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            whole = whole.parent
        for text, kinds in (buffers_of(sql_of(whole), None) or {}).items():
            # Whatever is one of the values that came is kept as such a value.
            calls[text] = tuple("?value" if kind in _VALUES else kind for kind in kinds)
    kept = Kept((rule,), None, {_ALL: calls}, frozenset({_ALL}))
    return Lineage(dict.fromkeys(names, rule), rule, kept)


def _plain_or_none(tree: Any, inputs: Mapping[str, Facts], names: list[str], made: Facts) -> Lineage | None:
    if any(value for name, value in tree.args.items() if name not in {*_PLAIN, "joins"}):
        return None
    if tree.args.get("joins"):
        return _joined_or_none(tree, inputs, names)
    table = _table(tree, inputs)
    if table is None:
        return None
    position, facts = table
    if facts.columns is None or len({column.name.lower() for column in facts.columns}) < len(facts.columns):
        return None
    try:
        return _plain(tree, position, facts, names, made)
    except UnknownQuery:
        return None


def _joined_or_none(tree: Any, inputs: Mapping[str, Facts], names: list[str]) -> Lineage | None:
    """A query over two tables that a condition joins, without groups; None of others."""
    if any(tree.args.get(name) for name in ("group", "having", "distinct")) or len(tree.args["joins"]) != 1:
        return None
    (join,) = tree.args["joins"]
    if any(value for name, value in join.args.items() if name not in _JOIN) or join.args.get("on") is None:
        return None
    tables = [_table(tree, inputs), _named(join.this, inputs)]
    sides = [(place, facts.columns) for place, facts in filter(None, tables) if facts.columns is not None]
    if len(sides) < 2 or any(column_keys(columns) is None for _, columns in sides):
        return None
    both = [columns for _, columns in sides]

    def made(text: str) -> Made:
        found = made_of_inputs(text, both)
        return Made(found.rule, _placed(found.uses, sides), _placed(found.nulls, sides))

    on = sql_of(join.args["on"])
    where = tree.args.get("where")
    decides = [made(on), made(sql_of(where.this) if where is not None else "true")]
    how = " ".join(str(join.args.get(name) or "") for name in ("method", "side", "kind")).lower()
    rows = Made(" ".join([how, *(found.rule for found in decides)]), uses_of(decides))
    columns: list[Made] = []
    for node in tree.expressions:
        item = item_of(node)
        if not item.star:
            columns.append(replace(made(item.text), nulls=None))
            continue
        for (place, known), table in zip(sides, tables, strict=True):
            facts = table[1] if table is not None else None
            if item.owner is None or (facts is not None and item.owner in (facts.qualifiers or ())):
                columns += [
                    Made("=", frozenset({f"{place}:{key}"}), frozenset({MAYBE_NULL}))
                    for key in column_keys(known) or ()
                ]
    if len(columns) != len(names):
        return None
    streams = all(facts.streaming is not False for _, facts in filter(None, tables))
    parts = tuple(replace(p, uses=None, nulls=_placed(p.nulls, sides)) for p in equal_parts(on, both))
    kept = Kept((rows,), equal_keys(on, both), rows=True, taken=decides[1], parts=parts) if streams else None
    return Lineage(dict(zip(names, columns, strict=True)), rows, kept)


_JOIN = frozenset({"this", "on", "method", "side", "kind"})


def _placed(
    uses: frozenset[str] | None, sides: Sequence[tuple[int, Sequence[Column]]]
) -> frozenset[str] | None:
    """Columns of the two sides as those of the node's inputs, which both may be one of."""
    if uses is None:
        return None
    parted = [use.partition(":") for use in uses]
    return frozenset(f"{sides[int(at)][0]}:{key}" if colon else at for at, colon, key in parted)


def _table(tree: Any, inputs: Mapping[str, Facts]) -> tuple[int, Facts] | None:
    clause = tree.args.get("from_")
    return _named(clause.this if clause is not None else None, inputs)


def _named(table: Any, inputs: Mapping[str, Facts]) -> tuple[int, Facts] | None:
    """Which input a table is, with what is known of it, called as the query calls it."""
    from gem_bundle.expressions.query import exp

    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("sample"):
        return None
    for position, (name, facts) in enumerate(inputs.items()):
        if name.lower() == table.name.lower():
            return position, facts.called(table.alias or name)
    return None


def _plain(tree: Any, position: int, facts: Facts, names: list[str], made: Facts) -> Lineage | None:
    columns = facts.columns
    items = [item_of(node) for node in tree.expressions]
    bodies: list[tuple[str, str]] = []
    for item in items:
        if item.star:
            bodies += [(column.name, f"`{column.name}`") for column in columns or ()]
        else:
            bodies.append((item.name or item.text, item.text))
    if len(bodies) != len(names):
        return None
    found: dict[str, Made] = {}
    for name, (_, body) in zip(names, bodies, strict=True):
        found[name] = made_of(body, columns, position=position, earlier=found)
    where = tree.args.get("where")
    rows = made_of(sql_of(where.this), columns, position=position) if where is not None else Made()
    aggregates = [name for name, (_, body) in zip(names, bodies, strict=True) if _aggregates(body, columns)]
    group, distinct = tree.args.get("group"), tree.args.get("distinct")
    if group is None and not aggregates:
        if tree.args.get("having") is not None:
            return None
        kept = None
        if distinct is not None:
            if distinct.args.get("on") or not facts.streaming:
                return None
            types = tuple(column.type for column in made.columns or ())
            kept = Kept(tuple(found.values()), types, taken=rows)
        asks = asked_by(sql_of(where.this), [columns]) if where is not None else frozenset[str]()
        return Lineage(found, rows, kept, asks=_placed(asks, [(position, columns or ())]))
    if distinct is not None or (group is not None and group.args.get("all")):
        return None
    keys = [_key(sql_of(node), bodies, columns) for node in (plain_keys(group) if group is not None else [])]
    by = tuple(made_of(key, columns, position=position) for key in keys)
    values = {
        name: buffers_of(body, columns, keys)
        for name, (_, body) in zip(names, bodies, strict=True)
        if name in aggregates
    }
    having = tree.args.get("having")
    if having is not None:
        values[_HAVING] = buffers_of(sql_of(having.this), columns)
    types = tuple(analyse(key, columns).column.type for key in keys)
    if several_times_over(group):
        # What isn't grouped by is null then, and which it is is a key of its own.
        by = tuple(replace(key, nulls=frozenset({MAYBE_NULL})) for key in by)
        by = (*by, Made(f"grouping id {sql_of(group)}", nulls=frozenset()))
        types = (*types, "bigint")
    reads = frozenset({_HAVING} if having is not None else ())
    condition = sql_of(having.this) if having is not None else ""
    rule = Made(" ".join([rows.rule, *(key.rule for key in by), condition]), uses_of([rows, *by]))
    return Lineage(found, rule, Kept(by, types, values, reads, taken=rows) if facts.streaming else None)


def _aggregates(body: str, columns: Sequence[Column] | None) -> bool:
    return analyse(body, columns).aggregates


def _key(text: str, bodies: list[tuple[str, str]], columns: Sequence[Column] | None) -> str:
    """What is grouped by: an item by its position or by its name, or an expression."""
    if text.isdecimal() and 1 <= int(text) <= len(bodies):
        return bodies[int(text) - 1][1]
    parts = reference(text)
    if parts is None or len(parts) > 1 or any(c.name.lower() == parts[0].lower() for c in columns or ()):
        return text  # a column of the table comes before an item of that name
    return next((body for name, body in bodies if name.lower() == parts[0].lower()), text)
