"""Whether a run can continue from what Spark left in a checkpoint: looked at before it starts."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.history import what_ran
from gem_bundle.changes.withheld import without_logins
from gem_bundle.check.stages.versions import installed_spark
from gem_bundle.contexts import SOURCE_NAMING, is_over_connect
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.files import EXPIRED, PASSING, advice
from gem_bundle.types import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.changes.checkpoint import SparkCheckpoint, UnseenError
    from gem_bundle.changes.record import Record
    from gem_bundle.pipeline.model import Trigger


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# Those that keep state in the checkpoint; what others do isn't known.
_IN_CHECKPOINT = (".HDFSBackedStateStoreProvider", ".RocksDBStateStoreProvider")


def has_source_evolution(settings: Mapping[str, str], trigger: Trigger | None = None) -> bool:
    """Whether a run with these Spark settings names its sources: from Spark 4.2 on, unless switched off.

    It doesn't either in a session that is there already, over Spark Connect, and lets nobody switch it on.

    Args:
        settings: The settings of the pipeline.
        trigger: The trigger of the target; continuous processing keeps a log without names.
    """
    if trigger is not None and trigger.kind == "continuous":
        return False
    major, minor = (int(part) for part in (installed_spark() or "4.2").split(".")[:2])
    if (major, minor) < (4, 2) or settings.get(SOURCE_NAMING, "true").lower() != "true":
        return False
    return not _is_refused(SOURCE_NAMING)


def _is_refused(key: str) -> bool:
    """Whether the session that runs refuses to change a setting, as serverless ones of Databricks do."""
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.active()
    except PySparkException:  # there is none
        return False
    if not is_over_connect(spark):
        return False
    try:
        before = spark.conf.get(key, None)
        spark.conf.set(key, "true")
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)
    except PySparkException:
        return True
    return False


def unseen(target: str, location: str, error: UnseenError) -> Diagnostic:
    """What is said of a checkpoint that can't be looked at from here.

    Args:
        target: The id of the target.
        location: Its checkpoint's location.
        error: Why it can't be.
    """
    message = f"the checkpoint of target `{target}` can't be seen from here: {error}, at {location}"
    hint = "Look at it from where Spark runs, as a user who may read it."
    if is_remote(location):
        hint = advice(
            str(error),
            "Look at it from where Spark runs, or install the package that teaches fsspec its scheme "
            "(s3fs, gcsfs, adlfs, …) and give it what it logs in with.",
        )
    return Diagnostic("GB406", "error", without_logins(message), target, hint=hint)


def is_passing(found: Diagnostic, location: str) -> bool:
    """Whether a checkpoint that couldn't be looked at may be the next time, from here.

    What nothing here can ever read is left to Spark, which may know the place better. So is what this
    machine is refused: the credentials may be Spark's alone.

    Args:
        found: What is said of it.
        location: Its location.
    """
    # What is on this machine's disk Spark reads as the same user.
    here = local_path(location) is not None
    return here or bool(EXPIRED.search(found.message) or PASSING.search(found.message))


def uncompared(found: Diagnostic) -> Diagnostic:
    """What is said of a run that is stopped because a checkpoint couldn't be looked at this time.

    Args:
        found: What is said of the checkpoint.
    """
    if EXPIRED.search(found.message):
        return found
    hint = (
        "Nothing was processed: it isn't known what this version of the pipeline does to that checkpoint. "
        "Start the run again, as a user who may read it: each start looks once more."
    )
    return replace(found, hint=hint)


def check_checkpoint(
    target: str, checkpoint: SparkCheckpoint | None, *, source_evolution: bool, record: Record | None = None
) -> list[Diagnostic]:
    """What keeps a run from continuing from a checkpoint.

    Args:
        target: The id of the target.
        checkpoint: What is there; None for nothing.
        source_evolution: Whether the run names its sources (offset log version 2), which a checkpoint
            either has from its first run or never.
        record: What has run on it, where that has been read: it tells of state that is gone.
    """
    if checkpoint is None:
        return []
    location = without_logins(checkpoint.location)
    hint = (
        "Restore the folder from a copy. Or move it away to start anew: then sources are read from "
        "their beginning and the target gets rows it already has."
    )
    found = [
        Diagnostic(
            "GB402",
            "error",
            f"the checkpoint of target `{target}` is damaged: {problem}, in {location}",
            target,
            hint=hint,
        )
        for problem in checkpoint.problems or _lost_state(checkpoint, record)
    ]
    if source_evolution and checkpoint.named is False and not found:
        found.append(
            Diagnostic(
                "GB403",
                "error",
                f"the checkpoint of target `{target}` was made without named sources, and Spark can't add "
                f"the names later: {location}",
                target,
                hint="Give the pipeline another `checkpoints` folder, or set "
                "`spark.sql.streaming.queryEvolution.enableSourceEvolution: false` and "
                "`spark.sql.streaming.offsetLog.formatVersion: 1` under `spark`.",
            )
        )
    return found


def _lost_state(checkpoint: SparkCheckpoint, record: Record | None) -> list[str]:
    """That no state is there, where what ran is known to have kept some.

    Spark leaves nothing that tells it once the state is gone: the record beside the checkpoint does.
    """
    if record is None or checkpoint.has_state is not False or not checkpoint.commits:
        return []
    if not checkpoint.settings.get(_PROVIDER, "").endswith(_IN_CHECKPOINT):
        return []
    ran = what_ran(record, checkpoint).newest
    if ran is None or ran.first_batch > checkpoint.commits[-1].batch:
        return []
    nodes = dict.fromkeys(operator.node for operator in ran.operators if operator.stateful)
    return [f"`state` is missing or empty, and {listed_names(nodes)} kept some"] if nodes else []
