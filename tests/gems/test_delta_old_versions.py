"""Versions of a Delta table that it hasn't any more: a batch that names one, and a backfill that needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle import GemError, ReadContext, SourcePart
from tests.gems.test_delta_backfill import before, changed, day, source
from tests.integration.pipelines import run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_delta.source import DeltaSource

an_old_version = some_of("an old version of a table", 1)

pytestmark = pytest.mark.spark


def refused(spark: SparkSession, made: DeltaSource) -> GemError:
    with pytest.raises(GemError) as caught:
        made.read(ReadContext("x", spark)).collect()
    assert caught.value.code == "GB453"
    return caught.value


def of_backfill(made: DeltaSource, version: int) -> DeltaSource:
    found = made.for_backfill(SourcePart(offset=before(version + 1)))
    assert found is not None
    return found.source  # type: ignore[return-value]


@an_old_version
def test_one_that_delta_takes_for_too_old(spark: SparkSession, tmp_path: Path) -> None:
    changed(spark, tmp_path, deletedFileRetentionDuration="interval 2 days")
    why = "older than its `delta.deletedFileRetentionDuration`, and files of it may be gone"
    for options in ({"version_as_of": 2}, {"timestamp_as_of": day(2).isoformat()}):
        error = refused(spark, source(tmp_path, **options))
        assert error.option in options
        assert error.message.endswith(why), error.message
    error = refused(spark, of_backfill(source(tmp_path), 2))
    assert error.message == (
        f"the live run has read the table `{tmp_path}/t` in version 2, which can't be read any more: that is {why}"
    )
    assert error.hint == "Run the pipeline, so that it catches up, and then compute the time anew."


@an_old_version
def test_one_that_the_log_no_longer_has(spark: SparkSession, tmp_path: Path) -> None:
    changed(spark, tmp_path, checkpointInterval="2")
    for version in (0, 1):  # as Delta cleans it up: a checkpoint of a later version is there
        (tmp_path / f"t/_delta_log/{version:020}.json").unlink()
    version = "has the versions 2 to 5"
    for made, option, said in (
        (source(tmp_path, version_as_of=1), "version_as_of", f"can't be read in version 1: it {version}"),
        (source(tmp_path, version_as_of=9), "version_as_of", f"can't be read in version 9: it {version}"),
        (
            source(tmp_path, timestamp_as_of=day(1).isoformat()),
            "timestamp_as_of",
            "its oldest version is of 2026-01-03",
        ),
        (
            source(tmp_path, timestamp_as_of=day(9).isoformat()),
            "timestamp_as_of",
            "its newest version is of 2026-01-06",
        ),
        (of_backfill(source(tmp_path), 1), None, f"in version 1, which can't be read any more: it {version}"),
    ):
        error = refused(spark, made)
        assert error.option == option
        assert said in error.message


@an_old_version
def test_one_whose_files_were_vacuumed(spark: SparkSession, tmp_path: Path) -> None:
    changed(spark, tmp_path)
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(key, "false")
    spark.sql(f"vacuum delta.`{tmp_path}/t` retain 0 hours")
    spark.conf.unset(key)
    file = write_pipeline(
        tmp_path,
        "pipeline: old\nmode: batch\nsources: {t: {gem: delta, options: {path: t, version_as_of: 2}}}\n"
        "targets: {out: {gem: file, input: t, options: {path: out, format: json}}}\n",
    )
    (found,) = run(file).diagnostics
    assert found.code == "GB505"
    assert found.message.startswith(f"target `out`: the file file:{tmp_path}/t/part-")
    assert found.message.endswith("is gone, which was there when Spark looked what there is to read")
    assert "Of a Delta table `VACUUM` removes files that only older versions have" in found.hint
