"""How a table is followed by a column: the seam between the stream of the source and a kind of database.

Nothing here needs a driver, a JVM or a network, and nothing is imported that takes long: Spark imports it in
Python processes that it waits for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, cast

Value = int | str
"""A value of the column: a whole number, or a time as a text that names the same moment everywhere."""

Kind = Literal["number", "time", "local_time"]
"""What the column has: whole numbers, or times with a time zone or without one."""

Rows = list[tuple[object, ...]]


class RefusedError(Exception):
    """The database refuses what is asked.

    Args:
        words: Its words.
    """

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class UnansweredError(RefusedError):
    """The database doesn't answer, or doesn't take the login."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What is followed.

    Args:
        relation: What stands behind `FROM`: the table, or the query in parentheses.
        column: The increasing column.
        kind: What it has.
        delay: So many milliseconds a value that is new isn't used.
    """

    relation: str
    column: str
    kind: Kind
    delay: int = 0


class Asking(Protocol):
    """A connection to the database, on which each question is a transaction of its own."""

    def rows(self, query: str) -> Rows:
        """All rows of a query.

        Raises:
            RefusedError: When the database refuses it.
        """
        ...


class Following(Protocol):
    """What is asked of a kind of database to follow a table."""

    driver: str
    """The module of the driver, one of ADBC's (Arrow Database Connectivity)."""

    package: str
    """The distribution that has it."""

    def address(self, url: str, user: str | None, password: str | None) -> str:
        """What the driver calls the address of a JDBC URL.

        Raises:
            ValueError: When the URL says what the driver doesn't know.
        """
        ...

    def settings(self, time_zone: str) -> Sequence[str]:
        """Statements that a session begins with, in which times without a time zone are of one.

        Args:
            time_zone: The time zone, as Spark has it.
        """
        ...

    def refusal(self, asking: Asking) -> str | None:
        """Why this server can't be followed; None when it can."""
        ...

    def kind(self, told: Mapping[str, str]) -> Kind | None:
        """What a column has that the driver tells something of; None where it isn't increasing."""
        ...

    def expression(self, name: str, spark_type: str, told: Mapping[str, str]) -> str | None:
        """A column under its name, with the values of Spark's own reader; None where there is no way.

        Args:
            name: The column.
            spark_type: Spark's type.
            told: What the driver tells of the column.
        """
        ...

    def value(self, followed: Followed, text: str) -> str:
        """A query for a value that the user has written, as a `Value`."""
        ...

    def running(self, asking: Asking) -> frozenset[str]:
        """The transactions that are under way, and may yet write a value that they have taken already."""
        ...

    def unfinished(self, asking: Asking, running: frozenset[str]) -> frozenset[str]:
        """Those of some transactions that haven't ended, or have become others that haven't."""
        ...

    def reach(
        self, followed: Followed, after: Value | None, until: Value | None, limit: int | None = None
    ) -> str:
        """A query for the greatest value in a range, or for that of its row with the number `limit`.

        Without an end, values aren't counted that the clock hasn't reached.
        """
        ...

    def least(self, followed: Followed, after: Value | None, until: Value) -> str:
        """A query for the smallest value in a range."""
        ...

    def count(self, followed: Followed, after: Value | None, until: Value | None) -> str:
        """A query for how many rows have a value in a range; without an end as `reach`."""
        ...

    def patience(self, seconds: int) -> str:
        """A statement behind which none of the session takes longer: the server ends it."""
        ...

    def rows(self, followed: Followed, columns: str, after: Value | None, until: Value | None) -> str:
        """A query for the rows in a range; without bounds for those that have a value."""
        ...


class Horizon:
    """Up to which value all rows are there, whoever commits late.

    A transaction takes its value some time before others can see its row, and another one that has taken a
    greater value may be seen first. So the greatest value that is there isn't used at once. The delay passes,
    so that who begins then takes a greater one, by whichever clock and however it is rounded; and those that
    are under way then have to end.

    Args:
        following: The kind of database.
        followed: What is followed.
        asking: The connection.
        clock: The time in seconds, of any beginning.
        longest: After so many seconds a transaction isn't waited for any more; None for ever.
    """

    def __init__(
        self,
        following: Following,
        followed: Followed,
        asking: Asking,
        clock: Callable[[], float],
        longest: float | None = None,
    ) -> None:
        self._following = following
        self._followed = followed
        self._asking = asking
        self._clock = clock
        self._longest = longest
        self._newest: Value | None = None
        self._since = 0.0
        self._running: frozenset[str] | None = None

    def step(self, after: Value | None) -> Value | None:
        """Ask once; the value that is reached, None while somebody is waited for or nothing is new.

        `waits` tells which of the two it is.

        Args:
            after: Up to where the rows have been read.
        """
        following, asking = self._following, self._asking
        if self._newest is None:
            ((found,),) = asking.rows(following.reach(self._followed, after, None))
            self._newest = cast("Value | None", found)
            self._since, self._running = self._clock(), None
        if self._newest is None:
            return None
        waited = self._clock() - self._since
        if self._running is None:
            if waited * 1000 < self._followed.delay:
                return None
            # Not before the value was seen: who has begun in between may have a smaller one.
            self._running = following.running(asking)
        self._running = following.unfinished(asking, self._running)
        if self._running and (self._longest is None or waited < self._longest):
            return None
        reached, self._newest = self._newest, None
        return reached

    @property
    def waits(self) -> bool:
        """Whether somebody is waited for."""
        return self._newest is not None


def parts(
    after: Value | None, until: Value, least: Value | None, count: int
) -> list[tuple[Value | None, Value]]:
    """A range of values in parts of the same width, each from behind its first value up to its second one.

    Args:
        after: The value behind which the range begins; None at the smallest one.
        until: The last value.
        least: The smallest value that is there; None where nobody has asked.
        count: How many parts there are at most.
    """
    if count == 1 or least is None:
        return [(after, until)]
    first, last = _number(least), _number(until)
    if first is None or last is None or last <= first:
        return [(after, until)]
    numbers = sorted({first + (last - first) * number // count for number in range(1, count)} - {last})
    cuts = [_like(number, until) for number in numbers]
    return list(zip([after, *cuts], [*cuts, until], strict=True))


def _number(value: Value) -> int | None:
    """A value as a number; of a time its microseconds, None for one that Python has no such time for."""
    if isinstance(value, int):
        return value
    try:
        return (datetime.fromisoformat(value) - _EPOCH) // _MICROSECOND
    except ValueError:
        return None


def _like(number: int, other: Value) -> Value:
    if isinstance(other, int):
        return number
    return (_EPOCH + number * _MICROSECOND).isoformat(" ", "microseconds")


_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
