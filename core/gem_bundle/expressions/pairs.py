"""What the condition of a join wants of pairs: what is equal, and by what rows are kept for it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import analyse, folded
from gem_bundle.expressions.apart import equal_terms, taken_apart
from gem_bundle.expressions.kinds import common_type
from gem_bundle.expressions.uses import asked_by, made_over
from gem_bundle.lineage import Equality, Made, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.facts import Column, Facts

_COMPARES = re.compile(r"=|<>|\bequal_null\b", re.IGNORECASE)
# Of which inputs the terms of a join's condition are asked before it, where they are about that one alone.
_ASKED_BEFORE = {
    "inner": frozenset("01"),
    "left_semi": frozenset("01"),
    "left": frozenset("1"),
    "left_anti": frozenset("1"),
    "right": frozenset("0"),
}


def equal_keys(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[str | None, ...] | None:
    """The types of what a condition wants to be equal in two inputs, in order; None if it is unreadable."""
    found = _equal(condition, inputs)
    return None if found is None else tuple(kind for kind, _ in found)


def equal_parts(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[Made, ...]:
    """What that is made of, first in the one input and then in the other; empty if it is unreadable."""
    return tuple(part for _, parts in _equal(condition, inputs) or () for part in parts)


def kept_by(condition: str, left: Facts, right: Facts, names: tuple[str, str]) -> Made:
    """What decides which rows of two inputs are kept for a join, whichever pairs come out of them.

    What must be equal is what they are kept by, what is about one input is asked of it before, and by a range
    over a watermark rows are let go. Of a column that is compared Spark keeps no nulls, whatever it is
    compared by.

    Args:
        condition: The condition of an inner join.
        left: The facts of the left input.
        right: The facts of the right input.
        names: The names by which the condition calls the two.
    """
    inputs = [left.columns, right.columns]
    whole = made_over(condition, list(enumerate(inputs)), {})
    tree = folded(condition)
    if tree is None or whole.uses is None:
        return whole
    from gem_bundle.expressions.join_terms import conjuncts
    from gem_bundle.expressions.joins import join_condition

    in_order, rules = [], set()
    for term in (part for whole_term in conjuncts(tree) for part in _bounds_of(whole_term)):
        text = term.sql(dialect="spark")
        if (sides := _sides_of(term, inputs)) is not None:
            # Keys are in the order of these terms, whichever side stands first in each.
            in_order.append(made_over(sides, list(enumerate(inputs)), {}).rule)
        elif _is_of_pairs(term, inputs) and not join_condition(text, left, right, names).lets_go:
            rules.add(f"of pairs {sorted(asked_by(text, inputs) or ())}")
        else:
            made = made_over(text, list(enumerate(inputs)), {})
            rules.add(made.rule) if len(_places(made)) == 1 else in_order.append(made.rule)
    return Made(" and ".join([*in_order, *sorted(rules)]), whole.uses)


def _places(made: Made) -> set[str]:
    """The positions of the inputs that something is made of; none where that isn't known."""
    return {use.partition(":")[0] for use in made.uses or ()}


def _sides_of(term: exp.Expr, inputs: Sequence[Sequence[Column] | None]) -> str | None:
    """A term by which something of one input equals something of the other, with the first input first."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(term)
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    first, second = node.this, node.expression
    places = [
        _places(made_over(side.sql(dialect="spark"), list(enumerate(inputs)), {})) for side in (first, second)
    ]
    if places == [{"1"}, {"0"}]:
        first, second = second, first
    elif places != [{"0"}, {"1"}]:
        return None
    return str(type(node)(this=first.copy(), expression=second.copy()).sql(dialect="spark"))


def asked_of_pairs(
    condition: str, inputs: Sequence[Sequence[Column] | None], how: str
) -> frozenset[str] | None:
    """The columns that a join's condition asks of pairs: the rest is asked of the rows of an input before.

    It is Spark's rule `PushPredicateThroughJoin`.

    Args:
        condition: The condition.
        inputs: The columns of both inputs.
        how: Which rows stay.

    Returns:
        The columns, each behind the position of its input; None where that can't be told.
    """
    tree = folded(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.join_terms import conjuncts

    found: set[str] = set()
    for term in conjuncts(tree):
        made = made_over(term.sql(dialect="spark"), list(enumerate(inputs)), {})
        if made.uses is None:
            return None
        places = _places(made)
        if len(places) > 1 or not places <= _ASKED_BEFORE.get(how, frozenset()):
            found |= made.uses
    return frozenset(found)


def _bounds_of(term: exp.Expr, *, negated: bool = False) -> Iterator[exp.Expr]:
    """The comparisons that a term stands for: `between` for two, `not` for their opposites, as to Spark.

    Of a term that stands for none the term.
    """
    from gem_bundle.expressions.asked import OPPOSITE
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(term)
    if isinstance(node, exp.Not):
        yield from _bounds_of(node.this, negated=not negated)
    elif isinstance(node, exp.Or if negated else exp.And):
        for side in (node.this, node.expression):
            yield from _bounds_of(side, negated=negated)
    elif negated:
        opposite = OPPOSITE.get(type(node))
        yield exp.Not(this=node) if opposite is None else opposite(this=node.this, expression=node.expression)
    elif isinstance(node, exp.Between):
        yield exp.GTE(this=node.this, expression=node.args["low"])
        yield exp.LTE(this=node.this, expression=node.args["high"])
    else:
        yield term


def _is_of_pairs(term: exp.Expr, inputs: Sequence[Sequence[Column] | None]) -> bool:
    """Whether a term is asked of pairs, and nothing of it before of rows, but for nulls, or what is equal."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(term)
    if isinstance(node, exp.Or | exp.And):
        return _is_of_pairs(node.left, inputs) and _is_of_pairs(node.right, inputs)
    if len(_places(made_over(node.sql(dialect="spark"), list(enumerate(inputs)), {}))) < len(inputs):
        return False
    if node.find(exp.Or, exp.And, exp.Case, exp.In) is not None:
        return False  # of such Spark takes out what is about one side
    return isinstance(node, exp.NEQ) or node.find(exp.EQ, exp.NEQ, exp.NullSafeEQ) is None


def equalities(condition: str, columns: Sequence[Column] | None, position: int = 0) -> tuple[Equality, ...]:
    """What a condition wants to be equal, as `gem_bundle.lineage.Lineage.equals` has it.

    Args:
        condition: A boolean expression.
        columns: The columns it is over.
        position: The position of the input they belong to.
    """
    return _equalities(condition, [(position, columns)])


def equalities_of_inputs(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[Equality, ...]:
    """The same of a condition over several inputs, as one of a join.

    Args:
        condition: A boolean expression.
        inputs: The columns of each input.
    """
    return _equalities(condition, list(enumerate(inputs)))


def _equalities(condition: str, inputs: list[tuple[int, Sequence[Column] | None]]) -> tuple[Equality, ...]:
    tree = folded(condition) if _COMPARES.search(condition) else None
    if tree is None:
        return ()
    found = []
    for texts, takes_nulls in _equal_terms(tree):
        one, other = (made_over(text, inputs, {}) for text in texts)
        if one.uses and other.uses:
            found.append(Equality((one.uses, other.uses), takes_nulls, (one.nameless, other.nameless)))
    return tuple(found)


def terms_of(condition: str, columns: Sequence[Column] | None) -> tuple[Term, ...]:
    """The conditions that all must hold for one to hold, as `gem_bundle.lineage.Lineage.terms` has them.

    Args:
        condition: A boolean expression.
        columns: The columns it is over.
    """
    tree = folded(condition)
    if tree is None:
        return ()
    texts = [_written(part, wanted=wanted) for part, wanted in taken_apart(tree)]
    return tuple(
        Term(made_over(text, [(0, columns)], {}), asked_by(text, [columns]), _fails(text)) for text in texts
    )


def terms_of_semi_join(condition: str, inputs: Sequence[Sequence[Column] | None]) -> tuple[Term, ...]:
    """What a left semi join asks of its rows alone, part by part, and last what it asks of pairs, as one.

    Spark asks the former before it (`PushPredicateThroughJoin`), and what is left goes on as a whole.

    Args:
        condition: The condition.
        inputs: The columns of both inputs.

    Returns:
        The parts, as `gem_bundle.lineage.Lineage.terms` has them; empty where they can't be told.
    """
    tree = folded(condition)
    if tree is None:
        return ()
    alone: list[str] = []
    of_pairs: list[str] = []
    for part, wanted in taken_apart(tree):
        text = _written(part, wanted=wanted)
        made = made_over(text, list(enumerate(inputs)), {})
        (alone if _places(made) == {"0"} else of_pairs).append(text)
    texts = [*alone, *([" and ".join(f"({text})" for text in of_pairs)] if of_pairs else [])]
    return tuple(
        Term(made_over(text, list(enumerate(inputs)), {}), asked_by(text, inputs), _fails(text))
        for text in texts
    )


def _fails(condition: str) -> bool | None:
    from gem_bundle.expressions.lacking import fails_without

    tree = folded(condition)
    return None if tree is None else fails_without(tree)


def _written(node: exp.Expr, *, wanted: bool) -> str:
    from gem_bundle.expressions.spark_parser import exp

    return (node if wanted else exp.Not(this=exp.Paren(this=node.copy()))).sql(dialect="spark")


def _equal_terms(tree: exp.Expr) -> Iterator[tuple[list[str], bool]]:
    """What a condition wants to be equal, as texts, and whether nulls are."""
    from gem_bundle.expressions.spark_parser import exp

    for term in equal_terms(tree):
        sides = term.expressions if isinstance(term, exp.Anonymous) else (term.this, term.expression)
        yield [side.sql(dialect="spark") for side in sides], not isinstance(term, exp.EQ | exp.NEQ)


def _equal(
    condition: str, inputs: Sequence[Sequence[Column] | None]
) -> list[tuple[str | None, list[Made]]] | None:
    """What a condition wants to be equal: the type that is compared, and what is."""
    tree = folded(condition)
    if tree is None:
        return None
    known = list(enumerate(inputs))
    found: list[tuple[str | None, list[Made]]] = []
    for sides, takes_nulls in _equal_terms(tree):
        made = [made_over(side, known, {}) for side in sides]
        if any(side.uses is None for side in made):
            return None
        of = list(map(_places, made))
        if [len(places) for places in of] == [1, 1] and of[0] != of[1]:
            kinds = [
                analyse(text, inputs[int(next(iter(places)))]).column.type
                for text, places in zip(sides, of, strict=True)
            ]
            parts = sorted(made, key=lambda side: min(side.uses or ("",)))
            if not takes_nulls:
                found.append((common_type(kinds), parts))
                continue
            # Spark fills nulls, and whether it was one is a key of its own.
            filled = [replace(side, nulls=frozenset()) for side in parts]
            found += [(common_type(kinds), filled), ("boolean", filled)]
    return found
