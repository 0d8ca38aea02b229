"""What makes an expression or a query unreadable for certain, whatever its words mean.

A parser that isn't Spark's own refuses some of what Spark reads, and almost any word may be a name for
Spark. So signs are looked at: brackets, quotes, and operators without what they are applied to; and of words
only whether three names stand side by side.
"""

from __future__ import annotations

import re

from gem_bundle.expressions.functions import words
from gem_bundle.expressions.names import LONGEST

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
    |(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`)
    |(?P<word>\d+(?:\.\w*)?|\.\d\w*|\w+)
    |(?P<sign><=>|>>>|->|=>|::|\|\||<=|>=|<>|!=|==|!<|!>|<<|>>|[-+*/%=<>~!&|^,.()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_TYPE = re.compile(r"\b(array|map|struct)\s*<", re.IGNORECASE)
_PAIRS = {"(": ")", "[": "]"}
# Those that may stand beside names in an expression. tests/integration/test_expressions.py asks Spark.
_BESIDE_NAMES = words(
    """
    all and any as asc between both by case collate cross current desc distinct div distribute else end
    escape except exists false filter first following for from group ignore ilike in intersect interval
    is last leading like minus not null nulls on or order over partition placing preceding range regexp
    respect rlike row rows some sort then to trailing true unbounded union using when where with within
    without
    year years quarter quarters month months week weeks day days hour hours minute minutes second seconds
    millisecond milliseconds microsecond microseconds nanosecond nanoseconds
    """
)
_QUERIES = frozenset({"from", "select", "table", "values"})
# A star behind one of these means all columns.
_BEFORE_ALL = frozenset({"all", "distinct", "select"})
_BEHIND_ALL = frozenset({")", ","})
_PREFIX = frozenset({"+", "-", "~", "!"})
_OPENING = frozenset(_PAIRS)
_CLOSING = frozenset(_PAIRS.values())


def unreadable(expression: str) -> str | None:
    """What is certainly wrong with how an expression is written, or None."""
    if len(expression) > LONGEST:
        return None
    found = _tokens(expression)
    return found if not isinstance(found, list) else _wrong(expression, found) or _names(found)


def unreadable_query(query: str) -> str | None:
    """What is certainly wrong with how a query is written, or None."""
    found = None if len(query) > LONGEST or "|>" in query else _tokens(query)
    if not isinstance(found, list):
        return found
    if not found:
        return None
    return _wrong(query, found, _BEHIND_ALL | {""}) or _before_from(found) or _names_of_items(found)


def _tokens(text: str) -> list[tuple[str, str]] | str | None:
    """The kinds and the texts of its tokens; what is wrong where there is none, if that is certain."""
    if "/*" in text:
        return None
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            quote = text[position]
            return f"a {quote} is not closed" if quote in "'\"`" else None
        position = match.end()
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match.group()))
    return tokens


def _wrong(text: str, tokens: list[tuple[str, str]], behind_all: frozenset[str] = _BEHIND_ALL) -> str | None:
    """What is wrong with the signs; `behind_all` is what may stand behind a star that means all columns."""
    problem = _brackets(tokens) or _casts(tokens)
    # In a type (`array<int>`) the signs of comparisons are brackets.
    return problem if problem or _TYPE.search(text) else _operators(tokens, behind_all)


def _before_from(tokens: list[tuple[str, str]]) -> str | None:
    """An operator right before the only `from`: as a name, Spark would look for it in no table at all."""
    found = [at for at, (kind, text) in enumerate(tokens) if kind == "word" and text.lower() == "from"]
    kind, sign = tokens[found[0] - 1] if len(found) == 1 and found[0] else ("", "")
    wrong = kind == "sign" and sign not in {"*", *_CLOSING}
    return f"nothing stands between `{sign}` and `from`" if wrong else None


def _names_of_items(tokens: list[tuple[str, str]]) -> str | None:
    """Three names side by side between a `select` and its `from`."""
    words = [text.lower() if kind == "word" else text for kind, text in tokens]
    for start in (at for at, word in enumerate(words) if word == "select"):
        depth = 0
        for at in range(start + 1, len(words)):
            depth += (words[at] == "(") - (words[at] == ")")
            if depth < 0 or words[at] in _QUERIES:
                break
        else:
            continue
        found = _three(tokens[start + 1 : at]) if words[at] == "from" and not depth else None
        if found is not None:
            return found
    return None


def _names(tokens: list[tuple[str, str]]) -> str | None:
    """Three names side by side, where there is no query within the expression."""
    queries = any(text.lower() in _QUERIES for kind, text in tokens if kind == "word")
    return None if queries else _three(tokens)


def _three(tokens: list[tuple[str, str]]) -> str | None:
    """Three names: the second one may be what the first one is called, the third one nothing."""
    names = [_is_name(kind, text) for kind, text in tokens]
    for at in range(len(tokens) - 2):
        if all(names[at : at + 3]):
            first, second, third = (text.strip("`") for _, text in tokens[at : at + 3])
            return f"`{first}`, `{second}` and `{third}` stand side by side"
    return None


def _is_name(kind: str, text: str) -> bool:
    plain = kind == "word" and not text[0].isdigit() and text.lower() not in _BESIDE_NAMES
    return plain or text.startswith("`")


def _brackets(tokens: list[tuple[str, str]]) -> str | None:
    expected: list[str] = []
    for kind, text in tokens:
        if kind != "sign":
            continue
        if text in _OPENING:
            expected.append(_PAIRS[text])
        elif text in _CLOSING and (not expected or expected.pop() != text):
            return f"`{text}` closes nothing"
    return f"`{expected[-1]}` is missing" if expected else None


def _casts(tokens: list[tuple[str, str]]) -> str | None:
    """A cast to nothing; whether there is such a type is looked at where types are read."""
    casts: list[bool] = []
    texts = [text.lower() for _, text in tokens]
    for before, text in zip(["", *texts], texts, strict=False):
        if text == "(":
            casts.append(before in {"cast", "try_cast"})
        elif text == ")" and casts and casts.pop() and before == "as":
            return "the type is missing behind the last `as` of a `cast`"
    return None


def _operators(tokens: list[tuple[str, str]], behind_all: frozenset[str]) -> str | None:
    """Two signs side by side that can't be, at the ends of the expression too."""
    signs = [text if kind == "sign" else "" for kind, text in tokens]
    if not signs:
        return "there is nothing in it"
    texts = ["", *(text.lower() for _, text in tokens), ""]
    beside = zip(texts, texts[2:], strict=False)
    for before, sign, after, (left, right) in zip(
        ["(", *signs], signs, [*signs[1:], ")"], beside, strict=False
    ):
        # Behind a star only `except` can stand.
        leads = before in {"(", ",", "."} or left in _BEFORE_ALL
        star = sign == "*" and leads and (after in behind_all or right == "except")
        if not sign or sign in _CLOSING or star:
            continue
        if sign in _OPENING:
            wrong = after not in {"", "*", ")", "]", *_PREFIX, *_OPENING}
        else:
            wrong = after not in {"", *_PREFIX, *_OPENING} and not (after == "*" and sign in {",", "."})
            if not wrong and sign not in _PREFIX and sign != ".":
                wrong = before not in {"", *_CLOSING, "*"}
        if wrong:
            return _told(sign, after, at_end=after == ")" and sign == signs[-1])
    return None


def _told(sign: str, after: str, *, at_end: bool) -> str:
    if at_end:
        return f"nothing stands behind the last `{sign}`"
    return f"`{sign}` and `{after}` stand side by side" if after else f"nothing stands before `{sign}`"
