"""What is found out of a table before it is followed: whether it can be, and what Spark has to know."""

import json
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gem_bundle import GemError, StreamReadContext, analysed
from gem_bundle.diagnostics import nearest
from gem_jdbc.asking import Connection, missing
from gem_jdbc.following import Followed, Following, RefusedError, UnansweredError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from gem_jdbc.reading import JdbcSourceOptions

_KINDS = "A whole number or a time that each new or changed row gets a greater one of than all before it."
_REGISTERED: "weakref.WeakSet[SparkSession]" = weakref.WeakSet()
"""Spark warns where a data source is registered once more."""


def needs(following: Following) -> GemError | None:
    """The error for what a stream needs and isn't installed; None where all of it is."""
    absent = missing(following)
    if not absent:
        return None
    are = "isn't" if len(absent) == 1 else "aren't"
    return GemError(
        "GB509",
        f"a stream of a table takes {' and '.join(absent)}, which {are} installed",
        "Install it with `pip install 'gem-bundle[jdbc]'`; executors need it too.",
        "increasing",
    )


class Opened:
    """A table that can be followed, as the database tells of it.

    Args:
        options: The options; they have `increasing`.
        time_zone: Of which time zone times without one are.

    Raises:
        GemError: GB509 when a package is missing, GB503 when the database can't be reached or is no primary
            server, GB510 when there is no such table, GB205 when it refuses the query, GB207 when the
            column isn't one that increases, GB210 when there is none of that name.
    """

    def __init__(self, options: "JdbcSourceOptions", time_zone: str = "UTC") -> None:
        following = options.dialect.following
        assert following is not None
        assert options.increasing is not None
        absent = needs(following)
        if absent is not None:
            raise absent
        self._options = options
        self.following = following
        self._settings = [*following.settings(time_zone)]
        if options.session_init_statement is not None:
            self._settings.append(options.session_init_statement)
        with self.connected() as connection:
            refusal = following.refusal(connection)
            if refusal is not None:
                raise GemError("GB503", refusal, "Give the address of the primary server.", "url")
            self.columns = self._columns(connection)
        self.followed = self._followed(options.increasing)

    def read(self, schema: "StructType", context: StreamReadContext) -> "DataFrame":
        """The stream.

        Args:
            schema: The columns as Spark's own reader has them.
            context: The reader.

        Raises:
            GemError: GB205 when there is a column of a type that can't be read so.
        """
        from pyspark.sql.types import StructField, StructType

        from gem_jdbc.stream import FORMAT, data_source

        options = self._options
        plain = StructType([StructField(field.name, field.dataType, True) for field in schema.fields])
        told = {
            "what": asdict(self.followed),
            "columns": self._expressions(plain),
            "settings": self._settings,
            "starting": options.starting,
            "limit": options.max_rows_per_trigger,
            "parts": options.num_partitions or 1,
            "longest": options.longest_seconds,
        }
        given = {"followed": json.dumps(told), "url": options.url}
        if options.user is not None:
            given["user"] = options.user
        if options.password is not None:
            given["password"] = options.password.get_secret_value()
        if context.spark not in _REGISTERED:
            context.spark.dataSource.register(data_source())
            _REGISTERED.add(context.spark)
        return analysed(context.reader.format(FORMAT).schema(plain).options(**given).load())

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection of its own.

        Raises:
            GemError: GB503 when the database can't be used, GB207 when the address says what nobody knows.
        """
        options = self._options
        password = None if options.password is None else options.password.get_secret_value()
        try:
            address = self.following.address(options.url, options.user, password)
        except ValueError as error:
            raise GemError("GB207", str(error), "Remove it, or name the address otherwise.", "url") from None
        try:
            connection = Connection(self.following, address, self._settings, password or "")
            try:
                yield connection
            finally:
                connection.close()
        except UnansweredError as error:
            raise GemError(
                "GB503",
                f"the database can't be used: {error.words}",
                "Correct the address or the login, or start it.",
                "url",
            ) from None

    def _columns(self, connection: Connection) -> Mapping[str, Mapping[str, str]]:
        options = self._options
        try:
            return connection.columns(f"SELECT * FROM {options.relation} LIMIT 0")  # noqa: S608 (it is the user's)
        except RefusedError as error:
            if isinstance(error, UnansweredError):
                raise
            option, code = ("query", "GB205") if options.table is None else ("table", "GB510")
            message = f"the database refuses it: {error.words}"
            raise GemError(code, message, f"Correct `{option}`.", option) from None

    def _followed(self, column: str) -> Followed:
        options = self._options
        if column not in self.columns:
            near = nearest(column, self.columns)
            message = f"there is no column `{column}`" + (f", but `{near}`" if near else "")
            hint = "Write it as the database has it, with its capitals; a `query` has to give it."
            raise GemError("GB210", message, hint, "increasing")
        told = self.columns[column]
        kind = self.following.kind(told)
        if kind is None:
            there = told.get("type") or "something else"
            raise GemError(
                "GB207", f"a stream can't go by `{column}`, which is {there}", _KINDS, "increasing"
            )
        wrong = options.wrong_start(kind)
        if wrong is not None:
            raise GemError("GB207", wrong, "Write a value of the column's type.", "starting")
        if kind == "number" and options.delay is not None:
            message = f"`delay` is for times, and `{column}` is a number"
            raise GemError("GB207", message, "Remove it.", "delay")
        delay = 0 if kind == "number" else options.delay_milliseconds
        return Followed(options.relation, column, kind, delay)

    def _expressions(self, schema: "StructType") -> str:
        """What is asked for each column, tried once."""
        asked, problems = [], []
        for field in schema.fields:
            kind = field.dataType.simpleString()
            told: Mapping[str, Any] = self.columns.get(field.name, {})
            expression = self.following.expression(field.name, kind, told)
            if expression is None:
                problems.append(f"`{field.name}` ({kind})")
            else:
                asked.append(expression)
        columns = ", ".join(asked)
        if not problems:
            with self.connected() as connection:
                try:
                    connection.run(f"SELECT {columns} FROM {self._options.relation} LIMIT 0")  # noqa: S608
                except UnansweredError:
                    raise
                except RefusedError as error:
                    problems.append(error.words)
        if problems:
            hint = "Leave it out, or make a text of it, by `query`."
            message = f"a stream can't read {', '.join(problems)}"
            raise GemError("GB205", message, hint, "table" if self._options.query is None else "query")
        return columns
