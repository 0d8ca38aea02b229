"""Schedules as crontab writes them, and the same ones for Quartz, which Databricks uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_ITEM = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_LONGEST_EXPRESSION = 500


class _Field(NamedTuple):
    title: str
    least: int
    greatest: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + self.least
        # A sign, and digits of other scripts than ASCII's, are no digits of a crontab.
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
        if not self.least <= number <= self.greatest:
            raise ValueError(f"`{text}` is no {self.title}: it is {self.least} to {self.greatest}")
        return number

    def values(self, text: str) -> frozenset[int]:
        """The numbers that a field stands for."""
        found: set[int] = set()
        for item in text.split(","):
            match = _ITEM.fullmatch(item)
            if match is None:
                raise ValueError(f"`{text}` is no {self.title} as crontab writes it{_is_quartz(text)}")
            every, first, last, step = match.groups()
            if step and not (every or last):
                raise ValueError(
                    f"`{item}` is a step without a range: write `{first}-{self.greatest}/{step}`"
                )
            low = self.least if every else self.number(first)
            high = self.greatest if every else self.number(last or first)
            if low > high:
                raise ValueError(f"`{item}` ends before it begins: write two ranges with a comma")
            if step is not None and not 0 < int(step[:4]) <= self.greatest:
                raise ValueError(f"`{item}` has a step of {step}: it is 1 to {self.greatest}")
            found.update(range(low, high + 1, int(step or 1)))
        return frozenset(found)


def _is_quartz(text: str) -> str:
    return "; `?`, `L`, `W` and `#` are Quartz's" if re.search(r"[?LW#]", text) else ""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule in crontab's five fields.

    Args:
        minute: When in the hour.
        hour: When in the day.
        day: The days of the month.
        month: The months.
        weekday: The days of the week, 0 or 7 is Sunday.
    """

    minute: str
    hour: str
    day: str
    month: str
    weekday: str

    def __str__(self) -> str:
        return f"{self.minute} {self.hour} {self.day} {self.month} {self.weekday}"

    @property
    def has_two_kinds_of_days(self) -> bool:
        """Whether it names days of the month and days of the week: either is enough then.

        Quartz knows one of the two only.
        """
        return self.day != "*" and self.weekday != "*"

    def quartz(self) -> str:
        """The same schedule for Quartz: with seconds, and with names for the days of the week.

        Raises:
            ValueError: When it names days of the month and days of the week.
        """
        if self.has_two_kinds_of_days:
            raise ValueError("Quartz takes days of the month or days of the week, not both")
        days = {number % 7 for number in _FIELDS[4].values(self.weekday)}
        if self.weekday == "*" or len(days) == 7:
            return f"0 {self.minute} {self.hour} {self.day} {self.month} ?"
        return f"0 {self.minute} {self.hour} ? {self.month} {_named(days)}"


def _named(days: set[int]) -> str:
    first, last = min(days), max(days)
    if len(days) > 2 and last - first + 1 == len(days):
        return f"{_DAYS[first]}-{_DAYS[last]}"
    return ",".join(_DAYS[day] for day in sorted(days))


def parse(text: str) -> Cron:
    """Read a schedule: five fields, or ``@daily`` and its like.

    Raises:
        ValueError: When it isn't one; the message says which field and why.
    """
    if len(text) > _LONGEST_EXPRESSION:
        raise ValueError("a schedule is five short fields")
    words = MACROS.get(text.strip().lower(), text).upper().split()
    if len(words) in (6, 7):
        raise ValueError(
            f"a schedule has crontab's five fields (minute, hour, day of the month, month, day of the "
            f"week), not Quartz's {len(words)}: leave out the seconds and the year"
        )
    if len(words) != 5:
        raise ValueError(
            "write a schedule as crontab does: minute, hour, day of the month, month, day of the week, "
            "for example `30 6 * * MON-FRI`"
        )
    for field, word in zip(_FIELDS, words, strict=True):
        field.values(word)
    return Cron(*words)


def every(minutes: int) -> Cron:
    """The schedule that comes round every so many minutes.

    Raises:
        ValueError: When these don't divide the hour or the day, so that it would limp.
    """
    if 0 < minutes < 60 and 60 % minutes == 0:
        return Cron("*" if minutes == 1 else f"*/{minutes}", "*", "*", "*", "*")
    hours, rest = divmod(minutes, 60)
    if rest == 0 and 0 < hours <= 24 and 24 % hours == 0:
        return Cron("0", {1: "*", 24: "0"}.get(hours, f"*/{hours}"), "*", "*", "*")
    raise ValueError(
        "write minutes that divide an hour (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30) or hours that divide a "
        "day (1, 2, 3, 4, 6, 8, 12, 24), for example `every 10 minutes`"
    )
