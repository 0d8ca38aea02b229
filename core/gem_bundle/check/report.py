"""How a rule says what it found: a diagnostic at a key of a node, or at what asks for an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic, Finding, Place
from gem_bundle.errors import describe_error
from gem_bundle.pipeline.document import place_within

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Severity
    from gem_bundle.errors import GemError
    from gem_bundle.gem import Gem
    from gem_bundle.operators import Operator, Option
    from gem_bundle.pipeline.document import Path
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.pipeline.plan import Plan


def at_path(
    definition: Definition,
    node: Node,
    path: Path,
    code: str,
    message: str,
    hint: str,
    severity: Severity = "error",
) -> Diagnostic:
    """A diagnostic about a node, at the value that a path leads to, or at the node's own key.

    Args:
        definition: The pipeline.
        node: The node.
        path: The node's path, or one that goes on from there.
        code: The code.
        message: What is wrong, without the node's name.
        hint: What to do about it.
        severity: ``error``, ``warning`` or ``note``.
    """
    place = definition.locator.place(path, key=path == node.path)
    return Diagnostic(code, severity, f"{node.kind} `{node.id}`: {message}", node.id, path, place, hint)


def at_node(
    plan: Plan, node: Node, code: str, message: str, hint: str, severity: Severity = "error"
) -> Diagnostic:
    """A diagnostic at a node as a whole, where no single key must change."""
    return at_path(plan.definition, node, node.path, code, message, hint, severity)


def at_key(
    plan: Plan,
    node: Node,
    code: str,
    message: str,
    key: str,
    hint: str,
    severity: Severity = "error",
) -> Diagnostic:
    """A diagnostic at a key of a node, or at the node where it doesn't have the key.

    Args:
        plan: The pipeline.
        node: The node.
        code: The code.
        message: What is wrong, without the node's name.
        key: ``gem``, ``input``, ``output_mode``, ``trigger`` …
        hint: What to do about it.
        severity: ``error``, ``warning`` or ``note``.
    """
    return at_path(plan.definition, node, (*node.path, key), code, message, hint, severity)


def at_option(
    plan: Plan,
    node: Node,
    code: str,
    message: str,
    option: Option,
    hint: str,
    severity: Severity = "error",
) -> Diagnostic:
    """A diagnostic at an option of a node, in whichever spelling the file has it."""
    path = option_path(node, option, plan.gems.get(node.id))
    return at_path(plan.definition, node, path, code, message, hint, severity)


def at_operator(
    plan: Plan, operator: Operator, code: str, message: str, hint: str, severity: Severity = "error"
) -> Diagnostic:
    """A diagnostic at the option that asks for an operator, or at the gem that is one.

    Args:
        plan: The pipeline.
        operator: The operator.
        code: The code.
        message: What is wrong, without the node's name.
        hint: What to do about it.
        severity: ``error``, ``warning`` or ``note``.
    """
    node = plan.definition.nodes.get(operator.node)
    if node is None:
        return Diagnostic(code, severity, message, None, (), Place(plan.definition.file), hint)
    if operator.option is None:
        return at_key(plan, node, code, message, "gem", hint, severity)
    return at_option(plan, node, code, message, operator.option, hint, severity)


def option_path(node: Node, option: Option, gem: Gem | None = None) -> Path:
    """The keys that lead to an option of a node, in whichever spelling the file has it."""
    name, *within = (option,) if isinstance(option, str) else option
    written = name
    if gem is not None:
        written = next((k for k in node.options if gem.options_type.canonical(k) == name), name)
    return (*node.path, "options", written, *within)


def gem_failed(definition: Definition, node: Node, method: str, error: Exception) -> Diagnostic:
    """The warning that a gem raised something in a part of the check.

    Args:
        definition: The pipeline.
        node: The node whose gem it is.
        method: Which of its methods raised.
        error: What it raised.
    """
    message = f"the gem `{node.gem}` fails in `{method}`: {describe_error(error)}"
    hint = "This is a bug of the gem; its part of the check is left out."
    return at_path(definition, node, (*node.path, "gem"), "GB203", message, hint, "warning")


def from_finding(definition: Definition, node: Node, finding: Finding, gem: Gem | None = None) -> Diagnostic:
    """A gem's finding with the node's name and the place of the option it is about.

    Args:
        definition: The pipeline.
        node: The node whose gem says it.
        finding: What it says.
        gem: The gem, so that an option is found in whichever spelling the file has it.
    """
    path = node.path if finding.option is None else option_path(node, finding.option, gem)
    made = at_path(definition, node, path, finding.code, finding.message, finding.hint, finding.severity)
    return made.moved(place_within(definition.locator, path, 0, finding.word)) if finding.word else made


def from_gem_error(definition: Definition, node: Node, error: GemError, gem: Gem | None = None) -> Diagnostic:
    """What a gem raises on purpose, with the node's name and the place of the option it is about.

    Args:
        definition: The pipeline.
        node: The node whose gem raises it.
        error: What it raises.
        gem: The gem, so that an option is found in whichever spelling the file has it.
    """
    finding = Finding(error.code, error.message, error.hint, error.option)
    return from_finding(definition, node, finding, gem)
