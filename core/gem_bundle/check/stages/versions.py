"""The rule of Spark versions: what a pipeline names is there in the Spark that it is for."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_key, at_option
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.options import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.pipeline.plan import Plan

DEFAULT = "4.2"
"""The Spark that a pipeline is for when neither the project says so nor pyspark is installed."""

_HINT = "Remove it, or say in the project's settings which Spark it is for: `spark_version` under `[check]`."
_TRIGGERS = {"real_time": "4.1"}
_SETTINGS = {
    "spark.sql.streaming.queryevolution.enablesourceevolution": "4.2",
    "spark.sql.streaming.realtimemode.allowlistcheck": "4.1",
    "spark.sql.streaming.realtimemode.minbatchduration": "4.1",
}


def check_versions(plan: Plan, spark: str | None = None) -> Iterator[Diagnostic]:
    """What a pipeline names that its Spark doesn't have: options, triggers, settings.

    Args:
        plan: The pipeline.
        spark: The Spark version that the project is for; by default that of the installed pyspark.
    """
    target = _Target(spark)
    for name, gem in plan.gems.items():
        for option in sorted(gem.options.model_fields_set):
            since = metadata(type(gem.options).model_fields[option]).get("since")
            if since and target.lacks(since):
                message = f"Spark has the option `{option}` since {since}; Spark {target.version} ignores it"
                yield at_option(plan, plan.node(name), "GB370", message, option, _HINT)
    for node in plan.definition.of_kind("target"):
        since = _TRIGGERS.get(node.trigger.kind)
        if since and target.lacks(since):
            message = f"Spark has the trigger `{node.trigger.kind}` since {since}, not in {target.version}"
            yield at_key(plan, node, "GB370", message, "trigger", _HINT)
    for setting in plan.definition.spark:
        since = _SETTINGS.get(setting.lower())
        if since and target.lacks(since):
            message = f"Spark has the setting `{setting}` since {since}; Spark {target.version} ignores it"
            path = ("spark", setting)
            place = plan.definition.locator.place(path, key=True)
            yield Diagnostic("GB370", "warning", message, None, path, place, _HINT)


class _Target:
    """The Spark that a pipeline is for; looked for when something depends on it, which takes a while."""

    def __init__(self, version: str | None) -> None:
        self._version = version

    @cached_property
    def version(self) -> str:
        return self._version or _installed() or DEFAULT

    def lacks(self, since: str) -> bool:
        """Whether it is older."""
        return _parts(self.version) < _parts(since)


def _installed() -> str | None:
    """The version of the installed pyspark, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
