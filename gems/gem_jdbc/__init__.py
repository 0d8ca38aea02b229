"""Tables of databases: the source and the target `jdbc`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "jdbc", "gem_jdbc.source:JdbcSource")
    register("target", "jdbc", "gem_jdbc.target:JdbcTarget")
