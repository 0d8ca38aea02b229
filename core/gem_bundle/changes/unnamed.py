"""What an edit does to a checkpoint that has no names for its sources: Spark goes by their order.

So it is before Spark 4.2, and later where names are switched off.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gem_bundle.changes.model import Change
from gem_bundle.changes.rules.options import meaning_of
from gem_bundle.changes.sides import identity
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import TargetChanges, Verdict
    from gem_bundle.changes.record import NodeRecord, VersionRecord
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

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
) -> TargetChanges:
    """What becomes of a target, where its checkpoint has no names for sources.

    Args:
        plan: The pipeline as it is now.
        node: The target.
        old: What ran last; None where no record tells.
        new: What is going to run.
        checkpoint: What Spark left.
        found: What becomes of it by the names.
    """
    if checkpoint.newest is None or checkpoint.named:
        return found
    read = [reader for other in new.nodes for reader in other.readers]
    before, after = len(checkpoint.newest.sources), len(read)
    others = [other for other in found.changes if other.code not in _OF_NAMES]
    if before != after:
        return replace(found, changes=(*others, _of_number(plan, node, before, read)))
    one, other = (_in_order(version, node.id) if version is not None else [] for version in (old, new))
    if len(one) != after or len(other) != after:
        return found
    told = [_of_place(plan, node, *pair) for pair in zip(one, other, strict=True) if not _is_same(*pair)]
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
    return identity(old) == identity(new) or (old.gem == new.gem and old.places == new.places)


def _in_order(version: VersionRecord, target: str) -> list[NodeRecord]:
    """The sources that are read as streams, as the query comes to them; none of too many."""
    nodes = {node.id: node for node in version.nodes}

    def read_by(name: str) -> Iterator[NodeRecord]:
        found = nodes.get(name)
        if found is None:
            return
        if found.kind == "source":
            if found.mode == "stream":
                yield found
            return
        for edge in found.inputs:
            yield from read_by(edge.node)

    found = list(islice(read_by(target), _MOST_PATHS + 1))
    return found if len(found) <= _MOST_PATHS else []
