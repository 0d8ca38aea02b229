"""What gem-bundle asks of every source, tried on this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gem_bundle.testing import SourceConformance
from gem_redis_streams.source import RedisStreamsSource

if TYPE_CHECKING:
    from redis_server import RedisServer


class TestRedisStreamsSource(SourceConformance):
    """The source, over two streams that each test has for itself."""

    gem = RedisStreamsSource
    unreachable = {"url": "redis://127.0.0.1:1", "streams": ["orders"]}

    def provide(self) -> dict[str, Any]:
        """Choose keys that no other test has."""
        self._server: RedisServer = self.request.getfixturevalue("server")
        self._keys = [f"conformance-{uuid4().hex[:8]}" for _ in range(2)]
        return {"url": self._server.url, "streams": self._keys, "entries_per_partition": 2}

    def feed(self, number: int) -> list[dict[str, Any]]:
        """Add entries to both streams."""
        found = []
        for key in self._keys:
            for step in range(3):
                fields: dict[Any, Any] = {"name": f"Ľubica ☂ {number}", "step": str(step)}
                entry = self._server.client.xadd(key, fields, id=f"{number}-{step + 1}")
                assert isinstance(entry, bytes)
                found.append({"stream": key, "id": entry.decode(), "fields": fields})
        return found
