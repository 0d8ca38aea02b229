"""Holds OpenLineage's events against what OpenLineage says of them.

Its official schemas lie beside this module, and each event is held against them as it was sent, and each of its facets
against its own. They let pass what they don't know, such as a field that is misspelt. OpenLineage makes the
classes of its Python client of the same schemas, so these are asked too: that no field is unknown, that each value is of
its type, that each facet is what the address of its schema says, is allowed where it stands and has the name that belongs
to it, and that moments, ids and addresses are such.
"""

from __future__ import annotations

import importlib
import json
import re
import types
import typing
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

import attr
from jsonschema import Draft202012Validator
from openlineage.client import event_v2, facet_v2
from referencing import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FORMATS: dict[str, Callable[[str], object]] = {
    "runId": UUID,
    "eventTime": lambda text: datetime.fromisoformat(text).tzinfo,
    "producer": lambda text: urlsplit(text).scheme and urlsplit(text).netloc,
}
_SUFFIX = re.compile(r"(_(?:input|output))?_(?:dataset|job|run)$")


def assert_valid(event: dict[str, Any]) -> None:
    """An event of a run is as OpenLineage wants it."""
    assert event["schemaURL"] == event_v2.RunEvent._get_schema()
    _hold(event, event["schemaURL"])
    for name, facet in _facets_of(event):
        schema = _schema(facet["_schemaURL"])
        assert name in schema["properties"], name
        _hold({name: facet}, schema["$id"])
    _check(event, event_v2.RunEvent, "event")
    assert event["eventType"] in {"START", "RUNNING", "COMPLETE", "FAIL"}


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    """The official schemas, by the names of their files."""
    folder = Path(__file__).with_name("openlineage_schemas")
    return {file.name: json.loads(file.read_text()) for file in folder.glob("*.json")}


def _schema(url: str) -> dict[str, Any]:
    """The official schema that an address names: of the same major version, which is what may not change."""
    version, name = urlsplit(url).path.split("/")[-2:]
    schema = _schemas()[name]
    assert version.partition("-")[0] == schema["$id"].split("/")[-2].partition("-")[0], url
    return schema


def _hold(value: Any, url: str) -> None:
    """Hold a value against an official schema, or the part of it that an address names."""
    wanted = f"{_schema(url)['$id']}#{urlsplit(url).fragment}"
    registry: Registry[Any] = Registry().with_contents((each["$id"], each) for each in _schemas().values())
    validator = Draft202012Validator(
        {"$ref": wanted}, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    validator.validate(value)


def _facets_of(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All facets of an event, with their names."""
    holders = [event["run"], event["job"], *event.get("inputs", ()), *event.get("outputs", ())]
    for holder in holders:
        for kind in ("facets", "inputFacets", "outputFacets"):
            yield from holder.get(kind, {}).items()


@cache
def _facets() -> dict[str, tuple[str, type]]:
    """The name and the class of each facet, by the address of its schema."""
    found = {}
    for name in facet_v2.__all__:
        module = getattr(facet_v2, name)
        if not isinstance(module, types.ModuleType):
            continue
        for made in vars(module).values():
            if (
                isinstance(made, type)
                and made.__module__ == module.__name__
                and issubclass(made, facet_v2.BaseFacet)
            ):
                found[made._get_schema()] = (_SUFFIX.sub("", name), made)
    return found


def _check(value: Any, wanted: Any, where: str) -> None:
    if wanted is Any:
        return
    origin = typing.get_origin(wanted)
    if origin in {types.UnionType, typing.Union}:
        kinds = [kind for kind in typing.get_args(wanted) if kind is not types.NoneType]
        assert len(kinds) == 1 or {str, int, float, bool}.issuperset(kinds), where
        if len(kinds) == 1:
            _check(value, kinds[0], where)
        else:
            assert isinstance(value, tuple(kinds)), where
    elif origin is list:
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            _check(item, typing.get_args(wanted)[0], f"{where}[{number}]")
    elif origin is dict:
        assert isinstance(value, dict), where
        of = typing.get_args(wanted)[1]
        for name, item in value.items():
            is_facet = isinstance(of, type) and issubclass(of, facet_v2.BaseFacet)
            _check(item, _facet(name, item, of, where) if is_facet else of, f"{where}.{name}")
    elif attr.has(wanted):
        _check_object(value, wanted, where)
    elif issubclass(wanted, Enum):
        assert value in {member.value for member in wanted}, where
    else:
        assert isinstance(value, wanted), f"{where} is {value!r}"
        assert wanted is bool or not isinstance(value, bool), where


def _facet(name: str, value: dict[str, Any], base: type, where: str) -> type:
    known, made = _facets()[value["_schemaURL"]]
    assert issubclass(made, base), f"{where}.{name}"
    assert re.sub(r"(?<!^)([A-Z])", lambda found: f"_{found[1].lower()}", name) == known, f"{where}.{name}"
    return made


@cache
def _hints(made: type) -> dict[str, Any]:
    """The types of the fields of a class and of its bases, which live in other modules."""
    names: dict[str, Any] = {}
    for base in reversed(made.__mro__):
        names |= vars(importlib.import_module(base.__module__))
    return typing.get_type_hints(made, names)


def _check_object(value: Any, made: type, where: str) -> None:
    assert isinstance(value, dict), where
    fields = {field.name: field for field in attr.fields(made)}
    hints = _hints(made)
    assert value.keys() <= fields.keys(), f"{where} has {sorted(value.keys() - fields.keys())}"
    needed = {name for name, field in fields.items() if field.default is attr.NOTHING}
    needed |= {name for name in ("_producer", "_schemaURL", "producer", "schemaURL") if name in fields}
    assert value.keys() >= needed, f"{where} lacks {sorted(needed - value.keys())}"
    for name, item in value.items():
        _check(item, hints[name], f"{where}.{name}")
        if name.lstrip("_") in _FORMATS:
            assert _FORMATS[name.lstrip("_")](item), f"{where}.{name} is {item!r}"
