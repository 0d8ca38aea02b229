"""What gem-bundle asks of every target, tried on this one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from collector_server import TOKEN, serving

from gem_bundle.testing import TargetConformance
from gem_hec.target import HecTarget


class TestHecTarget(TargetConformance):
    """The target, with a collector that each test has for itself."""

    gem = HecTarget
    unreachable = {"url": "http://127.0.0.1:1", "token": TOKEN}

    def provide(self) -> dict[str, Any]:
        """Start a collector, and send small payloads: a few rows are several POSTs."""
        self._stack = ExitStack()
        self._collector = self._stack.enter_context(serving())
        return {"url": self._collector.url, "token": TOKEN, "max_payload": 1_000, "retry_for": "5 seconds"}

    def written(self) -> list[dict[str, Any]]:
        """The rows in the events that the collector has."""
        return [{"id": None, "name": None, **event["event"]} for event in self._collector.events]

    def clean_up(self) -> None:
        """Stop the collector, if the test had one."""
        if hasattr(self, "_stack"):
            self._stack.close()


class TestHecTargetThatRejects(TestHecTarget):
    """The same, of a collector that refuses some events, which aren't to stop the others."""

    options = {"url": "https://localhost:8088", "token": TOKEN, "rejects": True}

    def provide(self) -> dict[str, Any]:
        """Start a collector that doesn't take events of a name."""
        found = super().provide()
        self._collector.refuses = "refused"
        return {**found, "rejects": True}

    def refused(self) -> list[dict[str, Any]]:
        """Rows of that name."""
        return [{"id": 9_000 + number, "name": "refused"} for number in range(5)]
