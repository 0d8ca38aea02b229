"""The part of each source that a backfill reads: what the interval needs, up to where the live run is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.source_log import read_source_log
from gem_bundle.check.report import from_gem_error
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.plan import paths_behind, reader_name
from gem_bundle.run.frames import Built, Frames, read_relation, read_source
from gem_bundle.semantics import SourcePart

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.backfill.interval import Interval
    from gem_bundle.backfill.near import Near
    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import NodeRecord, VersionRecord
    from gem_bundle.gem import PartRead, Source
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan


@dataclass(frozen=True, slots=True)
class Bound:
    """Up to where the live run has read.

    Args:
        checkpoint: What Spark left of it.
        batch: The last micro-batch that counts; what later ones read is left to them.
        strict: Sources must not be read further.
        complete: What was made of the sources' rows is going to be replaced.
        ran: What ran last.
        began: What ran its first micro-batch; None where no record tells.
        versions: All that have run, the oldest first, as far as records tell.
    """

    checkpoint: SparkCheckpoint
    batch: int
    strict: bool = False
    complete: bool = False
    ran: VersionRecord | None = None
    began: VersionRecord | None = None
    versions: tuple[VersionRecord, ...] = ()


def parts_of(
    plan: Plan,
    target: str,
    interval: Interval,
    near: Near,
    bound: Bound | None = None,
) -> dict[str, PartRead]:
    """How each reader of a target's streaming sources reads its part, by the readers' names.

    Args:
        plan: The checked pipeline.
        target: The id of the target.
        interval: The span of event time.
        near: What is near enough to the interval.
        bound: Up to where the live run has read; None where that doesn't matter.

    Raises:
        PipelineError: GB453 for each source whose rows can't be read once more as far as they are needed,
            GB451 when no source files its rows as it is said.
    """
    found: dict[str, PartRead] = {}
    wrong: list[Diagnostic] = []
    filed: list[bool | None] = []
    for path in paths_behind(plan, target):
        node = plan.node(path[0])
        if node.kind != "source" or node.mode != "stream":
            continue
        reader = reader_name(plan, path)
        try:
            filed.append(near.files(plan.facts[node.id]))
            part = _part(plan, node, reader, near.came(interval, plan.facts[node.id]), bound)
            part = replace(part, filed=near.filed(interval) if filed[-1] else None)
            read = cast("Source", plan.gems[node.id]).for_backfill(part)
            if read is None and not (bound and bound.strict):
                read = cast("Source", plan.gems[node.id]).for_backfill(_boundless(part))
            if read is None:
                message = (
                    f"its source `{node.id}` (`{node.gem}`) can't be read just as far as the live run has"
                )
                raise GemError("GB453", message, "Write to another place with `--into`.")
        except GemError as error:
            wrong.append(from_gem_error(plan.definition, node, error))
        else:
            said = f", `{part.filed[0]}` from {part.filed[1]} to {part.filed[2]}" if part.filed else ""
            found[reader] = replace(read, part=f"{read.part}{said}")
    if near.partition is not None and not wrong and not any(one is not False for one in filed):
        wrong.append(_unfiled(plan, target, near.partition))
    if wrong:
        raise PipelineError(dict.fromkeys(wrong))
    return found


def _unfiled(plan: Plan, target: str, partition: str) -> Diagnostic:
    place = plan.definition.locator.place(plan.node(target).path, key=True)
    message = f"no source of target `{target}` has a column `{partition}`"
    hint = (
        "Name one of their columns with `--partition`; in the schema of files the folders' columns stand too."
    )
    return Diagnostic("GB451", "error", message, target, (), place, hint)


def _part(plan: Plan, node: Node, reader: str, came: Interval | None, bound: Bound | None) -> SourcePart:
    since, until = (None, None) if came is None else (came.start, came.end)
    if bound is None:
        return SourcePart(since, until)
    log = partial(read_source_log, bound.checkpoint.location, reader)
    _check_same(plan, node, bound)
    if not bound.strict and not bound.complete:
        return SourcePart(since, until, _offset(bound, reader), log)
    reached = _offset(bound, reader)
    if reached is None:
        message = f"the live run has read nothing of its source `{node.id}` yet, and will read all of it"
        raise GemError("GB453", message, "Run the pipeline first, or write to another place with `--into`.")
    offset = reached if bound.strict else None
    old = _recorded(node, bound.began)
    began = old.options if old is not None else None
    former = tuple(found.options for one in bound.versions if (found := _recorded(node, one)) is not None)
    return SourcePart(since, until, offset, log, bound.complete, began=began, former=former, reached=reached)


def _boundless(part: SourcePart) -> SourcePart:
    return replace(part, offset=None)


def _recorded(node: Node, version: VersionRecord | None) -> NodeRecord | None:
    """A node as it was when a version ran, under its id or a former one."""
    if version is None:
        return None
    return next((found for name in (node.id, *node.was) if (found := version.node(name))), None)


def _offset(bound: Bound, reader: str) -> object:
    for offsets in bound.checkpoint.offsets:
        if offsets.batch == bound.batch:
            return offsets.sources.get(reader)
    return None


def _check_same(plan: Plan, node: Node, bound: Bound) -> None:
    """Offsets are of the place that was read: those of another one mean other rows."""
    old = _recorded(node, bound.ran)
    if old is None or not (bound.strict or bound.complete):
        return
    now = {option: tuple(texts) for option, texts in cast("Source", plan.gems[node.id]).places().items()}
    if old.gem != node.gem or {option: tuple(texts) for option, texts in old.places.items()} != now:
        message = f"its source `{node.id}` isn't what the live run reads under that id"
        raise GemError("GB453", message, "Run the pipeline first, or write to another place with `--into`.")


def rows_of(
    plan: Plan,
    target: str,
    spark: SparkSession,
    parts: dict[str, PartRead],
    near: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """What flows into a target, as a batch over parts of its sources.

    Args:
        plan: The checked pipeline.
        target: The id of the target.
        spark: The session.
        parts: How each reader reads its part.
        near: The rows of a source that are near enough.

    Raises:
        NodeFailure: When a gem on the way raises.
    """

    def read(node: Node, reader: str) -> Built:
        if node.mode != "stream":
            return read_source(cast("Source", plan.gems[node.id]), node, reader, spark)
        built = read_relation(parts[reader].source, node.id, spark)
        if isinstance(built, Mapping):
            return {name: near(df) for name, df in built.items()}
        return near(built)

    edge = plan.node(target).inputs[0]
    return Frames(plan, spark, read).of(edge.node, edge.output)
