"""What a gem may use while the runtime reads and writes with it: a reader, a place for refused rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from gem_bundle.refusals import Deliver, Refusals
    from gem_bundle.semantics import OutputMode

_SHOWN = 200

SOURCE_NAMING = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting with which checkpoints know their sources by names, from Spark 4.2 on."""


def analysed(df: DataFrame) -> DataFrame:
    """Have Spark analyse a DataFrame now, so that a gem can explain what Spark refuses.

    A session of one's own does so by itself; over Spark Connect it is done when something is asked of the
    DataFrame, which may be long after the gem has returned it.

    Args:
        df: The DataFrame.

    Returns:
        The same one.

    Raises:
        AnalysisException: PySpark's, when Spark refuses it.
    """
    # Its schema pyspark's client knows by itself where that is the input's, as behind a filter.
    df.isStreaming  # noqa: B018 (the question)
    return df


def is_over_connect(made: object) -> bool:
    """Whether a session, or a query that was started in one, is over Spark Connect.

    Args:
        made: The session or the query.
    """
    return type(made).__module__.startswith("pyspark.sql.connect")


@dataclass(frozen=True)
class ReadContext:
    """What a source may use when it is read as a static relation.

    Args:
        node: The id of the node in the pipeline.
        spark: The session.
        undivided: Of a source that `Source.rejects`, give all rows, those that it rejects too.
    """

    node: str
    spark: SparkSession = field(repr=False)
    undivided: bool = False

    @property
    def reader(self) -> DataFrameReader:
        """A new batch reader."""
        return self.spark.read

    def table(self, name: str, options: Mapping[str, str]) -> DataFrame:
        """A table of the catalog.

        Args:
            name: The table, with its catalog and schema where it isn't in the current ones.
            options: What Spark's reader is given.

        Raises:
            AnalysisException: PySpark's, when there is no such table.
        """
        return analysed(self.reader.options(**options).table(name))


@dataclass(frozen=True)
class StreamReadContext:
    """What a source may use when it is read as a stream.

    Args:
        node: The id of the node in the pipeline.
        spark: The session.
        name: The stable name of this reader: the node's id, with a suffix where the source reaches one
            query over a second path. Checkpoints find the source again by it.
        undivided: Of a source that `Source.rejects`, give all rows, those that it rejects too.
    """

    node: str
    spark: SparkSession = field(repr=False)
    name: str = ""
    undivided: bool = False

    @property
    def reader(self) -> DataStreamReader:
        """A new streaming reader that already carries the stable name (from Spark 4.2 on)."""
        reader = self.spark.readStream
        return reader.name(self.name) if self._is_named(reader) else reader

    def table(self, name: str, options: Mapping[str, str]) -> DataFrame:
        """A table of the catalog as a stream, with the stable name of this reader.

        Args:
            name: The table, with its catalog and schema where it isn't in the current ones.
            options: What Spark's reader is given.

        Raises:
            AnalysisException: PySpark's, when there is no such table.
        """
        if not is_over_connect(self.spark) or not self._is_named(self.spark.readStream):
            return analysed(self.reader.options(**options).table(name))
        from gem_bundle.ddl import literal, quoted

        # Spark 4.2 forgets the name of a table's reader on the way to the server; in SQL it keeps it.
        given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in options.items())
        said = f" WITH ({given})" if given else ""
        table, own = f"IDENTIFIER({literal(name)})", quoted(self.name)
        query = f"SELECT * FROM STREAM {table}{said} IDENTIFIED BY {own}"  # noqa: S608 (literals, escaped)
        return analysed(self.spark.sql(query))

    def _is_named(self, reader: DataStreamReader) -> bool:
        if not self.name or not hasattr(reader, "name"):
            return False
        from pyspark.errors import PySparkException

        # Where it is switched off, for a checkpoint that was made without names, Spark refuses a name.
        try:
            return (self.spark.conf.get(SOURCE_NAMING, "false") or "").lower() == "true"
        except PySparkException:  # A session that keeps it to itself wouldn't have had it set either.
            return False


@dataclass(frozen=True)
class WriteContext:
    """What a target may use when it writes.

    Args:
        node: The id of the node in the pipeline.
        pipeline: The name of the pipeline.
        output_mode: The output mode of the target.
        query_name: The name of the streaming query; an empty string in a batch pipeline.
        query: By what the place may know the query's micro-batches: the id that the checkpoint gives it, in
            a group with the target's behind it; an empty string where nobody has to know it. `write_batch`
            is told it, where the query has the name of `query_name`.
        refusals: Where the rows go that `reject` and `send` are told of; None where they can't go anywhere.
    """

    node: str
    pipeline: str = ""
    output_mode: OutputMode = "append"
    query_name: str = ""
    query: str = ""
    refusals: Refusals | None = field(default=None, repr=False, compare=False)

    def reject(self, rows: DataFrame, why: str | SparkColumn) -> None:
        """Hand over rows of the micro-batch that were refused where they were to go.

        For targets that say `Target.rejects`. The rows are computed now, and written to whoever takes the
        output `rejected` before the micro-batch is committed.

        Args:
            rows: The rows, with the columns that they came with.
            why: Why: words for all of them, or a column of words, or of what `gem_bundle.reason` makes.

        Raises:
            GemError: GB508 when they can't go anywhere.
        """
        with self._refusals() as refusals:
            refusals.reject(rows, why)

    def send(self, df: DataFrame, deliver: Deliver, columns: Sequence[SparkColumn] = ()) -> None:
        """Have executors deliver rows, and hand over those that were refused.

        For targets that say `Target.rejects`.

        Args:
            df: The rows, with the columns that they came with.
            deliver: Called on executors for each partition, with pairs of a row and a token for it. It has to
                take all of them, and gives for each row that was refused its token, the name of the reason
                and words. What it raises fails the micro-batch. It has to pickle.
            columns: What `deliver` gets of each row; by default all of it.

        Raises:
            GemError: GB508 when rows were refused and can't go anywhere.
        """
        with self._refusals() as refusals:
            refusals.send(df, deliver, columns, over_connect=is_over_connect(df.sparkSession))

    @contextmanager
    def _refusals(self) -> Iterator[Refusals]:
        if self.refusals is not None:
            yield self.refusals
            return
        from gem_bundle.refusals import Refusals
        from gem_bundle.rejected import Rejecting

        refusals = Refusals(Rejecting(self.pipeline, "", self.node, ""))
        try:
            yield refusals
            if refusals.count:
                row, words = refusals.first()
                raise GemError(
                    "GB508",
                    f"{refusals.count:,} rows were refused, and can't go anywhere from here: {words}. One of "
                    f"them: {row[:_SHOWN]}",
                    "Mend them, or run the pipeline in a way that has the output `rejected`.",
                )
        finally:
            refusals.release()
