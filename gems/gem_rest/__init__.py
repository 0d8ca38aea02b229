"""Services that answer over HTTP: the transform `rest_enrich`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "rest_enrich", "gem_rest.rest_enrich:RestEnrich")
