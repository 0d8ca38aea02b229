"""Rows that Spark makes itself: the sources `rate`, `rate_micro_batch` and `generate`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "rate", "gem_rate.source:RateSource")
    register("source", "rate_micro_batch", "gem_rate.micro_batch:RateMicroBatchSource")
    register("source", "generate", "gem_rate.generate:GenerateSource")
