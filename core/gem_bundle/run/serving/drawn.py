"""A pipeline as the page shows it: its nodes, what flows between them, its file and what is said of it.

Options are shown as the file has them, so that references stay references. What an option holds that is a
secret, or looks like one, isn't shown at all, wherever else it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gem_bundle.facts import output_key
from gem_bundle.pipeline.secrets import HIDDEN, hidden
from gem_bundle.types import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.pipeline.plan import Plan

# Spark hides values by such keys in its own log.
_SECRET_KEY = re.compile(
    r"secret|passw|token|access[._-]?key|credential|jaas|private[._-]?key", re.IGNORECASE
)
_REFERENCE = re.compile(r"\$\{[^}]*\}")
# Shorter ones would hide half of every text, and are no secrets.
_SHORTEST = 3


@dataclass(frozen=True)
class Drawn:
    """A pipeline as others may see it.

    Args:
        content: The pipeline as JSON takes it.
        conceal: Takes its secrets out of any other text.
    """

    content: dict[str, Any]
    conceal: Callable[[str], str]

    def without_secrets(self, diagnostics: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Diagnostics, as ``--format json`` has them, without what nobody is to see."""
        return [
            {**found, **{key: self.conceal(found.get(key, "")) for key in ("message", "hint")}}
            for found in diagnostics
        ]


def draw(plan: Plan, diagnostics: Iterable[Diagnostic]) -> Drawn:
    """A pipeline as others may see it.

    Args:
        plan: The pipeline as far as it is known.
        diagnostics: What was found.
    """
    definition, gems, facts = plan.definition, plan.gems, plan.facts
    written = getattr(definition.locator, "values", None)
    concealed = concealing(definition, gems)
    content = {
        "pipeline": definition.name,
        "version": definition.version,
        "description": concealed(definition.description),
        "mode": definition.mode,
        "file": definition.file,
        "nodes": [
            _node(node, written, gems.get(node.id), facts, concealed) for node in definition.nodes.values()
        ],
        "diagnostics": [found.rewritten(concealed).as_dict() for found in diagnostics],
        "text": concealed(getattr(definition.locator, "source", "")),
    }
    return Drawn(content, concealed)


def concealing(definition: Definition, gems: Mapping[str, Gem]) -> Callable[[str], str]:
    """What takes secrets out of texts about a pipeline.

    Args:
        definition: The pipeline.
        gems: The gems of its nodes: they know which options are secrets.
    """
    values = set(definition.variables)
    for node in definition.nodes.values():
        gem = gems.get(node.id)
        for key, value in node.options.items():
            values.update(_texts(value) if _is_secret(key, gem) else _keyed(value))
    values.update(_keyed(getattr(definition.locator, "values", None)))
    values.update(_keyed(definition.values))
    longest_first = sorted((v for v in values if len(v) >= _SHORTEST), key=len, reverse=True)

    def conceal(text: str) -> str:
        text = hidden(text)
        for value in longest_first:
            text = text.replace(value, HIDDEN)
        return without_secrets(text, HIDDEN)

    return conceal


def _node(
    node: Node,
    written: Any,
    gem: Gem | None,
    facts: Mapping[str, Facts],
    conceal: Callable[[str], str],
) -> dict[str, Any]:
    return {
        "id": node.id,
        "kind": node.kind,
        "gem": node.gem,
        "description": conceal(node.description),
        "mode": node.mode if node.kind == "source" else None,
        "output_mode": node.output_mode if node.kind == "target" else None,
        "trigger": str(node.trigger) if node.kind == "target" else None,
        "group": node.group,
        "options": _options(node, written, gem, conceal),
        "inputs": [{"node": e.node, "output": e.output or "", "name": e.name} for e in node.inputs],
        "outputs": [{"output": name, **_flow(found)} for name, found in _outputs(node.id, facts)],
    }


def _outputs(node: str, facts: Mapping[str, Facts]) -> list[tuple[str, Facts]]:
    """The outputs of a node by name, the ordinary one first."""
    found = {"": facts[node]} if node in facts else {}
    before = output_key(node, " ").rstrip()
    found |= {key.removeprefix(before): of for key, of in facts.items() if key.startswith(before)}
    return sorted(found.items(), key=lambda pair: pair[0])


def _flow(facts: Facts) -> dict[str, Any]:
    columns = facts.columns
    return {
        "streaming": facts.streaming,
        "columns": None
        if columns is None
        else [{"name": c.name, "type": c.type, "watermark": c.delay} for c in columns],
    }


def _options(node: Node, written: Any, gem: Gem | None, conceal: Callable[[str], str]) -> dict[str, Any]:
    """The options as the file has them; of a pipeline in Python only which there are."""
    found = written
    for step in (*node.path, "options"):
        found = found.get(step) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return dict.fromkeys(node.options, "…")
    return {key: _shown(value, conceal, secret=_is_secret(key, gem)) for key, value in found.items()}


def _shown(value: Any, conceal: Callable[[str], str], *, secret: bool) -> Any:
    if isinstance(value, dict):
        return {
            key: _shown(item, conceal, secret=secret or may_be_secret(str(key)))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_shown(item, conceal, secret=secret) for item in value]
    if secret and not (isinstance(value, str) and _REFERENCE.fullmatch(value)):
        return None if value is None else HIDDEN
    if value is None or isinstance(value, bool | int | float):
        return value
    return conceal(str(value))


def _is_secret(option: str, gem: Gem | None) -> bool:
    """Whether what an option holds is never shown: its gem says so, or its name does."""
    if gem is not None and gem.options_type.canonical(option) in gem.options_type.secret_names():
        return True
    return may_be_secret(option)


def may_be_secret(key: str) -> bool:
    """Whether a key is called as secrets are."""
    return bool(_SECRET_KEY.search(key))


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value that are no references."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        if not _REFERENCE.fullmatch(value):
            yield str(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _keyed(value: Any) -> Iterator[str]:
    """The texts behind keys that are called as secrets are, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item) if may_be_secret(str(key)) else _keyed(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _keyed(item)
