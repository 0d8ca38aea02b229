"""JSON text and columns: the transforms `from_json`, `from_debezium` and `to_json`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "from_json", "gem_json.from_json:FromJson")
    register("transform", "from_debezium", "gem_json.from_debezium:FromDebezium")
    register("transform", "to_json", "gem_json.to_json:ToJson")
