"""Files in a folder: the source and the target `file`, and the source `auto_loader`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "file", "gem_file.source:FileSource")
    register("source", "auto_loader", "gem_file.auto_loader:AutoLoaderSource")
    register("target", "file", "gem_file.target:FileTarget")
