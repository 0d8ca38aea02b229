"""Delta tables: the source and the target `delta`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "delta", "gem_delta.source:DeltaSource")
    register("target", "delta", "gem_delta.target:DeltaTarget")
