"""Types and semantics in words, for people."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, WithJsonSchema

from gem_bundle import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.describe.facts import GemDescription

# By what makes them: pydantic keeps the validators of an annotation, not its name. The ones with
# more validators come first, for they are built of the others.
_NAMED: tuple[tuple[Any, str], ...] = (
    (types.BrokerList, "list of `host:port`"),
    (types.StringList, "list of texts"),
    (types.Duration, "duration"),
    (types.Schema, "schema"),
    (types.Expression, "SQL expression"),
    (types.DataPath, "path"),
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
    words = _either([_plural(each) if plural else each for each in alternatives])
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


def _either(words: list[str]) -> str:
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


def semantics_in_words(gem: GemDescription) -> list[tuple[str, str]]:
    """What a gem declares, as pairs of what and how, for people."""
    facts = gem.semantics
    if gem.kind == "transform":
        return [("Inputs", _input_count(facts["least_inputs"], facts["most_inputs"]))]
    ways = _either([way for way, can in (("stream", facts["streaming"]), ("batch", facts["batch"])) if can])
    words = [("Mode", ways)]
    if facts["streaming"]:
        words.append(("Triggers", ", ".join(_trigger(trigger) for trigger in facts["triggers"])))
    if gem.kind == "source":
        words.append(("Replayable", _with("yes" if facts["replayable"] else "no", facts["condition"])))
        if not facts["backlog"]:
            words.append(("Backlog", "no: rows come while the query runs, and never end"))
        if facts["only_new"]:
            words.append(("First run", "begins with the rows that come after its start"))
        if facts["inline"]:
            words.append(("In tests", "read as it is, since its rows are its options"))
        return words
    if facts["streaming"]:
        words.append(("Output modes", ", ".join(facts["output_modes"])))
        words.append(("Delivery", _with(_DELIVERY[facts["delivery"]], facts["condition"])))
        restart = "continues from its checkpoint" if facts["restartable"] else "starts anew"
        words.append(("Restart", restart))
        if facts["shared"] in _SHARED:
            words.append(("Two writers", _SHARED[facts["shared"]]))
    return words


_SHARED = {
    "conflicts": "one query fails when both change the place itself, as when they create it",
    "loses_rows": "no: the rows of one of the two queries are lost",
}
_DELIVERY = {
    "exactly_once": "exactly once",
    "at_least_once": "at least once",
    "none": "no promise, it is for looking at",
}


def _with(answer: str, condition: str) -> str:
    return f"{answer}: {condition}" if condition else answer


def _trigger(kind: str) -> str:
    return "none (as fast as possible)" if kind == "default" else kind


def _input_count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"
