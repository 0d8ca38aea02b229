"""The rules of stateful processors: the time they go by, and state that nothing ever takes away.

Spark: `StatefulProcessorHandleImpl`, `TransformWithStateExec`. What a class does is read in its source, which
isn't imported; where that isn't certain nothing is said.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.check.report import at_key, at_operator
from gem_bundle.operators import StatefulOperator
from gem_bundle.python import read_module, source_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.operators import Ancestry
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

# At which position a time to live stands, where it isn't given by name.
_STATES = {"getValueState": 2, "getListState": 2, "getMapState": 3}
_KINDS = {"getValueState": "value", "getListState": "list", "getMapState": "map"}
_ARGUMENTS = {
    "getValueState": ("stateName", "schema"),
    "getListState": ("stateName", "schema"),
    "getMapState": ("stateName", "userKeySchema", "valueSchema"),
}
_TAKE_AWAY = frozenset({"clear", "removeKey", "deleteIfExists", "put"})


class ProcessorUse(NamedTuple):
    """What a processor asks its handle for.

    Args:
        state: It keeps some.
        timers: It registers timers.
        ttl: It gives state a time to live; None where it may, by a value that isn't written out.
        takes_away: It takes state away by itself.
    """

    state: bool = False
    timers: bool = False
    ttl: bool | None = False
    takes_away: bool = False


def check_processors(plan: Plan, ancestry: Ancestry) -> Iterator[Diagnostic]:
    """What is wrong with the stateful processors of a pipeline.

    Args:
        plan: The pipeline.
        ancestry: The operators of its queries.
    """
    watermarks = [operator for operator in ancestry.operators if operator.kind == "watermark"]
    for operator in ancestry.operators:
        if isinstance(operator, StatefulOperator) and operator.streaming:
            # One of a column that got lost on the way is the query's all the same.
            if not ancestry.before(operator, watermarks):
                yield from _check_watermark(plan, operator)
            use = processor_use(operator.processor, plan.definition.module_folder)
            if use is not None:
                yield from _check_use(plan, operator, use)


def check_processors_end(plan: Plan, target: Node, facts: Facts) -> Iterator[Diagnostic]:
    """A query that is to end by itself, and doesn't: by the clock there is always another micro-batch.

    Args:
        plan: The pipeline.
        target: The target, into which a stream flows.
        facts: What is known of that stream.
    """
    if target.trigger.kind != "available_now":
        return
    for operator in facts.all_operators():
        if isinstance(operator, StatefulOperator) and operator.time == "processing" and operator.streaming:
            message = (
                f"it never ends: `{operator.node}` goes by the clock (`time: processing`), and Spark begins "
                "one micro-batch after the other"
            )
            hint = "Use `processing_time`, or let the processor go by event time."
            yield at_key(plan, target, "GB330", message, "trigger", hint, "warning")
            return


def _check_watermark(plan: Plan, operator: StatefulOperator) -> Iterator[Diagnostic]:
    if operator.watermarked is not False:
        return
    hint = "Put a `watermark` on the event time before it."
    if operator.event_time:
        message = "`event_time` goes by a watermark, and no column before it carries one"
        yield at_operator(plan, operator, "GB330", message, hint)
    elif operator.time == "event":
        message = "no column before it carries a watermark: with `time: event` no timer is ever due"
        yield at_operator(plan, operator, "GB330", message, hint, "warning")


def _check_use(plan: Plan, operator: StatefulOperator, use: ProcessorUse) -> Iterator[Diagnostic]:
    name = operator.processor.partition(":")[2]
    if use.timers and operator.time == "none":
        message = f"`{name}` registers timers, and with `time: none` there are none: Spark fails when it does"
        # It may never come there: what a class does depends on its arguments and its rows.
        hint = "Write `time: event` or `time: processing`."
        yield at_operator(plan, operator, "GB330", message, hint, "warning")
    if use.ttl and operator.time != "processing":
        message = (
            f"`{name}` gives its state a time to live, which goes by the clock: with `time: {operator.time}` "
            "Spark refuses it"
        )
        yield at_operator(plan, operator, "GB330", message, "Write `time: processing`, or use timers.")
    if use.state and use.ttl is False and not (use.timers or use.takes_away):
        message = f"the state of `{name}` grows with every new key: it has no timers and no time to live"
        hint = (
            "Register timers, and clear the state in `handleExpiredTimer`; or, with `time: processing`, give "
            "it `ttlDurationMs`. If there are only so many keys, it is fine."
        )
        yield at_operator(plan, operator, "GB339", message, hint, "note")


def processor_use(reference: str, folder: Path) -> ProcessorUse | None:
    """What a processor asks its handle for, by its source.

    Args:
        reference: ``module:Class``.
        folder: The pipeline file's folder, which comes first on Python's path.

    Returns:
        None where that can't be told: the source isn't there, the class derives from one of another
        module, or it uses something of another module of the pipeline's own.
    """
    found = _of_class(reference, folder)
    return None if found is None else _use(found)


def processor_states(reference: str, folder: Path) -> dict[str, tuple[str, ...]]:
    """The state that a processor asks its handle for, as far as its source writes it out.

    Args:
        reference: ``module:Class``.
        folder: The pipeline file's folder, which comes first on Python's path.

    Returns:
        By the name of a state its kind (``value``, ``list`` or ``map``) and its schemas: that of the values,
        and of a map that of the keys before.
    """
    states: dict[str, tuple[str, ...]] = {}
    for node in _of_class(reference, folder) or ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STATES:
            names = _ARGUMENTS[node.func.attr]
            given = dict(zip(names, node.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg in names}
            texts = [value.value for name in names if isinstance(value := given.get(name), ast.Constant)]
            if len(texts) == len(names) and all(isinstance(text, str) for text in texts):
                name, *schemas = map(str, texts)
                states[name] = (_KINDS[node.func.attr], *schemas)
    return states


def _of_class(reference: str, folder: Path) -> list[ast.AST] | None:
    """The syntax tree of a class and of what it uses in its module; None where there is more to it."""
    module, _, name = reference.partition(":")
    tree = _parsed(module, folder)
    if tree is None:
        return None
    defined = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    imported = {
        (alias.asname or alias.name.partition(".")[0]): (getattr(node, "module", None) or alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    if not isinstance(defined.get(name), ast.ClassDef):
        return None
    found: list[ast.AST] = []
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        if here not in defined:
            if here in imported and not _is_known(imported[here]):
                return None
            continue
        nodes = list(ast.walk(defined[here]))
        found += nodes
        waiting += [node.id for node in nodes if isinstance(node, ast.Name)]
    return found


def _use(nodes: Iterable[ast.AST]) -> ProcessorUse:
    state = timers = takes_away = False
    times: list[bool | None] = []
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called = node.func.attr
        timers = timers or called == "registerTimer"
        takes_away = takes_away or called in _TAKE_AWAY
        if called in _STATES:
            state = True
            given = node.args[_STATES[called] :] + [
                k.value for k in node.keywords if k.arg in {None, "ttlDurationMs"}
            ]
            times += [_is_time(value) for value in given]
    ttl = True if True in times else None if None in times else False
    return ProcessorUse(state, timers, ttl, takes_away)


def _is_time(value: ast.AST) -> bool | None:
    """Whether a value is a time to live; None where it may be."""
    if all(isinstance(part, ast.Constant | ast.BinOp | ast.operator) for part in ast.walk(value)):
        return not (isinstance(value, ast.Constant) and value.value is None)
    return None


def _is_known(module: str) -> bool:
    """Whether a module has nothing to do with the state: Python's own, PySpark and what it works with."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in {"pyspark", "pandas", "numpy", "pyarrow"}


def _parsed(module: str, folder: Path) -> ast.Module | None:
    file = source_file(module, folder)
    try:
        return None if file is None else ast.parse(read_module(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
