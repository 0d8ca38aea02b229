"""How far from an interval the rows lie in the sources that its rows are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import DataFrame

    from gem_bundle.backfill.interval import Interval
    from gem_bundle.facts import Facts


@dataclass(frozen=True, slots=True)
class Near:
    """What of the sources is near enough to an interval to be read.

    Args:
        margin: How long before or after its time what a row is made of may have come to its source; None
            when that isn't known.
        partition: The column with the day that rows are filed under; None for none.
        reach: How much further away the rows may be that windows are made of.
    """

    margin: timedelta | None = None
    partition: str | None = None
    reach: timedelta = timedelta(0)

    def came(self, interval: Interval, source: Facts) -> Interval | None:
        """When the rows have come to a source; None where that doesn't matter.

        Args:
            interval: The interval.
            source: What is known of the rows of the source.
        """
        return None if self.margin is None or self.files(source) is not False else self._wider(interval)

    def files(self, source: Facts) -> bool | None:
        """Whether rows of a source are filed under the day; None when that isn't known.

        Raises:
            GemError: GB451 when the column isn't a date.
        """
        if self.partition is None:
            return False
        if source.columns is None:
            return None
        column = source.column(self.partition)
        if column is not None and column.type is not None:
            self._check(column.type)
        return column is not None

    def of(self, df: DataFrame, interval: Interval) -> DataFrame:
        """The rows of a source that are filed near enough.

        Args:
            df: All that are read.
            interval: The interval.

        Raises:
            GemError: GB451 when the column isn't a date.
        """
        kinds = {name.lower(): kind for name, kind in df.dtypes}
        if self.partition is None or self.partition.lower() not in kinds:
            return df
        self._check(kinds[self.partition.lower()])
        return df.where(self._wider(interval).days(self.partition))

    def filed(self, interval: Interval) -> tuple[str, date, date] | None:
        """The column with the day that rows are filed under, and the days that are near enough."""
        return None if self.partition is None else (self.partition, *self._wider(interval).first_and_last_day)

    def _wider(self, interval: Interval) -> Interval:
        return interval.wider((self.margin or timedelta(0)) + self.reach)

    def _check(self, kind: str) -> None:
        if kind.lower() != "date":
            message = f"`{self.partition}` is of type {kind}, and rows can be told apart by a date only"
            hint = "Declare it as a date in `schema`, or leave `--partition` away."
            raise GemError("GB451", message, hint)
