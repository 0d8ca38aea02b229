"""Targets that are no more: which there were, and what is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.model import Change, TargetChanges, at_section
from gem_bundle.changes.record import record_file, recorded_targets
from gem_bundle.changes.withheld import without_logins
from gem_bundle.files import below, open_folder, split
from gem_bundle.pipeline.model import ID, IN_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.model import Definition
    from gem_bundle.pipeline.plan import Plan

ITS_GROUP = "the checkpoint of its group"
"""What a target had that was in one with others."""


def left_behind(definition: Definition, targets: Iterable[str]) -> list[str]:
    """Those of some targets that aren't in the pipeline any more, and whose checkpoint or record is there.

    Args:
        definition: The pipeline.
        targets: The ids of the targets.
    """
    targets = dict.fromkeys(targets)
    taken = {name for node in definition.of_kind("target") for name in (node.id, node.identity, node.group)}
    strange = [name for name in targets if name not in taken and ID.fullmatch(name)]
    names = names_of_records(definition) if strange else {}
    return [name for name in strange if name in names or _is_checkpoint(place_beside(definition, name))]


def names_of_records(definition: Definition) -> dict[str, str]:
    """The ids by which records are kept, each with the name that its record goes by.

    Args:
        definition: The pipeline.
    """
    names = recorded_targets(place_beside(definition, ""))
    return {name.rpartition(IN_GROUP)[2]: name for name in names}


def place_beside(definition: Definition, name: str) -> str:
    """Where the checkpoint of a target lies that isn't in the pipeline, beside those of the others.

    Args:
        definition: The pipeline.
        name: Its id, or its group's.
    """
    return f"{definition.checkpoints.rstrip('/')}/{definition.name}/{name}".rstrip("/")


def _is_checkpoint(location: str) -> bool:
    try:
        return read_checkpoint(location) is not None
    except UnseenError:
        return False


def left_over(plan: Plan) -> dict[str, str]:
    """The targets that have a record and aren't in the pipeline any more, each with its record's place.

    Args:
        plan: The checked pipeline.
    """
    places = recorded(plan)
    return {name: places[name] for name in sorted(places) if is_gone(plan, name)}


def recorded(plan: Plan) -> dict[str, str]:
    """The targets that have a record, each with its record's place.

    Args:
        plan: The checked pipeline.
    """
    names = names_of_records(plan.definition)
    return {identity: place_beside(plan.definition, name) for identity, name in names.items()}


def is_gone(plan: Plan, identity: str) -> bool:
    """Whether no target of a pipeline is known by what a checkpoint knew one by.

    Args:
        plan: The checked pipeline.
        identity: What it was known by.
    """
    return all(node.identity != identity for node in plan.definition.of_kind("target"))


def what_stays(place: str) -> str:
    """What there is of a target that is no more: its record, and a checkpoint unless somebody has removed it.

    Args:
        place: Where its checkpoint was, beside which its record stands.
    """
    folder, name = split(place)
    group, _, _ = name.rpartition(IN_GROUP)
    try:
        stays = bool(open_folder(below(folder, group or name)).names())
    except Exception:  # noqa: BLE001 (every store raises what its client raises)
        stays = True  # nobody can look
    if stays:
        return f"{ITS_GROUP if group else 'its checkpoint'} stays"
    record = without_logins(below(*record_file(place)))
    return f"its checkpoint is gone too, and its record stays, {record}: remove that, and nothing tells of it"


def gone_target(plan: Plan, target: str, stays: str) -> TargetChanges:
    """What is told of a target that is no more.

    Args:
        plan: The pipeline as it is now.
        target: The id that it had.
        stays: What there is of it, as `what_stays` tells it.
    """
    message = f"target `{target}` is no more; {stays}"
    path, place = at_section(plan.definition, "target")
    return TargetChanges(target, (Change("gone", "GB445", message, target, path, place, before=target),))
