"""SQL over the inputs: the transform `sql`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "sql", "gem_sql.query:Sql")
