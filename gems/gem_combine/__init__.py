"""Several inputs into one: the transforms `join`, `union` and `set_operation`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "join", "gem_combine.join:Join")
    register("transform", "union", "gem_combine.union:Union")
    register("transform", "set_operation", "gem_combine.set_operation:SetOperation")
