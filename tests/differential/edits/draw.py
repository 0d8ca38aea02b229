"""Edits at random of pipelines that were drawn: what people change, and what they shouldn't."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.differential.generator import _Pipeline
from tests.differential.transforms import ONE_INPUT, Step, join, sql, union

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.differential.relations import Relation

Values = dict[str, Any]


@dataclass(frozen=True)
class Edit:
    """An edit of a pipeline.

    Args:
        kind: What was done.
        values: Version 2, as its file has it.
        node: The node it was done to.
    """

    kind: str
    values: Values
    node: str = ""


class Recorded(_Pipeline):
    """A drawn pipeline that remembers its steps, so that they can be drawn anew."""

    def __init__(self, seed: str) -> None:
        self.steps: dict[str, Step] = {}
        super().__init__(seed, everything=False)

    def _add(self, node: str, step: Step) -> None:
        self.steps[node] = step
        super()._add(node, step)

    @property
    def relations(self) -> dict[str, Relation]:
        """What flows out of each node."""
        return {relation.id: relation for relation in self._pool}


def edits(recorded: Recorded, values: Values, target: str, random: Random, count: int) -> list[Edit]:
    """Different edits of one pipeline: what mappings have in another order is different too."""
    found: list[Edit] = []
    known = {json.dumps(values)}
    for _ in range(count * 8):
        if len(found) >= count:
            break
        kind = random.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
        made = KINDS[kind][0](recorded, copy.deepcopy(values), target, random)
        text = "" if made is None else json.dumps(made.values)
        if made is not None and text not in known:
            known.add(text)
            found.append(made)
    return found


def needed(values: Values, target: str) -> list[str]:
    """The nodes that a target needs, without itself."""
    found: list[str] = []
    waiting = _inputs(values["targets"][target])
    while waiting:
        name = waiting.pop().partition(".")[0]
        if name not in found:
            found.append(name)
            waiting += _inputs(values.get("transforms", {}).get(name, {}))
    return found


def _inputs(node: dict[str, Any]) -> list[str]:
    if "input" in node:
        return [node["input"]]
    inputs = node.get("inputs") or []
    return list(inputs.values()) if isinstance(inputs, dict) else list(inputs)


def redirect(values: Values, old: str, new: str, *, but: str = "") -> None:
    """Let everything that reads a node read another one.

    Args:
        values: The pipeline.
        old: The node.
        new: The other one.
        but: What goes on reading the node.
    """
    for section in ("transforms", "targets"):
        for name, node in values.get(section, {}).items():
            if name == but:
                continue
            if node.get("gem") == "sql" and old in _inputs(node):
                # Its query calls the rows what the node was called.
                given = node.pop("input", None) or node["inputs"]
                names = (
                    given
                    if isinstance(given, dict)
                    else {n: n for n in ([given] if isinstance(given, str) else given)}
                )
                node["inputs"] = {key: new if other == old else other for key, other in names.items()}
                continue
            if node.get("input") == old:
                node["input"] = new
            inputs = node.get("inputs")
            if isinstance(inputs, list):
                node["inputs"] = [new if other == old else other for other in inputs]
            elif isinstance(inputs, dict):
                node["inputs"] = {key: new if other == old else other for key, other in inputs.items()}


def _some_transform(values: Values, target: str, random: Random) -> str | None:
    found = [name for name in needed(values, target) if name in values.get("transforms", {})]
    return random.choice(found) if found else None


def _redraw(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Other options of the same gem."""
    name = _some_transform(values, target, random)
    step = recorded.steps.get(name or "")
    if name is None or step is None or (step.gem == "watermark" and random.random() < _TOLD_ENOUGH):
        return None
    makers: dict[str, Callable[[], Step | None]] = {
        gem: (lambda make=make: make(random, step.inputs[0], name)) for gem, (make, _) in ONE_INPUT.items()
    }
    if len(step.inputs) == 2:
        first, second = step.inputs
        makers = {
            "join": lambda: join(random, first, second, name),
            "union": lambda: union(random, first, second, name),
            "sql": lambda: sql(random, [first, second], name),
        }
    elif step.gem == "sql":
        makers["sql"] = lambda: sql(random, step.inputs, name)
    make = makers.get(step.gem)
    made = make() if make is not None else None
    if made is None:
        return None
    values["transforms"][name] = made.node()
    return Edit(f"redraw {step.gem}", values, name)


_TOLD_ENOUGH = 0.8  # most pipelines have a watermark, and its delay matters seldom
_NUMBER = re.compile(r"(?<![\w.])(\d{1,3})(?![\w.])")
_SWAPS = [
    ("count(*)", "count(1) + 1"),
    ("max(", "min("),
    ("min(", "max("),
    ("sum(", "avg("),
    ("avg(", "sum("),
    ("count(", "sum("),
    (" > ", " < "),
    (" < ", " >= "),
    (" = ", " != "),
    (" and ", " or "),
    ("is not null", "is null"),
    ("lower(", "upper("),
    ("upper(", "lower("),
    ("minutes", "hours"),
    ("hour", "day"),
]


def _tweak(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A small change in one text of one option."""
    name = _some_transform(values, target, random)
    if name is None or (values["transforms"][name]["gem"] == "watermark" and random.random() < _TOLD_ENOUGH):
        return None
    node = values["transforms"][name]
    places = list(_texts(node.get("options") or {}))
    random.shuffle(places)
    for holder, key, text in places:
        changed = [text.replace(old, new, 1) for old, new in _SWAPS if old in text]
        changed += (
            [_NUMBER.sub(lambda m: str(int(m[1]) * 2 + 1), text, count=1)] if _NUMBER.search(text) else []
        )
        if changed:
            holder[key] = random.choice(changed)
            return Edit(f"tweak {node['gem']}", values, name)
    return None


def _texts(value: Any) -> list[tuple[Any, Any, str]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, Any, str]] = []
    for key, inner in pairs:
        if isinstance(inner, str):
            found.append((value, key, inner))
        else:
            found += _texts(inner)
    return found


def _insert(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A transform between a node and those that read it."""
    names = [name for name in needed(values, target) if name in recorded.relations]
    before = random.choice(names)
    gem = random.choice(list(ONE_INPUT))
    step = ONE_INPUT[gem][0](random, recorded.relations[before], "inserted")
    if step is None:
        return None
    redirect(values, before, "inserted")
    values.setdefault("transforms", {})["inserted"] = step.node()
    return Edit(f"insert {gem}", values, "inserted")


def _remove(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A transform less."""
    name = _some_transform(values, target, random)
    if name is None or "input" not in values["transforms"][name]:
        return None
    node = values["transforms"].pop(name)
    redirect(values, name, node["input"])
    return Edit(f"remove {node['gem']}", values, name)


def _rename_transform(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A transform by another name, with or without saying so."""
    name = _some_transform(values, target, random)
    if name is None:
        return None
    told = random.random() < 0.5
    _rename(values, "transforms", name, told=told)
    return Edit(f"rename transform{' with was' if told else ''}", values, f"{name}x")


def _rename_source(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A source by another name, with or without saying so."""
    names = [name for name in needed(values, target) if name in values["sources"]]
    name = random.choice(names)
    told = random.random() < 0.5
    _rename(values, "sources", name, told=told)
    return Edit(f"rename source{' with was' if told else ''}", values, f"{name}x")


def _rename(values: Values, section: str, name: str, *, told: bool) -> None:
    new = f"{name}x"
    values[section] = {(new if key == name else key): node for key, node in values[section].items()}
    if told:
        values[section][new]["was"] = name
    for transforms in values.get("transforms", {}).values():
        inputs = transforms.get("inputs")
        if isinstance(inputs, list) and name in inputs:
            # Expressions go on calling it by its old name.
            transforms["inputs"] = {other: (new if other == name else other) for other in inputs}
    redirect(values, name, new)


def _replace(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Another gem in the place of one."""
    name = _some_transform(values, target, random)
    step = recorded.steps.get(name or "")
    if name is None or step is None or len(step.inputs) != 1:
        return None
    gem = random.choice([gem for gem in ONE_INPUT if gem != step.gem])
    made = ONE_INPUT[gem][0](random, step.inputs[0], name)
    if made is None:
        return None
    values["transforms"][name] = made.node()
    return Edit(f"replace {step.gem} by {gem}", values, name)


def _swap_inputs(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """The inputs of a node the other way round."""
    names = [n for n in needed(values, target) if "inputs" in values.get("transforms", {}).get(n, {})]
    if not names:
        return None
    name = random.choice(names)
    node = values["transforms"][name]
    inputs = node["inputs"]
    if isinstance(inputs, dict):
        node["inputs"] = dict(reversed(inputs.items()))
    else:
        node["inputs"] = list(reversed(inputs))
    return Edit(f"swap inputs of {node['gem']}", values, name)


def _move_source(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A source's rows come from another place."""
    names = [
        n
        for n in needed(values, target)
        if values["sources"].get(n, {}).get("gem") == "file" and values["sources"][n].get("mode") != "batch"
    ]
    if not names:
        return None
    name = random.choice(names)
    values["sources"][name]["options"]["path"] += "_moved"
    return Edit("another path", values, name)


def _mode(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Another output mode."""
    node = values["targets"][target]
    before = node.get("output_mode", "append")
    node["output_mode"] = random.choice([mode for mode in ("append", "update", "complete") if mode != before])
    return Edit(f"{before} to {node['output_mode']}", values, target)


def _add_source(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Another source of the same rows, in a union with the first."""
    names = [
        n
        for n in needed(values, target)
        if values["sources"].get(n, {}).get("gem") == "file" and values["sources"][n].get("mode") != "batch"
    ]
    if not names:
        return None
    name = random.choice(names)
    redirect(values, name, "both")
    added = copy.deepcopy(values["sources"][name])
    added["options"]["path"] += "_more"
    values["sources"]["added"] = added
    inputs = [name, "added"] if random.random() < 0.7 else ["added", name]
    values.setdefault("transforms", {})["both"] = {"gem": "union", "inputs": inputs}
    return Edit("add source", values, "added")


def _drop_input(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """A union less, and what was behind one of its inputs."""
    names = [
        n for n in needed(values, target) if values.get("transforms", {}).get(n, {}).get("gem") == "union"
    ]
    if not names:
        return None
    name = random.choice(names)
    kept = random.choice(_inputs(values["transforms"][name]))
    values["transforms"].pop(name)
    redirect(values, name, kept)
    return Edit("remove union", values, name)


def _reorder(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Two of the columns, keys or aggregates of a node in each other's place."""
    places = [
        (name, key)
        for name in needed(values, target)
        for key, found in (values.get("transforms", {}).get(name, {}).get("options") or {}).items()
        if key == "query" or (isinstance(found, list | dict) and len(found) > 1)
    ]
    if not places:
        return None
    name, key = random.choice(places)
    options = values["transforms"][name]["options"]
    found = options[key]
    if key == "query":
        options[key] = _with_items_swapped(found, random)
    elif isinstance(found, dict):
        options[key] = dict(_swapped(list(found.items()), random))
    else:
        options[key] = _swapped(found, random)
    return Edit(f"reorder {values['transforms'][name]['gem']}", values, name)


def _swapped(items: list[Any], random: Random) -> list[Any]:
    one, other = random.sample(range(len(items)), 2)
    items[one], items[other] = items[other], items[one]
    return items


def _with_items_swapped(query: str, random: Random) -> str:
    """A query with two of the items of a `select` in each other's place."""
    lists = [match for match in _ITEMS.finditer(query) if len(_parts(match[1])) > 1]
    if not lists:
        return query
    chosen = random.choice(lists)
    items = ", ".join(_swapped(_parts(chosen[1]), random))
    return f"{query[: chosen.start(1)]}{items}{query[chosen.end(1) :]}"


_ITEMS = re.compile(r"\bselect (?:distinct )?(.*?) from\b")


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no brackets and in no text."""
    found, depth, quote = [""], 0, ""
    for letter in text:
        if quote or letter in "'\"`":
            quote = "" if letter == quote else quote or letter
        depth += {"(": 1, ")": -1}.get("" if quote else letter, 0)
        if letter == "," and not depth and not quote:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def _arrange(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Columns in another order, some of them called otherwise, or with all of them as a text."""
    names = [name for name in needed(values, target) if name in recorded.relations]
    before = random.choice(names)
    usable = recorded.relations[before].usable()
    columns = [f"`{col.name}`" for col in usable]
    if len(set(columns)) < len(columns) or not columns:
        return None
    kind = random.choice(["arranged", "arranged", "called otherwise", "with a star"])
    if kind == "arranged":
        random.shuffle(columns)
    elif kind == "called otherwise":
        place = random.randrange(len(columns))
        columns[place] += " as called"
    else:
        columns.append(random.choice(["to_json(struct(*)) as every", "hash(*) as every"]))
    redirect(values, before, "arranged")
    values.setdefault("transforms", {})["arranged"] = {
        "gem": "select",
        "input": before,
        "options": {"columns": columns},
    }
    return Edit(f"insert columns {kind}", values, "arranged")


def _fork(recorded: Recorded, values: Values, target: str, random: Random) -> Edit | None:
    """Another way around a node, whose rows come together behind it."""
    name = _some_transform(values, target, random)
    if name is None or "input" not in values["transforms"][name]:
        return None
    before = values["transforms"][name]["input"]
    redirect(values, name, "forked")
    values["transforms"]["forked"] = {
        "gem": "union",
        "inputs": [name, before],
        "options": {"allow_missing_columns": True},
    }
    return Edit("fork", values, "forked")


KINDS: dict[str, tuple[Callable[[Recorded, Values, str, Random], Edit | None], int]] = {
    "redraw": (_redraw, 30),
    "tweak": (_tweak, 40),
    "insert": (_insert, 16),
    "remove": (_remove, 10),
    "rename transform": (_rename_transform, 4),
    "rename source": (_rename_source, 4),
    "replace": (_replace, 4),
    "swap inputs": (_swap_inputs, 4),
    "another path": (_move_source, 3),
    "output mode": (_mode, 5),
    "add source": (_add_source, 4),
    "remove union": (_drop_input, 3),
    "reorder": (_reorder, 14),
    "arrange": (_arrange, 8),
    "fork": (_fork, 3),
}
