"""Whether what a pipeline file names to be called is there, and takes what it is given: by its source.

Nothing is imported for it. Where a source doesn't tell for certain, nothing is said.
"""

from __future__ import annotations

import ast
import inspect
import sys
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.check.report import from_finding, gem_failed
from gem_bundle.diagnostics import Finding, suggest
from gem_bundle.python import is_installed, module_spec, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.semantics import Called

# With them a module has names that aren't written in it.
_MAKE_NAMES = frozenset(
    {"__dict__", "__getattr__", "eval", "exec", "globals", "locals", "modules", "setattr", "vars"}
)
_WITHOUT_ARGUMENTS = frozenset({"ABC", "Generic", "Protocol", "StatefulProcessor", "object"})
# In the body of a class: what else could stand there may make a method.
_PLAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Expr, ast.AnnAssign, ast.Pass, ast.ClassDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_called(plan: Plan) -> list[Diagnostic]:
    """What is certainly wrong with the functions and classes that a pipeline names.

    Args:
        plan: The pipeline.

    Returns:
        GB506 where there is no such name, GB507 where it takes something else; and the warning GB506 where
        there is no such module in this environment.
    """
    found: list[Diagnostic] = []
    definition = plan.definition
    for name, gem in plan.gems.items():
        node = plan.node(name)
        try:
            called = list(gem.called())
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(definition, node, "called", error))
            continue
        for one in called:
            findings = _findings(one, definition.module_folder)
            found += [from_finding(definition, node, finding, gem) for finding in findings]
    return found


def _findings(called: Called, folder: Path) -> Iterator[Finding]:
    reference, given, option = called.reference, called.given, called.option
    module, _, path = reference.partition(":")
    found = _there(module, folder)
    if isinstance(found, Finding):
        yield Finding(found.code, found.message, found.hint, option, found.severity)
    if found is None or isinstance(found, Finding) or is_installed(found.origin or ""):
        return
    tree = source_of(found)
    names = None if tree is None else _names(tree)
    name, _, rest = path.partition(".")
    if tree is None or names is None:
        return
    if name not in names:
        # A module in a package is an attribute of it once somebody has imported it.
        if found.submodule_search_locations is None or module_spec(f"{module}.{name}", folder, found) is None:
            public = [
                known
                for known, nodes in names.items()
                if not known.startswith("_") and isinstance(nodes[-1], _Function | ast.ClassDef)
            ]
            hint = suggest(name, public, what="names there")
            yield Finding("GB506", f"`{module}` has no `{name}`", hint, option)
        return
    (*others, made) = names[name]
    if rest or others or not isinstance(made, ast.FunctionDef | ast.ClassDef):
        return
    if isinstance(made, ast.ClassDef) and called.class_given is not None:
        given = called.class_given
    signature = _signature(made, names)
    if signature is None:
        return
    try:
        signature.bind(*given, **called.arguments)
    except TypeError as error:
        named = ", ".join([*given, *called.arguments])
        yield Finding(
            "GB507",
            f"`{reference}` is called with ({named}) but takes {name}{signature}: {error}",
            "Change its parameters, or the option `arguments`.",
            "arguments" if called.arguments else option,
        )


def _there(module: str, folder: Path) -> ModuleSpec | Finding | None:
    """Where a module is, or that it isn't; None where that can't be told."""
    names = module.split(".")
    around: ModuleSpec | None = None
    for number in range(len(names)):
        name = ".".join(names[: number + 1])
        found = module_spec(name, folder, around)
        if found is None:
            if around is None and name in sys.modules:
                return None  # `__main__`, or one that was made by hand
            return _missing(module, name, around)
        around = found
    return around


def _missing(module: str, name: str, around: ModuleSpec | None) -> Finding:
    file = f"{module.replace('.', '/')}.py"
    if around is not None and around.origin is not None and not is_installed(around.origin):
        tree = source_of(around)
        if tree is not None and not _mentions(tree, {"__path__", *_MAKE_NAMES}):
            message = f"there is no Python module `{name}`: `{around.name}` has none of that name"
            return Finding("GB506", message, f"Put `{file}` there.")
    return Finding(
        "GB506",
        f"there is no Python module `{name}` beside the pipeline file, nor in this environment",
        f"Put `{file}` beside the pipeline file. If it is installed where the pipeline runs, all is well.",
        severity="warning",
    )


class _Default(NamedTuple):
    """A parameter's default as it is written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _names(tree: ast.Module) -> dict[str, list[ast.AST]] | None:
    """What binds each name of a module; None where it may have others."""
    if _mentions(tree, _MAKE_NAMES):
        return None
    found: dict[str, list[ast.AST]] = {}
    for node in _of_module(tree):
        if isinstance(node, _Function | ast.ClassDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    return None
                found.setdefault(alias.asname or alias.name.partition(".")[0], []).append(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.setdefault(node.rest, []).append(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            for name in node.names:
                found.setdefault(name, []).append(node)
    return found


def _of_module(tree: ast.Module) -> Iterator[ast.AST]:
    """The parts of a module that don't stand in a function or class of it."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _mentions(tree: ast.Module, names: Iterable[str]) -> bool:
    wanted = set(names)
    return any(
        (isinstance(node, ast.Name) and node.id in wanted)
        or (isinstance(node, ast.Attribute) and node.attr in wanted)
        or (isinstance(node, _Function) and node.name in wanted)
        for node in ast.walk(tree)
    )


def _signature(
    made: ast.FunctionDef | ast.ClassDef, names: Mapping[str, Sequence[ast.AST]]
) -> inspect.Signature | None:
    """What a function or class is called with; None where that isn't certain."""
    if made.decorator_list:
        return None
    if isinstance(made, ast.FunctionDef):
        return _parameters(made.args)
    own = {node.name: node for node in made.body if isinstance(node, _Function)}
    plain = all(isinstance(node, _PLAIN) or _assigns_value(node) for node in made.body)
    if made.keywords or not plain or "__new__" in own:
        return None
    init = own.get("__init__")
    if init is not None:
        certain = isinstance(init, ast.FunctionDef) and not init.decorator_list
        return _parameters(init.args, bound=True) if certain else None
    for base in made.bases:
        name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        known = names.get(name, ())
        if len(known) == 1 and isinstance(known[0], ast.ClassDef):
            return _signature(known[0], names) if len(made.bases) == 1 else None
        if name not in _WITHOUT_ARGUMENTS:
            return None
    return inspect.Signature()


def _assigns_value(node: ast.stmt) -> bool:
    """Whether it gives a name a value that is no method."""
    return isinstance(node, ast.Assign) and not any(
        isinstance(name, ast.Name) and name.id in {"__init__", "__new__"}
        for target in node.targets
        for name in ast.walk(target)
    )


def _parameters(arguments: ast.arguments, *, bound: bool = False) -> inspect.Signature:
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    kinds = inspect.Parameter
    found = []
    for number, argument in enumerate(positional):
        default = arguments.defaults[number - without] if number >= without else None
        kind = kinds.POSITIONAL_ONLY if number < len(arguments.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        found.append(_parameter(argument.arg, kind, default))
    if bound:
        found = found[1:]
    if arguments.vararg is not None:
        found.append(_parameter(arguments.vararg.arg, kinds.VAR_POSITIONAL, None))
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(argument.arg, kinds.KEYWORD_ONLY, value))
    if arguments.kwarg is not None:
        found.append(_parameter(arguments.kwarg.arg, kinds.VAR_KEYWORD, None))
    return inspect.Signature(found)


def _parameter(name: str, kind: inspect._ParameterKind, default: ast.expr | None) -> inspect.Parameter:
    value = inspect.Parameter.empty if default is None else _Default(ast.unparse(default))
    return inspect.Parameter(name, kind, default=value)
