"""What a query over one table makes of what: conditions, groups, columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import Facts, Kept, Lineage, Made
from gem_bundle.expressions import (
    analyse,
    asked_by,
    buffers_of,
    equalities,
    grouped_by,
    has_overlapping_windows,
    made_of,
    may_aggregate,
    nulls_left_out,
    reference,
    terms_of,
    tested_by,
    windows_over,
)
from gem_bundle.lineage import MAYBE_NULL, column_keys, uses_of
from gem_sql.behind import order_keys
from gem_sql.composing import both
from gem_sql.grouping import is_session, is_window, plain_keys, several_times_over
from gem_sql.tree import columns_in, conjuncts, item_of, sql_of, subqueries_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle import Column
    from gem_bundle.lineage import Equality

    Tables = Mapping[str, tuple[int, Facts]]

PLAIN = frozenset({"expressions", "from_", "where", "group", "having", "distinct", "order"})
"""The parts of a query that are followed."""

_HAVING = "having"
_ORDER = "order by"


def table_of(tree: Any, tables: Tables) -> tuple[int, Facts] | None:
    """The first table that a query reads, as `table_named` has it."""
    clause = tree.args.get("from_")
    return table_named(clause.this if clause is not None else None, tables)


def table_named(table: Any, tables: Tables) -> tuple[int, Facts] | None:
    """Which input a table is, with what is known of it, called as the query calls it.

    Args:
        table: What stands in the query.
        tables: The inputs by the names of their tables, each with its position.
    """
    from gem_bundle.expressions.query import exp

    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("sample"):
        return None
    found = tables.get(table.name.lower())
    return None if found is None else (found[0], found[1].called(table.alias or table.name))


def is_plain(tree: Any) -> bool:
    """Whether a query has only such parts as are followed, but for joins."""
    known = not any(value for name, value in tree.args.items() if name not in {*PLAIN, "with_"})
    return known and not asks_elsewhere(tree)


def asks_elsewhere(tree: Any) -> bool:
    """Whether an expression asks another query for something, which may be about all that its tables have."""
    return next(subqueries_of(tree, tree.args.keys() - {"from_", "with_"}), None) is not None


def placed(
    uses: frozenset[str] | None, sides: Sequence[tuple[int, Sequence[Column]]]
) -> frozenset[str] | None:
    """Columns of a query's tables as those of the node's inputs, of which several tables may be one.

    Args:
        uses: The columns, each with the number of its table; None where they may be any.
        sides: Which input each table is, with its columns.
    """
    if uses is None:
        return None
    parted = [use.partition(":") for use in uses]
    return frozenset(f"{sides[int(at)][0]}:{key}" if colon else at for at, colon, key in parted)


def placed_sides(pair: Equality, sides: Sequence[tuple[int, Sequence[Column]]]) -> Equality:
    """What is to be equal, told by the inputs that a query's tables are.

    Args:
        pair: The same, told by the numbers of the tables.
        sides: Which input each table is, with its columns.
    """
    one, other = (placed(side, sides) or frozenset() for side in pair.sides)
    return pair._replace(sides=(one, other))


def _reads_all(tree: Any) -> bool:
    """Whether a query has a star that stands for all columns, as that of a count doesn't."""
    from gem_bundle.expressions.query import exp

    def is_counted(star: Any) -> bool:
        return isinstance(star.parent, exp.Anonymous) and star.parent.name.lower() == "count"

    return any(not is_counted(star) for star in tree.find_all(exp.Star))


def _without_namesakes(facts: Facts) -> Facts:
    """Rows without the columns that share their name: nobody can ask for one of those."""
    times = Counter(column.name.lower() for column in facts.columns or ())
    if facts.columns is None or len(times) == len(facts.columns):
        return facts
    return replace(facts, columns=tuple(c for c in facts.columns if times[c.name.lower()] == 1))


def of_table(tree: Any, position: int, facts: Facts, names: list[str], made: Facts) -> Lineage | None:
    """What a query over one table makes of what; None where that can't be told.

    Args:
        tree: The query.
        position: Which input the table is.
        facts: What is known of its rows.
        names: The columns of the query's rows, by their keys.
        made: What is known of those rows.
    """
    if "joins" not in tree.args:
        facts = facts if _reads_all(tree) else _without_namesakes(facts)
    columns = facts.columns
    if column_keys(columns) is None or columns is None:
        return None
    if len({column.name.lower() for column in columns}) < len(columns) and "joins" not in tree.args:
        return None
    bodies = _bodies(tree, columns)
    if len(bodies) != len(names):
        return None
    texts = dict(zip(names, (body for _, body in bodies), strict=True))
    group, distinct, having = (tree.args.get(name) for name in ("group", "distinct", "having"))
    keys = [] if group is None else _keys(group, bodies, columns)
    windows = _windows(keys, columns, position)
    found: dict[str, Made] = {}
    for name, body in texts.items():
        window = windows.get(body.strip(" `").lower())
        found[name] = window or made_of(body, columns, position=position, earlier=found | windows)
    where = tree.args.get("where")
    conditions = [sql_of(where.this)] if where is not None else []
    # A row is in no window where what that is over is null.
    over = {text: None for body in (*texts.values(), *keys) for text in windows_over(body)}
    asked = " and ".join(f"({text})" for text in (*conditions, *(f"({text}) is not null" for text in over)))
    asks = placed(asked_by(asked, [columns]) if asked else frozenset(), [(position, columns)])
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
        only = frozenset(placed(each, [(position, columns)]) or frozenset() for each in nulls)
        equals = _equal(asked, columns, position)
        told = position == 0 and kept is None and not several and not over
        terms = terms_of(conditions[0], columns) if told and conditions else ()
        lineage = Lineage(found, rows, kept, asks=asks, only_nulls=only, equals=equals, terms=terms)
        return _with_order(lineage, tree, columns, position, texts)
    if distinct is not None:
        return None
    rows = made_of(conditions[0], columns, position=position) if conditions else Made()
    kept = _groups(tree, keys, columns, position, texts)
    # Of several groupings an aggregate of a key has more than its one value: it is asked of all rows.
    alike = () if several_times_over(group) else keys
    unknown = [name for name, body in texts.items() if group is not None and may_aggregate(body)]
    values = {
        name: buffers_of(texts[name], columns, alike) for name in dict.fromkeys([*aggregates, *unknown])
    }
    rule = Made(" ".join([rows.rule, *(key.rule for key in kept.keys)]), uses_of([rows, *kept.keys]))
    # Of `having`, Spark asks before groups what is about what they are formed by.
    parts = map(sql_of, conjuncts(having.this)) if having is not None and group is not None else ()
    of_keys = [text for text in parts if not _aggregates(text, columns)]
    equals = _equal(" and ".join(f"({text})" for text in [*conditions, *of_keys]), columns, position)
    by = terms_of(conditions[0], columns) if conditions and position == 0 else ()
    kept = replace(kept, values=values, taken=rows, taken_by=by)
    lineage = Lineage(found, rule, kept, asks=asks, equals=equals)
    if having is not None:
        lineage = _with_having(lineage, having.this, columns, position, texts)
    lineage = _with_order(lineage, tree, columns, position, texts)
    return lineage if facts.streaming else replace(lineage, kept=None)


def _equal(condition: str, columns: Sequence[Column], position: int) -> tuple[Equality, ...]:
    return tuple(placed_sides(pair, [(position, columns)]) for pair in equalities(condition, columns))


def _keys(group: Any, bodies: list[tuple[str, str]], columns: Sequence[Column]) -> list[str]:
    """What is grouped by; `group by all` means the items that don't aggregate."""
    if group.args.get("all"):
        return [body for _, body in bodies if not _aggregates(body, columns)]
    return [_key(sql_of(node), bodies, columns) for node in plain_keys(group)]


def _windows(keys: Sequence[str], columns: Sequence[Column], position: int) -> dict[str, Made]:
    """What a query calls the windows that it groups by, where no column has that name."""
    called = {"session_window" if is_session(key) else "window": key for key in keys if is_window(key)}
    taken = {column.name.lower() for column in columns}
    return {n: made_of(key, columns, position=position) for n, key in called.items() if n not in taken}


def _bodies(tree: Any, columns: Sequence[Column]) -> list[tuple[str, str]]:
    """The items of a `select`, each with its name, or what stands in its place."""
    found: list[tuple[str, str]] = []
    for item in map(item_of, tree.expressions):
        if item.star:
            owned = [
                c for c in columns if not (item.owner and c.qualifier) or c.qualifier.lower() == item.owner
            ]
            found += [(c.name, f"`{c.name}`") for c in owned if c.name.lower() not in item.left_out]
        else:
            found.append((item.name or item.text, item.text))
    return found


def _groups(
    tree: Any, keys: list[str], columns: Sequence[Column], position: int, texts: Mapping[str, str]
) -> Kept:
    """What an aggregation is kept by."""
    group, having = (tree.args.get(name) for name in ("group", "having"))
    computed = [body for body in texts.values() if body not in keys]
    # Of `having` nothing but its aggregates is computed of groups.
    if having is not None and "count_if" in (asking := sql_of(having.this).lower()):
        computed.append(asking)
    by = tuple(made_of(key, columns, position=position) for key in keys)
    types = tuple(analyse(key, columns).column.type for key in keys)
    if not several_times_over(group):
        return Kept(*grouped_by(zip(keys, by, types, strict=True), computed))
    # What isn't grouped by is null then, and which it is is a key of its own.
    by = tuple(replace(key, nulls=frozenset({MAYBE_NULL})) for key in by)
    return Kept((*by, Made(f"grouping id {sql_of(group)}", nulls=frozenset())), (*types, "bigint"))


def _with_having(
    lineage: Lineage, condition: Any, columns: Sequence[Column], position: int, texts: Mapping[str, str]
) -> Lineage:
    """An aggregation of which not all groups come out."""
    kept, text = lineage.kept or Kept(), sql_of(condition)
    tested = tested_by(text, texts, ())
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
    tested = [tested_by(key, texts, ()) for key in named]
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
