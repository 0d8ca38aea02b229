"""Which ways forward an edit leaves: whether a target can begin with new state, or be computed anew.

A hint that offers one of them where it is refused sends people into a dead end.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple, cast

from gem_bundle.changes.model import STOPS
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator, StatefulOperator
from gem_bundle.semantics import MICRO_BATCH_TRIGGERS
from gem_bundle.types import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import NodeRecord, VersionRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Source, Target
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.plan import Plan

NEW_CHECKPOINT = "Move the checkpoint away to begin anew: sources are then read from where their options say."
"""What is left to whoever can't have new state where the old one ended."""
KINDS_OF_TIME = frozenset({"timestamp", "timestamp_ntz", "date"})
OTHER_PLACE = "GB414"
_WILDCARD = re.compile(r"[*?\[{]")
DESCRIBED_ANEW = "its state is of a kind whose description changes from one micro-batch to the next"


class Reason(NamedTuple):
    """Why a way isn't open.

    Args:
        why: The reason, as the end of a sentence.
        hint: What to do instead.
        node: The source that somebody may take for the same one, by accepting that it reads another place.
    """

    why: str
    hint: str = NEW_CHECKPOINT
    node: str = ""

    def is_overruled(self, accepted: Iterable[tuple[str, str]]) -> bool:
        """Whether somebody knows better.

        Args:
            accepted: Codes, each with the id of a node, or an empty text for all nodes.
        """
        taken = set(accepted)
        return bool(self.node) and bool(taken & {(OTHER_PLACE, ""), (OTHER_PLACE, self.node)})


def against_fresh(
    plan: Plan, side: Side, before: VersionRecord | None, checkpoint: SparkCheckpoint | None
) -> Iterator[Reason]:
    """Why a target can't begin with new state where it ended, as far as that is plain before Spark runs.

    Args:
        plan: The pipeline as it is now.
        side: The part of it that leads to the target.
        before: What ran last; None where that isn't known.
        checkpoint: What Spark left of it; None where that isn't known.
    """
    node = plan.node(side.target)
    if node.group:
        yield Reason(f"it is in the group `{node.group}`, whose targets share a checkpoint")
        return
    if local_path(plan.definition.checkpoint(side.target)) is None:
        yield Reason(
            "its checkpoint isn't on a disk, and a folder can be put in the place of another only there"
        )
        return
    if checkpoint is not None and checkpoint.named is False:
        yield Reason("its checkpoint has no names of sources, so that it can't be said which offset is whose")
        return
    if checkpoint is not None and checkpoint.unfinished is not None:
        # A target that has its rows passes over it, and then its state would be missing.
        yield Reason(
            f"micro-batch {checkpoint.unfinished} was begun and isn't done, so the target may have its rows",
            "Let the version of the pipeline that began it end it: run that once, with `--available-now`.",
        )
        return
    if node.trigger.kind not in MICRO_BATCH_TRIGGERS:
        yield Reason("its trigger makes no micro-batches that end")
        return
    if any(isinstance(operator, StatefulOperator) for operator in side.operators):
        yield Reason(DESCRIBED_ANEW)
        return
    yield from _of_sources(plan, side, before)


def _of_sources(plan: Plan, side: Side, before: VersionRecord | None) -> Iterator[Reason]:
    """Which sources can't go on at an offset."""
    for source in side.version.nodes:
        if source.kind != "source" or source.mode != "stream":
            continue
        gem = cast("Source", plan.gems[source.id])
        if not gem.semantics.replayable:
            yield Reason(
                f"its source `{source.id}` can't be read from an offset: `{source.gem}` keeps no rows"
            )
        names = (source.id, *source.was)
        old = next((found for name in names if before and (found := before.node(name))), None)
        if old is None:
            continue
        instead = f"Give the source another id: then it is read as a new one. {NEW_CHECKPOINT}"
        if old.gem != source.gem:
            why = f"the offsets of its source `{source.id}` are of `{old.gem}`, and it is `{source.gem}` now"
            yield Reason(why, instead)
        elif before is not None and old.places != source.places:
            same = _reads_the_same(gem, before, old, side.version, source)
            if same:
                continue
            were, are = (
                ", ".join(p for ps in places.values() for p in ps) for places in (old.places, source.places)
            )
            why = f"the offsets of its source `{source.id}` are of {were}, and it reads {are} now"
            if same is None:
                accept = f"`--accept {OTHER_PLACE}:{source.id}`"
                known = f"If that is the same under another name, accept it: {accept}."
                yield Reason(why, f"{known} Else give the source another id.", source.id)
            else:
                yield Reason(why, instead)


def _reads_the_same(
    gem: Source, before: VersionRecord, old: NodeRecord, after: VersionRecord, new: NodeRecord
) -> bool | None:
    """Whether offsets mean the same in another place of a source; None where somebody may know better."""
    moved = has_moved(before, old, after, new)
    different = {
        name for name in {*old.options, *new.options} if old.options.get(name) != new.options.get(name)
    }
    where = {name for name in {*old.places, *new.places} if old.places.get(name) != new.places.get(name)}
    if not where <= different:
        return False  # what names the place isn't kept, or it is more than one option
    found: bool | None = True
    for option in different:
        try:
            said = gem.change(option, old.options.get(option))
        except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
            said = None
        if said is None:
            if option in where:
                return False
        elif said.by_id and moved:
            continue
        elif said.by_id or (option in where and said.effect == "skipped"):
            found = None
        elif said.effect in STOPS or (option in where and said.effect != "continues"):
            return False
    return found


def has_moved(before: VersionRecord, old: NodeRecord, after: VersionRecord, new: NodeRecord) -> bool:
    """Whether what a source reads has moved with the project's folder.

    Args:
        before: What ran.
        old: The source in it.
        after: What is going to run.
        new: The source in that.
    """
    if before.folder == after.folder or not old.places:
        return False
    inside = _within(before.folder, old)
    return inside is not None and inside == _within(after.folder, new)


def is_there(place: str) -> bool:
    """Whether something is at a place on this machine; of one with wildcards, where they begin.

    Args:
        place: The place, as `Source.places` has it.
    """
    fixed = _WILDCARD.split(place)[0]
    return Path(place if fixed == place else fixed.rpartition("/")[0] or "/").exists()


def _within(folder: str, node: NodeRecord) -> list[str] | None:
    """Where places lie in a folder; None when they don't."""
    try:
        return [
            str(PurePath(place).relative_to(folder)) for places in node.places.values() for place in places
        ]
    except ValueError:
        return None


def can_be_computed_anew(
    plan: Plan, side: Side, changed: set[str], checkpoint: SparkCheckpoint | None = None
) -> bool:
    """Whether `gem-bundle backfill` takes a target, for a time that is over.

    Where it may refuse, it isn't said to be a way.

    Args:
        plan: The pipeline as it is now.
        side: The part of it that leads to the target.
        changed: The columns of the target that are made in another way than before; `*` is any.
        checkpoint: What Spark left of what ran; None where that isn't known.
    """
    node, gem = plan.node(side.target), cast("Target", plan.gems[side.target])
    if node.group or node.output_mode != "append" or node.trigger.kind not in MICRO_BATCH_TRIGGERS:
        return False
    if not gem.semantics.replaces_intervals or (checkpoint is not None and checkpoint.named is False):
        return False
    column = _time_of(side)
    if column is None or changed & {"*", column}:
        return False
    aggregates = any(isinstance(operator, AggregateOperator) for operator in side.stateful)
    sources = [one.id for one in side.version.nodes if one.kind == "source" and one.mode != "batch"]
    return (
        not any(writers_beside(plan, side.target))
        and all(can_be_read_again(plan, name) for name in sources)
        and all(_is_by_time(operator, aggregates=aggregates) for operator in side.stateful)
    )


def _time_of(side: Side) -> str | None:
    """The only column of a target that is known to be event time."""
    (edge,) = side.nodes[side.target].inputs
    facts = side.facts.get(edge.key)
    marked = [column for column in (facts.columns or () if facts else ()) if column.watermarked]
    if len(marked) != 1:
        return None
    kind = (marked[0].type or "").lower()
    is_time = kind in KINDS_OF_TIME or kind.startswith("struct<start: timestamp")
    return marked[0].name.lower() if is_time else None


def writers_beside(plan: Plan, target: str) -> Iterator[str]:
    """The other targets that write to a place of a target.

    Args:
        plan: The pipeline.
        target: The id of the target.
    """

    def places(name: str) -> set[str]:
        texts = cast("Target", plan.gems[name]).places().values()
        return {place for found in texts for place in found}

    own = places(target)
    others = (node.id for node in plan.definition.of_kind("target") if node.id != target)
    return (name for name in others if own & places(name))


def can_be_read_again(plan: Plan, source: str) -> bool:
    """Whether a source keeps rows that a batch can read once more.

    Args:
        plan: The pipeline.
        source: The id of the source, which the pipeline reads as a stream.
    """
    semantics = cast("Source", plan.gems[source]).semantics
    return semantics.batch and semantics.replayable and semantics.backlog


def _is_by_time(operator: Operator, *, aggregates: bool) -> bool:
    """Whether what comes of an interval goes by nothing outside of it."""
    if isinstance(operator, AggregateOperator):
        return operator.sessions is False and operator.event_time is True
    if isinstance(operator, DeduplicateOperator):
        return operator.event_time is True and not operator.within_watermark
    return isinstance(operator, JoinOperator) and operator.how == "inner" and not aggregates
