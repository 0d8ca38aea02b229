"""The rule of Spark versions: what a pipeline names is there in the Spark that it is for."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_key, at_operator, at_option
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.operators import JoinOperator, StatefulOperator
from gem_bundle.options import metadata
from gem_bundle.pipeline.document import place_within
from gem_bundle.types import columns_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

    from gem_bundle.diagnostics import Finding
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

DEFAULT = "4.2"
"""The Spark that a pipeline is for when neither the project says so nor pyspark is installed."""

_HINT = "Remove it, or say in the project's settings which Spark it is for: `spark_version` under `[check]`."
_SECTION_HINT = "Remove it, or name a newer Spark in the pipeline's section `{}`."
_UPDATED_JOINS = frozenset({"inner", "left_semi"})
# Spark itself has had it since 4.1, but no way to it from Python.
_TRIGGERS = {"real_time": "4.2"}
_SETTINGS = {
    "spark.sql.streaming.queryevolution.enablesourceevolution": "4.2",
    "spark.sql.streaming.realtimemode.allowlistcheck": "4.1",
    "spark.sql.streaming.realtimemode.minbatchduration": "4.1",
}


def check_versions(plan: Plan, target: TargetSpark) -> Iterator[Diagnostic]:
    """What a pipeline names that its Spark doesn't have: options, triggers, settings.

    Args:
        plan: The pipeline.
        target: The Spark that it is for.
    """
    for name, gem in plan.gems.items():
        for option in sorted(gem.options.model_fields_set):
            since = metadata(type(gem.options).model_fields[option]).get("since")
            if since and target.lacks(since):
                message = f"Spark has the option `{option}` since {since}; Spark {target.version} ignores it"
                yield at_option(plan, plan.node(name), "GB370", message, option, target.hint)
        yield from _newer_types(plan, plan.node(name), target)
    for node in plan.definition.of_kind("target"):
        since = _TRIGGERS.get(node.trigger.kind)
        if since and target.lacks(since):
            message = f"PySpark has the trigger `{node.trigger.kind}` since {since}, not in {target.version}"
            yield at_key(plan, node, "GB370", message, "trigger", target.hint)
        yield from _newer_joins(plan, node, target)
        yield from _newer_processors(plan, node, target)
        yield from _unnamed_sources(plan, node, target)
    for setting in plan.definition.spark:
        since = _SETTINGS.get(setting.lower())
        if since and target.lacks(since):
            message = f"Spark has the setting `{setting}` since {since}; Spark {target.version} ignores it"
            path = ("spark", setting)
            place = plan.definition.locator.place(path, key=True)
            yield Diagnostic("GB370", "warning", message, None, path, place, target.hint)


def _newer_joins(plan: Plan, node: Node, target: TargetSpark) -> Iterator[Diagnostic]:
    """The joins of two streams whose rows older Sparks only append."""
    facts = plan.facts.get(node.inputs[0].key)
    if node.output_mode != "update" or facts is None or not facts.streaming or not target.lacks("4.2"):
        return
    for operator in facts.all_operators():
        # Of the others no Spark can update the rows: that is another diagnostic.
        if isinstance(operator, JoinOperator) and operator.stateful and operator.how in _UPDATED_JOINS:
            message = (
                f"Spark has the output mode `update` behind a join of two streams (`{operator.node}`) "
                f"since 4.2, not in {target.version}"
            )
            yield at_key(plan, node, "GB370", message, "output_mode", "Use `append`.")


def _newer_processors(plan: Plan, node: Node, target: TargetSpark) -> Iterator[Diagnostic]:
    """The processors of rows, which Spark had of pandas data frames first."""
    facts = plan.facts.get(node.inputs[0].key)
    for operator in facts.all_operators() if facts is not None else ():
        if isinstance(operator, StatefulOperator) and operator.rows and target.lacks("4.1"):
            message = f"Spark has processors of rows since 4.1, not in {target.version}"
            hint = "Write `form: pandas`, and let the processor take and give pandas data frames."
            yield at_operator(plan, operator, "GB370", message, hint)


def _unnamed_sources(plan: Plan, node: Node, target: TargetSpark) -> Iterator[Diagnostic]:
    """The sources of a target that older Sparks tell apart by their order only."""
    names = [name for name in plan.definition.nodes if name in plan.streaming_sources(node.id)]
    if len(names) < 2 or not target.lacks("4.2"):
        return
    named = listed_names(names)
    message = (
        f"Spark knows the sources of a checkpoint by their names since 4.2, not in {target.version}, which "
        f"knows those of `{node.id}` ({named}) by their order"
    )
    hint = "Leave sources and the order of inputs as they are once it has run, or begin a new checkpoint."
    yield at_key(plan, node, "GB372", message, "input", hint, "note")


def _newer_types(plan: Plan, node: Node, target: TargetSpark) -> Iterator[Diagnostic]:
    """The types in a node's schemas that its Spark doesn't have."""
    options = plan.gems[node.id].options
    for option in sorted(options.model_fields_set):
        field = type(options).model_fields[option]
        text = getattr(options, option)
        columns = columns_in(text, field.annotation, field.metadata) if text is not None else None
        for found in columns.newer if columns is not None else ():
            if target.lacks(found.since):
                message = f"Spark has the type `{found.name}` since {found.since}, not in {target.version}"
                made = at_option(plan, node, "GB370", message, option, target.hint)
                word = found.name.partition(" ")[0]
                yield made.moved(place_within(plan.definition.locator, made.path, found.start, word))


class TargetSpark:
    """The Spark that a pipeline is for; looked for when something depends on it, which takes a while.

    Args:
        version: Its version, where somebody says it; by default that of the installed pyspark.
        hint: What to do where it lacks something.
    """

    def __init__(self, version: str | None, hint: str = _HINT) -> None:
        self._version = version
        self.hint = hint

    def of_sections(self, sections: Mapping[str, BaseModel], profile: str | None) -> TargetSpark:
        """The Spark that a section of a plugin names, which a project's settings give way to; else this one.

        Args:
            sections: The valid sections by their keys.
            profile: The profile that the pipeline is read with.
        """
        for name, section in sections.items():
            told = getattr(section, "target_spark", None)
            version = told(profile) if callable(told) else None
            if version is not None:
                return TargetSpark(version, _SECTION_HINT.format(name))
        return self

    @cached_property
    def version(self) -> str:
        """Its version."""
        return self._version or installed_spark() or DEFAULT

    def lacks(self, since: str) -> bool:
        """Whether it is older."""
        return _parts(self.version) < _parts(since)

    def is_told(self, finding: Finding) -> bool:
        """Whether a finding is about this Spark: about any, or about what this one lacks."""
        if finding.upto:
            return _parts(self.version) > _parts(finding.upto)
        return not finding.since or self.lacks(finding.since)

    def told(self, finding: Finding) -> Finding:
        """A finding about what this Spark lacks, with its version."""
        if finding.upto:
            return replace(finding, message=f"the pipeline is for Spark {self.version}: {finding.message}")
        if not finding.since:
            return finding
        message = f"{finding.message} since {finding.since}, not in {self.version}"
        return replace(finding, message=message, hint=finding.hint or self.hint)


@cache
def installed_spark() -> str | None:
    """The version of the installed pyspark, without importing it; None where there is none.

    A plan asks for each of its targets, and each time a file of the distribution would be read.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        return _unpacked()


def _unpacked() -> str | None:
    """The version of a pyspark that no distribution is known of: it came as an image or an archive."""
    from importlib.util import find_spec
    from pathlib import Path

    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    try:
        text = Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"""^__version__.*=\s*["']([^"']+)""", text, re.MULTILINE)
    return match[1] if match else None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
