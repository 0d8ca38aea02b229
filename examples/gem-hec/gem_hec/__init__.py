"""HTTP event collectors such as Splunk's: the target `hec`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this package's gem."""
    register("target", "hec", "gem_hec.target:HecTarget")
