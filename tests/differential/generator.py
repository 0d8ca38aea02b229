"""Pipelines at random, as the values of a pipeline file: what people write, and the corners.

Everything comes from one seed; no JVM is needed. Most pipelines are right as far as columns and types
go, so that Spark's analyser gets to its verdict on streaming. In the others one mistake was made on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential import further, sources, targets
from tests.differential.mistakes import FURTHER_MISTAKES, MISTAKES, WEIGHTS
from tests.differential.relations import Relation
from tests.differential.transforms import (
    ONE_INPUT,
    Step,
    compare,
    filter_,
    fuzzy_match,
    join,
    lookup,
    once,
    route,
    set_operation,
    sql,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_DEPTH = 8
MISTAKEN = 0.2
_TWO_INPUTS = {"join": 12, "union": 5, "sql": 6, "set_operation": 1, "table": 1.5, "fuzzy_match": 1}
MODES = ("append", "update", "complete")
_ONCE = 0.08
_FURTHER = 0.14
_FURTHER_SOURCES = 0.12
_FURTHER_TARGETS = 0.3
_REJECTED = 0.4
_WRONG_CHANGES = 0.1
WRONG_CHANGES = "wrong_changes"
# Mistakes that take rows of a kind that is rarely the one at hand.
_FITTING: dict[str, Callable[[Relation], bool]] = {
    "unknown_column_of_rejected": lambda relation: relation.id.endswith(".rejected"),
    "unknown_event_time": lambda relation: bool(relation.marked()),
}

UNDRAWN = {
    (
        "transform",
        "python",
    ): "what a function makes of a stream only the function knows, and Spark by calling it",
}
"""The gems that no pipeline is drawn with, by their kind and name, and why."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A pipeline that was drawn.

    Args:
        seed: What it came from.
        values: The pipeline as its file has it.
        mistake: The mistake that was made on purpose, if one was.
        shapes: What its nodes are, by node: the gem, and what of the gem.
    """

    seed: str
    values: dict[str, Any]
    mistake: str | None = None
    shapes: dict[str, str] = field(default_factory=dict)


def draw(seed: str) -> Drawn:
    """The pipeline of a seed: the same one every time.

    Some have values that come once, and their targets in groups. That is drawn apart from the rest, so that
    the edits of a seed, which are of queries without a group, stay what they are.
    """
    pipeline = _Pipeline(seed)
    drawn = pipeline.drawn()
    random = Random(f"{seed} values that come once")
    return pipeline.with_values_once(random) if random.random() < _ONCE else drawn


class _Pipeline:
    """A pipeline while it is drawn.

    Args:
        seed: What it comes from.
        everything: Draw all that can be compared with Spark; else what edits are drawn of, whose pipelines stay
            what they were, since what became of them is kept by their text.
    """

    def __init__(self, seed: str, *, everything: bool = True) -> None:
        self.random = Random(seed)
        self._everything = everything
        self._rejected: list[Relation] = []
        self._seed = seed
        self._mistake: str | None = None
        self._sources: dict[str, Any] = {}
        self._transforms: dict[str, Any] = {}
        self._targets: dict[str, Any] = {}
        self._shapes: dict[str, str] = {}
        self._pool: list[Relation] = []
        self._used: set[str] = set()
        self._batch = False

    def drawn(self) -> Drawn:
        random = self.random
        batch = random.random() < 0.02
        self._draw_sources(batch)
        steps = random.choices(range(1, 11), [4, 8, 12, 14, 14, 12, 10, 8, 6, 4])[0]
        mistaken = random.random() < MISTAKEN
        mistake_at = random.randrange(steps) if mistaken else -1
        for number in range(steps):
            if number >= mistake_at >= 0 and self._mistake is None and self._make_mistake(number):
                continue
            self._grow(number)
        self._draw_targets(batch)
        self._batch = batch
        return self._whole()

    def _whole(self) -> Drawn:
        values: dict[str, Any] = {"pipeline": "drawn"}
        if self._batch:
            values["mode"] = "batch"
        values["sources"] = self._sources
        if self._transforms:
            values["transforms"] = self._transforms
        values["targets"] = self._targets
        return Drawn(self._seed, values, self._mistake, self._shapes)

    def with_values_once(self, random: Random) -> Drawn:
        """The drawn pipeline, with values that come once before a target or all targets of a node.

        Behind them Spark is asked nothing, so they come last. Some of their targets are in one group.
        """
        for relation in self._pool:
            read = [name for name, node in self._targets.items() if node["input"] == relation.id]
            if not read or random.random() < 0.3:
                continue
            id_ = f"{relation.id}_once"
            step = once(random, relation, id_)
            if step is None:
                continue
            self._transforms[id_] = step.node()
            self._shapes[id_] = f"{step.gem} {step.shape}"
            for name in read if random.random() < 0.5 else read[:1]:
                node = self._targets[name]
                together = random.random() < 0.5
                node["input"] = id_
                node["group"] = f"{id_}_{node.get('output_mode', 'append')}" if together else f"{name}_alone"
        return self._whole()

    def _draw_sources(self, batch: bool) -> None:
        count = self.random.choices([1, 2, 3], [50, 40, 10])[0]
        for number in range(count):
            static = batch or (number > 0 and self.random.random() < 0.4) or self.random.random() < 0.01
            id_, node, relation = self._source(number, static=static)
            if batch:
                node.pop("mode", None)
            self._add_source(id_, node, relation, static=static)

    def _source(self, number: int, *, static: bool) -> tuple[str, dict[str, Any], Relation]:
        if self._everything and self.random.random() < _FURTHER_SOURCES:
            return sources.further(self.random, number, static=static)
        return (sources.table if static else sources.stream)(self.random, number)

    def _add_source(self, id_: str, node: dict[str, Any], relation: Relation, *, static: bool) -> None:
        self._sources[id_] = node
        self._shapes[id_] = f"source {node['gem']}{' batch' if static else ''}"
        self._pool.append(relation)
        if further.rejects(node):
            self._rejected.append(further.rejected(id_, relation))

    def _pick(self) -> Relation:
        """One of the nodes there are, mostly one of the last, and mostly a stream."""
        shallow = [relation for relation in self._pool if relation.depth < MAX_DEPTH]
        weights = [
            (6.0 if relation is shallow[-1] else 1.0)
            * (3.0 if relation.id not in self._used else 1.0)
            * (1.0 if relation.streaming else 0.4)
            for relation in shallow
        ]
        return self.random.choices(shallow, weights)[0]

    def _grow(self, number: int) -> None:
        """One more transform, or two: an output of a `route` is read by a filter, whose id has no dot in it."""
        for _ in range(6):
            if self._everything and self.random.random() < _FURTHER and self._grow_further(f"t{number}"):
                return
            if self.random.random() < 0.02:
                dealt = route(self.random, self._pick(), f"t{number}")
                if dealt is not None:
                    self._add(f"t{number}", dealt)
                    self._pool.pop()
                    self._add(f"t{number}_out", filter_(self.random, dealt.made, f"t{number}_out"))
                    return
            step = self._draw_step(f"t{number}")
            if step is not None and len(step.made.cols) <= 40:
                self._add(f"t{number}", step)
                return

    def _grow_further(self, node: str) -> bool:
        """One more of the transforms that edits don't draw, or one over rows that were rejected."""
        random = self.random
        relation = self._pick()
        step: Step | None = None
        tables = [other for other in self._pool if not other.streaming]
        if self._rejected and random.random() < 0.3:
            over = random.choice(self._rejected)
            name = random.choice(
                ["filter", "select", "with_columns", "watermark", "aggregate", "aggregate", "expect"]
            )
            step = ONE_INPUT[name][0](random, over, node) if over.depth < MAX_DEPTH else None
        elif tables and random.random() < 0.15:
            names = [*further.WITH_TABLE]
            name = random.choices(names, [further.WITH_TABLE[n][1] for n in names])[0]
            step = further.WITH_TABLE[name][0](random, relation, random.choice(tables), node)
        else:
            weights = {name: float(weight) for name, (_, weight) in further.ONE_INPUT.items()}
            if relation.of_family("binary"):
                weights["from_avro"] *= 4
            if relation.marked():
                weights["stateful"] *= 2
            name = random.choices(list(weights), list(weights.values()))[0]
            step = further.ONE_INPUT[name][0](random, relation, node) if relation.usable() else None
        if step is None or len(step.made.cols) > 40:
            return False
        self._add(node, step)
        return True

    def _draw_step(self, node: str) -> Step | None:
        random = self.random
        relation = self._pick()
        roll = random.random()
        if roll < 0.24 and not (relation.joins and random.random() < 0.5):
            other = self._partner(relation)
            first, second = (relation, other) if random.random() < 0.6 else (other, relation)
            kind = random.choices([*_TWO_INPUTS], list(_TWO_INPUTS.values()))[0]
            if kind == "join":
                return join(random, first, second, node)
            if kind == "fuzzy_match":
                return fuzzy_match(random, first, second, node)
            if kind == "table":
                tables = [r for r in self._pool if not r.streaming] or [second]
                other = random.choice(tables)
                return (
                    lookup(random, first, other, node)
                    if first.streaming or random.random() < 0.4
                    else compare(random, first, other, node)
                )
            if kind == "set_operation":
                return set_operation(random, first, self._like(first, second), node)
            return (
                union(random, first, second, node) if kind == "union" else sql(random, [first, second], node)
            )
        if roll < 0.34:
            return sql(random, [relation], node)
        weights = {name: float(weight) for name, (_, weight) in ONE_INPUT.items()}
        times = relation.of_family("timestamp")
        if relation.streaming and times and not relation.marked():
            weights["watermark"] *= 4
            weights["aggregate"] *= 0.6
        elif not relation.streaming or relation.marked():
            weights["watermark"] *= 0.15
        if relation.aggregations:
            weights["aggregate"] *= 0.45
            weights["sort"] *= 3
        if "value" in {col.name for col in relation.cols} and not times:
            weights["from_json"] *= 8
        name = random.choices(list(weights), list(weights.values()))[0]
        if not relation.usable() and name not in {"limit", "drop", "filter"}:
            return None
        return ONE_INPUT[name][0](random, relation, node)

    def _like(self, relation: Relation, other: Relation) -> Relation:
        """A relation with the same columns, where there is one: rows can be equal then."""
        names = {col.name.lower() for col in relation.cols}
        alike = [r for r in self._pool if {col.name.lower() for col in r.cols} == names]
        return self.random.choice(alike) if alike else other

    def _partner(self, relation: Relation) -> Relation:
        """A second input: another branch, an earlier node of the same branch, or a new source."""
        random = self.random
        if random.random() < 0.35 and len(self._sources) < 5:
            static = random.random() < 0.4
            id_, node, made = self._source(len(self._sources), static=static)
            if id_ not in self._sources:
                self._add_source(id_, node, made, static=static)
                times = [c for c in made.cols if c.type == "timestamp" and c.name in {"at", "timestamp"}]
                if not static and times and random.random() < 0.7:
                    id_ = f"{made.id}_timely"
                    marked = tuple(replace(c, marked=c is times[0]) for c in made.cols)
                    step = Step(
                        "watermark",
                        {"column": times[0].name, "delay": "5 minutes"},
                        [made],
                        made.followed_by(id_, marked),
                    )
                    self._add(id_, step)
                    made = self._pool[-1]
                return made
        others = [other for other in self._pool if other.depth < MAX_DEPTH]
        return random.choice(others) if others else relation

    def _make_mistake(self, number: int) -> bool:
        names = [*MISTAKES, *(FURTHER_MISTAKES if self._everything else ())]
        name = self.random.choices(names, [WEIGHTS.get(n, 3) for n in names])[0]
        relation = self._pick()
        if name == "ambiguous_column":
            doubled = [r for r in self._pool if r.ambiguous() and r.depth < MAX_DEPTH]
            if not doubled:
                joined = self._joined_twice(relation, f"j{number}")
                if joined is None:
                    return False
                doubled = [joined]
            relation = doubled[-1]
        if not relation.usable() and name != "ambiguous_column":
            return False
        fitting = _FITTING.get(name)
        if fitting is not None:
            some = [other for other in [*self._pool, *self._rejected] if fitting(other)]
            if not some:
                return False
            relation = self.random.choice(some)
        step = {**MISTAKES, **FURTHER_MISTAKES}[name](self.random, relation, f"t{number}")
        if step is None:
            return False
        self._add(f"t{number}", step)
        self._mistake = name
        return True

    def _joined_twice(self, relation: Relation, node: str) -> Relation | None:
        """A join whose result has columns of one name."""
        for _ in range(5):
            step = join(self.random, relation, self._partner(relation), node)
            if step is not None and step.made.ambiguous():
                self._add(node, step)
                return self._pool[-1]
        return None

    def _add(self, node: str, step: Step) -> None:
        self._transforms[node] = step.node()
        self._shapes[node] = f"{step.gem} {step.shape}".strip()
        self._used |= {relation.id for relation in step.inputs}
        self._pool.append(step.made)
        if further.rejects(self._transforms[node]):
            self._rejected.append(further.rejected(node, step.inputs[0]))

    def _draw_targets(self, batch: bool) -> None:
        """Targets on the ends, and on some nodes on the way."""
        random = self.random
        transforms = [relation for relation in self._pool if relation.depth]
        ends = [relation for relation in transforms if relation.id not in self._used]
        streams = [relation for relation in ends if relation.streaming or batch] or ends
        chosen = streams[-3:] or self._pool[:1]
        inner = [r for r in transforms if r not in chosen and (r.streaming or batch)]
        if inner and random.random() < 0.35:
            chosen = [*chosen, random.choice(inner)]
        for relation in chosen:
            modes = [self._mode(relation, batch)]
            if random.random() < 0.3:
                modes += [mode for mode in MODES if mode not in modes and not batch][: random.choice([1, 2])]
            for mode in modes:
                self._target(relation, mode, batch)
        if self._everything:
            self._draw_targets_of_rejected(batch)

    def _draw_targets_of_rejected(self, batch: bool) -> None:
        """Targets that take what a node before a target rejects, or what a target itself does."""
        random = self.random
        nodes = {**self._sources, **self._transforms}
        reached = {name for target in self._targets.values() for name in before(nodes, target)}
        of_nodes = [r for r in self._rejected if r.id.partition(".")[0] in reached]
        of_targets = [
            further.rejected(name, Relation(name, (), not batch))
            for name, node in self._targets.items()
            if further.rejects(node)
        ]
        for relation in [*of_nodes, *of_targets]:
            if random.random() < _REJECTED:
                self._target(relation, self._mode(relation, batch), batch)

    def _mode(self, relation: Relation, batch: bool) -> str:
        weights = [45, 27, 28] if relation.aggregations else [80, 15, 5]
        if relation.aggregations and self._shapes.get(relation.id, "").startswith("sort"):
            weights = [10, 10, 80]
        elif relation.aggregations > 1 or relation.joins:
            weights = [80, 12, 8]
        return "append" if batch else self.random.choices(MODES, weights)[0]

    def _target(self, relation: Relation, mode: str, batch: bool) -> None:
        gem = self.random.choices(["noop", "console", "memory"], [6, 3, 1])[0]
        if gem == "memory" and mode == "update":
            gem = "noop"
        node: dict[str, Any] = {"gem": gem, "input": relation.id}
        if self._everything and self.random.random() < _FURTHER_TARGETS:
            found = targets.target(self.random, relation, mode, len(self._targets))
            node |= found if found is not None else {}
            if found is not None and self._mistake is None and self.random.random() < _WRONG_CHANGES:
                self._mistake = WRONG_CHANGES if targets.mistaken(self.random, relation, found) else None
        if mode != "append" or self.random.random() < 0.3:
            node["output_mode"] = mode
        if not batch and self.random.random() < 0.2:
            node["trigger"] = {"available_now": True}
        name = f"out{len(self._targets)}"
        self._targets[name] = node
        self._shapes[name] = f"target {mode}"


def before(nodes: Mapping[str, Mapping[str, Any]], node: Mapping[str, Any]) -> set[str]:
    """The nodes whose rows reach a node.

    Args:
        nodes: The nodes of a pipeline, as its file has them.
        node: One of them.
    """
    found: set[str] = set()
    waiting = [node]
    while waiting:
        here = waiting.pop()
        inputs = here.get("inputs", [here["input"]] if "input" in here else [])
        for given in inputs.values() if isinstance(inputs, dict) else inputs:
            name = given.partition(".")[0]
            if name not in found:
                found.add(name)
                waiting.append(nodes[name])
    return found
