"""The JSON Schema of what stands in a pipeline file: of a gem's options, and of any other model.

A schema never refuses what a check accepts, so that an editor gives no false alarm. pydantic's own schema
is stricter than a check in four ways, which are undone here: a ``${…}`` reference may stand for any
value, numbers and truth values may be texts (``"10"``, ``yes``), options may have Spark's spelling in any
case, and a ``BeforeValidator`` may take texts that it turns into something else. One that takes more than
texts says so itself with ``WithJsonSchema``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from pydantic_core import core_schema

    from gem_bundle.options import Options

DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFERENCE = r"\$\{[^{}]+\}"

# What pydantic reads as a number or a truth value when it is a text; a little more does no harm.
_WHOLE_NUMBER = r"^\s*[-+]?[0-9_]+(\.0*)?\s*$"
_NUMBER = r"^\s*[-+]?([0-9_.]+([eE][-+]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
_TRUTH = r"^([01tTfFyYnN]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[yY][eE][sS]|[nN][oO]|[oO][nN]|[oO][fF][fF])$"
_TEXTS = {
    "integer": (_WHOLE_NUMBER, "a whole number"),
    "number": (_NUMBER, "a number"),
    "boolean": (_TRUTH, "true or false"),
}
_ABOUT = ("description", "default", "examples", "deprecated", "writeOnly")
_TIMES = frozenset({"date", "time", "date-time", "duration"})
_NOISE = frozenset({"title", "gem_bundle", "discriminator"})
_LIMITS = frozenset({"enum", "const", "pattern", "format", "minLength", "maxLength"})
_TEXT = {"type": "string"}


def json_schema(options: type[Options], place: str = "#") -> dict[str, Any]:
    """The JSON Schema of a gem's options, as they stand in a pipeline file.

    Args:
        options: The options.
        place: Where the schema will stand, as a pointer from the top of its document.
    """
    schema = model_schema(options, place)
    names = list(schema.setdefault("properties", {}))
    if names:
        schema["patternProperties"] = {
            _spellings(options, name): {"$ref": f"{place}/properties/{name}"} for name in names
        }
    required = schema.pop("required", [])
    if required:
        schema["allOf"] = [_either_spelling(name, _spellings(options, name)) for name in required]
    return schema


def model_schema(model: type[BaseModel], place: str = "#") -> dict[str, Any]:
    """The JSON Schema of a mapping of the pipeline file that a model describes.

    Args:
        model: The model.
        place: Where the schema will stand, as a pointer from the top of its document.
    """
    template = f"{place}/$defs/{{model}}"
    schema = model.model_json_schema(ref_template=template, schema_generator=_Generator)
    definitions = schema.pop("$defs", {})
    properties = schema.pop("properties", {})
    found = {key: value for key, value in schema.items() if key not in _NOISE}
    if properties:
        found["properties"] = {name: _value(value, nested=False) for name, value in properties.items()}
    if definitions:
        found["$defs"] = {name: _value(inner, reference=False) for name, inner in definitions.items()}
    return found


def or_reference(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a value that is one of some others, or a reference."""
    choices = _Choices(nested=False)
    for schema in schemas:
        choices.keep(dict(schema))
    return choices.schema(reference=True)


def _spellings(options: type[Options], name: str) -> str:
    """A pattern for all that stands for an option: its name, and Spark's spelling in any case."""
    others = dict.fromkeys((options.spark_name(name).lower(), name.replace("_", "").lower()))
    known = [_in_any_case(other) for other in others if options.canonical(other) == name]
    return f"^({'|'.join([_escaped(name), *known])})$"


def _in_any_case(text: str) -> str:
    """A pattern for a text in any case; JSON Schema's patterns have no flags."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else _escaped(c) for c in text)


def _escaped(text: str) -> str:
    """A pattern for a text; unlike `re.escape` it escapes nothing that editors' patterns don't know."""
    return re.sub(r"[.^$*+?()\[\]{}|\\/]", r"\\\g<0>", text)


def _either_spelling(name: str, pattern: str) -> dict[str, Any]:
    """The option is there, in whichever spelling."""
    return {"anyOf": [{"required": [name]}, {"not": {"propertyNames": {"not": {"pattern": pattern}}}}]}


class _Generator(GenerateJsonSchema):
    """pydantic's generator, but for what its validators accept beyond the types they are for."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
        """No title: it would only repeat the name."""
        return False

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> dict[str, Any]:
        """What the function is given may be a text, unless it says what it takes."""
        return self._or_text(schema, super().function_before_schema(schema))

    def function_wrap_schema(self, schema: core_schema.WrapValidatorFunctionSchema) -> dict[str, Any]:
        """What the function is given may be a text, unless it says what it takes."""
        return self._or_text(schema, super().function_wrap_schema(schema))

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:  # noqa: ARG002
        """A type that JSON Schema can't describe may be anything."""
        return {}

    def emit_warning(self, kind: Any, detail: str) -> None:
        """A default that isn't JSON is left out; that is no news to the user of the gem."""

    def _or_text(self, schema: Any, inner: dict[str, Any]) -> dict[str, Any]:
        if "json_schema_input_schema" in schema or _takes_any_text(inner):
            return inner
        return {"anyOf": [inner, dict(_TEXT)]}


def _value(schema: Mapping[str, Any], *, nested: bool = True, reference: bool = True) -> dict[str, Any]:
    """The schema of a value in the file: what pydantic takes from a file, or a reference."""
    about = {key: schema[key] for key in _ABOUT if schema.get(key) is not None}
    since = schema.get("gem_bundle", {}).get("since")
    if since:
        about["description"] = f"{about['description']} Since Spark {since}."
    choices = _Choices(nested=nested)
    choices.add({key: value for key, value in schema.items() if key not in _ABOUT})
    return {**about, **choices.schema(reference=reference)}


class _Choices:
    """What a value may be.

    Args:
        nested: Whether it stands inside of an option. There pydantic's ``true`` is a number too; at the
            top a check refuses it.
    """

    def __init__(self, *, nested: bool) -> None:
        self._nested = nested
        self._schemas: list[dict[str, Any]] = []
        self._texts: dict[str, str] = {}

    def add(self, schema: Mapping[str, Any]) -> None:
        """Add what pydantic's schema allows, and what its validation takes for it."""
        bare = {key: value for key, value in schema.items() if key not in _NOISE}
        several = bare.keys() & {"anyOf", "oneOf"}
        kind = bare.get("type")
        if len(bare) == 1 and several:
            for member in bare[several.pop()]:
                self.add(member)
        elif several:
            for key in several:
                bare[key] = [_lax(member, nested=self._nested) for member in bare[key]]
            self.keep(bare)
        elif "const" in bare or "enum" in bare or (isinstance(kind, list) and "string" in kind):
            self.keep(bare)
        elif isinstance(kind, list):
            for each in kind:
                self.add({**bare, "type": each})
        elif kind in _TEXTS:
            self.keep(bare)
            pattern, words = _TEXTS[kind]
            self._texts[pattern] = words
            if kind == "boolean":
                self.keep({"enum": [0, 1]})
            elif self._nested:
                self.keep({"type": "boolean"})
        elif bare.get("format") in _TIMES:
            self.keep({"type": ["string", "number"]})
        elif kind == "object":
            self.keep(_object(bare))
        elif kind == "array":
            self.keep(_array(bare))
        else:
            self.keep(bare)

    def schema(self, *, reference: bool) -> dict[str, Any]:
        """All of them as one schema.

        Args:
            reference: Whether a reference may stand there too.
        """
        found = list(self._schemas)
        texts = dict(self._texts)
        if reference:
            texts[REFERENCE] = "a reference such as `${name}`"
        if texts and not any(_takes_any_text(each) for each in found):
            pattern = "|".join(texts)
            message = f"Write {' or '.join(texts.values())}."
            found.append({"type": "string", "pattern": pattern, "patternErrorMessage": message})
        return found[0] if len(found) == 1 else {"anyOf": found}

    def keep(self, schema: dict[str, Any]) -> None:
        """Add a schema as it is."""
        if schema not in self._schemas:
            self._schemas.append(schema)


def _lax(schema: Mapping[str, Any], *, nested: bool) -> dict[str, Any]:
    """What pydantic takes where it says that it takes this."""
    choices = _Choices(nested=nested)
    choices.add(schema)
    return choices.schema(reference=False)


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    found = dict(schema)
    for key in ("properties", "patternProperties"):
        if key in found:
            found[key] = {name: _value(value) for name, value in found[key].items()}
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _value(found["additionalProperties"])
    return found


def _array(schema: dict[str, Any]) -> dict[str, Any]:
    # pydantic makes a set of any list.
    found = {key: value for key, value in schema.items() if key != "uniqueItems"}
    if isinstance(found.get("items"), dict):
        found["items"] = _value(found["items"])
    if "prefixItems" in found:
        found["prefixItems"] = [_value(item) for item in found["prefixItems"]]
    return found


def _takes_any_text(schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return schema.keys() == {"anyOf"} and any(_takes_any_text(member) for member in schema["anyOf"])
    kinds = schema.get("type", "string" if not schema else "")
    return "string" in ([kinds] if isinstance(kinds, str) else kinds) and not _LIMITS & schema.keys()
