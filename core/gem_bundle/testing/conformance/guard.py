"""Who asks Spark's objects for what: a look at attributes while a gem runs."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PRIVATE = frozenset(
    {
        *("_jdf", "_jvm", "_jsc", "_jsparkSession", "_jseq", "_jmap", "_jcols", "_jc", "_jschema", "_jcol"),
        *("_jreader", "_jwrite", "_jwriter", "_jdr", "_jgd", "_jsq", "_jsqm", "_jcatalog", "_jconf", "_jrdd"),
        *("_sc", "_gateway", "_jvm_gateway", "_active_spark_context", "sparkContext", "rdd", "toJSON"),
        *("_java_obj", "_to_java_column", "_jinputformat", "_instantiatedSession"),
    }
)
"""Attributes of Spark's objects that lead to its JVM, and those that Spark Connect doesn't have."""

ACTIONS = frozenset(
    {
        *("collect", "collectAsArrow", "toLocalIterator", "toPandas", "toArrow", "count", "isEmpty"),
        *("first", "head", "take", "tail", "show", "foreach", "foreachPartition"),
        *(
            "checkpoint",
            "localCheckpoint",
            "write",
            "writeTo",
            "writeStream",
        ),
    }
)
"""What of a DataFrame runs a job, or starts to write."""

# These implement the public interface, for classic sessions by private means.
_MAY = (
    "pyspark",
    "py4j",
    "delta",
    "gem_bundle.testing.conformance",
    "gem_bundle.kept",
    "gem_bundle.refusals",
)


@contextmanager
def watched(names: Collection[str]) -> Iterator[list[str]]:
    """Note who asks a DataFrame, a session, a reader or a writer for one of some attributes.

    What pyspark and delta-spark ask for themselves doesn't count.

    Args:
        names: The attributes.

    Yields:
        Sentences, each once: ``pipe.py:31 uses `_jdf```.
    """
    uses: list[str] = []

    def guarded(original: Any) -> Any:
        def getattribute(self: object, name: str) -> Any:
            if name in names:
                frame = sys._getframe(1)
                module = frame.f_globals.get("__name__", "")
                if not any(module == may or module.startswith(f"{may}.") for may in _MAY):
                    use = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} uses `{name}`"
                    if use not in uses:
                        uses.append(use)
            return original(self, name)

        return getattribute

    with ExitStack() as stack:
        for kind in _spark_classes():
            stack.enter_context(patch.object(kind, "__getattribute__", guarded(kind.__getattribute__)))
        yield uses


def _spark_classes() -> list[type]:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    return [
        Column,
        DataFrame,
        SparkSession,
        DataFrameReader,
        DataFrameWriter,
        DataStreamReader,
        DataStreamWriter,
    ]
