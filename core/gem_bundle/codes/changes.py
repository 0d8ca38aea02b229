"""GB4xx: checkpoints, and pipelines that change."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

CHANGES = (
    error(
        "GB401",
        "the checkpoint is in use by another run",
        why="""
            Two runs on one checkpoint overwrite each other's progress, and rows are lost or doubled. A
            run therefore holds a lock on the checkpoints of its targets; the message says who has it.
            Targets that are run by themselves (`--target`) have locks of their own.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml &
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --target table &
            $ gem-bundle run clicks.yaml --target screen
        """,
        source="Guide, Recovering from Failures with Checkpointing: one query, one checkpoint",
    ),
    error(
        "GB402",
        "the checkpoint is damaged",
        why="""
            A file of the checkpoint is missing, empty or cut off, so it can't be said up to where the
            sources were read. Restore the folder from a copy. Moving it away starts anew: sources are
            then read from their beginning, and a target gets rows that it already has.
        """,
        breaks="""
            $ rm checkpoints/clicks/table/metadata
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ mv checkpoints/clicks/table checkpoints/clicks/table.damaged
            $ gem-bundle run clicks.yaml
        """,
        source="Guide, Recovering from Failures with Checkpointing",
    ),
    error(
        "GB403",
        "the checkpoint was not made by this kind of run",
        why="""
            Runs name their sources in the checkpoint, so that sources can be added, removed and
            reordered later (Spark 4.2 calls it source evolution). Spark can't add the names to a
            checkpoint that was made without them, by another program or an older Spark: begin a new
            one, or go on without names.
        """,
        breaks="""
            checkpoints: made/by/another/program

            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            checkpoints: made/by/another/program
            spark:
              spark.sql.streaming.queryEvolution.enableSourceEvolution: false
              spark.sql.streaming.offsetLog.formatVersion: 1

            $ gem-bundle run clicks.yaml
        """,
        source="Spark 4.2, spark.sql.streaming.queryEvolution.enableSourceEvolution",
    ),
    error(
        "GB404",
        "the record of a checkpoint can't be read",
        why="""
            Beside each checkpoint lies a record of what ran on it, `.<target>.record.json`, which every
            run and every plan compares the pipeline with. This one is damaged, or a later gem-bundle
            wrote it. Without it only what Spark left can be known.
        """,
        breaks="""
            $ mv notes.txt checkpoints/clicks/.table.record.json
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            $ rm checkpoints/clicks/.table.record.json
            $ gem-bundle run clicks.yaml
        """,
    ),
    warning(
        "GB405",
        "no record is kept of what runs on a checkpoint",
        why="""
            The checkpoint lies where this machine can't read or write files: the package that teaches
            fsspec its scheme isn't installed, its credentials are Spark's alone, or it lies on the
            machine of a Spark Connect server. The run goes on. But a later version of the pipeline can
            be compared only with what Spark left there, if that can be seen.
        """,
        breaks="""
            checkpoints: s3a://bucket/checkpoints

            $ pip uninstall s3fs
            $ gem-bundle run clicks.yaml
        """,
        keeps="""
            checkpoints: s3a://bucket/checkpoints

            $ pip install s3fs
            $ gem-bundle run clicks.yaml
        """,
    ),
)
