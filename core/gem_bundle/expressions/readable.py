"""What makes an expression unreadable for certain, whatever its words mean.

A parser that isn't Spark's own refuses some of what Spark reads, and almost any word may be a name for
Spark. So only its signs are looked at: brackets, quotes, and operators without what they are applied to.
"""

from __future__ import annotations

import re

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
_PREFIX = frozenset({"+", "-", "~", "!"})
_OPENING = frozenset(_PAIRS)
_CLOSING = frozenset(_PAIRS.values())


def unreadable(expression: str) -> str | None:
    """What is certainly wrong with how an expression is written, or None."""
    if "/*" in expression or len(expression) > LONGEST:
        return None
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            quote = expression[position]
            return f"a {quote} is not closed" if quote in "'\"`" else None
        position = match.end()
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match.group()))
    problem = _brackets(tokens) or _casts(tokens)
    # In a type (`array<int>`) the signs of comparisons are brackets.
    return problem if problem or _TYPE.search(expression) else _operators(tokens)


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


def _operators(tokens: list[tuple[str, str]]) -> str | None:
    """Two signs side by side that can't be, at the ends of the expression too."""
    signs = [text if kind == "sign" else "" for kind, text in tokens]
    if not signs:
        return "there is nothing in it"
    behind = [*(text.lower() for _, text in tokens[1:]), ""]
    for before, sign, after, word in zip(["(", *signs], signs, [*signs[1:], ")"], behind, strict=False):
        # Behind a star only `except` can stand.
        star = sign == "*" and before in {"(", ",", "."} and (after in {")", ","} or word == "except")
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
