"""The part of topics that a backfill reads, and whether all of it is still there.

A stream's offsets name the partitions that it has read, and up to where. By time only the beginning is exact:
records of a partition aren't in the order of their timestamps, but before the first one that is late enough
there is none that is. So a part ends where the stream has read, or at the time with the margin that is given.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gem_bundle import GemError, SourcePart
from gem_kafka.login import Unchecked
from gem_kafka.offsets import EARLIEST, LATEST, PerPartition, topic_partitions
from gem_kafka.preflight import first_offsets
from gem_kafka.reading import STARTS, STREAM_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gem_kafka.reading import KafkaSourceOptions

_INTO = "Write to another place with `--into`."
_NAMING = ("subscribe", "subscribe_pattern", "assign")


def options_of(options: KafkaSourceOptions, part: SourcePart) -> KafkaSourceOptions:
    """The options by which a batch reads a part.

    Args:
        options: The options of the stream.
        part: The part.

    Raises:
        GemError: GB453 when records that a stream has read are gone, or that can't be told.
    """
    if part.complete:
        _check_begin(options, part)
        _check_complete(options, part)
    changes: dict[str, Any] = dict.fromkeys(STREAM_ONLY)
    changes |= _start(options, part)
    if part.offset is not None:
        ends = _places(part.offset)
        changes |= {"subscribe": None, "subscribe_pattern": None, "ending_offsets": ends}
        changes["assign"] = {topic: sorted(found) for topic, found in ends.items()}
    elif part.until is not None:
        changes["ending_timestamp"] = _milliseconds(part.until)
    made = options.model_copy(update=changes)
    made.model_fields_set.difference_update(name for name, value in changes.items() if value is None)
    return made


def _start(options: KafkaSourceOptions, part: SourcePart) -> dict[str, Any]:
    """Where the part begins: by time, else where the stream was told to, else at the beginning."""
    starts, told = options.starting_offsets, _told(options)
    if part.since is not None and not told:
        return {
            "starting_offsets": None,
            "starting_timestamp": _milliseconds(part.since),
            # A partition whose records are all older has none of the time.
            "starting_offsets_by_timestamp_strategy": "latest",
        }
    if isinstance(starts, dict):
        earliest = {
            topic: {p: EARLIEST if place == LATEST else place for p, place in found.items()}
            for topic, found in starts.items()
        }
        return {"starting_offsets": earliest}
    return {} if told else {"starting_offsets": "earliest"}


def _told(options: KafkaSourceOptions) -> bool:
    """Whether the stream was told to begin at some records, and not at one of the ends."""
    return isinstance(options.starting_offsets, dict) or bool(options.given(STARTS[1:]))


def said_of(options: KafkaSourceOptions, part: SourcePart) -> str:
    """What a part is, for the user."""
    since = f"from {part.since} on" if options.starting_timestamp and part.since is not None else ""
    if part.offset is not None:
        ends = f"up to offsets {json.dumps(part.offset)}"
        return f"{since}, {ends}" if since else ends
    return since or "whole"


def _check_begin(options: KafkaSourceOptions, part: SourcePart) -> None:
    """Refuse where the options name another beginning than that of the stream, which its checkpoint keeps."""
    if part.began is None or not _told(options):
        return
    now, before = (
        json.dumps({name: found.get(name) for name in STARTS}, sort_keys=True)
        for found in (options.model_dump(mode="json", include=set(STARTS)), part.began)
    )
    if now != before:
        name = next(name for name in STARTS if getattr(options, name) is not None)
        message = f"the stream began somewhere else than `{name}` says now, and what it had would be gone"
        hint = "Begin with `starting_offsets: earliest`, or write to another place with `--into`."
        raise GemError("GB453", message, hint, name)


def _check_complete(options: KafkaSourceOptions, part: SourcePart) -> None:
    """Refuse where brokers have dropped records that a stream has read and that belong to the part."""
    began = _began(part)
    if not began:
        message = "the checkpoint doesn't say at which offsets the stream began"
        raise GemError("GB453", message, _INTO)
    reached = _places(part.reached if part.offset is None else part.offset)
    _check_read(options, part, began, reached)
    partitions = sorted({*topic_partitions(began), *topic_partitions(reached)})
    try:
        first, since = first_offsets(options, partitions, _since(part))
    except Unchecked as stop:
        message = f"whether records that were read are still there can't be told: {stop.finding.message}"
        raise GemError("GB453", message, stop.finding.hint, stop.finding.option) from stop
    for topic, partition in partitions:
        here = first[topic, partition]
        # What came after the stream had begun, Spark reads from its beginning.
        start = began.get(topic, {}).get(partition, 0)
        # Where a record that is older than the part is still there, all that are younger are.
        older = since.get((topic, partition), here) > here
        if here > max(start, 0) and not older:
            message = (
                f"partition {partition} of `{topic}` begins at offset {here} now, and the stream has read "
                f"from {start} on"
            )
            hint = (
                "With `--margin` only records of the interval have to be there. Or write to another place "
                "with `--into`."
            )
            raise GemError("GB453", message, hint)


def _check_read(
    options: KafkaSourceOptions, part: SourcePart, began: PerPartition, reached: PerPartition
) -> None:
    """Refuse where the stream has read topics or partitions that it doesn't read any more."""
    former = [topic for version in part.former for topic in _named(version)]
    gone = next((topic for topic in (*began, *former) if topic not in reached), None)
    if gone is not None:
        what = f"the topic `{gone}`"
    else:
        lost = (of for of in topic_partitions(began) if of[1] not in reached[of[0]])
        topic, partition = next(lost, ("", None))
        if partition is None:
            return
        what = f"partition {partition} of `{topic}`"
    message = f"the stream has read {what}, and doesn't any more: the rows of it would be gone"
    hint = f"{_INTO} There its rows are missing, and here they stay."
    raise GemError("GB453", message, hint, next(iter(options.given(_NAMING)), None))


def _named(options: Mapping[str, Any]) -> list[str]:
    """The topics that options name, as a record has them."""
    found = options.get("subscribe") or options.get("assign") or ()
    # A record has a mark in the place of a text of the environment.
    known = found if isinstance(found, list) else [name for name in found if isinstance(found[name], list)]
    return [topic for topic in known if isinstance(topic, str)]


def _began(part: SourcePart) -> PerPartition:
    """At which offsets the stream began, as its checkpoint keeps it."""
    for number, lines in part.log():
        if number == 0 and lines:
            try:
                return _places(json.loads("".join(lines)))
            except (ValueError, TypeError, AttributeError, RecursionError):
                return {}  # a damaged one says nothing
    return {}


def _places(offsets: Any) -> PerPartition:
    """Offsets as a checkpoint has them."""
    return {topic: {int(p): int(o) for p, o in found.items()} for topic, found in (offsets or {}).items()}


def _since(part: SourcePart) -> int | None:
    return None if part.since is None else _milliseconds(part.since)


def _milliseconds(moment: datetime) -> int:
    return max(round(moment.timestamp() * 1000), 0)
