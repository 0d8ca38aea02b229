"""The source `jdbc`: a table of a database, or what a query gives."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from gem_bundle import (
    Facts,
    Finding,
    GemError,
    OptionChange,
    ReadContext,
    Source,
    SourceSemantics,
    StreamReadContext,
)
from gem_jdbc.connection import ask, database_errors, knock, said
from gem_jdbc.losses import refuse_losses
from gem_jdbc.reading import BATCH_ONLY, PARTS, STREAM_ONLY, JdbcSourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from gem_bundle import Waiting, WaitingContext
    from gem_jdbc.waiting import RowsWaiting

_OF_FETCHING = {
    *PARTS,
    "fetch_size",
    "query_timeout",
    "password",
    "driver",
    "jar",
    "max_rows_per_trigger",
    "delay",
    "longest_transaction",
}


class JdbcSource(Source[JdbcSourceOptions]):
    """Read a table of a database, or what a query gives: what is there, or what comes (`increasing`).

    A batch is read by Spark's JDBC reader: filters and the choice of columns behind it are pushed down into
    the database. In a streaming pipeline it takes `mode: batch`.

    With `increasing` it is a stream: a micro-batch has the rows whose values in that column lie behind those
    that were read. Rows that are committed late aren't lost: the stream waits for the transactions that are
    under way. A row that changes comes again, with its newest values only; deleted rows aren't seen.

    In visual tools: DB2, JDBC, Oracle.
    """

    semantics = SourceSemantics(
        condition="As a stream it needs `increasing` and PostgreSQL. A micro-batch that is run again has "
        "the same rows but for those that were changed or deleted in the meantime; what changed comes later.",
        lag=frozenset({"records", "time"}),
    )
    example = {
        "url": "jdbc:postgresql://localhost:5432/shop",
        "user": "reader",
        "password": "${env:SHOP_PASSWORD}",
        "table": "orders",
    }

    def __init__(self, options: JdbcSourceOptions) -> None:
        super().__init__(options)
        self._waiting: RowsWaiting | None = None
        if options.increasing is not None and options.starting == "latest":
            self.semantics = replace(self.semantics, only_new="starting")

    def places(self) -> dict[str, list[str]]:
        """The table; a query may read several."""
        table = self.options.table
        return {} if table is None else {"table": [self.options.place(table)]}

    def infer(self) -> Facts:
        """Its columns only the database knows, and it has no watermarks."""
        return Facts(unmarked=True)

    def begins(self) -> str:
        """Where the options say."""
        starting = self.options.starting
        if starting == "latest":
            return "from what comes after the start"
        return "from its beginning" if starting == "earliest" else f"behind the value {starting}"

    def change(self, option: str, before: Any) -> OptionChange | None:
        """How rows are fetched changes none of them; a checkpoint has a value of the column."""
        if option in _OF_FETCHING:
            return OptionChange("continues", "the rows are the same")
        if option == "user":
            return OptionChange(
                "continues", "the rows are the same, unless the database shows them to some users only"
            )
        if option == "session_init_statement":
            return OptionChange(
                "from_now_on", "connections from now on begin with it, by which values may be others"
            )
        if option == "starting":
            return OptionChange(
                "continues", "the checkpoint has a value, and it wins: this is read by a new checkpoint only"
            )
        if self.options.increasing is None:
            return None
        if option == "increasing":
            return OptionChange(
                "refused",
                "the checkpoint has a value of the other column",
                "Give the source another id, so that it is a new one.",
            )
        if option in {"url", "table", "query"}:
            return self._other_rows(option, before)
        return None

    def _other_rows(self, option: str, before: Any) -> OptionChange:
        """A checkpoint has a value up to where the rows of the former table or query were read."""
        others, same = "of the other table", "the same table has only moved"
        if option != "url" and self.options.query is not None:
            others, same = "that only the query gives", "the query gives no other rows up to there"
        elif option == "query" or before is None:
            others, same = "that the query didn't give", "the query gave all rows up to there"
        return OptionChange(
            "skipped",
            f"the checkpoint has a value of `{self.options.increasing}`, and rows {others} with smaller ones "
            "are never read",
            f"Give the source another id, so that it is a new one; if {same}, accept it.",
        )

    def jars(self) -> tuple[str, ...]:
        """The database's driver."""
        return self.options.jars()

    def jar_classes(self) -> tuple[str, ...]:
        """The driver."""
        return self.options.jar_classes()

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """The driver is known, the bounds are in order, and the options are for what it is read as."""
        options = self.options
        yield from options.check_driver()
        yield from options.check_quotes("table", options.table)
        lower, upper = options.lower_bound, options.upper_bound
        if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
            message = f"`lower_bound: {lower}` isn't below `upper_bound: {upper}`"
            yield Finding("GB207", message, "Exchange them.", "lower_bound")
        given = [name for name in type(options).model_fields if name in options.model_fields_set]
        if self.streaming:
            yield from self._check_stream(given)
        elif self.streaming is False:
            for name in given:
                if name in STREAM_ONLY:
                    message = f"`{name}` has no effect: the table is read as a batch"
                    yield Finding("GB207", message, "Remove it.", name, "warning")

    def _check_stream(self, given: "list[str]") -> "Iterator[Finding]":
        options = self.options
        if options.increasing is None:
            message = "a table is a stream by an increasing column only"
            hint = "Name the column by `increasing`, or read with `mode: batch`."
            yield Finding("GB312", message, hint, "table" if options.query is None else "query")
            return
        yield Finding(
            "GB509", "Spark has streams of Python that know what was read", "", "increasing", since="4.2"
        )
        if options.dialect.following is None:
            message = (
                f"`increasing` is for PostgreSQL: nobody has said how {options.dialect.name} is followed"
            )
            yield Finding("GB207", message, "Read it with `mode: batch`, or take its changes.", "increasing")
        for name in given:
            if name in BATCH_ONLY:
                message = f"`{name}` can't be used for a stream, which Spark's JDBC reader has no part in"
                yield Finding("GB312", message, "Remove it, or read with `mode: batch`.", name)

    def connect(self) -> "Iterable[Finding]":
        """Whether the database answers; whether it can be followed, where this is a stream."""
        found = list(knock(self.options))
        if found or not self._follows():
            return found
        from gem_jdbc.opening import Opened

        try:
            Opened(self.options)
        except GemError as error:
            return [Finding(error.code, error.message, error.hint, error.option)]
        return []

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows that are there now.

        Raises:
            GemError: GB503 when the database can't be reached, GB510 when there is no such table, GB205 when
                it refuses the query.
        """
        options = self.options
        with database_errors(options):
            try:
                found = self._load(context)
                refuse_losses(found, options)
                return found
            except Exception as error:
                message = said(error, options)
                if message is None or not self._is_refused(context):
                    raise
                option = "query" if options.table is None else "table"
                code = "GB205" if options.table is None else "GB510"
                raise GemError(
                    code, f"the database refuses it: {message}", f"Correct `{option}`.", option
                ) from error

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The rows that are there, then those that come.

        Raises:
            GemError: As `read`; and GB509 when a package is missing, GB207 and GB210 when the table can't be
                followed by the column.
        """
        from gem_jdbc.opening import Opened
        from gem_jdbc.waiting import RowsWaiting

        self._refuse()
        opened = Opened(self.options, str(context.spark.conf.get("spark.sql.session.timeZone")))
        self._waiting = RowsWaiting(opened, self.options.table or "query")
        # The types are those of the batch.
        schema = self.read(ReadContext(context.node, context.spark)).schema
        return opened.read(schema, context)

    def waiting(self, context: "WaitingContext") -> "Waiting | None":
        """The rows whose values lie behind those that were read."""
        return None if self._waiting is None else self._waiting.told(context)

    def for_preview(self) -> Self:
        """The same table from its beginning where only new rows are read."""
        if self.options.starting != "latest":
            return self
        clone = copy.copy(self)
        clone.options = self.options.model_copy(update={"starting": "earliest"})
        clone.semantics = replace(self.semantics, only_new=False)
        return clone

    def _follows(self) -> bool:
        options = self.options
        return (
            bool(self.streaming) and options.increasing is not None and options.dialect.following is not None
        )

    def _refuse(self) -> None:
        given = [name for name in type(self.options).model_fields if name in self.options.model_fields_set]
        for finding in self._check_stream(given):
            if finding.severity == "error" and not finding.since:
                raise GemError(finding.code, finding.message, finding.hint, finding.option)

    def _load(self, context: ReadContext) -> "DataFrame":
        options = self.options
        raw = options.to_spark()
        given = {**raw, **options.login(), "fetchsize": raw.get("fetchsize", str(options.fetch_size))}
        if options.partition_column is None:
            given.pop("numPartitions", None)  # that of a stream
        # Not Spark's `query`, which can't be read in parts.
        table = options.relation
        if options.predicates:
            url = given.pop("url")
            return context.reader.jdbc(url, table, predicates=options.predicates, properties=given)
        found = context.reader.format("jdbc").options(**given).option("dbtable", table).load()
        found.schema  # noqa: B018 (over Spark Connect, this is where the database is asked)
        return found

    def _is_refused(self, context: ReadContext) -> bool:
        """Whether the database takes other queries: then it is this one."""
        try:
            ask(context.spark, self.options, "SELECT 1 AS one")
        except GemError:
            return False
        except Exception:  # noqa: BLE001 (not all databases have a query without a table)
            return True
        return True
