"""Queries of SQL at random, for the transform `sql`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.differential.conditions import Condition
from tests.differential.expressions import DURATIONS, Writer, aggregate
from tests.differential.relations import WINDOW, Col, Relation, merged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_JOINS = ("join", "inner join", "left join", "left outer join", "right join", "full outer join", "left semi join", "left anti join", "cross join")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Query:
    """A query of SQL.

    Args:
        text: The query.
        cols: What comes out of it.
        aggregations: How many aggregations it has.
        joins: How many joins.
        shape: What it is, for counting.
    """

    text: str
    cols: tuple[Col, ...]
    aggregations: int = 0
    joins: int = 0
    shape: str = "select"


class Queries:
    """Writes queries over the inputs of a node.

    Args:
        random: Where chance comes from.
        inputs: The inputs, whose ids are the names of the tables.
    """

    def __init__(self, random: Random, inputs: Sequence[Relation]) -> None:
        self.random = random
        self._inputs = [
            replace(relation, cols=tuple(replace(col, qualifier=None) for col in relation.usable()))
            for relation in inputs
        ]

    def draw(self) -> Query:
        """One query that uses all inputs."""
        if len(self._inputs) > 1:
            query = self._over_two(*self._inputs[:2])
        else:
            query = self._over_one(self._inputs[0])
        return self._ordered(query)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _ordered(self, query: Query) -> Query:
        """The query, in a few cases sorted or cut."""
        text, shape = query.text, query.shape
        plain = [c.name for c in query.cols if c.name.isidentifier() and c.family not in {"map", "variant"}]
        if self._chance(0.07) and plain:
            text = f"{text} order by {self.random.choice(plain)} {self.random.choice(['', 'desc', 'desc nulls last'])}".rstrip()
            shape += " order by"
        if self._chance(0.06):
            text = f"{text} limit {self.random.choice([1, 10, 100])}"
            shape += " limit"
        if self._chance(0.02):
            text = f"{text} offset 5"
            shape += " offset"
        return replace(query, text=text, shape=shape)

    def _over_one(self, relation: Relation) -> Query:
        shapes = {
            self._select: 28,
            self._grouped: 26,
            self._windowed: 18,
            self._distinct: 6,
            self._global: 4,
            self._analytic: 4,
            self._nested: 7,
            self._cte: 6,
            self._self_union: 3,
            self._grouping_sets: 3,
            self._exploded: 3,
            self._self_join: 4,
            self._sampled: 1,
            self._pivoted: 1,
        }
        return self.random.choices(list(shapes), list(shapes.values()))[0](relation)

    def _over_two(self, left: Relation, right: Relation) -> Query:
        shapes = {self._joined: 50, self._set_operation: 25, self._membership: 18, self._cte_join: 10}
        return self.random.choices(list(shapes), list(shapes.values()))[0](left, right)

    def _where(self, writer: Writer, share: float = 0.4) -> str:
        return f" where {writer.boolean(2)[0]}" if self._chance(share) else ""

    def _items(self, writer: Writer, cols: Sequence[Col], times: bool = True) -> tuple[str, list[Col]]:
        """A list of columns for ``select``."""
        if self._chance(0.2):
            return "*", list(cols)
        found: list[Col] = []
        texts: list[str] = []
        chosen = [col for col in cols if self._chance(0.7)] or list(cols[:1])
        for col in chosen:
            alias = col.name
            if self._chance(0.15):
                alias = f"{col.name}_{len(texts)}"
            name = writer.name(col)
            texts.append(name if alias == col.name else f"{name} {self.random.choice(['as ', ''])}{alias}")
            found.append(replace(col, name=alias, qualifier=None))
        for number in range(self.random.choice([0, 0, 1, 1, 2])):
            if times and self._chance(0.3):
                text, type_, marked = writer.event_time()
            else:
                (text, type_), marked = writer.any(2), False
            texts.append(f"{text} as x{number}")
            found.append(Col(f"x{number}", type_, marked))
        unique = {col.name.lower(): (text, col) for text, col in zip(texts, found, strict=True)}
        return ", ".join(text for text, _ in unique.values()), [col for _, col in unique.values()]

    def _select(self, relation: Relation) -> Query:
        writer = Writer(self.random, relation.cols)
        items, cols = self._items(writer, relation.cols)
        return Query(f"select {items} from {relation.id}{self._where(writer)}", tuple(cols))

    def _distinct(self, relation: Relation) -> Query:
        cols = [col for col in relation.cols if col.family not in {"map", "variant"}]
        chosen = [col for col in cols if self._chance(0.5)] or cols[:1]
        writer = Writer(self.random, relation.cols)
        names = ", ".join(writer.name(col) for col in chosen) or "1 as one"
        text = f"select distinct {names} from {relation.id}{self._where(writer)}"
        return Query(text, tuple(chosen) or (Col("one", "int"),), 1, shape="distinct")

    def _aggregates(self, writer: Writer) -> tuple[list[str], list[Col]]:
        """Aggregates under names that none of the columns has."""
        texts, cols = [], []
        taken = {col.name.lower() for col in writer.cols}
        free = [name for name in ("n", "total", "m", "number", "most", "least") if name not in taken]
        for name in free[: self.random.choice([1, 1, 2])]:
            text, type_ = aggregate(writer)
            texts.append(f"{text} as {name}")
            cols.append(Col(name, type_))
        return texts, cols

    def _grouped(self, relation: Relation) -> Query:
        """Grouped by columns."""
        writer = Writer(self.random, relation.cols)
        keys = [col for col in relation.cols if col.family not in {"map", "array"} and self._chance(0.3)][:3]
        keys = keys or [col for col in relation.cols if col.family in {"string", "number", "timestamp"}][:1]
        if not keys:
            return self._global(relation)
        names = [writer.name(col) for col in keys]
        aggregates, made = self._aggregates(writer)
        groups = ", ".join(names)
        if self._chance(0.1):
            groups = ", ".join(str(position + 1) for position in range(len(names)))
        elif self._chance(0.06):
            groups = "all"
        having = (
            f" having {self.random.choice(['count(*) > 1', f'{made[0].name} is not null', 'max(1) = 1'])}"
            if self._chance(0.2)
            else ""
        )
        text = f"select {', '.join([*names, *aggregates])} from {relation.id}{self._where(writer)} group by {groups}{having}"
        return Query(text, (*keys, *made), 1, shape="group by")

    def _windowed(self, relation: Relation) -> Query:
        """Grouped by windows over time."""
        writer = Writer(self.random, relation.cols)
        times = [c for c in relation.cols if c.type in {"timestamp", WINDOW}]
        times = [c for c in times if c.marked] or times
        if not times:
            return self._grouped(relation)
        col = self.random.choice(times)
        at = writer.name(col)
        duration = self.random.choice(DURATIONS)
        marked = col.marked
        function = self.random.choice(
            [f"window({at}, '{duration}')"] * 6
            + [f"window({at}, '1 hour', '15 minutes')", f"session_window({at}, '{duration}')"]
            + [
                f"window({at} + interval 1 hour, '{duration}')",
                f"window({at}, '1 hour', '1 hour', '5 minutes')",
            ]
            + ([f"window(window_time({at}), '{duration}')", at] if col.type == WINDOW else [at])
        )
        keys = [c for c in relation.cols if c.family in {"string", "number"} and self._chance(0.3)][:2]
        names = [writer.name(c) for c in keys]
        aggregates, made = self._aggregates(writer)
        own = col.name if function == at else function.partition("(")[0]
        roll = self.random.random()
        if function != at and own in {c.name.lower() for c in relation.cols}:
            roll = 0.5 if self._chance(0.7) else 0.9  # the name would mean the input's column
        groups = [function, *names]
        window_cols = [Col(own, WINDOW if "window" in function or col.type == WINDOW else col.type, marked)]
        if roll < 0.35:
            items = [own]
        elif roll < 0.6:
            items, window_cols = [f"{function} as w"], [replace(window_cols[0], name="w")]
            if self._chance(0.4):
                groups[0] = "w"
        elif roll < 0.85 and window_cols[0].type == WINDOW and function != at:
            items = [f"{own}.start as since", f"{own}.end as until"]
            window_cols = [Col("since", "timestamp"), Col("until", "timestamp")]
        else:
            items, window_cols = [], []
        text = f"select {', '.join([*items, *names, *aggregates])} from {relation.id}{self._where(writer)} group by {', '.join(groups)}"
        return Query(text, (*window_cols, *keys, *made), 1, shape="group by window")

    def _grouping_sets(self, relation: Relation) -> Query:
        writer = Writer(self.random, relation.cols)
        keys = [c for c in relation.cols if c.family in {"string", "number", "timestamp"}][:2]
        if len(keys) < 2:
            return self._grouped(relation)
        one, two = (writer.name(col) for col in keys)
        times = [c for c in relation.cols if c.type == "timestamp"]
        over = [c for c in times if c.marked] or times
        aggregates, made = self._aggregates(writer)
        groups = [f"rollup({one}, {two})", f"cube({one}, {two})", f"{one}, {two} with rollup"]
        groups += [f"grouping sets (({one}, {two}), ({one}))", f"{one}, rollup({two})"]
        if over:
            window = f"window({writer.name(over[0])}, '5 minutes')"
            groups += [f"{window}, rollup({one}, {two})", f"cube({window}, {one}, {two})"]
        text = f"select {', '.join([one, two, *aggregates])} from {relation.id} group by {self.random.choice(groups)}"
        return Query(text, (*(replace(c, marked=False) for c in keys), *made), 1, shape="grouping sets")

    def _global(self, relation: Relation) -> Query:
        writer = Writer(self.random, relation.cols)
        aggregates, made = self._aggregates(writer)
        text = f"select {', '.join(aggregates)} from {relation.id}{self._where(writer)}"
        return Query(text, tuple(made), 1, shape="global aggregate")

    def _analytic(self, relation: Relation) -> Query:
        writer = Writer(self.random, relation.cols)
        number, order = writer.number(0)[0], writer.named_only()
        over = f"(partition by {writer.string(0)[0]} order by {order})"
        made = self.random.choice(
            [
                f"row_number() over {over}",
                f"sum({number}) over {over}",
                f"lag({number}) over {over}",
                f"rank() over {over}",
            ]
        )
        text = f"select *, {made} as place from {relation.id}"
        return Query(text, (*relation.cols, Col("place", "int")), shape="analytic")

    def _nested(self, relation: Relation) -> Query:
        inner = self.random.choice([self._select, self._grouped, self._windowed, self._distinct])(relation)
        outer = self.random.choice([self._select, self._select, self._grouped, self._windowed])
        query = outer(replace(relation, id="q", cols=inner.cols))
        text = query.text.replace(" from q", f" from ({inner.text}) {self.random.choice(['', 'as '])}q", 1)
        return replace(
            query,
            text=text,
            aggregations=query.aggregations + inner.aggregations,
            shape=f"nested {query.shape}",
        )

    def _cte(self, relation: Relation) -> Query:
        inner = self.random.choice([self._select, self._grouped, self._windowed])(relation)
        query = self._over_simple(replace(relation, id="step", cols=inner.cols))
        return replace(
            query,
            text=f"with step as ({inner.text}) {query.text}",
            aggregations=query.aggregations + inner.aggregations,
            shape="cte",
        )

    def _over_simple(self, relation: Relation) -> Query:
        return self.random.choice([self._select, self._select, self._grouped, self._distinct])(relation)

    def _self_union(self, relation: Relation) -> Query:
        word = self.random.choice(["union all", "union", "except", "intersect", "union distinct"])
        text = f"select * from {relation.id} {word} select * from {relation.id}"
        return Query(text, relation.cols, int(word != "union all"), shape=word)

    def _exploded(self, relation: Relation) -> Query:
        arrays = [col for col in relation.cols if col.type.startswith("array<")]
        writer = Writer(self.random, relation.cols)
        what = writer.name(arrays[0]) if arrays else f"split({writer.string(0)[0]}, ',')"
        type_ = arrays[0].type[len("array<") : -1] if arrays else "string"
        text = self.random.choice(
            [
                f"select *, explode({what}) as item from {relation.id}",
                f"select t.*, item from {relation.id} t lateral view explode({what}) e as item",
                f"select t.*, item from {relation.id} t lateral view outer explode({what}) e as item",
                f"select t.*, e.item from {relation.id} t, lateral explode({what}) as e(item)",
            ]
        )
        return Query(text, (*relation.cols, Col("item", type_)), shape="explode")

    def _self_join(self, relation: Relation) -> Query:
        keys = [c for c in relation.cols if c.family in {"number", "string"}]
        if not keys:
            return self._select(relation)
        key = self.random.choice(keys).name
        text = f"select l.* from {relation.id} l {self.random.choice(['join', 'left join', 'left semi join'])} {relation.id} r on l.{key} = r.{key}"
        condition = Condition(self.random, relation, relation, ("l", "r")).draw()
        if condition is not None and self._chance(0.6):
            text = f"select l.* from {relation.id} l {self.random.choice(['join', 'left join'])} {relation.id} r on {condition}"
        return Query(text, relation.cols, joins=1, shape="self-join")

    def _sampled(self, relation: Relation) -> Query:
        text = f"select * from {relation.id} tablesample (10 percent)"
        return Query(text, relation.cols, shape="sample")

    def _pivoted(self, relation: Relation) -> Query:
        strings = [c for c in relation.cols if c.family == "string"]
        numbers = [c for c in relation.cols if c.family == "number"]
        if not strings or not numbers:
            return self._select(relation)
        text = (
            f"select * from (select {strings[0].name}, {numbers[0].name} from {relation.id}) "
            f"pivot (sum({numbers[0].name}) for {strings[0].name} in ('a', 'b'))"
        )
        return Query(text, (Col("a", "bigint"), Col("b", "bigint")), 2, shape="pivot")

    def _joined(self, left: Relation, right: Relation) -> Query:
        kind = self.random.choice(_JOINS)
        names = ("a", "b") if self._chance(0.7) else (left.id, right.id)
        tables = [
            relation.id if relation.id == name else f"{relation.id} {self.random.choice(['', 'as '])}{name}"
            for relation, name in zip((left, right), names, strict=True)
        ]
        one_sided = "semi" in kind or "anti" in kind
        common = sorted(
            {c.name for c in left.cols if c.family in {"number", "string"}} & {c.name for c in right.cols}
        )
        condition = Condition(self.random, left, right, names).draw()
        using = bool(common) and "cross" not in kind and self._chance(0.25)
        if using:
            on = f" using ({self.random.choice(common)})"
        elif "cross" in kind or condition is None:
            kind, on = "cross join", ""
        else:
            on = f" on {condition}"
        if one_sided:
            items, cols = f"{names[0]}.*", list(left.cols)
        else:
            taken = {col.name.lower() for col in left.cols}
            extra = [c for c in right.cols if c.name.lower() not in taken]
            cols = [*left.cols, *extra]
            items = ", ".join([f"{names[0]}.*", *(f"{names[1]}.{c.name}" for c in extra)])
        text = f"select {items} from {tables[0]} {kind} {tables[1]}{on}"
        if kind == "join" and not using and condition is not None and self._chance(0.2):
            text = f"select {items} from {tables[0]}, {tables[1]} where {condition}"
        return Query(text, tuple(cols), joins=1, shape=f"sql {kind}")

    def _cte_join(self, left: Relation, right: Relation) -> Query:
        query = self._joined(replace(left, id="one"), replace(right, id="two"))
        text = f"with one as (select * from {left.id}), two as (select * from {right.id}) {query.text}"
        return replace(query, text=text, shape="cte join")

    def _set_operation(self, left: Relation, right: Relation) -> Query:
        pairs: list[tuple[Col, Col]] = []
        for one in left.cols:
            fits = [c for c in right.cols if c.family == one.family and c not in {p[1] for p in pairs}]
            if fits and one.family in {"number", "string", "timestamp", "date", "boolean"}:
                pairs.append((one, self.random.choice(fits)))
        pairs = pairs[:3]
        if not pairs:
            return self._joined(left, right)
        word = self.random.choice(
            ["union all", "union all", "union", "intersect", "except", "except all", "minus", "intersect all"]
        )
        first = ", ".join(one.name for one, _ in pairs)
        second = ", ".join(other.name for _, other in pairs)
        text = f"select {first} from {left.id} {word} select {second} from {right.id}"
        return Query(text, tuple(one for one, _ in pairs), int(word == "union"), shape=word)

    def _membership(self, left: Relation, right: Relation) -> Query:
        """A subquery over the second input in the condition of the first."""
        pairs = [
            (one, other)
            for one in left.cols
            for other in right.cols
            if one.family == other.family and one.family in {"number", "string"}
        ]
        if not pairs or (right.streaming and self._chance(0.8)):
            return self._joined(left, right)
        one, other = self.random.choice(pairs)
        condition = self.random.choice(
            [
                f"{one.name} in (select {other.name} from {right.id})",
                f"{one.name} not in (select {other.name} from {right.id})",
                f"exists (select 1 from {right.id} r where r.{other.name} = l.{one.name})",
                f"not exists (select 1 from {right.id} r where r.{other.name} = l.{one.name})",
                f"{one.name} > (select max({other.name}) from {right.id})",
                f"{one.name} = (select count(*) from {right.id})" if one.family == "number" else "true",
            ]
        )
        text = f"select * from {left.id} l where {condition}"
        if right.id not in condition:
            text = f"select * from {left.id} l where exists (select 1 from {right.id})"
        return Query(text, left.cols, shape="subquery")


def result(query: Query, node: str, inputs: list[Relation]) -> Relation:
    """The rows that come out of a node that runs the query."""
    made = merged(node, inputs, query.cols)
    streams = [relation.streaming for relation in inputs]
    return replace(
        made,
        aggregations=made.aggregations + (query.aggregations if made.streaming else 0),
        joins=made.joins + (query.joins if all(streams) else 0),
    )
