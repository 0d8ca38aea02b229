"""The target `foreach`: functions and classes that get rows on executors."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, WriteContext
from gem_bundle.python import user_error
from gem_python.foreach import ForeachTarget
from tests.gems.draining import make, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

JOBS = """
import threading
from pathlib import Path
from uuid import uuid4

from {helper} import note

LOCK = threading.Lock()

def save(row, folder):
    note(folder, f"row {row.id}")

class Writer:
    def __init__(self, folder, skip=False, fails=False):
        self.folder, self.skip, self.fails = folder, skip, fails

    def open(self, partition_id, epoch_id):
        note(self.folder, f"open {type(partition_id).__name__} {epoch_id}")
        return not self.skip

    def process(self, row):
        if self.fails:
            raise RuntimeError(f"can't write {row.id}")
        note(self.folder, f"row {row.id}")

    def close(self, error):
        note(self.folder, f"close {error}")

class Bare:
    def __init__(self, folder):
        self.folder = folder

    def process(self, row):
        note(self.folder, f"row {row.id}")

class Connected:
    def __init__(self):
        self.lock = threading.Lock()

    def process(self, row):
        ...

class Unready:
    def __init__(self):
        raise OSError("no such host")

    def process(self, row):
        ...

class Shapeless:
    def process(self, row, more):
        ...

class Useless:
    def write(self, row):
        ...

def two(row, other):
    ...
"""
HELPER = """
from pathlib import Path
from uuid import uuid4

def note(folder, text):
    Path(folder, uuid4().hex).write_text(text)
"""


def write_jobs(folder: Path, name: str) -> Path:
    (folder / f"{name}_helper.py").write_text(HELPER, encoding="utf-8")
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(JOBS.replace("{helper}", f"{name}_helper")), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def jobs(user_modules: Path) -> Path:
    return write_jobs(user_modules, "row_jobs")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def target(function: str, **raw: Any) -> ForeachTarget:
    reference = function if ":" in function else f"row_jobs:{function}"
    found = make(ForeachTarget, {"function": reference, **raw})
    assert isinstance(found, ForeachTarget)
    return found


def read(notes: Path) -> list[str]:
    return sorted(file.read_text() for file in notes.iterdir())


def stream(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    spark.range(0, rows, 1, 1).write.parquet(str(folder))
    return spark.readStream.name("ids").schema("id long").parquet(str(folder))


def write(writer: ForeachTarget, way: str, spark: SparkSession, folder: Path) -> None:
    """Write one row with the id 0, in batch or as a stream."""
    if way == "batch":
        writer.write(spark.range(0, 1, 1, 1), WriteContext(node="t"))
    else:
        run(writer, stream(spark, folder / "in", 1), folder / "checkpoint")


def test_what_it_promises() -> None:
    semantics = target("save").semantics
    assert semantics.delivery == "at_least_once"
    assert "real_time" in semantics.triggers
    assert "continuous" not in semantics.triggers
    assert semantics.counts_rows


@pytest.mark.spark
@pytest.mark.usefixtures("jobs")
class TestWrite:
    def test_a_function(self, spark: SparkSession, tmp_path: Path, notes: Path) -> None:
        writer = target("save", arguments={"folder": str(notes)})
        query = run(writer, stream(spark, tmp_path / "in", 3), tmp_path / "checkpoint")
        assert read(notes) == ["row 0", "row 1", "row 2"]
        assert sum(progress.sink.numOutputRows for progress in query.recentProgress) == 3

    def test_a_class(self, spark: SparkSession, tmp_path: Path, notes: Path) -> None:
        writer = target("Writer", arguments={"folder": str(notes)})
        run(writer, stream(spark, tmp_path / "in", 2), tmp_path / "checkpoint")
        assert read(notes) == ["close None", "open int 0", "row 0", "row 1"]

    def test_a_class_with_process_only(self, spark: SparkSession, tmp_path: Path, notes: Path) -> None:
        writer = target("Bare", arguments={"folder": str(notes)})
        run(writer, stream(spark, tmp_path / "in", 1), tmp_path / "checkpoint")
        assert read(notes) == ["row 0"]

    def test_a_module_that_executors_can_not_import(
        self, spark: SparkSession, tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "beside"
        folder.mkdir()
        write_jobs(folder, "sent_row_jobs")
        monkeypatch.syspath_prepend(folder)
        df = stream(spark, tmp_path / "in", 1)
        arguments = {"folder": str(notes)}
        run(target("sent_row_jobs:Writer", arguments=arguments), df, tmp_path / "first")
        run(target("sent_row_jobs:save", arguments=arguments), df, tmp_path / "second")
        assert read(notes) == ["close None", "open int 0", "row 0", "row 0"]

    @pytest.mark.parametrize(
        ("function", "arguments", "wanted"),
        [
            ("save", {}, ["row 0", "row 1"]),
            ("Bare", {}, ["row 0", "row 1"]),
            ("Writer", {}, ["close None", "open int 0", "row 0", "row 1"]),
            ("Writer", {"skip": True}, ["close None", "open int 0"]),
        ],
    )
    def test_batch_is_the_same(
        self, spark: SparkSession, notes: Path, function: str, arguments: dict[str, Any], wanted: list[str]
    ) -> None:
        df = spark.range(0, 2, 1, 1)
        target(function, arguments={"folder": str(notes), **arguments}).write(df, WriteContext(node="t"))
        assert read(notes) == wanted

    @pytest.mark.parametrize("way", ["batch", "stream"])
    def test_an_exception_closes_the_writer_and_reaches_its_author(
        self, spark: SparkSession, tmp_path: Path, notes: Path, jobs: Path, way: str
    ) -> None:
        from pyspark.errors import PySparkException

        writer = target("Writer", arguments={"folder": str(notes), "fails": True})
        with pytest.raises(PySparkException) as caught:
            write(writer, way, spark, tmp_path)
        found = user_error(str(caught.value))
        line = JOBS.splitlines().index('            raise RuntimeError(f"can\'t write {row.id}")') + 1
        assert found is not None
        assert (found.type, found.message) == ("RuntimeError", "can't write 0")
        assert (found.file, found.line) == (str(jobs), line)
        assert read(notes) == ["close can't write 0", "open int 0"]

    @pytest.mark.parametrize("way", ["batch", "stream"])
    @pytest.mark.parametrize(
        ("function", "code", "said"),
        [
            ("nowhere", "GB506", "`row_jobs` has no `nowhere`"),
            ("Useless", "GB506", "the class `row_jobs:Useless` has no method `process(row)`"),
            ("Shapeless", "GB507", "`row_jobs:Shapeless.process` can't be called as `process(row)`: missing"),
            (
                "Writer",
                "GB507",
                "is called with () but takes Writer(folder, skip=False, fails=False): missing",
            ),
            ("two", "GB507", "is called with (row) but takes two(row, other): missing"),
            ("Unready", "GB507", "`row_jobs:Unready` raised OSError: no such host ("),
            (
                "Connected",
                "GB507",
                "`row_jobs:Connected` can't be sent to executors: TypeError: cannot pickle",
            ),
        ],
    )
    def test_what_can_not_work_is_said_at_the_start(
        self, spark: SparkSession, tmp_path: Path, way: str, function: str, code: str, said: str
    ) -> None:
        with pytest.raises(GemError) as caught:
            write(target(function), way, spark, tmp_path)
        assert caught.value.code == code
        assert said in caught.value.message
        assert "Traceback" not in caught.value.message
