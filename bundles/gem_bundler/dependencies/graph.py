"""Which distributions need which, on the target and with the extras that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def walk(
    requirements: Iterable[str],
    requires_of: Callable[[str], Iterable[str] | None],
    markers: Mapping[str, str],
) -> tuple[dict[str, set[str]], set[str]]:
    """Follow requirements to everything that they need.

    Args:
        requirements: Where to begin, as PEP 508 has it.
        requires_of: The ``Requires-Dist`` of a distribution by its normalised name, or None for one that
            isn't there.
        markers: The values of environment markers on the target.

    Returns:
        The names that each distribution needs, by its own name; and the requirements, without markers, of
        those that aren't there.
    """
    edges: dict[str, set[str]] = {}
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[str | None, Requirement]] = [(None, Requirement(text)) for text in requirements]
    while waiting:
        parent, wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if parent is not None:
            edges[parent].add(name)
        requires = requires_of(name)
        if requires is None:
            wanted.marker = None
            missing.add(str(wanted))
            continue
        edges.setdefault(name, set())
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                waiting += [(name, each) for each in applying(requires, markers, extra)]
    return edges, missing


def applying(requires: Iterable[str], markers: Mapping[str, str], extra: str = "") -> list[Requirement]:
    """The requirements of a distribution that hold on the target, for an extra or without one."""
    found = [Requirement(text) for text in requires]
    environment: dict[str, str | frozenset[str]] = {**markers, "extra": extra}
    return [each for each in found if (each.marker.evaluate(environment) if each.marker else not extra)]
