"""Whether what one condition lets through another one lets through too, by their forms alone."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from gem_bundle.changes.forms import COMPARES, children, columns_in, kind_of, taken_apart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.changes.forms import Form

_Value = tuple[str, Decimal | str]
# What no value beyond a bound is, and how much tighter than the bound itself it has to be.
_BOUNDS: dict[str, tuple[Literal[1, -1], bool]] = {
    "GT": (1, True),
    "GTE": (1, False),
    "LT": (-1, True),
    "LTE": (-1, False),
}
_FLIPPED = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
CONTRARY = {"GT": "LTE", "GTE": "LT", "LT": "GTE", "LTE": "GT", "EQ": "NEQ", "NEQ": "EQ"}
"""What a comparison is behind `not`, by their kinds."""

# Days and times in this form are in the order of their texts, but for those that clocks skip within one day.
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}(?::\d{2})?)?")
# Texts that are the same by no collation, unless they mean the same where Spark casts them.
_WORD = re.compile(r"[a-z]+")
_MEANT_ALIKE = frozenset(
    [
        *("t", "true", "y", "yes", "f", "false", "n", "no", "inf", "infinity", "nan"),
        *("epoch", "now", "today", "tomorrow", "yesterday"),
    ]
)
_DAY = len("2024-01-31")
_LARGEST = 2**31
_MOST_WAYS = 64


class _Atom(NamedTuple):
    """A condition that isn't made of others, or its contrary.

    Args:
        form: The condition.
        hold: It is to hold, not its contrary.
    """

    form: object
    hold: bool


class _Range(NamedTuple):
    """What a comparison with a value asks for.

    Args:
        what: What is compared.
        sign: 1 where the value is the least, -1 where it is the greatest.
        open: The value itself is left out.
        value: The value, by its kind.
    """

    what: object
    sign: int
    open: bool
    value: _Value


def implies(form: Form, other: Form) -> bool:
    """Whether another condition holds wherever one does, for certain: no is unknown.

    Args:
        form: The condition that lets less through.
        other: The one that lets more through.
    """
    goal, holds = _Atom(other, hold=True), _Atom(form, hold=True)
    if _follows(goal, list(_facts(holds))):
        return True
    ways = _ways(holds)
    return ways is not None and all(_follows(goal, way) for way in ways)


def columns_of_what_differs(form: Form, other: Form) -> set[str]:
    """The columns of those parts that not both of two conditions have, of what must hold in each.

    Args:
        form: A condition.
        other: Another one.
    """
    one, two = (set(_facts(_Atom(each, hold=True))) for each in (form, other))
    return set().union(*(columns_in(fact.form) for fact in one ^ two))


def is_said(form: object, others: Sequence[tuple[object, bool]], *, wanted: bool) -> bool:
    """Whether a condition, or its contrary, holds where others do, for certain: no is unknown.

    Args:
        form: The condition.
        others: The others, each with whether it is to hold, not its contrary.
        wanted: The condition is to hold, not its contrary.
    """
    return _follows(_Atom(form, wanted), [fact for other in others for fact in _facts(_Atom(*other))])


def _parts(atom: _Atom) -> tuple[list[_Atom], bool] | None:
    """What a condition, or its contrary, is made of, and whether all of it must hold."""
    each = taken_apart(atom.form, wanted=atom.hold)
    return None if each is None else ([_Atom(part, hold) for part, hold in each[0]], each[1])


def _ways(atom: _Atom) -> list[list[_Atom]] | None:
    """The ways in which a condition holds, each with all that holds then; None where they are many."""
    each = _parts(atom)
    if each is None:
        return [[atom]]
    parts, all_of = each
    found = [_ways(part) for part in parts]
    known = [ways for ways in found if ways is not None]
    if len(known) < len(found):
        return None
    if all_of:
        if prod(map(len, known)) > _MOST_WAYS:
            return None
        return [list(chain.from_iterable(chosen)) for chosen in product(*known)]
    ways = list(chain.from_iterable(known))
    return ways if len(ways) <= _MOST_WAYS else None


def _facts(atom: _Atom) -> Iterator[_Atom]:
    """What is known where a condition holds: all that must; of what is one or the other, the whole."""
    each = _parts(atom)
    if each is None or not each[1]:
        yield atom
        return
    for part in each[0]:
        yield from _facts(part)


def _in_other_words(atom: _Atom) -> _Atom:
    """A comparison as the contrary of its contrary: `j <> 4` as `not (j = 4)`; anything else as it is."""
    match atom.form:
        case (str(kind), *over) if kind in CONTRARY:
            return _Atom((CONTRARY[kind], *over), not atom.hold)
    return atom


def _follows(goal: _Atom, facts: Sequence[_Atom]) -> bool:
    """Whether a condition holds where others do."""
    if goal in facts or _in_other_words(goal) in facts:
        return True
    each = _parts(goal)
    if each is not None:
        parts, all_of = each
        found = (_follows(part, facts) for part in parts)
        return all(found) if all_of else any(found)
    return any(_is_said(goal, fact) for fact in facts)


def _is_said(goal: _Atom, fact: _Atom) -> bool:
    """Whether a condition is one that another one says, or says more than."""
    tested = _is_there(goal)
    if tested is not None:
        return kind_of(fact.form) in COMPARES and tested in children(cast("Form", fact.form))
    wanted, chosen = _choices(goal), _choices(fact)
    if wanted is not None and chosen is not None:
        return wanted[0] == chosen[0] and set(chosen[1]) <= set(wanted[1])
    left_out = _choices(_Atom(goal.form, not goal.hold))
    if left_out is not None and chosen is not None:
        pairs = product(chosen[1], left_out[1])
        return left_out[0] == chosen[0] and all(_differ(one, other) for one, other in pairs)
    wide = _range(goal)
    if wide is None:
        return False
    if chosen is not None:
        values = [_value(choice) for choice in chosen[1]]
        tight: Iterable[_Range | None] = (
            None if value is None else _Range(chosen[0], wide.sign, open=False, value=value)
            for value in values
        )
    else:
        tight = [_range(fact)]
    return all(one is not None and _is_within(one, wide) for one in tight)


def _is_within(tight: _Range, wide: _Range) -> bool:
    """Whether a range lies within another one about the same."""
    (kind, one), (other_kind, other) = tight.value, wide.value
    if tight.what != wide.what or tight.sign != wide.sign or kind != other_kind:
        return False
    if one == other:
        return tight.open or not wide.open
    if kind == "moment" and str(one)[:_DAY] == str(other)[:_DAY]:
        return False  # clocks that are put forward skip some
    # Values of one kind are of one type.
    return one > other if tight.sign > 0 else one < other  # type: ignore[operator]


def _is_there(atom: _Atom) -> object:
    """What a condition asks to be there; None for any other condition."""
    match atom:
        case (("Is", (("this", what), ("expression", ("Null", _)))), False):
            return what
        case (("isnotnull", (what,)), True):
            return what
    return None


def _differ(one: object, other: object) -> bool:
    """Whether two values are different ones whatever they are compared with, for certain."""
    match one, other:
        case (
            ("Literal", (("this", str(text)), ("is_string", True))),
            ("Literal", (("this", str(another)), ("is_string", True))),
        ):
            words = {text.lower(), another.lower()}
            return len(words) == 2 and all(map(_WORD.fullmatch, words)) and not words & _MEANT_ALIKE
    match _value(one), _value(other):
        case ("whole", first), ("whole", second):
            return first != second
    return False


def _choices(atom: _Atom) -> tuple[object, Sequence[object]] | None:
    """What is to be one of some values, and the values."""
    match atom:
        case (("In", (("this", what), ("expressions", tuple(choices)))), True):
            return what, choices
        case (("EQ", (("this", what), ("expression", value))), True) | (
            ("NEQ", (("this", what), ("expression", value))),
            False,
        ):
            return (what, [value]) if columns_in(what) else (value, [what])
    return None


def _range(atom: _Atom) -> _Range | None:
    kind = kind_of(atom.form)
    if not atom.hold:
        kind = CONTRARY.get(kind, "")
    if kind not in _BOUNDS:
        return None
    what, bound = children(cast("Form", atom.form))
    if not columns_in(what):
        what, bound, kind = bound, what, _FLIPPED[kind]
    value = _value(bound)
    return None if value is None or not columns_in(what) else _Range(what, *_BOUNDS[kind], value)


def _value(form: object) -> _Value | None:
    """A value whose order doesn't go by what it is compared with."""
    match form:
        case ("Literal", (("this", str(text)), ("is_string", True))):
            return ("moment", text) if _MOMENT.fullmatch(text) else None
        case ("Literal", (("this", str(text)),)):
            if text.isdecimal():
                return ("whole", Decimal(text)) if int(text) < _LARGEST else None
            return ("decimal", Decimal(text)) if text.replace(".", "", 1).isdecimal() else None
        case ("Neg", (("this", ("Literal", _) as inner),)):
            found = _value(inner)
            return None if found is None or isinstance(found[1], str) else (found[0], -found[1])
        case ("Cast", (("this", ("Literal", _) as inner), ("to", ("DataType", (("this", to),))))):
            found = _value(inner)
            return None if found is None or found[0] != "moment" else (f"moment {to}", found[1])
    return None
