"""From pydantic's errors to what a user can act on: which key of the file, what it got, what it takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.diagnostics import suggest
from gem_bundle.options import is_secret
from gem_bundle.pipeline.document import Unknown, place_within
from gem_bundle.pipeline.secrets import Secret
from gem_bundle.types import ExposedSecretError, secret_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from gem_bundle.ddl import Mistake
    from gem_bundle.diagnostics import Place
    from gem_bundle.pipeline.document import Locator, Path


MAX_PROBLEMS = 200
FILE_CODES = {"unknown": "GB004", "missing": "GB006", "value": "GB005", "together": "GB005"}
"""The code of each kind of problem in the file itself, and not in the options of a gem."""


class Problem(NamedTuple):
    """One thing that is wrong with a mapping of the file.

    Args:
        kind: ``unknown``, ``missing``, ``value`` or ``together``; ``ignored`` is a value that
            can't be judged, because it isn't known or because it is wrong for a reported reason.
        path: The keys below the mapping that lead to the place.
        message: What is wrong.
        hint: What to do about it.
        within: Where in the value it stands, from 0, and what stands there, if it isn't the whole.
    """

    kind: str
    path: Path
    message: str
    hint: str = ""
    within: tuple[int, str] | None = None

    @property
    def at_key(self) -> bool:
        """Whether the key itself is wrong, and not its value."""
        return self.kind != "value"

    def place(self, locator: Locator, path: Path) -> Place:
        """Where it stands in a file.

        Args:
            locator: Tells places of the file.
            path: The path in the file of what `path` leads to.
        """
        if self.within is not None:
            return place_within(locator, path, *self.within)
        return locator.place(path, key=self.at_key)


def problems(
    error: ValidationError,
    data: Any,
    model: type[BaseModel],
    hidden: Container[str] = (),
    written: Mapping[str, str] | None = None,
) -> list[Problem]:
    """What a validation found, in the user's words; of very many problems the first `MAX_PROBLEMS`.

    Args:
        error: What pydantic raised.
        data: What it was given.
        model: What it was validated against.
        hidden: The keys whose values must not be shown.
        written: How the file spells the keys at the top of `data`, where it spells them otherwise.
    """
    written = written or {}
    found: dict[object, Problem] = {}
    wanted: dict[Path, list[str]] = {}
    details = error.errors(include_url=False)[:MAX_PROBLEMS]
    paths = [_real_path(detail["loc"], data) for detail in details]
    unsure = [p for detail, p in zip(details, paths, strict=True) if _is_unsure(detail, _at(data, p))]
    for detail, path in zip(details, paths, strict=True):
        kind = detail["type"]
        value = _at(data, path)
        if path and kind not in _OF_KEYS and any(other[: len(path)] == path for other in unsure):
            problem = Problem("ignored", path, "")
        elif kind == "extra_forbidden":
            name = str(path[-1]) if path else ""
            hint = cut_by_comma(_at(data, path[:-1]), name) or suggest(name, _siblings(model, path[:-1]))
            problem = Problem("unknown", path, f"unknown key `{name}`", hint)
        elif kind == "missing":
            name = _dotted((*path, str(detail["loc"][-1])))
            problem = Problem("missing", path, f"`{name}` is missing")
        elif not path:
            problem = Problem("together", path, _without_logins(_sentence(detail), value))
        elif any(len(other) > len(path) and other[: len(path)] == path for other in paths):
            # Another member of a union got further: what this one wanted is of no interest.
            continue
        else:
            exposed = _is_exposed(detail)
            secret = path[0] in hidden or _holds(value, Secret) or _is_secret(model, path)
            mistakes = getattr(detail.get("ctx", {}).get("error"), "mistakes", ())
            if mistakes and not secret:
                for problem in _of_schema(_as_written(path, written), mistakes):
                    found[problem] = problem
                continue
            sentence = _without_logins(_sentence(detail), value)
            if secret and kind == "value_error" and not exposed:
                sentence = "must be another one"  # what the gem says may quote the secret
            sentences = wanted.setdefault(path, [])
            if sentence not in sentences:
                sentences.append(sentence)
            there = _as_written(path, written)
            message = f"`{_dotted(there)}` {_either(sentences, '' if secret or exposed else shown(value))}"
            unquoted = kind == "string_type" and isinstance(value, int | float)
            hint = "Put it in quotes." if unquoted else ""
            if value is None and path:
                hint = cut_by_comma(_at(data, path[:-1]), path[-1])
            found["value", path] = Problem("value", there, message, hint)
            continue
        problem = problem._replace(path=_as_written(problem.path, written))
        found[problem] = problem
    return list(found.values())


def _of_schema(path: Path, mistakes: Iterable[Mistake]) -> Iterator[Problem]:
    """A problem for each mistake in a schema."""
    for mistake in mistakes:
        there = (*path, *mistake.keys)
        message = f"`{_dotted(there)}`: {mistake.message}"
        yield Problem("value", there, message, mistake.hint, (mistake.start, mistake.word))


def cut_by_comma(data: Any, key: str | int) -> str:
    """The hint for a key that is the rest of the value before it: within ``{…}`` a comma ends a value.

    Args:
        data: What the key stands in.
        key: The key.
    """
    if not isinstance(data, dict) or data.get(key) is not None:
        return ""
    keys = list(data)
    before = data[keys[keys.index(key) - 1]] if keys.index(key) else None
    if not isinstance(before, str):
        return ""
    opened = any(before.count(left) > before.count(right) for left, right in ("()", "<>"))
    if not opened and re.fullmatch(r"\w+", str(key)):
        return ""
    return f"If `{key}` belongs to the value before it, put that value in quotes: in `{{…}}` a comma ends it."


def _is_exposed(detail: ErrorDetails) -> bool:
    """Whether the value must not be shown, since a secret in it is why it can't be used."""
    return isinstance(detail.get("ctx", {}).get("error"), ExposedSecretError)


def _is_secret(model: type[BaseModel], path: Path) -> bool:
    """Whether a value is a secret by its type, however deep."""
    models = [model]
    for step in path:
        if isinstance(step, int):
            continue
        annotations = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        if any(is_secret(annotation) for annotation in annotations):
            return True
        models = [found for annotation in annotations for found in _models(annotation)]
    return False


def _without_logins(sentence: str, value: Any) -> str:
    """What is said of a value, without the texts in it that have a login."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            sentence = _without_logins(sentence, item)
    elif isinstance(value, str) and secret_in(value):
        sentence = sentence.replace(value, "…")
    return sentence


def _is_unsure(detail: ErrorDetails, value: Any) -> bool:
    """Whether another value in the place of an unknown one could make it right.

    That a list isn't a mapping doesn't depend on what is in it, nor that a secret is in a text beside it.
    """
    kind = detail["type"]
    if kind in _OF_KEYS or _is_exposed(detail) or not _holds(value, Unknown):
        return False
    return isinstance(value, Unknown) or kind not in _OF_A_KIND


def _real_path(loc: Sequence[str | int], data: Any) -> Path:
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


def _as_written(path: Path, written: Mapping[str, str]) -> Path:
    return (written.get(str(path[0]), path[0]), *path[1:]) if path else path


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _holds(value: Any, kind: type) -> bool:
    """Whether a value is of a kind, or has one of it in it."""
    if isinstance(value, dict):
        return any(_holds(item, kind) for item in value.values())
    if isinstance(value, list):
        return any(_holds(item, kind) for item in value)
    return isinstance(value, kind)


def _siblings(model: type[BaseModel], path: Path) -> set[str]:
    """The keys that exist in the mapping at a path of a model, as far as its types tell."""
    models = [model]
    for step in path:
        if isinstance(step, int):
            continue
        annotations = [m.model_fields[step].annotation for m in models if step in m.model_fields]
        models = [found for annotation in annotations for found in _models(annotation)]
    return {name for found in models for name in found.model_fields}


def _models(annotation: Any) -> list[type[BaseModel]]:
    from typing import get_args

    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models(argument)]


_OF_KEYS = frozenset({"extra_forbidden", "missing"})
# What says of a list or a mapping that something of another kind is needed.
_OF_A_KIND = frozenset(
    {
        *("bool_type", "dict_type", "float_type", "int_type", "list_type", "model_attributes_type"),
        *("model_type", "string_type"),
    }
)
_WORDS = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}


def _sentence(detail: ErrorDetails) -> str:
    text = detail["msg"]
    if detail["type"] in ("value_error", "assertion_error"):
        return text.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if text == "Input should be True":
        return "must be true"
    if detail["type"] in _WORDS:
        return _WORDS[detail["type"]]
    subject, should, rest = text.partition(" should ")
    if should and " " not in subject:  # "String should have …", "Input should be …"
        return f"must {rest.partition(' after validation')[0]}".replace("'", "`")
    return text


def _either(sentences: list[str], value: str) -> str:
    """What a value must be, by all the types that were tried, and what it is (unless secret)."""
    not_this = f", not {value}" if value else ""
    if all(sentence.startswith("must be ") for sentence in sentences):
        alternatives = " or ".join(sentence.removeprefix("must be ") for sentence in sentences)
        return f"must be {alternatives}{not_this}"
    if len(sentences) == 1 and sentences[0].startswith("must "):
        return f"{sentences[0]}{not_this}"
    reasons = "; or: ".join(sentences)
    return f"can't be {value}: {reasons}" if value.startswith("`") else f"is wrong: {reasons}"


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else str(step))
    return text


def shown(value: Any) -> str:
    """A value as a message shows it: short, in the file's words, and never a secret."""
    if isinstance(value, Secret):
        return "a secret"
    if isinstance(value, str) and secret_in(value):
        return "a text with a login in it"
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = " ".join(str(value).split())
    return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"
