"""Expressions of which Spark leaves out what their form decides, and what they read then.

The columns: ``n`` and ``l`` are counts, which are never null; ``t`` and ``b`` numbers, ``c`` a text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

NEVER_NULL: Final = frozenset({"n", "l"})
AGGREGATES: Final = {"n": "count(1)", "l": "count(x)", "t": "sum(x)", "b": "max(x)", "c": "max(page)"}
"""What each column is made by, of rows with a ``page`` and a number ``x``."""

READ: Final = {
    # Branches.
    "if(t > 1, n, n)": "n",
    "if(n = n, l, t)": "l",
    "if(null, t, n)": "n",
    "if(t > 1, true, true)": "",
    "if(t > 1 and null, b, n)": "n",
    "if(t > 1 and not (t > 1), b, n)": "n",
    "if(rand() > 0.5, n, t)": "n t",
    "if(t is null, t, t)": "t",
    "nvl2(t, n, n)": "n",
    "nvl2(n, l, t)": "l",
    "case when t > 1 then n else n end": "n",
    "case when t > 1 then n when 1 = 2 then b else n end": "n",
    "case when t > 1 then n when b > 1 then l else l end": "n t b l",
    "case when n = l then b when l is not null then b else n end": "n l b",
    "case when n is null then t when n is not null then l else t end": "l",
    "case n when n then l else t end": "l",
    "case when t > 1 then n end": "n t",
    # Comparisons of something with itself.
    "n = n or t > 1": "",
    "n >= n or t > 1": "",
    "n <=> n or t > 1": "",
    "t <=> t or n > 1": "",
    "t = t or n > 1": "n t",
    "n <> n and t > 1": "",
    "n < n and t > 1": "",
    "n <=> null and t > 1": "",
    "n between n and n or t > 1": "",
    "nullif(n, n) is null or t > 1": "",
    "nullif(t, t)": "t",
    # Conditions that say nothing beside others.
    "n > 1 and (n > 1 or t > 1)": "n",
    "n > 1 or (n > 1 and t > 1)": "n",
    "not (t <= 1) and (t > 1 or b > 1)": "t",
    "t > 1 and b > 1 and (n > 1 or b > 1)": "b n t",
    "n > 1 and not (n > 1) and t > 1": "",
    "n > 1 or n <= 1 or t > 1": "",
    "t > 1 and not (t > 1) and b > 1": "b t",
    "n > 1 and t > 1 and n <= 1": "n t",
    # What comes of nulls.
    "t + null": "",
    "coalesce(t + null, n)": "n",
    "coalesce(null, n, t)": "n",
    "coalesce(if(t > 1, 1, 2), b)": "t",
    "coalesce(greatest(n, t), b)": "n t",
    "coalesce(case when t > 1 then n when true then l else t end, b)": "n l t",
    "(n = l) is null and t > 1": "",
    "if(not (n is null), n, t)": "n",
    # What is taken out of what is put together.
    "array(n, t)[0]": "n",
    "map('a', n, 'b', t)['a']": "n",
    "named_struct('a', n, 'b', t).a": "n",
    "struct(n, t).n": "n",
    "element_at(array(n, t), 1)": "n t",
    # Constants.
    "if(t > 1, 1, 2) > 0": "",
    "if(t > 1, 1, 1) + n": "n",
    "n = l or 1.0 = 2": "n l",
    "t > 1 and 'a' like 'b%'": "",
    "t > 1 or 2 in (1, 2)": "",
    "((1 = 1) is true) or t > 1": "",
}
"""What each expression reads as Spark plans it."""


def drawn_expression(random: Random, depth: int = 3) -> str:
    """Any expression over these columns.

    Args:
        random: What draws it.
        depth: How deep it may go.
    """
    return (_number if random.random() < 0.5 else _condition)(random, depth)


def _number(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.3:
        return random.choice(["n", "l", "t", "b", "1", "2", "0"])
    form = random.choice(
        [
            *("{n} + {n}", "{n} - {n}", "abs({n})", "greatest({n}, {n})", "length({c})"),
            *("coalesce({n}, {n})", "nvl({n}, {n})", "nvl2({n}, {n}, {n})", "nullif({n}, {n})"),
            *("if({b}, {n}, {n})", "case when {b} then {n} when {b} then {n} else {n} end"),
            *("case when {b} then {n} end", "array({n}, {n})[1]", "named_struct('a', {n}, 'b', {n}).a"),
        ]
    )
    return f"({_filled(random, form, depth - 1)})"


def _text(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.3:
        return random.choice(["c", "c", "'a'", "''"])
    forms = ["upper({c})", "concat({c}, {c})", "coalesce({c}, {c})", "if({b}, {c}, {c})"]
    return _filled(random, random.choice(forms), depth - 1)


def _condition(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.15:
        plain = ["n > 1", "t > 1", "b > 2", "t > 1", "n is null", "t is null", "n = l", "c = 'a'", "n > 1"]
        return random.choice([*plain, "true", "false", "l is not null", "c is not null", "1 = 2"])
    compared = ["{n} = {n}", "{n} < {n}", "{n} >= {n}", "{n} <=> {n}", "{n} <> {n}"]
    form = random.choice(
        [
            *("{b} and {b}", "{b} or {b}", "{b} and {b}", "{b} or {b}", "not {b}", random.choice(compared)),
            *("{n} is null", "isnotnull({n})", "if({b}, {b}, {b})", "{n} in (l, 3)", "{n} between n and 2"),
            *("({b}) is true", "{c} like 'a%'"),
        ]
    )
    return f"({_filled(random, form, depth - 1)})"


def _filled(random: Random, form: str, depth: int) -> str:
    for kind, draw in (("{n}", _number), ("{b}", _condition), ("{c}", _text)):
        while kind in form:
            form = form.replace(kind, draw(random, depth), 1)
    return form
