"""The catalogue of diagnostic codes: what each means, what breaks the rule and what keeps it.

GB0xx file, GB1xx graph, GB2xx options, GB3xx streaming semantics, GB4xx change and checkpoint, GB5xx environment,
GB6xx bundle. A code is never used again for something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Code:
    """One rule.

    Args:
        code: Its stable name.
        severity: How it is reported.
        title: The rule in a few words.
        why: Why it is a rule, for the person who broke it.
        breaks: What breaks it: a piece of a pipeline file, or a command.
        keeps: What keeps it.
        source: Where the rule comes from, when it isn't gem-bundle's own.
    """

    code: str
    severity: Severity
    title: str
    why: str = ""
    breaks: str = ""
    keeps: str = ""
    source: str = ""


_ALL = (
    Code("GB001", "error", "the file can't be read"),
    Code("GB002", "error", "the file isn't valid YAML"),
    Code("GB003", "error", "a key stands twice in one mapping"),
    Code("GB004", "error", "unknown key"),
    Code("GB005", "error", "a value has the wrong type or isn't allowed there"),
    Code("GB006", "error", "a required key is missing"),
    Code("GB007", "error", "YAML tags are not allowed: a pipeline file is data"),
    Code("GB008", "error", "the file is too large, too deep or expands too far"),
    Code("GB010", "error", "unknown parameter"),
    Code("GB011", "error", "a parameter has no value"),
    Code("GB012", "error", "a parameter's value has the wrong type"),
    Code("GB013", "error", "unknown profile"),
    Code("GB014", "error", "an environment variable is not set"),
    Code("GB015", "error", "a secret can't be found"),
    Code("GB016", "error", "a reference can't be read"),
    Code("GB017", "error", "a name or id has characters that can't be used"),
    Code("GB018", "error", "the project's settings are wrong"),
    Code("GB101", "error", "unknown input"),
    Code("GB102", "error", "the graph has a cycle"),
    Code("GB103", "warning", "a node is not used by any target"),
    Code("GB104", "error", "an id is used twice"),
    Code("GB105", "error", "a node has too few or too many inputs"),
    Code("GB106", "error", "unknown output of a node"),
    Code("GB107", "error", "the pipeline has no target"),
    Code("GB108", "error", "unknown node"),
    Code("GB201", "error", "unknown gem"),
    Code(
        "GB202",
        "error",
        "a gem can't be used: two plugins register it, or its class can't be loaded",
    ),
    Code("GB203", "warning", "an installed plugin is broken"),
    Code("GB204", "error", "unknown option"),
    Code("GB205", "error", "an option's value is wrong"),
    Code("GB206", "error", "a required option is missing"),
    Code("GB207", "error", "options don't go together"),
    Code("GB208", "error", "an option is given twice, in two spellings"),
    Code("GB310", "error", "the target can't take the output mode"),
    Code("GB311", "error", "a stream goes into a target that takes no streams"),
    Code("GB312", "error", "the source can't be read that way"),
    Code("GB313", "error", "a static relation goes into a target that needs a stream"),
    Code("GB314", "error", "the trigger can't be used here"),
    Code("GB320", "error", "Spark's analyser refuses the query"),
    Code("GB401", "error", "the checkpoint is in use by another run"),
    Code("GB402", "error", "the checkpoint is damaged"),
    Code("GB403", "error", "the checkpoint was not made by this kind of run"),
    Code("GB501", "error", "no usable Java"),
    Code("GB502", "error", "jars can't be resolved"),
    Code("GB503", "error", "a system can't be reached"),
    Code("GB504", "error", "a topic doesn't exist"),
    Code("GB505", "error", "a path doesn't exist"),
    Code("GB506", "error", "a Python function doesn't exist"),
    Code("GB507", "error", "Python code of the pipeline raised an error"),
    Code("GB508", "error", "a query failed"),
    Code("GB509", "error", "pyspark is missing, or too old for what the pipeline uses"),
    Code("GB510", "error", "a table doesn't exist"),
    Code("GB511", "error", "a file can't be written"),
    Code("GB512", "error", "the Spark session can't start"),
)

CODES: dict[str, Code] = {code.code: code for code in _ALL}
