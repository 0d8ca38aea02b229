"""Databricks' runtimes, and the Spark that each of them is."""

from __future__ import annotations

import re

# By the major version of the runtime (Databricks' release notes, as of 2026).
SPARK_OF_RUNTIME = {13: "3.4", 14: "3.5", 15: "3.5", 16: "3.5", 17: "4.0", 18: "4.1", 19: "4.2"}
LEAST_RUNTIME = 17
"""The first one whose Spark is 4."""


def runtime_of(version: str | None) -> int | None:
    """The major version of a runtime, as ``spark_version`` names it; None for what isn't told there."""
    found = re.match(r"(\d+)\.", version or "")
    return int(found[1]) if found else None
