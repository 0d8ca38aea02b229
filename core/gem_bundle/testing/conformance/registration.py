"""Which gems of the registry a class is."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import PluginError
from gem_bundle.plugins import GemEntry, Origin, load_registry

if TYPE_CHECKING:
    from gem_bundle.gem import Gem


def registered(gem: type[Gem[Any]]) -> list[GemEntry]:
    """The entries of the registry that mean a class."""
    # What is installed depends on where Python looks: a test may have put a distribution there.
    entries = _entries(tuple(sys.path))
    return [entry for entry in entries if entry.kind == gem.kind and _loads(entry) is gem]


def entry_of(gem: type[Gem[Any]]) -> GemEntry:
    """The first entry of the registry that means a class; one made up for a class that nobody registers."""
    found = registered(gem)
    if found:
        return found[0]
    return GemEntry(gem.kind, gem.__name__.lower(), gem, Origin("", gem.__module__, ""))


@cache
def _entries(path: tuple[str, ...]) -> tuple[GemEntry, ...]:  # noqa: ARG001 (kept for each)
    return tuple(load_registry())


@cache
def _loads(entry: GemEntry) -> type[Gem[Any]] | None:
    try:
        return entry.load()
    except PluginError:  # somebody else's, and reported by `gem-bundle gems`
        return None
