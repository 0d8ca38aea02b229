"""Up to where the live run has read, and what sources are told of that."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.near import Near
from gem_bundle.backfill.parts import Bound, parts_of
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.logs import Commit, Offsets
from gem_file.source import FileSource
from tests.core.backfill.test_rules import FILTER, SOURCES, TARGET, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle import SourcePart

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize("strict", [True, False], ids=["rows", "windows"])
def test_a_source_is_told_by_which_options_it_was_read_and_how_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    before = version_of(
        plan_of(tmp_path, SOURCES.replace("path: in,", "path: paid,") + FILTER + TARGET), "out"
    )
    plan = plan_of(tmp_path, SOURCES + FILTER + TARGET)
    now = replace(version_of(plan, "out"), first_batch=2)
    reached = {"logOffset": 3}
    offsets = Offsets(3, "v2", sources={"orders": reached})
    checkpoint = SparkCheckpoint(plan.definition.checkpoint("out"), "query", (offsets,), (Commit(3),))
    told: list[SourcePart] = []
    actual = FileSource.for_backfill

    def for_backfill(self: FileSource, part: SourcePart) -> Any:
        told.append(part)
        return actual(self, part)

    monkeypatch.setattr(FileSource, "for_backfill", for_backfill)
    bound = Bound(checkpoint, 3, strict, complete=True, ran=now, began=before, versions=(before, now))

    parts_of(plan, "out", DAY, Near(), bound)

    (part,) = told
    assert (part.offset, part.reached) == (reached if strict else None, reached)
    assert [options["path"].rpartition("/")[2] for options in part.former] == ["paid", "in"]
    assert part.began == part.former[0]
