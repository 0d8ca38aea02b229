"""Columns: the transforms `select`, `with_columns`, `rename`, `drop`, `unpivot` and `flatten`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("transform", "select", "gem_columns.select:Select")
    register("transform", "with_columns", "gem_columns.with_columns:WithColumns")
    register("transform", "rename", "gem_columns.rename:Rename")
    register("transform", "drop", "gem_columns.drop:Drop")
    register("transform", "unpivot", "gem_columns.unpivot:Unpivot")
    register("transform", "flatten", "gem_columns.flatten:Flatten")
