"""Mistakes that have nothing to do with streams, made on purpose: Spark's analyser refuses each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.differential.expressions import Writer, aggregate
from tests.differential.further import AVRO, CALLED
from tests.differential.relations import Col
from tests.differential.transforms import Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.differential.relations import Relation

Mistake = "Callable[[Random, Relation, str], Step | None]"


def unknown_column(random: Random, relation: Relation, node: str) -> Step:
    """A column that nobody has."""
    return _used(random, relation, node, random.choice(["nothing", "colour", "zz", "customer_id"]))


def misspelt_column(random: Random, relation: Relation, node: str) -> Step | None:
    """A column's name with a letter more, less or other."""
    names = [col.name for col in relation.cols if len(col.name) > 2 and col.name.isidentifier()]
    if not names:
        return None
    name = random.choice(names)
    at = random.randrange(1, len(name))
    wrong = random.choice(
        [name[:at] + name[at + 1 :], name[:at] + "e" + name[at:], name[: at - 1] + "y" + name[at:]]
    )
    known = {col.name.lower() for col in relation.cols}
    return (
        None if wrong.lower() in known or not wrong.isidentifier() else _used(random, relation, node, wrong)
    )


def unknown_qualifier(random: Random, relation: Relation, node: str) -> Step | None:
    """A column under the name of an input that isn't there."""
    cols = [col for col in relation.usable() if col.name.isidentifier()]
    structs = {col.name.lower() for col in relation.cols}
    return (
        None
        if not cols or "nobody" in structs
        else _used(random, relation, node, f"nobody.{random.choice(cols).name}")
    )


def unknown_field(random: Random, relation: Relation, node: str) -> Step:
    """A field that a struct doesn't have."""
    writer = Writer.over(random, relation)
    structs = writer.of_family("struct")
    owner = writer.name(random.choice(structs)) if structs else f"struct({writer.named_only()} as a)"
    return _used(random, relation, node, f"{owner}.{random.choice(['begin', 'stop', 'nothing'])}")


def ambiguous_column(random: Random, relation: Relation, node: str) -> Step | None:
    """A name that two columns have."""
    names = sorted(relation.ambiguous())
    return _used(random, relation, node, random.choice(names)) if names else None


def aggregate_out_of_place(random: Random, relation: Relation, node: str) -> Step:
    """An aggregate in a condition, among groups, within another aggregate or beside a plain column."""
    writer = Writer.over(random, relation)
    made = aggregate(writer)[0]
    plain = writer.named_only()
    forms: list[tuple[str, dict[str, Any]]] = [
        ("filter", {"condition": f"{made} is not null"}),
        ("filter", {"condition": "count(*) > 1"}),
        ("aggregate", {"group_by": {"k": made}, "aggregates": {"n": "count(*)"}}),
        ("aggregate", {"aggregates": {"n": f"sum({made})"}}),
        ("aggregate", {"aggregates": {"n": "max(count(*))"}}),
        ("select", {"columns": [f"{plain} as a", f"{made} as b"]}),
        ("with_columns", {"columns": {"n": "count(*)"}}),
        ("repartition", {"partitions": 2, "columns": ["count(1)"]}),
    ]
    gem, options = random.choice(forms)
    return _step(gem, options, relation, node)


def analytic_out_of_place(random: Random, relation: Relation, node: str) -> Step:
    """A window function in a condition or among groups."""
    plain = Writer.over(random, relation).named_only()
    made = random.choice([f"row_number() over (order by {plain})", f"count(*) over (partition by {plain})"])
    options: dict[str, Any] = {"condition": f"{made} = 1"}
    if random.random() < 0.4:
        options = {"group_by": {"k": made}, "aggregates": {"n": "count(*)"}}
    return _step("filter" if "condition" in options else "aggregate", options, relation, node)


def generator_out_of_place(random: Random, relation: Relation, node: str) -> Step:
    """A function that makes rows, in a condition, within another function or twice."""
    made = "explode(array(1, 2))"
    forms: list[tuple[str, dict[str, Any]]] = [
        ("filter", {"condition": f"{made} = 1"}),
        ("select", {"columns": [f"{made} as a", f"{made} as b"]}),
        ("select", {"columns": {"a": f"{made} + 1"}}),
        ("sort", {"by": [made]}),
    ]
    gem, options = random.choice(forms)
    return _step(gem, options, relation, node)


def not_boolean(random: Random, relation: Relation, node: str) -> Step:
    """A condition that is no condition."""
    writer = Writer.over(random, relation)
    text = random.choice([writer.number, writer.timestamp, writer.string])(1)[0]
    forms = [
        {"condition": text},
        {"condition": f"true and {writer.number(0)[0]}"},
        {"condition": f"not {writer.number(0)[0]}"},
    ]
    return _step("filter", random.choice(forms), relation, node)


def ungrouped(random: Random, relation: Relation, node: str) -> Step | None:
    """A column in an aggregation that isn't grouped by."""
    cols = relation.usable()
    if len(cols) < 2:
        return None
    writer = Writer.over(random, relation)
    key, other = random.sample(cols, 2)
    if key.family == "map" or any(col.family == "map" for col in (key, other)):
        return None
    text = writer.name(other)
    options: dict[str, Any] = {"group_by": [writer.name(key)], "aggregates": {"x": text}}
    roll = random.random()
    if roll < 0.3:
        options["aggregates"] = {"n": "count(*)", "x": f"coalesce({text}, {text})"}
    elif roll < 0.5:
        options["group_by"] = []
        options["aggregates"] = {"n": "count(*)", "x": text}
    elif roll < 0.6:
        options["aggregates"] = {"n": "count(*)"}
        options["having"] = f"{text} is not null" if other.name.lower() != key.name.lower() else "nothing > 1"
    elif roll < 0.75:
        query = f"select {text}, count(*) as n from {relation.id} group by {key.name}"
        if relation.ambiguous() or key.qualifier or other.qualifier:
            return None
        return _step("sql", {"query": query}, relation, node)
    return _step("aggregate", options, relation, node)


def untimely_watermark(random: Random, relation: Relation, node: str) -> Step | None:
    """A watermark on what is no timestamp."""
    free = [
        c
        for c in relation.usable()
        if c.family in {"string", "number", "date", "boolean", "array", "timestamp_ntz"}
    ]
    free = [col for col in free if col.name.lower() not in relation.ambiguous()]
    if not free or not relation.streaming:
        return None
    options = {"column": random.choice(free).name, "delay": "10 minutes"}
    return _step("watermark", options, relation, node)


def window_over_no_time(random: Random, relation: Relation, node: str) -> Step:
    """A window over a number or a flag."""
    writer = Writer.over(random, relation)
    column = random.choice([writer.number, writer.boolean])(1)[0]
    key = random.choice(["window", "session"])
    over = (
        {"column": column, "duration": "5 minutes"}
        if key == "window"
        else {"column": column, "gap": "5 minutes"}
    )
    return _step("aggregate", {key: over, "aggregates": {"n": "count(*)"}}, relation, node)


def unfit_union(random: Random, relation: Relation, node: str) -> Step | None:
    """A union with what has other columns, or a query's ``union`` with other numbers of columns."""
    if relation.ambiguous() or not relation.cols:
        return None
    first = relation.cols[0].name
    quoted = f"`{first}`"
    queries = [
        f"select * from {relation.id} union all select {quoted}, {quoted}, 1, 2, 3, 4, 5, 6, 7, 8, 9 from {relation.id}"
    ]
    if relation.cols[0].family in {"number", "string", "timestamp"}:
        queries.append(
            f"select {quoted} from {relation.id} union all select array({quoted}) from {relation.id}"
        )
        queries.append(
            f"select struct({quoted}) as s from {relation.id} union all select {quoted} from {relation.id}"
        )
    if relation.cols[0].family in {"timestamp", "date"}:
        queries.append(f"select {quoted} from {relation.id} union all select true from {relation.id}")
    return _step("sql", {"query": random.choice(queries)}, relation, node)


def wrong_argument(random: Random, relation: Relation, node: str) -> Step:
    """An argument of a type that the function doesn't take."""
    writer = Writer.over(random, relation)
    flag, text, moment, number = (
        writer.boolean(0)[0],
        writer.string(0)[0],
        writer.timestamp(0)[0],
        writer.number(0)[0],
    )
    scalar = random.choice(
        [
            f"year({flag})",
            f"{flag} + 1",
            f"upper(array({text}))",
            f"size({number})",
            f"{moment} * 2",
            f"{moment} + {moment}",
            f"array({number})[{text}.a]",
            f"case when {number} then 1 end",
            f"if({number}, 1, 2)",
            f"coalesce({flag}, {moment})",
            f"case when true then array(1) else {number} end",
            f"explode({number})",
            f"not {number}",
            f"-{flag}",
            f"abs({moment})",
            f"struct({number}) + 1",
            f"date_trunc({moment})",
            f"cast({flag} as date)",
            f"cast({moment} as array<int>)",
            f"date_add({flag}, 1)",
            f"array_contains({number}, 1)",
            f"transform({number}, x -> x)",
            f"window({number}, '5 minutes')",
            f"{flag} like 'a' + array(1)",
            f"greatest({number}, array(1))",
            f"{moment} > {flag}",
            f"{number} = array(1)",
            f"{number} in (array(1), 2)",
            f"concat({number}, array(1))",
        ]
    )
    summed = random.choice(
        [
            f"sum({flag})",
            f"avg({moment})",
            f"sum(array({number}))",
            f"stddev({flag})",
            f"max(map('a', {number}))",
        ]
    )
    forms: list[tuple[str, dict[str, Any]]] = [
        ("select", {"columns": {"x": scalar}}),
        ("with_columns", {"columns": {"x": scalar}}),
        ("filter", {"condition": f"({scalar}) is not null"}),
        ("aggregate", {"aggregates": {"x": summed}}),
    ]
    gem, options = random.choice(forms)
    return _step(gem, options, relation, node)


def wrong_call(random: Random, relation: Relation, node: str) -> Step:
    """A function that doesn't exist, or with too many or too few arguments."""
    text = Writer.over(random, relation).string(0)[0]
    made = random.choice(
        [
            f"uper({text})",
            f"upper({text}, 1)",
            "substring()",
            f"dateformat({text})",
            f"if({text} = 'a', 1)",
            "count_distinct(1)",
        ]
    )
    return _step("select", {"columns": {"x": made}}, relation, node)


def broken_syntax(random: Random, relation: Relation, node: str) -> Step:
    """What isn't SQL."""
    name = Writer.over(random, relation).named_only()
    made = random.choice(
        [
            f"{name} +",
            f"* {name}",
            f"{name} {name} {name}",
            "case when",
            f"{name} = = 1",
            f"cast({name} as)",
            f"{name} in (",
            f"cast({name} as nothing)",
        ]
    )
    gem = random.choice(["filter", "select", "sql"])
    options: dict[str, Any] = {"condition": made} if gem == "filter" else {"columns": {"x": made}}
    if gem == "sql":
        options = {"query": f"select {made} from {relation.id}"}
    return _step(gem, options, relation, node)


def json_of_no_text(random: Random, relation: Relation, node: str) -> Step | None:
    """``from_json`` of a column that isn't there, or of one that can't be text."""
    wrong = [col.name for col in relation.usable() if col.family in {"array", "map"} and not col.qualifier]
    column = random.choice([*wrong, "nothing"])
    return _step("from_json", {"column": column, "schema": "a int"}, relation, node)


def wrong_query(random: Random, relation: Relation, node: str) -> Step | None:
    """A query that is wrong in ways of its own."""
    if relation.ambiguous() or not relation.cols:
        return None
    name = f"`{relation.cols[0].name}`"
    query = random.choice(
        [
            f"select {name} from {relation.id} group by nothing",
            f"select {name} from {relation.id} order by nothing",
            f"select {name} from {relation.id} having nothing > 1",
            f"select {name} from {relation.id} where count(*) > 1",
            f"select nothing.* from {relation.id}",
            f"select a.{name} from {relation.id} b",
            f"select {name}, count(*) from {relation.id}",
            f"select {name} from {relation.id} group by 7",
            f"select * from {relation.id} a join {relation.id} b on {name} = 1",
            f"select {name} from {relation.id} a, {relation.id} b",
            f"select * from {relation.id} where {name} in (select {name}, 1 from {relation.id})",
            f"select * from {relation.id} order by 99",
        ]
    )
    return _step("sql", {"query": query}, relation, node)


def unknown_column_elsewhere(random: Random, relation: Relation, node: str) -> Step | None:
    """A column that nobody has, in one of the gems that edits don't draw."""
    name = random.choice(["nothing", "colour", "zz"])
    if any(col.name.lower() == name for col in relation.cols):
        return None
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    forms: list[tuple[str, dict[str, Any]]] = [
        ("stateful", {"processor": f"{CALLED}:Keeping", "group_by": [name], "schema": "n bigint"}),
        ("from_avro", {"column": name, "schema": record}),
        ("from_avro", {"column": name, "schema": record, "rejects": True}),
        ("to_avro", {"columns": [name]}),
        ("to_avro", {"columns": {"x": f"upper({name})"}}),
        ("from_debezium", {"column": name, "schema": "id bigint"}),
        ("rest_enrich", {"url": f"https://api.example.com/{{{name}}}", "schema": "a int"}),
        (
            "rest_enrich",
            {
                "url": "https://api.example.com/",
                "method": "POST",
                "body": {"x": f"{name} + 1"},
                "schema": "a int",
            },
        ),
        ("with_columns", {"columns": {"x": f"cast({name} as int)"}, "rejects": True}),
        ("expect", {"rules": {"a": {"condition": f"{name} > 1", "action": "drop"}}}),
    ]
    gem, options = random.choice(forms)
    return _step(gem, options, relation, node)


def unknown_column_of_rejected(random: Random, relation: Relation, node: str) -> Step:
    """A column that rejected rows don't have, such as one of those that came in."""
    return _used(random, relation, node, random.choice(["page", "user", "value", "reason", "nothing"]))


def avro_of_no_bytes(random: Random, relation: Relation, node: str) -> Step | None:
    """``from_avro`` of a column that isn't bytes."""
    wrong = [col.name for col in relation.usable() if col.family != "binary" and not col.qualifier]
    if not wrong:
        return None
    fields, _ = random.choice(AVRO)
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}
    options: dict[str, Any] = {"column": random.choice(wrong), "schema": schema}
    if random.random() < 0.4:
        options["rejects"] = True
    return _step("from_avro", options, relation, node)


def unknown_event_time(random: Random, relation: Relation, node: str) -> Step | None:
    """A processor whose event time isn't there. Of what is no timestamp Spark says nothing before a row comes."""
    keys = [c for c in relation.usable() if c.family in {"string", "number"}]
    keys = [col for col in keys if col.name.lower() not in relation.ambiguous()]
    if not keys or not relation.marked():
        return None
    options = {
        "processor": f"{CALLED}:Keeping",
        "group_by": [random.choice(keys).name],
        "schema": "n bigint, page string, day date",
        "time": "event",
        "event_time": random.choice(["at", "seen", "nothing"]),
    }
    return _step("stateful", options, relation, node)


MISTAKES: dict[str, Callable[[Random, Relation, str], Step | None]] = {
    mistake.__name__: mistake
    for mistake in (
        unknown_column,
        misspelt_column,
        unknown_qualifier,
        unknown_field,
        ambiguous_column,
        aggregate_out_of_place,
        analytic_out_of_place,
        generator_out_of_place,
        not_boolean,
        ungrouped,
        untimely_watermark,
        window_over_no_time,
        unfit_union,
        wrong_argument,
        wrong_call,
        broken_syntax,
        json_of_no_text,
        wrong_query,
    )
}
FURTHER_MISTAKES: dict[str, Callable[[Random, Relation, str], Step | None]] = {
    mistake.__name__: mistake
    for mistake in (
        unknown_column_elsewhere,
        unknown_column_of_rejected,
        avro_of_no_bytes,
        unknown_event_time,
    )
}
"""Those that only the comparison with Spark draws, as `tests.differential.further` says."""

WEIGHTS = {
    "unknown_column_elsewhere": 10,
    "unknown_column_of_rejected": 20,
    "unknown_event_time": 12,
    "unknown_column": 16,
    "misspelt_column": 16,
    "ambiguous_column": 14,
    "ungrouped": 8,
    "untimely_watermark": 8,
    "wrong_argument": 10,
    "not_boolean": 6,
    "aggregate_out_of_place": 6,
}


def _step(gem: str, options: dict[str, Any], relation: Relation, node: str) -> Step:
    return Step(gem, options, [relation], relation.followed_by(node, relation.cols))


def _used(random: Random, relation: Relation, node: str, name: str) -> Step:
    """A transform that uses a name."""
    writer = Writer.over(random, relation)
    plain = name.isidentifier()
    # In a query an output of a node is called by its own name.
    table = relation.id.rpartition(".")[2]
    window = {"column": name, "duration": "5 minutes"}
    forms: list[tuple[str, dict[str, Any]]] = [
        ("filter", {"condition": f"{name} is not null"}),
        ("filter", {"condition": f"({writer.boolean(1)[0]}) and {name} = 1"}),
        ("select", {"columns": [name]}),
        ("select", {"columns": {"x": f"coalesce({name}, {name})"}}),
        ("select", {"columns": [f"upper({name}) as x"]}),
        ("with_columns", {"columns": {"x": f"concat({name}, 'a')"}}),
        ("aggregate", {"group_by": [name], "aggregates": {"n": "count(*)"}}),
        ("aggregate", {"aggregates": {"n": f"max({name})"}}),
        ("aggregate", {"window": window, "aggregates": {"n": "count(*)"}}),
        (
            "aggregate",
            {"aggregates": {"n": "count(*)"}, "having": f"{name}_2 > 1" if plain else f"{name} > 1"},
        ),
        ("sort", {"by": [f"{name} desc"]}),
        ("repartition", {"partitions": 2, "columns": [name]}),
        ("to_json", {"columns": [name]}),
    ]
    if plain:
        forms += [("watermark", {"column": name, "delay": "1 minute"}), ("deduplicate", {"columns": [name]})]
        forms.append(("rename", {"columns": {name: "other"}}))
        if relation.ambiguous():
            forms = [form for form in forms if form[0] not in {"rename", "deduplicate"}]
    elif "." in name and not relation.ambiguous() and not any(col.qualifier for col in relation.cols):
        forms.append(("sql", {"query": f"select {name} from {table}"}))
    if plain and not relation.ambiguous():
        forms += [("sql", {"query": f"select {name} from {table}"})]
        forms += [("sql", {"query": f"select count(*) as n from {table} where {name} > 1"})]
    gem, options = random.choice(forms)
    step = _step(gem, options, relation, node)
    return step if gem != "select" else replace(step, made=relation.followed_by(node, [Col("x", "string")]))
