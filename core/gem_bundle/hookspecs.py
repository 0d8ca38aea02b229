"""What can be extended. Implement a hook with `@hookimpl` in the module your entry point names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from gem_bundle.gem import Gem, Kind

hookspec = HookspecMarker("gem_bundle")
hookimpl = HookimplMarker("gem_bundle")


class Register(Protocol):
    """The callback that takes a gem: its kind, its name, and its class or ``"module:Class"``."""

    def __call__(self, kind: Kind, name: str, gem: type[Gem] | str) -> None:
        """Register one gem. A string is imported when a pipeline first uses the gem."""


@hookspec
def gem_bundle_register_gems(register: Register) -> None:
    """Register your gems by calling ``register(kind, name, "your_module:YourClass")`` for each."""
