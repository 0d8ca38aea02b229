"""What source and target share: the options of the connection to Kafka, and the connector's jar."""

import os
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import SecretStr, model_validator

from gem_bundle import Field, Options
from gem_bundle.diagnostics import listed_names
from gem_bundle.types import BrokerList
from gem_kafka.types import (
    ClientDuration,
    LocalFile,
    SaslMechanism,
    SecurityProtocol,
    StoreType,
    milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KAFKA_JAR = "org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"
KAFKA_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class ConnectionOptions(Options):
    """How Kafka is reached, from *Kafka Specific Configurations* and *Security* of the guide."""

    default_change = "continues"

    refused_settings: "ClassVar[Mapping[str, str]]" = {}

    bootstrap_servers: BrokerList = Field(
        spark="kafka.bootstrap.servers",
        description="The brokers to ask first, as `host:port`; the others are found through them.",
        examples=[["localhost:9092"], "b1:9092,b2:9092"],
        place=True,
    )
    security_protocol: SecurityProtocol | None = Field(
        None,
        spark="kafka.security.protocol",
        description="How connections are secured; Kafka's default is `PLAINTEXT`.",
    )
    sasl_mechanism: SaslMechanism | None = Field(
        None,
        spark="kafka.sasl.mechanism",
        description="How to log in; Kafka's default is `GSSAPI` (Kerberos).",
    )
    sasl_username: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The user to log in as, with `PLAIN` or `SCRAM-…`.",
    )
    sasl_password: SecretStr | None = Field(
        None, passed=False, description="The user's password.", examples=["${secret:kafka/password}"]
    )
    sasl_jaas_config: SecretStr | None = Field(
        None,
        spark="kafka.sasl.jaas.config",
        description="A whole JAAS login entry, in place of `sasl_username` and `sasl_password`.",
        advanced=True,
    )
    sasl_kerberos_service_name: str | None = Field(
        None,
        spark="kafka.sasl.kerberos.service.name",
        description="The Kerberos principal name that the brokers run as, for `GSSAPI`.",
        advanced=True,
    )
    ssl_truststore_location: LocalFile | None = Field(
        None,
        spark="kafka.ssl.truststore.location",
        description="The file with the certificates to trust, on the driver and every executor.",
    )
    ssl_truststore_password: SecretStr | None = Field(
        None, spark="kafka.ssl.truststore.password", description="The trust store's password."
    )
    ssl_truststore_type: StoreType | None = Field(
        None,
        spark="kafka.ssl.truststore.type",
        description="The trust store's format; Kafka's default is `JKS`.",
    )
    ssl_truststore_certificates: str | None = Field(
        None,
        spark="kafka.ssl.truststore.certificates",
        description="The certificates to trust, as PEM text in place of a file.",
        advanced=True,
    )
    ssl_keystore_location: LocalFile | None = Field(
        None,
        spark="kafka.ssl.keystore.location",
        description="The file with the client's own certificate and key, where brokers ask for one.",
        advanced=True,
    )
    ssl_keystore_password: SecretStr | None = Field(
        None,
        spark="kafka.ssl.keystore.password",
        description="The key store's password; not for PEM.",
        advanced=True,
    )
    ssl_keystore_type: StoreType | None = Field(
        None,
        spark="kafka.ssl.keystore.type",
        description="The key store's format; Kafka's default is `JKS`.",
        advanced=True,
    )
    ssl_keystore_certificate_chain: str | None = Field(
        None,
        spark="kafka.ssl.keystore.certificate.chain",
        description="The client's own certificates, as PEM text in place of a file.",
        advanced=True,
    )
    ssl_keystore_key: SecretStr | None = Field(
        None,
        spark="kafka.ssl.keystore.key",
        description="The client's own key, as PEM text (PKCS#8) in place of a file.",
        advanced=True,
    )
    ssl_key_password: SecretStr | None = Field(
        None,
        spark="kafka.ssl.key.password",
        description="The password of the key in the key store.",
        advanced=True,
    )
    ssl_endpoint_identification_algorithm: Literal["https", ""] | None = Field(
        None,
        spark="kafka.ssl.endpoint.identification.algorithm",
        description="`https` (Kafka's default) compares a broker's name with its certificate; an "
        "empty text doesn't.",
        advanced=True,
    )
    client_id: str | None = Field(
        None,
        spark="kafka.client.id",
        description="The name by which brokers know this client in their logs and quotas.",
        advanced=True,
    )
    request_timeout: ClientDuration | None = Field(
        None,
        spark="kafka.request.timeout.ms",
        passed=False,
        description="How long to wait for a broker's answer; Kafka's default is 30 seconds.",
        advanced=True,
    )
    spark_options: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        description="Further options for Spark's connector, and with the prefix `kafka.` for Kafka's "
        "client, passed as they are.",
        examples=[{"kafka.fetch.min.bytes": 65536}],
        advanced=True,
        change="from_now_on",
    )

    @property
    def protocol(self) -> str:
        """The security protocol that is in force."""
        return self.security_protocol or "PLAINTEXT"

    def to_spark(self) -> dict[str, str]:
        """The options as Spark's connector takes them, with the login entry built. Holds secrets."""
        found = super().to_spark()
        if self.request_timeout is not None:
            found["kafka.request.timeout.ms"] = str(milliseconds(self.request_timeout))
        if self.sasl_username is not None:
            found["kafka.sasl.jaas.config"] = self._login()
        for store in ("truststore", "keystore"):
            if self._has_pem(store):
                found[f"kafka.ssl.{store}.type"] = "PEM"
        return found

    def places(self, topics: "Iterable[str]") -> list[str]:
        """Topics as a check compares them: under every broker, since any of them stands for the cluster."""
        return [f"kafka://{broker}/{topic}" for topic in topics for broker in self.bootstrap_servers]

    def secrets(self) -> tuple[str, ...]:
        """The secret values themselves, so that a message can be cleared of them."""
        values = (getattr(self, name) for name in self.secret_names())
        return tuple(value.get_secret_value() for value in values if value is not None)

    def _login(self) -> str:
        assert self.sasl_username is not None
        assert self.sasl_password is not None
        assert self.sasl_mechanism is not None
        return login_entry(self.sasl_mechanism, self.sasl_username, self.sasl_password.get_secret_value())

    def _has_pem(self, store: str) -> bool:
        name = "ssl_truststore_certificates" if store == "truststore" else "ssl_keystore_key"
        return getattr(self, name) is not None

    @model_validator(mode="after")
    def _connection_goes_together(self) -> Self:
        for problem in (
            self._raw_problem(),
            self._protocol_problem(),
            self._login_problem(),
            self._store_problem("truststore", ("ssl_truststore_certificates",)),
            self._store_problem("keystore", ("ssl_keystore_certificate_chain", "ssl_keystore_key")),
        ):
            if problem:
                raise ValueError(problem)
        return self

    def _raw_problem(self) -> str:
        for key in self.spark_options:
            reason = self.refused_settings.get(key.lower())
            if reason:
                return f"`{key}` can't be set in `spark_options`: {reason}"
            name = self.canonical(key)
            if name is not None:
                return f"`{key}` in `spark_options` is the option `{name}`; set that one"
        return ""

    def _given(self, prefix: str) -> list[str]:
        return [
            name
            for name in type(self).model_fields
            if name.startswith(prefix) and getattr(self, name) is not None
        ]

    def _protocol_problem(self) -> str:
        for prefix, protocols in (
            ("sasl_", ("SASL_SSL", "SASL_PLAINTEXT")),
            ("ssl_", ("SASL_SSL", "SSL")),
        ):
            given = self._given(prefix)
            if given and self.protocol not in protocols:
                wanted = " or ".join(f"`{protocol}`" for protocol in protocols)
                return (
                    f"`{given[0]}` has no effect with `security_protocol: {self.protocol}`; "
                    f"set it to {wanted}"
                )
        return ""

    def _login_problem(self) -> str:
        user, password = self.sasl_username is not None, self.sasl_password is not None
        if user != password:
            missing = "sasl_password" if user else "sasl_username"
            return f"`sasl_username` and `sasl_password` go together, and `{missing}` is missing"
        if user and self.sasl_jaas_config is not None:
            return "`sasl_jaas_config` already says who logs in; remove it, or the user and password"
        if user and self.sasl_mechanism not in _LOGIN_MODULES:
            wanted = listed_names(_LOGIN_MODULES)
            return f"a user and a password need a `sasl_mechanism` that takes them: {wanted}"
        return ""

    def _store_problem(self, store: str, texts: tuple[str, ...]) -> str:
        file, password = f"ssl_{store}_location", f"ssl_{store}_password"
        kind = getattr(self, f"ssl_{store}_type")
        given = [name for name in texts if getattr(self, name) is not None]
        if given and getattr(self, file) is not None:
            return f"`{given[0]}` and `{file}` are two places for one thing; give one of them"
        if given and len(given) < len(texts):
            missing = next(name for name in texts if name not in given)
            return f"`{given[0]}` needs `{missing}` beside it"
        if given and kind not in (None, "PEM"):
            return f"`{given[0]}` is PEM text, and `ssl_{store}_type` says {kind}"
        if (given or kind == "PEM") and getattr(self, password) is not None:
            return f"`{password}` is not for PEM; the key's own password is `ssl_key_password`"
        return ""


def login_entry(mechanism: str, username: str, password: str) -> str:
    """The JAAS entry that logs a user in, quoted so that no character of theirs ends it.

    Databricks keeps Kafka's classes under a name of its own.
    """
    module = _LOGIN_MODULES[mechanism]
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        module = f"kafkashaded.{module}"
    return f"{module} required username={_quoted(username)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    # Kafka reads the entry with Java's StreamTokenizer, where a line's end ends a quoted text.
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'
