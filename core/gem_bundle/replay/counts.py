"""How many rows were rejected, and why: what `gem-bundle rejected` calls."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gem_bundle.diagnostics import NOWHERE, Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.model import Definition
from gem_bundle.pipeline.plan import Plan
from gem_bundle.rejected import COLUMNS
from gem_bundle.replay.journal import Journal, replays_of
from gem_bundle.replay.places import rejected_in
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.environment import open_plan_session
from gem_bundle.run.places import absolute_place, targets_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from gem_bundle.diagnostics import Place
    from gem_bundle.gem import Target
    from gem_bundle.pipeline.loader import Loaded, LoadOptions
    from gem_bundle.run.options import RunOptions

SAMPLES = 3
_REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class Reason:
    """Rows that a node rejected on one day for one reason. A row with several reasons is under each of them.

    Args:
        node: The id of the node.
        reason: The name of the reason.
        day: The day, ``2026-01-31``.
        rows: How many they are.
        replayed: How many of them a replay has taken; None where its record isn't known.
        samples: Some of them, as JSON.
    """

    node: str
    reason: str
    day: str
    rows: int
    replayed: int | None
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfNode:
    """All rows that a node rejected, each once.

    Args:
        node: The id of the node.
        rows: How many they are.
        several: How many of them have several reasons.
        replayed: How many of them a replay has taken; None where its record isn't known.
    """

    node: str
    rows: int
    several: int
    replayed: int | None


@dataclass(frozen=True, slots=True)
class Counted:
    """What was rejected.

    Args:
        rejected: By node, reason and day.
        nodes: By node.
    """

    rejected: tuple[Reason, ...] = ()
    nodes: tuple[OfNode, ...] = ()


def counts(load: Callable[[LoadOptions], Loaded] | None, options: RunOptions, place: str = "") -> Counted:
    """How many rows were rejected, by node, reason and day, with some of them.

    Args:
        load: Reads the pipeline; None where there is only a place.
        options: Parameters, profile, what to show.
        place: Where they lie: a path, or ``table:`` and the name of a table. Empty for all places that
            targets of the pipeline put rejected rows into.

    Raises:
        PipelineError: GB461 when there are none.
    """
    if load is None:
        plan = _plan_of(place)
        with _session_of(plan) as spark:
            return _counted(rejected_in(plan, place, spark), None)
    plan, _ = prepare(load, options)
    targets = [node.id for node in plan.definition.of_kind("target")]
    places = [place] if place else list(_places_of_rejected(plan))
    if not places:
        message = "no target puts rejected rows, as they are, into a place that can be read"
        hint = "Name the place: `--in PLACE`."
        at = plan.definition.locator.place(())
        raise PipelineError([Diagnostic("GB461", "error", message, place=at, hint=hint)])
    with open_for(plan, targets, options, brief=True, tried=targets) as session:
        found = [rejected_in(plan, each, session.spark) for each in places]
        rejected = reduce(lambda one, other: one.unionByName(other), found)
        return _counted(*_with_replayed(plan, rejected, session.spark))


def _places_of_rejected(plan: Plan) -> Iterator[str]:
    """Where targets put rejected rows, with all of their columns."""
    wanted = [column.name for column in COLUMNS]
    for node in plan.definition.of_kind("target"):
        facts = plan.facts.get(node.inputs[0].key)
        names = [column.name for column in (facts.columns if facts is not None else None) or ()]
        gem = cast("Target", plan.gems[node.id])
        if names == wanted:
            for found in gem.places().values():
                yield from list(found)[:1] if gem.holds_rejected() else []  # one broker stands for all


def _plan_of(place: str) -> Plan:
    """A pipeline of what can read a place, where nobody has written one."""
    where = absolute_place(place)
    gems = {f"place_{number}": gem for number, gem in enumerate(targets_at(where, [], rejected=True))}
    definition = Definition(
        name="rejected",
        version="0",
        description="",
        mode="batch",
        folder=Path.cwd(),
        file="",
        nodes={},
        spark={},
        checkpoints="",
        locator=_NoFile(),
        parameters={},
        values={},
        secrets=frozenset(),
    )
    return Plan(definition, gems, tuple(gems), {})


@contextmanager
def _session_of(plan: Plan) -> Iterator[SparkSession]:
    try:
        session = open_plan_session(plan, brief=True, records=False)
    except GemError as error:
        raise PipelineError([Diagnostic(error.code, "error", error.message, hint=error.hint)]) from error
    try:
        yield session.spark
    finally:
        session.close()


class _NoFile:
    """Finds things where there is no file."""

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:  # noqa: ARG002
        """Nowhere."""
        return NOWHERE

    def text(self, path: Sequence[str | int]) -> str | None:  # noqa: ARG002
        """Nothing."""
        return None


def _with_replayed(plan: Plan, rejected: DataFrame, spark: SparkSession) -> tuple[DataFrame, Column]:
    """The rows, and of each whether a replay has taken it."""
    from pyspark.sql import functions as F  # noqa: N812

    parts, rest = [], F.lit(True)
    for node in plan.definition.nodes.values():
        if node.kind == "source":
            continue
        journal = Journal(replays_of(plan, node), spark)
        if journal.replays():
            of_it = (F.col("pipeline") == plan.definition.name) & F.col("node").isin(node.id, *node.was)
            parts.append(journal.marked(rejected.where(of_it), _REPLAYED))
            rest &= ~of_it
    others = rejected.where(rest).withColumn(_REPLAYED, F.lit(False))
    return reduce(lambda one, other: one.unionByName(other), parts, others), F.col(_REPLAYED)


def _counted(rejected: DataFrame, replayed: Column | None) -> Counted:
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    reasons = F.array_distinct(F.col("reasons.name"))
    taken = F.count_if(replayed) if replayed is not None else F.lit(None)
    marked = rejected.select(
        "node", "row", F.to_date("rejected_at").alias("day"), reasons.alias("names"), *_named(replayed)
    )
    alike = Window.partitionBy("node", "reason", "day").orderBy("row")
    found = (
        marked.withColumn("reason", F.explode("names"))
        .withColumn("sample", F.when(F.row_number().over(alike) <= SAMPLES, F.col("row")))
        .groupBy("node", "reason", "day")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            taken.alias("replayed"),
            F.array_sort(F.collect_list("sample")).alias("samples"),
        )
        .orderBy("node", F.desc("rows"), "reason", "day")
        .collect()
    )
    nodes = (
        marked.groupBy("node")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(F.size("names") > 1).alias("several"),
            taken.alias("replayed"),
        )
        .orderBy("node")
        .collect()
    )
    return Counted(tuple(map(_reason, found)), tuple(OfNode(**row.asDict()) for row in nodes))


def _named(replayed: Column | None) -> list[Column]:
    return [] if replayed is None else [replayed]


def _reason(row: Row) -> Reason:
    return Reason(**{**row.asDict(), "day": str(row["day"]), "samples": tuple(row["samples"])})
