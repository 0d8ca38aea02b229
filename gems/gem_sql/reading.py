"""What a query makes of its inputs: its columns, and the operators that streams restrict.

The query is read with sqlglot and followed clause by clause, as Spark's analyser does: tables and joins,
`where`, groups, `having`, the columns, `distinct`, `order by`, `limit`. What stands in a query that is not
followed here (a table of the session, a statement's hints, names for the columns of a table) makes the
whole unknown, and no rule fires.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle import Column, Facts, Finding, JoinOperator, LimitOperator, Operator, combined, entering
from gem_bundle.expressions import analyse, backquoted, join_condition, unreadable_query
from gem_sql.behind import Names, names_behind, order_keys, wrong_order_positions, wrong_stars
from gem_sql.grouping import (
    aggregation,
    group_key,
    grouped_by,
    is_window,
    plain_keys,
    several_times_over,
    with_others,
    with_windows,
    wrong_positions,
)
from gem_sql.joining import JOINS, beside, hidden_by_using, joined_using, owner_of
from gem_sql.text import defined
from gem_sql.tree import (
    OPTION,
    Item,
    UnknownQuery,
    columns_in,
    item_of,
    names_of,
    only,
    sql_of,
    subqueries,
    subqueries_of,
)
from gem_sql.uniting import distinct_rows, side_by_side, unequal_rows, unfit_choices, unfit_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.expressions import Analysis

_SELECT = frozenset(
    [
        *("with_", "expressions", "from_", "joins", "where", "group", "having", "distinct", "order"),
        *("limit", "offset", "hint", "sort", "cluster", "distribute", "kind", "laterals", "windows"),
    ]
)
_SET = frozenset(["with_", "this", "expression", "distinct", "by_name", "order", "limit", "offset"])
_JOIN = frozenset(["this", "on", "using", "side", "kind", "hint", "global_"])


class StreamInSubquery(Exception):  # noqa: N818 (it is caught where the query is read)
    """A subquery within an expression is over a stream, which Spark's analyser refuses.

    Args:
        certain: Whether it is certain to be one.
    """

    def __init__(self, certain: bool | None) -> None:
        super().__init__(certain)
        self.certain = bool(certain)


def read(query: str, inputs: Mapping[str, Facts]) -> Facts:
    """The facts of a query's rows.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names.

    Raises:
        UnknownQuery: When the query can't be followed.
    """
    return _read(_Reader(), query, inputs)


def with_lateral(facts: Facts, view: Any) -> Facts:
    """Rows with what a `lateral view` makes of each, so that there may be several of one.

    Args:
        facts: What is known of the rows.
        view: The `lateral view`.

    Raises:
        UnknownQuery: When it has parts that aren't known.
    """
    return _Reader()._lateral(facts, view)


def facts_of(node: Any, tables: Mapping[str, Facts]) -> Facts:
    """The facts of the rows of a query within another one.

    Args:
        node: Its tree.
        tables: The facts of the tables that it may name, by their names in lower case.

    Raises:
        UnknownQuery: When the query can't be followed.
    """
    return _Reader().query(node, tables)


def _read(reader: _Reader, query: str, inputs: Mapping[str, Facts]) -> Facts:
    tables = {name.lower(): facts for name, facts in inputs.items()}
    twice = [name for name in defined(query) if name in tables]
    whole = [operator for name in twice for operator in tables[name].operators]
    for name in twice:
        tables[name] = tables[name].after(Operator("cte", OPTION))
    facts = reader.query(_parsed(query), tables)
    return _as_a_whole(facts, whole) if twice else facts


def _as_a_whole(facts: Facts, defined: list[Operator]) -> Facts:
    """A query's rows; what comes behind sees the operators of its common table expressions too."""
    whole = Operator("with", OPTION, (*facts.operators, *defined), (facts.streaming,))
    return replace(facts, operators=(whole,))


class Part(NamedTuple):
    """An expression of a query.

    Args:
        text: The expression.
        facts: What the rows are that it is over.
        clause: ``select``, ``where``, ``on``, ``key`` (what is grouped by), ``having``, ``order by``,
            ``order groups by``, or ``group by``: an item of a `select` that aggregates.
        also: Other names that it may use, in lower case: those given in the same `select`.
        groups: What its rows are grouped by.
        hidden: Names that mean something there of which nothing is known.
    """

    text: str
    facts: Facts
    clause: str
    also: frozenset[str] = frozenset()
    groups: tuple[str, ...] | None = None
    hidden: frozenset[str] = frozenset()


class Parts(NamedTuple):
    """What can be checked of a query.

    Args:
        expressions: Its expressions.
        problems: What else is wrong with it.
    """

    expressions: list[Part]
    problems: list[Finding]


def parts(query: str, inputs: Mapping[str, Facts]) -> Parts:
    """What can be checked of a query.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names.
    """
    reader = _Reader()
    try:
        _read(reader, query, inputs)
    except UnknownQuery:
        # What is wrong with a part isn't mended by one that can't be followed.
        return Parts([], [*reader.problems, *unreadable(query)])
    return Parts(reader.seen, reader.problems)


def unreadable(query: str) -> Iterator[Finding]:
    """What keeps a query from being read, if something certainly does."""
    from gem_bundle.expressions.query import query_tree

    reason = unreadable_query(query) if query_tree(query) is None else None
    if reason is not None:
        yield Finding("GB214", f"the query can't be read: {reason}", "", OPTION)


def _parsed(query: str) -> Any:
    from gem_bundle.expressions.query import query_tree

    tree = query_tree(query)
    if tree is None:
        raise UnknownQuery
    return tree


class _Reader:
    """Follows one query; `seen` collects the expressions it meets."""

    def __init__(self) -> None:
        self.seen: list[Part] = []
        self.problems: list[Finding] = []
        self._hidden: list[Column] = []

    def query(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        """The facts of a query's rows."""
        defined, known = self._with(node, tables)
        facts = self._query(node, known)
        return _as_a_whole(facts, defined) if defined else facts

    def _query(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            only(node, frozenset({"this", "alias", "with_"}))
            facts = self.query(node.this, tables)
            return facts.called(node.alias) if node.alias else facts
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, tables)
        if isinstance(node, exp.Select):
            return self._select(node, tables)
        raise UnknownQuery

    def _with(self, node: Any, tables: Mapping[str, Facts]) -> tuple[list[Operator], Mapping[str, Facts]]:
        """The operators of the query's common table expressions, and the tables with those among them."""
        clause = node.args.get("with_")
        if clause is None:
            return [], tables
        if clause.args.get("recursive"):
            raise UnknownQuery
        defined: list[Operator] = []
        known = dict(tables)
        for cte in clause.expressions:
            if cte.args["alias"].args.get("columns"):
                raise UnknownQuery
            facts = self.query(cte.this, known).called(cte.alias)
            defined += facts.operators
            known[cte.alias.lower()] = facts.after(Operator("cte", OPTION))
        return defined, known

    def _set_operation(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        only(node, _SET)
        if node.args.get("by_name"):
            raise UnknownQuery
        left, right = (self.query(side, tables) for side in (node.this, node.expression))
        self.problems += unfit_columns(left, right)
        columns = side_by_side(left, right)
        if not isinstance(node, exp.Union) or node.args.get("distinct"):
            self.problems += unequal_rows(left, node.key)
        if isinstance(node, exp.Union):
            facts = combined(Operator("union", OPTION), [left, right]).with_all_columns(columns)
            facts = facts.after(distinct_rows(facts)) if node.args.get("distinct") else facts
        elif isinstance(node, exp.Except):
            both = left.with_columns(columns)
            made = replace(distinct_rows(both), kind="except", alone=False, event_times=())
            facts = combined(made, [left, right]).with_all_columns(columns)
        else:
            facts = combined(Operator("intersect", OPTION), [left, right]).with_all_columns(columns)
        return self._ordered(node, facts, Names(replace(facts, qualifiers=None)), "order by")

    def _select(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        only(node, _SELECT)
        if node.args.get("kind"):
            raise UnknownQuery
        self._look_into_subqueries(node, tables)
        hidden_outside, self._hidden = self._hidden, []
        facts = self._from(node, tables)
        for lateral in node.args.get("laterals") or ():
            facts = self._lateral(facts, lateral)
        where = node.args.get("where")
        if where is not None:
            facts = self._filtered(facts, where.this, "where")
        items = [item_of(item) for item in node.expressions]
        having = node.args.get("having")
        group = node.args.get("group")
        keys = self._keys(group, items, facts)
        scope = with_windows(facts, keys)
        found = _analysed(items, scope)
        known = [analysis for analysis in found if analysis is not None]
        if any(not analysis.parsed for analysis in known):
            raise UnknownQuery
        # `having` without `group by` makes one group of all rows.
        aggregated = any(clause is not None for clause in (group, having))
        aggregated = aggregated or any(analysis.aggregates for analysis in known)
        if group is not None and not group.args.get("all"):
            self._see_keys(keys, items, facts)
        if aggregated:
            keys = self._all_keys(group, keys, items, found)
            distinct = tuple(text for analysis in known for text in analysis.distinct)
            made = replace(aggregation(keys, facts), distinct=distinct, distinct_option=OPTION)
            clock = self._clock(facts, keys, items, having)
            made = replace(made, clock=clock, clock_option=OPTION)
            facts = facts.after(with_others(made) if several_times_over(group) else made)
        clause = "group by" if aggregated else "select"
        also = names_of(items)
        groups = grouped_by(group, keys) if aggregated else None
        self.seen += [Part(item.text, scope, clause, also, groups) for item in items if not item.star]
        self.problems += wrong_stars(items, scope, self._hidden)
        columns = self._columns(scope, items, found)
        behind = names_behind(scope, columns, self._hidden)
        if groups is not None and columns is not None:
            groups = (*groups, *(backquoted(column.name) for column in columns))
        self._hidden = hidden_outside
        if having is not None:
            facts = facts.after(Operator("filter", OPTION))
            text = sql_of(having.this)
            self.seen.append(Part(text, behind.facts, "having", frozenset(), groups, behind.hidden))
        facts = _with_operators(facts, known).with_columns(columns)
        if node.args.get("distinct"):
            if node.args["distinct"].args.get("on"):
                raise UnknownQuery
            self.problems += unequal_rows(facts, "distinct")
            facts = facts.after(distinct_rows(facts))
        return self._ordered(node, facts, behind, "order groups by" if aggregated else "order by", groups)

    def _see_keys(self, keys: list[str], items: list[Item], facts: Facts) -> None:
        """What is grouped by is over the rows, and may be called as an item is."""
        windows = {"window", "session_window"} if any(map(is_window, keys)) else frozenset()
        self.seen += [Part(key, facts, "key", names_of(items) | windows) for key in keys]

    def _look_into_subqueries(self, node: Any, tables: Mapping[str, Facts]) -> None:
        """A stream in a subquery of an expression is refused by Spark's analyser."""
        for query in subqueries_of(node, ("expressions", "where", "having", "group")):
            # Its expressions may be about columns of the query around it, which aren't known there.
            facts = _Reader().query(query, tables)
            if facts.streaming is not False:
                raise StreamInSubquery(facts.streaming)
            self.problems += unfit_choices(query.parent, facts)

    def _lateral(self, facts: Facts, node: Any) -> Facts:
        """`lateral view`: the columns of a function that makes several rows of one, beside the others."""
        only(node, frozenset({"this", "view", "outer", "alias"}))
        if not node.args.get("alias") or next(subqueries(node.this), None) is not None:
            raise UnknownQuery
        facts = facts.after(Operator("generate", OPTION))
        known = facts.qualifiers
        if known is not None:
            facts = replace(facts, qualifiers=known | {node.alias.lower()})
        names = [column.name for column in node.args["alias"].args.get("columns") or ()]
        if facts.columns is None or not names:
            return facts.with_columns(None)
        self.seen.append(Part(sql_of(node.this), facts, "select"))
        element = analyse(sql_of(node.this), facts.columns, name=names[0]).column
        made = [Column(name, delay=element.delay, qualifier=node.alias) for name in names]
        if len(made) == 1:
            made = [replace(element, qualifier=node.alias)]
        return facts.with_columns([*facts.columns, *made])

    def _pivoted(self, facts: Facts, pivots: list[Any]) -> Facts:
        """`pivot`: Spark aggregates twice, with its own column among the groups and without it."""
        for pivot in pivots:
            if pivot.args.get("unpivot") or len(pivot.args.get("fields") or ()) != 1:
                raise UnknownQuery
            named = {c.name.lower() for c in columns_in(pivot)}
            if facts.columns is None:
                raise UnknownQuery
            keys = [column.name for column in facts.columns if column.name.lower() not in named]
            made = with_others(aggregation([f"`{key}`" for key in keys], facts))
            facts = facts.after(made).after(replace(made)).with_columns(None)
        return facts

    def _from(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        clause = node.args.get("from_")
        if clause is None:
            return Facts(streaming=False, columns=(), bounded=True, qualifiers=frozenset())
        return self._all_joined(self._table(clause.this, tables), node, tables)

    def _all_joined(self, facts: Facts, node: Any, tables: Mapping[str, Facts]) -> Facts:
        joins = node.args.get("joins") or ()
        in_order = all(join.args.get("on") or join.args.get("using") for join in joins)
        for join in joins:
            facts = self._joined(facts, join, tables, in_order=in_order)
        return facts

    def _table(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            only(node, frozenset({"this", "alias", "pivots"}))
            facts = self.query(node.this, tables)
            if node.args.get("pivots"):
                return self._pivoted(facts, node.args["pivots"])
            return facts.called(node.alias) if node.alias else facts
        if not isinstance(node, exp.Table):
            raise UnknownQuery
        sample = node.args.get("sample")
        only(node, frozenset({"this", "alias", "sample", "joins"}))
        if not isinstance(node.this, exp.Identifier) or node.name.lower() not in tables:
            raise UnknownQuery
        if node.args.get("alias") and node.args["alias"].args.get("columns"):
            raise UnknownQuery
        facts = tables[node.name.lower()].called(node.alias or node.name)
        facts = facts.after(Operator("sample", OPTION)) if sample else facts
        return self._all_joined(facts, node, tables)

    def _joined(self, left: Facts, node: Any, tables: Mapping[str, Facts], *, in_order: bool) -> Facts:
        """One more join.

        Args:
            left: What is before it.
            node: The join.
            tables: The facts of the tables.
            in_order: Spark makes the joins in the order in which they are written.
        """
        from sqlglot import exp

        only(node, _JOIN)
        if isinstance(node.this, exp.Lateral):
            only(node, frozenset({"this", "kind"}))
            return self._lateral(left, node.this)
        how = JOINS.get((node.side, node.kind))
        if how is None:
            raise UnknownQuery
        right = self._table(node.this, tables)
        name = node.this.alias_or_name or "right"
        made = JoinOperator(
            option=OPTION,
            how=how,
            how_option=OPTION,
            names=(owner_of(left), name),
            watermarked=(left.watermarked, right.watermarked),
            times=(left.time, right.time),
            equality=False,
            event_time_key=False,
            bounded=(False, False),
        )
        wanted: set[str] = set()
        if node.args.get("using"):
            wanted = {column.name.lower() for column in node.args["using"]}
        if how not in {"left_semi", "left_anti"} and in_order:
            left, of_left = entering(left, lambda column: column.name.lower() in wanted)
            right, of_right = entering(right, lambda column: column.name.lower() in wanted)
            made = replace(made, event_times=(of_left, of_right))
        if node.args.get("using"):
            names = [column.name for column in node.args["using"]]
            text = " and ".join(f"`{made.names[0]}`.`{n}` = `{name}`.`{n}`" for n in names)
            made = join_condition(text, left, right, made.names).of(made)
            columns = joined_using(how, names, left, right)
            self._hidden += hidden_by_using(how, names, left, right)
        else:
            condition = node.args.get("on")
            if condition is not None:
                text = sql_of(condition)
                made = join_condition(text, left, right, made.names).of(made)
                columns = beside("inner", left, right)
                made = replace(made, clock=analyse(text, columns).clock)
                both = combined(made, [left, right]).with_all_columns(columns)
                self.seen.append(Part(text, both, "on"))
            columns = beside(how, left, right)
        return combined(made, [left, right]).with_all_columns(columns)

    def _filtered(self, facts: Facts, condition: Any, clause: str) -> Facts:
        text = sql_of(condition)
        self.seen.append(Part(text, facts, clause))
        found = analyse(text, facts.columns)
        facts = facts.after(Operator("filter", OPTION))
        if found.row_ids:
            facts = facts.after(Operator("row_ids", OPTION))
        return facts.after(Operator("current_time", OPTION)) if found.current_time else facts

    def _keys(self, group: Any, items: list[Item], facts: Facts) -> list[str]:
        """The texts of what is grouped by."""
        if group is None:
            return []
        only(group, frozenset({"expressions", "all", "rollup", "cube", "grouping_sets"}))
        keys = plain_keys(group)
        self.problems += wrong_positions(keys, items)
        return [group_key(key, items, facts) for key in keys]

    def _all_keys(
        self, group: Any, keys: list[str], items: list[Item], found: list[Analysis | None]
    ) -> list[str]:
        """The same, with what `group by all` means."""
        if group is None or not group.args.get("all"):
            return keys
        pairs = zip(items, found, strict=True)
        return [item.text for item, analysis in pairs if analysis is not None and not analysis.aggregates]

    def _clock(self, facts: Facts, keys: list[str], items: list[Item], having: Any) -> str:
        """What has an aggregate function with the current time among its arguments."""
        if any(analyse(key, facts.columns).clock for key in keys):
            return ""  # it may be a group that the function is about
        texts = [item.text for item in items if not item.star]
        if having is not None:
            texts.append(sql_of(having.this))
        return next((text for text in texts if analyse(text, facts.columns).clock_aggregated), "")

    def _columns(self, facts: Facts, items: list[Item], found: list[Analysis | None]) -> list[Column] | None:
        columns: list[Column] = []
        for item, analysis in zip(items, found, strict=True):
            if analysis is not None:
                if not analysis.column.name:
                    return None
                columns.append(analysis.column)
            elif facts.columns is None:
                return None
            elif item.owner is None:
                columns += _without(item.left_out, facts.columns)
            elif item.owner not in (facts.qualifiers or ()):
                return None  # the fields of a struct
            else:
                both = [*self._hidden, *facts.columns]
                own = [c for c in both if (c.qualifier or "").lower() == item.owner]
                columns += _without(item.left_out, own)
        return columns

    def _ordered(
        self, node: Any, facts: Facts, names: Names, clause: str, groups: tuple[str, ...] | None = None
    ) -> Facts:
        """`order by`, `sort by`, `limit` and `offset`."""
        self.problems += wrong_order_positions(node, facts.columns)
        for key in order_keys(node):
            self.seen.append(Part(sql_of(key), names.facts, clause, frozenset(), groups, names.hidden))
        if any(node.args.get(name) for name in ("order", "sort", "cluster")):
            facts = facts.after(Operator("sort", OPTION))
        elif node.args.get("distribute"):
            facts = facts.after(Operator("repartition", OPTION))
        if node.args.get("offset"):
            facts = facts.after(Operator("offset", OPTION))
        limit = node.args.get("limit")
        return facts if limit is None else facts.after(LimitOperator(option=OPTION, rows=_count_of(limit)))


def _without(names: frozenset[str], columns: Sequence[Column]) -> list[Column]:
    """The columns of a star without some of them, of which there has to be one each."""
    if dict.fromkeys(names, 1) != Counter(c.name.lower() for c in columns if c.name.lower() in names):
        raise UnknownQuery
    return [column for column in columns if column.name.lower() not in names]


def _count_of(limit: Any) -> int | None:
    """How many rows a `limit` lets through, where it is a number."""
    number = limit.expression
    return int(number.name) if number is not None and number.is_int else None


def _with_operators(facts: Facts, items: Sequence[Analysis]) -> Facts:
    """The facts behind the operators that items of a `select` ask for."""
    if any(item.analytic for item in items):
        facts = facts.after(Operator("analytic_window", OPTION))
    if any(item.generator for item in items):
        facts = facts.after(Operator("generate", OPTION))
    if any(item.row_ids for item in items):
        facts = facts.after(Operator("row_ids", OPTION))
    if any(item.current_time for item in items):
        facts = facts.after(Operator("current_time", OPTION))
    return facts


def _analysed(items: list[Item], facts: Facts) -> list[Analysis | None]:
    """What is known of each item; an item may use the names of those before it."""
    found: list[Analysis | None] = []
    earlier: list[Column] = []
    for item in items:
        if item.star:
            found.append(None)
            continue
        analysis = analyse(item.text, facts.columns, name=item.name, earlier=earlier)
        found.append(analysis)
        if item.name is not None:
            earlier.append(analysis.column)
    return found
