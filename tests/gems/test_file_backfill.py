"""The files that a backfill reads, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, SourcePart
from gem_file.backfill import Files, files_of
from gem_file.reading import FileSourceOptions

if TYPE_CHECKING:
    from pathlib import Path

DAYS = ("in/day=2026-01-02/a.json", "in/Day=2026-01-03/b.json", "in/c.json", "in/day=other/d.json")


def options(folder: Path, **raw: Any) -> FileSourceOptions:
    given = {"path": "in", "format": "json", "schema": "id int, day date", **raw}
    return FileSourceOptions.model_validate(given, context={"base_dir": folder})


def part(folder: Path, **more: Any) -> SourcePart:
    lines = [json.dumps({"path": f"file://{folder}/{name}", "batchId": 0}) for name in DAYS]
    filed = ("day", date(2026, 1, 3), date(2026, 1, 4))
    return SourcePart(offset={"logOffset": 0}, log=lambda: [(0, lines)], filed=filed, **more)


def names(folder: Path, raw: dict[str, Any]) -> list[str]:
    found = files_of(options(folder, **raw), part(folder)).paths
    assert found is not None
    return [path.removeprefix(f"file://{folder}/") for path in found]


@pytest.mark.parametrize(
    ("raw", "count"),
    [
        ({}, 3),
        # The names of folders are no columns then, or not all of them.
        ({"recursive_file_lookup": True}, 4),
        ({"base_path": "in/day=2026-01-02"}, 4),
        ({"spark_options": {"RecursiveFileLookup": "true"}}, 4),
        ({"path": "in/*"}, 4),
        ({"path": "in/day=2026-01-02"}, 4),
    ],
)
def test_files_in_folders_of_other_days_are_left_out(tmp_path: Path, raw: dict[str, Any], count: int) -> None:
    assert names(tmp_path, raw) == list(DAYS[-count:])


def test_only_files_of_the_days_have_to_be_there(tmp_path: Path) -> None:
    for name in DAYS[1:]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(options(tmp_path), part(tmp_path, complete=True)).paths is not None
    (tmp_path / DAYS[1]).unlink()
    with pytest.raises(GemError, match=r"b.json can't be read once more") as caught:
        files_of(options(tmp_path), part(tmp_path, complete=True))
    assert caught.value.code == "GB453"


@pytest.mark.parametrize("hours", [-12, 0, 14])
def test_times_at_the_ends_of_time_are_those_that_files_can_have(hours: int) -> None:
    ends = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    times = Files(*ends).modified(timezone(timedelta(hours=hours)))
    assert [text[:4] for text in times.values()] in (["1969", "9999"], ["1970", "9999"])
