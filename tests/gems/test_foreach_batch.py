"""The target `foreach_batch`: calls, restarts, and how an exception reaches its author."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, WriteContext
from gem_bundle.python import user_error
from gem_python.foreach_batch import ForeachBatchTarget
from tests.gems.draining import forget_last_commit, make, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

JOBS = """
from pathlib import Path

calls = []

def save(df, batch_id, label=""):
    calls.append((batch_id, label, sorted(row.id for row in df.collect())))

def append(df, batch_id, path):
    df.write.mode("append").parquet(path)

def replace(df, batch_id, path):
    df.write.mode("overwrite").parquet(f"{path}/batch={batch_id}")

def raises(df, batch_id):
    raise ValueError(f"no place for batch {batch_id}")

def udf_raises(df, batch_id):
    from pyspark.sql.functions import udf
    df.select(udf(inverse, "double")("id")).collect()

def inverse(x):
    return 1 / x

def alone(df):
    ...
"""
LINES = JOBS.splitlines()


@pytest.fixture(scope="module")
def jobs(user_modules: Path) -> Path:
    file = user_modules / "batch_jobs.py"
    file.write_text(textwrap.dedent(JOBS), encoding="utf-8")
    return file


@pytest.fixture
def calls(jobs: Path) -> list[tuple[int, str, list[int]]]:
    from gem_bundle import import_function

    found: list[tuple[int, str, list[int]]] = import_function("batch_jobs:save").__globals__["calls"]
    found.clear()
    return found


def target(function: str, **raw: Any) -> ForeachBatchTarget:
    found = make(ForeachBatchTarget, {"function": f"batch_jobs:{function}", **raw})
    assert isinstance(found, ForeachBatchTarget)
    return found


def stream(spark: SparkSession, folder: Path, *batches: range) -> DataFrame:
    """A stream with a micro-batch for each range; more can be added to its folder."""
    for number, batch in enumerate(batches):
        part = spark.range(batch.start, batch.stop, batch.step, 1)
        part.write.mode("append").parquet(str(folder / f"part={number}"))
    reader = spark.readStream.name("ids").schema("id long").option("maxFilesPerTrigger", 1)
    return reader.option("recursiveFileLookup", True).parquet(str(folder))


def test_what_it_promises() -> None:
    assert target("append").semantics.delivery == "at_least_once"
    promised = target("replace", idempotent=True).semantics
    assert promised.delivery == "exactly_once"
    assert "leaves every row once" in promised.condition
    assert ForeachBatchTarget.semantics.delivery == "at_least_once"
    assert not {"continuous", "real_time"} & promised.triggers
    assert promised.output_modes == {"append", "update", "complete"}


@pytest.mark.spark
@pytest.mark.usefixtures("jobs")
class TestWrite:
    def test_every_micro_batch_with_its_id(
        self, spark: SparkSession, tmp_path: Path, calls: list[tuple[int, str, list[int]]]
    ) -> None:
        df = stream(spark, tmp_path / "in", range(2), range(2, 5))
        run(target("save", arguments={"label": "x"}), df, tmp_path / "checkpoint")
        assert calls == [(0, "x", [0, 1]), (1, "x", [2, 3, 4])]

    def test_a_batch_pipeline_is_one_call_with_id_0(
        self, spark: SparkSession, calls: list[tuple[int, str, list[int]]]
    ) -> None:
        target("save").write(spark.range(3), WriteContext(node="t"))
        assert calls == [(0, "", [0, 1, 2])]

    @pytest.mark.parametrize("mode", ["update", "complete"])
    def test_the_other_output_modes(
        self, spark: SparkSession, tmp_path: Path, calls: list[tuple[int, str, list[int]]], mode: str
    ) -> None:
        df = stream(spark, tmp_path / "in", range(2), range(2, 3)).groupBy("id").count()
        run(target("save"), df, tmp_path / "checkpoint", mode)
        assert calls == [(0, "", [0, 1]), (1, "", [2] if mode == "update" else [0, 1, 2])]

    @pytest.mark.parametrize(("function", "rows"), [("append", [0, 1, 1, 2, 2]), ("replace", [0, 1, 2])])
    def test_a_micro_batch_that_runs_again_has_the_same_id_and_rows(
        self, spark: SparkSession, tmp_path: Path, function: str, rows: list[int]
    ) -> None:
        out = str(tmp_path / "out")
        writer = target(function, arguments={"path": out})
        df = stream(spark, tmp_path / "in", range(1), range(1, 3))
        run(writer, df, tmp_path / "checkpoint")
        forget_last_commit(tmp_path / "checkpoint")
        run(writer, df, tmp_path / "checkpoint")
        found = spark.read.option("recursiveFileLookup", True).schema("id long").parquet(out)
        assert sorted(row.id for row in found.collect()) == rows

    @pytest.mark.parametrize(
        ("function", "kind", "said", "line"),
        [
            (
                "raises",
                "ValueError",
                "no place for batch 0",
                '    raise ValueError(f"no place for batch {batch_id}")',
            ),
            ("udf_raises", "ZeroDivisionError", "division by zero", "    return 1 / x"),
        ],
    )
    def test_an_exception_in_a_stream_can_be_told(
        self, spark: SparkSession, tmp_path: Path, jobs: Path, function: str, kind: str, said: str, line: str
    ) -> None:
        from pyspark.errors import StreamingQueryException

        df = stream(spark, tmp_path / "in", range(1))
        with pytest.raises(StreamingQueryException) as caught:
            run(target(function), df, tmp_path / "checkpoint")
        found = user_error(str(caught.value))
        assert found is not None
        assert (found.type, found.message) == (kind, said)
        assert (found.file, found.line) == (str(jobs), LINES.index(line) + 1)

    def test_an_exception_in_batch_has_file_and_line(self, spark: SparkSession, jobs: Path) -> None:
        with pytest.raises(GemError) as caught:
            target("raises").write(spark.range(1), WriteContext(node="t"))
        line = LINES.index('    raise ValueError(f"no place for batch {batch_id}")') + 1
        assert caught.value.code == "GB507"
        assert caught.value.message == (
            f"`batch_jobs:raises` raised ValueError: no place for batch 0 ({jobs}:{line})"
        )

    @pytest.mark.parametrize("way", ["batch", "stream"])
    def test_wrong_functions_are_found_before_the_start(
        self, spark: SparkSession, tmp_path: Path, way: str
    ) -> None:
        df = stream(spark, tmp_path / "in", range(1))

        def start(function: str, **raw: Any) -> GemError:
            writer = target(function, **raw)
            method = writer.write if way == "batch" else writer.write_stream
            with pytest.raises(GemError) as caught:
                method(spark.range(1) if way == "batch" else df, WriteContext(node="t"))
            return caught.value

        assert start("nowhere").code == "GB506"
        error = start("alone")
        assert error.code == "GB507"
        assert "is called with (df, batch_id) but takes alone(df)" in error.message
        assert start("save", arguments={"lable": "x"}).option == "arguments"
