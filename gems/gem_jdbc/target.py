"""The target `jdbc`: rows into a table of a database, each once where that can be."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    Facts,
    Finding,
    OptionChange,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.diagnostics import listed_names
from gem_bundle.expressions import missing_names
from gem_bundle.schema import fields_of, type_of
from gem_jdbc.connection import knock
from gem_jdbc.fitting import has_type
from gem_jdbc.into import JdbcTargetOptions
from gem_jdbc.raw_options import change_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_jdbc.writing import Prepared

_TYPES = "create_table_column_types"
_TRANSACTIONS = {"staging_schema": "SET SCHEMA", "transaction_table": "RENAME TO"}


class JdbcTarget(Target[JdbcTargetOptions]):
    """Write into a table of a database: add rows, replace those with the same key (`upsert`), or all
    (`complete`).

    Spark's writer fills a staging table, and one transaction moves the rows of a micro-batch, together with
    its number. Databases of which it isn't known how get their rows from Spark's writer itself, at least
    once.

    In visual tools: DB2, JDBC, Oracle.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append", "complete"}),
        delivery="exactly_once",
        condition="The database is PostgreSQL, and the query keeps its checkpoint: the table of "
        "transactions knows micro-batches by its id. Elsewhere, and with `transactional: false`, rows come "
        "at least once.",
        grouped="exactly_once",
    )
    example = {
        "url": "jdbc:postgresql://localhost:5432/shop",
        "user": "writer",
        "password": "${env:SHOP_PASSWORD}",
        "table": "totals",
        "upsert": {"on": ["country"], "sequence_by": "updated_at"},
    }

    def __init__(self, options: JdbcTargetOptions) -> None:
        super().__init__(options)
        self._prepared: Prepared | None = None
        if not options.is_transactional:
            condition = "A micro-batch that is run again after a failure is written again."
            self.semantics = replace(
                self.semantics, delivery="at_least_once", grouped="at_least_once", condition=condition
            )
        elif options.upsert is not None:
            self.semantics = replace(self.semantics, output_modes=frozenset({"append", "update"}))

    def places(self) -> dict[str, list[str]]:
        """The table."""
        return {"table": [self.options.place(self.options.table)]}

    def takes_over(self) -> OptionChange:
        """A table takes micro-batches from any number on."""
        return OptionChange("from_now_on")

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Another database gets what comes from now on; a key the table that is there has to have."""
        if option == "upsert":
            return self._other_key(before)
        if option in _TRANSACTIONS:
            return self._other_transactions(option)
        if option == "spark_options":
            return change_of(before, self.options.spark_options)
        if option == "transactional":
            return self._other_delivery(before)
        if option == "table":
            return OptionChange("from_now_on", "the new table gets what comes from now on, the old one stays")
        if option == "url":
            return OptionChange(
                "from_now_on", "the new database gets what comes from now on, the old one keeps its"
            )
        return None

    def _other_key(self, before: Any) -> OptionChange | None:
        """The database itself keeps the rows of a table apart by a key, whoever writes them."""
        upsert, former = self.options.upsert, _known_key(before)
        if upsert is None:
            if before is None:
                return None
            of = f" of {listed_names(former)}" if former else ""
            return OptionChange(
                "refused",
                f"the table has a unique key{of}, and the database refuses a row whose key is there already",
                "Write into another table, under another id. If no row has a key that is there, or the table "
                "has no such key any more, accept the change.",
            )
        if {name.lower() for name in former} == {name.lower() for name in upsert.on}:
            if before.get("sequence_by") == upsert.sequence_by:
                return OptionChange("continues", "the key is the same")
            return OptionChange("from_now_on", "which of several rows is the last goes by it from now on")
        hint = "Give it one (`CREATE UNIQUE INDEX`)"
        if before is not None:
            hint += ", take away the old one, by which it refuses rows"
        return OptionChange(
            "refused",
            "the table needs a unique key of these columns, and one that was filled without it has none",
            f"{hint}, and then accept the change.",
        )

    def _other_delivery(self, before: Any) -> OptionChange:
        """How often a row is there when a micro-batch is run again after a failure."""
        was = self.options.dialect.transactions is not None if before is None else before
        if was == self.options.is_transactional:
            return OptionChange("continues", "it is what was done by default")
        if was:
            return OptionChange(
                "from_now_on",
                "a micro-batch that is run again after a failure is written again, the last one too where a "
                "run was killed before its end was in the checkpoint",
            )
        return OptionChange(
            "from_now_on",
            "micro-batches from now on are written once; the last one is written again where a run was "
            "killed before its end was in the checkpoint",
        )

    def _other_transactions(self, option: str) -> OptionChange:
        """Which micro-batches are there, only the table of transactions knows."""
        if not self.options.is_transactional:
            return OptionChange("continues", "it has no effect without transactions")
        return OptionChange(
            "again",
            "the table of transactions there doesn't know which micro-batches were written: the last one, "
            "where a run was killed before its end was in the checkpoint, is written again",
            f"Have the table of transactions come along (`ALTER TABLE … {_TRANSACTIONS[option]} …`), and "
            "then accept the change.",
        )

    def jars(self) -> tuple[str, ...]:
        """The database's driver."""
        return self.options.jars()

    def jar_classes(self) -> tuple[str, ...]:
        """The driver."""
        return self.options.jar_classes()

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The key is there and has one row in a micro-batch; the database has types for the columns."""
        (facts,) = inputs
        options, upsert = self.options, self.options.upsert
        yield from options.check_driver()
        for option in ("table", "staging_schema", "transaction_table"):
            yield from options.check_quotes(option, getattr(options, option))
        for column in facts.columns or ():
            kind = type_of(column.type) if column.type is not None else None
            if kind is not None and not has_type(kind, arrays=options.dialect.arrays):
                message = f"{options.dialect.name} has no type for the column `{column.name}`: {column.type}"
                hint = "Write it as text, with `to_json`, or take it apart."
                yield Finding("GB205", message, hint, "table")
        yield from self._check_types(facts)
        if upsert is None:
            return
        yield from missing_names(upsert.on, facts, "upsert.on")
        if upsert.sequence_by is not None:
            yield from missing_names([upsert.sequence_by], facts, "upsert.sequence_by")
        elif not any(o.kind in {"aggregate", "deduplicate", "unknown"} for o in facts.operators):
            yield Finding(
                "GB207",
                "several rows of a key in one micro-batch end the query: nothing tells which is the last",
                "Give `sequence_by`, or have one row of each key by `aggregate` or `deduplicate`.",
                "upsert",
                "warning",
            )

    def _check_types(self, facts: Facts) -> "Iterator[Finding]":
        """The types that are chosen are of columns, one of each, and the database knows their names."""
        seen: set[str] = set()
        for field in fields_of(self.options.create_table_column_types or "") or ():
            yield from missing_names([field.name], facts, _TYPES)
            if field.name.lower() in seen:
                message = f"`{field.name}` has a type twice, and Spark ignores case"
                yield Finding("GB205", message, "Leave one of them.", _TYPES)
            seen.add(field.name.lower())
            if field.type.name in self.options.dialect.lacks:
                message = (
                    f"{self.options.dialect.name} has no type `{field.type}`, which `{field.name}` is to have"
                )
                hint = f"Remove `{field.name}`: Spark chooses a type that there is."
                yield Finding("GB205", message, hint, _TYPES)

    def connect(self) -> "Iterable[Finding]":
        """Whether the database answers."""
        return knock(self.options)

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Add the rows, or put them in the place of others, all or nothing.

        Raises:
            GemError: GB503 when the database can't be reached, GB205 and GB207 when the table doesn't take
                the rows, GB515 when a key is null or has several rows.
        """
        from gem_jdbc.writing import prepare, write_once

        prepared = prepare(self.options, df, df.sparkSession)
        write_once(self.options, prepared, df, context)

    def write_stream(self, df: "DataFrame", context: WriteContext) -> "DataStreamWriter":
        """Make the table where it isn't there, and compare it with the rows; each micro-batch is written by
        itself.

        Raises:
            GemError: As `write`.
        """
        from gem_jdbc.writing import prepare

        self._prepared = prepare(self.options, df, df.sparkSession)
        return super().write_stream(df, context)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Write a micro-batch, unless the database has it already.

        Raises:
            GemError: As `write`.
        """
        from gem_jdbc.writing import prepare, write_micro_batch

        if self._prepared is None:
            self._prepared = prepare(self.options, df, df.sparkSession)
        write_micro_batch(self.options, self._prepared, df, batch_id, context)


def _known_key(upsert: Any) -> list[str]:
    """The columns of a key as it was, where they were kept: not where they came from the environment."""
    names: Any = (upsert or {}).get("on")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []
