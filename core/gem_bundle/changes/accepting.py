"""What somebody takes on purpose (`--accept`): which codes that can be, and of which nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.changes.history import record_of
from gem_bundle.diagnostics import Diagnostic, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.plan import Plan

# Codes before them are of checkpoints, and those behind of backfills: they are no changes.
_OF_CHANGES = re.compile(r"GB4[1-4]\d")
_NEVER_STOP = frozenset({"GB444", "GB445"})


def why_not(code: str) -> str:
    """Why a code can't be accepted, as the end of a sentence; empty where it can.

    Args:
        code: The code.
    """
    from gem_bundle.codes import CODES

    if code not in CODES or not _OF_CHANGES.fullmatch(code):
        return "is not a code of a change, such as GB423, or GB423:some_node"
    return "never stops a run, so there is nothing to accept" if code in _NEVER_STOP else ""


def acceptance(text: str) -> tuple[str, str]:
    """The code and the node that a text like ``GB423:some_node`` names; no node where it is for all of them.

    Args:
        text: What somebody has written.

    Raises:
        ValueError: When that code can't be accepted, or no node stands behind the colon; it says why, without
            an end.
    """
    code, colon, node = (part.strip() for part in text.partition(":"))
    why = why_not(code.upper())
    if colon and not node and not why:
        # An unset variable in a script must not take the change of every node.
        why = f"names no node behind the colon; `{code}` alone is for the changes of all nodes"
    if why:
        raise ValueError(f"`{text}` {why}")
    return code.upper(), node


def check_accepted(plan: Plan, targets: Iterable[str], accept: Iterable[tuple[str, str]]) -> list[Diagnostic]:
    """What is accepted by a code or of a node that no change has, so that nothing is taken by it.

    A node that is no more may have been accepted by a run before: records tell of those.

    Args:
        plan: The pipeline.
        targets: The ids of the targets that run.
        accept: The changes that are taken on purpose: codes, each with the id of a node or an empty text.
    """
    asked = dict.fromkeys(accept)
    found = [_takes_nothing(plan, code, node, why) for code, node in asked if (why := why_not(code))]
    now = {name for node in plan.definition.nodes.values() for name in (node.id, *node.was)}
    strange = [(code, node) for code, node in asked if node and node not in now and not why_not(code)]
    then = _have_run(plan, targets) if strange else set()
    if then is None:
        return found  # the node may be one that has run
    why = "names no node of the pipeline, and none that has run"
    for code, node in strange:
        if node not in then:
            hint = suggest(node, now | then, what="nodes")
            found.append(_takes_nothing(plan, code, node, why, hint))
    return found


def _have_run(plan: Plan, targets: Iterable[str]) -> set[str] | None:
    """The ids of which the records of some targets tell; None where one can't be read."""
    found: set[str] = set()
    for target in targets:
        record, unread = record_of(target, plan.definition.record(target))
        if unread:
            return None
        for version in record.versions if record is not None else ():
            found |= {name for node in version.nodes for name in (node.id, *node.was)}
            found |= {one.node for one in version.accepted if one.node}
    return found


def _takes_nothing(plan: Plan, code: str, node: str, why: str, hint: str = "") -> Diagnostic:
    said = f"{code}:{node}" if node else code
    message = f"nothing is accepted by `{said}`: it {why}"
    return Diagnostic("GB408", "warning", message, place=plan.definition.locator.place(()), hint=hint)
