"""Whether a gem of that name would get along with what is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from gem_bundle.scaffold.names import GemNames


def check_free(names: GemNames) -> None:
    """Refuse a gem whose identity or package somebody else's distribution has.

    The same distribution may be installed: then this one will take its place.

    Raises:
        GemError: GB802.
    """
    from gem_bundle.installed import entry_points
    from gem_bundle.plugins import GROUP, load_registry

    gems = [entry for entry in load_registry({}) if (entry.kind, entry.name) == (names.kind, names.name)]
    for gem in gems:
        if _normal(gem.origin.distribution) != names.distribution:
            raise _taken(
                names,
                f"`{gem.origin}` has a {names.kind} of that name, and of two with one name "
                "no pipeline can use either",
            )
    points = [p for p in entry_points(GROUP) if p.module.partition(".")[0] == names.package]
    ours = any(p.dist is not None and _normal(p.dist.name) == names.distribution for p in points)
    if not ours and find_spec(names.package) is not None:
        owners = sorted({p.dist.name for p in points if p.dist is not None})
        owner = f"`{owners[0]}` has" if owners else "there is"
        raise _taken(names, f"{owner} a package `{names.package}` already")


def _taken(names: GemNames, reason: str) -> GemError:
    hint = f"Choose another name, such as `acme_{names.name}`."
    return GemError("GB802", f"a {names.kind} can't be called `{names.name}` here: {reason}", hint)


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
