"""The JSON Schema of the pipeline file, with all installed gems, for editors.

Like a gem's (`gem_bundle.describe.schema`), it never refuses what a check accepts. It sees less than a
check: nothing of the graph, of expressions, or of what stands behind references.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from gem_bundle.describe.schema import DIALECT, json_schema, model_schema, or_reference
from gem_bundle.errors import PluginError
from gem_bundle.pipeline import model, parameters

if TYPE_CHECKING:
    import re

    from gem_bundle.gem import Gem, Transform
    from gem_bundle.plugins import Registry, SectionEntry
    from gem_bundle.semantics import Kind

NULL = {"type": "null"}
REQUIRED = ("pipeline", "sources", "targets")
"""The keys that every pipeline file has."""
# Python's `\w`, or a little more: in the patterns of editors that is ASCII only.
_WORD = r"[^\u0000-\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u007f]"
_ABOUT = ("description", "default", "examples")


def pipeline_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a pipeline file.

    What options a node takes is told by its gem, so that an editor offers those and no others.

    Args:
        registry: The gems to know. One that can't be loaded may have any options.
    """
    top = model_schema(model.PipelineShape)
    definitions: dict[str, Any] = {
        "parameter": _parameter(),
        "trigger": _trigger(),
        # Those of nodes are among them: they have the same sections.
        **top.pop("$defs", {}),
    }
    changed: dict[str, dict[str, Any]] = {
        "pipeline": or_reference(_text(model.NAME)),
        "version": or_reference(_text(model.VERSION), {"type": "number"}),
        "parameters": {
            "type": ["object", "null"],
            "propertyNames": {"pattern": _pattern(parameters.NAME)},
            "additionalProperties": {"$ref": "#/$defs/parameter"},
        },
        "profiles": {"type": ["object", "null"], "additionalProperties": {"type": ["object", "null"]}},
    }
    for section, kind in model.SECTIONS.items():
        gems = {name: _load(registry, kind, name) for name in registry.names(kind)}
        nodes = {
            "type": "object",
            "propertyNames": {"pattern": _pattern(model.ID)},
            "additionalProperties": or_reference({"$ref": f"#/$defs/{kind}"}),
        }
        changed[section] = or_reference(nodes, *([NULL] if kind == "transform" else []))
        definitions[kind] = _node(section, kind, gems)
        definitions[section] = {name: _options(kind, name, gem) for name, gem in gems.items()}
    for name, entry in registry.sections.items():
        definitions.setdefault("section", {})[name] = _section(entry)
        changed[name] = or_reference({"$ref": f"#/$defs/section/{name}"}, NULL)
    for name, schema in changed.items():
        _replace(top["properties"], name, schema)
    return {
        "$schema": DIALECT,
        "title": "A pipeline of gem-bundle",
        **top,
        "required": list(REQUIRED),
        "patternProperties": {f"^{model.EXTENSION_PREFIX}": {"description": "Anything, for anchors."}},
        "$defs": definitions,
    }


def _section(section: SectionEntry) -> dict[str, Any]:
    """What a plugin's section takes; one whose model can't be loaded may have anything."""
    try:
        return model_schema(section.load(), f"#/$defs/section/{section.name}")
    except PluginError:
        return {}


def _replace(properties: dict[str, Any], name: str, schema: dict[str, Any]) -> None:
    """Put a schema in the place of what the model tells; what is said about it stays."""
    properties[name] = {key: properties[name][key] for key in _ABOUT if key in properties[name]} | schema


def _text(pattern: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": _pattern(pattern)}


def _pattern(pattern: re.Pattern[str]) -> str:
    return f"^({pattern.pattern})$".replace(r"\w", _WORD)


def _parameter() -> dict[str, Any]:
    """A default, or a declaration; a mapping is one when its keys say so (`parameters.py`)."""
    kinds = list(get_args(parameters.ParameterType))
    told = {"properties": {"type": {"enum": kinds}}, "required": ["type"]}
    meant = {"propertyNames": {"enum": sorted(parameters.DECLARATION)}, "required": ["type"]}
    return {
        "type": ["string", "number", "boolean", "array", "object"],
        "if": {"type": "object", "anyOf": [told, meant]},
        "then": {
            "properties": {
                "type": {"enum": kinds, "description": "What its values are."},
                "default": {"description": "Its value where no other one is given."},
                "description": {"description": "What it is for."},
            },
            "additionalProperties": False,
        },
    }


def _trigger() -> dict[str, Any]:
    schema = model_schema(model.TriggerShape)
    there = {"not": {"type": "null"}}
    kinds = [{"required": [name], "properties": {name: there}} for name in model.TriggerShape.model_fields]
    return {**schema, "oneOf": kinds}


def _node(section: str, kind: Kind, gems: dict[str, type[Gem] | None]) -> dict[str, Any]:
    """A node: what all of its kind have, and for each gem the options it takes."""
    node = model_schema(model.NODE_SHAPES[section])
    node.pop("$defs", None)
    summaries = {name: gem.summary() if gem else "It can't be loaded." for name, gem in gems.items()}
    known = {"enum": list(summaries), "enumDescriptions": list(summaries.values())}
    _replace(node["properties"], "gem", or_reference(known))
    conditions = [_condition(section, name, gem) for name, gem in gems.items()]
    if kind == "transform":
        conditions.append(_one_of_inputs())
    elif kind == "target":
        _replace(node["properties"], "trigger", or_reference({"$ref": "#/$defs/trigger"}, NULL))
    return {**node, "allOf": conditions} if conditions else node


def _condition(section: str, name: str, gem: type[Gem] | None) -> dict[str, Any]:
    """What holds for the nodes of one gem."""
    options = {"$ref": f"#/$defs/{section}/{name}"}
    then: dict[str, Any] = {"properties": {"options": or_reference(options, NULL)}}
    if gem is not None and any(info.is_required() for info in gem.options_type.model_fields.values()):
        then = {"properties": {"options": or_reference(options)}, "required": ["options"]}
    if gem is not None and gem.kind == "transform":
        then["properties"] |= _input_count(*cast("type[Transform]", gem).inputs)
    return {"if": {"properties": {"gem": {"const": name}}, "required": ["gem"]}, "then": then}


def _input_count(least: int, most: int | None) -> dict[str, Any]:
    """How many inputs a transform takes."""
    several = {"minItems": least, "minProperties": least}
    if most is not None:
        several |= {"maxItems": most, "maxProperties": most}
    return {"inputs": several, **({"input": NULL} if least > 1 else {})}


def _one_of_inputs() -> dict[str, Any]:
    """Either `input` or `inputs`, which names at least one."""
    several = {
        "not": NULL,
        "minItems": 1,
        "minProperties": 1,
        "propertyNames": {"pattern": _pattern(model.INPUT_NAME)},
    }
    return {
        "oneOf": [
            {"required": ["input"], "properties": {"input": {"type": "string"}, "inputs": NULL}},
            {"required": ["inputs"], "properties": {"inputs": several, "input": NULL}},
        ]
    }


def _options(kind: Kind, name: str, gem: type[Gem] | None) -> dict[str, Any]:
    """The options of a gem; anything, where it can't be loaded."""
    if gem is None:
        return {"type": "object"}
    schema = json_schema(gem.options_type, f"#/$defs/{kind}s/{name}")
    return {**schema, "description": gem.summary(), "examples": [dict(gem.example)]}


def _load(registry: Registry, kind: Kind, name: str) -> type[Gem] | None:
    try:
        return registry.get(kind, name).load()
    except PluginError:
        return None
