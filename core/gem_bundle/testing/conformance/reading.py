"""The source code of a gem: the modules of its own package that it is made of."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.gem import Gem

_VALIDATORS = {"field_validator", "model_validator", "validator", "root_validator"}


class Use(NamedTuple):
    """A name, a text or an import in a gem's code, and where it stands."""

    name: str
    place: str


@dataclass
class OwnCode:
    """What stands in the modules of a gem's own package that its module imports, itself included.

    Args:
        package: The top-level package, or the module.
        files: The files that were read.
        attributes: What is taken of an object, ``options`` of ``self.options``, with its place.
        texts: All texts.
        imports: The modules that are imported, with their place.
    """

    package: str
    files: list[Path] = field(default_factory=list)
    attributes: list[Use] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    imports: list[Use] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names of all attributes."""
        return {use.name for use in self.attributes}

    @classmethod
    def of(cls, gem: type[Gem[Any]]) -> OwnCode:
        """Read the code of a gem, and of the options and classes that it derives from."""
        package = gem.__module__.partition(".")[0]
        code = cls(package)
        own = (base for of in (gem, gem.options_type) for base in of.__mro__)
        waiting = [base.__module__ for base in own if base.__module__.partition(".")[0] == package]
        seen: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            file = _file(module)
            if file is not None:
                code.files.append(file)
                waiting += code._read(file, module)
        return code

    def _read(self, file: Path, module: str) -> list[str]:
        """Take in a file; the modules of the package that it imports."""
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        inner = []
        for node in _walk(tree):
            place = f"{file.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Attribute):
                self.attributes.append(Use(node.attr, place))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.texts.add(node.value)
            for name in _imported(node, module, is_package=file.name == "__init__.py"):
                self.imports.append(Use(name, place))
                if name.partition(".")[0] == self.package:
                    inner.append(name)
        return inner


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but for the bodies of validators: to validate an option isn't to use it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and any(map(_is_validator, child.decorator_list)):
            continue
        yield child
        yield from _walk(child)


def _is_validator(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _VALIDATORS


def _imported(node: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """The modules that a statement imports; a name that is taken from one may be a module too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            above = parts[: len(parts) - node.level + is_package]
            base = ".".join([*above, base] if base else above)
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    """The file of a module, None for a name that is no module."""
    loaded = sys.modules.get(module)
    if loaded is None:
        parent = module.rpartition(".")[0]
        # A class taken from a module has that module for a parent, which is no package.
        if parent and not hasattr(import_module(parent) if _file(parent) else None, "__path__"):
            return None
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            return None
        origin = spec.origin if spec is not None else None
    else:
        origin = getattr(loaded, "__file__", None)
    return Path(origin) if origin is not None and origin.endswith(".py") else None
