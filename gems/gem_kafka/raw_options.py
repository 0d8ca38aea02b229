"""What another value of `spark_options` does: some settings of Kafka's client change no record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import OptionChange
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Mapping

_ISOLATION = "kafka.isolation.level"

# How settings begin by which the client connects, logs in, waits, and sends or fetches more at once.
_OF_TRANSPORT = (
    "kafka.client.dns.lookup",
    "kafka.client.rack",
    "kafka.connections.max.idle.ms",
    "kafka.default.api.timeout.ms",
    "kafka.fetch.",
    "kafka.heartbeat.interval.ms",
    "kafka.max.partition.fetch.bytes",
    "kafka.max.poll.",
    "kafka.metadata.max.",
    "kafka.metric.reporters",
    "kafka.metrics.",
    "kafka.receive.buffer.bytes",
    "kafka.reconnect.backoff.",
    "kafka.retries",
    "kafka.retry.backoff.",
    "kafka.sasl.",
    "kafka.security.",
    "kafka.send.buffer.bytes",
    "kafka.session.timeout.ms",
    "kafka.socket.connection.setup.timeout.",
    "kafka.ssl.",
)


def of_source(before: Any, after: Mapping[str, Any]) -> OptionChange:
    """What other settings do to what a source reads.

    Args:
        before: The settings that there were.
        after: The settings that there are.
    """
    telling = _telling(before, after)
    if _ISOLATION in map(str.lower, telling):
        return OptionChange(
            "from_now_on",
            f"`{_ISOLATION}` says whether records of transactions that were aborted are read too",
        )
    return _said(telling, "which records are read")


def of_target(before: Any, after: Mapping[str, Any]) -> OptionChange:
    """What other settings do to what a target writes.

    Args:
        before: The settings that there were.
        after: The settings that there are.
    """
    return _said(_telling(before, after), "how records are written, and where to")


def _telling(before: Any, after: Mapping[str, Any]) -> list[str]:
    """The settings with another value of which it isn't known that they change no record."""
    was = before or {}
    return [
        name
        for name in dict.fromkeys([*was, *after])
        if was.get(name) != after.get(name) and not name.lower().startswith(_OF_TRANSPORT)
    ]


def _said(telling: list[str], what: str) -> OptionChange:
    if not telling:
        return OptionChange("continues", "the records are the same")
    return OptionChange("from_now_on", f"{listed_names(telling)} may change {what}")
