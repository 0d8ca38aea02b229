"""A batch pipeline: every target is written once, one after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from gem_bundle.contexts import WriteContext
from gem_bundle.pipeline.groups import ending_nodes, in_turn, limited_nodes, rejects
from gem_bundle.run.failures import build_failure
from gem_bundle.run.frames import Frames, NodeFailure
from gem_bundle.run.groups import counted_refusals, kept, refusals_of, released
from gem_bundle.run.held import Observations, let_through, observed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from gem_bundle.gem import Target
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.refusals import Refusals
    from gem_bundle.run.report import Report
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.run.supervisor import View

_COUNT_SECONDS = 2.0


def run_batch(
    plan: Plan,
    targets: Sequence[Node],
    spark: SparkSession,
    report: Report,
    view: View,
    stop: StopRequest,
) -> None:
    """Write the targets of a batch pipeline, in the order of the file.

    A target that fails ends the run; those written before it stay written.

    Args:
        plan: The pipeline.
        targets: The targets to run.
        spark: The session.
        report: Where numbers and the outcome go.
        view: Who is told.
        stop: Asked between two targets.
    """
    observations = Observations()
    # Lost parts of it end the run: nobody is asked once more.
    frames = Frames(plan, spark, observe=observations.observe, settle=lambda _node, df: df.localCheckpoint())
    began = time.monotonic()
    report.start()
    view.started(report)
    names = [node.id for node in targets]
    for name in dict.fromkeys([*limited_nodes(plan, names), *ending_nodes(plan, names)]):
        try:
            frames.hold(name)
        except NodeFailure as failure:
            report.diagnostics.append(build_failure(plan, failure.node, failure.error))
    refused: dict[str, Refusals] = {}
    with released(refused):
        for node in [node for turn in in_turn(plan.definition.nodes, targets) for node in turn]:
            if stop or report.diagnostics:
                break
            try:
                _write(plan, node, frames, report, refused)
            except NodeFailure as failure:
                report.diagnostics.append(build_failure(plan, failure.node, failure.error))
                break
            except Exception as error:  # noqa: BLE001 (whatever a gem raises belongs to its node)
                report.diagnostics.append(build_failure(plan, node.id, error))
                break
            view.tick()
    written = [node.id for node in targets if report.targets[node.id].rows_out is not None]
    held = observations.held(let_through(plan, written))
    held.add(counted_refusals(refused))
    for name in written:
        report.targets[name].held = held.only(plan.upstream([name]))
    status = "failed" if report.diagnostics else ("stopped" if stop else "finished")
    report.end(status, time.monotonic() - began)  # type: ignore[arg-type]


def _write(plan: Plan, node: Node, frames: Frames, report: Report, refused: dict[str, Refusals]) -> None:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    edge = node.inputs[0]
    observation = Observation()
    if rejects(plan, node):
        refused[node.id] = refusals_of(plan, node)
    refusals = refused.get(node.id)
    context = WriteContext(node.id, plan.definition.name, node.output_mode, refusals=refusals)
    began = time.monotonic()
    totals = report.targets[node.id]
    with kept(frames.of(edge.node, edge.output), refusals is not None) as rows:
        df = rows.observe(observation, count(lit(1)).alias("rows"))
        cast("Target", plan.gems[node.id]).write(df, context)
        if refusals is not None:
            frames.refuse(node.id, refusals.rows(rows.sparkSession))
            totals.rows_out = rows.count() - refusals.count
    totals.busy_ms = round((time.monotonic() - began) * 1000)
    if refusals is not None:
        return
    # A target may write without Spark: a function of the user's that ignores its rows.
    counted = observed(observation, _COUNT_SECONDS)
    totals.rows_out = None if counted is None else int(counted["rows"])
