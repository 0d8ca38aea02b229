"""What a backfill keeps beside the checkpoint, and when it goes on by it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gem_bundle.backfill.api import BackfillOptions, BackfillReport, _Backfill
from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.rules import Wanted
from gem_bundle.run.options import RunOptions
from tests.core.backfill.test_rules import FILTER, SOURCES, TARGET, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.backfill.journal import Journal
    from gem_bundle.pipeline.plan import Plan

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


def journal(plan: Plan, into: str) -> Journal:
    made = _Backfill(plan, RunOptions(), BackfillOptions(Wanted("out", DAY, into=into)))._journal()
    made.load()
    return made


def test_a_login_in_the_other_place_is_kept_nowhere(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    place = "s3a://key:pa55word@bucket/copy"
    journal(plan, place).add(DAY)
    (kept,) = tmp_path.rglob(".out.backfill.json")
    assert "pa55word" not in kept.read_text()
    assert "s3a://bucket/copy" in kept.read_text()
    assert journal(plan, place).has(DAY)
    assert not journal(plan, "s3a://key:pa55word@bucket/other").has(DAY)
    assert BackfillReport("p", Wanted("out", DAY, into=place)).as_dict()["into"] == "s3a://bucket/copy"


def test_the_same_words_in_another_folder_are_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    journal(plan, "copy").add(DAY)
    assert journal(plan, "copy").has(DAY)
    monkeypatch.chdir(tmp_path / "b")
    assert not journal(plan, "copy").has(DAY)
    assert journal(plan, str(tmp_path / "a/copy")).has(DAY)


@pytest.mark.parametrize("left", ["[" * 100_000, "[]", '{"format": 1', "\xff", '{"format": 1, "done": 5}'])
def test_what_is_no_journal_is_taken_for_none(tmp_path: Path, left: str) -> None:
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    journal(plan, "copy").add(DAY)
    (kept,) = tmp_path.rglob(".out.backfill.json")
    kept.write_text(left, encoding="latin-1")
    assert not journal(plan, "copy").has(DAY)
