"""Which rows stay: the transforms `filter` and `limit`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "filter", "gem_filter.filter:Filter")
    register("transform", "limit", "gem_filter.limit:Limit")
