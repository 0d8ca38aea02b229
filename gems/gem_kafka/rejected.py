"""Rejected rows that a target put into a topic, read again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gem_bundle import GemError
from gem_bundle.rejected import COLUMNS
from gem_kafka.connection import ConnectionOptions
from gem_kafka.preflight import check_source
from gem_kafka.reading import KafkaSourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = re.compile(r"kafka://(?P<brokers>[^/]+)/(?P<topic>[\w.-]+)")
# What is of the target alone, or is derived of others.
_OWN = frozenset({"spark_options"})


def options_at(place: str) -> dict[str, Any] | None:
    """Brokers and topic of a place, ``kafka://localhost:9092/broken``; None where it is none.

    Args:
        place: The place.
    """
    found = _PLACE.fullmatch(place)
    if found is None:
        return None
    return {"bootstrap_servers": found["brokers"].split(","), "topic": found["topic"]}


def rejected_in_topic(connection: ConnectionOptions, topic: str, spark: SparkSession) -> DataFrame:
    """The rejected rows in a topic, each as often as it was rejected.

    A run that was killed may have written a micro-batch twice. Rows that tell their offset are one row then;
    of others that can't be told from equal ones.

    Args:
        connection: How Kafka is reached.
        topic: The topic. Messages that aren't rejected rows are passed over.
        spark: The session.

    Raises:
        GemError: When the brokers don't answer, or have no such topic.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    given = {
        name: getattr(connection, name)
        for name in ConnectionOptions.model_fields
        if name in connection.model_fields_set and name not in _OWN
    }
    options = KafkaSourceOptions(**given, subscribe=[topic])
    for finding in check_source(options):
        if finding.severity == "error":
            raise GemError(finding.code, finding.message, finding.hint)
    text = F.col("value").cast("string")
    schema = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    records = spark.read.format("kafka").options(**options.to_spark()).load()
    alike = Window.partitionBy("__text").orderBy("partition", "offset")
    numbered = (
        records.select(text.alias("__text"), "partition", "offset")
        .withColumn("__copy", F.row_number().over(alike))
        .withColumn("__row", F.from_json("__text", schema))
    )
    once = (F.col("__copy") == 1) | F.col("__row.origin")["offset"].isNull()
    found = numbered.where("__row.schema_version is not null and __row.node is not null").where(once)
    return found.select("__row.*")
