"""What can be extended. Implement a hook with `@hookimpl` in the module your entry point names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.check.rules import PipelineView
    from gem_bundle.diagnostics import Finding
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


@hookspec
def gem_bundle_check_pipeline(pipeline: PipelineView) -> Iterable[Finding]:
    """Say what your platform doesn't allow in a pipeline: yield a `Finding` for each breach of a rule.

    Called by every check and before every run, without a JVM and without a network, after all other
    rules. A code is your own, such as ``ACME001``; `GB` belongs to gem-bundle. Warnings and notes can be
    silenced like any others. What raises is reported as a broken plugin and takes no check down. ::

        @hookimpl
        def gem_bundle_check_pipeline(pipeline):
            for node in pipeline.of_kind("target", "console"):
                yield Finding("ACME001", "nobody looks at a screen here", node=node.id, key="gem")

    Args:
        pipeline: What can be seen of the pipeline; secrets can't.
    """
    raise NotImplementedError
