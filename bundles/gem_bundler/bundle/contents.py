"""What of a project goes into a bundle: pipeline files, texts that they name, the user's modules, own gems.

Data doesn't. Whatever is wrong is collected, so that one build says it all.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.installed import entry_points
from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.loader import LoadOptions, load_file, read_file
from gem_bundle.plugins import GROUP, load_registry
from gem_bundle.types import holds_secret, is_remote
from gem_bundler.bundle.modules import Import, Modules
from gem_bundler.bundle.option_values import FILE, FUNCTION, PATH, SECRET, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.pipeline.document import Path as Way
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import GemEntry, Registry
    from gem_bundler.bundle.model import LockedDistribution

# A cluster's Python has them without anybody's doing.
OF_THE_CLUSTER = frozenset({"pyspark", "py4j"})


@dataclass(frozen=True)
class Contents:
    """What goes into a bundle's wheel, before the build adds its own files.

    Args:
        pipelines: The pipeline files, and the files with texts that their options name, byte for byte, by
            their path within the project, with ``/``.
        files: The files of the modules, by their path under the folder they are imported from.
        modules: The import names of the modules and packages.
        entry_points: ``name`` and ``module`` of the plugins that live in the project.
        own: The distributions that live in the project; what is packed of them must not be in the
            dependencies too, but what they require must be.
        imports: What the modules and the pipelines use from elsewhere.
        diagnostics: What is wrong.
    """

    pipelines: Mapping[str, bytes]
    files: Mapping[str, bytes]
    modules: tuple[str, ...] = ()
    entry_points: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def collect(definitions: Sequence[Definition], project: Path, registry: Registry | None = None) -> Contents:
    """What of a project its pipelines need.

    Nothing is imported but the gems in use, which the check before has imported already.

    Args:
        definitions: The pipelines, read from files, and found without errors by a check.
        project: The project's folder.
        registry: The installed gems.

    Raises:
        PluginError: When a gem isn't installed, which a check would have said.
    """
    return _Collector(project, load_registry() if registry is None else registry).collect(definitions)


def check_dependencies(contents: Contents, distributions: Iterable[LockedDistribution]) -> list[Diagnostic]:
    """What the modules import that the bundle doesn't bring, and their names that hide dependencies.

    Args:
        contents: What goes into the wheel.
        distributions: What the bundle brings, or the cluster installs.
    """
    brought = dict.fromkeys(OF_THE_CLUSTER, "Spark")
    for distribution in distributions:
        brought |= {name.partition(".")[0]: distribution.name for name in distribution.modules}
    found: list[Diagnostic] = []
    for name in contents.modules:
        if name in brought:
            message = f"the module `{name}` has the name of a module of `{brought[name]}`"
            hint = "The bundle brings both, and only one can be imported. Give yours another name."
            found.append(Diagnostic("GB627", "error", message, hint=hint))
    missing: dict[tuple[str, str], Import] = {}
    for used in contents.imports:
        if used.top not in brought:
            missing.setdefault((used.top, used.place.file), used)
    if missing:
        from importlib.metadata import packages_distributions

        owners = packages_distributions()
        found += [_not_brought(used, owners.get(used.top)) for used in missing.values()]
    return found


def _not_brought(used: Import, owners: Sequence[str] | None) -> Diagnostic:
    distribution = owners[0] if owners else used.top
    subject = f"`{used.node}`: " if used.node else ""
    origin = f"which `{distribution}` has" if owners else "which isn't installed here either"
    message = f"{subject}`{used.name}` is imported, {origin}, and nothing in the bundle brings it"
    hint = f"Add `{distribution}` to what the bundle depends on, or do without the import."
    return Diagnostic("GB624", "error", message, used.node, (), used.place, hint)


class _Collector:
    def __init__(self, project: Path, registry: Registry) -> None:
        self._project = project.resolve()
        self._written = project.absolute()
        self._registry = registry
        self._pipelines: dict[str, bytes] = {}
        self._found: list[Diagnostic] = []
        self._entry_points: dict[tuple[str, str], None] = {}
        self._own: dict[str, None] = {}

    def collect(self, definitions: Sequence[Definition]) -> Contents:
        reserved = frozenset(f"{definition.name}_bundle" for definition in definitions)
        modules = Modules(self._project, reserved)
        names: dict[str, str] = {}
        for definition in definitions:
            first = names.setdefault(definition.name, definition.file)
            if first != definition.file:
                message = f"the pipeline `{definition.name}` is in the bundle twice, first from {first}"
                place = definition.locator.place(("pipeline",))
                hint = "Rename one: by its name a pipeline is started, and has its checkpoints."
                self._found.append(Diagnostic("GB628", "error", message, place=place, hint=hint))
            if not self._pipeline(definition):
                continue
            raw = read_file(definition.file).values or {}
            for node in definition.nodes.values():
                self._own_gem(self._gem(node), modules)
            self._functions(definition, raw, modules)
            self._texts(definition, raw)
            self._paths(definition, raw)
            self._secrets(definition, raw)
        return Contents(
            self._pipelines,
            modules.files,
            modules.names,
            tuple(sorted(self._entry_points)),
            tuple(sorted(self._own)),
            tuple(modules.imports),
            tuple(dict.fromkeys([*self._found, *modules.diagnostics])),
        )

    def _pipeline(self, definition: Definition) -> bool:
        """Take a pipeline file, if it can be taken."""
        file = Path(definition.file)
        path = Path(posixpath.normpath(file.absolute()))
        base = next((b for b in (self._written, self._project) if path.is_relative_to(b)), None)
        place = Place(definition.file)
        if base is None or not file.resolve().is_relative_to(self._project):
            message = f"the pipeline file is outside the project `{self._written}`"
            hint = "Move it into the project, or build in the folder that holds both."
            self._found.append(Diagnostic("GB621", "error", message, place=place, hint=hint))
            return False
        name = path.relative_to(base).as_posix()
        if not name.isprintable():
            message = "the pipeline file's path has characters that can't be printed"
            hint = "Rename it: not every cluster could read its name."
            self._found.append(Diagnostic("GB634", "error", message, place=place, hint=hint))
            return False
        self._pipelines[name] = file.read_bytes()
        return True

    def _gem(self, node: Node) -> GemEntry:
        return self._registry.get(node.kind, node.gem)

    # Gems of the project

    def _own_gem(self, entry: GemEntry, modules: Modules) -> None:
        """Take the package of a gem that lives in the project, and its plugin's entry point."""
        if entry.origin.distribution == "gem-bundle":
            return
        point = _entry_point(entry)
        if point is None or point[1].partition(".")[0] in {"gem_bundle", "gem_bundler"}:
            return
        module = point[1].partition(":")[0]
        root = modules.own_root(module)
        if root is None:
            return
        self._entry_points[point] = None
        self._own[_normal(entry.origin.distribution)] = None
        for name in dict.fromkeys((module, entry.load().__module__)):
            modules.add(name, root, Place(str(root)))

    # What options say

    def _functions(self, definition: Definition, raw: Any, modules: Modules) -> None:
        """Take the modules of the functions that options name, with every profile's parameters."""
        for node, place, value in self._named(definition, raw, FUNCTION):
            modules.add(value.partition(":")[0], definition.folder.resolve(), place, node.id)

    def _texts(self, definition: Definition, raw: Any) -> None:
        """Take the files with texts that options name, with every profile's parameters."""
        for node, place, value in self._named(definition, raw, FILE):
            self._text(definition, node, place, value.removeprefix("file:"))

    def _text(self, definition: Definition, node: Node, place: Place, value: str) -> None:
        if value.startswith("/"):
            message = f"`{node.id}`: the path `{value}` is one of this machine, so the file stays out"
            hint = "Write it relative to the pipeline file: then it goes into the bundle."
            self._found.append(Diagnostic("GB622", "warning", message, node.id, (), place, hint))
            return
        folder = Path(posixpath.normpath(Path(definition.file).absolute())).parent
        path = Path(posixpath.normpath(folder / value))
        base = next((b for b in (self._written, self._project) if path.is_relative_to(b)), None)
        if base is None or not path.resolve().is_relative_to(self._project):
            message = f"`{node.id}`: the file `{value}` is outside the project `{self._written}`"
            hint = "Move it into the project, or build in the folder that holds both."
            self._found.append(Diagnostic("GB621", "error", message, node.id, (), place, hint))
            return
        try:
            self._pipelines[path.relative_to(base).as_posix()] = path.read_bytes()
        except OSError as error:
            message = (
                f"`{node.id}`: the file `{value}` can't be read: {(error.strerror or str(error)).lower()}"
            )
            hint = "Put it there, or correct the path."
            self._found.append(Diagnostic("GB634", "error", message, node.id, (), place, hint))

    def _named(self, definition: Definition, raw: Any, kind: Any) -> Iterator[tuple[Node, Place, str]]:
        """What options name that is to be packed, and where, with every profile's parameters."""
        by_parameter = False
        for node, way, value in self._values(definition, kind):
            written, _ = _written(raw, way)
            by_parameter = by_parameter or "${" in written
            if isinstance(value, Unknown) or "${env:" in written:
                self._unknown(definition, node, way, is_function=kind is FUNCTION)
        variants = self._variants(definition, raw.get("profiles")) if by_parameter else [definition]
        for variant in variants:
            for node, way, value in self._values(variant, kind):
                if isinstance(value, str) and not isinstance(value, Unknown):
                    yield node, variant.locator.place(way), value

    def _variants(self, definition: Definition, profiles: Any) -> Iterator[Definition]:
        yield definition
        for profile in profiles if isinstance(profiles, dict) else ():
            if profile != definition.profile:
                options = LoadOptions(profile=profile, skip_env=True, require_parameters=False)
                loaded = load_file(definition.file, options).definition
                if loaded is not None:
                    yield loaded

    def _unknown(self, definition: Definition, node: Node, way: Way, *, is_function: bool) -> None:
        does, what = ("function it calls", "its module") if is_function else ("file it reads", "it")
        message = f"`{node.id}`: which {does} is known at the start only"
        hint = f"Use a parameter with a default, or with values in profiles, so that {what} is packed."
        place = definition.locator.place(way)
        self._found.append(Diagnostic("GB635", "warning", message, node.id, way, place, hint))

    def _values(self, definition: Definition, kind: Any) -> Iterator[tuple[Node, Way, Any]]:
        for node in definition.nodes.values():
            for way, value in values_of(kind, self._gem(node).load().options_type, node.options):
                yield node, (*node.path, "options", *way), value

    def _paths(self, definition: Definition, raw: Any) -> None:
        """Report paths that lead out of the project, and those of this machine."""
        for node, way, value in self._values(definition, PATH):
            if isinstance(value, str) and not isinstance(value, Unknown):
                self._path(definition, value, way, node.id)
        written = raw.get("checkpoints")
        if isinstance(written, str) and "${" not in written:
            self._path(definition, written, ("checkpoints",), None)

    def _path(self, definition: Definition, value: str, way: Way, node: str | None) -> None:
        subject = f"`{node}`: " if node else ""
        place = definition.locator.place(way)
        text = re.sub(r"^file:(//)?", "", value)
        if is_remote(value):
            return
        if not text.startswith("/"):
            if posixpath.normpath(text).split("/")[0] == "..":
                message = f"{subject}the path `{value}` leads out of the folder that the job runs in"
                hint = "Write it without `..`, as a URL, or use a parameter that is given at the start."
                self._found.append(Diagnostic("GB621", "error", message, node, way, place, hint))
        elif any(_is_below(text, base) for base in (self._written, self._project, Path.home())):
            message = f"{subject}the path `{value}` is one of this machine"
            hint = "Write it relative to the pipeline file, or use a parameter that is given at the start."
            self._found.append(Diagnostic("GB622", "warning", message, node, way, place, hint))

    def _secrets(self, definition: Definition, raw: Any) -> None:
        """Report secrets that the file spells out: the bundle would hold them."""
        declared = {way: node.id for node, way, _ in self._values(definition, SECRET)}
        for way, node_id in declared.items():
            for place in self._spelled_out(definition, raw, way):
                self._secret(definition, node_id, str(way[3]), place)
        for named, way in self._settings(definition):
            for place in self._spelled_out(definition, raw, way) if way not in declared else ():
                self._secret(definition, named, str(way[-1]), place)

    def _settings(self, definition: Definition) -> Iterator[tuple[str | None, Way]]:
        """What is passed on to Spark or a catalog as it is, and holds a secret by its name or its value."""
        for node in definition.nodes.values():
            for option, value in node.options.items():
                for way, name, text in _texts_below(value, (*node.path, "options", option)):
                    if holds_secret(name, text):
                        yield node.id, way
        for name, value in definition.spark.items():
            if holds_secret(name, value):
                yield None, ("spark", name)

    def _spelled_out(self, definition: Definition, raw: Any, way: Way) -> Iterator[Way]:
        """Where the secret is spelled out that an option holds or refers to."""
        written, rest = _written(raw, way)
        if written and "${" not in written:
            yield way
        for name in re.findall(r"\$\{\s*(\w+)\s*\}", written):
            parameter = definition.parameters.get(name)
            if parameter is not None and not parameter.required and _is_literal(_at(parameter.default, rest)):
                yield (*parameter.path, *rest)
            for profile in raw.get("profiles") or ():
                if _is_literal(_at(raw, ("profiles", profile, name, *rest))):
                    yield ("profiles", profile, name, *rest)

    def _secret(self, definition: Definition, node: str | None, option: str, way: Way) -> None:
        place = definition.locator.place(way)
        subject = f"`{node}`: " if node else ""
        message = f"{subject}the secret `{option}` is spelled out in the pipeline file"
        hint = "Everyone who has the bundle could read it. Write `${secret:scope/key}` and change the secret."
        self._found.append(Diagnostic("GB629", "error", message, node, way, place, hint))


def _entry_point(entry: GemEntry) -> tuple[str, str] | None:
    """The name and the module of the entry point that registers a gem."""
    for point in entry_points(GROUP):
        if point.name != entry.origin.plugin or point.dist is None:
            continue
        if point.dist.metadata["Name"] == entry.origin.distribution:
            return point.name, point.value
    return None


def _is_below(text: str, folder: Path) -> bool:
    return len(folder.parts) > 1 and PurePosixPath(text).is_relative_to(folder.as_posix())


def _is_literal(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "${" not in value


def _at(values: Any, way: Iterable[str | int]) -> Any:
    """The value at the end of a way through mappings and lists, or None."""
    for step in way:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return None
    return values


def _texts_below(value: Any, way: Way) -> Iterator[tuple[Way, str, str]]:
    """The texts in the mappings of an option, with where each is and its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and not isinstance(inner, Unknown):
                yield (*way, name), str(name), inner
            else:
                yield from _texts_below(inner, (*way, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts_below(inner, (*way, number))


def _written(values: Any, way: Way) -> tuple[str, Way]:
    """The text on a way through mappings and lists, and what of the way is left behind it.

    Something is left where a reference stands for the whole mapping or list.
    """
    for count, step in enumerate(way):
        if isinstance(values, str):
            return values, way[count:]
        values = _at(values, (step,))
    return (values if isinstance(values, str) else ""), ()


def _normal(name: str) -> str:
    """A distribution's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()
