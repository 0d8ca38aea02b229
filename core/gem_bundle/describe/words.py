"""Types in words, for people."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, WithJsonSchema

from gem_bundle import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# By what makes them: pydantic keeps the validators of an annotation, not its name. The ones with
# more validators come first, for they are built of the others.
_NAMED: tuple[tuple[Any, str], ...] = (
    (types.BrokerList, "list of `host:port`"),
    (types.StringList, "list of texts"),
    (types.Duration, "duration"),
    (types.Schema, "schema"),
    (types.SchemaHints, "types of columns"),
    (types.Expression, "SQL expression"),
    (types.DataPath, "path"),
    (types.TextFile, "file beside the pipeline"),
    (types.FunctionReference, "function as `module:name`"),
    (types.ByteSize, "size in bytes"),
    (types.TableName, "name of a table"),
    (types.Timestamp, "date or time"),
)
_SIMPLE = {
    Any: "any value",
    SecretStr: "secret text",
    bool: "true or false",
    float: "number",
    int: "whole number",
    str: "text",
}
_SCALARS = frozenset({"text", "whole number", "number", "true or false"})
_PLURAL = re.compile(r"(duration|schema|SQL expression|path|text|number|value)$")
_LIMITS = {"gt": "greater than {}", "ge": "at least {}", "lt": "less than {}", "le": "at most {}"}


def type_in_words(annotation: Any, annotated: Sequence[Any] = (), *, plural: bool = False) -> str:
    """What an option takes, in words: ``whole number, at least 1``; ``list of texts``.

    A type with a check of its own can say what it is called: by the ``title`` of its
    ``WithJsonSchema``.

    Args:
        annotation: The field's annotation as pydantic keeps it.
        annotated: What pydantic took out of ``Annotated`` and ``Field``.
        plural: Whether it is what a list or a mapping is of.
    """
    named = _named(annotated)
    alternatives = [named] if named else _merged(list(dict.fromkeys(_alternatives(annotation))))
    words = either([_plural(each) if plural else each for each in alternatives])
    limits = _limits(annotated)
    return f"{words}, {limits}" if limits else words


def _named(annotated: Sequence[Any]) -> str | None:
    for part in annotated:
        if isinstance(part, WithJsonSchema) and part.json_schema and "title" in part.json_schema:
            return str(part.json_schema["title"])
    for known, words in _NAMED:
        if all(part in annotated for part in known.__metadata__):
            return words
    return None


def _alternatives(annotation: Any) -> Iterator[str]:
    """The types of a union one by one; None only says that an option may be left out."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        for argument in arguments:
            yield from _alternatives(argument)
    elif origin is Literal:
        yield from (_word(value) for value in arguments)
    elif origin is Annotated:
        inner, *annotated = arguments
        yield type_in_words(inner, annotated)
    elif annotation is not NoneType:
        yield _single(annotation, origin, arguments)


def _single(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> str:
    if origin in {list, tuple, set, frozenset}:
        return f"list of {type_in_words(arguments[0], plural=True)}"
    if origin is not None and len(arguments) == 2:
        keys, values = (type_in_words(argument, plural=True) for argument in arguments)
        return f"mapping of {keys} to {values}"
    if annotation is dict or models_in(annotation):
        return "mapping"
    if annotation is list:
        return "list"
    return _SIMPLE.get(annotation) or str(getattr(annotation, "__name__", annotation))


def _word(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "an empty text"


def _merged(alternatives: list[str]) -> list[str]:
    """Fewer words for what is often allowed together."""
    if set(alternatives) >= _SCALARS:
        return ["single value", *(words for words in alternatives if words not in _SCALARS)]
    if "number" in alternatives:
        return [words for words in alternatives if words != "whole number"]
    return alternatives


def _plural(words: str) -> str:
    if words.startswith("mapping"):
        return f"mappings{words.removeprefix('mapping')}"
    if words.startswith("list"):
        return f"lists{words.removeprefix('list')}"
    return _PLURAL.sub(r"\1s", words)


def either(words: Sequence[str]) -> str:
    """Alternatives in words: ``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _limits(annotated: Iterable[Any]) -> str:
    found = []
    for part in annotated:
        for attribute, words in _LIMITS.items():
            limit = getattr(part, attribute, None)
            if limit is not None:
                found.append(words.format(limit))
        if getattr(part, "min_length", None):
            found.append("not empty")
    return " and ".join(found)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]
