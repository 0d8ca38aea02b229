"""What a backfill reads of a Delta table: a version, or what its commits changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, ReadContext, SourcePart, StreamReadContext
from gem_delta.source import DeltaSource
from tests.gems.draining import drain, make
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

a_part_of_a_table = some_of("a part of a table", 1)

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def source(folder: Path | None = None, **raw: Any) -> DeltaSource:
    made: DeltaSource = make(DeltaSource, {"path": "t", **raw}, folder)
    return made


def before(version: int) -> dict[str, Any]:
    """The offset of a stream that has read all versions before this one."""
    return {"sourceVersion": 1, "reservoirVersion": version, "index": -1, "isStartingVersion": False}


def test_a_backfill_reads_the_version_that_the_stream_has_read() -> None:
    made = source(ignore_deletes=True, starting_version="latest").for_backfill(SourcePart(offset=before(7)))
    assert made is not None
    assert made.part == "up to version 6"
    assert made.source.options.to_spark() == {"versionAsOf": "6"}


@pytest.mark.parametrize(
    ("raw", "began", "option"),
    [
        # A stream of the change feed begins with the rows of the table, a batch with its first change.
        ({"read_change_feed": True}, {}, "read_change_feed"),
        ({"read_change_feed": True, "starting_version": "latest"}, {}, "starting_version"),
        ({"starting_version": 3}, None, "starting_version"),
        ({"starting_version": 3}, {"starting_version": 0}, "starting_version"),
        ({"starting_version": 3, "read_change_feed": True}, {}, "starting_version"),
        ({"starting_timestamp": "2026-01-02"}, {"starting_timestamp": "2026-01-01"}, "starting_timestamp"),
        (
            {"starting_version": 3, "skip_change_commits": True},
            {"starting_version": 3},
            "skip_change_commits",
        ),
    ],
)
def test_what_the_stream_has_had_and_the_feed_has_not(
    raw: dict[str, Any], began: dict[str, Any] | None, option: str
) -> None:
    part = SourcePart(offset=before(7), complete=True, began=began)
    with pytest.raises(GemError) as caught:
        source(**raw).for_backfill(part)
    assert (caught.value.code, caught.value.option) == ("GB453", option)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"starting_version": 3}, "the change feed, from starting_version 3, up to version 6"),
        ({"read_change_feed": True, "starting_version": "latest"}, "the change feed, up to version 6"),
    ],
)
def test_what_the_feed_has(raw: dict[str, Any], said: str) -> None:
    made = source(**raw).for_backfill(SourcePart(offset=before(7), complete=True, began=raw))
    assert made is not None
    assert made.part == said


def test_half_a_version_is_not_read() -> None:
    offset = {**before(7), "index": 2}
    with pytest.raises(GemError, match="a part of a version"):
        source(read_change_feed=True, starting_version=0).for_backfill(SourcePart(offset=offset))


def changed(spark: SparkSession, folder: Path, **properties: str) -> None:
    """A table of which each version is of a day: versions 1, 2 and 5 add rows."""
    table = f"delta.`{folder}/t`"
    # Else Delta doesn't read versions that are older than a week.
    kept = dict.fromkeys(("logRetentionDuration", "deletedFileRetentionDuration"), "interval 9999 days")
    given = ", ".join(f"'delta.{name}' = '{value}'" for name, value in {**kept, **properties}.items())
    spark.sql(f"create table {table} (id int, name string) using delta tblproperties ({given})")
    spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    spark.sql(f"insert into {table} values (3, 'c')")
    spark.sql(f"update {table} set name = 'd' where id = 1")
    spark.sql(f"delete from {table} where id = 2")
    spark.sql(f"insert into {table} values (4, 'e')")
    for version in range(6):
        at = day(version).timestamp()
        os.utime(folder / f"t/_delta_log/{version:020}.json", (at, at))


def day(version: int) -> datetime:
    return FIRST_DAY + timedelta(days=version)


def read(spark: SparkSession, made: DeltaSource, **part: Any) -> list[tuple[Any, ...]]:
    found = made.for_backfill(SourcePart(**part))
    assert found is not None
    return sorted(map(tuple, found.source.read(ReadContext("x", spark)).collect()), key=str)


def streamed(spark: SparkSession, made: DeltaSource, checkpoint: Path) -> list[tuple[Any, ...]]:
    return sorted(drain(made.read_stream(StreamReadContext("x", spark, "x")), checkpoint), key=str)


@a_part_of_a_table
@pytest.mark.spark
def test_the_feed_of_a_part_has_what_the_stream_has_had(spark: SparkSession, tmp_path: Path) -> None:
    changed(spark, tmp_path, enableChangeDataFeed="true")
    feed = source(tmp_path, read_change_feed=True, starting_version=1)
    rows = streamed(spark, feed, tmp_path / "feed")
    assert [row[:4] for row in rows if row[3] == 3] == [
        (1, "a", "update_preimage", 3),
        (1, "d", "update_postimage", 3),
    ]
    assert read(spark, feed) == rows
    assert read(spark, feed, offset=before(4)) == [row for row in rows if row[3] < 4]
    assert read(spark, feed, since=day(2), until=day(4)) == [row for row in rows if row[3] in {2, 3}]
    assert read(spark, feed, since=day(3), until=day(9), offset=before(5)) == [
        row for row in rows if row[3] in {3, 4}
    ]
    assert read(spark, feed, since=day(6), until=day(9)) == []
    assert read(spark, source(tmp_path, read_change_feed=True), since=day(1), until=day(9)) == rows

    for start in ({"starting_version": 5}, {"starting_timestamp": f"{day(5).isoformat()}"}):
        rest = source(tmp_path, **start)
        assert read(spark, rest) == streamed(spark, rest, tmp_path / str(*start)) == [(4, "e")]
        assert read(spark, rest, offset=before(5)) == []
    assert read(spark, source(tmp_path, starting_version=2)) == [(3, "c"), (4, "e")]


@a_part_of_a_table
@pytest.mark.spark
def test_what_a_log_no_longer_has_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    changed(spark, tmp_path, enableChangeDataFeed="true", checkpointInterval="2")
    for version in (0, 1):  # as Delta cleans it up: a checkpoint of a later version is there
        (tmp_path / f"t/_delta_log/{version:020}.json").unlink()
    whole = source(tmp_path, read_change_feed=True, starting_version=0)
    early = source(tmp_path, starting_timestamp=day(1).isoformat())
    for made, option in ((whole, "starting_version"), (early, "starting_timestamp")):
        with pytest.raises(
            GemError, match="the log of the table begins with version 2, of 2026-01-03"
        ) as caught:
            read(spark, made)
        assert (caught.value.code, caught.value.option) == ("GB453", option)
        with pytest.raises(GemError, match="begins with version 2"):
            read(spark, made, since=day(2), until=day(9))
    assert [row[:2] for row in read(spark, whole, since=day(3), until=day(4))] == [(1, "a"), (1, "d")]


@a_part_of_a_table
@pytest.mark.spark
@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, "doesn't have its change feed for all of the versions 2 to 5"),
        (
            {"enableChangeDataFeed": "true", "deletedFileRetentionDuration": "interval 2 days"},
            "version 2 of the table is older than its `delta.deletedFileRetentionDuration`",
        ),
    ],
    ids=["no feed", "old"],
)
def test_what_delta_does_not_tell_of_a_table(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], said: str
) -> None:
    changed(spark, tmp_path, **properties)
    with pytest.raises(GemError, match=said) as caught:
        read(spark, source(tmp_path, starting_version=2))
    assert (caught.value.code, caught.value.option) == ("GB453", "starting_version")
    # Whole, it is read as it is now, however old that is.
    assert read(spark, source(tmp_path), offset=before(6)) == [(1, "d"), (3, "c"), (4, "e")]
