"""MySQL and MariaDB: what their drivers have to be told so that Spark loses nothing, and how a table is made.

Spark knows a database by its URL. Of `jdbc:mariadb:` it knows nothing, and quotes names by what makes texts
of them there: each row that it reads has the names of its columns. MariaDB's driver takes the URL of MySQL
where it is told that it may.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.schema import DataType, StructField

QUOTE = "`"

LACKS = frozenset(
    {
        *("string", "timestamp_ntz", "void", "variant", "array", "map", "struct", "geography", "interval"),
        # It is one byte there.
        "binary",
    }
)
"""Of their types none has one of these names of Spark's, or another one has."""

MYSQL_PROPERTIES: Mapping[str, str] = {
    # An instant goes through the time zone of the session: the server's, if the driver doesn't give its own.
    "forceConnectionTimeZoneToSession": "true",
    # Rows come some at a time, and binary: as texts, of a `float` six digits come.
    "useCursorFetch": "true",
}

MARIADB_PROPERTIES: Mapping[str, str] = {
    "forceConnectionTimeZoneToSession": "true",
    # As texts, of a `float` six digits come.
    "useServerPrepStmts": "true",
    # Where the server is told to, it cuts what is too long or too large. MySQL's driver does this by itself.
    "sessionVariables": "sql_mode=concat(@@sql_mode,',STRICT_TRANS_TABLES')",
    # Spark has no type for what the driver calls it otherwise.
    "uuidAsString": "true",
}

_TYPES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "LONGTEXT",
    # With Spark's BLOB, 64 kB are all.
    "binary": "LONGBLOB",
    "date": "DATE",
    # Spark's TIMESTAMP and DATETIME have whole seconds.
    "timestamp": "TIMESTAMP(6)",
    "timestamp_ntz": "DATETIME(6)",
}


def spark_url(url: str) -> str:
    """The URL by which Spark knows the kind of database, and MariaDB's driver the server.

    Args:
        url: The one that was given.
    """
    rest = re.sub(r"\Ajdbc:mariadb:", "", url, flags=re.IGNORECASE)
    if rest == url:
        return url
    if "permitMysqlScheme" not in rest:
        rest += f"{'&' if '?' in rest else '?'}permitMysqlScheme"
    return f"jdbc:mysql:{rest}"


def make(
    table: str, columns: "tuple[StructField, ...]", chosen: "Mapping[str, DataType]", further: str
) -> str:
    """The statement that makes a table where it isn't there.

    Spark's own makes columns that lose parts of seconds, and ones that are too short.

    Args:
        table: The table, as the database's SQL has it.
        columns: Its columns.
        chosen: Types that the user has chosen, by the names of columns in small letters.
        further: What stands behind the columns.
    """
    told = []
    for column in columns:
        kind = chosen.get(column.name.lower(), column.type)
        null = "NULL" if column.nullable else "NOT NULL"
        told.append(f"{_name(column.name)} {_TYPES.get(kind.name, str(kind))} {null}")
    return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(told)}) {further}".rstrip()


def _name(column: str) -> str:
    return f"{QUOTE}{column.replace(QUOTE, QUOTE * 2)}{QUOTE}"
