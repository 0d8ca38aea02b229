"""The rule of session settings: what the gems of a pipeline ask of its one session goes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.check.report import at_key, gem_failed
from gem_bundle.settings import LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.plan import Plan


def check_settings(plan: Plan) -> Iterator[Diagnostic]:
    """Two nodes that want different values of one Spark setting, of which a session has one.

    What the pipeline itself says under ``spark`` decides. Values are not shown: passwords are among them.

    Args:
        plan: The pipeline.
    """
    wanted: dict[str, tuple[str, str]] = {}
    told: set[tuple[str, str]] = set()
    for name in plan.gems:
        node = plan.node(name)
        try:
            settings = dict(plan.gems[name].session_settings())
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            yield gem_failed(plan.definition, node, "session_settings", error)
            continue
        for key, value in settings.items():
            if key in LISTS or key in plan.definition.spark:
                continue
            other, before = wanted.setdefault(key, (name, value))
            if before != value and (other, name) not in told:
                told.add((other, name))
                message = f"it wants another value of the Spark setting `{key}` than `{other}`"
                hint = f"Have both say the same, or say it for the pipeline: `spark: {{{key}: …}}`."
                yield at_key(plan, node, "GB209", message, "gem", hint)
