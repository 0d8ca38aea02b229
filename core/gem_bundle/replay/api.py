"""Bring rejected rows back in: what `gem-bundle replay` calls."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

from gem_bundle.contexts import WriteContext
from gem_bundle.ddl import quoted
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PipelineError
from gem_bundle.facts import REJECTED
from gem_bundle.kept import let_go
from gem_bundle.pipeline.chosen import unknown_node
from gem_bundle.pipeline.groups import (
    Group,
    Output,
    grouped_delivery,
    in_turn,
    operators_behind,
    outputs_on_every_way,
    rejects,
)
from gem_bundle.pipeline.plan import paths_behind
from gem_bundle.refusals import no_rows
from gem_bundle.rejected import restored_rows, without_file
from gem_bundle.replay.journal import Journal, Replay, replays_of
from gem_bundle.replay.places import rejected_in
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.failures import build_failure
from gem_bundle.run.frames import Frames, NodeFailure, unmarked
from gem_bundle.run.groups import refusals_of, released
from gem_bundle.run.lock import CheckpointLocks, Held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from gem_bundle.gem import Target
    from gem_bundle.pipeline.loader import Loaded, LoadOptions
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.refusals import Refusals
    from gem_bundle.run.options import RunOptions

_BUSY = Held("another replay of rows that `{}` rejected is running", "Wait until it ends, or stop it.")


class Wanted(NamedTuple):
    """Which rejected rows are to come back in.

    Args:
        node: The node that rejected them.
        place: Where they lie: a path, or ``table:`` and the name of a table.
        where: A condition over the columns of rejected rows; an empty text for all.
        limit: How many at most; None for all.
        dry_run: Only tell how many there are.
    """

    node: str
    place: str
    where: str = ""
    limit: int | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Replayed:
    """What a replay did.

    Args:
        node: The node.
        rows: How many rejected rows came back in, or would in a dry run.
        written: How many rows each target got.
        resumed: How many of the rows are of a replay that had been killed.
    """

    node: str
    rows: int
    written: dict[str, int] = field(default_factory=dict)
    resumed: int = 0


def replay(load: Callable[[LoadOptions], Loaded], options: RunOptions, wanted: Wanted) -> Replayed:
    """Bring rejected rows back in as rows of a node's input; each at most once.

    Rows that are rejected again go where the node's rejected rows go, with the new reason.

    Args:
        load: Reads the pipeline.
        options: Parameters, profile, what to show.
        wanted: Which rows.

    Raises:
        PipelineError: When they can't (GB460, GB461), or a target fails; the next replay goes on then.
    """
    plan, _ = prepare(load, options)
    targets = check_replay(plan, wanted.node)
    node = plan.node(wanted.node)
    with ExitStack() as stack:
        locks = stack.enter_context(CheckpointLocks({node.id: replays_of(plan, node)}, _BUSY))
        if busy := locks.acquire():
            raise PipelineError(busy)
        ids, tried = [target.id for target in targets], _needed(plan, node, targets)
        session = stack.enter_context(open_for(plan, ids, options, brief=True, tried=tried))
        journal = Journal(replays_of(plan, node), session.spark)
        unfinished = [found for found in journal.replays() if not found.done]
        resumed: dict[str, int] = {}
        if not wanted.dry_run:
            for found in unfinished:
                _add(resumed, _write(plan, node, targets, found, journal, session.spark))
        rows = _selected(plan, wanted, journal, session.spark)
        if wanted.dry_run:
            return Replayed(wanted.node, rows.count() + sum(found.rows for found in unfinished))
        now = datetime.now(UTC)
        made = Replay(
            f"{now:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}",
            wanted.node,
            wanted.place,
            plan.definition.version,
            now.isoformat(timespec="seconds"),
            0,
        )
        written = dict(resumed)
        again = sum(found.rows for found in unfinished)
        if rows.isEmpty():
            return Replayed(wanted.node, again, written, again)
        made = journal.begin(made, rows, partial(_restored, plan, node, spark=session.spark))
        _add(written, _write(plan, node, targets, made, journal, session.spark))
        return Replayed(wanted.node, made.rows + again, written, again)


def check_replay(plan: Plan, name: str) -> list[Node]:
    """The targets that rows of a node's input get to, when a batch can bring them there.

    Args:
        plan: The checked pipeline.
        name: The id of the node.

    Raises:
        PipelineError: GB108 when there is no such node, GB460 when its rows can't come back in.
    """
    node = plan.definition.nodes.get(name)
    if node is None:
        raise PipelineError([unknown_node(plan.definition, name, list(plan.definition.nodes))])
    found = list(_problems(plan, node))
    if found:
        place = plan.definition.locator.place(node.path, key=True)
        raise PipelineError(
            Diagnostic(
                "GB460",
                "error",
                f"rows that `{name}` rejected can't come back in: {why}",
                name,
                node.path,
                place,
                hint,
            )
            for why, hint in found
        )
    return _targets(plan, node)


def _targets(plan: Plan, node: Node) -> list[Node]:
    return [target for target in plan.definition.of_kind("target") if node.id in plan.upstream([target.id])]


def _problems(plan: Plan, node: Node) -> Iterator[tuple[str, str]]:
    if plan.definition.mode == "batch":
        yield "the pipeline is a batch", "Run it over mended data."
        return
    if node.id not in plan.definition.with_rejected_taken():
        yield "nobody takes those that it rejects again", f"Give a target `input: {node.id}.{REJECTED}`."
        return
    if node.kind == "source":
        yield "it has no input", "Mend the records, and put them where it reads them as new ones."
        return
    first = node.inputs[0]
    entry = Output(first.node, first.output)
    group = Group("replay", tuple(_targets(plan, node)), entry)
    ways = outputs_on_every_way(plan, group.targets, _rejected_before(plan, node))
    for target in group.targets:
        if entry not in ways[target.id]:
            yield (
                f"target `{target.id}` gets rows that don't come through `{first.key}` too",
                "A replay brings rows there as a batch, and knows no others.",
            )
        elif any(operator.stateful is not False for operator in operators_behind(plan, group, target)):
            yield (
                f"something on the way to target `{target.id}` keeps state, or may, which a batch hasn't got",
                "Bring them back in by way of the source.",
            )
        if grouped_delivery(plan, target) is None or target.output_mode != "append":
            yield (
                f"target `{target.id}` (`{target.gem}`) takes rows of its own query only",
                "Write to a Delta table, for example.",
            )


def _rejected_before(plan: Plan, node: Node) -> list[Output]:
    """The outputs of rejected rows that rows of a node's input have nothing to do with: a replay has none."""
    return [
        Output(name, REJECTED)
        for name in sorted(plan.definition.with_rejected_taken())
        if node.id not in plan.upstream([name])
    ]


def _selected(plan: Plan, wanted: Wanted, journal: Journal, spark: SparkSession) -> DataFrame:
    """The rejected rows that haven't come back in yet."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F  # noqa: N812

    rejected = rejected_in(plan, wanted.place, spark)
    node = plan.node(wanted.node)
    by_it = F.col("node").isin(node.id, *node.was)
    rejected = rejected.where(by_it & (F.col("pipeline") == plan.definition.name))
    rows = journal.waiting(rejected)
    if wanted.where:
        try:
            rows = rows.where(wanted.where)
        except (AnalysisException, ParseException) as error:
            message = f"`--where` can't be used: {str(error).splitlines()[0]}"
            hint = "Write a condition over the columns of rejected rows: `reasons[0].name = 'not_json'`."
            raise PipelineError(
                [Diagnostic("GB461", "error", message, place=plan.definition.locator.place(()), hint=hint)]
            ) from error
    return rows if wanted.limit is None else rows.limit(wanted.limit)


def _write(
    plan: Plan, node: Node, targets: list[Node], made: Replay, journal: Journal, spark: SparkSession
) -> dict[str, int]:
    """Write the rows of a replay to each target, and write down that it is done."""
    entry = Output(node.inputs[0].node, node.inputs[0].output)
    written: dict[str, int] = {}
    rows = _restored(plan, node, journal.taken(made), spark).persist()
    refused: dict[str, Refusals] = {}
    try:
        with released(refused):
            frames = Frames(plan, spark, given=(entry, rows))
            for other in _rejected_before(plan, node):
                frames.refuse(other.node, no_rows(spark))
            for target in [target for turn in in_turn(plan.definition.nodes, targets) for target in turn]:
                edge = target.inputs[0]
                df = unmarked(frames.of(edge.node, edge.output))
                refusals = refused[target.id] = refusals_of(plan, target)
                context = WriteContext(
                    target.id,
                    plan.definition.name,
                    target.output_mode,
                    query=f"replay.{made.id}.{target.identity}",
                    refusals=refusals,
                )
                cast("Target", plan.gems[target.id]).write_batch(df, 0, context)
                if rejects(plan, target):
                    frames.refuse(target.id, refusals.rows(spark))
                written[target.id] = df.count() - refusals.count
    except PipelineError:
        raise
    except NodeFailure as failure:
        raise PipelineError([build_failure(plan, failure.node, failure.error)]) from failure
    except Exception as error:
        raise PipelineError([build_failure(plan, target.id, error)]) from error
    finally:
        let_go(rows)
    journal.end(made)
    return written


def _restored(plan: Plan, node: Node, rejected: DataFrame, spark: SparkSession) -> DataFrame:
    """The rows as the node's input has them now.

    Raises:
        PipelineError: When the input has other columns now, or it can't be told which.
    """
    from functools import reduce

    wanted = _columns_of_input(plan, node, spark)
    parts = []
    for (schema,) in rejected.select("row_schema").distinct().collect():
        rows = restored_rows(rejected.where(rejected["row_schema"] == schema), schema, file=True)
        kinds = {found.name: found.dataType.simpleString() for found in without_file(rows).schema}
        other = [
            f"`{found.name}`" for found in wanted if kinds.get(found.name) != found.dataType.simpleString()
        ]
        if other:
            message = (
                f"rows that `{node.id}` rejected had the columns {schema}, and its input has "
                f"{', '.join(other)} otherwise now"
            )
            hint = "Replay them with a version of the pipeline whose input is as it was."
            place = plan.definition.locator.place(node.path, key=True)
            raise PipelineError([Diagnostic("GB460", "error", message, node.id, node.path, place, hint)])
        names = [quoted(found.name) for found in wanted]
        parts.append(rows.select(*names, *map(quoted, set(rows.columns) - kinds.keys())))
    if not parts:
        return spark.createDataFrame([], wanted)
    return reduce(lambda one, other: one.unionByName(other), parts)


def _needed(plan: Plan, node: Node, targets: list[Node]) -> set[str]:
    """What a replay builds: not what lies before the node's input, where its columns are known."""
    first = node.inputs[0]
    there = {first.node, *(output.node for output in _rejected_before(plan, node))}
    built = {name for target in targets for name, _ in paths_behind(plan, target.id, there)}
    return built if _known_columns(plan, node) else built.union(plan.upstream([first.node]))


def _known_columns(plan: Plan, node: Node) -> str:
    """The columns of a node's input as DDL, where the check knows them; else an empty text."""
    facts = plan.facts.get(node.inputs[0].key)
    columns = [(column.name, column.type) for column in (facts.columns if facts is not None else None) or ()]
    # A `varchar` is a text in the rows of some sources, and in those of others it isn't.
    if not all(kind and "char(" not in kind.lower() for _, kind in columns):
        return ""
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)


def _columns_of_input(plan: Plan, node: Node, spark: SparkSession) -> StructType:
    """The columns of a node's input; where they are known no source has to be there."""
    if known := _known_columns(plan, node):
        return spark.createDataFrame([], known).schema
    edge = node.inputs[0]
    try:
        return Frames(plan, spark).of(edge.node, edge.output).schema
    except NodeFailure as failure:
        raise PipelineError([build_failure(plan, failure.node, failure.error)]) from failure


def _add(counts: dict[str, int], more: dict[str, Any]) -> None:
    for name, rows in more.items():
        counts[name] = counts.get(name, 0) + rows
