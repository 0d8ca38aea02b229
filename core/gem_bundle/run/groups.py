"""The query of a group: each micro-batch, computed once up to the fork, is written to each target.

Guide: *Using Foreach and ForeachBatch*.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from gem_bundle.contexts import WriteContext
from gem_bundle.files import open_folder, split
from gem_bundle.kept import let_go
from gem_bundle.pipeline.groups import (
    UNDIVIDED,
    ended_by,
    ending_nodes,
    in_turn,
    limited_nodes,
    rejects,
    remembering,
    shared_outputs,
    writes_row_by_row,
)
from gem_bundle.refusals import Refusals
from gem_bundle.rejected import RejectedIn, Rejecting, event_time_column, with_file
from gem_bundle.run.frames import Frames, NodeFailure, recalled, unmarked
from gem_bundle.run.held import HeldRows, Observations, let_through, observed
from gem_bundle.run.settled import Settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.gem import Target
    from gem_bundle.pipeline.groups import Group
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

# What Spark observed while it wrote arrives through its bus of events, within milliseconds. Of a sink that
# has been seen to tell, it is waited for longer.
_TOLD_WITHIN = 1.0
_TOLD_AGAIN_WITHIN = 10.0
_TRIES = 2


class GroupQuery:
    """Writes the micro-batches of a group, and knows what became of them.

    Args:
        plan: The pipeline.
        group: The group, which has a fork.
    """

    def __init__(self, plan: Plan, group: Group) -> None:
        assert group.fork is not None
        self._plan = plan
        self._fork = group.fork
        self._targets = {node.id: node for node in group.targets}
        self._name = f"{plan.definition.name}_{group.name}"
        self._query: Future[str] = Future()
        self._rows = {name: _Counter() for name in self._targets}
        self._written: dict[int, dict[str, int]] = {}
        self._held: dict[int, HeldRows] = {}
        self._limited = limited_nodes(plan, self._targets)
        # What may end the query when its rows are there already: it is asked before any is written.
        self._ending = dict.fromkeys([*self._limited, *ending_nodes(plan, self._targets, group.fork)])
        self._taken = plan.definition.with_rejected_taken()
        self._rejecting = any(rejects(plan, node) for node in group.targets)
        # Of one target they are needed once, but have to be whole before it has any of them.
        ended = ended_by(plan, [group.fork.node])
        self._whole_first = bool(ended) and writes_row_by_row(plan, self._targets)
        self._turns = in_turn(plan.definition.nodes, group.targets)
        self._takers = {
            name: {o for o in self._targets if o != name and name in plan.upstream([o])}
            for name in self._targets
        }
        self._checkpoint = plan.definition.checkpoint(group.targets[0].id)
        self._done = _Done(self._checkpoint)
        self._settled = Settled(self._checkpoint)
        self.failures: list[tuple[str, Exception]] = []

    def writer(self, frames: Frames) -> DataStreamWriter:
        """The configured writer, without output mode, trigger and checkpoint.

        Args:
            frames: The DataFrames of the stream.

        Raises:
            NodeFailure: When a gem can't build its part, before the fork or behind it.
        """
        df = frames.of(self._fork.node, self._fork.name)
        if remembering(self._plan, self._fork) is None and self._rejects_at_fork():
            df = with_file(df)
        return df.writeStream.foreachBatch(self._write)

    def _rejects_at_fork(self) -> bool:
        """Whether what a node right behind the fork rejects is taken: it has to know the rows' files."""
        taken = map(self._plan.node, self._taken)
        ordinary = {self._fork, (self._fork.node, None)} if self._fork.name == UNDIVIDED else {self._fork}
        return any(
            (edge.node, edge.output) in ordinary
            for node in taken
            if node.kind == "transform"
            for edge in node.inputs
        )

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the query; its first micro-batch waits until its id is known."""
        try:
            query = writer.start()
        except BaseException as error:
            self._query.set_exception(error)
            raise
        self._query.set_result(str(query.id))
        return query

    def rows(self, batch_id: int, target: str) -> int | None:
        """How many rows of a micro-batch a target was given; None when that isn't known."""
        return self._written.get(batch_id, {}).get(target)

    def held(self, batch_id: int) -> HeldRows:
        """What transforms behind the fork rejected, dropped and counted of a micro-batch."""
        return self._held.get(batch_id, HeldRows())

    def forget(self, batch_id: int) -> None:
        """The rows of a micro-batch have been asked for."""
        self._written.pop(batch_id, None)
        self._held.pop(batch_id, None)

    def _write(self, df: DataFrame, batch_id: int) -> None:
        query = self._query.result()
        refused: dict[str, Refusals] = {}
        several = len(self._targets) > 1 or bool(self._limited) or self._rejecting or self._whole_first
        done = self._done.of(query, batch_id)
        shared = shared_outputs(self._plan, self._fork, [name for name in self._targets if name not in done])
        with kept(self._recalled(df), several) as batch, released(refused), ExitStack() as keeping:
            observations = Observations()
            given = (self._fork, batch)
            micro_batch = RejectedIn(batch_id, self._time_of(batch_id) if self._taken else None)
            frames = Frames(
                self._plan,
                batch.sparkSession,
                given=given,
                observe=observations.observe,
                micro_batch=micro_batch,
                settle=partial(self._settled.keep, query, batch_id),
                shared=shared,
                keep=lambda rows: keeping.enter_context(kept(rows, several=True)),
            )
            rows: dict[str, int] = {}
            for name in self._ending:
                try:
                    frames.hold(name)
                except NodeFailure as failure:
                    self.failures.append((failure.node, failure.error))
            for turn in self._turns:
                waiting = [node for node in turn if node.id not in done]
                if self.failures or not waiting:
                    continue
                rows |= self._write_all(frames, waiting, micro_batch, query, refused)
                for name in refused.keys() & rows.keys() & {node.id for node in waiting}:
                    frames.refuse(name, refused[name].rows(batch.sparkSession))
        if self.failures:
            self._done.keep(query, batch_id, self._whole({*done, *rows}))
            raise self.failures[0][1]
        self._written[batch_id] = rows
        held = observations.held(let_through(self._plan, rows))
        held.add(counted_refusals(refused))
        self._held[batch_id] = held

    def _recalled(self, df: DataFrame) -> DataFrame:
        try:
            return recalled(self._plan, self._fork, df)
        except NodeFailure as failure:
            self.failures.append((failure.node, failure.error))
            raise failure.error from failure

    def _time_of(self, batch_id: int) -> int | None:
        """When a micro-batch was made, in milliseconds since 1970: the same when it comes again."""
        try:
            lines = open_folder(f"{self._checkpoint}/offsets").read(str(batch_id)).decode().splitlines()
            return int(json.loads(lines[1])["batchTimestampMs"])
        except (OSError, ValueError, LookupError):
            return None

    def _whole(self, written: set[str]) -> set[str]:
        """Those of the targets that were written whose rejected rows were written too."""
        return {name for name in written if self._takers[name] <= written}

    def _write_all(
        self,
        frames: Frames,
        targets: list[Node],
        micro_batch: RejectedIn,
        query: str,
        refused: dict[str, Refusals],
    ) -> dict[str, int]:
        """Write to the targets side by side; one that fails doesn't keep the others from ending."""
        from pyspark import inheritable_thread_target

        written: dict[str, int] = {}
        plans: dict[str, DataFrame] = {}
        for node in targets:
            edge = node.inputs[0]
            try:
                plans[node.id] = unmarked(frames.of(edge.node, edge.output))
                if rejects(self._plan, node):
                    refused[node.id] = refusals_of(self._plan, node, micro_batch)
            except NodeFailure as failure:
                self.failures.append((failure.node, failure.error))
        if self.failures:
            return written

        def write(node: Node) -> int:
            refusals = refused.get(node.id)
            context = WriteContext(
                node.id,
                self._plan.definition.name,
                node.output_mode,
                self._name,
                f"{query}.{node.identity}",
                refusals,
            )
            target = cast("Target", self._plan.gems[node.id])
            with self._rows[node.id].counting(plans[node.id]) as counted:
                target.write_batch(counted.df, micro_batch.number, context)
            return counted.rows - (refusals.count if refusals is not None else 0)

        # So that what they start is stopped with the query.
        in_group = inheritable_thread_target(plans[targets[0].id].sparkSession) if targets else None
        with ThreadPoolExecutor(max_workers=max(len(targets), 1)) as pool:
            assert in_group is not None or not targets
            tries = {node.id: pool.submit(in_group(write), node) for node in targets}  # type: ignore[misc]
        for name, tried in tries.items():
            error = tried.exception()
            if error is None:
                written[name] = tried.result()
            elif isinstance(error, Exception):
                self.failures.append((name, error))
            else:
                raise error
        return written


def refusals_of(plan: Plan, node: Node, micro_batch: RejectedIn | None = None) -> Refusals:
    """Where the rows go that a target rejects.

    Args:
        plan: The pipeline.
        node: The target.
        micro_batch: The micro-batch that it writes; None in a batch, and in a replay.
    """
    by = Rejecting(plan.definition.name, plan.definition.version, node.id, node.gem)
    taken = node.id in plan.definition.with_rejected_taken()
    event_time = event_time_column(plan.facts.get(node.inputs[0].key))
    return Refusals(by, event_time, taken=taken, micro_batch=micro_batch)


def counted_refusals(refused: Mapping[str, Refusals]) -> HeldRows:
    """How many rows targets rejected.

    Args:
        refused: What each of them rejected.
    """
    return HeldRows({name: refusals.count for name, refusals in refused.items() if refusals.count})


@contextmanager
def released(refused: Mapping[str, Refusals]) -> Iterator[None]:
    """Let go of what was rejected when it has been written, or can't be.

    Args:
        refused: What each target rejected; looked at in the end.
    """
    try:
        yield
    finally:
        for refusals in refused.values():
            refusals.release()


@contextmanager
def kept(df: DataFrame, several: bool) -> Iterator[DataFrame]:
    """The rows, kept in memory and on disk where they are needed more than once.

    Args:
        df: The rows.
        several: Whether they are.
    """
    if not several:
        yield df
        return
    held = df.persist()
    try:
        # Tasks that come for a part of it at the same time would each compute it.
        held.count()
        yield held
    finally:
        let_go(held)


class _Counted:
    """Rows that are written, and how many they were."""

    def __init__(self, df: DataFrame) -> None:
        self.df = df
        self.rows = 0


class _Counter:
    """Counts the rows of one target while they are written, or beside it where Spark doesn't tell.

    What is written as a table is observed on the way. A sink may take its rows past that (Kafka's does, and
    `foreach`), and one that knows the micro-batch already doesn't ask for them at all. That only a try shows.
    """

    def __init__(self) -> None:
        self._misses = 0
        self._told = False

    @contextmanager
    def counting(self, df: DataFrame) -> Iterator[_Counted]:
        """Count the rows that the block writes.

        Args:
            df: The rows.
        """
        from pyspark.sql import Observation
        from pyspark.sql.functions import count, lit

        if self._misses == _TRIES:
            counted = _Counted(df)
            yield counted
            counted.rows = df.count()
            return
        observation = Observation()
        counted = _Counted(df.observe(observation, count(lit(1)).alias("rows")))
        yield counted
        found = observed(observation, _TOLD_AGAIN_WITHIN if self._told else _TOLD_WITHIN)
        self._told = self._told or found is not None
        if not self._told:
            self._misses += 1
        counted.rows = df.count() if found is None else int(found["rows"])


class _Done:
    """Which targets have the micro-batch that another one failed at, so that a restart passes over them.

    Args:
        checkpoint: The location of the group's checkpoint; the file is beside it.
    """

    def __init__(self, checkpoint: str) -> None:
        self._folder, name = split(checkpoint)
        self._file = f".{name}.group.json"
        self._known: dict[str, object] | None = None

    def of(self, query: str, batch_id: int) -> set[str]:
        """The ids of the targets that have a micro-batch.

        Args:
            query: The id of the query.
            batch_id: The number of the micro-batch.
        """
        if self._known is None:
            try:
                self._known = json.loads(open_folder(self._folder).read(self._file))
            except (FileNotFoundError, ValueError):
                self._known = {}
        if self._known.get("query") == query and self._known.get("batch") == batch_id:
            return set(cast("list[str]", self._known["targets"]))
        return set()

    def keep(self, query: str, batch_id: int, targets: set[str]) -> None:
        """Write down which targets have a micro-batch."""
        self._known = {"query": query, "batch": batch_id, "targets": sorted(targets)}
        # Without it the targets that have the micro-batch get it once more: what failed is worth more.
        with suppress(Exception):
            open_folder(self._folder).write(self._file, json.dumps(self._known).encode())
