"""Option types of this family: names, protocols, files and durations as Kafka's client takes them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from gem_bundle.types import DataPath, Duration, StringList


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


SecurityProtocol = Annotated[
    Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], BeforeValidator(_upper)
]
SaslMechanism = Annotated[
    Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM"],
    BeforeValidator(_upper),
]
StoreType = Annotated[Literal["JKS", "PKCS12", "PEM"], BeforeValidator(_upper)]

_MILLISECONDS = {
    "nanosecond": 1e-6,
    "microsecond": 1e-3,
    "us": 1e-3,
    "millisecond": 1,
    "ms": 1,
    "second": 1000,
    "sec": 1000,
    "s": 1000,
    "minute": 60_000,
    "min": 60_000,
    "m": 60_000,
    "hour": 3_600_000,
    "hr": 3_600_000,
    "h": 3_600_000,
    "day": 86_400_000,
    "d": 86_400_000,
    "week": 604_800_000,
    "w": 604_800_000,
}


def milliseconds(duration: str) -> int:
    """The milliseconds in a duration.

    Raises:
        ValueError: When it has months or years, which have no fixed length.
    """
    total = 0.0
    for number, unit in re.findall(r"([\d.]+)\s*([A-Za-z]+)", duration):
        name = unit.lower()
        factor = _MILLISECONDS.get(name) or _MILLISECONDS.get(name.removesuffix("s"))
        if factor is None:
            raise ValueError(f"a {unit} has no fixed length; write weeks or days")
        total += float(number) * factor
    return round(total)


def _bare_milliseconds(value: Any) -> Any:
    # Kafka's own settings, which may be pasted here, are numbers of milliseconds.
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value} ms"
    return f"{value.strip()} ms" if isinstance(value, str) and value.strip().isdigit() else value


def _fixed_length(text: str) -> str:
    milliseconds(text)
    return text


ClientDuration = Annotated[
    Duration,
    BeforeValidator(_bare_milliseconds),
    AfterValidator(_fixed_length),
    WithJsonSchema({"anyOf": [{"type": "string", "examples": ["30 seconds", "15m"]}, {"type": "integer"}]}),
]
"""A duration of the Kafka client; a bare number is milliseconds, as in Kafka's own settings."""


def _topic(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in {".", ".."}:
        raise ValueError(
            "topics are named with letters, digits, dots, underscores and hyphens, at most 249; "
            f"`{name}` is no such name"
        )
    return name


def _topics(names: list[str]) -> list[str]:
    return [_topic(name) for name in names]


TopicName = Annotated[str, AfterValidator(_topic)]
"""The name of a topic."""

TopicList = Annotated[StringList, AfterValidator(_topics)]
"""Names of topics as a list, or as one text with commas."""


def _local_file(path: str) -> str:
    if re.match(r"^[A-Za-z][A-Za-z0-9+.-]+:", path):
        raise ValueError(
            f"Kafka's client reads only local files, and `{path}` is a URL; name a file that has "
            "this path on the driver and on every executor"
        )
    return path


LocalFile = Annotated[DataPath, AfterValidator(_local_file)]
"""A file with the same path on the driver and on every executor."""
