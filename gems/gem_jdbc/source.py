"""The source `jdbc`: a table of a database, or what a query gives."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from gem_bundle import (
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    ReadContext,
    Source,
    SourceSemantics,
)
from gem_bundle.types import Schema, StringList
from gem_jdbc.connection import ConnectionOptions, JdbcTable, RawOptions, ask, database_errors, knock, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

_PARTS = ("partition_column", "lower_bound", "upper_bound", "num_partitions")


class JdbcSourceOptions(ConnectionOptions):
    """Options of the source `jdbc`, from the guide's *JDBC To Other Databases*."""

    default_change = "from_now_on"

    table: JdbcTable | None = Field(
        None,
        passed=False,
        description="The table, as the database's own SQL has it.",
        examples=["orders", "sales.orders"],
    )
    query: str | None = Field(
        None,
        passed=False,
        min_length=1,
        description="A query in the database's own SQL, which it computes, in place of `table`.",
        examples=["select id, total from orders where country = 'SK'"],
    )
    partition_column: str | None = Field(
        None,
        description="The column, a number, a date or a timestamp, by whose values several tasks read a part "
        "each; with the two bounds and `num_partitions`.",
        examples=["id"],
    )
    lower_bound: str | int | None = Field(
        None, description="Where the second part begins, less one step; all rows below are in the first part."
    )
    upper_bound: str | int | None = Field(
        None,
        description="Where the last part begins, and one step more; all rows above are in the last part.",
    )
    num_partitions: int | None = Field(
        None, gt=0, description="How many parts are read, each by a connection."
    )
    predicates: StringList = Field(
        [],
        passed=False,
        description="A condition in the database's SQL for each part, in place of a column and bounds. A "
        "row for which several hold is read several times.",
        examples=[["country = 'SK'", "country <> 'SK'"]],
    )
    fetch_size: int = Field(
        10_000,
        ge=0,
        passed=False,
        description="How many rows are fetched at once; with 0, PostgreSQL's driver fetches all.",
    )
    session_init_statement: str | None = Field(
        None, description="A statement that each connection begins with.", examples=["SET TIME ZONE 'UTC'"]
    )
    query_timeout: int | None = Field(
        None, ge=0, description="Seconds that a statement may take; 0 is no limit, and Spark's default."
    )
    custom_schema: Schema | None = Field(
        None,
        description="Types for some of the columns, in place of those that Spark chooses.",
        examples=["id decimal(38, 0), name string"],
    )
    prefer_timestamp_ntz: bool | None = Field(
        None,
        spark="preferTimestampNTZ",
        description="Whether a timestamp without a time zone is a `timestamp_ntz`; else it is taken for one "
        "of the session's time zone.",
    )
    spark_options: RawOptions = Field(
        {},
        advanced=True,
        description="Further options of Spark's reader, or of the driver, passed on as they are.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("give `table` or `query`, one of the two")
        given = [name for name in _PARTS if getattr(self, name) is not None]
        if given and len(given) < len(_PARTS):
            missing = ", ".join(f"`{name}`" for name in _PARTS if name not in given)
            raise ValueError(f"reading in parts needs {missing} too")
        if given and self.predicates:
            raise ValueError("give `predicates` or a `partition_column`, one of the two")
        return self


class JdbcSource(Source[JdbcSourceOptions]):
    """Read a table of a database by its JDBC driver, or what a query gives.

    It is a batch: in a streaming pipeline give it `mode: batch`. Filters and the choice of columns behind it
    are pushed down into the database by Spark. A stream by an increasing column isn't there, since rows that
    are committed late would be lost: take the database's own changes (`from_debezium`).
    """

    semantics = SourceSemantics(
        streaming=False,
        condition="It is a batch: each run reads what is there.",
    )
    example = {
        "url": "jdbc:postgresql://localhost:5432/shop",
        "user": "reader",
        "password": "${env:SHOP_PASSWORD}",
        "table": "orders",
    }

    def places(self) -> dict[str, list[str]]:
        """The table; a query may read several."""
        table = self.options.table
        return {} if table is None else {"table": [self.options.place(table)]}

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """How rows are fetched changes none of them."""
        if option in {*_PARTS, "fetch_size", "query_timeout", "user", "password", "driver", "jar"}:
            return OptionChange("continues", "the rows are the same")
        return None

    def jars(self) -> tuple[str, ...]:
        """The database's driver."""
        return self.options.jars()

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """The driver is known; the bounds are in order."""
        yield from self.options.check_driver()
        options = self.options
        lower, upper = options.lower_bound, options.upper_bound
        if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
            message = f"`lower_bound: {lower}` isn't below `upper_bound: {upper}`"
            yield Finding("GB207", message, "Exchange them.", "lower_bound")

    def connect(self) -> "Iterable[Finding]":
        """Whether the database answers."""
        return knock(self.options)

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows that are there now.

        Raises:
            GemError: GB503 when the database can't be reached, GB510 when there is no such table, GB205 when
                it refuses the query.
        """
        options = self.options
        with database_errors(options):
            try:
                return self._load(context)
            except Exception as error:
                message = said(error, options)
                if message is None or not self._is_refused(context):
                    raise
                option = "query" if options.table is None else "table"
                code = "GB205" if options.table is None else "GB510"
                raise GemError(
                    code, f"the database refuses it: {message}", f"Correct `{option}`.", option
                ) from error

    def _load(self, context: ReadContext) -> "DataFrame":
        options = self.options
        raw = options.to_spark()
        given = {**raw, **options.login(), "fetchsize": raw.get("fetchsize", str(options.fetch_size))}
        # Not Spark's `query`, which can't be read in parts.
        table = options.table or f"({options.query}) gem_bundle_query"
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
