"""Avro messages and columns: the transforms `from_avro` and `to_avro`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "from_avro", "gem_avro.from_avro:FromAvro")
    register("transform", "to_avro", "gem_avro.to_avro:ToAvro")
