"""Columns: which there are, what they are called, what they are made of, and how they are laid out."""

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
    register("transform", "dynamic_select", "gem_columns.dynamic_select:DynamicSelect")
    register("transform", "bulk_columns", "gem_columns.bulk_columns:BulkColumns")
    register("transform", "window_function", "gem_columns.window_function:WindowFunction")
    register("transform", "clean", "gem_columns.clean:Clean")
