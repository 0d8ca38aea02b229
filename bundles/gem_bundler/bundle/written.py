"""A pipeline as its file has it: references left open, secrets hidden; and its fingerprint."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from gem_bundle.pipeline.secrets import HIDDEN
from gem_bundler.bundle.model import BundleParameter, BundlePipeline, BundleTarget
from gem_bundler.bundle.option_values import SECRET, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.options import Options
    from gem_bundle.pipeline.document import Path
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import Registry


def describe(
    definition: Definition, values: Mapping[str, Any], path: str, registry: Registry
) -> BundlePipeline:
    """What a bundle's manifest says of a pipeline.

    Args:
        definition: The pipeline as it was read.
        values: The same file as plain values, as `gem_bundle.pipeline.loader.read_file` gives them.
        path: The file's path within the project.
        registry: The installed gems, which know how options are called and which are secrets.

    Raises:
        PluginError: When a gem isn't installed, which a check would have said.
    """
    nodes = {node.id: _node(node, values, registry) for node in definition.nodes.values()}
    spark = tuple(sorted((key, _setting(definition, key, text)) for key, text in _spark(values).items()))
    checkpoints = str(values.get("checkpoints") or "checkpoints")
    parameters = tuple(
        BundleParameter(
            name=parameter.name,
            type=parameter.type,
            required=parameter.required,
            default=None if parameter.required else _plain(parameter.default),
            description=parameter.description,
        )
        for parameter in definition.parameters.values()
    )
    return BundlePipeline(
        name=definition.name,
        file=path,
        mode=definition.mode,
        description=definition.description,
        checkpoints=checkpoints,
        parameters=parameters,
        secrets=tuple(sorted(definition.secrets)),
        targets=tuple(_target(node) for node in definition.of_kind("target")),
        spark=spark,
        fingerprint=_fingerprint(
            {
                "name": definition.name,
                "mode": definition.mode,
                "checkpoints": checkpoints,
                "parameters": {parameter.name: parameter.type for parameter in parameters},
                "spark": dict(spark),
                "nodes": {name: nodes[name] for name in sorted(nodes)},
            }
        ),
        nodes=nodes,
        profiles={name: _plain(given or {}) for name, given in (values.get("profiles") or {}).items()},
    )


def _fingerprint(facts: dict[str, Any]) -> str:
    facts["parameters"] = dict(sorted(facts["parameters"].items()))
    return sha256(json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def _node(node: Node, values: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
    """A node without its description; what the file leaves out is filled in where it says the same."""
    entry = values[node.path[0]][node.id]  # type: ignore[index]
    found: dict[str, Any] = {"kind": node.kind, "gem": node.gem}
    if node.kind == "source":
        found["mode"] = node.mode
    else:
        found["inputs"] = _inputs(entry)
    if node.kind == "target":
        found["output_mode"] = entry.get("output_mode", "append")
        found["trigger"] = _plain(entry.get("trigger") or {})
    found["options"] = _options(
        entry.get("options") or {}, registry.get(node.kind, node.gem).load().options_type
    )
    return found


def _inputs(entry: Mapping[str, Any]) -> list[str]:
    written = entry.get("inputs", entry.get("input"))
    if isinstance(written, dict):
        return [f"{name}: {node}" for name, node in written.items()]
    return [str(node) for node in written] if isinstance(written, list) else [str(written)]


def _options(options: Mapping[str, Any] | str, model: type[Options]) -> dict[str, Any]:
    """Options in one spelling and in alphabetical order; further in, the order may matter."""
    if isinstance(options, str):  # a reference to a parameter that has them all
        return {"": options}
    kept = _plain(options)
    for way, value in list(values_of(SECRET, model, kept)):
        if isinstance(value, str) and "${" not in value:
            _put(kept, way, HIDDEN)
    return dict(sorted((model.canonical(key) or key, value) for key, value in kept.items()))


def _put(values: Any, way: Path, value: Any) -> None:
    for step in way[:-1]:
        values = values[step]
    values[way[-1]] = value


def _target(node: Node) -> BundleTarget:
    return BundleTarget(
        id=node.id,
        gem=node.gem,
        trigger=node.trigger.kind,
        interval=node.trigger.interval,
        output_mode=node.output_mode,
    )


def _spark(values: Mapping[str, Any]) -> dict[str, Any]:
    return values.get("spark") or {}


def _setting(definition: Definition, key: str, value: Any) -> str:
    """A setting's text as the file has it: with references, and numbers as they are written."""
    if isinstance(value, bool):
        return str(value).lower()
    return definition.locator.text(("spark", key)) or str(value)


def _plain(value: Any) -> Any:
    """A copy of a value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
