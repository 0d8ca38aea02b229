"""What of the sources is near enough to an interval."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.near import Near
from gem_bundle.backfill.parts import parts_of
from gem_bundle.errors import PipelineError
from gem_bundle.facts import Column, Facts
from tests.core.backfill.test_rules import FILTER, SOURCES, TARGET, plan_of

if TYPE_CHECKING:
    from pathlib import Path

DAY = Interval(datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
HOUR = timedelta(hours=1)
FILED = Facts(streaming=True, columns=(Column("id", "int"), Column("Day", "date")))


def test_rows_that_are_filed_under_a_day_may_have_come_at_any_time() -> None:
    near = Near(HOUR, "day", HOUR)
    assert near.came(DAY, FILED) is None
    assert near.came(DAY, Facts(streaming=True)) is None, "it may have such a column"
    plain = Facts(streaming=True, columns=FILED.columns[:1] if FILED.columns else ())
    assert near.came(DAY, plain) == DAY.wider(2 * HOUR)
    assert Near(None, "day").came(DAY, plain) is None
    assert Near(HOUR).came(DAY, FILED) == DAY.wider(HOUR)


def test_the_days_of_an_interval() -> None:
    assert DAY.days("da`y") == ("(`da``y` between date'2026-01-02' and date'2026-01-02' or `da``y` is null)")
    assert Near(HOUR, "day").filed(DAY) == ("day", date(2026, 1, 1), date(2026, 1, 3))


@pytest.mark.parametrize(
    ("partition", "node", "said"),
    [
        ("name", "orders", "`name` is of type string, and rows can be told apart by a date only"),
        ("paid_at", "out", "no source of target `out` has a column `paid_at`"),
    ],
)
def test_a_column_that_rows_are_not_filed_under(tmp_path: Path, partition: str, node: str, said: str) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    with pytest.raises(PipelineError) as caught:
        parts_of(plan, "out", DAY, Near(partition=partition))
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.node) == ("GB451", node)
    assert said in problem.message
    assert problem.line
    (part,) = parts_of(plan, "out", DAY, Near(partition="day")).values()
    assert part.part == "whole, `day` from 2026-01-02 to 2026-01-02"


def test_a_margin_is_as_long_as_one_likes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    (part,) = parts_of(plan, "out", DAY, Near(timedelta(days=10_000_000), "day")).values()
    assert part.part == "whole, `day` from 0001-01-01 to 9999-12-31"
    (part,) = parts_of(plan, "out", DAY, Near(timedelta(days=10_000_000))).values()
    assert part.part.startswith("the files changed from 0001-01-01 00:00:00+00:00 to 9999-12-31")
