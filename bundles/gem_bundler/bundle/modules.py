"""The user's Python modules that a bundle brings: those its pipelines name, and what they import.

They are found as a run finds them (the pipeline file's folder first, then what is installed) and read,
never imported.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundler.bundle.imports import ImportStatement, imports_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_NATIVE = (*EXTENSION_SUFFIXES, ".so", ".pyd", ".dylib")
_LEFT_OUT = (".pyc", ".pyo", ".egg-info", ".dist-info")
# What the cluster and every bundle bring along, and modules of these names would hide.
RESERVED = frozenset({"gem_bundle", "gem_bundler", "pyspark", "py4j"})


@dataclass(frozen=True, slots=True)
class Import:
    """An import, or the naming, of a module that is not of the project and not of Python itself.

    Args:
        name: The module, with dots.
        place: Where it is imported or named.
        node: The node that names it, where one does.
    """

    name: str
    place: Place
    node: str | None = None

    @property
    def top(self) -> str:
        """The first part of its name."""
        return self.name.partition(".")[0]


class _Wanted(NamedTuple):
    """A module of the project that something imports.

    Args:
        name: Its name, with dots.
        root: The folder that its top-level package lies in.
        place: Where it is imported.
        node: The node that names it.
        certain: How many parts of its name must be modules; what follows may be names within one.
    """

    name: str
    root: Path
    place: Place
    node: str | None
    certain: int


class Modules:
    """Collects modules.

    Args:
        project: The project's folder; nothing outside it is taken.
        reserved: Import names that are taken already.

    Attributes:
        files: The files of the modules, by their path under the folder they are imported from.
        imports: What they, and the pipelines, use from elsewhere.
        diagnostics: What is wrong.
    """

    def __init__(self, project: Path, reserved: frozenset[str] = frozenset()) -> None:
        self._project = project
        self._reserved = RESERVED | reserved
        self._roots: dict[str, Path] = {}
        self._read: set[Path] = set()
        self._seen: set[tuple[str, Path]] = set()
        self.files: dict[str, bytes] = {}
        self.imports: list[Import] = []
        self.diagnostics: list[Diagnostic] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The import names of the modules and packages that were taken, in order."""
        return tuple(sorted(self._roots))

    def add(self, name: str, folder: Path, place: Place, node: str | None = None) -> None:
        """Take the module that a pipeline names, and what it imports from the project.

        Args:
            name: The module, with dots.
            folder: The pipeline file's folder.
            place: Where it is named.
            node: The node that names it.
        """
        root = self._root(name, folder, place, node)
        if root is not None:
            self._visit(name, root, folder, place, node)
            return
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or self._is_refused(top, folder):
            return
        if _installed_root(top) is not None:
            self.imports.append(Import(name, place, node))
            return
        message = f"{_subject(node)}there is no Python module `{name}`"
        where = f"Put `{name.replace('.', '/')}.py` beside the pipeline file"
        near = self._elsewhere(top)
        hint = f"{where}; there is {near}." if near else f"{where}, or install the package it belongs to."
        self._report("GB620", message, place, hint, node)

    def own_root(self, name: str) -> Path | None:
        """The folder from which a module is imported, if that is within the project."""
        root = _installed_root(name.partition(".")[0])
        return root if root is not None and self._is_own(root) else None

    # Finding

    def _root(self, name: str, folder: Path, place: Place, node: str | None) -> Path | None:
        """The folder that a module of the project is imported from; None for all others."""
        top = name.partition(".")[0]
        if _has(folder, top):
            if top in sys.stdlib_module_names or top in self._reserved:
                if (top, folder) not in self._seen:
                    self._seen.add((top, folder))
                    owner = "Python itself" if top in sys.stdlib_module_names else "gem-bundle or Spark"
                    message = f"{_subject(node)}the module `{top}` has the name of a module of {owner}"
                    hint = "A cluster would import that one. Give yours another name."
                    self._report("GB627", message, Place(_shown(folder / top)), hint, node)
                return None
            return folder
        if _has_python(folder / top) and _installed_root(top) in {None, folder}:
            self._no_init(folder / top, place, node)
            return None
        return None if top in sys.stdlib_module_names else self.own_root(top)

    def _is_refused(self, top: str, folder: Path) -> bool:
        return (top, folder) in self._seen

    def _no_init(self, folder: Path, place: Place, node: str | None) -> None:
        if (folder.name, folder.parent) in self._seen:
            return
        self._seen.add((folder.name, folder.parent))
        message = f"{_subject(node)}the package `{_shown(folder)}` has no `__init__.py`"
        hint = "Python can't import it from the zip that executors get. Add an empty `__init__.py`."
        self._report("GB623", message, place, hint, node)

    def _is_own(self, root: Path) -> bool:
        return root.is_relative_to(self._project) and _INSTALLED.isdisjoint(
            root.relative_to(self._project).parts
        )

    def _elsewhere(self, top: str) -> str:
        """Where in the project a module lies that was looked for in vain."""
        found = sorted(
            path
            for pattern in (f"*/{top}.py", f"*/{top}/__init__.py")
            for path in self._project.glob(pattern)
        )
        return f"one at `{_shown(found[0])}`" if found else ""

    # Following

    def _visit(self, name: str, root: Path, folder: Path, place: Place, node: str | None) -> None:
        """Take a module's top-level package whole, and follow the imports of the module itself."""
        waiting = [_Wanted(name, root, place, node, name.count(".") + 1)]
        while waiting:
            wanted = waiting.pop()
            if not self._take(wanted.name.partition(".")[0], wanted.root, wanted.place, wanted.node):
                continue
            for file, package in self._path(wanted):
                for statement in self._imports(file):
                    waiting += self._targets(statement, file, package, wanted.root, folder)

    def _path(self, wanted: _Wanted) -> Iterator[tuple[Path, str]]:
        """The files that importing a module runs, each with the package it is in, if not read yet."""
        parts = wanted.name.split(".")
        for count in range(1, len(parts) + 1):
            path = wanted.root.joinpath(*parts[:count])
            if (path / "__init__.py").is_file():
                file, package = path / "__init__.py", ".".join(parts[:count])
            elif path.with_name(f"{path.name}.py").is_file():
                file, package = path.with_name(f"{path.name}.py"), ".".join(parts[: count - 1])
            elif _has_python(path):
                self._no_init(path, wanted.place, wanted.node)
                return
            else:
                is_native = any(path.with_name(f"{path.name}{end}").is_file() for end in _NATIVE)
                if not is_native and count <= wanted.certain:
                    name = ".".join(parts[:count])
                    message = f"{_subject(wanted.node)}there is no Python module `{name}`"
                    hint = f"Add it to the package `{parts[0]}`, or correct the name."
                    self._report("GB620", message, wanted.place, hint, wanted.node)
                return
            if file not in self._read:
                self._read.add(file)
                yield file, package

    def _imports(self, file: Path) -> list[ImportStatement]:
        try:
            return imports_of(file.read_bytes())
        except SyntaxError as error:
            place = Place(_shown(file), error.lineno or 0, error.offset or 0)
            message = f"the module isn't Python {sys.version_info[0]}.{sys.version_info[1]}: {error.msg}"
            self._report("GB634", message, place, "Correct it: importing it would fail.")
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            message = f"the module can't be read: {error or type(error).__name__}"
            self._report("GB634", message, Place(_shown(file)), "Make it a readable Python file.")
        return []

    def _targets(
        self, statement: ImportStatement, file: Path, package: str, root: Path, folder: Path
    ) -> Iterator[_Wanted]:
        """The modules of the project that a statement imports; the others are noted."""
        place = Place(_shown(file), statement.line, statement.column)
        for name, attribute in statement.modules(package):
            top = name.partition(".")[0]
            if statement.level:
                base: Path | None = root
            else:
                base = self._root(name, folder, place, None)
            if base is not None:
                certain = 0 if statement.optional else name.count(".") + (not attribute)
                yield _Wanted(name, base, place, None, certain)
            elif not (
                statement.optional
                or attribute
                or top in sys.stdlib_module_names
                or self._is_refused(top, folder)
            ):
                self.imports.append(Import(name, place))

    # Taking

    def _take(self, top: str, root: Path, place: Place, node: str | None) -> bool:
        """Take the files of a top-level module or package; whether there are any."""
        known = self._roots.get(top)
        if known is not None:
            if known != root and not _same(known, root, top):
                message = f"{_subject(node)}`{top}` is another module here than in `{_shown(known)}`"
                hint = "One bundle can have one module of a name. Rename one, or build two bundles."
                self._report("GB627", message, place, hint, node)
                return False
            return True
        self._roots[top] = root
        if (root / top / "__init__.py").is_file():
            self._take_folder(root / top, top, place, node, frozenset())
        else:
            self._take_file(root / f"{top}.py", f"{top}.py", place, node)
        return True

    def _take_folder(
        self, folder: Path, name: str, place: Place, node: str | None, above: frozenset[Path]
    ) -> None:
        real = folder.resolve()
        if real in above:  # a link to a folder around it
            return
        if not real.is_relative_to(self._project):
            self._outside(folder, place, node)
            return
        for entry in sorted(folder.iterdir()):
            if entry.name.startswith(".") or entry.name == "__pycache__" or entry.name.endswith(_LEFT_OUT):
                continue
            if entry.is_dir():
                self._take_folder(entry, f"{name}/{entry.name}", place, node, above | {real})
            else:
                self._take_file(entry, f"{name}/{entry.name}", place, node)

    def _take_file(self, file: Path, name: str, place: Place, node: str | None) -> None:
        if not file.resolve().is_relative_to(self._project):
            self._outside(file, place, node)
        elif file.name.endswith(_NATIVE):
            message = f"{_subject(node)}`{_shown(file)}` is native code, which can't be imported from a zip"
            hint = "Put it into a distribution of its own with a wheel, and depend on that."
            self._report("GB634", message, place, hint, node)
        else:
            try:
                name.encode()
                self.files[name] = file.read_bytes()
            except (OSError, UnicodeEncodeError) as error:
                reason = getattr(error, "strerror", None) or "its name isn't Unicode"
                message = f"{_subject(node)}`{_shown(file)}` can't be packed: {reason}"
                self._report("GB634", message, place, "Make it readable, or remove it.", node)

    def _outside(self, path: Path, place: Place, node: str | None) -> None:
        message = f"{_subject(node)}`{_shown(path)}` leads out of the project `{_shown(self._project)}`"
        hint = "Copy it into the project, or make a distribution of it and depend on that."
        self._report("GB621", message, place, hint, node)

    def _report(self, code: str, message: str, place: Place, hint: str = "", node: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, "error", message, node, (), place, hint))


def _subject(node: str | None) -> str:
    return f"`{node}`: " if node else ""


def _has(folder: Path, top: str) -> bool:
    return (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()


def _has_python(folder: Path) -> bool:
    return folder.is_dir() and any(folder.rglob("*.py"))


def _same(one: Path, other: Path, top: str) -> bool:
    """Whether two modules of a name are single files with the same contents."""
    files = (one / f"{top}.py", other / f"{top}.py")
    return all(file.is_file() for file in files) and files[0].read_bytes() == files[1].read_bytes()


def _installed_root(top: str) -> Path | None:
    """The folder from which this Python would import a module; None when it can't."""
    from importlib.util import find_spec

    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin is None or spec.submodule_search_locations is not None:
        places = list(spec.submodule_search_locations or ())
        return Path(places[0]).resolve().parent if places else None
    return Path(spec.origin).resolve().parent


def _shown(path: Path) -> str:
    """A path as the user would write it: relative where it is below the current folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path != here and path.is_relative_to(here) else str(path)
