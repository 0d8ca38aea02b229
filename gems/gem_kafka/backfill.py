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
    from datetime import datetime

    from gem_kafka.reading import KafkaSourceOptions


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
        ends = {topic: {int(p): int(o) for p, o in found.items()} for topic, found in part.offset.items()}
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
        raise GemError("GB453", message, "Write to another place with `--into`.")
    try:
        first, since = first_offsets(options, sorted(topic_partitions(began)), _since(part))
    except Unchecked as stop:
        message = f"whether records that were read are still there can't be told: {stop.finding.message}"
        raise GemError("GB453", message, stop.finding.hint, stop.finding.option) from stop
    for topic, partition in sorted(topic_partitions(began)):
        here = first[topic, partition]
        # Where a record that is older than the part is still there, all that are younger are.
        older = since.get((topic, partition), here) > here
        if here > max(began[topic][partition], 0) and not older:
            message = (
                f"partition {partition} of `{topic}` begins at offset {here} now, and the stream has read "
                f"from {began[topic][partition]} on"
            )
            hint = (
                "With `--margin` only records of the interval have to be there. Or write to another place "
                "with `--into`."
            )
            raise GemError("GB453", message, hint)


def _began(part: SourcePart) -> PerPartition:
    """At which offsets the stream began, as its checkpoint keeps it."""
    for number, lines in part.log():
        if number == 0 and lines:
            found = json.loads("".join(lines))
            return {topic: {int(p): int(o) for p, o in places.items()} for topic, places in found.items()}
    return {}


def _since(part: SourcePart) -> int | None:
    return None if part.since is None else _milliseconds(part.since)


def _milliseconds(moment: datetime) -> int:
    return max(round(moment.timestamp() * 1000), 0)
