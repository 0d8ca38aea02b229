"""Rows that targets reject while they deliver: each is delivered or rejected, over failures and repeats."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gem_bundle.check import check_file
from gem_bundle.pipeline.loader import load_file
from gem_bundle.replay.api import Wanted, replay
from gem_bundle.run.options import RunOptions
from gem_bundle.run.view import summary
from tests.gems.draining import forget_last_commit
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import rejected_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

JOBS = """
from pathlib import Path
from uuid import uuid4

HERE = Path(__file__).parent

class Post:
    # A receiver that refuses odd numbers; it is away while there is a file `away`.
    def open(self, partition_id, epoch_id):
        self.took = []
        return True

    def process(self, row):
        if (HERE / "away").exists():
            raise OSError("the receiver is away")
        if row.id % 2 and not (HERE / "mended").exists():
            return ("odd", f"{row.id} is odd") if row.id % 3 else "neither"
        self.took.append(str(row.id))

    def close(self, error):
        if error is None:
            (HERE / f"took-{uuid4().hex}").write_text(" ".join(self.took))

def batch(df, batch_id, reject, folder="batches"):
    from pyspark.sql.functions import concat, col, lit
    bad = df.where("id % 2 = 1")
    reject(bad.where("id % 3 = 0"), "neither")
    reject(bad.where("id % 3 != 0"), concat(col("id").cast("string"), lit(" is odd")))
    df.where("id % 2 = 0").write.mode("append").json(str(HERE / folder))

def refuse(df, batch_id):
    if not (HERE / "table_mended").exists():
        raise ValueError("the table is locked")
"""
POSTED = """
pipeline: posted
version: 3.0.0
{mode}
sources:
  numbers:
    gem: file
    options: {{path: in, format: json, schema: "id int, at timestamp, amount decimal(9,3), raw binary"}}
transforms:
  positive: {{gem: expect, input: numbers, options: {{rules: {{positive: id >= 0}}}}}}
  {watermark}
  bad: {{gem: union, inputs: {{positive: positive.rejected, receiver: receiver.rejected}}}}
targets:
  receiver: {{gem: {gem}, input: {before}, options: {{function: "{function}", rejects: true}}}}
  bad_rows: {{gem: delta, input: bad, options: {{path: out/bad}}}}
  {more}
"""
TIMELY = "timely: {gem: watermark, input: positive, options: {column: at, delay: 1 minute}}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the module of the functions, where executors find it too."""
    name = f"posting_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(JOBS)
    yield tmp_path
    sys.modules.pop(name, None)


def pipeline(
    folder: Path, name: str, gem: str = "foreach", mode: str = "", more: str = "", before: str = "timely"
) -> Path:
    module = next(folder.glob("posting_*.py")).stem
    text = POSTED.format(
        gem=gem,
        function=f"{module}:{name}",
        mode=mode,
        more=more.format(module=module),
        before=before,
        watermark=TIMELY if before == "timely" else "",
    )
    return write_pipeline(folder, text)


def add(folder: Path, name: str, numbers: Iterable[int]) -> None:
    rows = [{"id": n, "at": "2024-05-01T10:00:00.123456Z", "amount": "1.250", "raw": "AP8="} for n in numbers]
    add_rows(folder / "in", name, rows)


def taken(folder: Path) -> Counter[int]:
    found: Counter[int] = Counter()
    for file in folder.glob("took-*"):
        found.update(map(int, file.read_text().split()))
    return found


def rejected(spark: SparkSession, folder: Path) -> list[Row]:
    return spark.read.format("delta").load(str(folder / "out/bad")).collect()


def numbers(rows: Iterable[Row]) -> list[int]:
    return sorted(json.loads(row.row)["id"] for row in rows)


@rejected_rows
@pytest.mark.sample(1)
@pytest.mark.matrix
@pytest.mark.parametrize(("name", "gem"), [("Post", "foreach"), ("batch", "foreach_batch")])
def test_each_row_is_delivered_or_rejected_and_a_repeat_doubles_no_rejected_row(
    spark: SparkSession, folder: Path, name: str, gem: str
) -> None:
    file = pipeline(folder, name, gem)
    add(folder, "a.json", range(-2, 10))

    report = run(file, available_now=True)

    assert report.ok, report.diagnostics
    found = rejected(spark, folder)
    assert numbers(found) == [-2, -1, 1, 3, 5, 7, 9]
    told = {json.loads(row.row)["id"]: row for row in found if row.node == "receiver"}
    names = {n: [tuple(why) for why in row.reasons] for n, row in told.items()}
    assert names[3] == [("refused", "neither")]
    assert names[5][0][1] == "5 is odd"
    five = told[5]
    assert json.loads(five.row) == {
        "id": 5,
        "at": "2024-05-01T10:00:00.123456Z",
        "amount": 1.250,
        "raw": "AP8=",
    }
    assert five.row_schema == "id int, at timestamp, amount decimal(9,3), raw binary"
    assert (five.pipeline, five.pipeline_version, five.gem) == ("posted", "3.0.0", gem)
    assert five.event_time is not None
    assert {row.origin["micro_batch"] for row in found} == {"0"}, "the number of their micro-batch"
    assert len({row.rejected_at for row in found}) == 1, "its time, which it has again when it comes again"
    table = spark.read.format("delta").load(str(folder / "out/bad"))
    assert table.schema["event_time"].metadata == {}, "it would look as if there were a watermark"
    of_rule = [row for row in found if row.node == "positive"]
    assert all(row.event_time is None for row in of_rule), "before the watermark there is none"
    assert report.held.rejected == {"positive": 2, "receiver": 5}
    assert report.as_dict()["totals"]["rejected_rows"] == 7
    out = {target: totals.rows_out for target, totals in report.targets.items()}
    assert out == {"receiver": 5, "bad_rows": 7}
    assert "5 rows rejected by `receiver`" in summary(report)
    assert "nobody" not in summary(report)
    assert [path.name for path in (folder / "checkpoints/posted").glob("[a-z]*")] == ["receiver"]

    # Killed behind the last write and before Spark's commit: the micro-batch comes once more.
    forget_last_commit(folder / "checkpoints/posted/receiver")
    assert run(file, available_now=True).ok
    assert numbers(rejected(spark, folder)) == [-2, -1, 1, 3, 5, 7, 9]


@rejected_rows
def test_a_target_that_fails_rejects_nothing_and_delivers_all_later(
    spark: SparkSession, folder: Path
) -> None:
    file = pipeline(folder, "Post")
    add(folder, "a.json", range(6))
    (folder / "away").touch()

    failed = run(file, available_now=True)

    assert [(d.code, d.node) for d in failed.diagnostics] == [("GB507", "receiver")] or failed.diagnostics
    assert failed.diagnostics[0].node == "receiver"
    assert "the receiver is away" in failed.diagnostics[0].message
    assert not (folder / "out/bad").exists()
    (folder / "away").unlink()
    assert run(file, available_now=True).ok
    assert sorted(taken(folder)) == [0, 2, 4]
    assert numbers(rejected(spark, folder)) == [1, 3, 5]


@rejected_rows
def test_what_was_rejected_isn_t_lost_when_its_own_target_fails(spark: SparkSession, folder: Path) -> None:
    locked = (
        'locked: {{gem: foreach_batch, input: receiver.rejected, options: {{function: "{module}:refuse"}}}}'
    )
    file = pipeline(folder, "Post", more=locked)
    add(folder, "a.json", range(6))

    failed = run(file, available_now=True)

    assert [d.node for d in failed.diagnostics] == ["locked"]
    assert numbers(rejected(spark, folder)) == [1, 3, 5]
    (folder / "table_mended").touch()
    assert run(file, available_now=True).ok
    # The receiver had to be asked again, for what it refused was gone; the table has each row once.
    assert taken(folder) == Counter({0: 2, 2: 2, 4: 2})
    assert numbers(rejected(spark, folder)) == [1, 3, 5]


@rejected_rows
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["Post", "batch"])
def test_a_batch_rejects_too(spark: SparkSession, folder: Path, name: str) -> None:
    gem = "foreach" if name == "Post" else "foreach_batch"
    file = pipeline(folder, name, gem, mode="mode: batch", before="positive")
    add(folder, "a.json", range(-1, 6))

    report = run(file)

    assert report.ok, report.diagnostics
    assert numbers(rejected(spark, folder)) == [-1, 1, 3, 5]
    assert report.held.rejected == {"positive": 1, "receiver": 3}
    assert {name: totals.rows_out for name, totals in report.targets.items()} == {
        "receiver": 3,
        "bad_rows": 4,
    }


def test_what_nobody_takes_is_counted_and_said(spark: SparkSession, folder: Path) -> None:
    file = pipeline(folder, "Post")
    text = file.read_text()
    lines = [line for line in text.splitlines() if "bad" not in line]
    file.write_text("\n".join(lines))
    add(folder, "a.json", range(6))

    (warned,) = [d for d in check_file(file).diagnostics if d.code == "GB109" and d.node == "receiver"]
    assert "the rows that `receiver` rejects go nowhere" in warned.message
    report = run(file, available_now=True)

    assert report.ok, report.diagnostics
    assert report.held.rejected == {"receiver": 3}
    assert report.targets["receiver"].rows_out == 3
    assert "3 rows rejected by `receiver`, nobody takes them" in summary(report)
    assert sorted(taken(folder)) == [0, 2, 4]


@rejected_rows
def test_what_a_target_rejected_comes_back_in(spark: SparkSession, folder: Path) -> None:
    file = pipeline(folder, "Post", before="positive")
    add(folder, "a.json", range(6))
    assert run(file, available_now=True).ok
    (folder / "mended").touch()

    wanted = Wanted("receiver", str(folder / "out/bad"))
    options = RunOptions(quiet=True)
    again = replay(lambda load: load_file(file, load), options, wanted)

    assert (again.rows, again.written) == (3, {"receiver": 3, "bad_rows": 0})
    assert taken(folder) == Counter(range(6))
    assert replay(lambda load: load_file(file, load), options, wanted).rows == 0
