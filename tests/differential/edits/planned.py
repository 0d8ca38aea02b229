"""Whether Spark takes the state of an edited pipeline, by its planning alone: some five edits a second.

Before a query's first micro-batch Spark plans it, and compares what it would keep with what the checkpoint has.
That decides whether it refuses an edit for its state, and needs neither rows nor anything that runs. So many more
edits can be tried than run; those that Spark and `gem-bundle plan` don't agree on are run then, and those that are
called harmless though something else is planned before what keeps state.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.plugins import load_registry
from gem_bundle.run.failures import headline, root_cause
from gem_bundle.run.frames import Frames
from gem_bundle.run.setting import setting
from tests.differential.edits.drawn import MOVED, drawn_edits
from tests.differential.edits.run import HARMLESS
from tests.differential.edits.run import judge as judge_edit
from tests.differential.edits.truth import SETTINGS, Experiments, schema_read
from tests.differential.engine import started
from tests.differential.processes import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from tests.differential.edits.drawn import Drawn
    from tests.differential.edits.truth import First

Found = Literal[
    "right", "better", "refused missed", "worse", "planned otherwise", "useless", "useless over rows"
]
EACH = 12
"""How many edits of one pipeline are planned."""

_PROGRESS = 100
# What a streaming query sets before it plans.
_PLANNING = {
    **SETTINGS,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.cbo.enabled": "false",
    "spark.sql.streaming.internal.stateStore.partitions": "1",
    # Where in Python a column was made is of no interest here.
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
_DRAWING = re.compile(r"^[\s:+~-]*")
_NUMBER = re.compile(r"#\d+L?")
# The nodes of a plan that may keep state.
_WITH_STATE = ("Aggregate", "Deduplicate", "Join", "GlobalLimit", "LocalLimit")
_PACKAGE = "org.apache.spark.sql.execution"
_STREAMING = f"{_PACKAGE}.streaming.runtime"
# Of the rows of a join it is told by a plan alone that a column is never null where a query that runs doesn't tell it.
_ROWS_OF_JOINS = "*WithIndex*/_metadata/schema"


class Planning:
    """Has Spark plan versions of pipelines as it does before their first micro-batch.

    It goes behind PySpark: `IncrementalExecution`, which compares the state, is Java's.

    Args:
        spark: The session.
        folder: An empty folder.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._jvm: Any = spark._jvm
        self._old: Plan | None = None
        self._before = self._after = ""

    def refusal(self, old: Plan, new: Plan, target: str) -> Exception | None:
        """Why Spark doesn't go on with version 2 where version 1 was.

        Args:
            old: The plan of version 1.
            new: The plan of version 2.
            target: Their target.

        Returns:
            None when it does.

        Raises:
            Exception: When it plans one of them not even by itself.
        """
        alone, edited = self._folder / "alone", self._folder / "edited"
        try:
            with self._settings(_PLANNING):
                self._plan(new, target, alone, 0)
                shutil.copytree(self._first(old, target), edited)
                try:
                    self._after = self._plan(new, target, edited, 1)
                except Exception as error:  # noqa: BLE001 (what it raises is the answer)
                    return error
            return None
        finally:
            shutil.rmtree(alone, ignore_errors=True)
            shutil.rmtree(edited, ignore_errors=True)

    def plan_alone(self, plan: Plan, target: str, checkpoint: Path) -> None:
        """Plan the first micro-batch of a version: in the checkpoint Spark leaves the schemas of its state.

        Args:
            plan: The plan of the version.
            target: Its target.
            checkpoint: A folder that isn't there yet.

        Raises:
            Exception: When Spark doesn't plan it.
        """
        shutil.rmtree(checkpoint, ignore_errors=True)
        (checkpoint / "state").mkdir(parents=True)
        with self._settings(_PLANNING):
            self._plan(plan, target, checkpoint, 0)

    @property
    def changes_before_state(self) -> bool:
        """Whether what gets into state is planned otherwise in the second of the versions that were planned last."""
        return _into_state(self._before) != _into_state(self._after)

    def _first(self, plan: Plan, target: str) -> Path:
        """What Spark leaves of version 1 when it plans it, which is done once for all edits of one pipeline."""
        first = self._folder / "first"
        if self._old is not plan:
            shutil.rmtree(first, ignore_errors=True)
            (first / "state").mkdir(parents=True)
            self._old = None
            self._before = self._plan(plan, target, first, 0)
            _forget_nulls(first)
            self._old = plan
        return first

    @contextmanager
    def _settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        with ExitStack() as stack:
            for key, value in settings.items():
                stack.enter_context(setting(self._spark, key, value))
            yield

    def _plan(self, plan: Plan, target: str, checkpoint: Path, batch: int) -> str:
        (edge,), mode = plan.node(target).inputs, plan.node(target).output_mode
        with self._settings(plan.definition.spark):
            df = Frames(plan, self._spark, self._reader(plan)).of(edge.node, edge.output)
            session = df._jdf.sparkSession()
            made = self._object(f"{_PACKAGE}.streaming.checkpointing.OffsetSeqMetadata").apply(
                0, 0, session.conf()
            )
            new_id = self._jvm.java.util.UUID.randomUUID
            execution = self._jvm.org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution(
                session,
                df._jdf.queryExecution().analyzed(),
                getattr(self._jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())(),
                str(checkpoint / "state"),
                new_id(),
                new_id(),
                batch,
                self._object("scala.Option").apply(made if batch else None),
                made,
                self._object(f"{_STREAMING}.WatermarkPropagator").noop(),
                True,  # the first micro-batch of a run, before which state is compared
                self._jvm.scala.collection.mutable.HashMap(),
                self._jvm.scala.collection.mutable.HashMap(),
                self._object(f"{_PACKAGE}.CommandExecutionMode").SKIP(),
                False,
            )
            execution.executedPlan()
            return str(execution.optimizedPlan().toString())

    def _object(self, name: str) -> Any:
        """An object of Scala's."""
        return self._jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)

    def _reader(self, plan: Plan) -> Any:
        def read(node: Node, name: str) -> DataFrame:
            from pyspark.sql import DataFrame
            from pyspark.sql.types import StructType

            schema = schema_read(plan, node)
            if node.mode == "batch":
                return self._spark.read.schema(schema).json(str(self._folder))
            java: Any = self._spark._jsparkSession
            tag = self._object("scala.reflect.ClassTag").AnyRef()
            rows = self._spark.sparkContext._jsc.sc().emptyRDD(tag)
            made = java.parseDataType(StructType.fromDDL(schema).json())
            df = DataFrame(java.internalCreateDataFrame(rows, made, True), self._spark)
            # As a micro-batch has it: each column under the name that the query knows.
            return df.select([df[f"`{column}`"].alias(column) for column in df.columns])

        return read


def _into_state(plan: str) -> list[str]:
    """What gets into state by an optimized plan, without what differs from one run to the next."""
    lines = [_DRAWING.sub("", _NUMBER.sub("", line)) for line in plan.splitlines()]
    first = next((number for number, line in enumerate(lines) if line.startswith(_WITH_STATE)), len(lines))
    return lines[first:]


def _forget_nulls(checkpoint: Path) -> None:
    for file in checkpoint.rglob(_ROWS_OF_JOINS):
        # As many bytes, since the file says how many they are.
        file.write_bytes(file.read_bytes().replace(b'"nullable":false', b'"nullable":true '))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def judge(drawn: Drawn, said: str, planning: Planning) -> tuple[Found, str]:
    """What a verdict is worth beside what Spark plans, with Spark's words.

    Args:
        drawn: The edit.
        said: The verdict.
        planning: Where it is planned.
    """
    try:
        refusal = planning.refusal(drawn.old, drawn.new, drawn.target)
    except Exception as error:  # noqa: BLE001 (it tells nothing of the edit)
        return "useless", headline(root_cause(error))
    reason = "" if refusal is None else headline(root_cause(refusal))
    return _found(said, refused=refusal is not None), reason


def _found(said: str, *, refused: bool) -> Found:
    if refused is (said == "refused"):
        return "right"
    return "refused missed" if refused else "worse"


def judge_run(drawn: Drawn, said: TargetChanges, first: First, experiments: Experiments) -> Found:
    """What a verdict is worth over rows, since a plan alone doesn't tell all.

    Args:
        drawn: The edit.
        said: The verdict.
        first: What version 1 has left.
        experiments: Where it is run.
    """
    truth = experiments.of(first, drawn.new, drawn.target)
    if truth.outcome in {"useless", "unfit"}:
        return "useless over rows"
    if said.verdict in HARMLESS and judge_edit(drawn.edit, said, truth) == "better":
        return "better"
    found = _found(said.verdict, refused=truth.outcome == "refused")
    return "planned otherwise" if found == "right" and said.verdict not in HARMLESS else found


def work(seed: str, job: int, jobs: int, count: int, states: int = 0, at_once: int = 1) -> Counter[str]:
    """Plan edits in a session of one's own: those of every so many pipelines of a seed.

    Args:
        seed: What the pipelines come from.
        job: Which of the processes this is.
        jobs: How many there are.
        count: How many edits.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.
    """
    tally: Counter[str] = Counter()
    registry = load_registry()
    number = job
    with tempfile.TemporaryDirectory(prefix="gem-bundle-planned-") as name, started(Path(name)) as spark:
        planning = Planning(spark, Path(name) / "planned")
        experiments = Experiments(spark, Path(name) / "runs")
        while tally.total() < count:
            told = f"{seed}:{number}"
            number += jobs
            first: First | None = None
            for drawn in drawn_edits(told, registry, EACH, asked=True, states=states, at_once=at_once):
                if not drawn.stateful or drawn.edit.kind == MOVED:
                    continue
                said = drawn.said(registry)
                found, reason = judge(drawn, said.verdict, planning)
                looked_at = found == "right" and said.verdict in HARMLESS and planning.changes_before_state
                if looked_at or found not in {"right", "useless"}:
                    first = first or experiments.first(told, drawn.old, drawn.target)
                    found = judge_run(drawn, said, first, experiments)
                    if looked_at and found == "useless over rows":
                        found = "right"  # as far as its plan tells
                    if found not in {"right", "planned otherwise"}:
                        codes = "; ".join(f"{c.verdict}[{c.code}] {c.message[:200]}" for c in said.changes)
                        print(
                            f"{told} {drawn.edit.kind} ({drawn.edit.node}): called {said.verdict} [{found}]"
                        )
                        print(f"    {reason}\n    {codes}", flush=True)
                tally[found] += 1
                if tally.total() % _PROGRESS == 0:
                    print(f"{tally.total()} edits: {dict(tally)}", flush=True)
            if first is not None:
                first.close()
    return tally


def run(seed: str, count: int, jobs: int, states: int = 0, at_once: int = 1) -> int:
    """Plan edits, in several processes if that is asked for.

    Args:
        seed: What the pipelines come from.
        count: How many edits.
        jobs: How many processes.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.

    Returns:
        The exit status: 1 when one was called better than it is.
    """
    print(f"seed {seed}, {count} edits that are planned", flush=True)
    share = -(-count // jobs)
    tally = counted("edits", work, [(seed, job, jobs, share, states, at_once) for job in range(jobs)])
    return 1 if tally["refused missed"] or tally["better"] else 0
