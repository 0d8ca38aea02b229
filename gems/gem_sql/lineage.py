"""What a query makes of what, where it is a plain one: one table, conditions, groups, columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import Facts, Kept, Lineage, Made
from gem_bundle.expressions import (
    analyse,
    asked_by,
    buffers_of,
    equal_keys,
    equal_parts,
    equalities,
    grouped_by,
    has_overlapping_windows,
    kept_by,
    made_of,
    made_of_inputs,
    nulls_left_out,
    reference,
    tested_by,
    united_type,
    windows_over,
)
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN, column_keys, uses_of
from gem_sql.behind import order_keys
from gem_sql.composing import behind, both, united
from gem_sql.grouping import plain_keys, several_times_over
from gem_sql.joining import with_condition, without_using
from gem_sql.reading import facts_of
from gem_sql.tree import UnknownQuery, columns_in, item_of, only, sql_of, subqueries_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle import Column
    from gem_bundle.lineage import Equality

    Tables = Mapping[str, tuple[int, Facts]]

_PLAIN = frozenset({"expressions", "from_", "where", "group", "having", "distinct", "order"})
_HAVING = "having"
_ORDER = "order by"
_ALL = "*"
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
    tables = {name.lower(): (position, facts) for position, (name, facts) in enumerate(inputs.items())}
    return _followed(tree, tables, names, made) or _whole(tree, query, names)


def _whole(tree: Any, query: str, names: list[str]) -> Lineage:
    """A query of which it isn't known what comes of what: everything may."""
    from gem_bundle.expressions.query import exp

    rule = Made(" ".join(query.split()), None)
    calls: dict[str, tuple[str, ...]] = {}
    for call in tree.find_all(exp.Anonymous):
        whole: Any = call
        while isinstance(whole.parent, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            whole = whole.parent
        for text, kinds in (buffers_of(sql_of(whole), None) or {}).items():
            # Whatever is one of the values that came is kept as such a value.
            calls[text] = tuple("?value" if kind in _VALUES else kind for kind in kinds)
    kept = Kept((rule,), None, {_ALL: calls}, frozenset({_ALL}))
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
        if not _is_plain(tree):
            return None
        facts, first = _of_query(inner, known)
        second = _plain(tree, 0, facts.called(called), names, made)
    except UnknownQuery:
        return None
    return behind(first, second) if second is not None else None


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
        table = _named(cte.this.args["from_"].this, known) if _is_a_table(cte.this) else None
        if table is not None:
            known[name] = (table[0], table[1].called(name))
        else:
            queries[name] = cte.this
    return known, queries


def _is_a_table(query: Any) -> bool:
    """Whether a query is nothing but `select * from` a table."""
    from gem_bundle.expressions.query import exp

    given = {name for name, value in query.args.items() if value}
    stars = [isinstance(item, exp.Star) and not any(item.args.values()) for item in query.expressions]
    return isinstance(query, exp.Select) and given == {"expressions", "from_"} and stars == [True]


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


def _is_plain(tree: Any) -> bool:
    known = not any(value for name, value in tree.args.items() if name not in {*_PLAIN, "with_"})
    return known and not _asks_elsewhere(tree)


def _asks_elsewhere(tree: Any) -> bool:
    """Whether an expression asks another query for something, which may be about all that its tables have."""
    return next(subqueries_of(tree, tree.args.keys() - {"from_", "with_"}), None) is not None


def _plain_or_none(tree: Any, tables: Tables, names: list[str], made: Facts) -> Lineage | None:
    if tree.args.get("joins"):
        return _joined_or_none(tree, tables, names) or _grouped_or_none(tree, tables, names, made)
    table = _table(tree, tables)
    if table is None or not _is_plain(tree):
        return None
    return _plain(tree, *table, names, made)


def _joined_or_none(tree: Any, known: Tables, names: list[str]) -> Lineage | None:
    """A query over two tables that a condition joins, without groups; None of others."""
    if any(value for name, value in tree.args.items() if name not in _JOINED) or len(tree.args["joins"]) != 1:
        return None
    tree = with_condition(tree)
    (join,) = tree.args["joins"]
    tables = [_table(tree, known), _named(join.this, known)]
    if join.args.get("using"):
        known_sides = [found[1] for found in tables if found is not None]
        tree = without_using(tree, *known_sides) if len(known_sides) > 1 else None
        if tree is None:
            return None
        (join,) = tree.args["joins"]
    if any(value for name, value in join.args.items() if name not in _JOIN) or join.args.get("on") is None:
        return None
    if _asks_elsewhere(tree):
        return None
    sides = [(place, facts.columns) for place, facts in filter(None, tables) if facts.columns is not None]
    if len(sides) < 2 or any(column_keys(columns) is None for _, columns in sides):
        return None
    columns_of = [columns for _, columns in sides]

    def made(text: str) -> Made:
        found = made_of_inputs(text, columns_of)
        return Made(found.rule, _placed(found.uses, sides), _placed(found.nulls, sides))

    on = sql_of(join.args["on"])
    where = tree.args.get("where")
    decides = [made(on), made(sql_of(where.this) if where is not None else "true")]
    how = " ".join(str(join.args.get(name) or "") for name in ("method", "side", "kind")).lower()
    rows = Made(" ".join([how, *(found.rule for found in decides)]), uses_of(decides))
    lack = _LACKING.get(how.split()[0] if how.strip() else "inner", frozenset({0, 1}))
    columns: list[Made] = []
    for node in tree.expressions:
        item = item_of(node)
        if not item.star:
            columns.append(replace(made(item.text), nulls=None))
            continue
        for number, ((place, of_side), table) in enumerate(zip(sides, tables, strict=True)):
            facts = table[1] if table is not None else None
            if item.owner is None or (facts is not None and item.owner in (facts.qualifiers or ())):
                used = [f"{place}:{key}" for key in column_keys(of_side) or () if key not in item.left_out]
                columns += [
                    Made("=", frozenset({use}), frozenset({MAYBE_NULL if number in lack else use}))
                    for use in used
                ]
    if len(columns) != len(names):
        return None
    streams = all(facts.streaming is not False for _, facts in filter(None, tables))
    inner = how.strip() in {"", "inner"}
    # What `where` wants to be equal becomes a key as well.
    pairs = f"({on}) and ({sql_of(where.this)})" if where is not None and inner else on
    parts = tuple(
        replace(p, uses=None, nulls=_placed(p.nulls, sides)) for p in equal_parts(pairs, columns_of)
    )
    left_to_right = tuple(place for place, _ in sides)
    left, right = (facts for _, facts in filter(None, tables))
    called = (tree.args["from_"].this.alias_or_name, join.this.alias_or_name)
    # Which pairs there are is nothing that is kept.
    by = kept_by(on, left, right, called) if inner else rows
    by = replace(by, uses=_placed(by.uses, sides))
    keys = equal_keys(pairs, columns_of)
    kept = Kept((by,), keys, rows=True, taken=decides[1], parts=parts, sides=left_to_right)
    asks = _placed(asked_by(on, columns_of), sides)
    return Lineage(dict(zip(names, columns, strict=True)), rows, kept if streams else None, asks=asks)


def _grouped_or_none(tree: Any, known: Tables, names: list[str], made: Facts) -> Lineage | None:
    """A query that groups the rows of a stream and a table that a condition joins: two queries in one."""
    from gem_bundle.expressions.query import exp

    tables = [_table(tree, known), *(_named(join.this, known) for join in tree.args["joins"])]
    sides = [facts for _, facts in filter(None, tables)]
    if len(sides) != 2 or all(facts.streaming is not False for facts in sides):
        return None
    if any(value for name, value in tree.args.items() if name not in {*_PLAIN, "joins", "with_"}):
        return None
    if _asks_elsewhere(tree) or any(item_of(node).star for node in tree.expressions):
        return None
    rows = exp.Select(expressions=[exp.Star()])
    for part in ("from_", "joins"):
        rows.set(part, tree.copy().args[part])
    columns = [column for facts in sides for column in facts.columns or ()]
    streaming = any(facts.streaming is not False for facts in sides)
    facts = Facts(streaming=streaming, columns=tuple(columns))
    keys = column_keys(facts.columns)
    first = None if keys is None else _joined_or_none(rows, known, keys)
    second = _plain(tree, 0, facts, names, made)
    if first is None or second is None:
        return None
    # What the join asks for is never null behind it, and what may lack a partner may be.
    unknown = {key: replace(one, nulls=frozenset({UNCERTAIN})) for key, one in first.columns.items()}
    return behind(replace(first, columns=unknown), second)


# Which sides of a join have nulls where a row of the other one has no partner; of other joins it may be both.
_LACKING = {
    "inner": frozenset[int](),
    "semi": frozenset[int](),
    "left": frozenset({1}),
    "right": frozenset({0}),
}
_JOIN = frozenset({"this", "on", "method", "side", "kind"})
_JOINED = frozenset({"expressions", "from_", "where", "joins", "with_"})


def _placed(
    uses: frozenset[str] | None, sides: Sequence[tuple[int, Sequence[Column]]]
) -> frozenset[str] | None:
    """Columns of the two sides as those of the node's inputs, which both may be one of."""
    if uses is None:
        return None
    parted = [use.partition(":") for use in uses]
    return frozenset(f"{sides[int(at)][0]}:{key}" if colon else at for at, colon, key in parted)


def _placed_sides(pair: Equality, sides: list[tuple[int, Any]]) -> Equality:
    one, other = (_placed(side, sides) or frozenset() for side in pair.sides)
    return pair._replace(sides=(one, other))


def _table(tree: Any, tables: Tables) -> tuple[int, Facts] | None:
    clause = tree.args.get("from_")
    return _named(clause.this if clause is not None else None, tables)


def _named(table: Any, tables: Tables) -> tuple[int, Facts] | None:
    """Which input a table is, with what is known of it, called as the query calls it."""
    from gem_bundle.expressions.query import exp

    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("sample"):
        return None
    found = tables.get(table.name.lower())
    return None if found is None else (found[0], found[1].called(table.alias or table.name))


def _plain(tree: Any, position: int, facts: Facts, names: list[str], made: Facts) -> Lineage | None:
    columns = facts.columns
    if column_keys(columns) is None or columns is None:
        return None
    if len({column.name.lower() for column in columns}) < len(columns) and "joins" not in tree.args:
        return None
    bodies = _bodies(tree, columns)
    if len(bodies) != len(names):
        return None
    texts = dict(zip(names, (body for _, body in bodies), strict=True))
    found: dict[str, Made] = {}
    for name, body in texts.items():
        found[name] = made_of(body, columns, position=position, earlier=found)
    group, distinct, having = (tree.args.get(name) for name in ("group", "distinct", "having"))
    keys = [] if group is None else _keys(group, bodies, columns)
    where = tree.args.get("where")
    conditions = [sql_of(where.this)] if where is not None else []
    # A row is in no window where what that is over is null.
    over = {text: None for body in (*texts.values(), *keys) for text in windows_over(body)}
    asked = " and ".join(f"({text})" for text in (*conditions, *(f"({text}) is not null" for text in over)))
    asks = _placed(asked_by(asked, [columns]) if asked else frozenset(), [(position, columns)])
    aggregates = [name for name, body in texts.items() if analyse(body, columns).aggregates]
    if group is None and not aggregates:
        if having is not None or (distinct is not None and (distinct.args.get("on") or not facts.streaming)):
            return None
        rows = made_of(asked, columns, position=position, earlier=found) if asked else Made()
        several = [
            found[name]
            for name, body in texts.items()
            if analyse(body, columns).generator or has_overlapping_windows(body)
        ]
        for generator in several:
            rows = both(rows, generator)
        types = tuple(column.type for column in made.columns or ())
        kept = Kept(tuple(found.values()), types, taken=rows) if distinct is not None else None
        nulls = nulls_left_out(asked, [columns]) if asked and not several and kept is None else ()
        only = frozenset(_placed(each, [(position, columns)]) or frozenset() for each in nulls)
        equals = tuple(_placed_sides(pair, [(position, columns)]) for pair in equalities(asked, columns))
        lineage = Lineage(found, rows, kept, asks=asks, only_nulls=only, equals=equals)
        return _with_order(lineage, tree, columns, position, texts)
    if distinct is not None:
        return None
    rows = made_of(conditions[0], columns, position=position) if conditions else Made()
    kept = _groups(group, keys, columns, position)
    values = {name: buffers_of(texts[name], columns, keys) for name in aggregates}
    rule = Made(" ".join([rows.rule, *(key.rule for key in kept.keys)]), uses_of([rows, *kept.keys]))
    lineage = Lineage(found, rule, replace(kept, values=values, taken=rows), asks=asks)
    if having is not None:
        lineage = _with_having(lineage, having.this, columns, position, texts)
    lineage = _with_order(lineage, tree, columns, position, texts)
    return lineage if facts.streaming else replace(lineage, kept=None)


def _keys(group: Any, bodies: list[tuple[str, str]], columns: Sequence[Column]) -> list[str]:
    """What is grouped by; `group by all` means the items that don't aggregate."""
    if group.args.get("all"):
        return [body for _, body in bodies if not _aggregates(body, columns)]
    return [_key(sql_of(node), bodies, columns) for node in plain_keys(group)]


def _bodies(tree: Any, columns: Sequence[Column]) -> list[tuple[str, str]]:
    """The items of a `select`, each with its name, or what stands in its place."""
    found: list[tuple[str, str]] = []
    for item in map(item_of, tree.expressions):
        if item.star:
            found += [(c.name, f"`{c.name}`") for c in columns if c.name.lower() not in item.left_out]
        else:
            found.append((item.name or item.text, item.text))
    return found


def _groups(group: Any, keys: list[str], columns: Sequence[Column], position: int) -> Kept:
    """What an aggregation is kept by."""
    by = tuple(made_of(key, columns, position=position) for key in keys)
    types = tuple(analyse(key, columns).column.type for key in keys)
    if not several_times_over(group):
        return Kept(*grouped_by(zip(keys, by, types, strict=True)))
    # What isn't grouped by is null then, and which it is is a key of its own.
    by = tuple(replace(key, nulls=frozenset({MAYBE_NULL})) for key in by)
    return Kept((*by, Made(f"grouping id {sql_of(group)}", nulls=frozenset())), (*types, "bigint"))


def _with_having(
    lineage: Lineage, condition: Any, columns: Sequence[Column], position: int, texts: Mapping[str, str]
) -> Lineage:
    """An aggregation of which not all groups come out."""
    kept, text = lineage.kept or Kept(), sql_of(condition)
    tested = tested_by(text, texts)
    results = set(kept.values)
    reads = {name for name in results if tested is None or name in tested} | {_HAVING}
    decides = made_of(text, columns, position=position, earlier=lineage.columns)
    # What is asked of groups and not of results Spark asks for before.
    outside = {c.name.lower() for c in columns_in(condition) if not _is_aggregated(c)} - results
    kept = replace(
        kept,
        values={**kept.values, _HAVING: buffers_of(text, columns)},
        reads=frozenset(reads),
        taken=both(kept.taken, decides) if outside else kept.taken,
    )
    rule = Made(f"{lineage.rows.rule} {text}", lineage.rows.uses)
    return replace(lineage, rows=rule, kept=kept, reads=decides.uses)


def _with_order(
    lineage: Lineage, tree: Any, columns: Sequence[Column], position: int, texts: Mapping[str, str]
) -> Lineage:
    """Rows in an order: as many, and of the same values. What they are sorted by is kept for it."""
    order = tree.args.get("order")
    if order is None:
        return lineage
    named = [sql_of(key) for key in order_keys(tree)]
    # `order by all` means all items, a number the one at that place.
    others = len(order.expressions) - len(named)
    by = [made_of(key, columns, position=position, earlier=lineage.columns) for key in named]
    lineage = replace(lineage, reads=uses_of([Made(uses=lineage.reads), *by]))
    kept = lineage.kept
    if kept is None or not kept.values:
        return lineage
    tested = [tested_by(key, texts) for key in named]
    needed = {name for name in texts if others or any(found is None or name in found for found in tested)}
    buffers: dict[str, tuple[str, ...]] | None = {}
    for key in named:
        found = None if buffers is None else buffers_of(key, columns)
        buffers = None if buffers is None or found is None else {**buffers, **found}
    reads = kept.reads | (needed & set(kept.values)) | {_ORDER}
    return replace(lineage, kept=replace(kept, values={**kept.values, _ORDER: buffers}, reads=reads))


def _is_aggregated(column: Any) -> bool:
    """Whether a column stands in an aggregate function."""
    from gem_bundle.expressions.query import exp

    node = column.parent
    while node is not None and not (isinstance(node, exp.Anonymous) and _aggregates(f"{node.name}(1)", ())):
        node = node.parent
    return node is not None


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
