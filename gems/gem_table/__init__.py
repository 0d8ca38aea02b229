"""Tables of any catalog: the source and the target `table`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "table", "gem_table.source:TableSource")
    register("target", "table", "gem_table.target:TableTarget")
