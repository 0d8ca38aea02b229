"""The page of the conformance suite: the tests that every gem has to pass, by kind."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from gem_bundle.describe.markdown import table
from gem_bundle.reference.docstrings import docstring_markdown

if TYPE_CHECKING:
    from collections.abc import Iterator


def conformance_page() -> str:
    """The tests of all gems, then those of each kind."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    from gem_bundle.testing import conformance

    kinds = {
        "Sources": conformance.SourceConformance,
        "Transforms": conformance.TransformConformance,
        "Targets": conformance.TargetConformance,
    }
    found = {title: dict(_tests(suite)) for title, suite in kinds.items()}
    common = set.intersection(*(set(tests) for tests in found.values()))
    yield "# The conformance suite"
    yield docstring_markdown(conformance.__doc__ or "")
    yield "## All gems"
    first = next(iter(found.values()))
    yield _table({name: text for name, text in first.items() if name in common})
    for title, suite in kinds.items():
        yield f"## {title}"
        yield f"`{suite.__name__}` has these too, where they say something about the gem:"
        yield _table({name: text for name, text in found[title].items() if name not in common})


def _tests(suite: type) -> Iterator[tuple[str, str]]:
    """The tests of a class, those of the classes that it derives from first."""
    for base in reversed(suite.__mro__):
        for name, test in vars(base).items():
            if name.startswith("test_") and inspect.isfunction(test):
                yield name, (inspect.getdoc(test) or "").split("\n\n")[0]


def _table(tests: dict[str, str]) -> str:
    return table(("test", "what must hold"), [(f"`{name}`", text) for name, text in tests.items()])
