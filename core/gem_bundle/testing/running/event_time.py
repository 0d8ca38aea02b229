"""Event time in tests: rows that let it pass, and watermarks as times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gem_bundle.facts import UNKNOWN_DELAY
from gem_bundle.schema import DataType
from gem_bundle.testing.values import Reader, Shower
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from gem_bundle.testing.running.prepared import Fed, Prepared

_TIMESTAMP = DataType("timestamp")


def moment(text: str | datetime, time_zone: str) -> datetime:
    """A time as people write it, in UTC.

    Args:
        text: ``2026-01-05 09:00:00``, in the time zone unless it names another.
        time_zone: The session's.

    Raises:
        MisfitError: When it is none.
    """
    return Reader(time_zone).moment(text, _TIMESTAMP)


def watermark_text(watermark: str | None, time_zone: str) -> str | None:
    """A watermark as Spark reports it, as a time of the time zone; None when there is none."""
    return None if watermark is None else Shower(time_zone).moment(_reported(watermark))


def has_reached(watermark: str | None, wanted: datetime) -> bool:
    """Whether a watermark as Spark reports it is at a time or after it."""
    return watermark is not None and _reported(watermark) >= wanted


def is_at(watermark: str | None, wanted: datetime) -> bool:
    """Whether a watermark as Spark reports it is exactly at a time; Spark keeps milliseconds."""
    exact = wanted.replace(microsecond=wanted.microsecond // 1000 * 1000)
    return watermark is not None and _reported(watermark) == exact


def is_watermarked(prepared: Prepared, target: str) -> bool:
    """Whether the query of a target is certain to have a watermark."""
    facts = prepared.plan.facts[prepared.plan.node(target).inputs[0].key]
    return any(operator.kind == "watermark" for operator in facts.all_operators())


def carriers(prepared: Prepared, to: datetime) -> dict[str, tuple[Any, ...]]:
    """Rows that take the watermark to a time: of each source one, with nothing in it but its event time.

    Args:
        prepared: The pipeline.
        to: Where the watermark is to be.

    Returns:
        The rows by the names of the nodes that get them; without those whose event time is no column of
        their own, such as what stands in the JSON of Kafka's messages.
    """
    found = {}
    for name, fed in prepared.fed.items():
        delays = _delays(prepared, fed) if fed.streaming else {}
        if delays:
            late = {column: to + delay for column, delay in delays.items()}
            found[name] = tuple(late.get(field.name.lower()) for field in fed.fields)
    return found


def _delays(prepared: Prepared, fed: Fed) -> dict[str, timedelta]:
    """How far the watermark is behind each column of a node that is event time further on."""
    plan = prepared.plan
    own = {field.name.lower() for field in fed.fields if field.type == _TIMESTAMP}
    delays = {(column.lower(), delay) for column, delay in fed.delays.items()}
    for name in prepared.needed:
        if name in plan.facts and fed.node in plan.upstream([name]):
            delays |= {
                (column.name.lower(), column.delay)
                for column in plan.facts[name].columns or ()
                if column.delay not in {None, UNKNOWN_DELAY} and column.type == "timestamp"
            }
    found: dict[str, timedelta] = {}
    for column, delay in delays:
        months, microseconds = interval_length(delay)
        length = timedelta(days=31 * months, microseconds=microseconds)
        if column in own:
            found[column] = max(length, found.get(column, length))
    return found


def _reported(watermark: str) -> datetime:
    return datetime.fromisoformat(re.sub("Z$", "+00:00", watermark)).astimezone(UTC)
