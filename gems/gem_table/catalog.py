"""The option `catalog`: where a catalog of Iceberg tables is, in place of a handful of Spark settings."""

import re
import socket
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, TypeAdapter, ValidationInfo, field_validator, model_validator

from gem_bundle import Field, Finding, OptionChange, Options
from gem_bundle.types import DataPath, ExposedSecretError, TableName, secret_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ICEBERG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
ICEBERG_JAR = "org.apache.iceberg:iceberg-spark-runtime-{spark_minor}_{scala}:1.11.0"
POSTGRES_JAR = "org.postgresql:postgresql:42.7.14"
NEWEST_SPARK = "4.1"
"""The newest Spark that Iceberg has a release for."""

CONNECT_SECONDS = 2.5
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_COORDINATE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+\Z")
_PATH: TypeAdapter[str] = TypeAdapter(DataPath)
_LOGIN = ("user", "password", "token", "credential")
_PORTS = {"http": 80, "https": 443, "postgresql": 5432}


def _check_coordinate(text: str) -> str:
    if not _COORDINATE.match(text):
        raise ValueError("write it as `group:artifact:version`, as Maven has it")
    return text


def _check_uri(uri: str) -> str:
    found = secret_in(uri)
    if found is not None and found.lower() in {"password", "token", "credential", "user"}:
        raise ExposedSecretError(
            "a password in it would be printed: give it by `password`, `token` or `credential`"
        )
    if found is not None:
        raise ExposedSecretError(
            f"`{found}` in it would be printed: give it by `settings`, as `jdbc.{found}: ${{secret:…}}`"
        )
    return uri


class CatalogOptions(Options):
    """Where a catalog of Iceberg tables is. Its name is the first part of the table's."""

    kind: Literal["hadoop", "jdbc", "rest"] = Field(
        description="What keeps the list of tables: `hadoop` folders alone, `jdbc` a database, `rest` a "
        "server of Iceberg's REST interface."
    )
    warehouse: str | None = Field(
        None,
        min_length=1,
        description="The folder of the tables; with `rest` the server's own name for one.",
        examples=["tables", "s3a://lake/tables"],
    )
    uri: Annotated[str, AfterValidator(_check_uri)] | None = Field(
        None,
        min_length=1,
        description="The address of the database, as its driver has it, or of the server.",
        examples=["jdbc:postgresql://localhost:5432/lake", "https://catalog.example.com"],
    )
    user: str | None = Field(None, min_length=1, description="The user to log in to the database as.")
    password: SecretStr | None = Field(
        None, description="The user's password.", examples=["${secret:lake/password}"]
    )
    token: SecretStr | None = Field(
        None, description="A token to log in to the server with.", examples=["${secret:lake/token}"]
    )
    credential: SecretStr | None = Field(
        None,
        description="A client's id and secret, a colon between them, for which the server gives a token.",
        examples=["${secret:lake/client}"],
    )
    driver_jar: Annotated[str, AfterValidator(_check_coordinate)] | None = Field(
        None,
        description="The jar of the database's driver by its Maven coordinates; by default PostgreSQL's.",
        examples=["com.mysql:mysql-connector-j:9.4.0"],
        advanced=True,
    )
    settings: dict[str, str | int | float | bool] = Field(
        {},
        description="Further settings of the catalog, by Iceberg's names.",
        examples=[{"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}],
        advanced=True,
    )

    @field_validator("warehouse")
    @classmethod
    def _place(cls, text: str | None, info: ValidationInfo) -> str | None:
        # What a server calls a warehouse is no path.
        return (
            text
            if text is None or info.data.get("kind") == "rest"
            else _PATH.validate_python(text, context=info.context)
        )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = {"hadoop": ["warehouse"], "jdbc": ["uri", "warehouse"], "rest": ["uri"]}[self.kind]
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"`kind: {self.kind}` needs `{name}` too")
        login = {"hadoop": (), "jdbc": ("user", "password"), "rest": ("token", "credential")}[self.kind]
        for name in (*_LOGIN, "uri", "driver_jar"):
            if getattr(self, name) is not None and name not in (*login, *needed, *self._more()):
                raise ValueError(f"`{name}` isn't for `kind: {self.kind}`: remove it")
        for key in self.settings:
            name = {"type": "kind"}.get(key, key.removeprefix("jdbc.") if self.kind == "jdbc" else key)
            if name in ("kind", "warehouse", "uri", *login):
                raise ValueError(f"`{key}` in `settings` is the option `{name}`: set that one")
        if self.uri is not None and self.kind == "jdbc" and not self.uri.startswith("jdbc:"):
            raise ValueError("write `uri` as `jdbc:postgresql://host:5432/database`")
        if self.uri is not None and self.kind == "rest" and not re.match(r"https?://[^/]", self.uri):
            raise ValueError("write `uri` as `https://host`")
        if self.token is not None and self.credential is not None:
            raise ValueError("give `token` or `credential`, not both")
        return self

    def _more(self) -> tuple[str, ...]:
        return ("driver_jar",) if self.kind == "jdbc" else ()

    def jars(self) -> tuple[str, ...]:
        """Iceberg's runtime, and the database's driver."""
        if self.kind != "jdbc":
            return (ICEBERG_JAR,)
        known = POSTGRES_JAR if (self.uri or "").startswith("jdbc:postgresql:") else None
        driver = self.driver_jar or known
        return (ICEBERG_JAR,) if driver is None else (ICEBERG_JAR, driver)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows the catalog by; which of a database's drivers it takes, the driver says itself."""
        return (ICEBERG_CLASS,)

    def spark_settings(self, table: str) -> dict[str, str]:
        """What Spark has to be told of the catalog; with its passwords in the clear.

        Args:
            table: A table in it.
        """
        said: dict[str, object] = {"type": self.kind, "warehouse": self.warehouse, "uri": self.uri}
        login = "jdbc." if self.kind == "jdbc" else ""
        said |= {
            f"{login}{name}": getattr(self, name) for name in ("user", "password", "token", "credential")
        }
        if self.kind == "jdbc":
            said["jdbc.schema-version"] = "V1"  # else Iceberg warns that the older one knows no views
        # Else a session sees for half a minute what was there when it looked first.
        said["cache-enabled"] = "false"
        said |= {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in self.settings.items()
        }
        prefix = f"spark.sql.catalog.{name_of(table)}"
        found = {prefix: ICEBERG_CLASS}
        for name, value in said.items():
            if value is not None:
                secret = value.get_secret_value() if isinstance(value, SecretStr) else value
                found[f"{prefix}.{name}"] = str(secret)
        if self.credential is not None:
            # Spark's own pattern of what it hides in its pages and logs, and `credential`.
            found["spark.redaction.regex"] = "(?i)secret|password|token|access[.]?key|credential"
        return found

    def change(self, before: "Mapping[str, Any]") -> OptionChange:
        """What another catalog does to a query that goes on: a login changes no table."""
        now = self.model_dump(mode="json")
        if all(now[name] == before.get(name) for name in ("kind", "warehouse", "uri")):
            return OptionChange("continues", "the tables are the same")
        return OptionChange(
            "refused",
            "another catalog has other tables, and the checkpoint's offsets are those of the old one's",
            "Give the node another id, so that it is a new one.",
        )

    def knock(self) -> "Iterator[Finding]":
        """Whether somebody answers where the catalog is kept; the login is tried by the run."""
        if self.uri is None:
            return
        parts = urlsplit(self.uri.removeprefix("jdbc:"))
        try:
            host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            return  # several hosts, or what only a driver understands
        if host is None or port is None:
            return
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            reason = (
                "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
            )
            yield Finding(
                "GB503",
                f"the catalog can't be reached at `{host}:{port}` ({reason})",
                "Start it, correct the address, or open the network between this machine and it.",
                ("catalog", "uri"),
            )


def name_of(table: str) -> str:
    """The catalog that a table's name begins with."""
    return table.partition(".")[0]


def check_name(table: TableName) -> None:
    """Whether a table's name begins with that of a catalog of one's own.

    Raises:
        ValueError: When it doesn't.
    """
    name, _, rest = table.partition(".")
    if "." not in rest or not _NAME.match(name):
        raise ValueError(
            "with `catalog`, the first part of `table` is the catalog's name, as in `lake.web.clicks`, of "
            "letters, digits and underscores"
        )
    if name.lower() == "spark_catalog":
        raise ValueError("`spark_catalog` is Spark's own catalog: give yours another name")


def missing_iceberg() -> Finding:
    """That there is no Iceberg for a Spark that is too new."""
    return Finding(
        "GB371",
        "Iceberg has no release for it",
        f"Run it on Spark {NEWEST_SPARK}: `pip install 'pyspark~={NEWEST_SPARK}.0'`. A Delta table is "
        "another way.",
        "catalog",
        upto=NEWEST_SPARK,
    )
