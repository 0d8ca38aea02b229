"""Runs a prepared pipeline step by step: rows in, micro-batches until nothing is left to do, rows out.

Between two steps the queries run on, since a restart isn't without effect: Spark keeps the watermark of a
query in its checkpoint, but not that of each of its inputs, so a join that is restarted at every step
never gets one. All rows of a step arrive in one micro-batch; where that fails `SplitError` says so, and
the test has to be run again from its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from gem_bundle.contexts import ReadContext, StreamReadContext
from gem_bundle.pipeline.groups import limited_nodes
from gem_bundle.run.elsewhere import check_groups
from gem_bundle.run.failures import build_failure, query_failure
from gem_bundle.run.frames import Frames, NodeFailure, harmless, read_source
from gem_bundle.run.progress import late_rows
from gem_bundle.testing.running.behind import Behind, forks
from gem_bundle.testing.running.capture import capture
from gem_bundle.testing.running.clock import START, goes_by_the_clock, lay_down
from gem_bundle.testing.running.outcome import Captured, Rows
from gem_bundle.testing.running.stand_ins import read_lines, to_lines
from gem_bundle.testing.values import fields_of_schema, take_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Node
    from gem_bundle.schema import StructField
    from gem_bundle.testing.running.capture import Capture
    from gem_bundle.testing.running.prepared import Fed, Prepared

Row = tuple[Any, ...]

_POLLING = "spark.sql.streaming.pollingDelay"
# How many milliseconds a query rests when it has found nothing. Several sources: time enough to put all
# their files into their places. One: so long that many queries at rest don't keep a machine busy.
_REST_OF_SEVERAL, _REST = 100, 50


class StepError(Exception):
    """The queries of a test have failed, or could not start.

    Args:
        diagnostics: Why, as a run would have said it.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(self.diagnostics)


class SplitError(Exception):
    """Rows of one step came in two micro-batches, because the machine was busy at the wrong moment."""


class Engine:
    """Runs the targets of a test that share its rows.

    Use it as a context manager: leaving it stops the queries.

    Args:
        prepared: The pipeline with its stand-ins.
        spark: The session, with the test's settings.
        folder: An empty folder for rows and checkpoints.
    """

    def __init__(self, prepared: Prepared, spark: SparkSession, folder: Path) -> None:
        self._prepared = prepared
        self._spark = spark
        self._folder = folder
        self._queries: list[_Query] = []
        self._pending: dict[str, list[Row]] = {}
        self._there: dict[str, list[Row]] = {}
        self._results: dict[str, Rows] = {}
        self._now = START
        self._steps = 0
        self._starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_batch(self) -> bool:
        """Whether every step is a run of its own."""
        return self._prepared.definition.mode == "batch"

    def add(self, name: str, rows: Iterable[Row]) -> None:
        """Have rows arrive with the next step.

        Those of a static relation are seen by queries that start after it, as in a run.

        Args:
            name: A name of `Prepared.fed`.
            rows: The rows, in the form of `gem_bundle.testing.values`.
        """
        kept = self._pending if self._prepared.fed[name].streaming else self._there
        kept.setdefault(name, []).extend(rows)

    def set_clock(self, now: datetime) -> None:
        """Let the clock of processors be at a time from the next step on.

        Args:
            now: The time.

        Raises:
            ValueError: When it has been later.
        """
        if now < self._now:
            raise ValueError("the clock can't go back")
        self._now = now

    def process(self) -> dict[str, Captured]:
        """Let what was added arrive, and run until nothing is left to do.

        Queries that don't run are started, from their checkpoints where they have some.

        Returns:
            What each target got.

        Raises:
            StepError: When a query fails or can't start; then none runs any more. GB386 is among its
                diagnostics where a node compares rows over Spark Connect.
            SplitError: When the rows didn't arrive together.
        """
        self._steps += 1
        try:
            return self._run_batch() if self.is_batch else self._run_streams()
        except StepError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the queries between two micro-batches; their checkpoints stay."""
        queries, self._queries = self._queries, []
        for query in queries:
            query.stop()

    def restart(self, prepared: Prepared) -> None:
        """Stop, and let the next step start queries that are built anew.

        Args:
            prepared: The same pipeline, read anew.
        """
        self.stop()
        self._prepared = prepared

    # Streams

    def _run_streams(self) -> dict[str, Captured]:
        arriving, self._pending = self._pending, {}
        queries = self._queries or self._built()
        for query in queries:
            query.lay_out(arriving, self._steps, self._now)
        self._queries = queries
        try:
            for query in queries:
                query.let_in()
            for query in queries:
                query.wait()
        except _QueryError as failed:
            raise StepError([failed.diagnostic]) from failed
        found = {query.node.id: query.captured() for query in queries}
        self._results |= {name: captured.rows for name, captured in found.items()}
        return found

    def _built(self) -> list[_Query]:
        """A query for each target. All are built before one starts, so that a mistake leaves none running."""
        self._starts += 1
        prepared = self._prepared
        plan = harmless(prepared.plan)
        found: list[_Query] = []
        wrong: list[Diagnostic] = []
        ends = forks(plan, prepared.targets)
        impossible = check_groups(plan, self._spark, [plan.node(name) for name in ends])
        if impossible:
            raise StepError(impossible)
        for name in prepared.targets:
            node = prepared.plan.node(name)
            folder = self._folder / "targets" / name
            query = _Query(node, prepared, self._spark, folder, by_clock=goes_by_the_clock(prepared, name))
            query.result = self._results.get(name, Rows())
            frames = Frames(plan, self._spark, read=lambda n, r, q=query: self._read(n, r, q))  # type: ignore[misc]
            try:
                edge, fork = node.inputs[0], ends.get(name)
                query.df = frames.of(*(fork or (edge.node, edge.output)))
                if fork is not None:
                    query.behind = Behind(plan, node, fork, lambda n, r: self._read(n, r, None))
                query.fields = query.columns()
            except NodeFailure as failure:
                wrong.append(build_failure(prepared.plan, failure.node, failure.error))
            found.append(query)
        if wrong:
            raise StepError(dict.fromkeys(wrong))
        return found

    def _read(self, node: Node, reader_name: str, query: _Query | None) -> Any:
        """The stand-in for a source: its rows, or those of its outputs by their names."""
        if node.id in self._prepared.real:
            gem: Any = self._prepared.plan.gems[node.id]
            return read_source(gem, node, reader_name, self._spark)
        outputs = [fed for fed in self._prepared.fed.values() if fed.node == node.id]
        frames = {
            fed.output: self._frame(fed, f"{reader_name}_{fed.output}" if fed.output else reader_name, query)
            for fed in outputs
        }
        return frames[None] if set(frames) == {None} else frames

    def _frame(self, fed: Fed, reader_name: str, query: _Query | None) -> DataFrame:
        if not fed.streaming or query is None:
            folder = self._folder / "static" / fed.name / str(self._starts)
            folder.mkdir(parents=True, exist_ok=True)
            lines = to_lines(self._there.get(fed.name, ()), fed.fields)
            (folder / "rows.json").write_text(lines, encoding="utf-8")
            return read_lines(ReadContext(fed.node, self._spark).reader, folder, fed.fields)
        reader = StreamReadContext(fed.node, self._spark, reader_name).reader
        df = read_lines(reader, query.reads(fed, reader_name), fed.fields)
        for column, delay in fed.delays.items():
            df = df.withWatermark(column, delay)
        return df

    # Batches

    def _run_batch(self) -> dict[str, Captured]:
        self._starts += 1
        prepared = self._prepared
        plan = harmless(prepared.plan)
        frames = Frames(plan, self._spark, read=lambda node, name: self._read(node, name, None))
        for name in limited_nodes(plan, prepared.targets):
            try:
                frames.hold(name)
            except NodeFailure as failure:
                raise StepError([build_failure(prepared.plan, failure.node, failure.error)]) from failure
        found: dict[str, Captured] = {}
        for name in prepared.targets:
            node = prepared.plan.node(name)
            edge = node.inputs[0]
            try:
                df = frames.of(edge.node, edge.output)
                fields = fields_of_schema(df.schema)
                rows = tuple(take_row(row, fields) for row in df.collect())
            except NodeFailure as failure:
                raise StepError([build_failure(prepared.plan, failure.node, failure.error)]) from failure
            except Exception as error:
                raise StepError([build_failure(prepared.plan, name, error)]) from error
            found[name] = Captured(name, node.output_mode, Rows(fields, rows))
        return found


class _QueryError(Exception):
    """One query has failed, or could not start."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


@dataclass
class _Query:
    """The streaming query of one target, its rows captured instead of written.

    Each has input files of its own: they are put into their places while it rests, and queries don't rest
    at the same time.
    """

    node: Node
    prepared: Prepared
    spark: SparkSession
    folder: Path
    by_clock: bool = False
    df: DataFrame | None = None
    result: Rows = field(default_factory=Rows)
    query: StreamingQuery | None = None
    readers: dict[str, str] = field(default_factory=dict)  # what they read, by the readers' names
    behind: Behind | None = None
    fields: tuple[StructField, ...] = ()
    _arriving: list[tuple[Path, Path]] = field(default_factory=list)
    _fed: set[str] = field(default_factory=set)
    _capture: Capture | None = None
    _now: datetime = START
    _last_batch: int = -1
    _planned: int = -1

    def reads(self, fed: Fed, reader_name: str) -> Path:
        """The folder of a reader's files."""
        self.readers[reader_name] = fed.name
        folder = self.folder / "rows" / fed.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def columns(self) -> tuple[StructField, ...]:
        """The columns of the rows that the target gets.

        Raises:
            NodeFailure: When a gem behind the fork can't build its part.
        """
        assert self.df is not None
        df = self.df if self.behind is None else self.behind.empty(self.df)
        return fields_of_schema(df.schema)

    def lay_out(self, rows: Mapping[str, list[Row]], step: int, now: datetime) -> None:
        """Write the files of a step where the query doesn't see them yet."""
        self._arriving = []
        self._fed = set()
        self._now = now
        waiting = self.folder / "waiting"
        waiting.mkdir(parents=True, exist_ok=True)
        for name, arriving in rows.items():
            if arriving and name in self.readers.values():
                file = waiting / f"{name}.json"
                fields = self.prepared.fed[name].fields
                file.write_text(to_lines(arriving, fields), encoding="utf-8")
                self._arriving.append((file, self.folder / "rows" / name / f"step-{step}.json"))
                self._fed |= {reader for reader, read in self.readers.items() if read == name}
        if self.by_clock and not self._arriving and self.readers:
            # Time passes with a micro-batch, and that takes something to read.
            name = next(iter(self.readers.values()))
            file = waiting / f"{name}.json"
            file.touch()
            self._arriving.append((file, self.folder / "rows" / name / f"step-{step}.json"))

    def let_in(self) -> None:
        """Let the files of the step arrive together, and see to it that the query runs."""
        if self.query is not None and len(self._fed) > 1:
            # It returns when the query has found nothing and begins to rest.
            self._all_available()
        for waiting, place in self._arriving:
            waiting.rename(place)
        if self.query is None:
            self._start()

    def _start(self) -> None:
        assert self.df is not None
        checkpoint = self.folder / "checkpoint"
        self._last_batch = max(_batches(checkpoint / "commits"), default=-1)
        # One that failed is run again with the rows that it had.
        self._planned = max(_batches(checkpoint / "offsets"), default=-1)
        # Where it names a table too, a point would be one between a table and its namespace.
        name = f"{self.prepared.definition.name}_{self.node.id}".replace(".", "__")
        self.spark.conf.set(_POLLING, _REST_OF_SEVERAL if len(self.readers) > 1 else _REST)
        try:
            through = None if self.behind is None else self.behind.rows
            self._capture = capture(
                self.df, self.node.output_mode, name, checkpoint, each=self.by_clock, through=through
            )
            if self.by_clock:
                self.query = self._start_by_clock(name, checkpoint)
                return
            writer = self._capture.writer().queryName(name)
            self.query = writer.option("checkpointLocation", str(checkpoint)).start()
        except Exception as error:
            raise _QueryError(build_failure(self.prepared.plan, self.node.id, error)) from error

    def _start_by_clock(self, name: str, checkpoint: Path) -> StreamingQuery:
        """Start the one micro-batch of a step, behind one that has failed before."""
        assert self.df is not None
        assert self._capture is not None

        def start() -> StreamingQuery:
            assert self._capture is not None
            writer = self._capture.writer().queryName(name).trigger(once=True)
            return writer.option("checkpointLocation", str(checkpoint)).start()

        if self._planned > self._last_batch:
            start().awaitTermination()
        lay_down(self.df, self.node.output_mode, checkpoint, self._now)
        return start()

    def wait(self) -> None:
        """Wait until the query has processed all there is."""
        self._all_available()

    def _all_available(self) -> None:
        assert self.query is not None
        try:
            if self.by_clock:
                self.query.awaitTermination()
            else:
                self.query.processAllAvailable()
        except Exception as error:
            failure = self.behind.failure if self.behind is not None else None
            if failure is not None:
                raise _QueryError(build_failure(self.prepared.plan, failure.node, failure.error)) from error
            cause = self.query.exception() or error
            raise _QueryError(query_failure(self.prepared.plan, self.node.id, cause)) from error

    def captured(self) -> Captured:
        """What the target got since the last call.

        Raises:
            SplitError: When the rows of the step came in two micro-batches.
        """
        checkpoint = self.folder / "checkpoint"
        new = [batch for batch in _batches(checkpoint / "commits") if batch > self._last_batch]
        if len(self._advanced(checkpoint / "offsets", [b for b in new if b > self._planned])) > 1:
            raise SplitError
        self._last_batch = max(new, default=self._last_batch)
        assert self._capture is not None
        got = self._capture.taken(new) if new else []
        if new or self.node.output_mode != "complete":
            self.result = Rows(self.fields, tuple(take_row(row, self.fields) for row in got))
        late, state = self._numbers(new)
        if self.by_clock:
            self.stop()
        return Captured(
            target=self.node.id,
            output_mode=self.node.output_mode,
            rows=self.result,
            micro_batches=len(new),
            watermark=_watermark(checkpoint / "commits", self._last_batch),
            late_rows=late,
            state_rows=state,
        )

    def _advanced(self, offsets: Path, batches: Iterable[int]) -> list[int]:
        """The micro-batches to which rows of this step came."""
        found = []
        for batch in batches:
            before, after = (_offsets(offsets, number) for number in (batch - 1, batch))
            # Before Spark 4.2 the log doesn't name them.
            readers = self._fed if self._fed & after.keys() else after.keys()
            if any(after.get(reader) != before.get(reader) for reader in readers):
                found.append(batch)
        return found if self._fed else []

    def _numbers(self, batches: Iterable[int]) -> tuple[int, int]:
        """How many rows were late, and how many are in the state stores."""
        assert self.query is not None
        wanted = set(batches)
        late = state = 0
        for report in self.query.recentProgress:
            if report.batchId in wanted:
                operators = report.stateOperators or []
                late += late_rows(operators, self.behind.copies if self.behind is not None else 1)
                state = sum(operator.numRowsTotal for operator in operators)
        return late, state

    def stop(self) -> None:
        """Stop the query, if it runs."""
        query, self.query = self.query, None
        if query is not None:
            query.stop()
            assert self._capture is not None
            self._capture.close()


def _batches(log: Path) -> list[int]:
    """The micro-batches in a log of a checkpoint."""
    return sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit()) if log.is_dir() else []


def _offsets(log: Path, batch: int) -> dict[str, str]:
    """How far each source was read with a micro-batch: by its reader's name, or else by its position."""
    file = log / str(batch)
    if not file.is_file():
        return {}
    version, _, *lines = file.read_text(encoding="utf-8").splitlines()
    if version == "v1":
        return {str(position): offset for position, offset in enumerate(lines)}
    return {name: offset for name, _, offset in (line.partition(":") for line in lines)}


def _watermark(commits: Path, batch: int) -> str | None:
    """The watermark that holds for the rows that come after a micro-batch, as Spark writes it."""
    file = commits / str(batch)
    if not file.is_file():
        return None
    milliseconds = json.loads(file.read_text(encoding="utf-8").splitlines()[1])["nextBatchWatermarkMs"]
    # Before the first row of event time arrives, Spark's watermark is the epoch.
    if not milliseconds:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"
