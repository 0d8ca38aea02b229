"""A pipeline, and the texts that are made of it, without the values of its secrets."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.changes.withheld import with_stand_ins, without_logins
from gem_bundle.check.stages.inference import infer
from gem_bundle.expressions import limited
from gem_bundle.pipeline.secrets import HIDDEN, Secret, UnresolvedSecret, hidden, unmarked, written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.gem import Gem, Source, Transform
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.pipeline.plan import Plan

_QUERY = re.compile(r"(?<=\w)\?\S*=\S*")
_SHORTEST = 3
_LONG = 6  # what is as long isn't in another word by chance
_ESCAPE_OR_QUOTE = re.compile(r"\\(?P<escaped>.?)|['\"`\s]+", re.DOTALL)


def without_secrets(plan: Plan) -> tuple[Plan, bool]:
    """The plan as a check makes it, which looks no secret up, so that nothing is made of a secret's value.

    A list may have another length with a secret in it, and a path or an expression may be written in
    another way than it was given: no search for the value would find what was made of it.

    Args:
        plan: The checked pipeline.

    Returns:
        The plan, and whether no gem of it has a secret any more: some options take no stand-in.
    """
    definition = plan.definition
    if not definition.secrets:
        return plan, True
    nodes = {
        name: replace(node, options=_stood_in(node.options, definition.variables))
        for name, node in definition.nodes.items()
        if _holds_value(node.options)
    }
    if not nodes:
        return plan, True
    gems = dict(plan.gems)
    for name, node in list(nodes.items()):
        gem = _made_anew(node, gems[name], definition)
        if gem is None:
            del nodes[name]
        else:
            gems[name] = gem
    definition = replace(definition, nodes=definition.nodes | nodes)
    from gem_bundle.check.checker import MAX_EXPRESSIONS

    with limited(MAX_EXPRESSIONS):
        facts, _ = infer(definition, gems, plan.order, discover=False)
    stood_in = replace(plan, definition=definition, gems=gems, facts=facts)
    return stood_in, not any(_holds_value(node.options) for node in definition.nodes.values())


def _holds_value(options: Any) -> bool:
    """Whether a secret that was looked up is in some options."""
    if isinstance(options, dict | list):
        return any(map(_holds_value, options.values() if isinstance(options, dict) else options))
    return isinstance(options, Secret)


def _stood_in(options: Any, variables: Iterable[str]) -> Any:
    """Options with what a check puts in the place of secrets."""
    if isinstance(options, dict):
        return {key: _stood_in(item, variables) for key, item in options.items()}
    if isinstance(options, list):
        return [_stood_in(item, variables) for item in options]
    if not isinstance(options, Secret):
        return options
    text = written(options)
    if text is None:
        return UnresolvedSecret("secret")
    found: Any = UnresolvedSecret(with_stand_ins(text, options, variables))
    found.written = text
    return found


def _made_anew(node: Node, gem: Gem, definition: Definition) -> Gem | None:
    """The gem of a node with other options; None where it doesn't take them."""
    kind = type(gem.options)
    given = {kind.canonical(key) or key: unmarked(value) for key, value in node.options.items()}
    context = {"base_dir": definition.folder, "within": definition.within}
    try:
        made = type(gem)(kind.model_validate(given, context=context))
    except Exception:  # noqa: BLE001 (a gem's bug must not keep the pipeline from running)
        return None
    if node.kind == "transform":
        cast("Transform", made).input_names = tuple(edge.name for edge in node.inputs)
        cast("Transform", made).node = node.id
    elif node.kind == "source":
        cast("Source", made).streaming = node.mode == "stream"
    return made


class Cleaner:
    """Takes secrets out of texts that were made of options.

    Args:
        definition: The pipeline.
        values: The values of secrets that texts may have been made of.
    """

    def __init__(self, definition: Definition, values: Iterable[str] = ()) -> None:
        # What a check puts in a secret's place, so that it reads as a run's.
        stand_ins = (re.sub(r"\W", "_", f"secret_{name}") for name in definition.secrets)
        secrets = chain.from_iterable((value, *value.split(",")) for value in values)
        self._secrets = _any_of([*map(re.escape, stand_ins), *map(_spellings, secrets)])
        self._variables = _any_of(map(_spellings, definition.variables))
        self._cleaned: dict[str, str] = {}  # of a wide pipeline the same columns come again and again

    def place(self, text: str) -> str:
        """The text without secrets, logins and what stands behind a URL's question mark."""
        text = hidden(text)
        if self._secrets is not None:
            text = self._secrets.sub(HIDDEN, text)
        return _QUERY.sub("", without_logins(text))

    def __call__(self, text: str) -> str:
        """The text without secrets and texts of environment variables."""
        found = self._cleaned.get(text)
        if found is None:
            found = self.place(text)
            if self._variables is not None:
                found = self._variables.sub(HIDDEN, found)
            self._cleaned[text] = found
        return found


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    longest_first = sorted(filter(None, patterns), key=len, reverse=True)
    return re.compile("|".join(longest_first), re.IGNORECASE) if longest_first else None


def _spellings(value: str) -> str:
    """A pattern for a text in all spellings that are made of it; empty for one too short to be a secret.

    Spark and gems write columns in small letters, texts without quotes and escapes, and paths without
    what is too much in them.
    """
    if len(value) < _SHORTEST:
        return ""
    found = re.escape(value)
    bare = value.strip().strip("/")
    if "/" in bare and "://" not in bare:
        bare = posixpath.normpath(bare)
    if len(re.sub(r"\W", "", bare)) < _SHORTEST:
        return f"(?-i:{found})"
    end, loose = 0, ""
    for gap in _ESCAPE_OR_QUOTE.finditer(bare):
        escaped = gap["escaped"]
        loose += (
            re.escape(bare[end : gap.start()]) + r"\W{0,9}" + (f"{re.escape(escaped)}?" if escaped else "")
        )
        end = gap.end()
    loose += re.escape(bare[end:])
    if len(bare) < _LONG:
        loose = rf"(?<!\w){loose}(?!\w)"
    return f"(?-i:{found})|{loose}"
