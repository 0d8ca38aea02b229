"""How kafka-python reaches the brokers as Spark's connector would: the same connection, in its settings."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle import Finding

if TYPE_CHECKING:
    from gem_kafka.connection import ConnectionOptions


class Unchecked(Exception):  # noqa: N818 (it carries a finding out of the helpers)
    """The preflight ends here.

    Args:
        finding: What there is to say.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


def client_settings(options: ConnectionOptions, broker: str) -> dict[str, Any]:
    """kafka-python's settings for a connection to one of the brokers.

    Raises:
        Unchecked: When a certificate or key can't be used, or this is a login only for Java.
    """
    found: dict[str, Any] = {"bootstrap_servers": [broker], "security_protocol": options.protocol}
    if options.protocol.startswith("SASL"):
        if options.sasl_username is None or options.sasl_password is None:
            mechanism = options.sasl_mechanism or "GSSAPI"
            raise _untried(broker, f"it logs in with {mechanism} in a way that only Kafka's Java client can")
        found["sasl_mechanism"] = options.sasl_mechanism
        found["sasl_plain_username"] = options.sasl_username
        found["sasl_plain_password"] = options.sasl_password.get_secret_value()
    if options.protocol.endswith("SSL"):
        found["ssl_context"] = _ssl_context(options, broker)
    return found


def said(error: BaseException, options: ConnectionOptions) -> str:
    """What an error says, in one line and without any secret of the options."""
    text = " ".join(str(error).split()).removeprefix(f"{type(error).__name__}: ") or type(error).__name__
    for secret in sorted(filter(None, options.secrets()), key=len, reverse=True):
        text = text.replace(secret, "**********")
    return text


def _untried(broker: str, why: str) -> Unchecked:
    return Unchecked(
        Finding(
            "GB503",
            f"`{broker}` can be reached, but the login and the topics were not tried: {why}",
            "The run will show whether they are right.",
            severity="note",
        )
    )


def _ssl_context(options: ConnectionOptions, broker: str) -> ssl.SSLContext:
    for store in ("truststore", "keystore"):
        location = getattr(options, f"ssl_{store}_location")
        if location is None:
            continue
        if not Path(location).is_file():
            raise Unchecked(
                Finding(
                    "GB505",
                    f"there is no file `{location}`",
                    "Put it there, on the driver and on every executor.",
                    f"ssl_{store}_location",
                )
            )
        if getattr(options, f"ssl_{store}_type") != "PEM":
            raise _untried(broker, f"the {store} is in a format that only Java reads")
    option = "ssl_truststore_location"
    try:
        context = ssl.create_default_context(
            cafile=options.ssl_truststore_location, cadata=options.ssl_truststore_certificates
        )
        option = "ssl_keystore_location"
        _load_own_certificate(context, options)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise Unchecked(
            Finding(
                "GB503",
                f"the certificates can't be used: {said(error, options)}",
                "They must be PEM: BEGIN CERTIFICATE, and for a key BEGIN PRIVATE KEY.",
                option,
            )
        ) from error
    if options.ssl_endpoint_identification_algorithm == "":
        context.check_hostname = False
    return context


def _load_own_certificate(context: ssl.SSLContext, options: ConnectionOptions) -> None:
    # An empty password: without one, OpenSSL would ask for it on the terminal.
    password = options.ssl_key_password.get_secret_value() if options.ssl_key_password else ""
    if options.ssl_keystore_location is not None:
        context.load_cert_chain(options.ssl_keystore_location, password=password)
    elif options.ssl_keystore_key is not None:
        # Python takes a key from a file only; this one is ours alone, and gone at once.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "key.pem")
            chain = options.ssl_keystore_certificate_chain or ""
            file.write_text(f"{options.ssl_keystore_key.get_secret_value()}\n{chain}\n", encoding="utf-8")
            context.load_cert_chain(file, password=password)
