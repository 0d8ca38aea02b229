"""Files in a folder (csv, json, parquet, orc, text, avro): the source and the target `file`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "file", "gem_file.source:FileSource")
    register("target", "file", "gem_file.target:FileTarget")
