"""What a condition asks of some of its columns alone, by the form that it has in the rule of a lineage.

A condition behind groups gets before them as far as it is about their keys: Spark's optimizer takes
conjunctions apart, in whatever words they are, works out what is the same for all rows, and asks for what
would make the rest null. A part that is about a result as well stays behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.forms import (
    COMPARES,
    children,
    columns_in,
    is_column,
    kind_of,
    names_in,
    put_in,
    taken_apart,
)
from gem_bundle.changes.implied import CONTRARY, is_said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from gem_bundle.changes.forms import Form

_CONSTANTS = frozenset({"Boolean", "Null"})
_TRUE = ("Boolean", (("this", True),))
# What is made of elements that something is asked of.
_ARRAYS = frozenset({"array", "split"})
# What may be asked of the same two without the one being the other's contrary.
_GREATER = frozenset({"LT", "GT"})
_ASK_FOR_NULL = frozenset({"Is", "NullSafeEQ", "equal_null", "isnull", "isnotnull"})
# What Spark doesn't take apart to see what it is made of.
_PLAIN = frozenset(
    [
        *("Add", "Boolean", "Cast", "DPipe", "DataType", "Div", "Extract", "IntDiv", "Interval", "Literal"),
        *("Mod", "Mul", "Neg", "Null", "Sub", "TryCast", "Var"),
        *("abs", "concat", "date", "date_add", "date_sub", "date_trunc", "day", "hour", "length", "lower"),
        *("minute", "month", "pmod", "round", "string", "substring", "timestamp", "to_date", "trim", "upper"),
        *("year", "packed", "unpacked"),
    ]
)


def valued_in(form: Form) -> set[str]:
    """The columns of a condition that are equal to a value where it holds."""
    return _valued(form, wanted=True)


def without(form: Form, valued: Set[str]) -> Form:
    """A condition beside others, by which some columns are equal to a value: `ConstantPropagation`.

    Args:
        form: The condition.
        valued: Those columns.
    """
    if valued_in(form) & valued:
        return form  # it is the one that says so
    return put_in(form, dict.fromkeys(valued, ("Literal", (("this", "?"),))))


def gets_before_groups(form: Form, keys: Set[str], lacking: Set[str], nullable: Set[str]) -> bool:
    """Whether anything that a condition asks of groups may be asked of rows, before there are any.

    Args:
        form: The condition, over what comes out of them.
        keys: The columns that they are formed by.
        lacking: Those of them that aren't known for ones that are never null.
        nullable: Those that Spark takes for ones that may be null, of all that come out.
    """
    if not columns_in(form) & keys:
        return False
    asked = _asked(form, nullable, wanted=True)
    if asked & keys & lacking or _is_alone(form, keys, nullable, wanted=True):
        return True
    return has_contraries([form], keys) and _has_part_of_keys(form, keys | valued_in(form), nullable)


def asked_by(form: Form) -> set[str]:
    """The columns that may not be null for a condition to hold, whichever of them may be.

    Args:
        form: The condition.
    """
    return _asked(form, columns_in(form), wanted=True)


def _has_part_of_keys(form: Form, keys: Set[str], nullable: Set[str]) -> bool:
    """Whether any part of a condition is about nothing but keys, or may be: else none can be made of them."""
    parts = [part for part, _ in _atoms(form, wanted=True)]
    return any(_vanishes(part, nullable) is not False or columns_in(part) <= keys for part in parts)


def may_leave_one(form: object, nullable: Set[str]) -> bool:
    """Whether Spark may find one side of an `or` in a condition never to be true, so that the other is left.

    Args:
        form: The condition.
        nullable: The columns that Spark takes for ones that may be null.
    """
    if not isinstance(form, tuple) or is_column(form):
        return False
    if kind_of(form) == "Or" and any(_vanishes(side, nullable) is not False for side in children(form)):
        return True
    return any(may_leave_one(part, nullable) for part in form)


def _is_alone(form: object, keys: Set[str], nullable: Set[str], *, wanted: bool) -> bool:
    """Whether a condition, or its contrary, has a part that is about nothing but keys, or may have."""
    each = _several(form, nullable, wanted=wanted)
    if each is None:
        vanishes = _vanishes(form, nullable, wanted=wanted)
        return _left_in(form, nullable) <= keys if vanishes is False else vanishes is not True
    parts, all_of = each
    if not all_of:
        return all(_is_alone(part, keys, nullable, wanted=hold) for part, hold in parts)
    # Spark puts the value in the place of what is equal to one: `ConstantPropagation`.
    left = list(parts)
    for part, hold in parts:
        others = [other for other in left if other != (part, hold)]
        valued = set().union(*(_valued(other, wanted=so) for other, so in others))
        if valued >= columns_in(part) and is_said(part, others, wanted=hold):
            left = others  # it is true then, and left out
        elif _is_alone(part, keys | valued, nullable, wanted=hold):
            return True
    return False


def _left_in(form: object, nullable: Set[str]) -> set[str]:
    """The columns of a condition without those of parts that are the same for all rows, or may be."""
    match form:
        case ("NullSafeEQ" | "Is", (("this", part), ("expression", ("Boolean", _)))) | (
            "coalesce" | "ifnull" | "nvl",
            (part, ("Boolean", _)),
        ):
            conditions = [part]
        case _:
            tests, given = _branches(form) or ([], [form])
            conditions = [*tests, *given]
    parts = (atom for condition in conditions for atom in _atoms(condition, wanted=True))
    left = (part for part, hold in parts if _vanishes(part, nullable, wanted=hold) is False)
    return set().union(*map(columns_in, left))


def has_contraries(conditions: Iterable[Form], keys: Set[str] = frozenset()) -> bool:
    """Whether a part of what is asked stands beside its contrary, so that Spark may leave neither of both.

    Args:
        conditions: The conditions that all must hold.
        keys: Columns of which it doesn't matter where a part is about nothing else.
    """
    compared: dict[frozenset[object], set[tuple[object, str, bool]]] = {}
    for part, hold in (atom for form in conditions for atom in _atoms(form, wanted=True)):
        if isinstance(part, tuple) and not columns_in(part) <= keys:
            over = (part,) if is_column(part) else tuple(children(part))
            kind = kind_of(part)
            contrary = CONTRARY.get(kind, "")
            way = (over, contrary, not hold) if contrary in _GREATER else (over, kind, hold)
            compared.setdefault(frozenset(over), set()).add(way)
    return any(map(_are_contrary, compared.values()))


def _are_contrary(ways: set[tuple[object, str, bool]]) -> bool:
    """Whether of what is asked of the same some may be the contrary of some other."""
    if len({over for over, _, _ in ways}) > 1 or not {kind for _, kind, _ in ways} <= _GREATER:
        return len(ways) > 1
    return len({kind for _, kind, _ in ways}) < len(ways)


def _atoms(form: object, *, wanted: bool) -> Iterator[tuple[object, bool]]:
    each = _several(form, wanted=wanted)
    if each is None:
        yield form, wanted
        return
    for part, hold in each[0]:
        yield from _atoms(part, wanted=hold)


def _asked(form: object, nullable: Set[str], *, wanted: bool) -> set[str]:
    """What may not be null for a condition, or its contrary, to hold."""
    each = _several(form, nullable, wanted=wanted)
    if each is None:
        return set() if is_whole(form, nullable) else _read_openly(form)
    parts, all_of = each
    # Where one of several never holds, the other is all that is asked.
    certain = [part for part in parts if not _may_never_hold(*part, nullable)]
    found = [_asked(part, nullable, wanted=hold) for part, hold in (parts if all_of else certain or parts)]
    return set.intersection(*found) if certain and not all_of else set().union(*found)


def _read_openly(form: object) -> set[str]:
    """The columns of an expression without those of what isn't null by one of them, packed or filled."""
    if not isinstance(form, tuple) or kind_of(form) == "packed" or _is_filled(form):
        return set()
    return columns_in(form) if is_column(form) else set().union(*map(_read_openly, form))


def _may_never_hold(form: object, wanted: bool, nullable: Set[str]) -> bool:
    """Whether Spark may find a condition, or its contrary, never to hold, by its form."""
    each = _several(form, nullable, wanted=wanted)
    if each is None:
        return _vanishes(form, nullable, wanted=wanted) is None
    found = [_may_never_hold(part, hold, nullable) for part, hold in each[0]]
    return any(found) if each[1] else all(found)


def _several(
    form: object, nullable: Set[str] = frozenset(), *, wanted: bool
) -> tuple[list[tuple[object, bool]], bool] | None:
    """What a condition, or its contrary, is made of, each with whether it is wanted; and whether all are."""
    match form:
        case ("EQ" | "NullSafeEQ" | "Is", (("this", part), ("expression", ("Boolean", value)))):
            if is_whole(form, nullable):
                return None
            return [(part, wanted is (value == (("this", True),)))], True
    return taken_apart(form, wanted=wanted)


def is_whole(form: object, nullable: Set[str]) -> bool:
    """Whether Spark leaves a condition as it is, and asks for no value of what it is over, for certain.

    So it does with `is true`, or a value for null, around what may be null, and with branches of which any
    may be the one: since Spark 4.0 it makes no conjunction of them.

    Args:
        form: The condition.
        nullable: The columns that Spark takes for ones that may be null.
    """
    match form:
        case ("NullSafeEQ" | "Is", (("this", part), ("expression", ("Boolean", _)))):
            return _may_be_null(part, nullable)
        case ("coalesce" | "ifnull" | "nvl", (part, ("Boolean", _))):
            return _may_be_null(part, nullable) and _is_steady(part, nullable)
        case ("exists" | "forall", (array, ("Lambda", (("this", body), _)))):
            # Of what is asked of elements Spark finds out nothing.
            of = children(array) if isinstance(array, tuple) and kind_of(array) in _ARRAYS else [array]
            asks = _vanishes(body, nullable) is False and bool(names_in(body))
            return asks and all(_is_plain(part, nullable) for part in of)
    branches = _branches(form)
    if branches is None:
        return False
    tests, given = branches
    given = [_TRUE if _vanishes(part, nullable) else part for part in given]
    several = [part for part in given if columns_in(part)]
    return (
        bool(several)
        and len(set(given)) == len(given)
        and all(_is_steady(part, nullable) for part in (*tests, *several))
        and all(kind_of(part) in _CONSTANTS for part in given if part not in several)
    )


def _branches(form: object) -> tuple[list[object], list[object]] | None:
    """What branches go by, and what they give; None for anything else."""
    match form:
        case ("if", (test, *given)):
            return [test], given
        case ("nvl2", (what, *given)):
            return [("isnotnull", (what,))], given
        case ("Case", (("ifs", tuple(ifs)), *_)):
            pairs = [children(part) for part in ifs if isinstance(part, tuple)]
            default = children(form)[1:] if isinstance(form, tuple) else []
            return [test for test, _ in pairs], [*(given for _, given in pairs), *default]
    return None


def _is_steady(form: object, nullable: Set[str]) -> bool:
    """Whether no part of a condition is the same for all rows, for certain."""
    if not isinstance(form, tuple):
        return False
    parts = [part for part, _ in _atoms(form, wanted=True)]
    return not has_contraries([form]) and all(_vanishes(part, nullable) is False for part in parts)


def _may_be_null(form: object, nullable: Set[str]) -> bool:
    """Whether Spark takes a condition for one that may be null, for certain."""
    each = _several(form, nullable, wanted=True)
    if each is not None:
        return any(_may_be_null(part, nullable) for part, _ in each[0])
    if is_column(form):
        return _lacks_some(form, nullable)
    plain = isinstance(form, tuple) and all(_is_plain(part, nullable) for part in children(form))
    plain = plain and not _has_filled(form)
    return kind_of(form) in COMPARES and plain and _lacks_some(form, nullable)


def _lacks_some(form: object, nullable: Set[str]) -> bool:
    """Whether a column in an expression, or the field of one that it is about, may be null."""
    if not isinstance(form, tuple):
        return False
    if is_column(form):
        return form[0] in nullable or (len(form) > 1 and fields_of(str(form[0])) in nullable)
    return any(_lacks_some(part, nullable) for part in form)


def fields_of(column: str) -> str:
    """How the fields of a column are called among those that may be null, where it never is itself.

    Args:
        column: The column, behind the position of its input.
    """
    return f"{column}."


def _valued(form: object, *, wanted: bool) -> set[str]:
    """The columns that are equal to a value where a condition, or its contrary, holds."""
    each = _several(form, wanted=wanted)
    if each is not None:
        parts, all_of = each
        return set().union(*(_valued(part, wanted=hold) for part, hold in parts)) if all_of else set()
    equal = kind_of(form) in ({"EQ", "NullSafeEQ", "equal_null", "In"} if wanted else {"NEQ"})
    columns = columns_in(form)
    return columns if equal and len(columns) == 1 else set()


def _vanishes(form: object, nullable: Set[str], *, wanted: bool = True) -> bool | None:
    """Whether a condition is the same for all rows by its form: False no, True it holds, None it may be."""
    if not isinstance(form, tuple) or not columns_in(form):
        return None
    if is_column(form) or is_whole(form, nullable):
        return False
    kind, parts = kind_of(form), children(form)
    if kind == "Not":
        return _vanishes(parts[0], nullable, wanted=not wanted)
    if kind in _ASK_FOR_NULL and not columns_in(form) <= nullable:
        return True if kind in {"Is", "isnull", "isnotnull"} and (kind == "isnotnull") is wanted else None
    if kind not in COMPARES | _ASK_FOR_NULL or not all(_is_plain(part, nullable) for part in parts):
        return None
    return None if len(parts) > 1 and parts[0] == parts[1] else False


def _is_plain(form: object, nullable: Set[str]) -> bool:
    """Whether Spark takes an expression as it is."""
    if not isinstance(form, tuple) or is_column(form) or _is_variable(form):
        return True
    kind = kind_of(form)
    parts = children(form) if kind else form
    if _is_filled(form):
        # What is never null goes in the place of what would be filled.
        return _lacks_some(parts[0], nullable)
    return (not kind or kind in _PLAIN) and all(_is_plain(part, nullable) for part in parts)


def _is_variable(form: Form) -> bool:
    """Whether an expression is the element that something is asked of, by its name."""
    return len(form) == 1 and isinstance(form[0], str)


def _is_filled(form: object) -> bool:
    """Whether an expression is a column, and something else where that is null."""
    match form:
        case ("coalesce" | "ifnull" | "nvl", (first, _, *_) as parts):
            return is_column(first) and all(is_column(part) or kind_of(part) == "Literal" for part in parts)
    return False


def _has_filled(form: object) -> bool:
    return _is_filled(form) or (isinstance(form, tuple) and any(map(_has_filled, form)))
