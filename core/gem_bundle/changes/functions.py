"""What identifies the Python code that a pipeline names, without importing it.

The hash of a function covers what decides on what it does: its syntax tree without comments, formatting and
docstrings, and that of everything it uses in its module and in modules beside the pipeline file. It doesn't
cover installed packages, whose versions are their own business.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.python import read_module, source_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def function_hash(reference: str, folder: Path) -> str:
    """What identifies the code of a function or class.

    Args:
        reference: ``module:name``; the name may have dots.
        folder: The pipeline file's folder, which comes first on Python's path.

    Returns:
        A hash in hexadecimal digits; an empty text where the code can't be found or read.
    """
    module, _, name = reference.partition(":")
    modules = _Modules(folder)
    if modules.statements(module) is None:
        return ""
    found = _closure(modules, module, name.partition(".")[0])
    if not found:
        return ""
    digest = sha256()
    for part in sorted(found):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


class _Statement(NamedTuple):
    """A statement of a module's top level.

    Args:
        binds: The names it gives a value to.
        uses: The names it asks for.
        imports: The modules that it imports, and which name of each: None for the module itself, ``*`` for
            all of it; by the name it is known by here.
        text: What identifies it.
        defines: It does nothing but bind its names.
    """

    binds: frozenset[str]
    uses: frozenset[str]
    imports: tuple[tuple[str, str, str | None], ...]
    text: str
    defines: bool


class _Modules:
    """The modules of a pipeline's own code, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[_Statement, ...] | None] = {}

    def statements(self, module: str) -> tuple[_Statement, ...] | None:
        """The top level of a module; None where there is no source of it."""
        if module not in self._read:
            file = source_file(module, self._folder)
            self._read[module] = None if file is None else _statements(file, _stamp(file), module)
        return self._read[module]

    def is_own(self, module: str) -> bool:
        """Whether a module belongs to the pipeline: it isn't Python's own, and not installed."""
        if module.partition(".")[0] in sys.stdlib_module_names:
            return False
        file = source_file(module, self._folder)
        return file is not None and _INSTALLED.isdisjoint(file.parts)


def _closure(modules: _Modules, module: str, name: str) -> set[str]:
    """What identifies a name of a module, and all that it uses."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [(module, name)]
    while waiting:
        module, name = waiting.pop()
        statements = modules.statements(module)
        if statements is None or (module, name) in seen:
            continue
        seen.add((module, name))
        for statement in statements:
            # What only uses a name may change it: `TABLE.update(…)`.
            if not (
                name in statement.binds or name == "*" or (not statement.defines and name in statement.uses)
            ):
                continue
            found.add(f"{module}\0{statement.text}")
            waiting += [(module, used) for used in statement.uses]
            for here, other, what in statement.imports:
                if (name in {here, "*"} or here == "*") and modules.is_own(other):
                    # `from package import module` and `from module import name` look the same.
                    within = f"{other}.{what}"
                    if what not in {None, "*"} and modules.is_own(within):
                        waiting.append((within, "*"))
                    else:
                        waiting.append((other, what if what is not None and here != "*" else "*"))
        if name != "*" and not any(name in statement.binds for statement in statements):
            waiting += [
                (other, name)
                for statement in statements
                for here, other, _ in statement.imports
                if here == "*" and modules.is_own(other)
            ]
    return found


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
) -> tuple[_Statement, ...] | None:
    try:
        tree = ast.parse(read_module(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    return tuple(_statement(node, package) for node in tree.body)


def _statement(node: ast.stmt, package: str) -> _Statement:
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
    simple = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    if simple:
        # What is bound within it is its own, but what it imports is needed whenever it is.
        own = node.name  # type: ignore[attr-defined]
        imports = [(own, module, name) for _, module, name in imports]
        binds = {own}
    elif isinstance(node, ast.AugAssign):
        uses |= binds
    text = "".join(_written(node))
    defines = simple or isinstance(node, ast.Import | ast.ImportFrom) or _only_names(node)
    return _Statement(frozenset(binds), frozenset(uses), tuple(imports), text, defines)


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
    module = node.module or ""
    if node.level:
        parents = package.split(".")
        base = ".".join(parents[: len(parents) - node.level + 1])
        module = f"{base}.{module}".strip(".") if module else base
    for alias in node.names:
        yield (alias.asname or alias.name, module, alias.name)


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
