"""Targets of a group behind a node that has to have each micro-batch as a table: so a test has it too.

Such a node compares the rows of a micro-batch with each other, or may only reject so many of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.pipeline.groups import comparing_nodes, copies, groups_of, limited_nodes
from gem_bundle.run.frames import Frames, NodeFailure, recalled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from gem_bundle.pipeline.groups import Output
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.frames import Read


def forks(plan: Plan, targets: Iterable[str]) -> dict[str, Output]:
    """Where the queries of targets end that are behind such a node, by their ids.

    Args:
        plan: The pipeline.
        targets: The ids of the targets that run.
    """
    asking = {*comparing_nodes(plan), *limited_nodes(plan)}
    return {
        node.id: group.fork
        for group in groups_of(plan, [plan.node(name) for name in targets])
        for node in group.targets
        if group.fork is not None and asking & set(plan.upstream([node.id]))
    }


class Behind:
    """What lies between the fork and a target.

    Args:
        plan: The pipeline.
        target: The target.
        fork: The fork.
        read: Reads the static sides.

    Attributes:
        failure: Why a micro-batch doesn't get to the target, where a node says so.
        copies: As `gem_bundle.run.progress.ProgressReader` has it.
    """

    def __init__(self, plan: Plan, target: Node, fork: Output, read: Read) -> None:
        self.copies = copies(plan, fork)
        self.failure: NodeFailure | None = None
        self._plan = plan
        self._edge = target.inputs[0]
        self._fork = fork
        self._read = read
        self._limited = limited_nodes(plan, [target.id])

    def empty(self, df: DataFrame) -> DataFrame:
        """What the target would get of no rows.

        Args:
            df: The stream that comes out of the fork.
        """
        return self._rows(df.sparkSession.createDataFrame([], df.schema), ())

    def rows(self, batch: DataFrame) -> DataFrame:
        """What the target gets of a micro-batch.

        Args:
            batch: The rows that come out of the fork.

        Raises:
            Exception: What a node on the way raises; then `failure` names it.
        """
        try:
            return self._rows(batch, self._limited)
        except NodeFailure as failure:
            self.failure = failure
            raise failure.error from failure

    def _rows(self, batch: DataFrame, limited: Iterable[str]) -> DataFrame:
        rows = recalled(self._plan, self._fork, batch)
        frames = Frames(self._plan, batch.sparkSession, read=self._read, given=(self._fork, rows))
        for name in limited:
            frames.hold(name)
        return frames.of(self._edge.node, self._edge.output)
