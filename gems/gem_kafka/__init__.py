"""Kafka topics: the source and the target `kafka`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "kafka", "gem_kafka.source:KafkaSource")
    register("target", "kafka", "gem_kafka.target:KafkaTarget")
