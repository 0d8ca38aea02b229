"""The settings of Spark by which rows, or what is kept of them, are others: a record keeps these."""

from __future__ import annotations

from gem_bundle.changes.zone import TIME_ZONE

FROZEN = frozenset(
    {
        "spark.sql.function.protobufExtensions.enabled",
        "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan",
        "spark.sql.shuffle.partitions",
    }
    | {
        f"spark.sql.streaming.{name}"
        for name in (
            "aggregation.stateFormatVersion",
            "flatMapGroupsWithState.stateFormatVersion",
            "join.stateFormatVersion",
            "multipleWatermarkPolicy",
            "offsetLog.formatVersion",
            "queryEvolution.enableSourceEvolution",
            "stateStore.compression.codec",
            "stateStore.encodingFormat",
            "stateStore.providerClass",
            "stateStore.rocksdb.formatVersion",
            "stateStore.rocksdb.mergeOperatorVersion",
            "stateStore.rowChecksum.enabled",
            "statefulOperator.useStrictDistribution",
        )
    }
)
"""The settings that a checkpoint keeps from its first run on, by the offset logs of Spark 4.0 to 4.2."""

DECIDING = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.caseSensitive": "false",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    TIME_ZONE: "",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""The settings by which the same expression or file gives other values, with Spark's defaults (4.0 to 4.2).

The time zone's is that of the machine. No checkpoint keeps them."""

PLANNING = {
    "spark.sql.constraintPropagation.enabled": "true",
    "spark.sql.optimizer.excludedRules": "",
}
"""The settings by which Spark puts conditions before other state, with their defaults.

No checkpoint keeps them."""

TAKING = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}
"""The settings by which rows come or don't, or come later, with their defaults; state is right by both.

No checkpoint keeps them."""

_LEGACY = "spark.sql.legacy."  # each of them brings back what an expression gave in an earlier Spark
_OF_ROWS = DECIDING | PLANNING | TAKING


def is_of_rows(key: str, value: str) -> bool:
    """Whether a setting that no checkpoint keeps matters to rows, and isn't said to be what it is anyway.

    Args:
        key: The setting.
        value: What is said of it.
    """
    return (key in _OF_ROWS or key.startswith(_LEGACY)) and value.lower() != _OF_ROWS.get(key, "").lower()
