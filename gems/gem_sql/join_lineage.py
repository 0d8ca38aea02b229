"""What a query over two tables makes of what, which a condition joins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import Column, Facts, Kept, Lineage, Made
from gem_bundle.expressions import (
    asked_by,
    asked_of_pairs,
    equal_keys,
    equal_parts,
    equalities_of_inputs,
    kept_by,
    made_of_inputs,
    terms_of_semi_join,
)
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN, column_keys, uses_of
from gem_bundle.operators import LACKING
from gem_sql.composing import behind
from gem_sql.joining import JOINS, with_condition, without_using
from gem_sql.table_lineage import PLAIN, asks_elsewhere, of_table, placed, placed_sides, table_named, table_of
from gem_sql.tree import item_of, sql_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.lineage import Equality
    from gem_sql.table_lineage import Tables
    from gem_sql.tree import Item

    _Sides = Sequence[tuple[int, Sequence[Column]]]

_JOIN = frozenset({"this", "on", "method", "side", "kind"})
_JOINED = frozenset({"expressions", "from_", "where", "joins", "with_"})


def of_joined(tree: Any, known: Tables, names: list[str]) -> Lineage | None:
    """A query over two tables that a condition joins, without groups; None of others.

    Args:
        tree: The query.
        known: The inputs by the names of their tables, each with its position.
        names: The columns of the query's rows, by their keys.
    """
    if any(value for name, value in tree.args.items() if name not in _JOINED) or len(tree.args["joins"]) != 1:
        return None
    tree = with_condition(tree)
    (join,) = tree.args["joins"]
    tables = [table_of(tree, known), table_named(join.this, known)]
    if join.args.get("using"):
        known_sides = [found[1] for found in tables if found is not None]
        tree = without_using(tree, *known_sides) if len(known_sides) > 1 else None
        if tree is None:
            return None
        (join,) = tree.args["joins"]
    if any(value for name, value in join.args.items() if name not in _JOIN) or join.args.get("on") is None:
        return None
    if asks_elsewhere(tree):
        return None
    sides = [(place, facts.columns) for place, facts in filter(None, tables) if facts.columns is not None]
    if len(sides) < 2 or any(column_keys(columns) is None for _, columns in sides):
        return None
    columns_of = [columns for _, columns in sides]
    known_how = None if join.args.get("method") else JOINS.get((join.side, join.kind))
    semi = known_how in {"left_semi", "left_anti"}
    if semi and tree.args.get("where") is not None:
        return None  # two conditions, each of which is asked in another way

    def of_inputs(found: Made) -> Made:
        return Made(found.rule, placed(found.uses, sides), placed(found.nulls, sides))

    on = sql_of(join.args["on"])
    where = tree.args.get("where")
    conditions = [on, sql_of(where.this) if where is not None else "true"]
    by_table = [made_of_inputs(text, columns_of) for text in conditions]
    decides = [of_inputs(found) for found in by_table]
    how = " ".join(str(join.args.get(name) or "") for name in ("method", "side", "kind")).lower()
    rows = Made(" ".join([how, *(found.rule for found in decides[: 1 if semi else 2])]), uses_of(decides))
    lack = frozenset({0, 1}) if known_how is None else LACKING.get(known_how, frozenset())
    stars = [facts for _, facts in filter(None, tables)][: 1 if semi else 2]
    columns, of_tables = _columns(tree, sides, stars, lack)
    if len(columns) != len(names):
        return None
    by_key = dict(zip(names, columns, strict=True))
    streams = all(facts.streaming is not False for _, facts in filter(None, tables))
    inner = how.strip() in {"", "inner", "cross"}
    # What `where` wants to be equal becomes a key as well.
    pairs = f"({on}) and ({sql_of(where.this)})" if where is not None and inner else on
    parts = tuple(replace(p, uses=None, nulls=placed(p.nulls, sides)) for p in equal_parts(pairs, columns_of))
    left_to_right = tuple(place for place, _ in sides)
    left, right = (facts for _, facts in filter(None, tables))
    # Which pairs there are is nothing that is kept.
    called = (tree.args["from_"].this.alias_or_name, join.this.alias_or_name)
    by = kept_by(on, left, right, called) if inner else rows
    keys = equal_keys(pairs, columns_of)
    # What is asked of one table alone is asked before.
    asked = known_how if known_how is not None and (inner or where is None) else None
    of_pairs = None if asked is None else asked_of_pairs(pairs, columns_of, "inner" if inner else asked)
    with_itself = len(set(left_to_right)) == 1
    kept = Kept(
        (replace(by, uses=placed(by.uses, sides)),),
        keys,
        rows=True,
        taken=decides[1],
        parts=parts,
        sides=left_to_right,
        pairs=placed(of_pairs, sides),
        tables=dict(zip(names, of_tables, strict=True)) if with_itself else {},
        tables_asked=_of_tables(of_pairs),
        tables_read=_of_tables(uses_of(by_table)) if with_itself else (),
    )
    # Behind an outer join nothing but `where` asks anything of the rows that stay.
    wanted = pairs if inner or known_how == "left_semi" else sql_of(where.this) if where is not None else ""
    equals = _equal(wanted, columns_of, sides) if known_how != "left_anti" else ()
    asks = placed(asked_by(on, columns_of), sides)
    alone = terms_of_semi_join(on, columns_of) if known_how == "left_semi" else ()
    terms = tuple(term._replace(made=of_inputs(term.made), asks=placed(term.asks, sides)) for term in alone)
    return Lineage(by_key, rows, kept if streams else None, asks=asks, equals=equals, terms=terms)


def _of_tables(uses: frozenset[str] | None) -> tuple[frozenset[str], ...]:
    """Columns by the numbers of their tables; nothing where they may be any."""
    parted = [use.partition(":") for use in uses or ()]
    each = (frozenset(key for table, _, key in parted if table == str(at)) for at in (0, 1))
    return () if uses is None else tuple(each)


def _equal(condition: str, columns_of: Sequence[Sequence[Column]], sides: _Sides) -> tuple[Equality, ...]:
    """What a condition wants to be equal, told by the inputs; nothing where both tables are one input."""
    if len({place for place, _ in sides}) < len(sides):
        return ()
    return tuple(placed_sides(pair, sides) for pair in equalities_of_inputs(condition, columns_of))


def _columns(
    tree: Any, sides: _Sides, stars: Sequence[Facts], lack: frozenset[int]
) -> tuple[list[Made], list[frozenset[int]]]:
    """How the columns of a query over two tables are made, and of which of both each is.

    Args:
        tree: The query.
        sides: The tables, each as the position of its input and its columns.
        stars: Those that a star stands for.
        lack: The numbers of those of which a row may lack its partner.
    """
    columns, of_tables = [], []
    for node in tree.expressions:
        item = item_of(node)
        if not item.star:
            found = made_of_inputs(item.text, [columns for _, columns in sides])
            columns.append(Made(found.rule, placed(found.uses, sides)))
            of_tables.append(_tables_in(found))
            continue
        for number, key in _in_star(item, stars):
            use = f"{sides[number][0]}:{key}"
            columns.append(Made("=", frozenset({use}), frozenset({MAYBE_NULL if number in lack else use})))
            of_tables.append(frozenset({number}))
    return columns, of_tables


def _in_star(item: Item, tables: Sequence[Facts]) -> Iterator[tuple[int, str]]:
    """The columns that a star stands for, each behind the number of its table."""
    for number, facts in enumerate(tables):
        if item.owner is None or item.owner in (facts.qualifiers or ()):
            keys = column_keys(facts.columns) or ()
            yield from ((number, key) for key in keys if key not in item.left_out)


def _tables_in(made: Made) -> frozenset[int]:
    """Which of two tables something is made of; both where that isn't known."""
    if made.uses is None:
        return frozenset({0, 1})
    return frozenset(int(use.partition(":")[0]) for use in made.uses)


def of_joined_groups(tree: Any, known: Tables, names: list[str], made: Facts) -> Lineage | None:
    """A query that groups the rows of a stream and a table that a condition joins: two queries in one.

    Args:
        tree: The query.
        known: The inputs by the names of their tables, each with its position.
        names: The columns of the query's rows, by their keys.
        made: What is known of those rows.
    """
    from gem_bundle.expressions.query import exp

    tables = [table_of(tree, known), *(table_named(join.this, known) for join in tree.args["joins"])]
    sides = [facts for _, facts in filter(None, tables)]
    if len(sides) != 2 or all(facts.streaming is not False for facts in sides):
        return None
    if any(value for name, value in tree.args.items() if name not in {*PLAIN, "joins", "with_"}):
        return None
    if asks_elsewhere(tree) or any(item_of(node).star for node in tree.expressions):
        return None
    rows = exp.Select(expressions=[exp.Star()])
    for part in ("from_", "joins"):
        rows.set(part, tree.copy().args[part])
    columns = [column for facts in sides for column in facts.columns or ()]
    streaming = any(facts.streaming is not False for facts in sides)
    facts = Facts(streaming=streaming, columns=tuple(columns))
    keys = column_keys(facts.columns)
    first = None if keys is None else of_joined(rows, known, keys)
    second = of_table(tree, 0, facts, names, made)
    if first is None or second is None:
        return None
    # What the join asks for is never null behind it, and what may lack a partner may be.
    unknown = {key: replace(one, nulls=frozenset({UNCERTAIN})) for key, one in first.columns.items()}
    return behind(replace(first, columns=unknown), second)
