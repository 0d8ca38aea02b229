"""What sources tell of what waits in them, without Spark: when they are asked, and what they say."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gem_bundle import NoOptions, Position, Source, Waiting, WaitingContext
from gem_bundle.run import waiting
from gem_bundle.run.behind import Behind
from gem_bundle.run.progress import Totals
from gem_bundle.run.view import target_lines
from gem_bundle.run.waiting import Waits
from gem_delta.source import DeltaSource
from gem_file.source import FileSource
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from pathlib import Path

HERE = Position("FileStreamSource[file:/data]", {"logOffset": 1})
READ = replace(BATCH, positions=(HERE,), lag={}, newest={})


class Telling(Source[NoOptions]):
    """A source that tells what a test has told it to."""

    says: ClassVar[Waiting | Exception | None] = None
    asked: ClassVar[list[WaitingContext]] = []
    held: ClassVar[threading.Event | None] = None

    def waiting(self, context: WaitingContext) -> Waiting | None:
        self.asked.append(context)
        if self.held is not None:
            self.held.wait()
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Telling, "says", Waiting("data", 3, "files", 12))
    monkeypatch.setattr(Telling, "asked", [])
    monkeypatch.setattr(Telling, "held", None)
    monkeypatch.setattr(waiting, "SHARE", 0)


def test_what_waits_is_told_with_its_unit_and_for_how_long() -> None:
    waits, behind = Waits([Telling(NoOptions())], "/checkpoints/out"), Behind()
    for second, count in ((0, 3), (10, 2)):
        Telling.says = Waiting("data", count, "files", 12)
        told = behind.told(waits.told(replace(READ, timestamp=f"2026-01-01T00:00:{second:02}.000Z")))
    assert (told.lag, told.lag_units, told.lag_seconds) == ({"data": 2}, {"data": "files"}, {"data": 10.0})
    assert told.lag_records is None
    assert Telling.asked[0] == WaitingContext((HERE,), "/checkpoints/out")
    assert "positions" not in told.as_dict()
    totals = Totals("out")
    totals.add(told)
    assert "2 files, 10 s behind `data`" in target_lines(totals)


@pytest.mark.parametrize("says", [None, OSError("no such place")])
def test_a_source_that_does_not_know_says_nothing(says: Any) -> None:
    Telling.says = says
    assert Waits([Telling(NoOptions())], "/c").told(READ) is READ


def test_a_source_that_hangs_is_asked_once_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.0)
    Telling.held = threading.Event()
    waits = Waits([Telling(NoOptions())], "/c")
    assert waits.told(READ) is READ
    assert waits.told(READ) is READ
    assert len(Telling.asked) == 1
    Telling.held.set()
    assert waits._look.over.wait(30)
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 30.0)
    assert waits.told(READ).lag == {"data": 3}


def test_a_look_that_takes_long_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(waiting, "monotonic", lambda: now[0])
    monkeypatch.setattr(waiting, "SHARE", 20)
    waits = Waits([Telling(NoOptions())], "/c")
    real = waits._answer

    def slow(*args: Any) -> None:
        now[0] += 0.5
        real(*args)

    monkeypatch.setattr(waits, "_answer", slow)
    told = []
    for second in range(25):
        now[0] = max(now[0], float(second))
        told.append(waits.told(READ) is not READ)
    assert told == [second in {0, 11, 22} for second in range(25)]


def test_a_source_that_says_nothing_is_not_asked() -> None:
    class Silent(Source[NoOptions]):
        """A source."""

    assert Waits([Silent(NoOptions())], "/c").told(READ) is READ


def test_files_that_spark_has_not_written_down(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    log = tmp_path / "checkpoint" / "sources" / "0"
    log.mkdir(parents=True)

    def arrive(*names: str) -> None:
        for name in names:
            (tmp_path / "in" / name).write_text("{}")

    def write_down(file: str, *names: str) -> None:
        entries = [json.dumps({"path": f"file://{tmp_path}/in/{name}", "timestamp": 1}) for name in names]
        (log / file).write_text("\n".join(["v1", *entries]))

    source = FileSource(FileSource.options_type(format="json", path=str(tmp_path / "in")))
    context = WaitingContext((), str(tmp_path / "checkpoint"))
    arrive("a.json", "b c.json", "_hidden.json", ".d.json")
    assert source.waiting(context) == Waiting(str(tmp_path / "in"), 2, "files", 2)
    write_down("0", "b%20c.json")
    write_down(".0.crc")
    assert source.waiting(context) == Waiting(str(tmp_path / "in"), 1, "files", 2)
    arrive("e.json")
    write_down("1", "a.json")
    write_down("9.compact", "a.json", "b%20c.json", "gone.json")
    write_down("10", "e.json")
    assert source.waiting(context) == Waiting(str(tmp_path / "in"), 0, "files", 4)
    elsewhere = WaitingContext((), str(tmp_path / "another"))
    assert source.waiting(elsewhere) == Waiting(str(tmp_path / "in"), 3, "files", 3)


def test_files_elsewhere_are_not_counted() -> None:
    source = FileSource(FileSource.options_type(format="json", path="s3a://bucket/in"))
    assert source.waiting(WaitingContext((), "/c")) is None
    assert not source.semantics.lag


@pytest.mark.parametrize(
    ("versions", "offset", "count"),
    [
        # The first rows are those of a whole version.
        (5, {"reservoirVersion": 4, "index": 7, "isStartingVersion": True}, 1),
        (5, {"reservoirVersion": 5, "index": -1, "isStartingVersion": False}, 0),
        (8, {"reservoirVersion": 5, "index": -1, "isStartingVersion": False}, 3),
        (8, {"reservoirVersion": 7, "index": 2, "isStartingVersion": False}, 1),
    ],
)
def test_versions_behind_what_was_read(
    tmp_path: Path, versions: int, offset: dict[str, Any], count: int
) -> None:
    (tmp_path / "_delta_log").mkdir()
    for version in range(versions):
        (tmp_path / "_delta_log" / f"{version:020}.json").write_text("{}")
    (tmp_path / "_delta_log" / f"{99:020}.crc").write_text("{}")
    source = DeltaSource(DeltaSource.options_type(path=str(tmp_path)))
    positions = (Position("DeltaSource[file:/another]", {"reservoirVersion": 0}),)
    assert source.waiting(WaitingContext(positions, "/c")) is None
    positions += (Position(f"DeltaSource[file:{tmp_path}]", offset),)
    assert source.waiting(WaitingContext(positions, "/c")) == Waiting(
        str(tmp_path), count, "versions", versions
    )


def test_where_a_table_of_a_catalog_lies_only_spark_knows() -> None:
    source = DeltaSource(DeltaSource.options_type(table="main.clicks"))
    assert source.waiting(WaitingContext((HERE,), "/c")) is None
    assert not source.semantics.lag
