"""Sinks for looking and measuring: the targets `console`, `memory` and `noop`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("target", "console", "gem_debug.console:ConsoleTarget")
    register("target", "memory", "gem_debug.memory:MemoryTarget")
    register("target", "noop", "gem_debug.noop:NoopTarget")
