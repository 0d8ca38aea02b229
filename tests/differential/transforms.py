"""Transforms at random, one function for each gem: the node, and the rows that come out of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import quoted
from tests.differential.conditions import Condition
from tests.differential.expressions import DURATIONS, Writer, aggregate
from tests.differential.queries import Queries, result
from tests.differential.relations import WINDOW, Col, Relation, merged

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

DELAYS = (
    "10 minutes",
    "1 hour",
    "30 seconds",
    "0 seconds",
    "1 day",
    "1 hour 30 minutes",
    "2 weeks",
    "500 milliseconds",
)
JSON_SCHEMAS = (
    "page string, user bigint, at timestamp, amount double",
    "id bigint, at timestamp, kind string",
    "at timestamp, payload struct<t: timestamp, n: int>, tags array<string>",
    "id int, page string, amount decimal(10,2), at timestamp, seen timestamp",
)
HOWS = ("inner",) * 7 + ("left",) * 6 + ("right",) * 3 + ("full",) * 3 + ("left_semi",) * 3 + ("left_anti",) * 2 + ("left_outer", "LEFT SEMI")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A transform that was drawn.

    Args:
        gem: Its gem.
        options: Its options.
        inputs: The relations it reads.
        made: What comes out.
        names: The keys of ``inputs: {left: …}``, where it has them.
        shape: What it is, for counting.
    """

    gem: str
    options: dict[str, Any]
    inputs: list[Relation]
    made: Relation
    names: tuple[str, ...] = ()
    shape: str = ""

    def node(self) -> dict[str, Any]:
        """The node as the pipeline file has it."""
        ids = [relation.id for relation in self.inputs]
        found: dict[str, Any] = {"gem": self.gem}
        if self.names:
            found["inputs"] = dict(zip(self.names, ids, strict=True))
        elif len(ids) == 1:
            found["input"] = ids[0]
        else:
            found["inputs"] = ids
        if self.options:
            found["options"] = self.options
        return found


def select(random: Random, relation: Relation, node: str) -> Step:
    """Columns as they are, renamed and computed, with a liking for event time."""
    writer = Writer.over(random, relation)
    usable = [col for col in relation.usable() if random.random() < 0.75] or relation.usable()[:1]
    named = random.random() < 0.5
    texts: list[tuple[str, str]] = []
    cols: list[Col] = []
    taken: set[str] = set()

    def add(name: str, text: str, col: Col) -> None:
        if name.lower() not in taken:
            taken.add(name.lower())
            texts.append((name, text))
            cols.append(replace(col, name=name))

    for col in usable:
        if random.random() < 0.12:
            add(f"{col.name}_{len(cols)}", writer.name(col), replace(col, qualifier=None))
        else:
            kept = col if not named else replace(col, qualifier=None)
            add(col.name, writer.name(col), kept)
    for number in range(random.choice([0, 1, 1, 2])):
        if random.random() < 0.55:
            text, type_, marked = writer.event_time()
        else:
            (text, type_), marked = writer.any(3), False
        add(random.choice([f"c{number}", f"c{number}", "at", "page"]), text, Col("", type_, marked))
    if not cols:
        add("one", "1", Col("", "int"))
    columns: Any = dict(texts)
    if not named:
        columns = [
            text
            if _unquoted(text).lower() == name.lower()
            else f"{text} {random.choice(['as', 'as', 'AS'])} {name}"
            for name, text in texts
        ]
        if random.random() < 0.15 and not relation.ambiguous():
            new = [
                (t, c)
                for t, c in zip(columns, cols, strict=True)
                if c.name.lower() not in {k.name.lower() for k in relation.cols}
            ]
            columns = ["*", *(t for t, _ in new)]
            cols = [*relation.cols, *(c for _, c in new)]
    return Step("select", {"columns": columns}, [relation], relation.followed_by(node, cols))


def with_columns(random: Random, relation: Relation, node: str) -> Step:
    """New columns, and existing ones replaced."""
    writer = Writer.over(random, relation)
    columns: dict[str, str] = {}
    cols = list(relation.cols)
    for number in range(random.choice([1, 1, 2, 3])):
        if random.random() < 0.4:
            text, type_, marked = writer.event_time()
        else:
            (text, type_), marked = writer.any(3), False
        known = [col.name for col in relation.usable() if col.name.lower() not in relation.ambiguous()]
        name = random.choice(known) if known and random.random() < 0.25 else f"v{number}"
        if name.lower() in {key.lower() for key in columns}:
            continue
        columns[name] = text
        made = Col(name, type_, marked)
        position = next((i for i, c in enumerate(cols) if c.name.lower() == name.lower()), None)
        if position is None:
            cols.append(made)
        else:
            cols[position] = replace(made, name=cols[position].name)
    return Step("with_columns", {"columns": columns}, [relation], relation.followed_by(node, cols))


def rename(random: Random, relation: Relation, node: str) -> Step | None:
    """Other names."""
    free = [col for col in relation.cols if col.name.lower() not in relation.ambiguous()]
    if not free:
        return None
    chosen = random.sample(free, min(len(free), random.choice([1, 1, 2])))
    new = {col.name: random.choice([f"{col.name}_2", f"{col.name}x", "moment", "who"]) for col in chosen}
    if len(chosen) == 2 and random.random() < 0.15:
        new = {chosen[0].name: chosen[1].name, chosen[1].name: chosen[0].name}
    names = {col.name.lower() for col in relation.cols} - {old.lower() for old in new}
    if len({name.lower() for name in new.values()}) < len(new) or names & {n.lower() for n in new.values()}:
        return None
    cols = [replace(c, name=new[c.name], qualifier=None) if c.name in new else c for c in relation.cols]
    return Step("rename", {"columns": new}, [relation], relation.followed_by(node, cols))


def drop(random: Random, relation: Relation, node: str) -> Step | None:
    """Fewer columns."""
    free = [col for col in relation.cols if col.name.lower() not in relation.ambiguous()]
    if len(relation.cols) < 3 or not free:
        return None
    gone = random.choice(free)
    cols = [col for col in relation.cols if col is not gone]
    return Step("drop", {"columns": [gone.name]}, [relation], relation.followed_by(node, cols))


def filter_(random: Random, relation: Relation, node: str) -> Step:
    """A condition."""
    condition = Writer.over(random, relation).boolean(3)[0]
    return Step("filter", {"condition": condition}, [relation], relation.followed_by(node, relation.cols))


def expect(random: Random, relation: Relation, node: str) -> Step:
    """Rules, of a condition and of a column."""
    writer = Writer.over(random, relation)
    rules = {"held": writer.boolean(0)[0], "there": {"column": writer.named_only(), "not_null": True}}
    return Step("expect", {"rules": rules}, [relation], relation.followed_by(node, relation.cols))


def once(random: Random, relation: Relation, node: str) -> Step | None:
    """Values that come once: in a micro-batch, or as long as a watermark remembers them."""
    within = random.random() < 0.75
    # Behind what is remembered no name of an input stands before a column.
    cols = [replace(col, qualifier=None) for col in relation.cols] if within else relation.cols
    found = replace(relation, cols=tuple(cols))
    free = [c for c in found.usable() if c.family not in {"map", "variant"} and "map<" not in c.type]
    if not free:
        return None
    writer = Writer.over(random, found)
    rules: dict[str, Any] = {}
    for number, col in enumerate(random.sample(free, min(len(free), random.choice([1, 1, 2])))):
        unique = "within_watermark" if within and number == 0 else True
        rules[f"once{number}"] = {"column": writer.name(col), "unique": unique}
    if random.random() < 0.4:
        rules["held"] = writer.boolean(0)[0]
    made = relation.followed_by(node, found.cols)
    return Step("expect", {"rules": rules}, [relation], made, shape="within watermark" if within else "once")


def route(random: Random, relation: Relation, node: str) -> Step | None:
    """Rows dealt out by conditions, of which one output is read."""
    if not relation.usable():
        return None
    writer = Writer.over(random, relation)
    options: dict[str, Any] = {
        "conditions": {"a": writer.boolean(0)[0], "b": writer.boolean(0)[0]},
        "rest": "c",
    }
    if random.random() < 0.4:
        options["matching"] = "all"
    made = relation.followed_by(f"{node}.{random.choice('abc')}", relation.cols)
    return Step("route", options, [relation], made)


def limit(random: Random, relation: Relation, node: str) -> Step:
    """So many rows."""
    return Step(
        "limit", {"rows": random.choice([0, 1, 100])}, [relation], relation.followed_by(node, relation.cols)
    )


def sort(random: Random, relation: Relation, node: str) -> Step:
    """An order."""
    sortable = [col for col in relation.usable() if col.family != "map"]
    writer = Writer(random, sortable, relation.ambiguous())
    keys = []
    for _ in range(random.choice([1, 1, 2])):
        key = writer.named_only() if random.random() < 0.7 else writer.number(1)[0]
        keys.append(f"{key}{random.choice(['', '', ' desc', ' asc', ' desc nulls last'])}")
    return Step("sort", {"by": keys}, [relation], relation.followed_by(node, relation.cols))


def repartition(random: Random, relation: Relation, node: str) -> Step:
    """Other partitions."""
    writer = Writer.over(random, relation)
    options: dict[str, Any] = {"partitions": 4}
    if random.random() < 0.5:
        options["columns"] = [writer.named_only() if random.random() < 0.7 else writer.string(1)[0]]
    return Step("repartition", options, [relation], relation.followed_by(node, relation.cols))


def watermark(random: Random, relation: Relation, node: str) -> Step | None:
    """A watermark on a timestamp or, rarely, on a window."""
    free = [
        c
        for c in relation.usable()
        if c.type in {"timestamp", WINDOW} and c.name.lower() not in relation.ambiguous()
    ]
    times = [col for col in free if col.type == "timestamp" or random.random() < 0.3]
    if not times:
        return None
    likely = [col for col in times if col.name in {"at", "timestamp"}]
    col = random.choice(likely if likely and random.random() < 0.7 else times)
    cols = [replace(c, marked=relation.streaming and c is col) for c in relation.cols]
    options = {"column": col.name, "delay": random.choice(DELAYS)}
    return Step("watermark", options, [relation], relation.followed_by(node, cols))


def aggregate_(random: Random, relation: Relation, node: str) -> Step:
    """Groups, windows over time, sessions, aggregates, a condition on the result."""
    writer = Writer.over(random, relation)
    options: dict[str, Any] = {}
    cols: list[Col] = []
    roll = random.random()
    times = [col for col in relation.usable() if col.type in {"timestamp", WINDOW}]
    shape = "global"
    if times and roll < 0.62:
        times = [col for col in times if col.marked] or times
        col = random.choice(times)
        over, marked = writer.name(col), col.marked
        if random.random() < 0.2:
            text, type_, mark = writer.event_time()
            if type_ in {"timestamp", WINDOW}:
                over, marked = text, mark
        shape = "session" if roll < 0.1 else "window"
        if shape == "session":
            gap = random.choice(["5 minutes", "1 hour", "case when 1 = 1 then '1 hour' else '5 minutes' end"])
            options["session"] = {"column": over, "gap": gap}
            cols.append(Col("session_window", WINDOW, marked))
        else:
            options["window"] = {"column": over, "duration": random.choice(DURATIONS)}
            if random.random() < 0.2:
                options["window"] |= {"duration": "1 hour", "slide": "15 minutes"}
            cols.append(Col("window", WINDOW, marked))
    share = 0.18 if cols else 0.3
    groupable = [col for col in relation.usable() if col.family not in {"map", "array"}]
    chosen = [col for col in groupable if random.random() < share]
    keys = [(col.name, writer.name(col), col) for col in chosen]
    if random.random() < 0.12:
        text, type_, marked = writer.event_time() if random.random() < 0.5 else (*writer.any(1), False)
        keys.append(("k", text, Col("k", type_, marked)))
    unique = {name.lower(): (name, text, col) for name, text, col in keys}
    keys = [key for low, key in unique.items() if low not in {col.name.lower() for col in cols}][:3]
    taken = {col.name.lower() for col in cols} | {name.lower() for name, _, _ in keys}
    named = any(name == "k" for name, _, _ in keys) or random.random() < 0.3
    if keys:
        options["group_by"] = {n: t for n, t, _ in keys} if named else [text for _, text, _ in keys]
        shape = f"{shape} group" if cols else "group"
    cols += [replace(col, name=name, qualifier=None if named else col.qualifier) for name, _, col in keys]
    options["aggregates"] = {}
    made: list[Col] = []
    for name in ("n", "total", "latest")[: random.choice([1, 1, 2, 3])]:
        if name.lower() not in taken:
            text, type_ = aggregate(writer)
            options["aggregates"][name] = text
            made.append(Col(name, type_))
    if not made:
        options["aggregates"]["counted"] = "count(*)"
        made.append(Col("counted", "bigint"))
    pivoted = _pivoted(random, writer, relation, options, made)
    if pivoted:
        found = relation.followed_by(node, [*cols, *pivoted])
        found = replace(found, aggregations=relation.aggregations + 2 * int(relation.streaming))
        return Step("aggregate", options, [relation], found, shape=f"{shape} pivot")
    if random.random() < 0.15:
        name = made[0].name
        options["having"] = random.choice(
            [f"{name} is not null", f"{name} is not null and 1 = 1", f"not ({name} is null)"]
        )
    found = relation.followed_by(node, [*cols, *made])
    found = replace(found, aggregations=relation.aggregations + int(relation.streaming))
    return Step("aggregate", options, [relation], found, shape=shape)


def _pivoted(
    random: Random, writer: Writer, relation: Relation, options: dict[str, Any], made: list[Col]
) -> list[Col]:
    """Now and then the aggregates for each of some values, of what can be written as a text."""
    over = relation.of_family("string", "number")
    if not over or random.random() > 0.06:
        return []
    values = random.choice([["a", "b"], [1, 2, True], ["x y"]])
    options["pivot"] = {"column": writer.name(random.choice(over)), "values": values}
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return [
        replace(col, name=f"{text}_{col.name}" if len(made) > 1 else text) for text in texts for col in made
    ]


def deduplicate(random: Random, relation: Relation, node: str) -> Step | None:
    """Each row once."""
    options: dict[str, Any] = {}
    free = [
        c for c in relation.usable() if c.family not in {"map"} and c.name.lower() not in relation.ambiguous()
    ]
    if random.random() < 0.8 and free:
        chosen = random.sample(free, min(len(free), random.choice([1, 1, 2])))
        chosen += [
            col for col in relation.marked() if random.random() < 0.4 and col in free and col not in chosen
        ]
        options["columns"] = [col.name for col in chosen]
    elif any(col.family == "map" for col in relation.cols):
        return None
    if random.random() < (0.4 if relation.marked() else 0.12):
        options["within_watermark"] = True
    shape = "within watermark" if options.get("within_watermark") else ""
    return Step("deduplicate", options, [relation], relation.followed_by(node, relation.cols), shape=shape)


def to_json(random: Random, relation: Relation, node: str) -> Step | None:
    """Columns into text."""
    if relation.ambiguous():
        return None
    options: dict[str, Any] = {}
    writer = Writer.over(random, relation)
    if random.random() < 0.5:
        options["columns"] = [writer.name(col) for col in relation.usable()[:3]]
    text = Col("value", "string")
    if random.random() < 0.5:
        options["keep"] = True
        cols = [text if c.name.lower() == "value" else c for c in relation.cols]
        cols = cols if text in cols else [*cols, text]
    else:
        cols = [text]
    return Step("to_json", options, [relation], relation.followed_by(node, cols))


def from_json(random: Random, relation: Relation, node: str) -> Step | None:
    """Text into columns."""
    texts = [c for c in relation.of_family("string", "binary") if c.name.lower() not in relation.ambiguous()]
    likely = [col for col in texts if col.name == "value"]
    if not texts:
        return None
    col = random.choice(likely or texts)
    schema = random.choice(JSON_SCHEMAS)
    found = [*Col("", f"struct<{schema}>").fields()]
    options: dict[str, Any] = {"column": col.name, "schema": schema}
    names = {field.name.lower() for field in found}
    kept = [c for c in relation.cols if c is not col]
    if random.random() < 0.45 and not names & {c.name.lower() for c in kept}:
        options["keep"] = True
        found = [*kept, *found]
    return Step("from_json", options, [relation], relation.followed_by(node, found))


def unpivot(random: Random, relation: Relation, node: str) -> Step | None:
    """Columns into rows."""
    if relation.ambiguous():
        return None
    numbers = relation.of_family("number")
    others = relation.of_family("string", "timestamp")
    of_one = [col for col in others if others and col.type == others[0].type]
    chosen = random.choice([found for found in (numbers, of_one) if found] or [[]])[:3]
    if not chosen:
        return None
    ids = [col for col in relation.cols if col not in chosen]
    options: dict[str, Any] = {"values": [col.name for col in chosen]}
    if ids and random.random() < 0.5:
        ids = random.sample(ids, random.randint(1, len(ids)))
        options["ids"] = [col.name for col in ids]
    names = {col.name.lower() for col in ids}
    if names & {"variable", "value"}:
        return None
    if random.random() < 0.3:
        options["include_nulls"] = False
    kind = chosen[0].type if len({col.type for col in chosen}) == 1 else "double"
    cols = [*(replace(col, qualifier=None) for col in ids), Col("variable", "string"), Col("value", kind)]
    return Step("unpivot", options, [relation], relation.followed_by(node, cols))


def flatten(random: Random, relation: Relation, node: str) -> Step | None:
    """Fields of structs as columns, elements of an array as rows."""
    structs = relation.of_family("struct")
    arrays = relation.of_family("array")
    if relation.ambiguous() or not structs + arrays:
        return None
    options: dict[str, Any] = {"depth": 1}
    taken = []
    if structs and (not arrays or random.random() < 0.7):
        taken = [random.choice(structs)]
        options["columns"] = [taken[0].name]
    apart = random.choice(arrays) if arrays and random.random() < 0.7 else None
    if apart is not None:
        options["explode"] = [apart.name]
    cols = []
    for col in relation.cols:
        inner = col if col is not apart else replace(col, type=col.type[len("array<") : -1], marked=False)
        if inner.fields() and (not taken or col in taken or col is apart):
            cols += [replace(field, name=f"{col.name}_{field.name}") for field in inner.fields()]
        else:
            cols.append(replace(inner, qualifier=None))
    if len({col.name.lower() for col in cols}) < len(cols):
        return None
    return Step("flatten", options, [relation], relation.followed_by(node, cols))


def sample(random: Random, relation: Relation, node: str) -> Step | None:
    """A part of the rows, mostly by the values of a column where it is a stream."""
    options: dict[str, Any] = {"fraction": random.choice([0, 0.5, 1]), "seed": 1}
    hashed = [
        col
        for col in relation.of_family("string", "number", "timestamp")
        if col.name.lower() not in relation.ambiguous()
    ]
    if hashed and random.random() < (0.8 if relation.streaming else 0.3):
        options["by"] = [random.choice(hashed).name]
    return Step("sample", options, [relation], relation.followed_by(node, relation.cols))


def set_operation(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """What two inputs have in common, or the first alone."""
    if left.ambiguous() or right.ambiguous() or any(col.family == "map" for col in left.cols):
        return None
    options: dict[str, Any] = {"operation": random.choice(["intersect", "except", "except"])}
    theirs = {col.name.lower(): col.family for col in right.cols}
    if {col.name.lower(): col.family for col in left.cols} != theirs:
        if [col.family for col in left.cols] != [col.family for col in right.cols]:
            return None
        options["by_name"] = False
    if random.random() < 0.3 and not (options["operation"] == "except" and left.streaming):
        options["all"] = True
    made = merged(node, [left, right], [replace(col, qualifier=None) for col in left.cols])
    shape = f"{options['operation']}{' all' if options.get('all') else ''}"
    return Step("set_operation", options, [left, right], made, shape=shape)


def _choice(random: Random, relation: Relation) -> tuple[dict[str, Any], list[Col]]:
    """Columns by their types, or by a pattern, and which those are."""
    if random.random() < 0.6:
        families = sorted({col.family for col in relation.cols} - {"void"})
        wanted = random.sample(families, random.randint(1, len(families)))
        return {"types": wanted}, [col for col in relation.cols if col.family in wanted]
    first = random.choice(relation.cols).name[:1].lower()
    return {"matching": f"^{first}"}, [col for col in relation.cols if col.name.lower().startswith(first)]


def dynamic_select(random: Random, relation: Relation, node: str) -> Step | None:
    """Columns by a rule."""
    if relation.ambiguous():
        return None
    options, chosen = _choice(random, relation)
    return Step("dynamic_select", options, [relation], relation.followed_by(node, chosen))


def bulk_columns(random: Random, relation: Relation, node: str) -> Step | None:
    """Many columns by one rule."""
    if relation.ambiguous():
        return None
    options, chosen = _choice(random, relation)
    # What can be computed of a value of any type: itself, or whether it is there.
    text, kind = random.choice([(None, None), ("{column}", None), ("{column} is null", "boolean")])
    if text is not None:
        options["expression"] = text
    if text is None or random.random() < 0.5:
        options["name"] = random.choice(["{name}_b", "b_{lower}"])
    options["keep"] = "name" in options and random.random() < 0.4
    made, added = [], []
    for col in relation.cols:
        if col not in chosen:
            made.append(replace(col, qualifier=None))
            continue
        name = options.get("name", "{name}").format(name=col.name, lower=col.name.lower())
        new = Col(name, kind or col.type, col.marked and kind is None)
        added += [new] if options["keep"] else []
        made.append(replace(col, qualifier=None) if options["keep"] else new)
    cols = [*made, *added]
    if len({col.name.lower() for col in cols}) < len(cols):
        return None
    return Step("bulk_columns", options, [relation], relation.followed_by(node, cols))


def clean(random: Random, relation: Relation, node: str) -> Step | None:
    """Texts in order, and nulls filled or left out."""
    if relation.ambiguous():
        return None
    options: dict[str, Any] = random.choice(
        [
            {"white_space": "collapse", "remove": ["control", "punctuation"]},
            {"case": "title", "empty_as_null": True},
            {"drop_rows": "any"},
            {"drop_rows": "all", "nulls": {"text": "?", "number": 0, "boolean": False}},
        ]
    )
    if relation.usable() and random.random() < 0.5:
        options = {**options, "columns": [random.choice(relation.usable()).name]}
    return Step("clean", options, [relation], relation.followed_by(node, relation.cols))


def window_function(random: Random, relation: Relation, node: str) -> Step | None:
    """Places and running totals."""
    numbers, sortable = relation.of_family("number"), relation.of_family("number", "string", "timestamp")
    if relation.ambiguous() or not sortable:
        return None
    writer = Writer.over(random, relation)
    made = [
        ("place", "row_number()", "int"),
        ("before", f"lag({writer.name(sortable[0])})", sortable[0].type),
    ]
    if numbers:
        made.append(("top", f"max({writer.name(numbers[0])})", numbers[0].type))
    chosen = random.sample(made, random.randint(1, len(made)))
    options: dict[str, Any] = {"columns": {name: text for name, text, _ in chosen}}
    options["order_by"] = [f"{writer.name(random.choice(sortable))}{random.choice(['', ' desc'])}"]
    if random.random() < 0.5:
        options["partition_by"] = [writer.name(random.choice(sortable))]
    if random.random() < 0.3:
        options["frame"] = {"start": "2 preceding", "end": "1 following"}
    new = {name: Col(name, kind) for name, _, kind in chosen}
    cols = [col for col in relation.cols if col.name.lower() not in new]
    if len(cols) < len(relation.cols):
        return None
    cols += new.values()
    return Step("window_function", options, [relation], relation.followed_by(node, cols))


def lookup(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """Columns of a table."""
    keys = [
        key for key in _common(left, right) if "struct" not in {c.family for c in right.cols if c.name == key}
    ]
    known = {col.name.lower() for col in left.cols}
    free = [col for col in right.usable() if col.name.lower() not in right.ambiguous()]
    if right.streaming or not keys or not free or "found" in known:
        return None
    col = random.choice(free)
    options: dict[str, Any] = {"on": [random.choice(keys)], "columns": {"found": col.name}}
    if random.random() < 0.5:
        options["missing"] = "drop"
    cols = [*left.cols, Col("found", col.type)]
    return Step("lookup", options, [left, right], merged(node, [left, right], cols))


def compare(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """Two tables by key."""
    if left.streaming or right.streaming:
        return None
    common = _common(left, right)
    if len(common) < 2 or {"status", "differing", "left", "right"} & {name.lower() for name in common}:
        return None
    key, *others = random.sample(common, len(common))
    kinds = [
        next(c.type for c in side.cols if c.name.lower() == name.lower())
        for name in others
        for side in (left, right)
    ]
    here, there = (
        ", ".join(f"{quoted(name)}: {kind}" for name, kind in zip(others, kinds[start::2], strict=True))
        for start in (0, 1)
    )
    cols = [
        next(replace(col, name=key, qualifier=None) for col in left.cols if col.name.lower() == key.lower()),
        Col("status", "string"),
        Col("differing", "array<string>"),
        Col("left", f"struct<{here}>"),
        Col("right", f"struct<{there}>"),
    ]
    options = {"on": [key], "columns": others}
    return Step("compare", options, [left, right], merged(node, [left, right], cols))


def fuzzy_match(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """Rows that are nearly the same."""
    families = {col.name: col.family for col in left.cols}
    plain = [name for name in _common(left, right) if families[name] in {"string", "number"}]
    if not plain:
        return None
    key, field, block = (random.choice(plain) for _ in range(3))
    measure = random.choice(["edits", "words", "sound", "equal"])
    options: dict[str, Any] = {"id": key, "fields": {field: {"measure": measure}}, "block_by": [block]}
    names: tuple[str, ...] = ()
    if left.id == right.id:
        options["pairs"], names = "within", ("l", "r")
    cols = [
        next(replace(c, name=name, qualifier=None) for c in side.cols if c.name.lower() == key.lower())
        for side, name in ((left, "left_id"), (right, "right_id"))
    ]
    made = merged(node, [left, right], [*cols, Col("score", "double")])
    made = replace(made, joins=made.joins + int(left.streaming and right.streaming))
    return Step("fuzzy_match", options, [left, right], made, names)


def join(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """Two inputs side by side."""
    names: tuple[str, ...] = ()
    if left.id == right.id or random.random() < 0.2:
        names = ("l", "r")
    called = names or (left.id, right.id)
    how = random.choice(HOWS)
    options: dict[str, Any] = {} if how == "inner" and random.random() < 0.5 else {"how": how}
    one_sided = "semi" in how.lower() or "anti" in how.lower()
    common = _common(left, right)
    if random.random() < 0.02:
        options = {"how": "cross"}
        cols = [*_called(left, called[0]), *_called(right, called[1])]
    elif common and random.random() < (0.25 if left.marked() and right.marked() else 0.42):
        keys = random.sample(common, min(len(common), random.choice([1, 1, 2])))
        options["on"] = keys
        lower = {key.lower() for key in keys}
        first = [col for col in left.cols if col.name.lower() in lower]
        rest = [c for c in _called(left, called[0]) if c.name.lower() not in lower]
        if not one_sided:
            rest += [c for c in _called(right, called[1]) if c.name.lower() not in lower]
        first = [replace(col, marked=col.marked and how != "full", qualifier=None) for col in first]
        cols = [*first, *rest]
    else:
        condition = Condition(random, left, right, (called[0], called[1])).draw()
        if condition is None:
            return None
        options["condition"] = condition
        cols = (
            _called(left, called[0]) if one_sided else [*_called(left, called[0]), *_called(right, called[1])]
        )
    made = merged(node, [left, right], cols)
    both = left.streaming and right.streaming
    made = replace(made, joins=made.joins + int(both))
    shape = f"{how.lower()} {'stream' if left.streaming else 'static'}-{'stream' if right.streaming else 'static'}"
    return Step("join", options, [left, right], made, names, shape)


def union(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """Inputs one after the other."""
    names = [col.name.lower() for col in left.cols]
    others = [col.name.lower() for col in right.cols]
    if left.ambiguous() or right.ambiguous():
        return None
    options: dict[str, Any] = {}
    if set(names) == set(others):
        if random.random() < 0.2 and names == others:
            options["by_name"] = False
        cols = list(left.cols)
    elif [c.family for c in left.cols] == [c.family for c in right.cols] and random.random() < 0.7:
        options["by_name"] = False
        cols = list(left.cols)
    else:
        options["allow_missing_columns"] = True
        cols = [*left.cols, *(replace(c, marked=False) for c in right.cols if c.name.lower() not in names)]
    types = {col.name.lower(): col.family for col in right.cols}
    if options.get("by_name") is not False and any(
        types.get(c.name.lower(), c.family) != c.family for c in left.cols
    ):
        return None
    made = merged(node, [left, right], [replace(col, qualifier=None) for col in cols])
    return Step("union", options, [left, right], made)


def sql(random: Random, inputs: list[Relation], node: str) -> Step | None:
    """A query over one input or two."""
    if not all(relation.usable() for relation in inputs):
        return None
    if any(relation.ambiguous() for relation in inputs) or len({r.id for r in inputs}) < len(inputs):
        return None
    query = Queries(random, inputs).draw()
    return Step("sql", {"query": query.text}, inputs, result(query, node, inputs), shape=query.shape)


ONE_INPUT: dict[str, tuple[Callable[[Random, Relation, str], Step | None], int]] = {
    "select": (select, 12),
    "with_columns": (with_columns, 10),
    "rename": (rename, 6),
    "drop": (drop, 4),
    "filter": (filter_, 10),
    "expect": (expect, 3),
    "limit": (limit, 2),
    "sort": (sort, 2),
    "repartition": (repartition, 2),
    "watermark": (watermark, 10),
    "aggregate": (aggregate_, 14),
    "deduplicate": (deduplicate, 6),
    "to_json": (to_json, 2),
    "from_json": (from_json, 3),
    "unpivot": (unpivot, 2),
    "flatten": (flatten, 3),
    "sample": (sample, 1),
    "dynamic_select": (dynamic_select, 1),
    "bulk_columns": (bulk_columns, 2),
    "clean": (clean, 2),
    "window_function": (window_function, 1),
}


def _unquoted(text: str) -> str:
    return text.strip("()").rpartition(".")[2].strip("`")


def _called(relation: Relation, name: str) -> list[Col]:
    return [replace(col, qualifier=name) for col in relation.cols]


def _common(left: Relation, right: Relation) -> list[str]:
    """The names of columns that both have once, with types that can be compared."""
    there = {col.name.lower(): col for col in right.cols if col.name.lower() not in right.ambiguous()}
    return [
        col.name
        for col in left.cols
        if col.name.lower() not in left.ambiguous()
        and col.name.lower() in there
        and there[col.name.lower()].family == col.family
        and col.family not in {"map"}
    ]
