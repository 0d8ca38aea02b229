"""What runs leave beside a pipeline, without one: checkpoints with their records, and new state half in place."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.begun import journal_of, staging_of
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.record import Record, read_record, write_record
from gem_bundle.files import below, open_folder, split
from gem_bundle.pipeline.loader import LoadOptions
from tests.checked import plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def left_by_a_run(file: Path, source: str = "clicks", environment: Mapping[str, str] | None = None) -> None:
    """What a run of each target leaves: a checkpoint with one micro-batch, and the record beside it."""
    plan = plan_of(file, LoadOptions(environment=environment or {}))
    for node in plan.definition.of_kind("target"):
        location = plan.definition.checkpoint(node.id)
        for name, content in {
            "metadata": '{"id": "q"}',
            "offsets/0": f'v2\n{{"batchWatermarkMs": 0, "conf": {{}}}}\n{source}:{{"logOffset": 0}}',
            "commits/0": 'v1\n{"nextBatchWatermarkMs": 0}',
        }.items():
            folder, last = split(below(location, name))
            open_folder(folder).write(last, content.encode())
        write_record(plan.definition.record(node.id), Record(node.id, (version_of(plan, node.id),), "q"))


def killed_while_it_began_anew(file: Path, target: str, renamed: int) -> Path:
    """What a `run --fresh` of the pipeline as it is now leaves that was killed behind its journal.

    Args:
        file: The pipeline.
        target: The id of the target, which has run.
        renamed: How many of the two checkpoints had been given their names: first the old, then the new one.

    Returns:
        Where the old checkpoint is kept, or will be.
    """
    plan = plan_of(file, LoadOptions(environment={}))
    folder = file.parent / plan.definition.checkpoint(target)
    kept = folder.with_name(f"{folder.name}.until-1")
    shutil.copytree(folder, staging_of(folder))
    version = replace(version_of(plan, target), first_batch=1, continues=str(kept))
    ran = read_record(plan.definition.record(target))
    assert ran is not None
    record = replace(ran, versions=(*ran.versions, version))
    journal = {"format": 1, "kept": kept.name, "record": record.as_json()}
    journal_of(folder).write_text(json.dumps(journal), encoding="utf-8")
    if renamed > 0:
        folder.rename(kept)
    if renamed > 1:
        staging_of(folder).rename(folder)
    return kept
