"""A run that lives on a checkpoint where no lock can be, known by the record that it keeps beside it.

What is known so isn't certain: of two runs that start in the same moment neither sees the other. But a second
start on a run that goes on is told, as it is on a disk.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.files import open_folder
from gem_bundle.run.lock import BY_A_RUN, lock_file
from gem_bundle.runs.life import BEAT_SECONDS, judge
from gem_bundle.runs.record import read_run, read_runs, runs_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.files import Folder
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.runs.record import RunRecord

WATCHED_SECONDS = 3 * BEAT_SECONDS
"""A run that lives renews its record within that time, whatever its clock says."""


def check_live_runs(
    definition: Definition,
    checkpoints: Mapping[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> list[Diagnostic]:
    """GB401: that another run renews its record of checkpoints that nobody can lock.

    What can't be seen is left to Spark. A record isn't watched when its process is gone, or when it is
    too old to be that of a run that lives.

    Args:
        definition: The pipeline.
        checkpoints: The checkpoint location of each target that is to run.
        sleep: Waits for so many seconds.
    """
    places = {place: target for target, place in checkpoints.items() if lock_file(place) is None}
    if not places:
        return []
    try:
        folder = open_folder(runs_place(definition))
        found = [record for record in read_runs(folder) if judge(record).state not in _OVER]
    except Exception:  # noqa: BLE001 (every store raises what its client raises)
        return []
    return [
        _in_use(places[place], place, record)
        for record in found
        if (shared := [of.checkpoint for of in record.targets.values() if of.checkpoint in places])
        and _renews(folder, record, sleep)
        for place in shared
    ]


_OVER = frozenset({"finished", "stopped", "failed", "died"})


def _renews(folder: Folder, record: RunRecord, sleep: Callable[[float], None]) -> bool:
    """Whether a record is renewed while it is watched."""
    for _ in range(int(WATCHED_SECONDS)):
        sleep(1)
        with suppress(Exception):  # the next look may see it
            now = read_run(folder, record.id)
            if judge(now).state in _OVER:
                return False
            if now.heartbeat != record.heartbeat:
                return True
    return False


def _in_use(target: str, place: str, record: RunRecord) -> Diagnostic:
    message = f"{BY_A_RUN.message.format(target)} ({record.process}, since {record.started}): {place}"
    return Diagnostic("GB401", "error", message, target, hint=BY_A_RUN.hint)
