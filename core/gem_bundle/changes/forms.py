"""Expressions as what they are made of, by the form that they have in the rule of a lineage."""

from __future__ import annotations

import re
from ast import literal_eval
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.lineage import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.lineage import Lineage, Made

Form = tuple[object, ...]
"""An expression: a column is ``("0:page",)``, with a field ``("0:window", "start")``; anything else its kind
and what it is over, by name for what has a syntax of its own."""

COMPARES = frozenset({"EQ", "NEQ", "LT", "LTE", "GT", "GTE", "Like", "ILike", "RegexpLike", "In"})
"""What compares a value with others, and is null where it is."""

_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_ENUM = re.compile(r"<\w+\.\w+: ('\w+')>")
_COLUMN = re.compile(r"\d+:")


@cache
def form_of(rule: str) -> Form | None:
    """The form of an expression; None where it can't be told.

    Args:
        rule: What a `gem_bundle.lineage.Made` says of it.
    """
    try:
        found = literal_eval(_ENUM.sub(r"\1", _CLASS.sub(r"'\1'", rule)))
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, tuple) else None


def conditions_of(rule: str) -> Form:
    """The forms of the conditions in the rule by which a node's rows come out; none where they can't be told.

    Args:
        rule: The rule: how a join joins stands before its condition, and a query has two of them.
    """
    at = rule.find("(")
    return (form_of(f"({rule[at:].replace(') (', '), (')},)") if at >= 0 else None) or ()


def form_made_by(made: Made) -> Form | None:
    """The form of something that is made of columns; None where it can't be told.

    Args:
        made: How it is made.
    """
    if made.rule in UNCHANGED:
        return (next(iter(made.uses)),) if made.uses is not None and len(made.uses) == 1 else None
    if made.uses is None:
        return None
    if made.whole:
        return (made.whole, (("Literal", (made.rule,)), *((use,) for use in made.in_order)))
    return form_of(made.rule)


def followed(form: Form, node: Lineage) -> Form | None:
    """An expression behind a node with one input over what its columns are made of; None where not known.

    Args:
        form: The expression.
        node: What the node makes of what.
    """
    forms: dict[str, Form] = {}
    for column in columns_in(form):
        step = node.columns.get(column.partition(":")[2])
        made = form_made_by(step) if step is not None else None
        if made is None:
            return None
        forms[column] = made
    return put_in(form, forms)


def tree_of(form: Form) -> exp.Expr | None:
    """The expression that has a form, to try what it is where columns are null.

    Columns are called by the positions of their inputs. What is taken out of one stands as that one: it is
    null where that is.

    Args:
        form: The form.

    Returns:
        None where the form isn't one of an expression alone.
    """
    try:
        return _tree_of(form)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # what a gem says of a rule may have any form


def _tree_of(form: Form) -> exp.Expr:
    from gem_bundle.expressions.spark_parser import exp

    def arguments(given: object) -> Any:
        if not isinstance(given, tuple):
            return given
        return _tree_of(given) if kind_of(given) else [arguments(part) for part in given]

    if is_column(form):
        parts = [exp.to_identifier(str(part), quoted=True) for part in form]
        return exp.Column(this=parts[0]) if len(parts) == 1 else exp.Column(this=parts[-1], table=parts[0])
    kind, given = kind_of(form), form[1] if len(form) > 1 else ()
    if kind == "unpacked":
        _, column = cast("tuple[Form, Form]", given)
        return _tree_of(column)
    if not kind[:1].isupper():
        return exp.Anonymous(this=kind, expressions=arguments(given))
    # What is false is left out of forms.
    made: dict[str, Any] = {"is_string": False} if kind == "Literal" else {}
    made |= {name: arguments(part) for name, part in cast("tuple[tuple[str, object], ...]", given)}
    if kind == "DataType":
        made["this"] = exp.DType[made["this"]]
    return cast("exp.Expr", getattr(exp, kind)(**made))


def columns_in(form: object) -> set[str]:
    """The columns of an expression, each behind the position of its input."""
    if not isinstance(form, tuple):
        return set()
    return {str(form[0])} if is_column(form) else set().union(*map(columns_in, form))


def names_in(form: object) -> set[str]:
    """The names in an expression that aren't those of columns of an input, nor of what it is made with."""
    if not isinstance(form, tuple) or is_column(form):
        return set()
    if len(form) == 1 and isinstance(form[0], str):
        return {form[0]}
    return set().union(*map(names_in, form))


def conjunction(forms: Sequence[Form]) -> Form:
    """The condition that all of several hold.

    Args:
        forms: The conditions, at least one.
    """
    found = forms[0]
    for form in forms[1:]:
        found = ("And", (("this", found), ("expression", form)))
    return found


def put_in(form: Form, made: Mapping[str, Form]) -> Form:
    """An expression with what its columns are made of in their place.

    Args:
        form: The expression.
        made: What some of them are made of.
    """
    if not is_column(form):
        return tuple(put_in(part, made) if isinstance(part, tuple) else part for part in form)
    of, fields = made.get(str(form[0])), form[1:]
    if of is None:
        return form
    return (*of, *fields) if not fields or is_column(of) else ("field", (of, fields))


def taken_apart(form: object, *, wanted: bool) -> tuple[list[tuple[object, bool]], bool] | None:
    """What a condition, or its contrary, is made of; None where it is one thing.

    Args:
        form: The condition.
        wanted: It is to hold, not its contrary.

    Returns:
        Each part with whether that is to hold; and whether all of them are to.
    """
    match form:
        case ("And" | "Or" as kind, (("this", one), ("expression", other))):
            return [(one, wanted), (other, wanted)], (kind == "And") is wanted
        case ("Not", (("this", part),)):
            return [(part, not wanted)], True
        case ("Between", (("this", what), ("low", low), ("high", high))):
            return [
                (("GTE", (("this", what), ("expression", low))), wanted),
                (("LTE", (("this", what), ("expression", high))), wanted),
            ], wanted
    return None


def parts_of(form: object) -> Iterator[object]:
    """The conditions that all must hold for one to hold.

    Args:
        form: The one; of None, which isn't known, it is the only part.
    """
    found = taken_apart(form, wanted=True)
    if found is None or not found[1] or not all(hold for _, hold in found[0]):
        yield form
        return
    for part, _ in found[0]:
        yield from parts_of(part)


def is_column(form: object) -> bool:
    """Whether an expression is a column, or a field of one.

    Args:
        form: The expression.
    """
    return (
        isinstance(form, tuple)
        and bool(form)
        and all(isinstance(part, str) for part in form)
        and _COLUMN.match(form[0]) is not None
    )


def kind_of(form: object) -> str:
    """The kind of a node; empty for several of them."""
    return form[0] if isinstance(form, tuple) and form and isinstance(form[0], str) else ""


def children(form: Form) -> Sequence[object]:
    """What a node is over: classes have that by names, functions in order."""
    given = form[1] if len(form) > 1 and isinstance(form[1], tuple) else ()
    if not kind_of(form)[:1].isupper():
        return given
    return [pair[1] for pair in given if isinstance(pair, tuple) and len(pair) == 2]
