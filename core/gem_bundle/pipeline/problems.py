"""From pydantic's errors to diagnostics: which key of the file, what it got, what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.diagnostics import suggest
from gem_bundle.pipeline.secrets import UnresolvedSecret

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


class Problem(NamedTuple):
    """One thing that is wrong with a mapping of the file.

    Args:
        kind: ``unknown``, ``missing``, ``value`` or ``together``.
        path: The keys below the mapping that lead to the place.
        message: What is wrong.
        hint: What to do about it.
        at_key: Whether the key itself is wrong, and not its value.
    """

    kind: str
    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    at_key: bool = False


def problems(
    error: ValidationError, data: Any, known: Iterable[str] = (), hidden: Iterable[str] = ()
) -> list[Problem]:
    """What a validation found, in the user's words.

    Args:
        error: What pydantic raised.
        data: What it was given.
        known: The keys that exist at the top of `data`, for suggestions.
        hidden: The keys whose values must not be shown.
    """
    found: dict[tuple[Any, ...], Problem] = {}
    expected: dict[tuple[str | int, ...], list[str]] = {}
    hidden = set(hidden)
    for detail in error.errors(include_url=False):
        path = _real_path(detail["loc"], data)
        value = detail.get("input")
        if isinstance(value, UnresolvedSecret):
            continue
        kind = detail["type"]
        if kind == "extra_forbidden":
            name = str(path[-1]) if path else ""
            siblings = known if len(path) == 1 else ()
            problem = Problem("unknown", path, f"unknown key `{name}`", suggest(name, siblings), True)
        elif kind == "missing":
            name = str(detail["loc"][-1])
            problem = Problem("missing", path, f"`{name}` is missing")
        elif not path:
            problem = Problem("together", path, _sentence(detail))
        else:
            shown = "" if path[0] in hidden else f", not {_shown(value)}"
            wants = _sentence(detail)
            alternatives = expected.setdefault(path, [])
            if wants not in alternatives:
                alternatives.append(wants)
            problem = Problem("value", path, f"`{_dotted(path)}` {_either(alternatives)}{shown}")
            found[("value", path)] = problem
            continue
        found[(problem.kind, path, problem.message)] = problem
    return list(found.values())


def _real_path(loc: Sequence[str | int], data: Any) -> tuple[str | int, ...]:
    """The part of pydantic's location that exists in the data: it also names union members."""
    path: list[str | int] = []
    here = data
    for step in loc:
        if isinstance(here, dict):
            if step not in here:
                if step == "[key]":
                    break
                continue
            here = here[step]
        elif isinstance(here, list | tuple):
            if not isinstance(step, int) or not 0 <= step < len(here):
                continue
            here = here[step]
        else:
            break
        path.append(step)
    return tuple(path)


def _sentence(detail: ErrorDetails) -> str:
    text = detail["msg"]
    for prefix in ("Value error, ", "Assertion failed, "):
        text = text.removeprefix(prefix)
    words = {
        "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
        "Input should be a valid integer, got a number with a fractional part": "must be a whole number",
        "Input should be a valid integer": "must be a whole number",
        "Input should be a valid number, unable to parse string as a number": "must be a number",
        "Input should be a valid boolean, unable to interpret input": "must be true or false",
        "Input should be a valid boolean": "must be true or false",
        "Input should be a valid string": "must be a text",
        "Input should be a valid list": "must be a list",
        "Input should be a valid dictionary": "must be a mapping",
    }
    if text == "Input should be True":
        return "must be true"
    if text in words:
        return words[text]
    if text.startswith("Input should be a valid dictionary or instance of"):
        return "must be a mapping"
    if text.startswith("Input should "):
        return text.replace("Input should ", "must ", 1).replace("'", "`")
    return text


def _either(sentences: list[str]) -> str:
    if len(sentences) == 1:
        only = sentences[0]
        return only if only.startswith("must ") else f"is wrong: {only}"
    shared = all(sentence.startswith("must be ") for sentence in sentences)
    if shared:
        return "must be " + " or ".join(s.removeprefix("must be ") for s in sentences)
    return "is wrong: " + "; or it ".join(sentences)


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else str(step))
    return text


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = str(value)
    return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"
