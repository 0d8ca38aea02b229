"""The page of the hooks: what a plugin can add."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from gem_bundle import hookspecs
from gem_bundle.cli.commands import GROUP as COMMANDS
from gem_bundle.plugins import GROUP
from gem_bundle.reference.docstrings import docstring_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator


def hooks_page() -> str:
    """All hooks, each with its signature and what it is for, and the callbacks that they are given."""
    parts = [
        "# Hooks",
        "A plugin is a module with functions of these names. Mark each of them with `@hookimpl`, from "
        f"`gem_bundle`, and name the module in an entry point of the group `{GROUP}`; for commands the group "
        f"is `{COMMANDS}`.",
    ]
    callbacks: dict[str, type] = {}
    for name, hook in hooks():
        parts += [f"## `{name}`", _code(name, hook), docstring_markdown(hook.__doc__ or "")]
        for parameter in inspect.signature(hook).parameters.values():
            found = getattr(hookspecs, str(parameter.annotation), None)
            if isinstance(found, type) and callable(found):
                callbacks[str(parameter.annotation)] = found
    if callbacks:
        parts.append("## Callbacks")
    for name, callback in callbacks.items():
        call: Any = callback.__dict__["__call__"]
        parts += [f"### `{name}`", docstring_markdown(callback.__doc__ or ""), _code("register", call)]
        parts.append(docstring_markdown(call.__doc__ or ""))
    return "\n\n".join(parts)


def hooks() -> Iterator[tuple[str, Any]]:
    """The hooks and their names, in the order of their module."""
    for name, found in vars(hookspecs).items():
        # pluggy's mark of a specification.
        if inspect.isfunction(found) and hasattr(found, f"{hookspecs.hookspec.project_name}_spec"):
            yield name, found


def _code(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    told = signature.replace(
        parameters=[p for p in signature.parameters.values() if p.name != "self"],
    )
    # Annotations are texts, which Python shows in quotes.
    return f"```python\ndef {name}{str(told).replace(chr(39), '')}: ...\n```"
