"""The streaming rules of a whole pipeline: what Spark would say at the start, and what it never says.

They work on the facts that flow from node to node (`gem_bundle.facts`); where those say *unknown*, no
rule fires.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.check.streaming.event_times import check_event_times
from gem_bundle.check.streaming.joins import check_joins
from gem_bundle.check.streaming.operations import check_operations
from gem_bundle.check.streaming.output_modes import check_output_mode
from gem_bundle.check.streaming.state import check_state, check_target_state
from gem_bundle.operators import Ancestry, StatefulOperator

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.plan import Plan

UNSUPPORTED = "spark.sql.streaming.unsupportedOperationCheck"


def check_streaming(plan: Plan) -> list[Diagnostic]:
    """What is wrong with the queries of a pipeline as streams.

    Args:
        plan: The pipeline, with the facts of its nodes.
    """
    if plan.definition.mode == "batch":
        return []
    targets = plan.definition.of_kind("target")
    queries = {node.id: plan.facts.get(node.inputs[0].key) for node in targets}
    streams = {name: facts for name, facts in queries.items() if facts is not None and facts.streaming}
    ancestry = Ancestry(operator for facts in streams.values() for operator in facts.operators)
    found: list[Diagnostic] = []
    for name, facts in streams.items():
        found += check_output_mode(plan, plan.node(name), facts, ancestry)
        found += check_target_state(plan, plan.node(name), facts, ancestry)
    found += check_operations(plan, ancestry.operators)
    found += check_joins(plan, ancestry)
    found += check_state(plan, ancestry)
    if any(isinstance(operator, StatefulOperator) for operator in ancestry.operators):
        # Few pipelines have one; the others don't pay for reading Python.
        from gem_bundle.check.streaming.processors import check_processors, check_processors_end

        for name, facts in streams.items():
            found += check_processors_end(plan, plan.node(name), facts)
        found += check_processors(plan, ancestry)
    found += check_event_times(plan, streams, ancestry)
    if plan.definition.spark.get(UNSUPPORTED, "true").lower() == "false":
        return [replace(d, severity="warning") if d.is_error else d for d in found]
    return found
