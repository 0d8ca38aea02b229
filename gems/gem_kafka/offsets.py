"""Option types for places in topics: partitions, offsets and timestamps.

They take what Spark's guide shows (a word, a number, JSON text) and what reads better in a pipeline file
(mappings, words in place of -2 and -1, times in place of milliseconds).
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EARLIEST = -2
LATEST = -1
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_WHOLE = re.compile(r"-?\d+")

PerPartition = dict[str, dict[int, int]]


def topic_partitions(places: PerPartition | dict[str, list[int]]) -> Iterator[tuple[str, int]]:
    """The topic and number of each partition in a mapping, in order."""
    for topic, partitions in places.items():
        for partition in sorted(partitions):
            yield topic, partition


def _parsed(value: Any) -> Any:
    """What JSON text means; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"this is not JSON: {error}") from None
    return value


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return value if isinstance(value, int) else None


def _partition(topic: object, value: Any) -> int:
    number = _whole(value)
    if number is None or number < 0:
        raise ValueError(f"partitions are whole numbers from 0 on, and `{value}` of `{topic}` isn't one")
    return number


def _assignment(value: Any) -> dict[str, list[int]]:
    value = _parsed(value)
    if not isinstance(value, dict) or not value:
        raise ValueError("write the partitions of each topic, such as `{clicks: [0, 1]}`")
    found: dict[str, list[int]] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, list) or not partitions:
            raise ValueError(f"`{topic}` needs a list of partitions, such as `[0, 1]`")
        numbers = [_partition(topic, partition) for partition in partitions]
        twice = {number for number in numbers if numbers.count(number) > 1}
        if twice:
            raise ValueError(f"partition {min(twice)} of `{topic}` is named twice")
        found[str(topic)] = numbers
    return found


Assignment = Annotated[
    dict[str, list[int]],
    BeforeValidator(_assignment),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": {
                        "type": "array",
                        "items": {"type": "integer", "minimum": 0},
                    },
                },
                {"type": "string"},
            ]
        }
    ),
]
"""Topics and some of their partitions."""


def _per_partition(value: Any, example: str, entry: Callable[[Any], int]) -> PerPartition:
    value = _parsed(value)
    if not isinstance(value, dict) or not value:
        raise ValueError(f"write a mapping of topic to partition, such as `{example}`")
    found: PerPartition = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict) or not partitions:
            raise ValueError(f"`{topic}` needs a mapping of its partitions, such as `{example}`")
        found[str(topic)] = {
            _partition(topic, partition): entry(place) for partition, place in partitions.items()
        }
    return found


def _offset(value: Any) -> int:
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    number = _whole(value)
    if number is None or number < EARLIEST:
        raise ValueError(
            f"an offset is a whole number from 0 on, `earliest` (-2) or `latest` (-1), not `{value}`"
        )
    return number


def _starting(value: Any) -> str | PerPartition:
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        word = value.strip().lower()
        if word not in _WORDS:
            raise ValueError(
                "write `earliest`, `latest`, or offsets such as `{clicks: {0: 23, 1: earliest}}`"
            )
        return word
    return _per_partition(value, "{clicks: {0: 23, 1: earliest}}", _offset)


def _ending(value: Any) -> str | PerPartition:
    found = _starting(value)
    if found == "earliest":
        raise ValueError("reading can't end where the topics start; write `latest` or offsets")
    if isinstance(found, dict):
        for topic, partition in topic_partitions(found):
            if found[topic][partition] == EARLIEST:
                raise ValueError(
                    f"reading can't end at `earliest`, and partition {partition} of `{topic}` does"
                )
    return found


def _offsets_schema(words: list[str]) -> WithJsonSchema:
    offset = {"anyOf": [{"type": "integer", "minimum": LATEST - 1}, {"enum": words}]}
    partitions = {"type": "object", "additionalProperties": offset}
    topics = {"type": "object", "additionalProperties": partitions}
    return WithJsonSchema({"anyOf": [{"enum": words}, topics, {"type": "string"}]})


StartingOffsets = Annotated[
    Literal["earliest", "latest"] | PerPartition,
    BeforeValidator(_starting),
    _offsets_schema(["earliest", "latest"]),
]
"""Where to start: a word, or an offset for each partition."""

EndingOffsets = Annotated[
    Literal["latest"] | PerPartition, BeforeValidator(_ending), _offsets_schema(["latest"])
]
"""Where to end: a word, or an offset for each partition."""


def _timestamp(value: Any) -> int:
    number = _whole(value)
    if number is not None:
        if number < 0:
            raise ValueError("milliseconds since 1970-01-01 can't be negative")
        return number
    time = value
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value.strip())
        except ValueError:
            time = None
    if not isinstance(time, datetime):
        raise ValueError(
            "write a time with its zone, such as `2013-01-01T00:00:00Z`, or milliseconds since 1970-01-01 UTC"
        )
    if time.tzinfo is None:
        raise ValueError(f"`{value}` has no time zone; add one, `Z` for UTC")
    return round(time.timestamp() * 1000)


_TIMESTAMP_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}

Timestamp = Annotated[int, BeforeValidator(_timestamp), WithJsonSchema(_TIMESTAMP_SCHEMA)]
"""A time: milliseconds since 1970-01-01 UTC, or ISO 8601 with a zone."""


def _timestamps(value: Any) -> PerPartition:
    return _per_partition(value, "{clicks: {0: 2013-01-01T00:00:00Z}}", _timestamp)


Timestamps = Annotated[
    PerPartition,
    BeforeValidator(_timestamps),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": _TIMESTAMP_SCHEMA,
                    },
                },
                {"type": "string"},
            ]
        }
    ),
]
"""A time for each partition."""
