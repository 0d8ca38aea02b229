"""How extensions are found: entry points of the group ``gem_bundle``, through pluggy."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import pluggy

from gem_bundle import hookspecs, installed
from gem_bundle.diagnostics import listed_names, nearest, suggest
from gem_bundle.errors import PluginError, describe_error
from gem_bundle.hookspecs import OF_PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from pydantic import BaseModel

    from gem_bundle.diagnostics import Finding
    from gem_bundle.gem import Gem
    from gem_bundle.semantics import Kind
    from gem_bundle.views import PipelineView

GROUP = "gem_bundle"
PICK = "GEM_BUNDLE_PLUGINS"
BLOCK = "GEM_BUNDLE_DISABLE_PLUGINS"
_IN_VISUAL_TOOLS = re.compile(r"In visual tools: ([\w,\s]+)\.")
_REFERENCE = re.compile(r"[\w.]+:\w+")
KINDS: tuple[Kind, ...] = ("source", "transform", "target")


@dataclass(frozen=True)
class Origin:
    """Where a gem comes from: its plugin's entry point and its distribution."""

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


class BrokenPlugin(NamedTuple):
    """A plugin that could not be loaded, and why."""

    origin: Origin
    error: str


class Rule(NamedTuple):
    """The rules that a plugin has for pipelines."""

    origin: Origin
    hook: pluggy.HookImpl

    def findings(self, pipeline: PipelineView) -> Iterable[Finding]:
        """What the plugin finds in a pipeline; raises whatever the plugin raises."""
        arguments = dict.fromkeys(self.hook.argnames, pipeline)  # a hook may leave out what it doesn't need
        return cast("Iterable[Finding] | None", self.hook.function(**arguments)) or ()


class VersionReader(NamedTuple):
    """What a plugin reads pipelines out of."""

    origin: Origin
    hook: pluggy.HookImpl

    def read(self, place: Path, pipeline: str, code: Path) -> tuple[str, bytes] | None:
        """The name and the bytes of a pipeline's file; None where the plugin doesn't know the place."""
        given = {"place": place, "pipeline": pipeline, "code": code}
        arguments = {name: given[name] for name in self.hook.argnames}
        return cast("tuple[str, bytes] | None", self.hook.function(**arguments))


class GemEntry:
    """One registered gem: its identity, where it comes from, and its class when it is needed."""

    def __init__(self, kind: Kind, name: str, target: type[Gem] | str, origin: Origin) -> None:
        self.kind = kind
        self.name = name
        self.origin = origin
        self._target = target

    def load(self) -> type[Gem]:
        """The gem's class; imported the first time.

        Raises:
            PluginError: When the class can't be imported or isn't a gem of its kind.
        """
        if isinstance(self._target, str):
            self._target = self._import(self._target)
        return self._target

    def visual_names(self) -> tuple[str, ...]:
        """What visual tools call it, by its description: ``In visual tools: OrderBy.``

        Raises:
            PluginError: When the class can't be imported or isn't a gem of its kind.
        """
        told = _IN_VISUAL_TOOLS.search(self.load().__doc__ or "")
        return tuple(re.split(r",\s+", told[1])) if told else ()

    def _import(self, reference: str) -> type[Gem]:
        from gem_bundle.gem import Source, Target, Transform

        base = {"source": Source, "transform": Transform, "target": Target}[self.kind]
        return cast("type[Gem]", _class_of(reference, self.origin, f"{self.kind} `{self.name}`", base))


class SectionEntry(NamedTuple):
    """A section of the pipeline file that a plugin reads: its key, its model and where it comes from."""

    name: str
    model: str
    origin: Origin

    def load(self) -> type[BaseModel]:
        """The section's model.

        Raises:
            PluginError: When it can't be imported or is no model of pydantic's.
        """
        from pydantic import BaseModel

        what = f"section `{self.name}`"
        return cast("type[BaseModel]", _class_of(self.model, self.origin, what, BaseModel))


def _class_of(reference: str, origin: Origin, what: str, base: type) -> type:
    """A class that a plugin has registered by its name."""
    from importlib import import_module

    module, _, name = reference.partition(":")
    hint = f"Update or remove the distribution `{origin}`, or report it to its authors."
    try:
        found: object = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # a plugin may raise anything when it is imported
        raise PluginError(
            f"The {what} of `{origin}` can't be loaded from `{reference}`: {describe_error(error)}", hint
        ) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise PluginError(
            f"`{reference}` of `{origin}` is registered as the {what} but does not derive from "
            f"{base.__name__}",
            hint,
        )
    return found


class Registry:
    """The gems that are installed, by kind and name, the rules, and the plugins that are broken."""

    def __init__(self) -> None:
        self._gems: dict[tuple[Kind, str], list[GemEntry]] = {}
        self.broken: list[BrokenPlugin] = []
        self.rules: list[Rule] = []
        self.version_readers: list[VersionReader] = []
        self.sections: dict[str, SectionEntry] = {}

    def copy(self) -> Registry:
        """One with the same gems, to which others may be added."""
        other = Registry()
        other._gems = {identity: [*entries] for identity, entries in self._gems.items()}
        other.broken, other.rules = [*self.broken], [*self.rules]
        other.version_readers, other.sections = [*self.version_readers], {**self.sections}
        return other

    def add(self, entry: GemEntry) -> None:
        """Take one gem; two of one identity are both kept, and reported when one is asked for."""
        self._gems.setdefault((entry.kind, entry.name), []).append(entry)

    def names(self, kind: Kind) -> list[str]:
        """The names of all gems of a kind."""
        return sorted(name for found, name in self._gems if found == kind)

    def suggest(self, name: str, known: Iterable[str], *, what: str) -> str:
        """The hint for a gem that isn't there: what visual tools call so, the close name, or all that exist.

        Args:
            name: What the user wrote.
            known: What exists.
            what: The plural noun for what is listed.
        """
        known = list(known)
        # To ask the others, all gems have to be imported.
        if nearest(name, known) is None or not name.islower():
            for theirs, ours in self._of_visual_tools(name).items():
                *others, last = (f"`{found}`" for found in ours)
                listed = f"{', '.join(others)} or {last}" if others else last
                return f"`{theirs}` of visual tools is {listed} here."
        return suggest(name, known, what=what)

    def _of_visual_tools(self, name: str) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for entry in self:
            with suppress(PluginError):
                for theirs in entry.visual_names():
                    if theirs.lower() == name.lower():
                        found.setdefault(theirs, {})[entry.name] = None
        return {theirs: sorted(ours) for theirs, ours in found.items()}

    def has(self, kind: Kind, name: str) -> bool:
        """Whether a gem of that identity is registered."""
        return (kind, name) in self._gems

    def get(self, kind: Kind, name: str) -> GemEntry:
        """The gem of that identity.

        Raises:
            PluginError: When there is none, or two plugins claim it.
        """
        entries = self._gems.get((kind, name), [])
        if not entries:
            from gem_bundle.diagnostics import suggest

            raise PluginError(
                f"There is no {kind} gem `{name}`.",
                suggest(name, self.names(kind), what=f"{kind}s"),
            )
        if len(entries) > 1:
            raise PluginError(*self._duplicate(entries))
        return entries[0]

    def duplicates(self) -> Iterator[tuple[str, str]]:
        """What is claimed twice: for each identity the reason and the hint."""
        for entries in self._gems.values():
            if len(entries) > 1:
                yield self._duplicate(entries)

    @staticmethod
    def _duplicate(entries: list[GemEntry]) -> tuple[str, str]:
        owners = " and ".join(f"`{e.origin}` (plugin `{e.origin.plugin}`)" for e in entries)
        return (
            f"The {entries[0].kind} gem `{entries[0].name}` is registered by {owners}.",
            f"Uninstall one of them, or switch one off with {BLOCK}={entries[-1].origin.plugin}.",
        )

    def __iter__(self) -> Iterator[GemEntry]:
        for kind in KINDS:
            for name in self.names(kind):
                yield from self._gems[kind, name]


def load_registry(
    environment: Mapping[str, str] | None = None, entry_points: Iterable[EntryPoint] | None = None
) -> Registry:
    """Find the installed plugins and the gems they register.

    A plugin that can't be imported, or that implements a hook which doesn't exist, is listed in
    `Registry.broken` and doesn't stop the others. So is a name in `GEM_BUNDLE_PLUGINS` that no
    plugin has.

    What is installed is looked for once in a process, and again when Python's path or one of its folders
    has changed.

    Args:
        environment: Where `GEM_BUNDLE_PLUGINS` (names of the only plugins to load) and
            `GEM_BUNDLE_DISABLE_PLUGINS` (names not to load) are looked up; by default the process's.
        entry_points: What to load; by default the installed entry points of the group.
    """
    if environment is None:
        environment = os.environ
    picks, blocks = environment.get(PICK), environment.get(BLOCK)
    if entry_points is not None:
        return _loaded(entry_points, picks, blocks)
    state = (installed.state(), picks, blocks)
    if (found := _found.get(state)) is None:
        found = _loaded(installed.entry_points(GROUP), picks, blocks)
        _found.clear()
        # What is broken is mended in its files, and those aren't part of the state.
        if not found.broken:
            _found[state] = found
    return found.copy()


_found: dict[tuple[object, ...], Registry] = {}


def _loaded(entry_points: Iterable[EntryPoint], picks: str | None, blocks: str | None) -> Registry:
    picked = names_in(picks)
    blocked = names_in(blocks) or set()
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    registry = Registry()
    points = sorted(entry_points, key=lambda point: (point.name, point.value))
    owners: dict[int, tuple[str, str]] = {}
    for point in points:
        if point.name in blocked or (picked is not None and point.name not in picked):
            continue
        origin = _origin(point, owners)
        problem = _load_plugin(manager, registry, point, origin)
        if problem:
            registry.broken.append(BrokenPlugin(origin, problem))
    for name in sorted((picked or set()) - {point.name for point in points}):
        registry.broken.append(BrokenPlugin(Origin(name, PICK, ""), "there is no such plugin"))
    return registry


def _load_plugin(manager: pluggy.PluginManager, registry: Registry, point: EntryPoint, origin: Origin) -> str:
    """Load one plugin and take its gems; returns what is wrong, or an empty string."""
    found: list[GemEntry] = []
    sections: list[SectionEntry] = []

    def register(kind: Kind, name: str, gem: type[Gem] | str) -> None:
        if kind not in KINDS:
            raise ValueError(f"a gem is a {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {kind!r}")
        if not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"a gem's name has letters, digits and underscores, unlike {name!r}")
        if not (isinstance(gem, type) or (isinstance(gem, str) and _REFERENCE.fullmatch(gem))):
            raise ValueError(f"the {kind} `{name}` must be a class or 'module:Class', not {gem!r}")
        found.append(GemEntry(kind, name, gem, origin))

    def register_section(name: str, model: str) -> None:
        if name not in OF_PLUGINS:
            known = listed_names(OF_PLUGINS)
            raise ValueError(f"the sections of plugins are {known}, and not {name!r}")
        if not (isinstance(model, str) and _REFERENCE.fullmatch(model)):
            raise ValueError(f"the section `{name}` must be 'module:Class', not {model!r}")
        sections.append(SectionEntry(name, model, origin))

    unique = f"{point.name}@{origin.distribution}"
    try:
        plugin = point.load()
        manager.register(plugin, name=unique)
        manager.check_pending()
        others = [other for name, other in manager.list_name_plugin() if name != unique]
        manager.subset_hook_caller("gem_bundle_register_gems", others)(register=register)
        manager.subset_hook_caller("gem_bundle_register_sections", others)(register=register_section)
        for section in sections:
            if section.name in registry.sections:
                owner = registry.sections[section.name].origin
                raise ValueError(f"the section `{section.name}` is read by `{owner}` already")
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever it raises, others go on)
        if manager.has_plugin(unique):
            manager.unregister(name=unique)
        if isinstance(error, pluggy.PluginValidationError):
            return " ".join(str(error).split())  # what is wrong is in its last line
        return describe_error(error)
    for entry in found:
        registry.add(entry)
    registry.sections.update({section.name: section for section in sections})
    for hook in manager.hook.gem_bundle_check_pipeline.get_hookimpls():
        if hook.plugin_name == unique:
            registry.rules.append(Rule(origin, hook))
    for hook in manager.hook.gem_bundle_read_version.get_hookimpls():
        if hook.plugin_name == unique:
            registry.version_readers.append(VersionReader(origin, hook))
    return ""


def _origin(point: EntryPoint, owners: dict[int, tuple[str, str]]) -> Origin:
    """Where a plugin comes from; `owners` keeps what was read, since reading it takes a while."""
    distribution = point.dist
    if distribution is None:
        return Origin(point.name, point.value, "")
    owner = owners.get(id(distribution))
    if owner is None:
        metadata = distribution.metadata
        owner = (str(metadata["Name"] or point.value), str(metadata["Version"] or ""))
        owners[id(distribution)] = owner
    return Origin(point.name, *owner)


def names_in(text: str | None) -> set[str] | None:
    """The names in a list with commas; None for an empty one."""
    if text is None or not text.strip():
        return None
    return {name.strip() for name in text.split(",") if name.strip()}
