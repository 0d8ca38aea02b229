"""What the condition of a node asks of the rows that come to it, and what Spark may take out of that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.clauses import has_contraries, is_whole, may_leave_one, valued_in, without
from gem_bundle.changes.conditions import SEMI, how_it_joins
from gem_bundle.changes.forms import conjunction, form_made_by, form_of, is_column
from gem_bundle.changes.needed import ALL, of_input
from gem_bundle.lineage import UNCHANGED, uses_of
from gem_bundle.operators import JoinOperator

if TYPE_CHECKING:
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form
    from gem_bundle.lineage import Lineage, Term

_NODE = r"<class 'sqlglot\.expressions\.core\.{}'>"
_OR, _AND = (re.compile(_NODE.format(name)) for name in ("Or", "And"))
_CONTRARY = re.compile(rf"{_NODE.format('Not')}, \(\('this', \({_NODE.format('(Or|And|Not|Case|If)')}")
_BRANCHES = re.compile(rf"{_NODE.format('(Case|If)')}|\('(if|iff|nvl2)',")
# What is never null itself: by that Spark makes a conjunction of branches.
_NEVER_NULL = re.compile(
    rf"{_NODE.format('(Is|NullSafeEQ)')}|\('(isnull|isnotnull|equal_null|coalesce|ifnull|nvl|nvl2)',"
)
_TAKES_APART = re.compile(r"(?i)(pos)?(explode|inline)(_outer)?")
_LAMBDA = re.compile(_NODE.format("Lambda"))
_FALSE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', False)"
_TRUE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', True)"
_ALL_OF = {0: "left", 1: "right"}
"""The joins of which all rows of an input stay, by its position."""


class Asked(NamedTuple):
    """A condition on its way.

    Args:
        columns: The columns that it is over; `ALL` may be any.
        parts: Spark may take it apart, or make another one of it.
        either: It is one or the other, so that it asks for no value, and nothing of it goes anywhere alone.
        asks: It would be null without some of them, so that Spark asks for those.
        bare: It is nothing but its column, so that where that is computed, it is what that is computed by.
        groups: Groups count that it gets before.
        nulls: Those count that it gets before for what it would be null without alone, and that as a whole it
            stays behind.
        form: Its form over its columns, each behind ``0:``; None where that isn't followed.
        there: Those of its columns that are asked for by what isn't meant.
        holds: It holds where none of its columns has a value.
    """

    columns: frozenset[str]
    parts: bool
    either: bool
    asks: bool = True
    bare: bool = False
    groups: bool = True
    nulls: bool = True
    form: Form | None = None
    there: frozenset[str] = frozenset()
    holds: bool = False

    def over(self, columns: set[str] | None, *, computed: bool = False) -> Asked:
        """The same over what its columns are made of; None is unknown.

        Args:
            columns: Those.
            computed: Some are computed, and may be conditions themselves.
        """
        return Asked(
            frozenset({ALL} if columns is None else columns),
            self.parts or computed or columns is None,
            self.either and not computed and columns is not None,
            self.asks or computed or columns is None,
            self.bare and not computed and columns is not None,
            self.groups,
            self.nulls,
            holds=self.holds and not computed and columns is not None,
        )

    def computed_by(self, rule: str, nullable: frozenset[str]) -> Asked:
        """The same where its only column is computed: over what that is made of, by the same words.

        Args:
            rule: How the column is made.
            nullable: The columns there that may be null.
        """
        parts, either = _has_parts(rule, nullable), _is_either(rule, nullable)
        return self._replace(parts=parts, either=either, asks=True, bare=False, holds=False)


def anything(*, groups: bool = True) -> Asked:
    """A condition of which nothing is known.

    Args:
        groups: Groups count that it gets before.
    """
    return Asked(frozenset({ALL}), parts=True, either=False, groups=groups)


def asks_the_same(before: tuple[Flow, str], after: tuple[Flow, str]) -> bool:
    """Whether a join asks the same of each of its inputs, and only of pairs anything else.

    Args:
        before: What ran, with the id of the node.
        after: What is going to run, with the id of the node.
    """
    found = []
    for flow, name in (before, after):
        lineage = flow.lineage(name)
        if (
            lineage is None
            or not joins_rows(flow, name)
            or _has_parts(lineage.rows.rule, nullable_before(flow, name))
        ):
            return False
        if len({use.partition(":")[0] for use in lineage.rows.uses or ()}) < 2:
            return False
        found.append((lineage.asks, how_it_joins(flow, name)))
    return found[0] == found[1] and not SEMI & set(found[0][1])


def same_terms(before: tuple[Flow, str], after: tuple[Flow, str], output: str = "") -> frozenset[Term]:
    """The parts of a node's condition that it had and has.

    Args:
        before: What ran, with the id of the node.
        after: What is going to run, with the id of the node.
        output: The one of its outputs that is meant.
    """
    found = []
    for flow, name in (before, after):
        lineage = flow.lineage(name, output)
        lineage = (lineage and lineage.before_groups) or lineage
        if lineage is None or not is_told_by_terms(flow, name, lineage):
            return frozenset()
        found.append(frozenset(lineage.terms))
    return found[0] & found[1]


def asked_in_both(before: tuple[Flow, str], after: tuple[Flow, str], output: str = "") -> frozenset[str]:
    """The columns of a node's input that its condition asked for, and asks for.

    Args:
        before: What ran, with the id of the node.
        after: What is going to run, with the id of the node.
        output: The one of its outputs that is meant.
    """
    lineages = [flow.lineage(name, output) for flow, name in (before, after)]
    one, other = (of_input(found.asks or (), 0) if found is not None else set() for found in lineages)
    return frozenset(one & other)


def is_told_by_terms(flow: Flow, name: str, lineage: Lineage) -> bool:
    """Whether each part of a condition tells by itself: nothing that is equal carries one to another.

    Args:
        flow: The version.
        name: The node.
        lineage: What it makes of what.
    """
    terms = lineage.terms
    semi = how_it_joins(flow, name) == ["left_semi"]
    alone = semi or (len(flow.side.nodes[name].inputs) == 1 and not lineage.equals)
    plain = alone and not lineage.expands
    return bool(terms) and plain and all(term.made.uses for term in terms)


def asked_by_terms(flow: Flow, name: str, lineage: Lineage, unchanged: frozenset[Term]) -> list[Asked]:
    """What each part of a condition asks, where each tells by itself.

    Args:
        flow: The version.
        name: The node.
        lineage: What it makes of what.
        unchanged: The parts that don't count.
    """
    terms = [term for term in lineage.terms if term not in unchanged]
    nullable = nullable_before(flow, name)
    asking = [_of_term(term, nullable) for term in terms]
    forms = [form for term in lineage.terms if (form := form_made_by(term.made)) is not None]
    valued = set().union(*map(valued_in, forms))
    asking = [asked._replace(form=asked.form and without(asked.form, valued)) for asked in asking]
    if has_contraries(forms):
        # What is left of them can't be told by each.
        whole = conjunction(forms) if len(forms) == len(terms) == len(lineage.terms) else None
        asking = [asked._replace(parts=True, either=False, form=whole) for asked in asking]
    return asking


def _of_term(term: Term, nullable: frozenset[str]) -> Asked:
    rule = term.made.rule
    columns = term.made.uses or frozenset()
    return Asked(
        frozenset(of_input(columns | (term.asks or frozenset()), 0)),
        parts=_has_parts(rule, nullable),
        either=_is_either(rule, nullable),
        asks=term.asks is None or bool(term.asks),
        bare=rule in UNCHANGED and len(columns) == 1,
        form=form_made_by(term.made),
        holds=term.fails is False,
    )


def joins_rows(flow: Flow, name: str) -> bool:
    """Whether a node is nothing but a join.

    Args:
        flow: The version.
        name: The node.
    """
    operators = flow.side.operators_at(name)
    return bool(operators) and all(isinstance(operator, JoinOperator) for operator in operators)


def leaves_rows_out(flow: Flow, name: str, lineage: Lineage) -> bool:
    """Whether a node leaves rows out, or may.

    Args:
        flow: The version.
        name: The node.
        lineage: What it makes of what.
    """
    if _takes_apart_unasked(form_of(lineage.rows.rule)):
        return False
    if (
        lineage.expands
        or lineage.rows.uses is None
        or lineage.rows.uses
        or len(flow.side.nodes[name].inputs) > 1
    ):
        return True
    rule = lineage.rows.rule
    return rule.startswith("(") and not rule.startswith(_TRUE)


def _takes_apart_unasked(form: Form | None) -> bool:
    """Whether a node only makes rows of the elements of arrays, and Spark doesn't ask for any before.

    It asks for them where the array is a column, and a row without any goes out: `InferFiltersFromGenerate`.
    """
    match form:
        case (str(name), (array,)) if found := _TAKES_APART.fullmatch(name):
            return bool(found[3]) or not is_column(array)
    return False


def asked_of(flow: Flow, name: str, lineage: Lineage, position: int) -> Asked | None:
    """What a node asks of one of its inputs; None for nothing.

    Args:
        flow: The version.
        name: The node.
        lineage: What it makes of what.
        position: The position of the input.
    """
    rule, uses, nullable = lineage.rows.rule, lineage.rows.uses, nullable_before(flow, name)
    if uses is None:
        return anything()
    operators = flow.side.operators_at(name)
    if operators and all(
        isinstance(o, JoinOperator) and o.how in {_ALL_OF.get(position), "full"} for o in operators
    ):
        return None  # all rows of it stay
    columns = set(of_input(uses, position)) | set(of_input(lineage.asks or (), position))
    if lineage.expands:
        # An array that is taken apart is asked for its elements.
        made = uses_of(m for m in lineage.columns.values() if _TAKES_APART.search(m.rule))
        if made is None:
            return anything()
        if not made and not rule.startswith("("):
            return None  # what several columns are made rows of stays behind
        columns |= of_input(made, position)
    several = len(flow.side.nodes[name].inputs) > 1
    if (
        joins_rows(flow, name)
        and not _has_parts(rule, nullable)
        and len({use.partition(":")[0] for use in uses}) > 1
    ):
        columns = set(of_input(lineage.asks or (), position))  # of pairs nothing else is asked before
    if not columns and (several or not rule.startswith("(")):
        return None
    return Asked(
        frozenset(columns),
        parts=several or lineage.expands or _has_parts(rule, nullable),
        either=_is_either(rule, nullable) and not several,
        asks=lineage.asks is None or bool(lineage.asks),
    )


def nullable_before(flow: Flow, name: str) -> frozenset[str]:
    """What Spark takes for columns that may be null, of those that come to a node.

    Args:
        flow: The version.
        name: The node.
    """
    return frozenset(use for use, never in flow.nulls.before(name).items() if never is False)


def _has_parts(rule: str, nullable: frozenset[str]) -> bool:
    """Whether Spark may take a condition apart: a conjunction, also in other words."""
    if is_whole(form_of(rule), nullable):
        return False
    if _AND.search(rule) or _LAMBDA.search(rule):
        return True
    if _BRANCHES.search(rule) and _NEVER_NULL.search(rule):
        return True
    if not _OR.search(rule):
        return False
    if _CONTRARY.search(rule) or _FALSE in rule or _TRUE in rule:
        return True
    form = form_of(rule)
    return form is None or may_leave_one(form, nullable)


def _is_either(rule: str, nullable: frozenset[str]) -> bool:
    """Whether nothing of a condition goes anywhere alone, and it asks for no value."""
    if is_whole(form_of(rule), nullable):
        return True
    return rule.startswith("(<class 'sqlglot.expressions.core.Or'>") and not _has_parts(rule, nullable)
