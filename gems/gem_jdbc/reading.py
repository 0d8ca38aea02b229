"""The options of the source `jdbc`: those of both ways to read, of a batch and of a stream."""

import re
from datetime import date, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema, model_validator

from gem_bundle import Field
from gem_bundle.diagnostics import listed_names
from gem_bundle.types import FixedDuration, Schema, StringList
from gem_jdbc.connection import ConnectionOptions, JdbcTable, RawOptions
from gem_jdbc.following import Kind

PARTS = ("partition_column", "lower_bound", "upper_bound", "num_partitions")
BATCH_ONLY = (
    "partition_column",
    "lower_bound",
    "upper_bound",
    "predicates",
    "fetch_size",
    "query_timeout",
    "spark_options",
)
STREAM_ONLY = ("increasing", "starting", "max_rows_per_trigger", "delay", "longest_transaction")

_NUMBER = re.compile(r"-?\d+\Z")
_DELAY = 1_000


def _start_text(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_start(text: str) -> str:
    if text in {"earliest", "latest"} or _NUMBER.match(text):
        return text
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "write `earliest`, `latest`, a whole number or a time as `2024-01-31T10:00:00`"
        ) from None
    return text


Start = Annotated[
    str,
    BeforeValidator(_start_text),
    AfterValidator(_check_start),
    WithJsonSchema({"type": ["string", "integer"]}),
]


class JdbcSourceOptions(ConnectionOptions):
    """Options of the source `jdbc`, from the guide's *JDBC To Other Databases*."""

    default_change = "from_now_on"

    table: JdbcTable | None = Field(
        None,
        passed=False,
        description="The table, as the database's own SQL has it.",
        examples=["orders", "sales.orders"],
        place=True,
    )
    query: str | None = Field(
        None,
        passed=False,
        min_length=1,
        description="A query in the database's own SQL, which it computes, in place of `table`.",
        examples=["select id, total from orders where country = 'SK'"],
        place=True,
    )
    increasing: str | None = Field(
        None,
        passed=False,
        min_length=1,
        description="The column by which a stream finds what is new: a whole number or a time, of which each "
        "new or changed row gets a greater one than all before it. Deleted rows aren't seen, nor those "
        "without a value.",
        examples=["updated_at", "id"],
    )
    starting: Start = Field(
        "earliest",
        passed=False,
        description="Where a stream begins that no checkpoint knows: with all rows (`earliest`), behind the "
        "greatest value that is there (`latest`), or behind a value.",
        examples=["latest", 1000, "2024-01-31T10:00:00Z"],
    )
    max_rows_per_trigger: int | None = Field(
        None,
        gt=0,
        passed=False,
        description="How many rows a micro-batch of a stream has at most; more where several have the same "
        "value.",
    )
    delay: FixedDuration | None = Field(
        None,
        passed=False,
        description="How long a stream by a time leaves what is new (default: 1 second): more than the "
        "clocks of those who write differ, and than times are rounded.",
        examples=["5 seconds"],
    )
    longest_transaction: FixedDuration | None = Field(
        None,
        passed=False,
        description="How long a stream waits for a transaction that is under way; what it writes later is "
        "lost. By default until it ends.",
        examples=["1 hour"],
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
        None,
        gt=0,
        description="How many parts are read, each by a connection; those of a stream's micro-batch are of "
        "the same width by the increasing column.",
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
        given = [name for name in PARTS if getattr(self, name) is not None]
        if self.increasing is not None and given == ["num_partitions"]:
            return self
        if given and len(given) < len(PARTS):
            missing = listed_names(name for name in PARTS if name not in given)
            raise ValueError(f"reading in parts needs {missing} too")
        if given and self.predicates:
            raise ValueError("give `predicates` or a `partition_column`, one of the two")
        return self

    @property
    def relation(self) -> str:
        """What stands behind `FROM`."""
        return self.table or f"({self.query}) gem_bundle_query"

    @property
    def delay_milliseconds(self) -> int:
        """How long a stream by a time stays behind the clock."""
        return _DELAY if self.delay is None else _milliseconds(self.delay)

    @property
    def longest_seconds(self) -> float | None:
        """How long a transaction is waited for."""
        return None if self.longest_transaction is None else _milliseconds(self.longest_transaction) / 1000

    def wrong_start(self, kind: Kind) -> str | None:
        """Why a stream can't begin where `starting` says.

        Args:
            kind: What the column has.
        """
        if self.starting in {"earliest", "latest"}:
            return None
        if (kind == "number") == bool(_NUMBER.match(self.starting)):
            return None
        has = "whole numbers" if kind == "number" else "times"
        return f"`{self.increasing}` has {has}, and `starting` is `{self.starting}`"


def _milliseconds(duration: str) -> int:
    return int(duration.removesuffix("ms"))
