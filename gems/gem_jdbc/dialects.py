"""Databases by their dialect: the driver, how they take a micro-batch once, and how a table is followed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gem_jdbc.following import Following
from gem_jdbc.postgresql import PostgresTransactions
from gem_jdbc.postgresql_following import PostgresFollowing
from gem_jdbc.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of database.

    Args:
        name: Its name to the user.
        jar: The coordinates of its driver; None where the user has to give them.
        driver: The class of its driver.
        port: Where it listens unless its address says something else.
        properties: What its driver is told.
        arrays: It has arrays.
        lacks: The types of Spark whose names it doesn't know.
        transactions: How it takes a micro-batch once; None where that isn't known.
        following: How one of its tables is followed; None where that isn't known.
    """

    name: str = "this database"
    jar: str | None = None
    driver: str | None = None
    port: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    arrays: bool = False
    lacks: frozenset[str] = frozenset()
    transactions: Transactions | None = None
    following: Following | None = None


def dialect_of(url: str) -> Dialect:
    """What is known of the database of a URL; of most, Spark itself knows more than this."""
    found = re.match(r"jdbc:([\w-]+):", url)
    return _DIALECTS.get(found.group(1).lower() if found else "", _UNKNOWN)


_UNKNOWN = Dialect()
_DIALECTS: Mapping[str, Dialect] = {
    "postgresql": Dialect(
        name="PostgreSQL",
        jar="org.postgresql:postgresql:42.7.14",
        driver="org.postgresql.Driver",
        port=5432,
        # The server converts texts for columns that have no type in Spark: uuid, jsonb, enums. And one
        # statement has many rows.
        properties={"stringtype": "unspecified", "reWriteBatchedInserts": "true"},
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
    "mysql": Dialect(name="MySQL", driver="com.mysql.cj.jdbc.Driver", port=3306),
    "mariadb": Dialect(name="MariaDB", driver="org.mariadb.jdbc.Driver", port=3306),
    "sqlserver": Dialect(name="SQL Server", driver="com.microsoft.sqlserver.jdbc.SQLServerDriver", port=1433),
    "oracle": Dialect(name="Oracle", driver="oracle.jdbc.OracleDriver"),
}
