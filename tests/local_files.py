"""How a Spark that many tests share writes files of this machine: without a process for each.

Hadoop's own file system of local files runs `chmod` for every file and folder that it makes, where its native library
isn't there, as it never is in PySpark. Of a small streaming query, whose checkpoint is dozens of files, that is more
than half of the processor time. Another file system asks Java for the same. What tests start with a Spark of its own,
so what is killed or measured, writes files as users' runs do, and with `--long` everything does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests import samples

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_JAR = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"
_FILES = ("fs.file.impl", "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem")
# By default checkpoints are written through Hadoop's other interface, which has file systems of its own.
_CHECKPOINTS = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
# Before that the class of checkpoints has another name.
_FIRST = "4.2"


def settings() -> dict[str, str]:
    """The settings of a session in a JVM that has `jars` and runs already: to start one Spark needs files itself."""
    return dict([(f"spark.hadoop.{_FILES[0]}", _FILES[1]), _CHECKPOINTS]) if _is_taken() else {}


def take(spark: SparkSession) -> None:
    """Have a session that has `jars` write files so from now on."""
    if _is_taken():
        spark.sparkContext._jsc.hadoopConfiguration().set(*_FILES)  # type: ignore[attr-defined]
        spark.conf.set(*_CHECKPOINTS)
        # What it has used is kept for whoever asks next.
        spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]


def jars() -> list[Path]:
    """What they need."""
    from tests.conftest import jars_of

    return jars_of(_JAR) if _is_taken() else []


def _is_taken() -> bool:
    from gem_bundle.run.jars import spark_version

    return not samples.is_long() and spark_version().startswith(_FIRST)
