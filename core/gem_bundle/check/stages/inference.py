"""What is known of the rows between the nodes: facts that flow from the sources to the targets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.check.report import gem_failed
from gem_bundle.facts import REJECTED, UNKNOWN_OPERATOR, Facts, combined, output_key
from gem_bundle.gem import Target, Transform
from gem_bundle.lineage import column_keys
from gem_bundle.rejected import rejected_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Gem, Source
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.pipeline.plan import Plan


def infer(
    definition: Definition, gems: dict[str, Gem], order: Iterable[str], *, discover: bool
) -> tuple[dict[str, Facts], list[Diagnostic]]:
    """The facts of each node, from its inputs' facts and its gem's declaration; and what is wrong with those.

    Args:
        definition: The pipeline.
        gems: A gem with validated options for each node that allows it.
        order: Sources and transforms, each after what it gets rows from.
        discover: Let gems look at what is there for what nobody declares.
    """
    sources, found = _infer_sources(definition, gems, order, discover=discover)
    facts: dict[str, Facts] = {}
    for name in order:
        node = definition.nodes[name]
        if node.kind == "target":
            for output, known in _rejected_by(gems.get(name), inputs_of(node, facts)).items():
                facts[output_key(name, output)] = replace(known, operators=_of_node(known.operators, name))
            continue
        if node.kind == "source":
            streaming = node.mode == "stream"
            declared = replace(sources[name], streaming=streaming, bounded=not streaming)
            for output, known in _rejected_by(gems.get(name), [declared]).items():
                facts[output_key(name, output)] = replace(known, operators=_of_node(known.operators, name))
        else:
            inputs = inputs_of(node, facts)
            declared, wrong = declared_facts(definition, node, gems.get(name), inputs)
            found += wrong
            declared = _with_unsteady(declared, gems.get(name), inputs, name)
            for output, known in _named_outputs(gems.get(name), declared, inputs).items():
                facts[output_key(name, output)] = replace(known, operators=_of_node(known.operators, name))
        facts[name] = replace(declared, operators=_of_node(declared.operators, name))
    return facts, found


def _with_unsteady(declared: Facts, gem: Gem | None, inputs: list[Facts], node: str) -> Facts:
    """The facts, with which columns aren't the same in each query: those the node makes so, and earlier ones.

    Expressions tell it of what they make. What else is made of a column that isn't steady is found by the
    lineage, where the gem tells that.
    """
    if declared.columns is None or not any(map(_has_unsteady, (declared, *inputs))):
        return declared
    reasons = {id(c): c.unsteady for c in declared.columns if c.unsteady is not None}
    before = [
        {key: column.unsteady for key, column in zip(keys, known.columns or (), strict=True)}
        for known in inputs
        if (keys := column_keys(known.columns)) is not None
    ]
    keys = column_keys(declared.columns)
    if gem is not None and keys is not None and any(map(_has_unsteady, inputs)):
        sources = {f"{n}:{key}": why for n, known in enumerate(before) for key, why in known.items() if why}
        with suppress(Exception):
            lineage = cast("Transform", gem).lineage(*inputs) if len(before) == len(inputs) else None
            made = {} if lineage is None else lineage.columns
            for key, column in zip(keys, declared.columns, strict=True):
                uses = sorted(made[key].uses or ()) if key in made else []
                if (why := next((sources[use] for use in uses if use in sources), None)) is not None:
                    reasons.setdefault(id(column), why)
    if not reasons:
        return declared
    columns = []
    for column in declared.columns:
        why = reasons.get(id(column))
        if why is not None:
            why = why if why.node else replace(why, node=node, column=why.column or column.name)
            column = replace(column, unsteady=why)  # noqa: PLW2901 (the same one, marked)
        columns.append(column)
    return replace(declared, columns=tuple(columns))


def steady_for(node: Node, inputs: list[Facts], definition: Definition) -> list[Facts]:
    """The facts that a node's `check` is given: that a column isn't steady matters where rows are told apart.

    Args:
        node: The node.
        inputs: The facts of its inputs.
        definition: The pipeline.
    """
    if not any(map(_has_unsteady, inputs)):
        return inputs
    taken = {
        edge.output for other in definition.nodes.values() for edge in other.inputs if edge.node == node.id
    }
    if len(taken) > 1:
        return inputs
    return [
        replace(known, columns=tuple(replace(c, unsteady=None) for c in known.columns))
        if known.columns is not None and _has_unsteady(known)
        else known
        for known in inputs
    ]


def _has_unsteady(facts: Facts) -> bool:
    return any(column.unsteady is not None for column in facts.columns or ())


def _named_outputs(gem: Gem | None, declared: Facts, inputs: list[Facts]) -> dict[str, Facts]:
    """The facts of a transform's named outputs; a gem whose methods fail is told of by other rules."""
    if gem is None:
        return {}
    transform = cast("Transform", gem)
    found: dict[str, Facts] = {}
    with suppress(Exception):
        if transform.rejects():
            found[REJECTED] = combined(UNKNOWN_OPERATOR, inputs)
            found[REJECTED] = transform.infer_rejected(*inputs)
    with suppress(Exception):
        for output in transform.outputs():
            found[output] = declared.with_columns(None)
            known: Any = transform.infer_output(output, *inputs)
            found[output] = known if isinstance(known, Facts) else found[output]
    return found


def _rejected_by(gem: Gem | None, inputs: list[Facts]) -> dict[str, Facts]:
    """The facts of the rows that a target or a source rejects."""
    with suppress(Exception):
        if gem is not None and cast("Target", gem).rejects():
            return {REJECTED: rejected_facts(inputs[0])}
    return {}


def _infer_sources(
    definition: Definition, gems: dict[str, Gem], order: Iterable[str], *, discover: bool
) -> tuple[dict[str, Facts], list[Diagnostic]]:
    """What the sources declare, and on request what they find."""
    facts: dict[str, Facts] = {}
    found: list[Diagnostic] = []
    for name in order:
        node = definition.nodes[name]
        if node.kind == "source":
            facts[name], wrong = declared_facts(definition, node, gems.get(name), [])
            found += wrong
    if discover:
        from gem_bundle.check.stages.connect import discover_columns

        looking = [
            name
            for name, gem in gems.items()
            if gem.kind != "source" and type(gem).discover not in {Transform.discover, Target.discover}  # type: ignore[attr-defined]
        ]
        unknown = [name for name, declared in facts.items() if declared.columns is None and name in gems]
        unknown += looking
        discovered, wrong = discover_columns(definition, gems, unknown)
        found += wrong
        for name, columns in discovered.items():
            facts[name] = facts[name].with_all_columns(columns)
    return facts, found


def declared_facts(
    definition: Definition, node: Node, gem: Gem | None, inputs: list[Facts]
) -> tuple[Facts, list[Diagnostic]]:
    """What a gem declares of its rows, and what is wrong with it.

    Args:
        definition: The pipeline.
        node: A source or a transform.
        gem: Its gem; without one, and where the gem fails, nothing is known.
        inputs: The facts of its inputs.
    """
    unknown = Facts() if node.kind == "source" else combined(UNKNOWN_OPERATOR, inputs)
    if gem is None:
        return unknown, []
    try:
        declared: Any = cast("Source | Transform", gem).infer(*inputs)
        if not isinstance(declared, Facts):
            raise TypeError(f"Facts are needed, not {declared!r}")
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        return unknown, [gem_failed(definition, node, "infer", error)]
    return declared, []


def as_declared(plan: Plan) -> Plan:
    """The same plan without the columns that sources found, for whoever lets Spark read them itself.

    Spark finds more than columns: tables and files have hidden ones, such as ``_metadata``.
    """
    facts = dict(plan.facts)
    for node in plan.definition.of_kind("source"):
        declared, _ = declared_facts(plan.definition, node, plan.gems[node.id], [])
        if declared.columns is None:
            facts[node.id] = facts[node.id].with_columns(None)
    return replace(plan, facts=facts)


def inputs_of(node: Node, facts: Mapping[str, Facts]) -> list[Facts]:
    """The facts of a node's inputs, in order; what can't be known of one is unknown."""
    unknown = Facts(operators=(UNKNOWN_OPERATOR,))
    return [facts.get(edge.key, unknown) for edge in node.inputs]


def _of_node(operators: tuple[Operator, ...], node: str) -> tuple[Operator, ...]:
    """The same operators, those that are new marked as this node's."""
    marked: dict[int, Operator] = {}

    def mark(operator: Operator) -> Operator:
        if operator.node:
            return operator
        if id(operator) not in marked:
            inputs = tuple(mark(before) for before in operator.inputs)
            marked[id(operator)] = replace(operator, node=node, inputs=inputs)
        return marked[id(operator)]

    return tuple(mark(operator) for operator in operators)
