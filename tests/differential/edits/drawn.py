"""Draws pipelines, and edits of them that are worth a try."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from gem_bundle.changes.record import Record
from gem_bundle.check.checker import check_definition
from gem_bundle.operators import walk
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from tests.differential.edits.asked import asking
from tests.differential.edits.declared import declared_edits
from tests.differential.edits.draw import Edit, Recorded, edits, needed
from tests.differential.edits.packed import packing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry

EACH = 4
"""How many edits of one pipeline are tried."""

MOVED = "another path"
"""The edit whose verdict goes by the checkpoint."""

_MOST_NODES = 9
_STATELESS_SHARE = 3
_UNDEFINED = {"row_ids", "current_time"}
# What takes any of several rows, by what is before it that decides which ones come first.
_ANY_OF = {"limit": {"union", "repartition"}, "deduplicate": {"repartition"}}
_RANDOM = re.compile(
    r"\b(uuid|rand\w*|shuffle|current_\w+|now|input_file_\w+|spark_partition_id)\b", re.IGNORECASE
)
_LIMIT = re.compile(r"\b(limit )\d+")
_ENOUGH = 13
_TARGET_KEYS = {"input", "output_mode"}


@dataclass(frozen=True)
class Drawn:
    """An edit of a drawn pipeline.

    Args:
        number: How many of the pipeline's edits that count came before.
        target: The target whose checkpoint it is.
        before: Version 1.
        old: Its plan.
        edit: What is done.
        after: Version 2.
        new: Its plan.
        stateful: Version 1 keeps state.
        kept: What is on record of it.
    """

    number: int
    target: str
    before: dict[str, Any]
    old: Plan
    edit: Edit
    after: dict[str, Any]
    new: Plan
    stateful: bool
    kept: VersionRecord

    def said(self, registry: Registry, checkpoint: SparkCheckpoint | None = None) -> TargetChanges:
        """What `gem-bundle plan` says of it.

        Args:
            registry: The gems.
            checkpoint: What Spark left of version 1, for a verdict that goes by that.
        """
        version = version_of(self.new, self.target)
        return compare(self.kept, version, self.new, self.target, registry=registry, checkpoint=checkpoint)


def drawn_edits(
    seed: str,
    registry: Registry,
    most: int = EACH,
    *,
    asked: bool = False,
    states: int = 0,
    at_once: int = 1,
) -> Iterator[Drawn]:
    """The edits of the pipeline of a seed; none where it isn't worth it.

    Args:
        seed: What the pipeline and its edits come from.
        registry: The gems.
        most: How many there are at most, beside those of what is declared.
        asked: Some pipelines ask for more before their target, or are edited to.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.
    """
    recorded = Recorded(seed)
    drawn = recorded.drawn()
    if drawn.mistake or drawn.values.get("mode") == "batch":
        return
    random = Random(f"{seed}:edits")
    target = random.choice(list(drawn.values["targets"]))
    before = small(only(drawn.values, target))
    node = before["targets"][target]
    before["targets"][target] = {"gem": "noop", **{k: v for k, v in node.items() if k in _TARGET_KEYS}}
    before, more = asking(recorded, seed, before, target) if asked else (before, [])
    old = plan_of(before, registry)
    for packed, read in packing(recorded, seed, before, target) if asked and not more else ():
        if (plan := plan_of(packed, registry)) is not None and len(plan.order) <= _MOST_NODES:
            before, more, old = packed, read, plan
            break
    if old is None or _is_undefined(old, before) or len(old.order) > _MOST_NODES:
        return
    keeping = {o.node for facts in old.facts.values() for o in facts.all_operators() if o.stateful}
    stateful = bool(keeping)
    if len(keeping) < states or (not stateful and random.randrange(_STATELESS_SHARE)):
        return
    kept = Record.from_json(Record(target, (version_of(old, target),)).as_json()).newest
    assert kept is not None
    made = 0
    declared = [*more, *declared_edits(seed, before, target)]
    tried = {json.dumps(before)}
    for edit in [*edits(recorded, before, target, random, EACH * 4), *declared]:
        if made == most and edit not in declared:
            continue
        if at_once > 1:
            edit = with_more(recorded, edit, target, random, at_once - 1)  # noqa: PLW2901
            if MOVED in edit.kind:
                continue  # its verdict goes by the checkpoint, and so by the rows
        after = small(only(edit.values, target))
        new = plan_of(after, registry)
        written = json.dumps(after)
        if new is None or written in tried or _is_undefined(new, after):
            continue
        tried.add(written)
        yield Drawn(made, target, before, old, edit, after, new, stateful, kept)
        made += edit not in declared


def with_more(recorded: Recorded, edit: Edit, target: str, random: Random, count: int) -> Edit:
    """An edit with others behind it, as one commit has them.

    Args:
        recorded: How the pipeline was drawn.
        edit: The edit.
        target: The target.
        random: Where they come from.
        count: How many others.
    """
    for _ in range(count):
        for other in edits(recorded, edit.values, target, random, 1):
            edit = Edit(f"{edit.kind}, {other.kind}", other.values, f"{edit.node}, {other.node}")
    return edit


def plan_of(values: dict[str, Any], registry: Registry) -> Plan | None:
    """The checked plan of a pipeline; None where the checker finds errors."""
    loaded = load_values(
        copy.deepcopy(values), Document("drawn"), Path("/drawn"), "", LoadOptions(environment={})
    )
    return check_definition(loaded, registry).plan


def only(values: dict[str, Any], target: str) -> dict[str, Any]:
    """A pipeline with one of its targets, and what that needs."""
    names = {*needed(values, target), target}
    found = copy.deepcopy(values)
    for section in ("sources", "transforms", "targets"):
        found[section] = {name: node for name, node in found.get(section, {}).items() if name in names}
    return {key: value for key, value in found.items() if value}


def small(values: dict[str, Any]) -> dict[str, Any]:
    """A pipeline whose limits are reached by as few rows as there are."""
    found = json.loads(_LIMIT.sub(rf"\1{_ENOUGH}", json.dumps(values)))
    for node in found.get("transforms", {}).values():
        if node["gem"] == "limit":
            node["options"]["rows"] = min(node["options"]["rows"], _ENOUGH)
    return found  # type: ignore[no-any-return]


def _is_undefined(plan: Plan, values: dict[str, Any]) -> bool:
    """Whether what comes out differs from one run to the next, or may rightly be one thing or another.

    Of the first rows behind a union it is right to take those of one input or of the other, and of rows that
    `repartition` deals out by their bytes the one or the other with the same key.
    """
    operators = {operator for facts in plan.facts.values() for operator in facts.all_operators()}
    if any(
        before.kind in _ANY_OF.get(operator.kind, ())
        for operator in operators
        for before in walk(operator.inputs)
    ):
        return True
    kinds = {operator.kind for operator in operators}
    return bool(kinds & _UNDEFINED) or _RANDOM.search(json.dumps(values)) is not None
