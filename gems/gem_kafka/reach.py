"""Whether a broker can be reached at all, and why a client's connections to it fail."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from gem_bundle import Finding
from gem_kafka.login import Unchecked, said

if TYPE_CHECKING:
    from gem_kafka.connection import ConnectionOptions

CONNECT_SECONDS = 2.5


def answering(options: ConnectionOptions) -> str:
    """The first broker that accepts a connection; all are tried at the same time.

    Raises:
        Unchecked: When none does, with what was tried and why it failed.
    """
    answers: SimpleQueue[tuple[str, str]] = SimpleQueue()

    def knock(broker: str) -> None:
        host, port = _host_and_port(broker)
        try:
            with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
                answers.put((broker, ""))
        except socket.gaierror:
            answers.put((broker, f"the name `{host}` is not known"))
        except TimeoutError:
            answers.put((broker, f"no answer within {CONNECT_SECONDS:g} seconds"))
        except OSError as error:
            answers.put((broker, (error.strerror or str(error)).lower()))

    for broker in options.bootstrap_servers:
        # A name server can take longer than we want to wait, and can't be interrupted.
        threading.Thread(target=knock, args=(broker,), daemon=True).start()
    deadline = time.monotonic() + CONNECT_SECONDS + 0.5
    reasons = dict.fromkeys(options.bootstrap_servers, f"no answer within {CONNECT_SECONDS:g} seconds")
    for _ in options.bootstrap_servers:
        try:
            broker, reason = answers.get(timeout=max(deadline - time.monotonic(), 0.01))
        except Empty:
            break
        if not reason:
            return broker
        reasons[broker] = reason
    tried = ", ".join(f"`{broker}` ({reason})" for broker, reason in reasons.items())
    raise Unchecked(
        Finding(
            "GB503",
            f"no Kafka broker can be reached at {tried}",
            "Start it, correct the address, or open the network between this machine and it.",
            "bootstrap_servers",
        )
    )


def check_tls(context: ssl.SSLContext, options: ConnectionOptions, broker: str) -> None:
    """Whether a broker speaks TLS, with a certificate that is trusted.

    kafka-python would try again and again, and wouldn't say why.

    Raises:
        Unchecked: When it doesn't.
    """
    host, port = _host_and_port(broker)
    try:
        with (
            socket.create_connection((host, port), timeout=CONNECT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of `{broker}` isn't trusted: {error.verify_message}"
        hint = "Name the authority that signed it in `ssl_truststore_location`."
        raise Unchecked(Finding("GB503", message, hint, "ssl_truststore_location")) from error
    except OSError as error:  # ssl.SSLError too
        message = f"`{broker}` can be reached, but not over TLS: {said(error, options)}"
        hint = f"Check that the listener's protocol is {options.protocol}."
        raise Unchecked(Finding("GB503", message, hint, "security_protocol")) from error


def _host_and_port(broker: str) -> tuple[str, int]:
    host, _, port = broker.rpartition(":")
    return host.strip("[]"), int(port)


class Causes(logging.Handler):
    """What goes wrong in a client's own thread: kafka-python raises a timeout and logs the cause.

    Meanwhile its debug messages are off, in every thread: they have passwords in them.
    """

    _logger = logging.getLogger("kafka")
    _guard = threading.Lock()
    _level = logging.NOTSET
    _active = 0

    def __init__(self, client_id: str) -> None:
        super().__init__(logging.WARNING)
        self._client_id = client_id
        self._found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exceptions that a record of this client's thread is about."""
        if (record.threadName or "").endswith(self._client_id) and isinstance(record.args, tuple):
            self._found.extend(a for a in record.args if isinstance(a, BaseException))

    def __enter__(self) -> list[BaseException]:
        with self._guard:
            if not Causes._active:
                Causes._level = self._logger.level
                self._logger.setLevel(max(self._logger.getEffectiveLevel(), logging.WARNING))
            Causes._active += 1
        self._logger.addHandler(self)
        return self._found

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        with self._guard:
            Causes._active -= 1
            if not Causes._active:
                self._logger.setLevel(Causes._level)
