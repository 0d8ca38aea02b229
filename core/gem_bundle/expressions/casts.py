"""The types that expressions name: in casts, and in what functions such as `from_json` are told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.ddl import Mistake, SchemaError, read_columns, read_type
from gem_bundle.diagnostics import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.ddl import Newer
    from gem_bundle.operators import Option

# Texts, quoted names and comments are passed over, whatever stands in them.
_PASSED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
# Functions that are called as the type to which they cast. Nothing fails in `binary` and `string`.
_CALLED = r"(?<![\w.`])(?:bigint|boolean|date|decimal|double|float|int|smallint|timestamp|tinyint)\s*\("
_SIGN = re.compile(rf"{_PASSED}|\b(?:try_)?cast\s*\(|{_CALLED}|\bas\b|::|->|[(),]", re.DOTALL | re.IGNORECASE)


class Cast(NamedTuple):
    """A cast in an expression.

    Args:
        operand: What is cast.
        type: What to, as it is written.
        by_lambda: Whether it stands in the body of a lambda, whose arguments are no columns.
    """

    operand: str
    type: str
    by_lambda: bool = False


class Casts(NamedTuple):
    """The casts of an expression.

    Args:
        expression: The expression, in which a cast that fails is null.
        casts: What is cast to what, by ``cast(… as …)``; also within one another.
        signs: Whether there is a cast by ``::`` too, which isn't among them.
        calls: Casts by functions called as a type, such as ``int(…)``, which aren't either.
    """

    expression: str
    casts: tuple[Cast, ...]
    signs: bool
    calls: tuple[Cast, ...] = ()


def casts_of(text: str) -> Casts:
    """The casts of an expression, and the expression without those that end a query.

    ``try_cast`` isn't among them: who writes it wants null.

    Args:
        text: The expression.
    """
    found: list[Cast] = []
    calls: list[Cast] = []
    open_: list[_Open] = []
    signs = False
    for match in _SIGN.finditer(text):
        sign = match.group().lower()
        if sign == "::":
            signs = True
        elif sign.endswith("("):
            # What stands behind `as` and `::` is a type.
            names_type = (open_ and open_[-1].type) or text[: match.start()].rstrip().endswith("::")
            open_.append(_Open("" if names_type else sign[:-1].strip(), match.end()))
        elif not open_:
            continue
        elif sign == "as" and open_[-1].name == "cast":
            open_[-1] = open_[-1]._replace(type=match.end())
        elif sign in {"->", ","}:
            open_[-1] = open_[-1]._replace(by_lambda=sign == "->")
        elif sign == ")":
            name, begins, type_, _ = open_.pop()
            by_lambda = any(other.by_lambda for other in open_)
            if name == "cast" and type_:
                operand = text[begins : type_ - len("as")].strip()
                found.append(Cast(_tried(operand), text[type_ : match.start()].strip(), by_lambda))
            elif name not in {"", "cast", "try_cast"}:
                calls.append(Cast(text[begins : match.start()].strip(), name, by_lambda))
    return Casts(_tried(text), tuple(found), signs, tuple(calls))


class _Open(NamedTuple):
    """A bracket that is open.

    Args:
        name: What is called by it; empty where nothing is that matters.
        begins: Where stands what is in it.
        type: Where the type of a cast begins; 0 before that.
        by_lambda: Whether the body of a lambda is in it.
    """

    name: str
    begins: int
    type: int = 0
    by_lambda: bool = False


def _tried(text: str) -> str:
    return _SIGN.sub(lambda m: f"try_{m.group()}" if m.group()[:4].lower() == "cast" else m.group(), text)


def check_types(text: str, option: Option, what: str = "a type") -> Iterator[Finding]:
    """What Spark refuses in the types that casts name, and what older ones don't have.

    Args:
        text: An expression or a query.
        option: Where it stands, for the finding's place.
        what: What can't be read, as the beginning of a sentence.

    Yields:
        Findings: GB214 for what is no type, GB370 for what not every Spark has.
    """
    for start, closed in _types(text):
        mistakes, newer = _read(text, start, closed)
        for mistake in mistakes:
            yield Finding(
                "GB214", f"{what} can't be read: {mistake.message}", mistake.hint, option, word=mistake.word
            )
        for found in newer:
            code, message, hint, word, since = newer_type(found)
            yield Finding(code, message, hint, option, word=word, since=since)


def newer_type(found: Newer) -> tuple[str, str, str, str, str]:
    """What to say where the Spark of a pipeline lacks a type: code, message, hint, word and first version.

    Args:
        found: The type.
    """
    return "GB370", f"Spark has the type `{found.name}`", "", found.name.partition(" ")[0], found.since


def schema_problems(text: str, *, columns: bool) -> tuple[tuple[Mistake, ...], tuple[Newer, ...]]:
    """What is wrong with the type that a function is told as a text, and what of it not every Spark has.

    Args:
        text: The type.
        columns: Whether it may be columns too, or a schema in JSON, of which nothing is said: `from_json`.
    """
    if columns and text.lstrip()[:1] in {"{", '"'}:
        return (), ()
    try:
        return (), read_type(text).newer
    except SchemaError as error:
        # What goes on as a type does is meant as one.
        if not columns or re.match(r"\s*(array|map|struct)\s*<", text, re.IGNORECASE):
            return error.mistakes, ()
    try:
        found = read_columns(text, lengths=False)
    except SchemaError as error:
        return error.mistakes, ()
    if found.text != text:
        return (Mistake("Spark takes no colon behind the name of a column here", "Remove it.", 0, ""),), ()
    return (), found.newer


def _read(text: str, start: int, closed: bool) -> tuple[tuple[Mistake, ...], tuple[Newer, ...]]:
    try:
        found = read_type(text, start, whole=False)
    except SchemaError as error:
        return error.mistakes, ()
    behind = re.match(r"\s*(\w+)", text[found.end :]) if closed else None
    if behind:
        return (Mistake(f"`{behind[1]}` can't stand behind a type", "", found.end, behind[1]),), ()
    return (), found.newer


def _types(text: str) -> Iterator[tuple[int, bool]]:
    """Where the types begin that casts name, and whether a bracket closes behind them."""
    casts: list[int] = []
    for sign in _SIGN.finditer(text):
        what = sign[0].lower()
        if what == "::":
            yield sign.end(), False
        elif what == "as" and casts and casts[-1] and text[casts[-1] : sign.start()].strip():
            casts[-1] = 0
            if text[sign.end() :].lstrip()[:1] not in {"", ")"}:
                yield sign.end(), True
        elif what.endswith("("):
            casts.append(sign.end() if "cast" in what else 0)
        elif what == ")" and casts:
            casts.pop()
