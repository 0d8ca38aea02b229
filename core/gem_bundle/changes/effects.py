"""What a pipeline's modules change as they are imported: what is put into registries, what is configured.

A function that goes by a registry does what the functions do that others put there, by a decorator, by a
class that is made of another one or by a call at the top level of a module.
"""

from __future__ import annotations

import ast
import re
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.statements import Modules, Statement

    Place = tuple[str, str]
    """A name of a module: the module and the name."""


_CHANGING = frozenset(
    [
        *("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop"),
        *("popitem", "popleft", "register", "remove", "reverse", "setdefault", "sort", "update"),
    ]
)
"""The methods that change what they are called on though they give something back."""
_TELLING = frozenset(
    ["close", "critical", "debug", "error", "exception", "flush", "info", "log", "warn", "warning", "write"]
)
"""The methods that change nothing though they give nothing back."""
_ITSELF = frozenset({"cls", "self"})

_WORDS = re.compile(r"\w+")


class _Effect(NamedTuple):
    """What running a statement does elsewhere, by dotted names of its module.

    Args:
        runs: What runs with it, each with how deep in that the functions lie that run.
        changes: What it changes itself.
        changes_later: What it changes when what it defines runs, each with how deep in that this is done.
        calls: What it calls when it runs, or what it defines does.
        bases: The classes that it makes a class of.
        changes_by_class: What it changes whenever a class is made of the one that it defines.
    """

    runs: frozenset[tuple[str, int]]
    changes: frozenset[str]
    changes_later: frozenset[tuple[str, int]]
    calls: frozenset[str]
    bases: frozenset[str] = frozenset()
    changes_by_class: frozenset[str] = frozenset()


class Effects:
    """What the statements of modules change of what is bound elsewhere.

    Args:
        modules: The pipeline's modules.
        module: The one that is imported first. Those that it imports, and those that these do, count too.
    """

    def __init__(self, modules: Modules, module: str) -> None:
        self._modules, self._module = modules, module
        self._said: dict[str, frozenset[str]] = {}
        self._reach: dict[str, set[str]] = {}
        self._changes: dict[str, dict[Place, list[Statement]]] = {}
        self._later: dict[tuple[Place, int], set[Place]] = {}
        self._places: dict[Place, Place] = {}
        self._binding: dict[str, dict[str, list[tuple[str, Statement]]]] = {}

    def on(self, module: str, name: str) -> Iterator[tuple[str, Statement]]:
        """The statements that change something of a module, each behind its own module's name.

        Args:
            module: The module.
            name: Its name there; ``*`` is each of them.
        """
        for statement in self._modules.statements(module) or ():
            if statement.imports:
                continue
            # A function stays what it is, and so does a class that isn't told of those that are made of it.
            if statement.defines_code and not _effect(statement).changes_by_class:
                continue
            for bound in statement.binds if name == "*" else statement.binds & {name}:
                for other in self._saying((module, bound)):
                    for changing in self._changing(other).get((module, bound), ()):
                        yield other, changing

    def _saying(self, place: Place) -> set[str]:
        """The modules that have the name of something in them, or the name of what changes it.

        Only those are read: a pipeline may have many modules.
        """
        reaching, words = self._reaching(place[0]), {place[1]}
        doing: set[Place] = set()
        found: set[str] = set()
        known = 0
        while len(words) > known:
            known = len(words)
            found |= {module for module in reaching - found if not words.isdisjoint(self._words(module))}
            for module in found:
                for statement in self._modules.statements(module) or ():
                    words |= {here for here, _, what in statement.imports if what in words}
                    effect = _effect(statement)
                    later = {name for name, _ in effect.changes_later} | effect.changes_by_class
                    used = statement.uses | effect.calls if doing else frozenset()
                    if any(self._place(module, name) == place for name in later) or any(
                        self._place(module, name) in doing for name in used
                    ):
                        doing |= {(module, name) for name in statement.binds}
                        words |= statement.binds
        return found

    def _words(self, module: str) -> frozenset[str]:
        if module not in self._said:
            self._said[module] = frozenset(_WORDS.findall(self._modules.text(module)))
        return self._said[module]

    def _reaching(self, module: str) -> set[str]:
        """A module, and those that import it, or such as do: no other one can change anything of it."""
        if module not in self._reach:
            found, waiting = {module}, [module]
            while waiting:
                others = self._importers.get(waiting.pop(), set()) - found
                found |= others
                waiting += others
            self._reach[module] = found
        return self._reach[module]

    @cached_property
    def _importers(self) -> dict[str, set[str]]:
        """The modules that are imported, each with those that import it."""
        found: dict[str, set[str]] = {self._module: set()}
        waiting = [self._module]
        while waiting:
            module = waiting.pop()
            for other in self._modules.imported(module):
                if other in found:
                    found[other].add(module)
                elif self._modules.is_own(other):
                    found[other] = {module}
                    waiting.append(other)
        return found

    def _changing(self, module: str) -> dict[Place, list[Statement]]:
        """What the statements of a module change."""
        if module not in self._changes:
            changes = self._changes[module] = {}
            for statement in self._modules.statements(module) or ():
                for place in {*self._changed_by(module, statement)}:
                    changes.setdefault(place, []).append(statement)
        return self._changes[module]

    def _changed_by(self, module: str, statement: Statement) -> Iterator[Place]:
        """What a statement changes as it is run."""
        yield from (self._place(module, changed) for changed in _effect(statement).changes)
        for run, depth in _effect(statement).runs:
            yield from self._changed_later(self._place(module, run), depth)
        waiting = [self._place(module, base) for base in _effect(statement).bases]
        seen = set(waiting)
        while waiting:
            for found, class_ in self._bound(waiting.pop()):
                yield from (self._place(found, changed) for changed in _effect(class_).changes_by_class)
                above = {self._place(found, base) for base in _effect(class_).bases} - seen
                waiting += above
                seen |= above

    def _changed_later(self, place: Place, depth: int) -> set[Place]:
        """What is changed when what is bound to a name runs, by functions that lie so deep in it."""
        if (place, depth) not in self._later:
            found: set[Place] = set()
            seen, waiting = {place}, [(place, depth)]
            while waiting:
                one, deep = waiting.pop()
                for module, statement in self._bound(one):
                    effect = _effect(statement)
                    found |= {self._place(module, c) for c, within in effect.changes_later if within <= deep}
                    used = {self._place(module, name) for name in statement.uses | effect.calls} - seen
                    waiting += [(other, 0) for other in used]
                    seen |= used
            self._later[place, depth] = found
        return self._later[place, depth]

    def _bound(self, place: Place) -> list[tuple[str, Statement]]:
        """The statements that bind a name, each behind its module's name."""
        module, name = place
        if module not in self._binding:
            binding = self._binding[module] = {}
            for statement in self._modules.statements(module) or ():
                for bound in statement.binds:
                    binding.setdefault(bound, []).append((module, statement))
        return self._binding[module].get(name, [])

    def _place(self, module: str, dotted: str) -> Place:
        """Where what has a dotted name in a module is bound."""
        if (module, dotted) not in self._places:
            self._places[module, dotted] = self._found(module, dotted)
        return self._places[module, dotted]

    def _found(self, module: str, dotted: str) -> Place:
        seen: set[Place] = set()
        while (module, dotted) not in seen:
            seen.add((module, dotted))
            module, dotted = self._imported_as(module, dotted)
        return module, dotted.partition(".")[0]

    def _imported_as(self, module: str, dotted: str) -> Place:
        """What has a dotted name in a module, by where it is imported from, if it is."""
        name, _, rest = dotted.partition(".")
        for _, statement in self._bound((module, name)):
            for here, other, what in statement.imports:
                if here != name or statement.defines_code or not self._modules.is_own(other):
                    continue
                if what is None:
                    # `import a.b` binds `a`, of which `b` is a module.
                    inner = other.partition(".")[2]
                    within = inner and name != other and dotted.startswith(f"{other}.")
                    return other, rest.removeprefix(f"{inner}.") if within else rest
                if self._modules.is_own(f"{other}.{what}"):
                    return f"{other}.{what}", rest
                return other, ".".join(filter(None, (what, rest)))
        return module, dotted


@cache
def _effect(statement: Statement) -> _Effect:
    node = statement.node
    changed = {*_changed(node)}
    calls = {_dotted(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)} - {""}
    found = _Effect(
        runs=frozenset((name, 0) for name in statement.uses | calls),
        changes=frozenset(name for name, depth in changed if not depth),
        changes_later=frozenset((name, depth - 1) for name, depth in changed if depth),
        calls=frozenset(calls),
    )
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        found = _of_decorators(found, node.decorator_list)
    return _of_class(found, node) if isinstance(node, ast.ClassDef) else found


def _of_decorators(effect: _Effect, decorators: list[ast.expr]) -> _Effect:
    """The effect of a definition: what its decorators do."""
    runs: set[tuple[str, int]] = set()
    changes: set[str] = set()
    for decorator in decorators:
        # What makes a decorator defines that within, and what is one runs itself.
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        runs.add((_dotted(called), int(called is not decorator)))
        # It may be an object that keeps what it is called with, or have a method for that.
        changes |= {_dotted(called), _dotted(called.value) if isinstance(called, ast.Attribute) else ""}
    return effect._replace(runs=frozenset(runs - {("", 0), ("", 1)}), changes=frozenset(changes - {""}))


def _of_class(effect: _Effect, node: ast.ClassDef) -> _Effect:
    """The same with what the methods of a class change, and which classes it is made of."""
    later: set[tuple[str, int]] = set()
    changes: set[str] = set(effect.changes)
    by_class: set[str] = set()
    for inner in node.body:
        changed = {(_not_itself(name, node.name), depth - 1) for name, depth in _changed(inner)}
        changes |= {name for name, depth in changed if depth < 0}
        later |= {(name, depth) for name, depth in changed if depth >= 0}
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init_subclass__":
            by_class = {name for name, depth in changed if not depth}
    asked = [*node.bases, *(keyword.value for keyword in node.keywords)]
    return effect._replace(
        changes=frozenset(changes),
        changes_later=frozenset(later),
        bases=frozenset(dotted for base in asked if (dotted := _dotted(base))),
        changes_by_class=frozenset(by_class),
    )


def _not_itself(changed: str, name: str) -> str:
    """What a method changes: what is its own belongs to its class."""
    first, _, rest = changed.partition(".")
    return f"{name}.{rest}" if first in _ITSELF else changed


def _changed(node: ast.AST, depth: int = 0) -> Iterator[tuple[str, int]]:
    """What code changes of what is bound elsewhere, by its dotted name, each with how deep in functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        depth += 1
    changed = ""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        changed = _dotted(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        changed = _dotted(node.func.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        # What is called and gives nothing is called for what it does.
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr not in _TELLING:
            changed = _dotted(called.value)
    elif isinstance(node, ast.Global):
        yield from ((name, depth) for name in node.names)
    if changed:
        yield changed, depth
    for inner in ast.iter_child_nodes(node):
        yield from _changed(inner, depth)


def _dotted(node: ast.expr) -> str:
    """The dotted name with which an expression begins; an empty text where it begins with something else."""
    attributes: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            attributes, node = [], node.value
        elif isinstance(node, ast.Call):
            attributes, node = [], node.func
        else:
            return ""
    return ".".join([node.id, *attributes])
