"""The options of the target `jdbc`: which table, and what becomes of its rows."""

from typing import Self

from pydantic import model_validator

from gem_bundle import Field, Options
from gem_bundle.types import Schema, StringList
from gem_jdbc.connection import ConnectionOptions, JdbcTable, RawOptions


class UpsertOptions(Options):
    """How rows take the place of others."""

    on: StringList = Field(
        description="The columns of the key. The table has a unique index over just these, or is made with "
        "one.",
        examples=[["id"]],
        min_length=1,
    )
    sequence_by: str | None = Field(
        None,
        description="The column that tells which of several rows of a key is the last: of those of a "
        "micro-batch it is written, and in the table it isn't replaced by an earlier one.",
        examples=["updated_at"],
    )

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.sequence_by in self.on:
            raise ValueError(
                f"`sequence_by: {self.sequence_by}` is in the key: all rows of a key have one value of it"
            )
        return self


class JdbcTargetOptions(ConnectionOptions):
    """Options of the target `jdbc`."""

    default_change = "continues"

    table: JdbcTable = Field(
        passed=False,
        description="The table, as the database's own SQL has it. It is made where it isn't there.",
        examples=["totals", "sales.totals"],
        change="from_now_on",
        place=True,
    )
    upsert: UpsertOptions | None = Field(
        None,
        passed=False,
        description="Whether rows replace those with the same key; else they are added.",
        examples=[{"on": ["id"], "sequence_by": "updated_at"}],
        change="from_now_on",
    )
    transactional: bool | None = Field(
        None,
        passed=False,
        description="Whether a micro-batch is one transaction, with its number: so each row is there once. "
        "It needs a staging table. Else Spark writes into the table itself, and rows come again after a "
        "failure. By default it is, with PostgreSQL.",
        change="from_now_on",
    )
    staging_schema: JdbcTable | None = Field(
        None,
        passed=False,
        description="The schema of the staging tables and of the table of transactions; by default that of "
        "the table.",
        change="again",
    )
    transaction_table: JdbcTable = Field(
        "gem_bundle_transactions",
        passed=False,
        description="The name of the table with the numbers of micro-batches; it is made where it isn't "
        "there.",
        advanced=True,
        change="again",
    )
    batch_size: int = Field(
        5_000, gt=0, passed=False, description="How many rows are sent to the database at once."
    )
    num_partitions: int | None = Field(
        None, gt=0, description="How many tasks write at most, each by a connection of its own."
    )
    query_timeout: int | None = Field(
        None,
        ge=0,
        description="Seconds that a statement of Spark's may take; 0 is no limit, and Spark's default.",
    )
    create_table_options: str | None = Field(
        None,
        description="What is added to the statement that makes the table.",
        examples=["PARTITION BY RANGE (day)"],
        advanced=True,
    )
    create_table_column_types: Schema | None = Field(
        None,
        description="Types for some columns of a new table, in place of those that Spark chooses: ones that "
        "Spark has, under names that the database knows too.",
        examples=["name VARCHAR(80)"],
        advanced=True,
    )
    spark_options: RawOptions = Field(
        {},
        advanced=True,
        description="Further options of Spark's writer, or of the driver, passed on as they are.",
        change="from_now_on",
    )

    @property
    def is_transactional(self) -> bool:
        """Whether a micro-batch is one transaction."""
        if self.transactional is None:
            return self.dialect.transactions is not None
        return self.transactional

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.transactional and self.dialect.transactions is None:
            raise ValueError("`transactional` is for PostgreSQL: of other databases it isn't known how")
        if self.upsert is not None and not self.is_transactional:
            if self.dialect.transactions is None:
                raise ValueError("`upsert` is for PostgreSQL: of other databases it isn't known how")
            raise ValueError("`upsert` needs `transactional`: Spark's own writer only adds rows")
        return self
