"""Spans of event time: from which moment to which, in which steps, and as a condition in Spark's SQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gem_bundle.expressions import backquoted
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

MOST_STEPS = 10_000
_DAY = timedelta(days=1)

FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
"""Behind these Python has no moments, and Spark may have some."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time.

    Args:
        start: Its first moment, with a time zone.
        end: The first moment behind it.
    """

    start: datetime
    end: datetime

    def steps(self, step: timedelta | None) -> list[Interval]:
        """It in parts, the oldest first; the last one may be shorter.

        Args:
            step: How long a part is; None for one part.

        Raises:
            ValueError: When there are more than `MOST_STEPS`.
        """
        if step is None:
            return [self]
        if (self.end - self.start) / step > MOST_STEPS:
            raise ValueError(f"these are more than {MOST_STEPS:,} steps; take longer ones")
        return list(self._parts(step))

    def _parts(self, step: timedelta) -> Iterator[Interval]:
        start = self.start
        while start < self.end:
            # Not the earlier one of both: there may be no moment behind so long a step.
            end = start + step if step < self.end - start else self.end
            yield Interval(start, end)
            start = end

    def wider(self, margin: timedelta) -> Interval:
        """It with a margin on both sides, as far as there are moments."""
        end = self.end + margin if margin < LAST_MOMENT - self.end else LAST_MOMENT
        return Interval(earlier(self.start, margin), end)

    @property
    def whole_days(self) -> bool:
        """Whether it begins and ends at midnight, UTC."""
        return all((moment - datetime(1970, 1, 1, tzinfo=UTC)) % _DAY == timedelta(0) for moment in self)

    @property
    def first_and_last_day(self) -> tuple[date, date]:
        """The days, UTC, that its first and its last moment are of."""
        last = self.end - timedelta(microseconds=1)
        return self.start.astimezone(UTC).date(), last.astimezone(UTC).date()

    def days(self, column: str) -> str:
        """A condition in Spark's SQL for its days, or for none.

        Args:
            column: The column, a date.
        """
        name = backquoted(column)
        first, last = self.first_and_last_day
        return f"({name} between date'{first}' and date'{last}' or {name} is null)"

    def __iter__(self) -> Iterator[datetime]:
        return iter((self.start, self.end))

    def condition(self, column: tuple[str, ...], kind: str) -> str:
        """It as a condition in Spark's SQL.

        Args:
            column: The column, with the field of a struct behind it where it is one.
            kind: Its type: ``timestamp``, ``timestamp_ntz`` or ``date``.
        """
        name = ".".join(backquoted(part) for part in column)
        first, last = (_literal(moment, kind) for moment in self)
        return f"{name} >= {first} and {name} < {last}"

    def __str__(self) -> str:
        return f"{shown(self.start)} to {shown(self.end)}"


def _literal(moment: datetime, kind: str) -> str:
    if kind == "date":
        return f"date'{moment.date()}'"
    plain = moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
    return f"timestamp_ntz'{plain}'" if kind == "timestamp_ntz" else f"timestamp'{plain} UTC'"


def shown(moment: datetime) -> str:
    """A moment as a person writes it: ``2026-01-31``, ``2026-01-31T10:00:00Z``."""
    utc = moment.astimezone(UTC)
    if utc.time() == datetime.min.time():
        return str(utc.date())
    return utc.isoformat().replace("+00:00", "Z")


def moment_of(text: str) -> datetime:
    """The moment that a text means: a date, or a date and a time; without a zone it is UTC.

    Raises:
        ValueError: When it means none.
        OverflowError: When it isn't in the years 1 to 9999 in UTC.
    """
    found = datetime.fromisoformat(text.strip())
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def earlier(moment: datetime, length: timedelta) -> datetime:
    """The moment that is so much earlier, or the first that there is."""
    return moment - length if length < moment - FIRST_MOMENT else FIRST_MOMENT


def length_of(text: str) -> timedelta:
    """How long something is, as Spark's intervals write it: ``1 day``, ``6 hours``.

    Raises:
        ValueError: When it isn't an interval, has months, whose length varies, or is no time at all.
    """
    months, microseconds = interval_length(text)
    if months:
        raise ValueError("months and years vary in length; write days")
    if microseconds <= 0:
        raise ValueError("write a length of time that is more than nothing, such as `1 day`")
    return timedelta(microseconds=microseconds)
