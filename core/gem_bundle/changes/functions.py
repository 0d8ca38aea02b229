"""What identifies the Python code that a pipeline names, without importing it.

The hash of a function covers what decides on what it does: its syntax tree without comments, formatting and
docstrings, and that of everything it uses in its module and in modules beside the pipeline file. It doesn't
cover installed packages, whose versions are their own business.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from gem_bundle.changes.effects import Effects
from gem_bundle.changes.statements import Modules

if TYPE_CHECKING:
    from pathlib import Path


def function_hash(reference: str, folder: Path) -> str:
    """What identifies the code of a function or class.

    Args:
        reference: ``module:name``; the name may have dots.
        folder: The pipeline file's folder, which comes first on Python's path.

    Returns:
        A hash in hexadecimal digits; an empty text where the code can't be found or read.
    """
    module, _, name = reference.partition(":")
    modules = Modules(folder)
    if modules.statements(module) is None:
        return ""
    try:
        found = _closure(modules, module, name.partition(".")[0])
    except RecursionError:  # an expression of a thousand terms
        return ""
    if not found:
        return ""
    digest = sha256()
    for part in sorted(found):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _closure(modules: Modules, module: str, name: str) -> set[str]:
    """What identifies a name of a module, and all that it uses."""
    effects = Effects(modules, module)
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
        for other, statement in effects.on(module, name):
            found.add(f"{other}\0{statement.text}")
            waiting += [(other, used) for used in statement.uses]
        if name != "*" and not any(name in statement.binds for statement in statements):
            waiting += [
                (other, name)
                for statement in statements
                for here, other, _ in statement.imports
                if here == "*" and modules.is_own(other)
            ]
    return found
