"""A session beside the one of the rows: for statements that are told something by settings.

Delta and Iceberg take the number of a micro-batch for a MERGE from the settings of the session alone. Targets
of a group write side by side in one session, and others than these would write by that number too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from gem_bundle.contexts import is_over_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, Row, SparkSession

# Spark knows no settings of catalogs and formats, and doesn't say of them that they can be changed.
_UNKNOWN_TO_SPARK = ("spark.sql.catalog.", "spark.sql.iceberg.")


class SessionBeside:
    """Runs statements, one after the other, with settings that hold for nothing else.

    Over Spark Connect a query has a session of its own, and no group: there it is the session of the rows.

    Args:
        spark: The session of the rows.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._beside = not is_over_connect(spark)
        self._spark = _session_beside(spark) if self._beside else spark

    def run(self, source: DataFrame, text: Callable[[str], str], settings: Mapping[str, str]) -> Row | None:
        """Run a statement over rows.

        Args:
            source: The rows.
            text: Makes the statement of the name that the rows have in it.
            settings: What holds meanwhile.

        Returns:
            The first row of what it says; None when it says nothing.
        """
        with self._view(source) as view, self._set(settings):
            return self._spark.sql(text(view)).first()

    @contextmanager
    def _view(self, df: DataFrame) -> Iterator[str]:
        name = f"gem_bundle_{uuid4().hex}"
        catalog = self._spark.catalog
        if not self._beside:
            df.createOrReplaceTempView(name)
        else:
            df.createOrReplaceGlobalTempView(name)
        try:
            if self._beside:
                place = self._spark.conf.get("spark.sql.globalTempDatabase", "global_temp")
                yield f"{place}.{name}"
            else:
                yield name
        finally:
            (catalog.dropGlobalTempView if self._beside else catalog.dropTempView)(name)

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        conf = self._spark.conf
        before: dict[str, str | None] = {name: conf.get(name, None) for name in settings}
        for name, value in settings.items():
            conf.set(name, value)
        try:
            yield
        finally:
            for name, earlier in before.items():
                if earlier is None:
                    conf.unset(name)
                else:
                    conf.set(name, earlier)


def _session_beside(spark: SparkSession) -> SparkSession:
    """Another session over the same Spark, with the settings, the catalog and the schema of this one."""
    beside = spark.newSession()
    own = beside.conf.getAll
    for name, value in spark.conf.getAll.items():
        if own.get(name) == value:
            continue
        if name.startswith(_UNKNOWN_TO_SPARK) or beside.conf.isModifiable(name):
            beside.conf.set(name, value)
    beside.catalog.setCurrentCatalog(spark.catalog.currentCatalog())
    beside.catalog.setCurrentDatabase(spark.catalog.currentDatabase())
    return beside
