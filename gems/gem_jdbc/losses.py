"""What Spark's reader would read as something else than what is there, and which is refused."""

from typing import TYPE_CHECKING

from gem_bundle import GemError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_jdbc.reading import JdbcSourceOptions

_UTC = {"UTC", "UCT", "GMT", "Z", "Zulu", "Universal", "Greenwich", "GMT0"}


def refuse_losses(df: "DataFrame", options: "JdbcSourceOptions") -> None:
    """Refuse columns that would be read as something else.

    Args:
        df: The table, as Spark's reader has it.
        options: How it is read.

    Raises:
        GemError: GB205 when there is one.
    """
    option = "query" if options.table is None else "table"
    for field in df.schema.fields:
        # Spark makes texts of its bytes' bits, with a sign: b'10000001' has 32 of them.
        if field.metadata.get("binarylong") and field.dataType.typeName() == "binary":
            raise GemError(
                "GB205",
                f"the column `{field.name}` has several bits, of which Spark makes a text that isn't them",
                f"Read it as a number: `custom_schema: {field.name} bigint`.",
                option,
            )
        if options.dialect.shifts_ntz and field.dataType.typeName() == "timestamp_ntz":
            zone = _zone(df.sparkSession)
            if zone.removeprefix("Etc/") not in _UTC:
                raise GemError(
                    "GB205",
                    f"the column `{field.name}` would be shifted: Spark reads a `timestamp_ntz` of "
                    f"{options.dialect.name} rightly where the JVM's time zone is UTC, and it is {zone}",
                    "Read it as a `timestamp`, or run the JVM, and those of executors, with "
                    "`-Duser.timezone=UTC`.",
                    option,
                )


def _zone(spark: "SparkSession") -> str:
    """The time zone of the JVM that reads."""
    (row,) = spark.sql("SELECT reflect('java.time.ZoneId', 'systemDefault')").collect()
    return str(row[0])
