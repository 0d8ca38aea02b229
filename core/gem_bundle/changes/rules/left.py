"""What Spark left where no record tells what ran: its sources, its operators, its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.rules.sources import begin_of, reads_only_new
from gem_bundle.changes.rules.stores import SPARK_NAMES, compare_stores, kinds_of
from gem_bundle.changes.shapes import operators_of
from gem_bundle.changes.wording import told
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change


def compare_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """What can be said of an edit by what Spark left alone.

    Args:
        both: The new version, on both sides.
        checkpoint: What Spark left.
    """
    yield from _sources_left(both, checkpoint)
    refused = list(_operators_left(both, checkpoint))
    yield from refused or compare_stores(both, checkpoint)
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
        yield both.change("skipped", "GB411", message, before=name, kind="source")


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
        yield both.change(
            "refused", "GB422", message, node, hint=both.begin_anew, before=there, after=wanted
        ).of_state()


def _named(kinds: Sequence[str]) -> str:
    return listed_names(kinds) or "nothing"


def _settings_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """The settings that the pipeline gives, and that the checkpoint has otherwise."""
    frozen = checkpoint.frozen
    for key, value in both.new.version.settings.items():
        if key in frozen and frozen[key] != value:
            yield both.change(
                "continues",
                "GB440",
                f"the setting `{key}` is {told(value)}, and the checkpoint of `{both.new.target}` has "
                f"{told(frozen[key])} from its first run, so it has no effect",
                hint=both.for_new_values,
                setting=key,
                before=frozen[key],
                after=value,
            )
