"""Sources that a micro-batch doesn't know which another version has begun and nobody has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.model import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.pipeline.plan import Plan


def forgotten(
    plan: Plan, new: VersionRecord, ran: VersionRecord, checkpoint: SparkCheckpoint
) -> Iterator[Change]:
    """What becomes of the sources that what ran last has read, and of which a begun micro-batch has nothing.

    Spark goes on from the newest entry of its offset log, whichever version has written that: a source that
    isn't in it is a new one to it.

    Args:
        plan: The pipeline as it is now.
        new: What is going to run.
        ran: What has ended the last micro-batch that is done.
        checkpoint: What Spark left.
    """
    newest = checkpoint.newest
    if newest is None or checkpoint.unfinished is None or not checkpoint.commits or not checkpoint.named:
        return
    read = {reader for node in ran.nodes for reader in node.readers}
    for node in new.nodes:
        lost = [name for name in node.readers if name in read and name not in newest.sources]
        if not lost:
            continue
        path = plan.node(node.id).path
        message = (
            f"source `{node.id}`: another version has begun micro-batch {newest.batch} without it and hasn't "
            "ended it, so that the checkpoint has forgotten how far it was read: all of it is read again"
        )
        hint = f"Go on with that version. Or accept it: `--accept GB410:{node.id}`."
        place = plan.definition.locator.place(path, key=True)
        yield Change("again", "GB410", message, node.id, path, place, hint, after=node.gem)
