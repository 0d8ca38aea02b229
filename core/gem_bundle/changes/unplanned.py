"""Why nothing can be said of a pipeline without an error: what its environment or its secrets decide on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.settings import DECIDING, FROZEN, PLANNING
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.secrets import UnresolvedSecret, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.check.checker import Checked
    from gem_bundle.pipeline.model import Definition

_PARAMETER = re.compile(r"(?<!\$)\$\{\s*(\w+)\s*\}")
_SETTINGS = FROZEN | DECIDING.keys() | PLANNING.keys()
# By these the checkpoints are found.
_PLACES = frozenset({"checkpoints", "pipeline"})


def why_unplanned(checked: Checked) -> list[Diagnostic]:
    """What has to be set, or written in another way, before an edit can be looked at; empty where all is.

    Args:
        checked: A pipeline that was checked without its secrets, and without variables that aren't set.
    """
    definition = checked.definition
    if definition is None or not checked.ok:
        return []
    found = [unset for unset in definition.unset if _decides(definition, unset)]
    if found or checked.plan is not None:
        return found
    known = checked.known.gems if checked.known is not None else {}
    found = [unset for unset in definition.unset if unset.node is None or unset.node not in known]
    for node in definition.nodes.values():
        if node.id not in known:
            found += _secret(definition, node.id)
    return found or list(definition.unset)


def _decides(definition: Definition, unset: Diagnostic) -> bool:
    """Whether it isn't known without a variable where checkpoints lie, or what they go by."""
    section, *rest = unset.path
    if section == "spark":
        return bool(rest) and rest[0] in _SETTINGS
    if section not in {"parameters", "profiles"}:
        return section in _PLACES
    texts = (definition.locator.text((key,)) or "" for key in _PLACES)
    return any(name in rest for text in texts for name in _PARAMETER.findall(text))


def _secret(definition: Definition, node: str) -> Iterator[Diagnostic]:
    """GB409: the options of a node whose values are secrets, and can't stand for themselves."""
    here = definition.nodes[node]
    for option, value in here.options.items():
        if not _holds_secret(value):
            continue
        path = (*here.path, "options", option)
        text = f" (`{written(value)}`)" if written(value) else ""
        yield Diagnostic(
            "GB409",
            "error",
            f"{here.kind} `{node}`: `{option}` is a secret{text}, which a plan doesn't look up, and no text "
            "can stand for it: what an edit does can't be known",
            node,
            path,
            definition.locator.place(path),
            "Write the value itself, or a parameter: secrets are for texts such as passwords.",
        )


def _holds_secret(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_secret, value.values() if isinstance(value, dict) else value))
    return isinstance(value, UnresolvedSecret)
