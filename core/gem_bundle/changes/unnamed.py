"""What an edit does to a checkpoint that has no names for its sources: Spark goes by their order.

So it is before Spark 4.2, and later where names are switched off.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gem_bundle.changes.model import Change
from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.changes.sides import gems_of, in_order
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import TargetChanges, Verdict
    from gem_bundle.changes.record import InputRecord, NodeRecord, VersionRecord
    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry

# By their ids sources aren't told apart there.
_OF_NAMES = frozenset({"GB410", "GB411", "GB412", "GB418"})
# Of more paths from sources to a target the order isn't looked at.
_MOST_PATHS = 64


def by_order(
    plan: Plan,
    node: Node,
    old: VersionRecord | None,
    new: VersionRecord,
    checkpoint: SparkCheckpoint,
    found: TargetChanges,
    registry: Callable[[], Registry],
) -> TargetChanges:
    """What becomes of a target whose checkpoint has no names for sources.

    Args:
        plan: The pipeline as it is now.
        node: The target.
        old: What ran last; None where no record tells.
        new: What is going to run.
        checkpoint: What Spark left.
        found: What becomes of it by the names.
        registry: Gives the gems to use.
    """
    if checkpoint.newest is None:
        return found
    read = [reader for other in new.nodes for reader in other.readers]
    before, after = len(checkpoint.newest.sources), len(read)
    others = [other for other in found.changes if other.code not in _OF_NAMES]
    if before != after:
        return replace(found, changes=(*others, _of_number(plan, node, before, read)))
    if old is None:
        return found
    one, other = _Reading(old, gems_of(old, registry())), _Reading(new, plan.gems)
    doubtful = [
        name for name in sorted(one.unclear | other.unclear) if one.reading(name) != other.reading(name)
    ]
    if doubtful:
        told = [_of_doubt(plan, node, name) for name in doubtful]
    elif len(one.sources) != after or len(other.sources) != after:
        return found
    else:
        pairs = zip(one.sources, other.sources, strict=True)
        told = [_of_place(plan, node, *pair) for pair in pairs if not _is_same(*pair)]
    return replace(found, changes=(*others, *told))


def _of_number(plan: Plan, node: Node, before: int, read: list[str]) -> Change:
    sources = "source" if before == 1 else "sources"
    message = (
        f"the checkpoint of target `{node.id}` has {before} {sources}, and the query reads {len(read)} "
        f"({listed_names(read)}): without names Spark refuses to go on with another number of them"
    )
    hint = (
        "Put it back. Or give the target another id, and no setting that switches names off: in the new "
        "checkpoint sources may come and go, and all that they have is read again."
    )
    place = plan.definition.locator.place(node.path, key=True)
    code = "GB410" if len(read) > before else "GB411"
    return Change("refused", code, message, node.id, node.path, place, hint, before, len(read))


def _of_place(plan: Plan, node: Node, old: NodeRecord, new: NodeRecord) -> Change:
    message = (
        f"source `{new.id}` goes on at the offsets of `{old.id}`: the checkpoint of target `{node.id}` has "
        "no names for its sources, and Spark goes by their order"
    )
    path = plan.definition.nodes[new.id].path
    hint = f"Put the source in the place that it had, where `{old.id}` had its own."
    return Change(
        _at_others(plan, old, new),
        "GB414",
        message,
        new.id,
        path,
        plan.definition.locator.place(path, key=True),
        hint,
        old.id,
        new.id,
    )


def _at_others(plan: Plan, old: NodeRecord, new: NodeRecord) -> Verdict:
    """What becomes of a source that goes on at the offsets of another one."""
    if old.gem != new.gem:
        return "refused"
    where = [option for option, places in new.places.items() if places != old.places.get(option)]
    gem = plan.gems.get(new.id)
    said = [meaning_of(gem, option, old.options.get(option), stateful=False)[0].effect for option in where]
    return "refused" if "refused" in said else "mixed"


def _is_same(old: NodeRecord, new: NodeRecord) -> bool:
    """Whether a source is the one that was in its place: what else is another about it is told elsewhere."""
    return old.identity == new.identity or (old.gem == new.gem and old.places == new.places)


def _of_doubt(plan: Plan, node: Node, name: str) -> Change:
    place = name if name in plan.definition.nodes else node.id
    message = (
        f"in which order `{name}` reads its inputs can't be known, and it has changed: the checkpoint of "
        f"target `{node.id}` has no names for its sources, and Spark goes by their order; if that is another "
        "one now, each source goes on at the offsets of another"
    )
    path = plan.definition.nodes[place].path
    hint = f"If the order is as it was, accept the change: `--accept GB414:{place}`."
    return Change("mixed", "GB414", message, place, path, plan.definition.locator.place(path, key=True), hint)


class _Reading:
    """How the query of a version comes to its sources.

    Args:
        version: The version.
        gems: Its gems, by the ids of their nodes.

    Attributes:
        nodes: Its nodes by id.
        sources: The sources that are read as streams, as the query comes to them; none of too many.
        unclear: The nodes that read several streams in an order that can't be known.
    """

    def __init__(self, version: VersionRecord, gems: Mapping[str, Gem]) -> None:
        self.nodes = {node.id: node for node in version.nodes}
        self.unclear: set[str] = set()
        self._gems = gems
        self._streams: dict[str, bool] = {}
        target = next(node.id for node in reversed(version.nodes) if node.kind == "target")
        found = list(islice(self._read_by(target), _MOST_PATHS + 1))
        self.sources = found if len(found) <= _MOST_PATHS else []

    def reading(self, name: str) -> tuple[object, ...] | None:
        """What decides on the order in which a node reads its inputs; None where there is no such node."""
        node = self.nodes.get(name)
        return None if node is None else (node.gem, node.options, node.inputs, node.functions)

    def _read_by(self, name: str) -> Iterator[NodeRecord]:
        found = self.nodes.get(name)
        if found is None:
            return
        if found.kind == "source":
            if found.mode != "batch":
                yield found
            return
        for edge in self._in_order(found):
            yield from self._read_by(edge.node)

    def _in_order(self, node: NodeRecord) -> Sequence[InputRecord]:
        """The inputs of a node that lead to streams, as its plan has them."""
        streams = [edge for edge in node.inputs if self._is_stream(edge.node)]
        if len(streams) < 2:
            return streams
        order = in_order(node, self._gems.get(node.id))
        found = [node.inputs[position] for position in order or ()]
        if any(found.count(edge) != 1 for edge in streams):
            self.unclear.add(node.id)
            return streams
        return [edge for edge in found if edge in streams]

    def _is_stream(self, name: str) -> bool:
        if name not in self._streams:
            found = self.nodes.get(name)
            if found is None or found.kind == "source":
                self._streams[name] = found is not None and found.mode != "batch"
            else:
                self._streams[name] = any(self._is_stream(edge.node) for edge in found.inputs)
        return self._streams[name]
