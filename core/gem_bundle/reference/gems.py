"""The pages of the gems: one for each, one that compares those of a kind, and one that lists them all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.describe.facts import describe_gem
from gem_bundle.describe.markdown import markdown, table
from gem_bundle.describe.semantics import semantics_in_words
from gem_bundle.plugins import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.describe.facts import GemDescription
    from gem_bundle.plugins import GemEntry
    from gem_bundle.semantics import Kind

_DOES = {"source": "read", "transform": "turn rows into rows", "target": "write"}
# What is worth comparing; the conditions stand on the gems' own pages.
_COMPARED: dict[Kind, tuple[str, ...]] = {
    "source": ("Mode", "Replayable"),
    "transform": ("Inputs",),
    "target": ("Mode", "Output modes", "Delivery"),
}


def gem_pages(folder: str, entries: Iterable[GemEntry]) -> Iterator[tuple[str, str]]:
    """The pages of gems.

    Args:
        folder: The folder that they are in.
        entries: The gems.

    Raises:
        PluginError: When the class of one of them can't be loaded.
    """
    # Without versions: a release that changes no gem changes no page.
    gems = [_unversioned(describe_gem(entry)) for entry in entries]
    for kind in KINDS:
        found = [gem for gem in gems if gem.kind == kind]
        for gem in found:
            yield f"{folder}/{kind}s/{gem.name}.md", markdown(gem, level=1)
        if found:
            yield f"{folder}/{kind}s/index.md", _comparison(kind, found)
    yield f"{folder}/index.md", _index(gems)


def _unversioned(gem: GemDescription) -> GemDescription:
    return replace(gem, origin=replace(gem.origin, version=""))


def _comparison(kind: Kind, gems: list[GemDescription]) -> str:
    columns = _COMPARED[kind]
    rows = []
    for gem in gems:
        said = dict(semantics_in_words(gem))
        facts = [said.get(column, "").partition(":")[0] for column in columns]
        rows.append((f"[`{gem.name}`]({gem.name}.md)", gem.summary, *facts))
    head = (kind, "what it does", *(column.lower() for column in columns))
    return f"# {kind.capitalize()}s\n\nThe gems that {_DOES[kind]}.\n\n{table(head, rows)}"


def _index(gems: list[GemDescription]) -> str:
    """By family, that is by plugin; the kinds have pages of their own."""
    parts = ["# Gems"]
    kinds = [kind for kind in KINDS if any(gem.kind == kind for gem in gems)]
    parts.append("By kind: " + ", ".join(f"[{kind}s]({kind}s/index.md)" for kind in kinds) + ".")
    families = sorted({(gem.origin.distribution, gem.origin.plugin) for gem in gems})
    several = len({distribution for distribution, _ in families}) > 1
    rows = []
    for distribution, plugin in families:
        own = [gem for gem in gems if (gem.origin.distribution, gem.origin.plugin) == (distribution, plugin)]
        links = ", ".join(f"[`{gem.name}`]({gem.kind}s/{gem.name}.md) ({gem.kind})" for gem in own)
        rows.append((f"`{plugin}`", *([f"`{distribution}`"] if several else []), links))
    head = ("family", *(["distribution"] if several else []), "gems")
    parts += [
        "A family is a plugin: its gems come and go together.",
        table(head, rows),
    ]
    return "\n\n".join(parts)
