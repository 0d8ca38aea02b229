"""The smallest pipeline over which the checker and Spark still disagree in the same way."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

import sqlglot
import sqlglot.errors
import yaml
from sqlglot import exp

from gem_bundle.schema import fields_of
from tests.differential.generator import before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.differential.compare import Disagreement
    from tests.differential.engine import Verdict

Values = dict[str, Any]
_CLAUSES = ("with_", "with", "where", "group", "having", "order", "limit", "offset", "joins", "distinct", "laterals", "sample", "pivots")  # fmt: skip
_PLAIN = {"gem": "rate"}
_LOGGER = "sqlglot"


def shrink(values: Values, still_wrong: Callable[[Values], bool], tries: int = 600) -> Values:
    """Make a pipeline smaller as long as something holds of it.

    Args:
        values: The pipeline as its file has it.
        still_wrong: Whether a smaller one still shows what this one shows.
        tries: How often to ask at most.
    """
    logging.getLogger(_LOGGER).setLevel(logging.ERROR)
    current, smaller = values, True
    while smaller and tries > 0:
        smaller = False
        for candidate in _candidates(current):
            if _size(candidate) >= _size(current):
                continue
            tries -= 1
            if still_wrong(candidate):
                current, smaller = candidate, True
                break
            if tries <= 0:
                break
    return current


def save(folder: Path, name: str, values: Values, verdicts: dict[str, Verdict], why: str) -> Path:
    """Write a pipeline as a regression case, with what Spark says of each target."""
    case = {
        "why": why,
        "expect": {target: verdict.outcome for target, verdict in verdicts.items()},
        "pipeline": values,
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(case, sort_keys=False, width=100, allow_unicode=True))
    return file


def same(disagreement: Disagreement, others: list[Disagreement]) -> bool:
    """Whether one of the others has the same cause, as far as one can see."""
    return any(other.group == disagreement.group for other in others)


def _size(values: Values) -> int:
    return len(yaml.safe_dump(values, width=1_000_000))


def _candidates(values: Values) -> Iterator[Values]:
    """Smaller pipelines, the greatest steps first."""
    yield from _fewer_targets(values)
    yield from _bypassed(values)
    yield from _plainer_nodes(values)
    yield from _fewer_options(values)
    yield from _fewer_columns(values)
    yield from _simpler_texts(values)


def _fewer_targets(values: Values) -> Iterator[Values]:
    for name in values["targets"]:
        if len(values["targets"]) > 1:
            smaller = copy.deepcopy(values)
            # What it rejects another one may take.
            kept = {name, *before(_nodes(values), values["targets"][name])} & values["targets"].keys()
            smaller["targets"] = {n: node for n, node in smaller["targets"].items() if n in kept}
            yield _without_unused(smaller)


def _bypassed(values: Values) -> Iterator[Values]:
    """Each transform left out: what reads from it reads from one of its inputs."""
    for name, node in values.get("transforms", {}).items():
        for instead in dict.fromkeys(_inputs(node)):
            smaller = copy.deepcopy(values)
            for reader in [*smaller["transforms"].values(), *smaller["targets"].values()]:
                _replace_input(reader, name, instead)
            yield _without_unused(smaller)


def _plainer_nodes(values: Values) -> Iterator[Values]:
    for name, node in values["targets"].items():
        plain = {"gem": "noop", "input": node["input"]}
        if node.get("output_mode", "append") != "append":
            plain["output_mode"] = node["output_mode"]
        if plain != node and not any(
            f"{name}.rejected" in _inputs(other) for other in values["targets"].values()
        ):
            smaller = copy.deepcopy(values)
            smaller["targets"][name] = plain
            yield smaller
    for name, node in values["sources"].items():
        if node.get("mode") != "batch" and node != _PLAIN:
            smaller = copy.deepcopy(values)
            smaller["sources"][name] = dict(_PLAIN)
            yield smaller


def _fewer_options(values: Values) -> Iterator[Values]:
    """Each option, list item and mapping entry of a transform left out."""
    for name, node in values.get("transforms", {}).items():
        for path in _paths(node.get("options", {})):
            smaller = copy.deepcopy(values)
            options = smaller["transforms"][name]["options"]
            holder = options
            for step in path[:-1]:
                holder = holder[step]
            del holder[path[-1]]
            if not options:
                del smaller["transforms"][name]["options"]
            yield smaller


def _fewer_columns(values: Values) -> Iterator[Values]:
    """Each column of a declared schema left out."""
    for section in ("sources", "transforms"):
        for name, node in values.get(section, {}).items():
            schema = node.get("options", {}).get("schema")
            fields = fields_of(schema) if schema and node["gem"] != "rows" else None
            for gone in fields or () if fields and len(fields) > 1 else ():
                smaller = copy.deepcopy(values)
                kept = ", ".join(f"{field.name} {field.type}" for field in fields or () if field is not gone)
                smaller[section][name]["options"]["schema"] = kept
                yield smaller


def _simpler_texts(values: Values) -> Iterator[Values]:
    for name, node in values.get("transforms", {}).items():
        for path in _paths(node.get("options", {})):
            text: Any = node["options"]
            for step in path:
                text = text[step]
            if not isinstance(text, str) or path[0] == "schema":
                continue
            for simpler in _simpler(text):
                smaller = copy.deepcopy(values)
                holder = smaller["transforms"][name]["options"]
                for step in path[:-1]:
                    holder = holder[step]
                holder[path[-1]] = simpler
                yield smaller


def _simpler(text: str) -> Iterator[str]:
    """Texts with one part of the expression or query replaced by a part of that part, or left out."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return
    for index, part in enumerate(list(tree.walk())):
        for child in part.iter_expressions():
            yield _text(child) if part is tree else _text(_swapped(tree, index, child))
        for clause in _CLAUSES:
            if part.args.get(clause):
                copied = tree.copy()
                _part(copied, index).set(clause, None)
                yield _text(copied)
        if isinstance(part, exp.Select | exp.Group | exp.Struct | exp.Tuple):
            for position in range(len(part.expressions)):
                copied = tree.copy()
                _part(copied, index).expressions.pop(position)
                yield _text(copied)


def _swapped(tree: Any, index: int, child: Any) -> Any:
    copied = tree.copy()
    _part(copied, index).replace(child.copy())
    return copied


def _part(tree: Any, index: int) -> Any:
    return list(tree.walk())[index]


def _text(tree: Any) -> str:
    text: str = tree.sql(dialect="spark")
    return text


def _paths(options: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all that is in options, outer first."""
    items = (
        options.items()
        if isinstance(options, dict)
        else enumerate(options)
        if isinstance(options, list)
        else ()
    )
    for key, value in items:
        yield (*above, key)
        yield from _paths(value, (*above, key))


def _inputs(node: Values) -> list[str]:
    if "input" in node:
        return [node["input"]]
    inputs = node.get("inputs", [])
    return list(inputs.values()) if isinstance(inputs, dict) else list(inputs)


def _replace_input(node: Values, old: str, new: str) -> None:
    if str(node.get("input")).partition(".")[0] == old:
        node["input"] = new
    inputs = node.get("inputs")
    if isinstance(inputs, dict):
        node["inputs"] = {key: new if value == old else value for key, value in inputs.items()}
    elif isinstance(inputs, list):
        node["inputs"] = [new if value == old else value for value in inputs]


def _nodes(values: Values) -> Values:
    return {**values["sources"], **values.get("transforms", {}), **values["targets"]}


def _without_unused(values: Values) -> Values:
    nodes = _nodes(values)
    used = {name for node in values["targets"].values() for name in before(nodes, node)}
    for section in ("sources", "transforms"):
        kept = {name: node for name, node in values.get(section, {}).items() if name in used}
        values[section] = kept
    if not values["transforms"]:
        del values["transforms"]
    return values
