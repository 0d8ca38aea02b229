"""Which rows stay: the transforms `filter`, `expect`, `limit`, `sample` and `route`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "filter", "gem_filter.filter:Filter")
    register("transform", "expect", "gem_filter.expect:Expect")
    register("transform", "limit", "gem_filter.limit:Limit")
    register("transform", "sample", "gem_filter.sample:Sample")
    register("transform", "route", "gem_filter.route:Route")
