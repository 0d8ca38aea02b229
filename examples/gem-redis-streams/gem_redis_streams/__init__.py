"""Redis Streams: the source `redis_streams`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this package's gem."""
    register("source", "redis_streams", "gem_redis_streams.source:RedisStreamsSource")
