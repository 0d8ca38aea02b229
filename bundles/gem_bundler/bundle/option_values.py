"""The values of a node's options that are of one type: functions, files, paths, secrets."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from gem_bundle.types import DataPath, FunctionReference, TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.options import Options
    from gem_bundle.pipeline.document import Path

# pydantic keeps the validators of an annotation, not its name.
FUNCTION: tuple[Any, ...] = get_args(FunctionReference)[1:]
PATH: tuple[Any, ...] = get_args(DataPath)[1:]
FILE: tuple[Any, ...] = get_args(TextFile)[1:]
SECRET = SecretStr


def values_of(kind: Any, model: type[Options], options: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The values of a type, at any depth, each with the way to it within the options.

    Args:
        kind: `FUNCTION`, `FILE`, `PATH` or `SECRET`.
        model: What the gem declares.
        options: What the file gives, in either spelling; keys that aren't declared are passed over.
    """
    for key, value in options.items():
        name = model.canonical(key)
        if name is not None:
            info = model.model_fields[name]
            yield from _within(kind, info.annotation, info.metadata, value, (key,))


def _within(
    kind: Any, annotation: Any, annotated: Sequence[Any], value: Any, path: Path
) -> Iterator[tuple[Path, Any]]:
    if annotation is kind or (isinstance(kind, tuple) and all(part in annotated for part in kind)):
        yield path, value
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _within(kind, arguments[0], arguments[1:], value, path)
    elif origin in {Union, UnionType}:
        found = (pair for argument in arguments for pair in _within(kind, argument, (), value, path))
        yield from dict(found).items()
    elif isinstance(value, dict) and origin is dict:
        for key, item in value.items():
            yield from _within(kind, arguments[1], (), item, (*path, key))
    elif isinstance(value, list) and origin in {list, tuple, set, frozenset}:
        for number, item in enumerate(value):
            yield from _within(kind, arguments[0], (), item, (*path, number))
    elif isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            if name in value:
                yield from _within(kind, info.annotation, info.metadata, value[name], (*path, name))
