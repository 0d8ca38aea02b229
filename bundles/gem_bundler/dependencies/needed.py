"""Which distributions a bundle needs of those that are installed here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError
from gem_bundler.dependencies.installed import installed, origin, version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.plugins import Origin

RUNTIME = "gem-bundle"


def needed_distributions(gems: Iterable[tuple[str, Origin]], *, serve: bool = False) -> tuple[str, ...]:
    """The distributions that some gems come from, and the runtime, as requirements without versions.

    A distribution that has an extra with the name of the plugin (the entry point) or of the gem gets it: that
    is what they can use beside what all need, such as ``gem-bundle[kafka]``.

    Args:
        gems: The names of the gems in use, and where they come from: `GemEntry.origin`.
        serve: The job has a server.
    """
    extras: dict[str, set[str]] = {RUNTIME: {"serve"} if serve else set()}
    for gem, each in gems:
        name = canonicalize_name(each.distribution)
        chosen = extras.setdefault(name, set())
        try:
            offered = installed(name).metadata.get_all("Provides-Extra") or []
        except GemError:
            continue
        chosen.update(
            {canonicalize_name(each.plugin), canonicalize_name(gem)} & set(map(canonicalize_name, offered))
        )
    return tuple(
        f"{name}[{','.join(sorted(chosen))}]" if chosen else name for name, chosen in sorted(extras.items())
    )


def exact_requirements(distributions: Iterable[str]) -> tuple[str, ...]:
    """Distributions with the versions that are installed: ``gem-bundle[kafka]==0.1.0``.

    They are what the metadata of the bundle's wheel requires.

    Raises:
        GemError: GB648 when one isn't installed.
    """
    return tuple(f"{text}=={version(installed(name_of(text)))}" for text in sorted(distributions))


def unpublished(distributions: Iterable[str]) -> tuple[str, ...]:
    """Those of the distributions that no index has as they are installed here.

    A cluster that installs a thin bundle can't get them by itself.

    Raises:
        GemError: GB648 when one isn't installed.
    """
    return tuple(name for name in map(name_of, distributions) if origin(installed(name)) != "index")


def check_thin(distributions: Iterable[str]) -> Iterator[Diagnostic]:
    """What keeps a cluster from installing the dependencies of a thin bundle by itself (GB649).

    Args:
        distributions: As in `DepsRequest`.

    Raises:
        GemError: GB648 when one isn't installed.
    """
    for name in unpublished(distributions):
        found = installed(name)
        how = "in editable mode" if origin(found) == "editable" else "from elsewhere than an index"
        yield Diagnostic(
            "GB649",
            "warning",
            f"the cluster has to install `{name}=={version(found)}`, which is installed here {how}",
            hint="Publish it where the cluster's index is, or build without --thin.",
        )


def name_of(text: str) -> str:
    """The normalised name in a requirement."""
    found = re.match(r"[\w.-]+", text)
    return canonicalize_name(found[0] if found else text)
