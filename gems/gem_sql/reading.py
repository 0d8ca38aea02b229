"""What a query makes of its inputs: its columns, and the operators that streams restrict.

The query is read with sqlglot and followed clause by clause, as Spark's analyser does: tables and joins,
`where`, groups, `having`, the columns, `distinct`, `order by`, `limit`. What stands in a query that is not
followed here (a table of the session, a statement's hints, names for the columns of a table) makes the
whole unknown, and no rule fires.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle import AggregateOperator, Column, Facts, JoinOperator, Operator, combined
from gem_bundle.expressions import UNKNOWN_DELAY, analyse, join_condition
from gem_bundle.schema import differ_for_certain
from gem_sql.text import defined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gem_bundle.expressions import Analysis
    from gem_bundle.operators import JoinType

OPTION = "query"
_WINDOW = re.compile(r"[\s(]*(session_window|window)\s*\(", re.IGNORECASE)
_SELECT = frozenset(
    [
        *("with_", "expressions", "from_", "joins", "where", "group", "having", "distinct", "order"),
        *("limit", "offset", "hint", "sort", "cluster", "distribute", "kind", "laterals", "windows"),
    ]
)
_SET = frozenset(["with_", "this", "expression", "distinct", "by_name", "order", "limit", "offset"])
_JOIN = frozenset(["this", "on", "using", "side", "kind", "hint", "global_"])
_JOINS: dict[tuple[str, str], JoinType] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "cross",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "left_semi",
    ("", "SEMI"): "left_semi",
    ("LEFT", "ANTI"): "left_anti",
    ("", "ANTI"): "left_anti",
}


class StreamInSubquery(Exception):  # noqa: N818 (it is caught where the query is read)
    """A subquery within an expression is over a stream, which Spark's analyser refuses.

    Args:
        certain: Whether it is certain to be one.
    """

    def __init__(self, certain: bool | None) -> None:
        super().__init__(certain)
        self.certain = bool(certain)


class UnknownQuery(Exception):  # noqa: N818 (it says that nothing is known, not that something failed)
    """The query has something that is not followed here."""


def read(query: str, inputs: Mapping[str, Facts]) -> Facts:
    """The facts of a query's rows.

    Args:
        query: One query in Spark's SQL.
        inputs: The facts of its tables by their names.

    Raises:
        UnknownQuery: When the query can't be followed.
    """
    return _read(_Reader(), query, inputs)


def _read(reader: _Reader, query: str, inputs: Mapping[str, Facts]) -> Facts:
    tables = {name.lower(): facts for name, facts in inputs.items()}
    twice = [name for name in defined(query) if name in tables]
    whole = [operator for name in twice for operator in tables[name].operators]
    for name in twice:
        tables[name] = tables[name].after(Operator("cte", OPTION))
    facts = reader.query(_parsed(query), tables)
    if not twice:
        return facts
    made = Operator("with", OPTION, (*facts.operators, *whole), (facts.streaming,))
    return replace(facts, operators=(made,))


class Part(NamedTuple):
    """An expression of a query.

    Args:
        text: The expression.
        facts: What the rows are that it is over.
        clause: ``select``, ``where``, ``on`` or ``group by``.
        also: Other names that it may use, in lower case: those given in the same `select`.
    """

    text: str
    facts: Facts
    clause: str
    also: frozenset[str] = frozenset()


class Parts(NamedTuple):
    """What can be checked of a query.

    Args:
        expressions: Its expressions.
        unfit: What doesn't fit together in its set operations, as sentences.
    """

    expressions: list[Part]
    unfit: list[str]


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
        return Parts([], [])
    return Parts(reader.seen, reader.unfit)


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
        self.unfit: list[str] = []
        self._hidden: list[Column] = []

    def query(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        """The facts of a query's rows."""
        defined, known = self._with(node, tables)
        facts = self._query(node, known)
        if not defined:
            return facts
        whole = Operator("with", OPTION, (*facts.operators, *defined), (facts.streaming,))
        return replace(facts, operators=(whole,))

    def _query(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            _only(node, frozenset({"this", "alias", "with_"}))
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

        _only(node, _SET)
        if node.args.get("by_name"):
            raise UnknownQuery
        left, right = (self.query(side, tables) for side in (node.this, node.expression))
        self.unfit += _unfit(left, right)
        columns = _side_by_side(left, right)
        if isinstance(node, exp.Union):
            facts = combined(Operator("union", OPTION), [left, right]).with_columns(columns)
            facts = facts.after(_distinct(facts)) if node.args.get("distinct") else facts
        elif isinstance(node, exp.Except):
            both = left.with_columns(columns)
            facts = combined(replace(_distinct(both), kind="except"), [left, right]).with_columns(columns)
        else:
            facts = combined(Operator("intersect", OPTION), [left, right]).with_columns(columns)
        return self._ordered(node, facts)

    def _select(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        _only(node, _SELECT)
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
        items = [_item(item) for item in node.expressions]
        having = node.args.get("having")
        group = node.args.get("group")
        keys = self._keys(group, items, facts)
        scope = _with_windows(facts, keys)
        found = _analysed(items, scope)
        known = [analysis for analysis in found if analysis is not None]
        if any(not analysis.parsed for analysis in known):
            raise UnknownQuery
        aggregated = group is not None or any(analysis.aggregates for analysis in known)
        if having is not None and not aggregated:
            raise UnknownQuery
        if aggregated:
            keys = self._all_keys(group, keys, items, found)
            distinct = tuple(text for analysis in known for text in analysis.distinct)
            made = replace(_aggregate(keys, facts), distinct=distinct, distinct_option=OPTION)
            facts = facts.after(made)
        clause = "group by" if aggregated else "select"
        also = frozenset(item.name.lower() for item in items if item.name)
        self.seen += [Part(item.text, scope, clause, also) for item in items if not item.star]
        columns = self._columns(scope, items, found)
        self._hidden = hidden_outside
        if having is not None:
            facts = facts.after(Operator("filter", OPTION))
        if any(analysis.analytic for analysis in known):
            facts = facts.after(Operator("analytic_window", OPTION))
        if any(analysis.generator for analysis in known):
            facts = facts.after(Operator("generate", OPTION))
        if any(analysis.row_ids for analysis in known):
            facts = facts.after(Operator("row_ids", OPTION))
        if any(analysis.current_time for analysis in known):
            facts = facts.after(Operator("current_time", OPTION))
        facts = facts.with_columns(columns)
        if node.args.get("distinct"):
            if node.args["distinct"].args.get("on"):
                raise UnknownQuery
            facts = facts.after(_distinct(facts))
        return self._ordered(node, facts)

    def _look_into_subqueries(self, node: Any, tables: Mapping[str, Facts]) -> None:
        """A stream in a subquery of an expression is refused by Spark's analyser."""
        for clause in ("expressions", "where", "having", "group"):
            found = node.args.get(clause)
            for part in found if isinstance(found, list) else [found]:
                for query in _subqueries(part) if part is not None else ():
                    # Its expressions may be about columns of the query around it, which aren't known there.
                    facts = _Reader().query(query, tables)
                    if facts.streaming is not False:
                        raise StreamInSubquery(facts.streaming)

    def _lateral(self, facts: Facts, node: Any) -> Facts:
        """`lateral view`: the columns of a function that makes several rows of one, beside the others."""
        _only(node, frozenset({"this", "view", "outer", "alias"}))
        if not node.args.get("alias") or next(_subqueries(node.this), None) is not None:
            raise UnknownQuery
        facts = facts.after(Operator("generate", OPTION))
        names = [column.name for column in node.args["alias"].args.get("columns") or ()]
        if facts.columns is None or not names:
            return facts.with_columns(None)
        self.seen.append(Part(_text(node.this), facts, "select"))
        element = analyse(_text(node.this), facts.columns, name=names[0]).column
        made = [Column(name, delay=element.delay, qualifier=node.alias) for name in names]
        if len(made) == 1:
            made = [replace(element, qualifier=node.alias)]
        return facts.with_columns([*facts.columns, *made])

    def _pivoted(self, facts: Facts, pivots: list[Any]) -> Facts:
        """`pivot`: Spark aggregates twice, with its own column among the groups and without it."""
        for pivot in pivots:
            if pivot.args.get("unpivot") or len(pivot.args.get("fields") or ()) != 1:
                raise UnknownQuery
            named = {c.name.lower() for c in _columns_in(pivot)}
            if facts.columns is None:
                raise UnknownQuery
            keys = [column.name for column in facts.columns if column.name.lower() not in named]
            made = _aggregate([f"`{key}`" for key in keys], facts)
            facts = facts.after(made).after(replace(made)).with_columns(None)
        return facts

    def _from(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        clause = node.args.get("from_")
        if clause is None:
            return Facts(streaming=False, columns=(), bounded=True)
        facts = self._table(clause.this, tables)
        for join in node.args.get("joins") or ():
            facts = self._joined(facts, join, tables)
        return facts

    def _table(self, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        if isinstance(node, exp.Subquery):
            _only(node, frozenset({"this", "alias", "pivots"}))
            facts = self.query(node.this, tables)
            if node.args.get("pivots"):
                return self._pivoted(facts, node.args["pivots"])
            return facts.called(node.alias) if node.alias else facts
        if not isinstance(node, exp.Table):
            raise UnknownQuery
        sample = node.args.get("sample")
        _only(node, frozenset({"this", "alias", "sample", "joins"}))
        if not isinstance(node.this, exp.Identifier) or node.name.lower() not in tables:
            raise UnknownQuery
        if node.args.get("alias") and node.args["alias"].args.get("columns"):
            raise UnknownQuery
        facts = tables[node.name.lower()].called(node.alias or node.name)
        facts = facts.after(Operator("sample", OPTION)) if sample else facts
        for join in node.args.get("joins") or ():
            facts = self._joined(facts, join, tables)
        return facts

    def _joined(self, left: Facts, node: Any, tables: Mapping[str, Facts]) -> Facts:
        from sqlglot import exp

        _only(node, _JOIN)
        if isinstance(node.this, exp.Lateral):
            _only(node, frozenset({"this", "kind"}))
            return self._lateral(left, node.this)
        how = _JOINS.get((node.side, node.kind))
        if how is None:
            raise UnknownQuery
        right = self._table(node.this, tables)
        name = node.this.alias_or_name or "right"
        made = JoinOperator(
            option=OPTION,
            how=how,
            how_option=OPTION,
            names=(_owner(left), name),
            watermarked=(left.watermarked, right.watermarked),
            times=(left.time, right.time),
            equality=False,
            event_time_key=False,
            bounded=(False, False),
        )
        if node.args.get("using"):
            names = [column.name for column in node.args["using"]]
            text = " and ".join(f"`{made.names[0]}`.`{n}` = `{name}`.`{n}`" for n in names)
            made = _with_condition(made, text, left, right)
            columns = _joined_using(how, names, left, right)
            self._hidden += _hidden_by_using(how, names, left, right)
        else:
            condition = node.args.get("on")
            if condition is not None:
                text = _text(condition)
                made = _with_condition(made, text, left, right)
                columns = _beside("inner", left, right)
                self.seen.append(Part(text, left.with_columns(columns), "on"))
            elif how == "inner":
                # A `where` may still bring an equality.
                made = replace(made, equality=None, event_time_key=None, bounded=(None, None))
            columns = _beside(how, left, right)
        return combined(made, [left, right]).with_columns(columns)

    def _filtered(self, facts: Facts, condition: Any, clause: str) -> Facts:
        text = _text(condition)
        self.seen.append(Part(text, facts, clause))
        found = analyse(text, facts.columns)
        facts = facts.after(Operator("filter", OPTION))
        if found.row_ids:
            facts = facts.after(Operator("row_ids", OPTION))
        return facts.after(Operator("current_time", OPTION)) if found.current_time else facts

    def _keys(self, group: Any, items: list[_Item], facts: Facts) -> list[str]:
        """The texts of what is grouped by."""
        if group is None:
            return []
        _only(group, frozenset({"expressions", "all", "rollup", "cube", "grouping_sets"}))
        return [_group_key(key, items, facts) for key in _plain_keys(group)]

    def _all_keys(
        self, group: Any, keys: list[str], items: list[_Item], found: list[Analysis | None]
    ) -> list[str]:
        """The same, with what `group by all` means."""
        if group is None or not group.args.get("all"):
            return keys
        pairs = zip(items, found, strict=True)
        return [item.text for item, analysis in pairs if analysis is not None and not analysis.aggregates]

    def _columns(self, facts: Facts, items: list[_Item], found: list[Analysis | None]) -> list[Column] | None:
        columns: list[Column] = []
        for item, analysis in zip(items, found, strict=True):
            if analysis is not None:
                if not analysis.column.name:
                    return None
                columns.append(analysis.column)
            elif facts.columns is None:
                return None
            elif item.owner is None:
                columns += facts.columns
            else:
                both = [*self._hidden, *facts.columns]
                columns += [c for c in both if (c.qualifier or "").lower() == item.owner]
        return columns

    def _ordered(self, node: Any, facts: Facts) -> Facts:
        """`order by`, `sort by`, `limit` and `offset`."""
        if any(node.args.get(name) for name in ("order", "sort", "cluster")):
            facts = facts.after(Operator("sort", OPTION))
        elif node.args.get("distribute"):
            facts = facts.after(Operator("repartition", OPTION))
        if node.args.get("offset"):
            facts = facts.after(Operator("offset", OPTION))
        return facts.after(Operator("limit", OPTION)) if node.args.get("limit") else facts


def _analysed(items: list[_Item], facts: Facts) -> list[Analysis | None]:
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


class _Item:
    """One item of a `select`: an expression with its name, or a star."""

    def __init__(self, text: str, name: str | None, *, star: bool = False, owner: str | None = None) -> None:
        self.text = text
        self.name = name
        self.star = star
        self.owner = owner


def _item(node: Any) -> _Item:
    from sqlglot import exp

    if isinstance(node, exp.Star):
        _only(node, frozenset())
        return _Item("*", None, star=True)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        _only(node.this, frozenset())
        return _Item("*", None, star=True, owner=node.table.lower())
    if isinstance(node, exp.Alias):
        return _Item(_text(node.this), node.alias)
    if isinstance(node, exp.Aliases):
        raise UnknownQuery
    return _Item(_text(node), None)


def _subqueries(node: Any) -> Iterator[Any]:
    """The outermost queries within an expression."""
    from sqlglot import exp

    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query):
            yield part
        else:
            waiting.extend(part.iter_expressions())


def _columns_in(node: Any) -> Iterator[Any]:
    from sqlglot import exp

    yield from node.find_all(exp.Column)


def _plain_keys(group: Any) -> list[Any]:
    """What is grouped by, what stands in `rollup`, `cube` and `grouping sets` included."""
    from sqlglot import exp

    waiting = [*group.expressions]
    for name in ("rollup", "cube", "grouping_sets"):
        waiting += group.args.get(name) or ()
    found: list[Any] = []
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            waiting = [*node.expressions, *waiting]
        elif isinstance(node, exp.Paren):
            waiting.insert(0, node.this)
        elif node not in found:
            found.append(node)
    return found


def _text(node: Any) -> str:
    """An expression as SQL, with values for its subqueries, of which nothing is known."""
    from sqlglot import exp

    if node.find(exp.Query) is not None:
        node = node.transform(_without_subquery)
    text: str = node.sql(dialect="spark", comments=False, normalize_functions=False)
    return text


def _without_subquery(node: Any) -> Any:
    from sqlglot import exp

    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
        return exp.true()
    # A function that nobody knows: its type may be anything.
    return exp.Anonymous(this="__subquery") if isinstance(node, exp.Query) else node


def _only(node: Any, known: frozenset[str]) -> None:
    """Refuse a node that has more than what is followed here."""
    for name, value in node.args.items():
        if name not in known and value:
            raise UnknownQuery


def _owner(facts: Facts) -> str:
    owners = {column.qualifier for column in facts.columns or ()}
    return owners.pop() or "left" if len(owners) == 1 else "left"


def _with_condition(made: JoinOperator, text: str, left: Facts, right: Facts) -> JoinOperator:
    known = join_condition(text, left, right, made.names)
    return replace(
        made,
        equality=known.equality,
        event_time_key=known.event_time_key,
        bounded=(known.left_bounded, known.right_bounded),
    )


def _beside(how: JoinType, left: Facts, right: Facts) -> list[Column] | None:
    if how in {"left_semi", "left_anti"}:
        return None if left.columns is None else list(left.columns)
    if left.columns is None or right.columns is None:
        return None
    return [*left.columns, *right.columns]


def _joined_using(how: JoinType, names: Iterable[str], left: Facts, right: Facts) -> list[Column] | None:
    """The columns of a join with `using`: its keys first and once."""
    wanted = [name.lower() for name in names]
    if left.columns is None or (right.columns is None and how not in {"left_semi", "left_anti"}):
        return None
    pairs = [(left.column(name), right.column(name)) for name in wanted]
    keys = [other if how == "right" else key for key, other in pairs]
    if how == "full":
        # It is made of both, so it is neither's event time.
        keys = [
            Column(key.name, key.type if key.type == other.type else None) if key and other else None
            for key, other in pairs
        ]
    if None in keys:
        raise UnknownQuery
    rest = [c for c in left.columns if c.name.lower() not in wanted]
    if how not in {"left_semi", "left_anti"}:
        rest += [c for c in right.columns or () if c.name.lower() not in wanted]
    return [*(key for key in keys if key is not None), *rest]


def _hidden_by_using(how: JoinType, names: Iterable[str], left: Facts, right: Facts) -> list[Column]:
    """The keys that `using` leaves out, which come with a side's own star nevertheless."""
    sides = {"right": [left], "full": [left, right], "left_semi": [], "left_anti": []}.get(how, [right])
    found = [side.column(name) for side in sides for name in names]
    return [column for column in found if column is not None]


def _side_by_side(left: Facts, right: Facts) -> list[Column] | None:
    """The columns of a set operation: the left ones, by position."""
    if left.columns is None or right.columns is None or len(left.columns) != len(right.columns):
        return None
    found = []
    for column, other in zip(left.columns, right.columns, strict=True):
        same = column.type is not None and column.type == other.type
        delay = column.delay if same or column.delay is None else UNKNOWN_DELAY
        found.append(replace(column, type=column.type if same else None, delay=delay))
    return found


def _unfit(left: Facts, right: Facts) -> list[str]:
    """What keeps the rows of two queries from being put together."""
    if left.columns is None or right.columns is None:
        return []
    here, there = len(left.columns), len(right.columns)
    if here != there:
        return [f"the first query of a set operation has {here} columns and the second one {there}"]
    return [
        f"`{one.name}` is a {one.type} in the first query of a set operation and `{other.name}` a "
        f"{other.type} in the second one: they can't be one column"
        for one, other in zip(left.columns, right.columns, strict=True)
        if differ_for_certain(one.type, other.type)
    ]


def _distinct(facts: Facts) -> AggregateOperator:
    """Rows that are equal come once: an aggregation over all columns."""
    return AggregateOperator(
        option=OPTION,
        event_time=facts.watermarked,
        sessions=None if facts.columns is None else any(column.session for column in facts.columns),
        rows=True,
        windowed=False,
    )


def _group_key(node: Any, items: list[_Item], facts: Facts) -> str:
    """The text of a group: `group by 1` and the name of an item mean that item's expression."""
    from sqlglot import exp

    if isinstance(node, exp.Literal) and not node.is_string:
        position = int(node.this) if node.this.isdecimal() else 0
        if not 1 <= position <= len(items) or any(item.star for item in items[:position]):
            raise UnknownQuery
        return items[position - 1].text
    text = _text(node)
    if isinstance(node, exp.Column) and not node.table:
        if facts.columns is None:
            return text
        if facts.column(node.name) is None:
            named = [i for i in items if i.name is not None and i.name.lower() == node.name.lower()]
            return named[0].text if named else text
    return text


def _aggregate(keys: list[str], facts: Facts) -> AggregateOperator:
    """The aggregation over these groups, as far as Spark's rules ask."""
    found = list(_grouping_columns(keys, facts))
    unknown = facts.columns is None or any(column is None for column in found)
    known = [column for column in found if column is not None]
    delays = {column.delay for column in known} - {None}
    carried = delays - {UNKNOWN_DELAY}
    sessions = any(column.session for column in known) or any(_is_session(key) for key in keys)
    return AggregateOperator(
        option=OPTION,
        event_time=True if carried else (None if unknown or delays else False),
        sessions=sessions or (None if unknown else False),
        alone=len(keys) == 1 and _is_session(keys[0]),
        windowed=any(_is_window(key) for key in keys) or any(column.session for column in known),
        delay=carried.pop() if len(carried) == 1 else None,
    )


def _grouping_columns(keys: list[str], facts: Facts) -> Iterator[Column | None]:
    """The groups that are columns or windows; None for one that can't be told."""
    from gem_bundle.expressions import reference

    for key in keys:
        parts = reference(key)
        if parts is None and not _is_window(key):
            continue  # an expression carries no watermark
        if parts is not None and len(parts) > 1 and facts.column(parts[0]) is not None:
            continue  # a field of a struct neither, when it is grouped by
        if facts.columns is None:
            yield None
            continue
        analysis = analyse(key, facts.columns, name="key")
        yield analysis.column if analysis.parsed else None


def _is_window(key: str) -> bool:
    return _WINDOW.match(key) is not None


def _is_session(key: str) -> bool:
    match = _WINDOW.match(key)
    return match is not None and match[1].lower() == "session_window"


def _with_windows(facts: Facts, keys: list[str]) -> Facts:
    """The rows that are aggregated, with the windows that they are grouped by as columns."""
    if facts.columns is None:
        return facts
    made = []
    for key in keys:
        if _is_window(key) and facts.column("session_window" if _is_session(key) else "window") is None:
            name = "session_window" if _is_session(key) else "window"
            column = analyse(key, facts.columns, name=name).column
            made.append(replace(column, session=_is_session(key)))
    return replace(facts, columns=(*facts.columns, *made))
