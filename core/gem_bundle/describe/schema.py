"""The JSON Schema of a gem's options, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.options import Options


def json_schema(options: type[Options]) -> Mapping[str, Any]:
    """The JSON Schema of a gem's options, for editors.

    It takes what the pipeline file takes: Spark's spelling of an option too, and a ``${…}``
    reference in the place of an option's value.
    """
    schema = options.model_json_schema()
    for model in (schema, *schema.get("$defs", {}).values()):
        for name, value in model.get("properties", {}).items():
            value.pop("gem_bundle", None)
            model["properties"][name] = _or_reference(value)
    properties = schema.setdefault("properties", {})
    spellings = {name: options.spark_name(name) for name in options.model_fields}
    required = schema.pop("required", [])
    for name, spelling in spellings.items():
        if spelling != name:
            properties.setdefault(spelling, {"$ref": f"#/properties/{name}"})
    if required:
        schema["allOf"] = [
            {"anyOf": [{"required": [key]} for key in dict.fromkeys((name, spellings[name]))]}
            for name in required
        ]
    return schema


def _or_reference(value: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value, or of a text with a reference in it."""
    about: dict[str, Any] = {
        key: value.pop(key) for key in ("title", "description", "default", "examples") if key in value
    }
    takes_text = value.get("type") == "string" and not {"enum", "pattern", "format"} & value.keys()
    if takes_text or not value:
        return {**about, **value}
    choices = value["anyOf"] if value.keys() == {"anyOf"} else [value]
    return {**about, "anyOf": [*choices, {"type": "string", "pattern": r"\$\{[^{}]+\}"}]}
