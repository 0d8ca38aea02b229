"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_name(package: str, homes: Mapping[str, str], name: str) -> object:
    """Import a name from the module that has it, for a package's ``__getattr__``; it is asked for once.

    Args:
        package: The package.
        homes: Its names, with their modules in it.
        name: The name.

    Raises:
        AttributeError: When the package has no such name.
    """
    try:
        home = homes[name]
    except KeyError:
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
    value = getattr(import_module(f"{package}.{home}"), name)
    setattr(sys.modules[package], name, value)
    return value
