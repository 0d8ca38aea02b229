"""Spark's own verdict on each target of a pipeline, without starting anything."""

from __future__ import annotations

import logging
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from gem_bundle.errors import GemError
from gem_bundle.pipeline.plan import Plan
from gem_bundle.run.engine import Engine, query_ends
from gem_bundle.run.failures import headline
from gem_bundle.run.frames import Frames, harmless
from gem_bundle.schema import columns_of
from tests.differential.changing import analyse, changing
from tests.differential.sources import undeclared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import Registry
    from gem_bundle.run.engine import Answer

Outcome = Literal["accepted", "streaming", "analysis", "static"]
_QUERY_CONTEXT = "spark.sql.dataFrameQueryContext.enabled"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What Spark says of one target's query.

    Args:
        outcome: ``accepted``, refused as a ``streaming`` query, not a query that its ``analysis`` can
            make sense of, or ``static``: a query over no stream in a streaming pipeline.
        node: The node it refuses.
        reason: Spark's condition, for example ``UNRESOLVED_COLUMN.WITH_SUGGESTION``.
        message: Spark's sentence.
    """

    outcome: Outcome
    node: str = ""
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} at {self.node}: {self.message}" if self.message else self.outcome


class Spark:
    """Asks one session about any number of pipelines.

    Args:
        spark: The session.
        folder: An empty folder.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.session = spark
        self._engine = Engine(spark, str(folder))

    def verdicts(self, plan: Plan) -> dict[str, Verdict]:
        """Spark's verdict for each target.

        Of one whose query it takes, it is asked about how the rows change others, where they do.
        """
        verdicts = {
            answer.target: _verdict(answer, plan.definition.mode) for answer in self._engine.ask(plan)
        }
        frames: Frames | None = None
        for target, verdict in verdicts.items():
            node = plan.node(target)
            how = changing(node.options)
            if how is not None and verdict.outcome == "accepted" and is_asked_whole(plan, target):
                frames = frames or Frames(harmless(plan), self.session, self._engine.reader(plan))
                (rows,) = node.inputs
                try:
                    analyse(frames.of(rows.node, rows.output), how)
                except Exception as error:  # noqa: BLE001 (what it raises is the answer)
                    verdicts[target] = Verdict("analysis", target, _condition(error), headline(error))
        return verdicts


def is_asked_whole(plan: Plan, target: str) -> bool:
    """Whether Spark is asked of all that lies before a target, and not only of what lies before a fork.

    Args:
        plan: The pipeline.
        target: The target.
    """
    (rows,) = plan.node(target).inputs
    return query_ends(plan)[target] == (rows.node, rows.output)


@contextmanager
def asking(spark: SparkSession) -> Iterator[Spark]:
    """A session made ready for thousands of questions."""
    # Where in Python a column was made is of no interest here, and asking for it halves the speed.
    before = spark.conf.get(_QUERY_CONTEXT) or "true"
    spark.conf.set(_QUERY_CONTEXT, "false")
    from pyspark.logger import PySparkLogger

    # PySpark logs each error of the analyser, stack and all.
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with tempfile.TemporaryDirectory(prefix="gem-bundle-differential-") as folder:
            yield Spark(spark, Path(folder))
    finally:
        logger.setLevel(level)
        spark.conf.set(_QUERY_CONTEXT, before)


@contextmanager
def started(folder: Path, jars: Sequence[Path] = ()) -> Iterator[SparkSession]:
    """A Spark of one's own, with its log in a folder.

    Args:
        folder: The folder.
        jars: What it has beside Spark's own.
    """
    from gem_bundle.run.session import SessionRequest, open_session

    session = open_session(
        SessionRequest(
            app_name="gem-bundle-differential",
            settings={
                "spark.master": "local[2]",
                "spark.driver.memory": "3g",
                "spark.sql.session.timeZone": "UTC",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                # What a page would show of thousands of queries fills the memory in an hour.
                "spark.sql.ui.retainedExecutions": "5",
                "spark.sql.streaming.ui.retainedQueries": "5",
                "spark.ui.retainedJobs": "20",
                "spark.ui.retainedStages": "20",
                "spark.ui.retainedTasks": "100",
                "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
            },
            jars=jars,
            spark_log=folder / "spark.log",
            brief=True,
        )
    )
    try:
        yield session.spark
    finally:
        session.close()


def plan_of(definition: Definition, registry: Registry) -> Plan | None:
    """What the engine is asked about, whatever the checker thinks of it; None without valid options."""
    from gem_bundle.check.stages.gems import make_gems
    from gem_bundle.check.stages.graph import check_graph

    order, _ = check_graph(definition, ())
    gems, wrong = make_gems(definition, registry)
    if wrong or len(order) < len(definition.nodes):
        return None
    facts = {
        node.id: _told(node, cast("Source", gems[node.id]).infer()) for node in definition.of_kind("source")
    }
    return Plan(definition, gems, tuple(order), facts)


def _told(node: Node, facts: Facts) -> Facts:
    """What is known of a source's rows, with the columns of a table that nobody declares."""
    if facts.columns is not None:
        return facts
    schema = undeclared(node.gem, node.options)
    return facts.with_columns(None if schema is None else columns_of(schema))


def _verdict(answer: Answer, mode: str) -> Verdict:
    error = answer.error
    if mode == "stream" and answer.streaming is False:
        return Verdict("static")
    if error is None:
        return Verdict("accepted")
    outcome: Outcome = "analysis" if answer.streaming is None else "streaming"
    return Verdict(outcome, answer.node, _condition(error), headline(error))


def _condition(error: Exception) -> str:
    condition = getattr(error, "getCondition", lambda: None)()
    if isinstance(error, GemError):
        condition = error.code
    return condition or type(error).__name__
