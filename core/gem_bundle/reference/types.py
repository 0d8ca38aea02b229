"""The page of the types of options, for authors of gems."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import TYPE_CHECKING

from gem_bundle import types
from gem_bundle.describe.markdown import table
from gem_bundle.reference.docstrings import docstring_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator


def types_page() -> str:
    """All types of `gem_bundle.types`, with what each of them takes."""
    rows = [(f"`{name}`", docstring_markdown(text)) for name, text in _described()]
    parts = [
        "# Types of options",
        "From `gem_bundle.types`, for the fields of a gem's options.",
        docstring_markdown(types.__doc__ or ""),
        table(("type", "what it takes"), rows),
    ]
    return "\n\n".join(parts)


def _described() -> Iterator[tuple[str, str]]:
    """The names of the types and the texts below them, which Python doesn't keep."""
    for assigned, below in pairwise(ast.parse(inspect.getsource(types)).body):
        if (
            isinstance(assigned, ast.Assign)
            and isinstance(assigned.targets[0], ast.Name)
            and assigned.targets[0].id in types.__all__
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield assigned.targets[0].id, str(below.value.value)
