"""Databases by their dialect: the driver, how they take a micro-batch once, and how a table is followed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gem_jdbc import mysql
from gem_jdbc.following import Following
from gem_jdbc.postgresql import PostgresTransactions
from gem_jdbc.postgresql_following import PostgresFollowing
from gem_jdbc.transactions import Transactions

if TYPE_CHECKING:
    from gem_bundle.schema import DataType, StructField

    Make = Callable[[str, tuple[StructField, ...], Mapping[str, DataType], str], str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of database.

    Args:
        name: Its name to the user.
        jar: The coordinates of its driver; None where the user has to give them.
        driver: The class of its driver.
        port: Where it listens unless its address says something else.
        properties: What its driver is told.
        spark_url: The URL by which Spark knows it, of the one that was given.
        quote: What names are quoted by; None where that isn't known.
        arrays: It has arrays.
        lacks: The types of Spark whose names it doesn't know.
        make: The statement that makes a table, where Spark's own would make one that loses something.
        shifts_ntz: Spark writes and reads a `timestamp_ntz` rightly only where the JVM's time zone is UTC.
        cuts_times_of: A word of the version of a database whose times its driver cuts to whole seconds.
        transactions: How it takes a micro-batch once; None where that isn't known.
        following: How one of its tables is followed; None where that isn't known.
    """

    name: str = "this database"
    jar: str | None = None
    driver: str | None = None
    port: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    spark_url: Callable[[str], str] = str
    quote: str | None = None
    arrays: bool = False
    lacks: frozenset[str] = frozenset()
    make: "Make | None" = None
    shifts_ntz: bool = False
    cuts_times_of: str | None = None
    transactions: Transactions | None = None
    following: Following | None = None


def dialect_of(url: str) -> Dialect:
    """What is known of the database of a URL; of most, Spark itself knows more than this."""
    found = re.match(r"jdbc:([\w-]+):", url)
    return _DIALECTS.get(found.group(1).lower() if found else "", _UNKNOWN)


_UNKNOWN = Dialect()
# Its driver is under the GPL, and brings protobuf along: whoever wants both names it.
_MYSQL = Dialect(
    name="MySQL",
    driver="com.mysql.cj.jdbc.Driver",
    port=3306,
    properties=mysql.MYSQL_PROPERTIES,
    quote=mysql.QUOTE,
    lacks=mysql.LACKS,
    make=mysql.make,
    shifts_ntz=True,
    # MariaDB 10 calls itself 5.5.5 to those who connect, and MySQL 5.5 had no parts of seconds.
    cuts_times_of="MariaDB",
)
_DIALECTS: Mapping[str, Dialect] = {
    "postgresql": Dialect(
        name="PostgreSQL",
        jar="org.postgresql:postgresql:42.7.14",
        driver="org.postgresql.Driver",
        port=5432,
        # The server converts texts for columns that have no type in Spark: uuid, jsonb, enums. And one
        # statement has many rows.
        properties={"stringtype": "unspecified", "reWriteBatchedInserts": "true"},
        quote='"',
        arrays=True,
        lacks=frozenset(
            {
                *("string", "tinyint", "double", "binary", "timestamp_ntz", "void", "variant"),
                *("array", "map", "struct", "geometry", "geography"),
            }
        ),
        transactions=PostgresTransactions(),
        following=PostgresFollowing(),
    ),
    "mysql": _MYSQL,
    "mariadb": replace(
        _MYSQL,
        name="MariaDB",
        jar="org.mariadb.jdbc:mariadb-java-client:3.5.11",
        driver="org.mariadb.jdbc.Driver",
        properties=mysql.MARIADB_PROPERTIES,
        spark_url=mysql.spark_url,
        cuts_times_of=None,
    ),
    "sqlserver": Dialect(name="SQL Server", driver="com.microsoft.sqlserver.jdbc.SQLServerDriver", port=1433),
    "oracle": Dialect(name="Oracle", driver="oracle.jdbc.OracleDriver"),
}
