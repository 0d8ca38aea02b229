"""The statements at the top level of Python modules: what they bind, use, import and change."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from gem_bundle.python import read_module, source_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;#]+)|import[ \t]+([^\n;#]+))",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement of a module's top level.

    Args:
        node: Its syntax tree.
        binds: The names it gives a value to.
        uses: The names it asks for.
        imports: The modules that it imports, and which name of each: None for the module itself, ``*`` for
            all of it; by the name it is known by here.
    """

    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]
    imports: tuple[tuple[str, str, str | None], ...]

    @cached_property
    def text(self) -> str:
        """What identifies it."""
        return "".join(_written(self.node))

    @property
    def defines_code(self) -> bool:
        """It defines a function or a class."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)

    @property
    def defines(self) -> bool:
        """It does nothing but bind its names."""
        return (
            self.defines_code or isinstance(self.node, ast.Import | ast.ImportFrom) or _only_names(self.node)
        )


class Modules:
    """The modules of a pipeline's own code, by name.

    Args:
        folder: The pipeline file's folder, which comes first on Python's path.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Path | None] = {}
        self._texts: dict[str, str] = {}
        self._read: dict[str, tuple[Statement, ...] | None] = {}

    def statements(self, module: str) -> tuple[Statement, ...] | None:
        """The top level of a module; None where there is no source of it."""
        if module not in self._read:
            file = self._file(module)
            self._read[module] = None if file is None else _statements(file, _stamp(file), module)
        return self._read[module]

    def is_own(self, module: str) -> bool:
        """Whether a module belongs to the pipeline: it isn't Python's own, and not installed."""
        if module.partition(".")[0] in sys.stdlib_module_names:
            return False
        file = self._file(module)
        return file is not None and _INSTALLED.isdisjoint(file.parts)

    def text(self, module: str) -> str:
        """What is written in a module; an empty text where that can't be read."""
        if module not in self._texts:
            file = self._file(module)
            try:
                self._texts[module] = "" if file is None else read_module(file).decode(errors="replace")
            except OSError:
                self._texts[module] = ""
        return self._texts[module]

    def imported(self, module: str) -> Iterator[str]:
        """What a module may import, of modules and names in them, with the packages around them."""
        file = self._file(module)
        package = _package(module, file)
        for whole, names, modules in _IMPORTS.findall(self.text(module).replace("\\\n", " ")):
            base = _absolute(whole.lstrip("."), len(whole) - len(whole.lstrip(".")), package)
            for name in re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", names or modules)):
                parts = f"{base}.{name}".strip(".").split(".")
                yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))

    def _file(self, module: str) -> Path | None:
        if module not in self._files:
            self._files[module] = source_file(module, self._folder)
        return self._files[module]


def _package(module: str, file: Path | None) -> str:
    """The package from which the names of a module's relative imports go."""
    return module if file is not None and file.stem == "__init__" else module.rpartition(".")[0]


def _stamp(file: Path) -> tuple[int, int]:
    """What changes when a file does, or the zip file that it lies in."""
    try:
        found = next(place for place in (file, *file.parents) if place.exists()).stat()
    except (OSError, StopIteration):
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


@cache
def _statements(
    file: Path,
    stamp: tuple[int, int],  # noqa: ARG001 (a file that changed is read anew)
    module: str,
) -> tuple[Statement, ...] | None:
    try:
        tree = ast.parse(read_module(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    package = _package(module, file)
    return tuple(_statement(node, package) for node in tree.body)


def _statement(node: ast.stmt, package: str) -> Statement:
    binds: set[str] = set()
    uses: set[str] = set()
    imports: list[tuple[str, str, str | None]] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (uses if isinstance(inner.ctx, ast.Load) else binds).add(inner.id)
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            binds.add(inner.name)
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            for here, module, name in _imported(inner, package):
                imports.append((here, module, name))
                binds.add(here)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        # What is bound within it is its own, but what it imports is needed whenever it is.
        imports = [(node.name, module, name) for _, module, name in imports]
        binds = {node.name}
    elif isinstance(node, ast.AugAssign):
        uses |= binds
    return Statement(node, frozenset(binds), frozenset(uses), tuple(imports))


def _only_names(node: ast.stmt) -> bool:
    """Whether an assignment gives values to names alone: `TABLE["a"] = 1` and `Job.limit = 1` do not."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    waiting: list[ast.expr] = list(node.targets) if isinstance(node, ast.Assign) else [node.target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        elif not isinstance(target, ast.Name):
            return False
    return True


def _imported(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, str, str | None]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            # `import a.b` binds `a`, and makes `a.b` known within it.
            yield (alias.asname or alias.name.partition(".")[0], alias.name, None)
        return
    module = _absolute(node.module or "", node.level, package)
    for alias in node.names:
        yield (alias.asname or alias.name, module, alias.name)


def _absolute(module: str, level: int, package: str) -> str:
    """The whole name of a module that is named from within a package, so many levels up."""
    if not level:
        return module
    parents = package.split(".")
    base = ".".join(parents[: len(parents) - level + 1])
    return f"{base}.{module}".strip(".") if module else base


def _written(node: object) -> Iterator[str]:
    """A syntax tree as text: the same from one version of Python to the next, without docstrings."""
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            kept = _without_docstring(node, value) if name == "body" else value
            if kept in (None, []) or name in {"kind", "type_comment", "type_ignores"}:
                continue
            yield f" {name}="
            yield from _written(kept)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for item in node:
            yield from _written(item)
            yield ","
        yield "]"
    else:
        yield f"{type(node).__name__}:{node!r}"


def _without_docstring(node: ast.AST, body: object) -> object:
    if (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and isinstance(body, list)
        and body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        return body[1:]
    return body
