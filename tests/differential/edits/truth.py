"""What becomes of the rows of an edited pipeline: version 1, then version 2 on its checkpoint, in real Spark."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.run.environment import KEEPS_LIMITS
from gem_bundle.run.failures import headline, root_cause
from gem_bundle.run.frames import Frames
from gem_bundle.schema import schema_of
from tests.differential.edits.rows import PHASES, write_phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.frames import Read

Outcome = Literal["continues", "from_now_on", "wrong", "refused", "useless", "unfit"]
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ansi.enabled": "false",
    # For ten rows compiling takes longer than working without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    **KEEPS_LIMITS,
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart": "false",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}
_SECONDS = 60


def schema_read(plan: Plan, node: Node) -> str:
    """The schema of the rows of a source.

    Args:
        plan: The pipeline.
        node: The source.
    """
    return schema_of(cast("Source", plan.gems[node.id]).infer().columns or ())


@dataclass(frozen=True)
class Written:
    """What a run wrote.

    Args:
        rows: The rows as text, with how often each came; in complete mode those of the last micro-batch.
        tables: In complete mode the rows of each micro-batch.
        batches: How many micro-batches wrote something.
        kept: How many rows of state there were in the end.
        read: How many rows it read.
        error: Why it failed, if it did.
    """

    rows: Counter[str] = field(default_factory=Counter)
    tables: tuple[Counter[str], ...] = ()
    batches: int = 0
    kept: int = 0
    read: int = 0
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """Spark's own words of the failure."""
        return headline(root_cause(self.error)) if self.error else ""


@dataclass(frozen=True)
class Truth:
    """What became of an edit.

    Args:
        outcome: ``continues``: the rows are those of version 2 from scratch; ``from_now_on``: those of
            version 2 are, and those of version 1 stay; ``wrong``: neither; ``refused``: Spark fails;
            ``useless``: version 2 by itself doesn't run, or nothing came out; ``unfit``: version 1 doesn't,
            or the rows are too many for this machine.
        reason: Why, in words.
        arrived: They are those of version 2 from scratch where the rows of new sources come when they did:
            which of equal rows stays, and which are late, goes by that.
        arrived_since: From then on they are those, whatever version 1 wrote.
        kept: How many rows of state version 1 had left: without any nothing can be mixed.
        same: Version 1 by itself would have given the same rows, so that nothing of it could be told apart.
        again: Version 2 read more rows than came since version 1, whether anything shows that or not: behind a
            `deduplicate` nothing does.
        as_before: Version 2, which has other settings, wrote what version 1 would have gone on with.
    """

    outcome: Outcome
    reason: str = ""
    arrived: bool = False
    arrived_since: bool = False
    kept: int = 1
    same: bool = False
    again: bool = False
    as_before: bool = False


class Experiments:
    """Runs versions of pipelines over rows in two phases.

    Args:
        spark: The session; its settings are put back by `close`.
        folder: An empty folder.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._before = {key: spark.conf.get(key, None) for key in SETTINGS}
        self._set(SETTINGS)
        self._number = 0

    def close(self) -> None:
        """Put the session's settings back."""
        self._set(self._before)

    def _set(self, settings: Mapping[str, str | None]) -> None:
        for key, value in settings.items():
            if value is None:
                self._spark.conf.unset(key)
            else:
                self._spark.conf.set(key, value)

    def first(self, seed: str, plan: Plan, target: str) -> First:
        """Version 1 over the rows of the first phase: where its edits begin.

        Args:
            seed: What the rows come from.
            plan: Version 1.
            target: Its target.
        """
        self._number += 1
        place = self._folder / str(self._number)
        files = _Files(place / "rows", seed)
        files.take(plan)
        files.add("a")
        return First(place, files, plan, self._run(plan, target, place / "checkpoint", files))

    def of(self, first: First, plan: Plan, target: str) -> Truth:
        """What becomes of an edit.

        Args:
            first: What version 1 has left.
            plan: Version 2.
            target: Its target.
        """
        if first.written.error is not None:
            return Truth("unfit", first.written.reason)
        first.edits += 1
        place = first.place / f"edit{first.edits}"
        files = _Files(place / "rows", first.files.seed, first.files)
        edited, scratch = place / "edited", place / "scratch"
        shutil.copytree(first.place / "checkpoint", edited)
        # What was read keeps its path: a file source goes by it.
        files.take(plan)
        try:
            files.add("a")
            from_scratch = self._run(plan, target, scratch, files)
            if from_scratch.error is not None:
                return _without(from_scratch, "useless", "version 2: ")
            files.add("b")
            second = self._run(plan, target, edited, files)
            if second.error is not None:
                # What Spark can't go on with though nothing was edited tells nothing of the edit.
                alone = self._alone(first, target)
                if alone.error is not None:
                    return _without(alone, "unfit")
                return _without(second, "refused")
            then = self._run(plan, target, scratch, files)
            if then.error is not None:
                return _without(then, "useless", "version 2: ")
            mode = plan.node(target).output_mode
            truth = _judge(mode, first.written, second, from_scratch, then)
            truth = replace(truth, kept=first.written.kept, again=second.read > then.read)
            if truth.outcome == "continues":
                alone = self._alone(first, target)
                same = _judge(mode, first.written, alone, from_scratch, then).outcome == "continues"
                truth = replace(truth, same=same and alone.error is None)
            elif plan.definition.spark != first.plan.definition.spark:
                # What a checkpoint keeps of its first run is compared with that, and not with version 2.
                alone = self._alone(first, target)
                as_before = alone.error is None and (alone.rows, alone.tables) == (second.rows, second.tables)
                truth = replace(truth, as_before=as_before)
            if truth.outcome in {"wrong", "from_now_on"} and files.take_back_new(plan):
                files.take_back("b")
                later = place / "later"
                before = self._run(plan, target, later, files)
                for phase in PHASES:
                    files.add(phase)
                after = self._run(plan, target, later, files)
                if before.error is None and after.error is None:
                    judged = _judge(mode, first.written, second, before, after)
                    # Where nothing comes any more, what had come is the same or isn't.
                    nothing = judged.outcome == "useless"
                    arrived = nothing and first.written.rows == before.rows
                    truth = replace(
                        truth,
                        arrived=arrived or judged.outcome == "continues",
                        arrived_since=nothing or judged.outcome in {"continues", "from_now_on"},
                    )
            return truth
        finally:
            files.take_back("b")
            shutil.rmtree(place, ignore_errors=True)

    def _alone(self, first: First, target: str) -> Written:
        """What version 1 writes of the second phase, whose rows are there."""
        if first.alone is None:
            checkpoint = first.place / "alone"
            shutil.copytree(first.place / "checkpoint", checkpoint)
            first.alone = self._run(first.plan, target, checkpoint, first.files)
        return first.alone

    def _run(self, plan: Plan, target: str, checkpoint: Path, files: _Files) -> Written:
        node = plan.node(target)
        found: list[Counter[str]] = []
        mode = node.output_mode

        def keep(batch: DataFrame, _: int) -> None:
            # By name: in which order a sink gets the columns makes no difference to it.
            names = batch.columns
            rows = Counter(_text_of(names, row) for row in batch.collect())
            if rows or mode == "complete":
                found.append(rows)

        settings = plan.definition.spark
        before = {key: self._spark.conf.get(key, None) for key in settings}
        try:
            self._set(settings)
            frames = Frames(plan, self._spark, self._reader(plan, files))
            df = frames.of(node.inputs[0].node, node.inputs[0].output)
            writer = df.writeStream.foreachBatch(keep).outputMode(mode)
            writer = writer.option("checkpointLocation", str(checkpoint))
            waits = node.trigger.kind == "processing_time"
            query = (
                writer.trigger(processingTime="0 seconds") if waits else writer.trigger(availableNow=True)
            ).start()
            try:
                if waits:
                    # With an interval it is asked about once in it; what a micro-batch does is the same.
                    query.processAllAvailable()
                elif not query.awaitTermination(_SECONDS):
                    return Written(error=TimeoutError(f"more than {_SECONDS} seconds"))
                last = query.lastProgress
                kept = sum(o.numRowsTotal for o in last.stateOperators) if last is not None else 0
                read = sum(progress.numInputRows for progress in query.recentProgress)
            finally:
                query.stop()
        except Exception as error:
            if self._spark.sparkContext._jsc.sc().isStopped():
                raise  # what it raises is the answer, but of a Spark that is no more, which answers nothing
            return Written(error=error)
        finally:
            self._set(before)
        if mode == "complete":
            return Written(found[-1] if found else Counter(), tuple(found), len(found), kept, read)
        return Written(sum(found, Counter()), (), len(found), kept, read)

    def _reader(self, plan: Plan, files: _Files) -> Read:
        def read(node: Node, name: str) -> DataFrame:
            schema = schema_read(plan, node)
            path = str(files.of(node, schema))
            if node.mode == "batch":
                return self._spark.read.schema(schema).json(path)
            reader = self._spark.readStream.name(name).option("maxFilesPerTrigger", 1)
            return reader.schema(schema).json(path)

        return read


def _text_of(names: Sequence[str], row: Iterable[Any]) -> str:
    """A row, whose fractions are the same whichever of what they are made of was added first."""
    text = str(sorted(zip(names, map(str, row), strict=True)))
    return re.sub(r"\d+\.\d{12,}(E-?\d+)?", lambda found: f"{float(found[0]):.9g}", text)


class _Files:
    """The rows of sources: a folder for each place that one names.

    Args:
        root: Where the folders are.
        seed: What the rows come from.
        known: Those of version 1, which a version 2 reads too.
    """

    def __init__(self, root: Path, seed: str, known: _Files | None = None) -> None:
        self._root = root
        self.seed = seed
        self._known = known
        self._schemas: dict[Path, str] = dict(known._schemas) if known is not None else {}
        self._written: set[tuple[Path, str]] = set(known._written) if known is not None else set()

    def take(self, plan: Plan) -> None:
        """Know the sources of a version."""
        for node in plan.definition.of_kind("source"):
            schema = schema_read(plan, node)
            self._schemas.setdefault(self.of(node, schema), schema)

    def of(self, node: Node, schema: str) -> Path:
        """The folder that stands for a source: one for each place."""
        options: dict[str, Any] = node.options
        place = str(options.get("path") or options.get("subscribe") or f"{node.gem} {schema}")
        name = hashlib.sha256(f"{place} {node.mode}".encode()).hexdigest()[:12]
        if self._known is not None and self._known._root / name in self._known._schemas:
            return self._known._root / name
        return self._root / name

    def add(self, phase: str) -> None:
        """Let the rows of a phase appear."""
        for folder, schema in self._schemas.items():
            if (folder, phase) not in self._written:
                write_phase(folder, schema, phase, self.seed)
                self._written.add((folder, phase))

    def take_back(self, phase: str) -> None:
        """Let the rows of a phase be gone, for the next edit."""
        for folder in self._schemas:
            for file in folder.glob(f"{phase}*.json"):
                file.unlink()
            self._written.discard((folder, phase))

    def take_back_new(self, plan: Plan) -> bool:
        """Let there be no rows yet of the streams that version 1 didn't read; whether there are any."""
        found = False
        for node in plan.definition.of_kind("source"):
            schema = schema_read(plan, node)
            folder = self.of(node, schema)
            if node.mode == "batch" or self._known is None or folder in self._known._schemas:
                continue
            found = True
            for file in folder.glob("*.json"):
                file.unlink()
            self._written -= {(folder, phase) for phase in PHASES}
        return found


@dataclass
class First:
    """What version 1 has left.

    Args:
        place: Its folder, with the checkpoint.
        files: The rows of its sources.
        plan: Its plan.
        written: What it wrote.
        edits: How many edits went on from here.
        alone: What it writes of the rows of the second phase, once that has been asked for.
    """

    place: Path
    files: _Files
    plan: Plan
    written: Written
    edits: int = 0
    alone: Written | None = None

    @property
    def checkpoint(self) -> SparkCheckpoint:
        """What Spark left of it."""
        found = read_checkpoint(str(self.place / "checkpoint"), last=2)
        assert found is not None
        return found

    def close(self) -> None:
        """Remove what it has left."""
        shutil.rmtree(self.place, ignore_errors=True)


def _without(failed: Written, outcome: Outcome, prefix: str = "") -> Truth:
    """What a failure tells of an edit: nothing where time or memory were too little for its rows."""
    large = isinstance(failed.error, TimeoutError) or "OutOfMemoryError" in str(failed.error)
    return Truth("unfit" if large else outcome, f"{prefix}{failed.reason}")


def _judge(mode: str, first: Written, second: Written, scratch: Written, then: Written) -> Truth:
    if mode == "complete":
        # A table that is written anew with each micro-batch has to be right after each of them.
        if second.rows != then.rows:
            return Truth("wrong", _difference(second.rows, then.rows))
        if len(second.tables) == len(then.tables):
            for table, expected in zip(second.tables, then.tables, strict=True):
                if table != expected:
                    return Truth("wrong", _difference(table, expected))
        return Truth("continues") if any(then.tables) else Truth("useless", "nothing comes out")
    if not then.rows and not second.rows:
        return Truth("useless", "nothing comes out")
    if first.rows + second.rows == scratch.rows + then.rows:
        return Truth("continues")
    if second.rows == then.rows:
        return Truth("from_now_on")
    return Truth("wrong", _difference(second.rows, then.rows))


def _difference(found: Counter[str], expected: Counter[str]) -> str:
    """A row of each kind that makes a difference."""
    return "; ".join(_kinds(found - expected, expected - found))


def _kinds(more: Counter[str], less: Counter[str]) -> Iterator[str]:
    for sign, rows in (("+", more), ("-", less)):
        for row, count in list(rows.items())[:1]:
            yield f"{sign}{sum(rows.values())} rows such as {count} x {row[:150]}"
