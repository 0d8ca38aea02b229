"""What a module imports, read from its text."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPECTED = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_BY_NAME = frozenset({"import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class ImportStatement:
    """One import.

    Args:
        module: What stands after ``import`` or ``from``; empty in ``from . import x``.
        names: What is imported from it; empty for a plain ``import``.
        level: How many dots stand before the module.
        line: Its line, from 1.
        column: Its column, from 1.
        optional: The module goes on without it: the import stands in a ``try`` that expects its failure.
    """

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    column: int
    optional: bool

    def modules(self, package: str) -> Iterator[tuple[str, bool]]:
        """The modules it means, each with whether its last part may be no module at all.

        Args:
            package: The package that the importing module is in.
        """
        base = self.module
        if self.level:
            above = package.split(".") if package else []
            above = above[: len(above) - self.level + 1]
            base = ".".join([*above, self.module] if self.module else above)
        if base:
            yield base, False
        for name in self.names:
            if name != "*" and base:
                yield f"{base}.{name}", True


def imports_of(source: bytes) -> list[ImportStatement]:
    """What a module imports when it is imported or when its functions are called.

    Imports for type checkers alone (``if TYPE_CHECKING``) are left out. `importlib.import_module` with a
    constant name counts.

    Raises:
        SyntaxError: When it isn't Python.
        ValueError: When it contains null characters.
    """
    found: list[ImportStatement] = []
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:  # and no recursion: long sums are deep trees
        node, optional = waiting.pop()
        if isinstance(node, ast.Import):
            found += [_statement(node, alias.name, (), 0, optional) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            found.append(_statement(node, node.module or "", names, node.level, optional))
        elif isinstance(node, ast.Call):
            found += _by_name(node, optional)
        waiting += [(child, optional or is_tried) for child, is_tried in reversed(_children(node))]
    return found


def _children(node: ast.AST) -> list[tuple[ast.AST, bool]]:
    """What stands in a node, each with whether its failure to import is expected."""
    if isinstance(node, ast.If) and _is_for_type_checkers(node.test):
        return [(child, False) for child in node.orelse]
    if isinstance(node, ast.Try) and any(map(_expects_failure, node.handlers)):
        rest = (*node.handlers, *node.orelse, *node.finalbody)
        return [*((child, True) for child in node.body), *((child, False) for child in rest)]
    return [(child, False) for child in ast.iter_child_nodes(node)]


def _by_name(call: ast.Call, optional: bool) -> Iterator[ImportStatement]:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _BY_NAME or len(call.args) != 1:
        return
    argument = call.args[0]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        parts = argument.value.split(".")
        if all(part.isidentifier() for part in parts):
            yield _statement(call, argument.value, (), 0, optional)


def _statement(
    node: ast.stmt | ast.expr, module: str, names: tuple[str, ...], level: int, optional: bool
) -> ImportStatement:
    return ImportStatement(module, names, level, node.lineno, node.col_offset + 1, optional)


def _is_for_type_checkers(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _expects_failure(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(each).rpartition(".")[2] in _EXPECTED for each in types)
