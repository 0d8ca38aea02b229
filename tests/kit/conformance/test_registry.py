"""No gem escapes: every one in the registry has a class in the conformance suite."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.plugins import load_registry
from gem_bundle.testing.conformance import (
    GemConformance,
    SourceConformance,
    TargetConformance,
    TransformConformance,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.gem import Gem
    from gem_bundle.plugins import GemEntry

OURS = "gem-bundle"
KILLED = "test_a_killed_run_leaves_every_row_once"
KINDS = {"source": SourceConformance, "transform": TransformConformance, "target": TargetConformance}


def suites() -> Iterator[type[GemConformance]]:
    """The classes in this folder that pytest collects."""
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        module = import_module(f"{__package__}.{file.stem}")
        for name, found in vars(module).items():
            if name.startswith("Test") and isinstance(found, type) and issubclass(found, GemConformance):
                yield found


def built_in() -> list[GemEntry]:
    return [entry for entry in load_registry() if entry.origin.distribution == OURS]


def claiming_exactly_once() -> list[type[Gem[Any]]]:
    """The targets that promise it with the options of one class at least."""
    return list(dict.fromkeys(suite.gem for suite in suites() if getattr(suite, KILLED, None)))


def test_the_registry_has_the_built_in_gems() -> None:
    families = {path.name for path in (Path(__file__).parents[3] / "gems").glob("gem_*") if path.is_dir()}
    assert {entry.load().__module__.partition(".")[0] for entry in built_in()} == families


@pytest.mark.parametrize("entry", built_in(), ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_every_gem_is_in_the_suite(entry: GemEntry) -> None:
    gem = entry.load()
    found = [suite for suite in suites() if suite.gem is gem]
    assert found, f"write a {KINDS[entry.kind].__name__} for the {entry.kind} `{entry.name}` in this folder"
    assert all(issubclass(suite, KINDS[entry.kind]) for suite in found)


@pytest.mark.parametrize("gem", claiming_exactly_once(), ids=lambda gem: gem.__name__)
def test_every_target_that_says_exactly_once_is_killed(gem: type[Gem[Any]]) -> None:
    killed = [
        suite
        for suite in suites()
        if suite.gem is gem and getattr(suite, KILLED, None) and KILLED not in suite.waive
    ]
    assert killed, f"let `{KILLED}` run in one of the classes of `{gem.__name__}`"


@pytest.mark.parametrize("suite", list(suites()), ids=lambda suite: suite.__name__)
def test_every_gem_gets_its_tests(suite: type[GemConformance]) -> None:
    tests = [name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))]
    assert 20 <= len(tests) <= 40
    assert len(suite.waive) <= 3
