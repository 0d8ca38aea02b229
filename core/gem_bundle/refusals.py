"""Rows that a target learns were refused where it delivers them: its output `rejected`.

A target tells of them while it writes a micro-batch, with `WriteContext.reject` or `WriteContext.send`. The
runtime writes them to those that take them before the micro-batch is committed. pyspark is imported inside
functions.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from gem_bundle.kept import let_go
from gem_bundle.rejected import (
    COLUMNS,
    JSON_OPTIONS,
    RejectedIn,
    Rejecting,
    Rejects,
    reason,
    rejected_at,
    rejected_by,
    rejected_rows,
    told_of,
    with_event_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    Deliver = Callable[[Iterator[tuple[Row, Any]]], "Iterable[tuple[Any, str, str]] | None"]

_REFUSED = "refused"
_ROW, _TOLD = "__gem_bundle_row", "__gem_bundle_told"
_REFUSED_TYPE = "token string, name string, words string"
_AHEAD = 1000
_TOLD_TYPE = "row string, origin map<string, string>, event_time timestamp"


class Refusals:
    """What a target rejected of a micro-batch, or of a batch.

    Args:
        by: The target.
        event_time: The column that is event time, where there is one.
        taken: Somebody takes the rows; else they are only counted.
        micro_batch: The micro-batch, where it is known.
    """

    def __init__(
        self,
        by: Rejecting,
        event_time: str | None = None,
        *,
        taken: bool = True,
        micro_batch: RejectedIn | None = None,
    ) -> None:
        self._by = by
        self._event_time = event_time
        self._taken = taken
        self._micro_batch = micro_batch
        self._parts: list[DataFrame] = []
        self.count = 0

    def reject(self, rows: DataFrame, why: str | Column) -> None:
        """Take over rows that were refused. They are computed now, and only once.

        Args:
            rows: The rows.
            why: As `WriteContext.reject` has it.
        """
        rejects = Rejects(with_event_time(rows, self._event_time), _reasons(rows, why))
        self._keep(rejected_rows(rejects, self._by, ask=False, micro_batch=self._micro_batch))

    def send(
        self, df: DataFrame, deliver: Deliver, columns: Sequence[Column], *, over_connect: bool = False
    ) -> None:
        """Have executors deliver rows, and take over those that were refused.

        Args:
            df: The rows.
            deliver: As `WriteContext.send` has it.
            columns: As `WriteContext.send` has it.
            over_connect: The session is a server's.
        """
        from pyspark.sql import functions as F  # noqa: N812

        given = F.struct(*columns) if columns else F.struct("*")
        rows = with_event_time(df, self._event_time)
        named, told = told_of(rows, {_ROW: given}, ask=False, micro_batch=self._micro_batch)
        schema = told.pop("row_schema")
        # As text the row comes back from Python with the types and the values that it had.
        text = F.to_json(F.struct(*(value.alias(name) for name, value in told.items())), JSON_OPTIONS)
        sent = named.select(_ROW, (text if self._taken else F.lit(None).cast("string")).alias(_TOLD))
        found = (_delivered_over_connect if over_connect else _delivered)(sent, deliver)
        known = F.from_json("token", _TOLD_TYPE, {k: v for k, v in JSON_OPTIONS.items() if k[0] != "i"})
        made = {
            **rejected_by(self._by),
            **{name: known[name] for name in told},
            "row_schema": schema,
            "reasons": F.array(_reason(F.col("name"), F.col("words"))),
            "rejected_at": rejected_at(self._micro_batch),
        }
        self._keep(found.select(*(made[column.name].alias(column.name) for column in COLUMNS)))

    def rows(self, spark: SparkSession) -> DataFrame:
        """What was rejected, with the columns that rejected rows have everywhere.

        Args:
            spark: The session.
        """
        if not self._parts:
            return no_rows(spark)
        return reduce(lambda one, other: one.unionByName(other), self._parts)

    def first(self) -> tuple[str, str]:
        """One of the rows as JSON, and what is said of it."""
        row = self._parts[-1].selectExpr("row", "reasons[0].words as words").first()
        return ("", "") if row is None else (row["row"] or "", row["words"] or "")

    def release(self) -> None:
        """Forget the rows: they have been written."""
        for part in self._parts:
            let_go(part)
        self._parts = []

    def _keep(self, rows: DataFrame) -> None:
        # The mark by which the time was found isn't for those who read a table of them as a stream.
        kept = rows.withMetadata("event_time", {}).persist()
        try:
            count = kept.count()
        except BaseException:
            let_go(kept)
            raise
        self.count += count
        if count:
            self._parts.append(kept)
        else:
            let_go(kept)


def no_rows(spark: SparkSession) -> DataFrame:
    """No rejected rows.

    Args:
        spark: The session.
    """
    return spark.createDataFrame([], ", ".join(f"{column.name} {column.type}" for column in COLUMNS))


def _reason(name: Column, words: Column) -> Column:
    """One reason whose name is a column too."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct(name.alias("name"), words.alias("words"))


def _reasons(rows: DataFrame, why: str | Column) -> Column:
    """The reasons as an array, which is never empty: that row is rejected too."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(why, str):
        return F.array(reason(_REFUSED, why))
    kind = rows.select(why).schema[0].dataType
    unsaid = F.array(reason(_REFUSED, "no reason is told"))
    if isinstance(kind, ArrayType):
        return F.when(F.size(why) > 0, why).otherwise(unsaid)
    one = why if isinstance(kind, StructType) else reason(_REFUSED, why.cast("string"))
    return F.when(why.isNotNull(), F.array(one)).otherwise(unsaid)


def _delivered(sent: DataFrame, deliver: Deliver) -> DataFrame:
    """What is refused of the rows that are sent, which are delivered when that is computed."""
    refused = sent.rdd.mapPartitions(_delivering(deliver))
    return sent.sparkSession.createDataFrame(refused, _REFUSED_TYPE, verifySchema=False)


def _delivered_over_connect(sent: DataFrame, deliver: Deliver) -> DataFrame:
    """The same where there are no RDDs."""
    from pyspark.sql.functions import col, udtf

    # With Arrow the values of a row would be others than they are here.
    function: Any = udtf(_table_function(deliver), returnType=_REFUSED_TYPE, useArrow=False)
    refused = function(*(col(name).outer() for name in sent.columns))
    return sent.lateralJoin(refused).drop(*sent.columns)


def _delivering(deliver: Deliver) -> Callable[[Iterable[Row]], Iterator[tuple[Any, str, str]]]:
    """What executors do with a partition. It is pickled with its code, so they needn't have this module."""

    def deliver_partition(rows: Iterable[Row]) -> Iterator[tuple[Any, str, str]]:
        for told, name, words in deliver((row[0], row[1]) for row in rows) or ():
            yield told, str(name), str(words)

    return deliver_partition


def _table_function(deliver: Deliver) -> type:
    """What executors do with a partition, as a table function. It is pickled with its code too.

    Spark hands it the rows, and `deliver` asks for them: a thread of its own lets neither keep a partition.
    """
    ahead, give = _AHEAD, _delivering(deliver)

    class Sending:
        def __init__(self) -> None:
            from queue import Queue
            from threading import Thread

            self.given: Any = Queue(ahead)
            self.refused: list[tuple[Any, str, str]] = []
            self.failure: BaseException | None = None
            self.thread = Thread(target=self.deliver, daemon=True)
            self.thread.start()

        def eval(self, row: Row, token: Any) -> None:
            self.given.put((row, token))
            self.told()

        def terminate(self) -> Iterator[tuple[Any, str, str]]:
            self.given.put(None)
            self.thread.join()
            self.told()
            yield from self.refused

        def deliver(self) -> None:
            rows = iter(self.given.get, None)
            try:
                self.refused.extend(give(rows))
            except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
                self.failure = error
            for _ in rows:  # whoever hands them over would wait for room
                pass

        def told(self) -> None:
            if self.failure is not None:
                raise self.failure

    return Sending
