"""What the source and the target `jdbc` have in common: how the database is reached, and what it says."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, SecretStr

from gem_bundle import Field, Finding, GemError, Options
from gem_bundle.types import ExposedSecretError, secret_in
from gem_jdbc.dialects import Dialect, dialect_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECT_SECONDS = 2.5

_LOGIN = ("url", "user", "password", "driver")
_NAME = r'(?:[^\W\d][\w$]*|"(?:[^"\0]|"")+"|`(?:[^`\0]|``)+`)'
_QUOTES = '"`'
_TABLE = re.compile(rf"(?:{_NAME}\.){{0,2}}{_NAME}\Z")
_COORDINATE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+\Z")
_PROPERTY = re.compile(r"[?&;](\w+)")
_HOSTS = re.compile(r"jdbc:\w+://([^/?;]+)")
_HOST = re.compile(r"(?:[^@]*@)?(\[[^\]]+\]|[^:\[\]]+)(?::(\d+))?\Z")
_SQL_ERROR = re.compile(r"(?:[\w$]+\.)+(?:\w*SQL\w*Exception|\w*CommunicationsException): ([^\n]+)")
_UNREACHABLE = re.compile(
    r"connection (?:to|attempt|has been|refused)|communications link|unknown ?host|authentication|no password"
    r"|pg_hba|(?:role|database) \".*\" does not exist|access denied|unknown database|fail to connect",
    re.IGNORECASE,
)
_ZONE = re.compile(r"unknown or incorrect time zone", re.IGNORECASE)
_NOISE = re.compile(r"\AERROR: |\AFATAL: |\A\(conn=\d+\) ")


def _check_url(url: str) -> str:
    found = secret_in(url)
    if found is not None and found.lower() in {"user", "password"}:
        raise ExposedSecretError("a password in it would be printed: give it by `password`")
    if found is not None:
        raise ExposedSecretError(
            f"`{found}` in it would be printed: give it by `spark_options`, as `{found}: ${{secret:…}}`"
        )
    if not re.match(r"jdbc:\w[\w-]*:.", url):
        raise ValueError("write it as `jdbc:postgresql://host:5432/database`")
    return url


def _check_table(name: str) -> str:
    if not _TABLE.match(name):
        raise ValueError(
            "write a table as `table` or `schema.table`, as in the database's SQL: a name with other "
            "characters "
            "than letters, digits and underscores, or with capitals, in double quotes "
            '(`web."Page views"`), with MySQL and MariaDB in backquotes'
        )
    return name


def _check_coordinate(text: str) -> str:
    if not _COORDINATE.match(text):
        raise ValueError("write it as `group:artifact:version`, as Maven has it")
    return text


def _check_raw(options: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
    for key in options:
        if key.lower() in _LOGIN:
            raise ValueError(f"`{key}` in it is the option `{key.lower()}`: set that one")
    return options


RawOptions = Annotated[dict[str, str | int | float | bool], AfterValidator(_check_raw)]
JdbcUrl = Annotated[str, AfterValidator(_check_url)]
JdbcTable = Annotated[str, AfterValidator(_check_table)]
Coordinate = Annotated[str, AfterValidator(_check_coordinate)]


class ConnectionOptions(Options):
    """How a database is reached, from the guide's *JDBC To Other Databases*."""

    url: JdbcUrl = Field(
        passed=False,
        description="Where the database is, as its driver has it.",
        examples=["jdbc:postgresql://localhost:5432/shop"],
        place=True,
    )
    user: str | None = Field(None, passed=False, min_length=1, description="The user to log in as.")
    password: SecretStr | None = Field(
        None, passed=False, description="The user's password.", examples=["${secret:shop/password}"]
    )
    driver: str | None = Field(
        None,
        passed=False,
        description="The class of the driver; by default that of the database in `url`.",
        examples=["org.postgresql.Driver"],
        advanced=True,
    )
    jar: Coordinate | None = Field(
        None,
        passed=False,
        description="The driver's jar by its Maven coordinates; by default that of the database in `url`.",
        examples=["com.oracle.database.jdbc:ojdbc11:23.9.0.25.07"],
    )

    @property
    def dialect(self) -> Dialect:
        """What is known of the kind of database."""
        return dialect_of(self.url)

    def jars(self) -> tuple[str, ...]:
        """The driver's, where it is known."""
        found = self.jar or self.dialect.jar
        return () if found is None else (found,)

    def jar_classes(self) -> tuple[str, ...]:
        """The driver's class, where it is known."""
        found = self.driver or self.dialect.driver
        return () if found is None else (found,)

    def login(self) -> dict[str, str]:
        """What Spark has to know to connect; with the password in the clear."""
        found = {"url": self.dialect.spark_url(self.url), **self._properties()}
        if self.user is not None:
            found["user"] = self.user
        if self.password is not None:
            found["password"] = self.password.get_secret_value()
        driver = self.driver or self.dialect.driver
        if driver is not None:
            found["driver"] = driver
        return found

    def _properties(self) -> dict[str, str]:
        """What the driver is told without being asked, but for what the user tells it."""
        # Both the source's and the target's options have these, as their last.
        raw = {name.lower() for name in getattr(self, "spark_options", ())}
        raw |= {name.lower() for name in _PROPERTY.findall(self.url)}
        return {name: value for name, value in self.dialect.properties.items() if name.lower() not in raw}

    def place(self, table: str) -> str:
        """A table as a place that no other option of a connection changes."""
        return f"{re.split('[?;]', self.url, maxsplit=1)[0]}#{table}"

    def check_driver(self) -> Iterator[Finding]:
        """A driver is known, or given."""
        if not self.jars() and self.driver is None:
            kind = self.url.split(":")[1]
            message = f"the driver for `jdbc:{kind}` isn't known"
            hint = "Give its jar by `jar`, and its class by `driver`."
            yield Finding("GB207", message, hint, "url")

    def check_quotes(self, option: str, name: str | None) -> Iterator[Finding]:
        """A name is quoted as the database has it.

        Args:
            option: The option whose value the name is.
            name: The name, where there is one.
        """
        quote = self.dialect.quote
        wrong = [part for part in re.findall(_NAME, name or "") if part[0] in _QUOTES and part[0] != quote]
        if quote is not None and wrong:
            message = f"{self.dialect.name} quotes names by {quote}, and {wrong[0]} isn't one"
            right = f"{quote}{wrong[0][1:-1]}{quote}"
            yield Finding("GB205", message, f"Write {right}.", option)


def knock(options: ConnectionOptions) -> Iterator[Finding]:
    """Whether somebody answers at the address; the login is tried by the run."""
    found = _HOSTS.match(options.url)
    port = options.dialect.port
    reasons = []
    for text in found.group(1).split(",") if found else ():
        host = _HOST.match(text)
        if host is None or (host.group(2) is None and port is None):
            return
        name, number = host.group(1).strip("[]"), int(host.group(2) or port or 0)
        try:
            with socket.create_connection((name, number), timeout=CONNECT_SECONDS):
                return
        except socket.gaierror:
            reasons.append(f"`{name}` (the name is not known)")
        except TimeoutError:
            reasons.append(f"`{name}:{number}` (no answer within {CONNECT_SECONDS:g} seconds)")
        except OSError as error:
            reasons.append(f"`{name}:{number}` ({(error.strerror or str(error)).lower()})")
    if reasons:
        yield Finding(
            "GB503",
            f"the database can't be reached at {', '.join(reasons)}",
            "Start it, correct the address, or open the network between this machine and it.",
            "url",
        )


@contextmanager
def database_errors(options: ConnectionOptions) -> Iterator[None]:
    """Tell in a sentence why a database can't be reached.

    Raises:
        GemError: GB503 when it can't, or doesn't take the login.
    """
    try:
        yield
    # Spark lets the driver's own exceptions through, which PySpark has no type for.
    except Exception as error:
        message = said(error, options)
        if message is not None and _ZONE.search(message):
            raise GemError(
                "GB503",
                f"the database doesn't know the JVM's time zone, by which instants are told: {message}",
                "Have it load the names of time zones (`mariadb-tzinfo-to-sql`, `mysql_tzinfo_to_sql`), or "
                "run the JVM, and those of executors, with `-Duser.timezone=UTC`.",
                "url",
            ) from error
        if message is not None and _UNREACHABLE.search(message):
            raise GemError(
                "GB503",
                f"the database can't be used: {message}",
                "Correct the address or the login, or start it.",
                "url",
            ) from error
        if "No suitable driver" in str(error) or "java.lang.ClassNotFoundException" in str(error):
            raise GemError(
                "GB503",
                "the session has no driver for this database",
                "Give its jar by `jar` and its class by `driver`; a session that runs already has the jars "
                "that it was started with.",
                "url",
            ) from error
        raise


def said(error: BaseException, options: ConnectionOptions) -> str | None:
    """What the database's driver says in an error, without the password; None when it is another's error."""
    found = [text for told in _chain(error) for text in _SQL_ERROR.findall(told)]
    if not found:
        return None
    text: str = _NOISE.sub("", found[-1].strip())
    if options.password is not None and options.password.get_secret_value():
        text = text.replace(options.password.get_secret_value(), "**********")
    return text


def _chain(error: BaseException) -> "Iterator[str]":
    """What an error says, and those that it was made of: their place depends on the kind of session."""
    found: BaseException | None = error
    while found is not None:
        yield str(found)
        yield getattr(found, "getStackTrace", lambda: None)() or ""
        found = getattr(found, "_cause", None)


def ask(
    spark: "SparkSession", options: ConnectionOptions, query: str, raw: "dict[str, str] | None" = None
) -> "DataFrame":
    """The rows of a query, which the database computes.

    Raises:
        GemError: GB503 when it can't be reached.
    """
    with database_errors(options):
        reader = spark.read.format("jdbc").options(**{**(raw or {}), **options.login()})
        found = reader.option("query", query).option("fetchsize", 0).load()
        found.schema  # noqa: B018 (over Spark Connect, this is where it is asked)
        return found


def run(
    spark: "SparkSession",
    options: ConnectionOptions,
    statement: str,
    outcome: str,
    raw: "dict[str, str] | None" = None,
) -> str:
    """Run a statement in the database, as one transaction.

    Spark has no public door for that but one: what a session of its reader begins with. The task that reads
    may run again, and so may the statement: it has to be one that changes nothing the second time.

    Args:
        spark: The session.
        options: How the database is reached.
        statement: The statement.
        outcome: A query that tells in the same session what came of it, as one text.
        raw: Further options of Spark's.

    Raises:
        GemError: GB503 when the database can't be reached.
    """
    with database_errors(options):
        reader = spark.read.format("jdbc").options(**{**(raw or {}), **options.login()})
        # Without a size to fetch, the driver's session commits each statement by itself.
        reader = reader.option("fetchsize", 0).option("sessionInitStatement", statement)
        (row,) = reader.option("query", outcome).load().collect()
        return str(row[0])
