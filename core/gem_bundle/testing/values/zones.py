"""Time zones by the names that Spark takes."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?")


def zone_of(name: str) -> tzinfo:
    """The time zone that ``spark.sql.session.timeZone`` names: a region, or an offset such as ``+02:00``.

    Raises:
        ValueError: When there is none of that name.
    """
    offset = _OFFSET.fullmatch(name)
    if name in {"UTC", "Z"}:
        return UTC
    if offset is not None:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-length if offset[1] == "-" else length)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(f"there is no time zone `{name}`") from error
