"""Rows at a steady rate, for tests and demonstrations: the sources `rate` and `rate_micro_batch`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "rate", "gem_rate.source:RateSource")
    register("source", "rate_micro_batch", "gem_rate.micro_batch:RateMicroBatchSource")
