"""Objects of JSON as shapes: which keys they have, of what type and in what unit, and what they mean.

A shape is a model of pydantic, so that an object can be held against it: it takes one with exactly its keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from types import GenericAlias, NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from gem_bundle.describe.markdown import table
from gem_bundle.describe.words import type_in_words
from gem_bundle.pipeline.health import Level
from gem_bundle.reference.docstrings import documented_arguments
from gem_bundle.run.progress import Totals
from gem_bundle.waiting import WaitingUnit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

TIME = "UTC, ISO 8601"
_UNIT = "unit"
# By the ends of their names, which say the same of all keys.
_UNITS = (
    (r"_per_second$", "rows per second"),
    (r"_ms$", "milliseconds"),
    (r"_bytes$", "bytes"),
    (r"(^|_)seconds$|^(silence|wait)$", "seconds"),
    (r"^rows_|_rows$|^(rejected|broken)$", "rows"),
    (r"^(started|ended|heartbeat|since|timestamp|watermark)$", TIME),
)
# Modules name these for type checkers only.
_NAMES = {"Mapping": Mapping, "Level": Level, "Totals": Totals, "WaitingUnit": WaitingUnit}


class Shape(BaseModel):
    """An object of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Key(NamedTuple):
    """A key of a shape.

    Args:
        type: The annotation of its value.
        meaning: What it means.
        unit: The unit of its value; None is what its name says, empty for none.
        always: Whether it is always there.
    """

    type: Any
    meaning: str
    unit: str | None = None
    always: bool = True


def shape(title: str, about: str, keys: Mapping[str, Key]) -> type[Shape]:
    """A shape.

    Args:
        title: Its name.
        about: What it is, in a sentence.
        keys: Its keys by their names.
    """
    made: dict[str, Any] = {}
    for name, key in keys.items():
        unit = _unit_by_name(name) if key.unit is None else key.unit
        field: Any = Field(
            ... if key.always else None, description=key.meaning, json_schema_extra={_UNIT: unit}
        )
        made[name] = (key.type, field)
    found: type[Shape] = create_model(title, __base__=Shape, __doc__=about, **made)
    return found


def keys_of(
    of: type, *, types: Mapping[str, Any] | None = None, units: Mapping[str, str] | None = None
) -> dict[str, Key]:
    """The keys of a dataclass that becomes an object of JSON, as its docstring has them.

    Args:
        of: The dataclass.
        types: The types of keys whose annotations don't say what they hold.
        units: The units of keys whose names don't say them.
    """
    hints = get_type_hints(of, localns=_NAMES)
    told = documented_arguments(of.__doc__ or "")
    return {
        field.name: Key(
            (types or {}).get(field.name, hints[field.name]),
            re.sub(r"\bNone\b", "null", told[field.name]),
            (units or {}).get(field.name),
        )
        for field in fields(of)
    }


def without(keys: Mapping[str, Key], names: Collection[str]) -> dict[str, Key]:
    """Keys without some of them."""
    return {name: key for name, key in keys.items() if name not in names}


def list_of(item: Any) -> Any:
    """The type of a list of shapes."""
    return GenericAlias(list, (item,))


def by_name(item: Any) -> Any:
    """The type of a mapping of names to shapes."""
    return GenericAlias(dict, (str, item))


def shapes_in(annotation: Any) -> list[type[Shape]]:
    """The shapes in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        return [annotation]
    return [found for argument in get_args(annotation) for found in shapes_in(argument)]


def with_inner(shapes: Iterable[type[Shape]]) -> list[type[Shape]]:
    """Shapes with those that are in them, each once and behind the first that has it."""
    found: dict[type[Shape], None] = {}
    for each in shapes:
        if each not in found:
            found[each] = None
            inner = [one for info in each.model_fields.values() for one in shapes_in(info.annotation)]
            found |= dict.fromkeys(with_inner(inner))
    return list(found)


def link(to: type[Shape]) -> str:
    """A link to the section of a shape."""
    return f"[{to.__name__}](#{to.__name__.lower().replace(' ', '-')})"


def keys_table(of: type[Shape]) -> str:
    """The keys of a shape as a table of Markdown."""
    rows = []
    for name, info in of.model_fields.items():
        extra = info.json_schema_extra
        unit = str(extra.get(_UNIT, "")) if isinstance(extra, dict) else ""
        kind = _words(info.annotation)
        rows.append(
            (f"`{name}`", kind if info.is_required() else f"{kind}; optional", unit, info.description or "")
        )
    return table(("key", "type", "unit", "meaning"), rows)


def _words(annotation: Any, *, plural: bool = False) -> str:
    """A type in words, with links to shapes, and with null where it may be."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    ending = "s" if plural else ""
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        return link(annotation)
    if origin in {list, tuple}:
        return f"list{ending} of {_words(arguments[0], plural=True)}"
    if origin in {dict, Mapping}:
        keys, values = (_words(argument, plural=True) for argument in arguments)
        return f"mapping{ending} of {keys} to {values}"
    if origin is not None and origin is not Literal:
        with_shapes = [_words(argument, plural=plural) for argument in arguments if shapes_in(argument)]
        words = with_shapes or [type_in_words(annotation, plural=plural)]
        return " or ".join([*words, *(["null"] if NoneType in arguments else [])])
    return type_in_words(annotation, plural=plural)


def _unit_by_name(name: str) -> str:
    return next((unit for pattern, unit in _UNITS if re.search(pattern, name)), "")
