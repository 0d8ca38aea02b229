"""PostgreSQL: how a table is followed by an increasing column.

Which transactions are under way is known by the locks that each of them has on itself, which every user may
see: those that haven't written anything yet too, since they may have taken their time already. One that is
prepared for a commit in two phases has no such lock any more, and is listed elsewhere.

The rows are read through `COPY`, which ADBC's driver does where a query has no parameters: so values stand in
the queries themselves, written by the functions here.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, quote, unquote, urlencode

from gem_jdbc.following import Asking, Followed, Kind, Rows, Value

_RUNNING = """
SELECT l.virtualtransaction FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()
AND (a.pid IS NULL OR a.usesysid IS NOT NULL)
AND (a.datid IS NULL OR a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""
"""Those of this database. Of processes without a user, which clean up, none writes rows of its own."""
_PREPARED = "SELECT 'prepared ' || gid FROM pg_prepared_xacts WHERE database = current_database()"
_PREPARED_ONE = "prepared "

_URL = re.compile(r"jdbc:postgresql:(?://([^/?]*)/?)?([^?]*)(?:\?(.*))?\Z", re.S)
# What pgjdbc calls them, and libpq.
_SAME = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "gssEncMode": "gssencmode",
    "channelBinding": "channel_binding",
    "targetServerType": "target_session_attrs",
}
_SERVERS = {"any": "any", "primary": "primary", "master": "primary", "secondary": "standby"}
# They change how pgjdbc works, and nothing about the rows.
_OF_THE_DRIVER = {
    "adaptiveFetch",
    "assumeMinServerVersion",
    "autosave",
    "binaryTransfer",
    "cleanupSavepoints",
    "databaseMetadataCacheFields",
    "databaseMetadataCacheFieldsMiB",
    "defaultRowFetchSize",
    "loadBalanceHosts",
    "logServerErrorDetail",
    "loginTimeout",
    "maxResultBuffer",
    "preferQueryMode",
    "prepareThreshold",
    "preparedStatementCacheQueries",
    "preparedStatementCacheSizeMiB",
    "reWriteBatchedInserts",
    "readOnly",
    "socketTimeout",
    "stringtype",
    "tcpKeepAlive",
}
_KINDS: Mapping[str, Kind] = {
    "int2": "number",
    "int4": "number",
    "int8": "number",
    "timestamptz": "time",
    "timestamp": "local_time",
}
_TYPES = {
    "boolean": "boolean",
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "float": "float4",
    "double": "float8",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?(?::\d{2})?\Z")


class PostgresFollowing:
    """Queries for ADBC's driver."""

    driver = "adbc_driver_postgresql.dbapi"
    package = "adbc-driver-postgresql"

    def address(self, url: str, user: str | None, password: str | None) -> str:
        """A URL of libpq's."""
        found = _URL.match(url)
        if found is None:
            raise ValueError(
                f"`{url.partition('?')[0]}` isn't a URL as `jdbc:postgresql://host:5432/database`"
            )
        hosts, database, query = found.group(1) or "", found.group(2), found.group(3) or ""
        given: dict[str, str] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name in {"user", "password"}:
                given[name] = value
            elif name == "ssl":
                given.setdefault("sslmode", "verify-full" if value in {"", "true"} else "prefer")
            elif name == "currentSchema":
                given["options"] = f"{given.get('options', '')} -c search_path={value}".strip()
            elif name == "targetServerType" and value in _SERVERS:
                given[_SAME[name]] = _SERVERS[value]
            elif name in _SAME and name != "targetServerType":
                given[_SAME[name]] = value
            elif name not in _OF_THE_DRIVER:
                raise ValueError(f"`{name}` in the URL is pgjdbc's, and a stream is read by another driver")
        given |= {name: text for name, text in (("user", user), ("password", password)) if text is not None}
        asked = urlencode(given, quote_via=quote)
        return f"postgresql://{hosts}/{quote(unquote(database), safe='')}" + (f"?{asked}" if asked else "")

    def settings(self, time_zone: str) -> Sequence[str]:
        """Texts are as the reader of values expects them, whatever the database's user has set."""
        offset = _OFFSET.match(time_zone)
        # A zone that is no region is read the other way round there: what lies in the west has a plus.
        zone = f"'{time_zone}'"
        if offset is not None:
            sign, hours, minutes = offset.groups()
            zone = f"INTERVAL '{sign}{int(hours):02}:{minutes or '00'}' HOUR TO MINUTE"
        return (f"SET TIME ZONE {zone}", "SET DateStyle TO ISO", "SET IntervalStyle TO postgres")

    def refusal(self, asking: Asking) -> str | None:
        """A standby knows nothing of the transactions that are under way."""
        ((standby,),) = asking.rows("SELECT pg_is_in_recovery()")
        if standby:
            return "the server is a standby, which doesn't know what is under way on its primary"
        return None

    def kind(self, told: Mapping[str, str]) -> Kind | None:
        """Whole numbers and times; of days and texts many rows have the same."""
        return _KINDS.get(told.get("type", ""))

    def expression(self, name: str, spark_type: str, told: Mapping[str, str]) -> str | None:
        """Casts of PostgreSQL's, so that the driver gives what the type holds."""
        found = _cast(_name(name), spark_type, told.get("type", ""))
        return None if found is None else f"{found} AS {_name(name)}"

    def value(self, followed: Followed, text: str) -> str:
        """The server reads it, as one of the column's type."""
        if followed.kind == "number":
            return f"SELECT {int(text)}::int8"
        kind = "timestamptz" if followed.kind == "time" else "timestamp"
        return f"SELECT {_shown(f'{kind} {_text(text)}', followed)}"

    def running(self, asking: Asking) -> frozenset[str]:
        """By the locks that they have on themselves."""
        return _first(asking.rows(_RUNNING))

    def unfinished(self, asking: Asking, running: frozenset[str]) -> frozenset[str]:
        """When the last one has ended, one of them may only have been prepared."""
        before = frozenset(one for one in running if one.startswith(_PREPARED_ONE))
        if before:
            return before & _first(asking.rows(_PREPARED))
        left = running & _first(asking.rows(_RUNNING)) if running else running
        return left or _first(asking.rows(_PREPARED))

    def reach(
        self, followed: Followed, after: Value | None, until: Value | None, limit: int | None = None
    ) -> str:
        """What the clock hasn't reached is left out: a wrong time in the future doesn't end it all."""
        column = _name(followed.column)
        conditions = _reached(followed, after, until)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if limit is None:
            return f"SELECT {_shown(f'max({column})', followed)} FROM {followed.relation}{where}"
        some = f"SELECT {column} FROM {followed.relation}{where} ORDER BY 1 LIMIT {limit}"
        return f"SELECT {_shown(f'max({column})', followed)} FROM ({some}) gem_bundle_some"

    def least(self, followed: Followed, after: Value | None, until: Value) -> str:
        """The smallest one, which an index has."""
        where = " AND ".join(_range(followed, after, until))
        least = _shown(f"min({_name(followed.column)})", followed)
        return f"SELECT {least} FROM {followed.relation} WHERE {where}"

    def count(self, followed: Followed, after: Value | None, until: Value | None) -> str:
        """Those with a value: of the index."""
        where = " AND ".join([*_reached(followed, after, until), f"{_name(followed.column)} IS NOT NULL"])
        return f"SELECT count(*) FROM {followed.relation} WHERE {where}"

    def patience(self, seconds: int) -> str:
        """For each statement by itself."""
        return f"SET statement_timeout TO '{seconds}s'"

    def rows(self, followed: Followed, columns: str, after: Value | None, until: Value | None) -> str:
        """The rows with a value in the range."""
        where = " AND ".join(_range(followed, after, until)) or f"{_name(followed.column)} IS NOT NULL"
        return f"SELECT {columns} FROM {followed.relation} WHERE {where}"


def _first(rows: Rows) -> frozenset[str]:
    return frozenset(str(row[0]) for row in rows)


def _cast(column: str, spark_type: str, there: str) -> str | None:
    inner = spark_type[6:-1] if spark_type.startswith("array<") else spark_type
    sql = _type(inner)
    if sql is None:
        return None
    if inner is not spark_type:
        return f"{column}::{sql}[]::text[]" if inner.startswith("decimal") else f"{column}::{sql}[]"
    if spark_type.startswith("decimal"):
        return f"{column}::{sql}::text"
    if spark_type == "string" and there not in {"text", "varchar"}:
        # Casts leave out blanks, and add masks to addresses.
        return f"CASE WHEN {column} IS NOT NULL THEN format('%s', {column}) END"
    if there in {"time", "timetz"} and sql in {"timestamp", "timestamptz"}:
        return f"(date '1970-01-01' + {column})::{sql}"
    if there == "money" and sql == "float8":
        return f"{column}::numeric::float8"
    return f"{column}::{sql}"


def _type(spark_type: str) -> str | None:
    """The type of PostgreSQL's whose values the driver gives as one of Spark's."""
    found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", spark_type)
    return f"numeric({found.group(1)}, {found.group(2)})" if found else _TYPES.get(spark_type)


def _range(followed: Followed, after: Value | None, until: Value | None) -> list[str]:
    column = _name(followed.column)
    bounds = ((">", after), ("<=", until))
    return [f"{column} {sign} {_literal(value, followed)}" for sign, value in bounds if value is not None]


def _reached(followed: Followed, after: Value | None, until: Value | None) -> list[str]:
    """A range that ends at the clock where it has no end."""
    conditions = _range(followed, after, until)
    if followed.kind != "number" and until is None:
        # Not the clock itself, which goes on while the statement does and sees what was there before.
        clock = "statement_timestamp()" if followed.kind == "time" else "statement_timestamp()::timestamp"
        conditions.append(f"{_name(followed.column)} < {clock}")
    return conditions


def _literal(value: Value, followed: Followed) -> str:
    if followed.kind == "number":
        return str(int(value))
    return (
        f"timestamptz {_text(f'{value}+00')}" if followed.kind == "time" else f"timestamp {_text(str(value))}"
    )


def _shown(expression: str, followed: Followed) -> str:
    """A value of the column as a `Value`."""
    if followed.kind == "number":
        return f"({expression})::int8"
    moment = f"({expression}) AT TIME ZONE 'UTC'" if followed.kind == "time" else expression
    return f"to_char({moment}, 'YYYY-MM-DD HH24:MI:SS.US')"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"
