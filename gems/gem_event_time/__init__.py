"""Event time and state: the transforms `watermark`, `aggregate` and `deduplicate`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "watermark", "gem_event_time.watermark:Watermark")
    register("transform", "aggregate", "gem_event_time.aggregate:Aggregate")
    register("transform", "deduplicate", "gem_event_time.deduplicate:Deduplicate")
