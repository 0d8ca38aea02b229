"""What state Spark may put a condition before that stands behind it: all of it that can't be ruled out.

Spark's optimizer takes conditions apart, puts in their place what computed columns are made of, asks for what
they would be null without, and carries them over what a join wants to be equal. Which state has been kept
without a condition, or with it, is told here by what no rule of it can do. For the exact form of what is kept
there is `gem_bundle.changes.conditions`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.clauses import (
    fields_of,
    gets_before_groups,
    has_contraries,
    is_whole,
    may_leave_one,
    valued_in,
    without,
)
from gem_bundle.changes.conditions import (
    SEMI,
    how_it_joins,
    is_always_there,
    never_lacking_before,
    pushed_below,
)
from gem_bundle.changes.forms import conjunction, followed, form_made_by, form_of, is_column
from gem_bundle.changes.needed import ALL, of_input
from gem_bundle.lineage import UNCHANGED, column_keys, uses_of
from gem_bundle.operators import LACKING, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Lineage, Made, Term

_NODE = r"<class 'sqlglot\.expressions\.core\.{}'>"
_OR, _AND = (re.compile(_NODE.format(name)) for name in ("Or", "And"))
_CONTRARY = re.compile(rf"{_NODE.format('Not')}, \(\('this', \({_NODE.format('(Or|And|Not|Case|If)')}")
_BRANCHES = re.compile(rf"{_NODE.format('(Case|If)')}|\('(if|iff|nvl2)',")
# What is never null itself: by that Spark makes a conjunction of branches.
_NEVER_NULL = re.compile(
    rf"{_NODE.format('(Is|NullSafeEQ)')}|\('(isnull|isnotnull|equal_null|coalesce|ifnull|nvl|nvl2)',"
)
_WINDOWS = ("window ", "('window'")
_FIELD_OF = re.compile(r"^field \w+ of ")
_LITERAL = re.compile(r"\(" + _NODE.format("(Literal|Boolean|Null|Neg)"))
_TAKES_APART = re.compile(r"(?i)(pos)?(explode|inline)(_outer)?")
_LAMBDA = re.compile(_NODE.format("Lambda"))
_FALSE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', False)"
_TRUE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', True)"
_ALL_OF = {0: "left", 1: "right"}
"""The joins of which all rows of an input stay, by its position."""


class _Asked(NamedTuple):
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

    def over(self, columns: set[str] | None, *, computed: bool = False) -> _Asked:
        """The same over what its columns are made of; None is unknown.

        Args:
            columns: Those.
            computed: Some are computed, and may be conditions themselves.
        """
        return _Asked(
            frozenset({ALL} if columns is None else columns),
            self.parts or computed or columns is None,
            self.either and not computed and columns is not None,
            self.asks or computed or columns is None,
            self.bare and not computed and columns is not None,
            self.groups,
            self.nulls,
            holds=self.holds and not computed and columns is not None,
        )

    def computed_by(self, rule: str, nullable: frozenset[str]) -> _Asked:
        """The same where its only column is computed: over what that is made of, by the same words.

        Args:
            rule: How the column is made.
            nullable: The columns there that may be null.
        """
        parts, either = _has_parts(rule, nullable), _is_either(rule, nullable)
        return self._replace(parts=parts, either=either, asks=True, bare=False, holds=False)


def states_below(
    flow: Flow,
    name: str,
    output: str = "",
    unchanged: frozenset[Term] = frozenset(),
    *,
    groups: bool = True,
    nulls: bool = True,
    there: frozenset[str] = frozenset(),
) -> set[str]:
    """The nodes with state before a transform into whose state its condition may get.

    Those too whose state goes by a watermark that the condition may get before: the watermark of a query is
    one, and goes by the rows that get to each of its columns.

    Args:
        flow: The version.
        name: A transform, which keeps no state.
        output: The one of its outputs that is meant.
        unchanged: What of its condition doesn't count, as `same_terms` tells it.
        groups: Groups count that it gets before, not only rows that are kept and what goes by the watermark.
        nulls: Those count too that it gets before for what it would be null without alone.
        there: Columns of its input that are asked for in any case, as `asked_in_both` tells it.
    """
    node = flow.side.nodes[name]
    lineage = flow.lineage(name, output)
    if node.kind != "transform" or flow.keeps(name) or name not in flow.behind_operators:
        return set()
    found: set[str] = set()
    if lineage is None:
        for edge in node.inputs:
            found |= _below(flow, edge, _anything(groups=groups))
        return found
    if lineage.only_nulls and not lineage.nulls_left_out(never_lacking_before(flow, name)):
        return set()  # it leaves out nothing
    if not _asks(flow, name, lineage):
        return set()
    told = lineage.rows.uses is not None and lineage.kept is None
    if told and joins_rows(flow, name) and SEMI.issuperset(how_it_joins(flow, name)):
        pushed = pushed_below(flow, name, output, unchanged=unchanged)
        below = {state for state in pushed if flow.recalls(state)}
        # Whether it gets before a watermark too isn't told there.
        return {s for s in below if groups or flow.keeps_rows(s) or s in flow.by_event_time}
    if _is_told_by_terms(flow, name, lineage):
        terms = [term for term in lineage.terms if term not in unchanged]
        nullable = _nullable(flow, name)
        asking = [
            _of_term(term, nullable)._replace(groups=groups, nulls=nulls, there=there) for term in terms
        ]
        forms = [form for term in lineage.terms if (form := form_made_by(term.made)) is not None]
        valued = set().union(*map(valued_in, forms))
        asking = [asked._replace(form=asked.form and without(asked.form, valued)) for asked in asking]
        if has_contraries(forms):
            # What is left of them can't be told by each.
            whole = conjunction(forms) if len(forms) == len(terms) == len(lineage.terms) else None
            asking = [asked._replace(parts=True, either=False, form=whole) for asked in asking]
        return found.union(*(_below(flow, node.inputs[0], asked) for asked in asking))
    for position, edge in enumerate(node.inputs):
        asked = _asked_of(flow, name, lineage, position)
        if asked is not None:
            found |= _below(flow, edge, asked._replace(groups=groups, nulls=nulls, there=there))
    return found


def _anything(*, groups: bool = True) -> _Asked:
    """A condition of which nothing is known."""
    return _Asked(frozenset({ALL}), parts=True, either=False, groups=groups)


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
            or _has_parts(lineage.rows.rule, _nullable(flow, name))
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
        if lineage is None or not _is_told_by_terms(flow, name, lineage):
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


def _is_told_by_terms(flow: Flow, name: str, lineage: Lineage) -> bool:
    """Whether each part of a condition tells by itself: nothing that is equal carries one to another."""
    terms = lineage.terms
    semi = how_it_joins(flow, name) == ["left_semi"]
    alone = semi or (len(flow.side.nodes[name].inputs) == 1 and not lineage.equals)
    plain = alone and not lineage.expands
    return bool(terms) and plain and all(term.made.uses for term in terms)


def _of_term(term: Term, nullable: frozenset[str]) -> _Asked:
    rule = term.made.rule
    columns = term.made.uses or frozenset()
    return _Asked(
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


def _asks(flow: Flow, name: str, lineage: Lineage) -> bool:
    """Whether a node leaves rows out, or may."""
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


def _asked_of(flow: Flow, name: str, lineage: Lineage, position: int) -> _Asked | None:
    """What a node asks of one of its inputs; None for nothing."""
    rule, uses, nullable = lineage.rows.rule, lineage.rows.uses, _nullable(flow, name)
    if uses is None:
        return _anything()
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
            return _anything()
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
    return _Asked(
        frozenset(columns),
        parts=several or lineage.expands or _has_parts(rule, nullable),
        either=_is_either(rule, nullable) and not several,
        asks=lineage.asks is None or bool(lineage.asks),
    )


def _nullable(flow: Flow, name: str) -> frozenset[str]:
    """What Spark takes for columns that may be null, of those that come to a node."""
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


def _below(flow: Flow, edge: InputRecord, asked: _Asked) -> set[str]:
    edge = flow.passed_over(edge, asked.columns | asked.there)
    before, made = edge.node, flow.lineage(edge.node, edge.output)
    node = flow.side.nodes[before]
    if node.kind != "transform":
        return set()
    found: set[str] = set()
    # What is about the column of a watermark stays behind it, as about one that rows are made of others by.
    staying = asked.columns & (flow.marked(before) | _first_there(made))
    if staying and not (asked.parts and _parts_with(flow, edge, asked, asked.columns - staying)):
        return found
    if staying:
        asked = asked._replace(columns=asked.columns - staying)
        if not asked.columns:
            return found
    if flow.watermarks(before):
        found |= flow.by_event_time
    if made is None:
        found |= {before} if flow.recalls(before) else set()
        return found.union(*(_below(flow, other, _by_name(flow, other, asked)) for other in node.inputs))
    if made.kept is not None and flow.keeps(before):
        sides = _sides(made, asked) if made.kept.rows else set()
        if len(sides) > 1 and (not asked.parts or _stays(flow, before, asked)):
            return found  # what it would be null without is told by the rules of what a join keeps
        if asked.holds and _is_of_what_lacks(flow, before, sides):
            return found
        if not made.kept.rows:
            if not _goes_through_groups(flow, edge, made, asked):
                return found
            # What is about results stays.
            asked = asked._replace(columns=asked.columns - set(made.kept.values), form=None)
        counts = asked.groups or made.kept.rows
        found |= {before} if counts and flow.recalls(before) else set()
    return found | _further(flow, before, made, asked)


def _first_there(made: Lineage | None) -> set[str]:
    """The columns that a node makes by making several rows of each: before it there is none of them."""
    if made is None or not made.expands:
        return set()
    return {key for key, column in made.columns.items() if column.rule not in UNCHANGED}


def _stays(flow: Flow, name: str, asked: _Asked) -> bool:
    """Whether a condition is one thing over what comes out of a node, by its form, and asks for no value."""
    nullable = {f"0:{key}" for key, never in flow.nulls.never(name).items() if never is False}
    return asked.form is not None and is_whole(asked.form, nullable)


def _by_name(flow: Flow, edge: InputRecord, asked: _Asked) -> _Asked:
    """A condition before a node of which nothing is known: a column is the one that had its name, or any."""
    facts = flow.side.facts.get(edge.key)
    given = column_keys(facts.columns) if facts is not None else None
    return asked if given is not None and asked.columns <= set(given) else asked.over(None)


def _sides(made: Lineage, asked: _Asked) -> set[int]:
    """The sides of a join that a condition is over."""
    return {side for column in asked.columns & set(made.columns) for side in made.sides_of(column)}


def _is_of_what_lacks(flow: Flow, name: str, sides: set[int]) -> bool:
    """Whether a condition is about rows alone that an outer join may lack: it stays behind."""
    joins = how_it_joins(flow, name)
    lacking = LACKING.get(joins[0], frozenset()) if len(joins) == 1 else frozenset()
    return bool(sides) and sides <= lacking


def _goes_through_groups(flow: Flow, edge: InputRecord, made: Lineage, asked: _Asked) -> bool:
    """Whether something of a condition may get before groups: what it asks of their keys."""
    name = edge.node
    asked = asked._replace(there=asked.there | _parts_of_windows(made))
    kinds = {operator.kind for operator in flow.side.stateful if operator.node == name}
    if made.rows.uses is None and asked.form is not None and asked.columns <= set(made.columns):
        results = set(made.kept.values) if made.kept is not None else set()
        others = {f"0:{key}" for key in set(made.columns) - results}
        return kinds != {"deduplicate"} and gets_before_groups(asked.form, others, others, set())
    if made.rows.uses is None or ALL in asked.columns:
        return kinds != {"deduplicate"}
    if not kinds <= {"aggregate", "except"} or (made.kept is not None and not made.kept.keys):
        return False  # a removal of duplicates, or a limit
    keys = set(made.columns) - set(made.kept.values if made.kept is not None else ())
    over = asked.columns & keys
    if asked.form is not None and asked.columns <= set(made.columns):
        return not _is_said_by_windows(asked.form, made) and _parts_with(
            flow, edge, asked, keys, _lacking_fields(made)
        )
    if not over or asked.parts or asked.columns <= keys:
        return bool(over)
    if asked.either or not asked.asks or not asked.nulls:
        return False
    # As a whole it stays, and asks for what it would be null without.
    never = flow.nulls.never(name)
    return not all(never.get(key) for key in over - asked.there)


def _parts_with(
    flow: Flow,
    edge: InputRecord,
    asked: _Asked,
    columns: Set[str],
    lacking_fields: Set[str] = frozenset(),
) -> bool:
    """Whether a condition has parts that are about nothing but some columns, or may have: without a form."""
    if asked.form is None:
        return True
    known = flow.nulls.never(edge.node)
    open_to_null = {key for key, never in known.items() if not never} - asked.there
    counted = open_to_null if asked.nulls else set()
    lacking = {f"0:{key}" for key in counted if not is_always_there(flow, edge, key)}
    nullable = {f"0:{key}" for key, never in known.items() if never is False} | lacking_fields
    return gets_before_groups(asked.form, {f"0:{key}" for key in columns}, lacking, nullable)


def _is_said_by_windows(form: Form, made: Lineage) -> bool:
    """Whether a condition asks no more than that a window of groups begins before it ends."""
    match form:
        case ("LT" | "LTE" | "NEQ", (("this", first), ("expression", last))):
            pass
        case ("GT" | "GTE", (("this", last), ("expression", first))):
            pass
        case _:
            return False
    window = _window_with(first, "start", made)
    return window is not None and window == _window_with(last, "end", made)


def _parts_of_windows(made: Lineage) -> set[str]:
    """The windows that groups are formed by, and their ends: what has no time is in none of the groups."""
    rules = ((key, _FIELD_OF.sub("", column.rule)) for key, column in made.columns.items())
    return {key for key, rule in rules if rule.startswith(_WINDOWS)}


def _window_with(form: object, field: str, made: Lineage) -> str | None:
    """The window of which an expression is a field, by how it is made; None where it isn't one."""
    if not isinstance(form, tuple) or not is_column(form):
        return None
    rule = made.columns[str(form[0]).partition(":")[2]].rule
    if form[1:] == (field,):
        return rule if rule.startswith(_WINDOWS) else None
    of_one = f"field {field} of "
    window = rule.removeprefix(of_one)
    return window if rule.startswith(of_one) and window.startswith(_WINDOWS) else None


def _lacking_fields(made: Lineage) -> set[str]:
    """The windows that groups are formed by, whose ends Spark takes for what may be null in any case."""
    return {fields_of(f"0:{key}") for key, column in made.columns.items() if column.rule.startswith(_WINDOWS)}


def _further(flow: Flow, name: str, made: Lineage, asked: _Asked) -> set[str]:
    """What is before a node for a condition that goes through it."""
    inputs = flow.side.nodes[name].inputs
    found: set[str] = set()
    if ALL in asked.columns:
        return found.union(*(_below(flow, edge, asked) for edge in inputs))
    steps = [made.columns.get(column) for column in asked.columns]
    computed = any(step is None or step.rule not in UNCHANGED for step in steps)
    uses = None if None in steps else uses_of(step for step in steps if step is not None)
    joins = [o for o in flow.side.operators_at(name) if isinstance(o, JoinOperator)]
    equal = (
        (made.rows.uses or frozenset()) if joins and all(j.how not in SEMI for j in joins) else frozenset()
    )
    if uses is None:
        return found.union(*(_below(flow, edge, _by_name(flow, edge, asked)) for edge in inputs))
    if asked.columns and not uses and any(map(_is_worked_out, filter(None, steps))):
        # The condition is the same for all rows, and Spark alone knows whether it lets any through.
        return found.union(*(_below(flow, edge, _anything(groups=asked.groups)) for edge in inputs))
    both_sides = len({use.partition(":")[0] for use in uses}) > 1 and any(
        step is not None and step.rule == "=" for step in steps
    )
    if asked.either and both_sides and not computed and not equal & uses:
        return found
    if asked.bare and computed and len(steps) == 1 and steps[0] is not None:
        asked, computed = asked.computed_by(steps[0].rule, _nullable(flow, name)), False
    form = followed(asked.form, made) if asked.form is not None and len(inputs) == 1 else None
    for position, edge in enumerate(inputs):
        columns = of_input(uses, position)
        if equal & uses:
            # What a join wants to be equal is asked for the same.
            columns = columns | of_input(equal, position)
        if columns or not asked.columns:
            split = asked.parts or (len(inputs) > 1 and bool(equal & uses))
            given = asked._replace(parts=split).over(columns, computed=computed)
            found |= _below(flow, edge, given._replace(form=form, there=_passed(asked.there, made, position)))
    return found


def _is_worked_out(made: Made) -> bool:
    """Whether a constant is none that is written down, so that Spark works it out when it plans."""
    return not _LITERAL.match(made.rule)


def _passed(columns: frozenset[str], made: Lineage, position: int) -> frozenset[str]:
    """Those columns of an input that are some columns behind it as they are."""
    steps = [made.columns[column] for column in columns & set(made.columns)]
    uses = {use for step in steps if step.rule == "=" for use in step.uses or ()}
    return frozenset(of_input(uses, position))
