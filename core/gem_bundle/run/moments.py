"""Moments as reports, records and metrics write them: ISO 8601 text in UTC, to the millisecond."""

from datetime import UTC, datetime


def now_text() -> str:
    """This moment as text, as Spark writes the moments of its progress reports."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str | None) -> float | None:
    """The seconds since 1970 of a moment that somebody else wrote.

    Args:
        text: ISO 8601 text, or nothing.

    Returns:
        None where there is no text, or it isn't a moment.
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None
