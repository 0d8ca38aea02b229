"""A look at a checkpoint before a run continues from it."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest
from scripts.checkpoints import make

from gem_bundle.changes.checkpoint import SparkCheckpoint, UnseenError, read_checkpoint
from gem_bundle.changes.damage import check_checkpoint, has_source_evolution
from gem_bundle.changes.settings import FROZEN
from gem_bundle.pipeline.model import Trigger
from tests.core.changes.damages import MISSING, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def healthy(folder: Path, version: str = "v2") -> Path:
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
        for batch in range(12):
            (folder / log / str(batch)).write_text(f"{version}\n{{}}\na:1" if log == "offsets" else "v1\n{}")
            (folder / log / f".{batch}.crc").write_bytes(b"\0")
    (folder / "metadata").write_text('{"id":"593617ef-6385-44dd-9a2e-f3717d7dd811"}')
    return folder


def codes(folder: Path, *, source_evolution: bool = True) -> list[str]:
    found = check_checkpoint("t", read_checkpoint(str(folder)), source_evolution=source_evolution)
    return [d.code for d in found]


def test_nothing_there_is_fine(tmp_path: Path) -> None:
    assert codes(tmp_path / "none") == []
    assert codes(tmp_path) == []


def test_a_whole_checkpoint_is_fine(tmp_path: Path) -> None:
    assert codes(healthy(tmp_path / "c")) == []


def test_the_log_of_continuous_processing_is_whole(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c", "v1")
    (folder / "offsets/11").write_text('v1\n\n{"0":{"value":1,"runTimeMs":2}}')
    assert codes(folder, source_evolution=has_source_evolution({}, Trigger("continuous", "1 second"))) == []
    assert codes(folder, source_evolution=has_source_evolution({}, Trigger())) == ["GB403"]


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("metadata", "{", "`metadata` isn't JSON"),
        ("metadata", '{"x": 1}', "has no query id"),
        ("offsets/11", "", "`offsets/11` is empty"),
        ("offsets/11", "garbage", "does not begin with a version"),
        ("offsets/11", 'v2\n{"batchWater', "`offsets/11` is cut off"),
        ("offsets/11", "v1\n", "`offsets/11` is cut off"),
        ("offsets/11", "v1\n\n", "`offsets/11` is cut off"),
        ("offsets/11", "v2\n{}\n", "`offsets/11` is cut off"),
        ("commits/11", "", "`commits/11` is empty"),
    ],
)
def test_a_damaged_checkpoint_says_which_file(tmp_path: Path, file: str, content: str, says: str) -> None:
    folder = healthy(tmp_path / "c")
    (folder / file).write_text(content)
    (found,) = check_checkpoint("t", read_checkpoint(str(folder)), source_evolution=True)
    assert found.code == "GB402"
    assert says in found.message
    assert str(folder) in found.message
    assert "Restore" in found.hint


def test_the_latest_batch_counts_and_not_the_alphabetically_last(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c")
    (folder / "offsets" / "9").write_text("")
    assert codes(folder) == []


def test_a_missing_metadata_file_is_damage(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c")
    (folder / "metadata").unlink()
    assert codes(folder) == ["GB402"]


def test_a_checkpoint_without_named_sources_can_not_be_continued_with_them(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c", version="v1")
    assert codes(folder) == ["GB403"]
    assert codes(folder, source_evolution=False) == []


def test_a_checkpoint_that_can_not_be_seen_from_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnseenError, match="wasbs"):
        read_checkpoint("wasbs://box@account/c")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    with pytest.raises(UnseenError, match="not on this machine"):
        read_checkpoint("/somewhere/else/c")


def test_source_evolution_can_be_switched_off() -> None:
    key = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    assert has_source_evolution({})
    assert not has_source_evolution({key: "false"})


# What other Sparks left; scripts/checkpoints.py makes them anew.

LEFT = Path(__file__).with_name("checkpoints")


def left(version: str, name: str) -> SparkCheckpoint:
    found = read_checkpoint(str(LEFT / version / name))
    assert found is not None
    return found


def test_all_settings_are_known_that_a_spark_freezes() -> None:
    kept = {key for version in ("4.0.1", "4.1.1", "4.2.0") for key in left(version, "stateless").settings}
    assert kept | {"spark.sql.streaming.offsetLog.formatVersion"} == FROZEN


@pytest.mark.parametrize("version", ["4.0.1", "4.1.1", "4.2.0"])
def test_checkpoints_of_other_sparks_are_read(version: str) -> None:
    stateless = left(version, "stateless")
    assert stateless.problems == ()
    assert (stateless.next_batch, stateless.unfinished, stateless.named) == (3, None, False)
    assert stateless.newest is not None
    assert stateless.newest.sources == {"0": {"logOffset": 2}}
    assert stateless.settings["spark.sql.shuffle.partitions"] == "2"
    assert stateless.watermark is None
    assert stateless.operators == ()
    assert stateless.source_logs == ("0",)

    aggregation = left(version, "aggregation")
    (operator,) = aggregation.operators
    assert (operator.id, operator.name) == (0, "stateStoreSave")
    (store,) = operator.stores
    assert (store.name, store.partitions) == ("default", 2)
    assert store.keys == (("window", "struct<start: timestamp, end: timestamp>"), ("id", "string"))
    assert store.values == (("sum", "bigint"),)
    # 00:02:19, the last row's time, less half a minute.
    assert aggregation.watermark == 1767225709000

    for name in ("joined", "joined_files"):
        join, duplicates = left(version, name).operators
        assert (join.name, duplicates.name) == ("symmetricHashJoin", "dedupe")
        assert [store.name for store in join.stores] == [
            "left-keyToNumValues",
            "left-keyWithIndexToValue",
            "right-keyToNumValues",
            "right-keyWithIndexToValue",
        ]
        assert duplicates.stores[0].keys == (("id", "string"), ("at", "timestamp"))
    rows = left(version, "joined_files").operators[0].stores[3].values
    assert rows is not None
    assert [column for column, _ in rows] == ["id", "at", "n", "matched"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", ["4.0.1", "4.1.1", "4.2.0"])
def test_one_that_is_damaged_anywhere_is_no_traceback(version: str, tmp_path: Path) -> None:
    for number, file in enumerate(
        sorted(f for f in (LEFT / version / "joined_files").rglob("*") if f.is_file())
    ):
        for content in (
            b"",
            b"v1\n",
            b"v1\n[]",
            b"v1\n{}\n-",
            b"v3\n{}",
            b"\xff\xfe",
            file.read_bytes()[:-9],
        ):
            folder = tmp_path / str(number)
            shutil.copytree(LEFT / version / "joined_files", folder, dirs_exist_ok=True)
            (folder / file.relative_to(LEFT / version / "joined_files")).write_bytes(content)
            found = read_checkpoint(str(folder))
            assert found is not None
            assert len(found.operators) == 2
            check_checkpoint("t", found, source_evolution=False)


def test_a_checkpoint_in_the_cloud_is_read_as_one_on_a_disk() -> None:
    memory = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}/c"
    memory.put(str(LEFT / "4.1.1" / "aggregation"), root, recursive=True)
    found, same = read_checkpoint(f"memory:/{root}"), left("4.1.1", "aggregation")
    assert found is not None
    assert (found.offsets, found.commits, found.query) == (same.offsets, same.commits, same.query)
    assert [replace(o, bytes=0) for o in found.operators] == [replace(o, bytes=0) for o in same.operators]


# What is missing of one is told where another part of it says that it was there.


def problems(folder: Path | str) -> tuple[str, ...]:
    found = read_checkpoint(str(folder))
    assert found is not None
    return found.problems


def copied(folder: Path, name: str = "aggregation") -> Path:
    shutil.copytree(LEFT / "4.2.0" / name, folder / "c")
    return folder / "c"


@pytest.mark.parametrize("version", ["4.0.1", "4.1.1", "4.2.0"])
@pytest.mark.parametrize("name", ["aggregation", "joined", "joined_files"])
@pytest.mark.parametrize("missing", MISSING)
def test_what_is_missing_is_told_once(tmp_path: Path, version: str, name: str, missing: str) -> None:
    shutil.copytree(LEFT / version / name, tmp_path / "c")
    assert problems(tmp_path / "c") == ()
    remove(tmp_path / "c" / missing)
    assert problems(tmp_path / "c") == (MISSING[missing],)
    assert codes(tmp_path / "c", source_evolution=False) == ["GB402"]


def test_what_is_missing_in_the_cloud_is_told_too() -> None:
    memory = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}/c"
    memory.put(str(LEFT / "4.1.1" / "aggregation"), root, recursive=True)
    memory.rm(f"{root}/offsets", recursive=True)
    assert problems(f"memory:/{root}") == (MISSING["offsets"],)
    memory.rm(root, recursive=True)
    memory.pipe_file(root, b"hi")
    assert problems(f"memory:/{root}") == ("a file lies where its folder should be",)


def test_a_file_in_the_place_of_the_folder_is_damage(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    assert problems(tmp_path / "c") == ("a file lies where its folder should be",)
    assert codes(tmp_path / "c") == ["GB402"]


def test_commits_without_anything_else_are_damage(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    remove(folder / "metadata")
    remove(folder / "offsets")
    assert problems(folder) == ("the file `metadata` is missing",)


def test_an_operator_between_others_is_missed(tmp_path: Path) -> None:
    folder = copied(tmp_path, "joined")
    remove(folder / "state/0")
    assert problems(folder) == ("`state/0` is missing",)


@pytest.mark.parametrize(
    ("name", "place"), [("aggregation", "state/0/0"), ("joined_files", "state/0/0/left-keyToNumValues")]
)
def test_state_of_the_last_micro_batch_is_missed_where_each_has_a_file(
    tmp_path: Path, name: str, place: str
) -> None:
    folder = copied(tmp_path, name)
    for file in ("4.delta", "5.delta", "5.snapshot", "6.delta"):
        (folder / place / file).write_bytes(b"")
    assert problems(folder) == ()
    (folder / place / "6.delta").rename(folder / place / "6.snapshot")
    assert problems(folder) == ()
    (folder / place / "6.snapshot").unlink()
    assert problems(folder) == (f"`{place}/6.delta` is missing, the state behind micro-batch 5",)
    # The micro-batch is run again, and needs what the one before left.
    (folder / "commits/5").unlink()
    assert problems(folder) == ()


@pytest.mark.parametrize(
    ("before", "last"),
    [
        (["4.zip", "5.zip"], "6.zip"),
        (["4.zip", "5.changelog"], "6.changelog"),
        (["4_0c5a-b1.zip", "5_0c5a-b1_77-a.changelog"], "6_77-a.changelog"),
    ],
)
def test_so_is_that_of_rocksdb(tmp_path: Path, before: list[str], last: str) -> None:
    folder = copied(tmp_path)
    for file in (*before, last, "SSTs/000008-0c5a.sst"):
        (folder / "state/0/0" / file).parent.mkdir(exist_ok=True)
        (folder / "state/0/0" / file).write_bytes(b"")
    assert problems(folder) == ()
    (folder / "state/0/0" / last).unlink()
    kind = last.rpartition(".")[2]
    assert problems(folder) == (f"`state/0/0/6.{kind}` is missing, the state behind micro-batch 5",)


@pytest.mark.parametrize("files", [["00001.sst"], ["0006", "state.6"], []])
def test_state_that_other_stores_keep_is_not_judged(tmp_path: Path, files: list[str]) -> None:
    folder = copied(tmp_path)
    for file in files:
        (folder / "state/0/0" / file).write_bytes(b"")
    assert problems(folder) == ()


@pytest.mark.parametrize(
    ("entries", "missing"),
    [
        (["0", "1", "2"], None),
        (["0", "1", "2", "3"], None),  # of a micro-batch that was never begun
        (["1.compact", "2"], None),
        (["0", "1.compact", "1", "2"], None),
        (["1", "2.compact", "3"], None),
        (["3.compact"], None),  # of a micro-batch that was never begun, and of all before it
        (["1.compact"], 2),
        (["0", "2"], 1),
        (["0.compact", "3"], 2),
        (["1", "2"], 0),
        ([], 2),
    ],
)
def test_an_entry_of_the_files_that_were_read_is_missed(
    tmp_path: Path, entries: list[str], missing: int | None
) -> None:
    folder = copied(tmp_path)
    remove(folder / "sources/0")
    (folder / "sources/0").mkdir()
    for entry in entries:
        (folder / "sources/0" / entry).write_text("v1")
    told = f"`sources/0/{missing}` is missing, where Spark lists files that it has read"
    assert problems(folder) == (() if missing is None else (told,))


def logs(
    folder: Path, begun: list[int], done: list[int], offsets: str = 'v1\n{"conf":{"a":"b"}}\n{}'
) -> Path:
    """A checkpoint that has these entries in its logs."""
    for log, batches, content in (("offsets", begun, offsets), ("commits", done, "v1\n{}")):
        (folder / log).mkdir(parents=True)
        for batch in batches:
            (folder / log / str(batch)).write_text(content)
    (folder / "metadata").write_text('{"id":"593617ef-6385-44dd-9a2e-f3717d7dd811"}')
    return folder


@pytest.mark.parametrize(
    ("begun", "done", "next_batch"),
    [
        pytest.param([], [], 0, id="nothing was begun"),
        pytest.param([0], [], 0, id="the first is begun"),
        pytest.param([0], [0], 1, id="the first is done"),
        pytest.param([0, 1], [0], 1, id="the second is begun"),
        pytest.param([150, 151], [150], 151, id="old ones are removed"),
        pytest.param([151, 152], [149, 150, 151, 152], 153, id="old offsets are removed, not yet commits"),
        pytest.param([149, 150, 151, 152], [151, 152], 153, id="old commits are removed"),
        pytest.param([0, 3, 7], [0, 3], 7, id="asynchronous progress tracking"),
        pytest.param([0, 3, 7], [0, 3, 7], 8, id="asynchronous progress tracking, done"),
        pytest.param([0, 3, 7], [0], 7, id="asynchronous progress tracking, commits later"),
        pytest.param([4, 5], [], 5, id="commits are lost: only the last is run again"),
        pytest.param([4, 5, 6], [4], 6, id="two commits are lost"),
    ],
)
def test_logs_that_spark_goes_on_with_are_whole(
    tmp_path: Path, begun: list[int], done: list[int], next_batch: int
) -> None:
    found = read_checkpoint(str(logs(tmp_path / "c", begun, done)))
    assert found is not None
    assert (found.problems, found.next_batch) == ((), next_batch)
    assert found.unfinished == (begun[-1] if begun and begun[-1:] != done[-1:] else None)


@pytest.mark.parametrize(
    ("begun", "done", "missing"),
    [([3, 4], [3, 4], ""), ([3, 4, 5], [3, 4], ""), ([4], [3, 4], ""), ([5], [3, 4], "offsets/4")],
)
def test_continuous_processing_needs_the_last_that_is_done(
    tmp_path: Path, begun: list[int], done: list[int], missing: str
) -> None:
    folder = logs(tmp_path / "c", begun, done, 'v1\n\n{"0":{"value":1,"runTimeMs":2}}')
    said = f"`{missing}` is missing, and by `commits` micro-batch 4 is done"
    assert problems(folder) == ((said,) if missing else ())


@pytest.mark.parametrize("offset", ["-", '{"logOffset":-1}', '{"t":{"0":5}}', "7", '{"a":1}'])
def test_sources_that_list_no_files_are_not_missed(tmp_path: Path, offset: str) -> None:
    assert problems(logs(tmp_path / "c", [1, 2], [1, 2], f'v1\n{{"conf":{{"a":"b"}}}}\n{offset}')) == ()


def test_a_source_is_missed_from_its_first_file_on(tmp_path: Path) -> None:
    folder = logs(tmp_path / "c", [0], [0], 'v2\n{"conf":{"a":"b"}}\nclicks:{"logOffset":0}')
    assert problems(folder) == ("`sources/clicks` is missing, where Spark lists the files that it has read",)
    (folder / "sources/clicks").mkdir(parents=True)
    (folder / "sources/clicks/0").write_text("v1")
    assert problems(folder) == ()


def test_a_look_at_one_lists_few_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    names = os.listdir

    def counted(path: str) -> list[str]:
        listed.append(str(path))
        return names(path)

    monkeypatch.setattr(os, "listdir", counted)
    left("4.2.0", "joined")
    assert len(listed) <= 9


# What this Spark leaves.


@pytest.mark.spark
def test_what_spark_leaves_of_state_has_rows_and_bytes(spark: SparkSession, tmp_path: Path) -> None:
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key, None)
    evolution = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    spark.conf.set(evolution, "false")
    # A snapshot with each micro-batch.
    changelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    spark.conf.set(changelog, "false")
    try:
        found = read_checkpoint(str(make(spark, "joined", tmp_path)))
    finally:
        spark.conf.set(evolution, "true")
        spark.conf.unset(changelog)
        spark.conf.set(key, before) if before else spark.conf.unset(key)
    assert found is not None
    assert found.problems == ()
    join, duplicates = found.operators
    assert join.bytes > 1000
    # Those of the last minute, which the watermark hasn't reached.
    assert duplicates.rows is not None
    assert 0 < duplicates.rows <= 60
    assert duplicates.rows_batch == found.commits[-1].batch
    assert found.named is True
    assert found.newest is not None
    assert len(found.newest.sources) == 2
    # Without it Spark fails in the next micro-batch.
    place, batch = "state/0/0/left-keyToNumValues", found.commits[-1].batch
    (tmp_path / "checkpoint" / place / f"{batch + 1}.zip").unlink()
    lost = f"`{place}/{batch + 1}.zip` is missing, the state behind micro-batch {batch}"
    assert problems(tmp_path / "checkpoint") == (lost,)
