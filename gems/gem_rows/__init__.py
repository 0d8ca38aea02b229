"""Literal rows that stand in the pipeline file: the source `rows`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "rows", "gem_rows.source:RowsSource")
