"""A query of several joins as queries of one each, one behind another: as Spark's plan has them."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.lineage import column_keys
from gem_sql.joining import JOINS
from gem_sql.reading import facts_of
from gem_sql.scopes import Scope, Table, how_of, shared_by
from gem_sql.tree import UnknownQuery, conjuncts, item_of, only, subqueries_of, without_strategies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle import Facts
    from gem_bundle.operators import JoinType

_BEHIND = ("group", "having", "distinct", "order")
_SELECT = frozenset({"with_", "expressions", "from_", "joins", "where", *_BEHIND})
_JOIN = frozenset({"this", "on", "using", "side", "kind"})
_INNER = frozenset({"inner", "cross"})
_SEMI = frozenset({"left_semi", "left_anti"})


class QueryStep(NamedTuple):
    """One of the queries.

    Args:
        query: The query.
        tables: What its tables are, by their names: the name of an input, or the number of an earlier step.
    """

    query: str
    tables: Mapping[str, str | int]


def steps_of(query: str, inputs: Mapping[str, Facts], names: Sequence[str]) -> list[QueryStep] | None:
    """The queries that a query stands for, each over at most two tables.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names.
        names: The names of its columns.

    Returns:
        Them, each behind those that it reads; None where it is one itself, or can't be taken apart.
    """
    from gem_bundle.expressions.query import query_tree

    tree = query_tree(query)
    if tree is None:
        return None
    steps = _Steps({name.lower(): facts for name, facts in inputs.items()})
    try:
        steps.add(without_strategies(tree).copy(), names)
    except UnknownQuery:
        return None
    return steps.found if len(steps.found) > 1 else None


class _Steps:
    """The steps of one query.

    Args:
        inputs: The facts of the tables that it may name, by their names in lower case.
    """

    def __init__(self, inputs: Mapping[str, Facts]) -> None:
        self.found: list[QueryStep] = []
        self._facts: dict[str, Facts] = dict(inputs)
        self._place: dict[str, str | int] = {name: name for name in inputs}

    def add(self, tree: Any, names: Sequence[str] | None = None) -> None:
        """Take a query apart, and add what it stands for.

        Args:
            tree: Its tree, which is changed.
            names: The names of its columns, where they are known.

        Raises:
            UnknownQuery: When it can't be taken apart.
        """
        from gem_bundle.expressions.query import exp

        if not isinstance(tree, exp.Select):
            raise UnknownQuery
        only(tree, _SELECT)
        if next(subqueries_of(tree, tree.args.keys() - {"from_", "with_", "joins"}), None) is not None:
            raise UnknownQuery
        before = dict(self._facts), dict(self._place)
        clause = tree.args.get("with_")
        for cte in clause.expressions if clause is not None else ():
            if (clause is not None and clause.args.get("recursive")) or cte.args["alias"].args.get("columns"):
                raise UnknownQuery
            self._add_table(cte.alias.lower(), cte.this)
        tree.set("with_", None)
        tables = [self._table(tree.args["from_"])]
        joins = tree.args.get("joins") or []
        for join in joins:
            only(join, _JOIN)
            if next(subqueries_of(join, ["on"]), None) is not None:
                raise UnknownQuery
            tables.append(self._table(join))
        if len({table.name for table in tables}) < len(tables):
            raise UnknownQuery
        names = names or column_keys(facts_of(tree, self._facts).columns)
        if names is None:
            raise UnknownQuery
        if len(joins) > 1 or (joins and _keeps_more(tree)):
            tree = self._folded(tree, tables, names)
        self._append(tree)
        self._facts, self._place = before

    def _table(self, clause: Any) -> Table:
        """The table that a `from` or a join names, or the step that it is."""
        from gem_bundle.expressions.query import exp

        source = clause.this
        if isinstance(source, exp.Subquery):
            only(source, frozenset({"this", "alias"}))
            alias = source.args.get("alias")
            if alias is not None and alias.args.get("columns"):
                raise UnknownQuery
            name = source.alias.lower() or self._free_name()
            self._add_table(name, source.this)
            clause.set("this", exp.to_table(name))
            source = clause.this
        if not isinstance(source, exp.Table) or source.name.lower() not in self._facts or source.db:
            raise UnknownQuery
        only(source, frozenset({"this", "alias"}))
        facts = self._facts[source.name.lower()]
        keys = column_keys(facts.columns)
        if keys is None or len({column.name.lower() for column in facts.columns or ()}) < len(keys):
            raise UnknownQuery
        return Table(source.alias_or_name.lower(), facts)

    def _free_name(self) -> str:
        """A name for a query that has none, which nobody else has."""
        names = (f"subquery_{number}" for number in count(len(self.found)))
        return next(name for name in names if name not in self._facts)

    def _add_table(self, name: str, query: Any) -> None:
        """A query that a query names: a table to it from then on."""
        from gem_bundle.expressions.query import exp

        if isinstance(query, exp.Subquery):
            raise UnknownQuery
        facts = facts_of(query, self._facts)
        self.add(query.copy())
        self._facts[name], self._place[name] = facts, len(self.found) - 1

    def _append(self, tree: Any) -> None:
        sources = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
        tables = {name: self._place[name] for name in (source.name.lower() for source in sources)}
        self.found.append(QueryStep(_text(tree), tables))

    def _folded(self, tree: Any, tables: list[Table], names: Sequence[str]) -> Any:
        """A query over the rows of a step that has its joins, or all but the last one."""
        from gem_bundle.expressions.query import exp

        joins = list(tree.args["joins"])
        hows = [how_of(join) for join in joins]
        scope = Scope(tables, shared=shared_by(tree))
        conditions = [
            scope.condition(join, tables[: number + 1], table)
            for number, (join, table) in enumerate(zip(joins, tables[1:], strict=True))
        ]
        where = tree.args.get("where")
        asked = where.this if where is not None else None
        sources = [tree.args["from_"].this, *(join.this for join in joins)]
        items = list(_items(tree, tables, hows, names))
        if len(joins) > 1 and _INNER.issuperset(hows):
            parts = [part for whole in (*conditions, asked) if whole is not None for part in conjuncts(whole)]
            order, conditions = _in_order(scope, len(tables), parts)
            tables, sources = [tables[n] for n in order], [sources[n] for n in order]
            asked, hows = None, ["inner"] * len(joins)
        called = _names_behind(tables)
        # Of the rows that have a partner a step of its own asks what else there is to ask.
        every = _keeps_more(tree) or (asked is not None and hows[-1] in _SEMI)
        last = len(joins) - (0 if every else 1)
        known: list[Table] = []
        step, left = "", sources[0]
        for number in range(last):
            before = known or [tables[0]]
            both = [*before, tables[number + 1]]
            of = Scope(both, {t.name: step for t in known}, shared_by(tree))
            shown = before if hows[number] in _SEMI else both
            chosen = exp.Select(
                expressions=[
                    exp.alias_(of.column(t, c.name), called[t.name][c.name.lower()], quoted=True)
                    for t in shown
                    for c in t.facts.columns or ()
                ]
            )
            chosen.set("from_", exp.From(this=left))
            chosen.set("joins", [_join(hows[number], sources[number + 1], of.moved(conditions[number]))])
            facts = facts_of(chosen, self._facts)
            self._append(chosen)
            step = self._called(len(self.found))
            self._facts[step], self._place[step] = facts, len(self.found) - 1
            known = [Table(t.name, t.facts, called[t.name]) for t in shown]
            left = exp.to_table(step)
        rest = [*known, *tables[last + 1 :]]
        of = Scope(rest, {t.name: step for t in known}, shared_by(tree))
        made = exp.Select(expressions=[exp.alias_(of.moved(item), name, quoted=True) for item, name in items])
        made.set("from_", exp.From(this=left))
        if last < len(joins):
            made.set("joins", [_join(hows[last], sources[last + 1], of.moved(conditions[last]))])
        if asked is not None:
            made.set("where", exp.Where(this=of.moved(asked)))
        for part in _BEHIND:
            if (clause := tree.args.get(part)) is not None:
                made.set(part, of.moved(clause))
        return made

    def _called(self, number: int) -> str:
        name = f"step_{number}"
        while name in self._facts:
            name += "_"
        return name


def _keeps_more(tree: Any) -> bool:
    """Whether a query does more with what it joins than to choose, to compute and to ask."""
    from gem_bundle.expressions import analyse

    if any(tree.args.get(part) for part in ("group", "having", "distinct")):
        return True
    return any(analyse(item_of(node).text, None).aggregates for node in tree.expressions)


def _join(how: JoinType, source: Any, condition: Any) -> Any:
    from gem_bundle.expressions.query import exp

    made = exp.Join(this=source, on=exp.true() if condition is None else condition)
    if how not in _INNER:
        side, kind = next(words for words, known in JOINS.items() if known == how)
        made.set("side", side or None)
        made.set("kind", kind or None)
    return made


def _items(
    tree: Any, tables: Sequence[Table], hows: Sequence[JoinType], names: Sequence[str]
) -> Iterator[tuple[Any, str]]:
    """The items of a `select`, each with its name, and columns for stars."""
    from gem_bundle.expressions.query import exp

    scope = Scope(tables)
    shown = [tables[0], *(t for t, how in zip(tables[1:], hows, strict=True) if how not in _SEMI)]
    bodies: list[Any] = []
    for node in tree.expressions:
        item = item_of(node)
        if item.star and shared_by(tree):
            raise UnknownQuery
        if not item.star:
            bodies.append(node.this if isinstance(node, exp.Alias) else node)
            continue
        for table in shown:
            if item.owner in {None, table.name}:
                kept = (c for c in table.facts.columns or () if c.name.lower() not in item.left_out)
                bodies += [scope.column(table, column.name) for column in kept]
    if len(bodies) != len(names):
        raise UnknownQuery
    yield from zip(bodies, names, strict=True)


def _names_behind(tables: Sequence[Table]) -> dict[str, dict[str, str]]:
    """What the columns of tables are called behind a join: as they are, where that tells them apart."""
    times = Counter(column.name.lower() for table in tables for column in table.facts.columns or ())
    found: dict[str, dict[str, str]] = {}
    for table in tables:
        names = [column.name for column in table.facts.columns or ()]
        found[table.name] = {
            name.lower(): name if times[name.lower()] == 1 else f"{table.name}_{name}" for name in names
        }
    every = [name.lower() for names in found.values() for name in names.values()]
    if len(set(every)) < len(every):
        raise UnknownQuery
    return found


def _in_order(scope: Scope, count: int, conditions: list[Any]) -> tuple[list[int], list[Any]]:
    """The order in which Spark joins tables, all of whose pairs count, and by which conditions.

    The next one is the first that a condition joins with those before: Spark's rule `ReorderJoin`.
    """
    from gem_bundle.expressions.query import exp

    names = list(scope.tables)
    about = [(scope.tables_in(condition), condition) for condition in conditions]
    order, rest = [0], list(range(1, count))
    joined: list[Any] = []
    while rest:
        here = {names[n] for n in order}
        chosen = next((number for number in rest if _joins(about, here, names[number])), rest[0])
        rest.remove(chosen)
        order.append(chosen)
        here = {names[n] for n in order}
        own = [condition for tables, condition in about if tables <= here]
        about = [(tables, condition) for tables, condition in about if not tables <= here]
        joined.append(exp.and_(*own) if own else None)
    return order, joined


def _joins(conditions: Iterable[tuple[set[str], Any]], here: set[str], name: str) -> bool:
    """Whether a condition is about a table and some others, and about no more."""
    return any(
        tables <= here | {name} and not tables <= here and not tables <= {name} for tables, _ in conditions
    )


def _text(tree: Any) -> str:
    text: str = tree.sql(dialect="spark", comments=False, normalize_functions=False)
    return text
