"""What Spark left where no record tells what ran: its sources, its operators and their keys, its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.comparison import told
from gem_bundle.changes.rules.sources import begin_of, reads_only_new
from gem_bundle.changes.rules.state import listed
from gem_bundle.changes.shapes import bare, fit, operators_of, shapes
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as Ids

    from gem_bundle.changes.checkpoint import SparkCheckpoint, StateStore
    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.shapes import Shape

_PARTITIONS = "spark.sql.shuffle.partitions"
SPARK_NAMES = {
    "aggregate": frozenset({"stateStoreSave", "sessionWindowStateStoreSaveExec"}),
    "deduplicate": frozenset({"dedupe", "dedupeWithinWatermark"}),
    "join": frozenset({"symmetricHashJoin"}),
}
"""What Spark calls the operators of a kind."""


def compare_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """What can be said of an edit by what Spark left alone.

    Args:
        both: The new version, on both sides.
        checkpoint: What Spark left.
    """
    yield from _sources_left(both, checkpoint)
    refused = list(_operators_left(both, checkpoint))
    yield from refused or _keys_left(both, checkpoint)
    yield from _settings_left(both, checkpoint)


def _sources_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    if checkpoint.newest is None or not checkpoint.named:
        return
    sources = [n for n in both.new.version.nodes if n.kind == "source" and n.mode != "batch"]
    read = {name for node in sources for name in node.readers}
    there = checkpoint.newest.sources
    left = [name for name in there if name not in read]
    for node in sources:
        if set(node.readers) & set(there):
            continue
        gem = both.new.gems.get(node.id)
        begins = begin_of(gem)
        if reads_only_new(gem):
            message = (
                f"the checkpoint has no source `{node.id}`, which begins {begins}: what is there already "
            )
            message += "is never read"
            yield both.change("skipped", "GB410", message, node.id, after=node.gem)
        else:
            message = f"the checkpoint has no source `{node.id}`: it is read {begins}"
            # It may be one of those that are left, under another name.
            yield both.change("again" if left else "continues", "GB410", message, node.id, after=node.gem)
    for name in left:
        message = (
            f"the checkpoint has a source `{name}` that the pipeline doesn't: what waits there is never read"
        )
        yield both.change("skipped", "GB411", message, before=name)


def kinds_of(names: Iterable[str]) -> list[str]:
    """What Spark calls operators in the words of pipelines."""
    return sorted(next((k for k, found in SPARK_NAMES.items() if name in found), name) for name in names)


def _operators_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    found = checkpoint.kinds
    kept = operators_of(both.after)
    known = [operator for operator in kept if operator.stateful and operator.kind in SPARK_NAMES]
    if len(known) != len(kept) or "" in found:
        return
    wanted = sorted(operator.kind for operator in known)
    there = kinds_of(found)
    if wanted != there:
        node = known[-1].node if known else both.new.target
        message = (
            f"the checkpoint has state of {_named(there)}, and the query keeps {_named(wanted)}: Spark "
            "refuses to go on"
        )
        yield both.change("refused", "GB422", message, node, before=there, after=wanted).of_state()


def _named(kinds: Sequence[str]) -> str:
    return listed_names(kinds) or "nothing"


def _keys_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """The operators whose keys have other types than those in the checkpoint.

    Which operator is which is plain only where there is one of its kind.
    """
    kinds = [operator.kind for operator in operators_of(both.after)]
    there = kinds_of(name for name, _ in checkpoint.stores)
    for shape, kind in zip(shapes(both.after), kinds, strict=True):
        if kinds.count(kind) > 1 or there.count(kind) > 1:
            continue
        names = SPARK_NAMES.get(kind, frozenset())
        left = next((stores for name, stores in checkpoint.stores if name in names), ())
        why = _other_keys(both, shape, left)
        if why:
            message = f"the state of `{shape.node}` has another shape, and Spark refuses to go on: {why}"
            yield both.change("refused", "GB422", message, shape.node, hint=both.begin_anew).of_state()


def _other_keys(both: Comparison, shape: Shape, left: Iterable[StateStore]) -> str:
    """Why Spark doesn't take the keys of a checkpoint for those of an operator; empty when it does."""
    # Of a join each side has stores, whose keys begin with what is compared.
    store = next((store for store in left if store.keys is not None), None)
    if store is None or store.keys is None or shape.keys is None or shape.kind.startswith("join"):
        return ""
    keys = shape.keys
    if shape.kind == "sessions":
        # Sessions are looked up by where they begin.
        keys = (*keys[1:], "timestamp")
    old = tuple(bare(kind) for _, kind in store.keys)
    if _are(old, keys, _optional(both, shape)):
        return ""
    return f"its keys in the checkpoint are {listed(old)}, not {listed(keys)}"


def _optional(both: Comparison, shape: Shape) -> frozenset[int]:
    """Where the keys stand that Spark may leave out: what is always the same, and what is said again."""
    lineage = both.after.lineage(shape.node)
    kept = lineage.kept if lineage is not None else None
    if shape.kind != "aggregate" or kept is None or shape.keys is None or len(kept.keys) != len(shape.keys):
        return frozenset()
    found = set()
    seen: set[object] = set()
    for place, (key, kind) in enumerate(zip(kept.keys, shape.keys, strict=True)):
        made = (kind, key.uses)
        if not key.uses or made in seen:
            found.add(place)
        seen.add(made)
    return frozenset(found)


def _are(old: Sequence[str | None], new: Sequence[str | None], optional: Ids[int]) -> bool:
    """Whether keys are those of the checkpoint, some of which Spark may have left out."""
    reached = {0}
    for place, kind in enumerate(new):
        taken = {at + 1 for at in reached if at < len(old) and fit(old[at : at + 1], [kind])}
        reached = taken | reached if place in optional else taken
    return len(old) in reached


def _settings_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """The settings that the pipeline gives, and that the checkpoint has otherwise."""
    frozen = dict(checkpoint.settings)
    partitions = checkpoint.partitions
    if partitions is not None:
        # Spark 4.2 writes them into the log from the first restart on only.
        frozen[_PARTITIONS] = str(partitions)
    for key, value in both.new.version.settings.items():
        if key in frozen and frozen[key] != value:
            yield both.change(
                "continues",
                "GB440",
                f"the setting `{key}` is {told(value)}, and the checkpoint of `{both.new.target}` has "
                f"{told(frozen[key])} from its first run, so it has no effect",
                hint=both.for_new_values,
                before=frozen[key],
                after=value,
            )
