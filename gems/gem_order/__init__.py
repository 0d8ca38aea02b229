"""Order and partitions of rows: the transforms `sort` and `repartition`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "sort", "gem_order.sort:Sort")
    register("transform", "repartition", "gem_order.repartition:Repartition")
