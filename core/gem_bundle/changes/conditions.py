"""What Spark puts a condition before, and what is known behind it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.needed import of_input
from gem_bundle.lineage import UNCHANGED, Lineage, Made, column_keys, uses_of
from gem_bundle.operators import JoinOperator

if TYPE_CHECKING:
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Equality, Term

_CONJUNCTION = "(<class 'sqlglot.expressions.core.And'>"
_TRUE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', True)"
IS_TRUE = f"{_TRUE},))"
"""The rule of a condition that is `true` and nothing else."""
SEMI = frozenset({"left_semi", "left_anti"})
"""How joins are called that only decide which rows of their first input stay."""
ASKED_BEFORE = {
    "inner": frozenset({0, 1}),
    "left": frozenset({0}),
    "left_semi": frozenset({0}),
    "left_anti": frozenset({0}),
    "right": frozenset({1}),
}
"""Of which sides a condition behind a join is asked before it, by how it joins: 0 is the left one."""
_LITERAL = re.compile(r"\(<class 'sqlglot\.expressions\.core\.(Literal|Boolean|Null|Neg)'>")
_EQUALITY = "sqlglot.expressions.core.EQ'"
EQUALITIES = (f"(<class '{_EQUALITY}", "(<class 'sqlglot.expressions.core.NullSafeEQ'")
"""How the rules of conditions begin that want two things to be equal."""


def pushed_below(
    flow: Flow,
    name: str,
    output: str = "",
    *,
    pairs: bool = False,
    far: bool = False,
    any_mode: bool = False,
    through: bool = False,
    unchanged: frozenset[Term] = frozenset(),
) -> set[str]:
    """The aggregations and joins that Spark puts a filter before, though it stands behind.

    It does so with conditions over what is grouped by, or over one side of a join, in branches of unions
    too. State that was made without the filter, or with it, is then not what the query takes it for.

    Args:
        flow: The version.
        name: A transform.
        output: The one of its outputs that is the filter.
        pairs: Those joins too by whose condition it is asked of pairs: of rows nothing but whether there is
            a value is asked by it.
        far: Those too that are before such a join: it is asked of their rows as well.
        any_mode: Those too of whose state nothing comes out by the target's output mode.
        through: Those too that are before aggregations by whose keys it goes.
        unchanged: What of a semi join's condition doesn't count.
    """
    lineage = flow.lineage(name, output)
    if lineage is None or lineage.kept is not None or lineage.expands or lineage.rows.uses is None:
        return set()
    if name not in flow.behind_operators:
        return set()
    # What is the same for all rows is asked of the first input of a join, and isn't moved elsewhere.
    constant = not lineage.rows.uses
    if constant and (not lineage.rows.rule.startswith("(") or lineage.rows.rule.startswith(_TRUE)):
        return set()
    if lineage.only_nulls and not lineage.nulls_left_out(never_lacking_before(flow, name)):
        return set()  # it leaves out nothing
    inputs = flow.side.nodes[name].inputs
    semi = _is_semi_join(flow, name)
    if len(inputs) > 1 and not semi:
        return set()
    left = _first_of(lineage) if semi else 0
    wanted = of_input(lineage.rows.uses, left)
    if semi and not wanted:
        return set()
    equal = bool(lineage.equals) and not semi
    if semi and lineage.terms:
        found = set[str]()
        for part in (term.made for term in lineage.terms if term not in unchanged):
            wanted = of_input(part.uses or (), left)
            # One about its rows alone is a filter of them.
            of_pairs = any(not use.startswith(f"{left}:") for use in part.uses or ())
            how = _How(of_pairs, pairs, any_mode=any_mode, far=far, through=through)
            found |= _below(flow, inputs[left], wanted, part, how)
        return found
    how = _How(semi, pairs, equal, any_mode, several=len(lineage.terms) > 1, far=far, through=through)
    return _below(flow, inputs[left], wanted, lineage.rows, how)


def _first_of(semi_join: Lineage) -> int:
    """The position of the input whose rows a semi join gives: a query may name the second one first."""
    uses = uses_of(semi_join.columns.values())
    places = {int(use.partition(":")[0]) for use in uses or ()}
    return places.pop() if len(places) == 1 else 0


def never_lacking_before(flow: Flow, name: str) -> dict[str, bool | None]:
    """Which columns of its inputs no row lacks, whatever Spark takes them for: they are asked for."""
    inputs = flow.side.nodes[name].inputs

    def is_asked_for(use: str) -> bool:
        position, _, key = use.partition(":")
        return is_always_there(flow, inputs[int(position)], key)

    return {use: never or is_asked_for(use) for use, never in flow.nulls.before(name).items()}


def is_always_there(flow: Flow, edge: InputRecord, key: str) -> bool:
    """Whether no row of an input lacks a value of a column, because a condition before asks for it."""
    while True:
        node = flow.side.nodes[edge.node]
        lineage = flow.lineage(node.id, edge.output)
        joins = how_it_joins(flow, node.id)
        made = lineage.columns.get(key) if node.kind == "transform" and lineage is not None else None
        if lineage is None or made is None or made.rule != "=" or len(made.uses or ()) != 1:
            return False
        use = next(iter(made.uses or ()))
        position, _, key = use.partition(":")
        if any(how != "inner" and (how != "left_semi" or position != "0") for how in joins):
            return False
        if use in (lineage.asks or ()):
            return True
        edge = node.inputs[int(position)]


def lacks_no_value(flow: Flow, edge: InputRecord, key: str) -> bool:
    """Whether no row of an input lacks a value of a column, which may be computed of what none lacks there.

    Args:
        flow: The version.
        edge: The input.
        key: The column.
    """
    if is_always_there(flow, edge, key):
        return True
    lineage, node = flow.lineage(edge.node, edge.output), flow.side.nodes[edge.node]
    made = lineage.columns.get(key) if lineage is not None and node.kind == "transform" else None
    if lineage is None or made is None or not made.nulls or how_it_joins(flow, node.id):
        return False

    def is_there(null: str) -> bool:
        """Whether no row that comes lacks what the column would be null without."""
        place, _, column = null.partition(":")
        if not place.isdecimal():
            return False
        return null in (lineage.asks or ()) or lacks_no_value(flow, node.inputs[int(place)], column)

    return all(map(is_there, made.nulls))


def is_written_down(made: Made) -> bool:
    """Whether a constant is written down; Spark works out others when it plans.

    Args:
        made: How it is made, of no column.
    """
    return _LITERAL.match(made.rule) is not None


def how_it_joins(flow: Flow, name: str) -> list[str]:
    """How each of the joins of a node joins.

    Args:
        flow: The version.
        name: The node.
    """
    return [o.how for o in flow.side.operators_at(name) if isinstance(o, JoinOperator)]


def _is_semi_join(flow: Flow, name: str) -> bool:
    """Whether a node is a join that only decides which rows of its first input stay, like a filter."""
    joins = how_it_joins(flow, name)
    return bool(joins) and SEMI.issuperset(joins)


def _sides_that_stay(flow: Flow, name: str) -> frozenset[int]:
    """The sides of a join of which Spark asks a condition behind it before."""
    joins = how_it_joins(flow, name)
    return ASKED_BEFORE.get(joins[0], frozenset()) if len(joins) == 1 else frozenset()


class _How(NamedTuple):
    """How a condition is asked.

    Args:
        semi: It is one of a semi join, which goes before an aggregation as a whole, and only with an
            equality: Spark's rule `PushDownLeftSemiAntiJoin`.
        pairs: As `pushed_below` has it.
        equal: It wants something to be equal.
        any_mode: As `pushed_below` has it.
        several: It is told by several parts, each of which is asked by itself.
        far: As `pushed_below` has it.
        through: As `pushed_below` has it.
    """

    semi: bool = False
    pairs: bool = False
    equal: bool = False
    any_mode: bool = False
    several: bool = False
    far: bool = False
    through: bool = False


def _below(flow: Flow, edge: InputRecord, wanted: set[str], rows: Made, how: _How) -> set[str]:
    """Those among the nodes from an input on, for a condition over some of its columns.

    Args:
        flow: The version.
        edge: The input.
        wanted: The columns.
        rows: The condition.
        how: How it is asked.
    """
    semi = how.semi
    before, made = edge.node, flow.lineage(edge.node, edge.output)
    if made is None or (made.kept is not None and made.rows.uses is None):
        # By what it keeps isn't known, so that the condition may be about that.
        if flow.keeps(before):
            return {before}
        return _below_unknown(flow, before, wanted, rows, how)
    several = not semi and (how.several or rows.rule.startswith(_CONJUNCTION))
    if made.kept is not None and made.kept.rows:
        sides = {side for column in wanted & set(made.columns) for side in made.sides_of(column)}
        # With both sides' columns it becomes a part of the join's condition, and what is equal a key.
        key = how.equal or rows.rule.startswith(EQUALITIES) or _CONJUNCTION in rows.rule
        gets_before = how.pairs or not rows.uses or several or len(sides) == 1 or key
        if not gets_before:
            return set()
        if not wanted <= set(made.columns) or (len(sides) > 1 and not how.far):
            return {before}
        return {before} | _below_sides(flow, before, made, wanted, rows, how)
    if made.kept is not None:
        keys = set(made.columns) - made.kept.results
        gets_before = bool(rows.uses) and (bool(wanted & keys) if several else wanted <= keys)
        groups = bool(made.kept.values) and not flow.drops_duplicates(before)
        gets_before = gets_before and (groups or _is_distinct(flow, before, any_mode=how.any_mode))
        # Of columns of one name it is known that they are to be equal, and there is no condition.
        gets_before = gets_before and (not semi or _EQUALITY in rows.rule or "sqlglot" not in rows.rule)
        if not gets_before or not how.through or len(flow.side.nodes[before].inputs) > 1:
            return {before} if gets_before else set()
        moved = {
            use
            for key in (wanted & keys) - set(made.kept.values)
            for use in of_input(made.columns[key].uses or (), 0)
        }
        return {before} | _below(flow, flow.side.nodes[before].inputs[0], moved, rows, how)
    if not semi and not several and wanted & flow.marked(before):
        return set()
    steps = [made.columns.get(column) for column in wanted]
    if any(step is None or step.uses is None for step in steps):
        return set()
    if made.expands and any(step is not None and step.rule not in UNCHANGED for step in steps):
        return set()
    uses = {use for step in steps if step is not None for use in step.uses or ()}
    if rows.rule == "=" and len(steps) == 1 and steps[0] is not None and steps[0].rule not in UNCHANGED:
        # The column is the condition, which Spark puts in its place.
        rows = replace(rows, rule=steps[0].rule)
        how = how._replace(equal=how.equal or bool(steps[0].equals))
    inputs = flow.side.nodes[before].inputs
    if len(inputs) > 1 and any(step is not None and step.rule == "=" for step in steps):
        inputs = inputs if len({use.partition(":")[0] for use in uses}) == 1 else ()
    found: set[str] = set()
    for position, other in enumerate(inputs):
        moved = of_input(uses, position)
        if moved or not wanted:
            found |= _below(flow, other, moved, rows, how)
    return found


def _below_sides(flow: Flow, name: str, joined: Lineage, wanted: set[str], rows: Made, how: _How) -> set[str]:
    """Those before a join, for a condition over some of the columns behind it."""
    found: set[str] = set()
    each = {column: joined.sides_of(column) for column in wanted}
    sides = frozenset[int]().union(*each.values())
    for side in sides & _sides_that_stay(flow, name):
        position = side if joined.kept is None else joined.kept.position_of(side)
        of_side = [joined.columns[column] for column, of in each.items() if of == frozenset({side})]
        moved = {use for made in of_side for use in of_input(made.uses or (), position)}
        if moved:
            found |= _below(flow, flow.side.nodes[name].inputs[position], moved, rows, how)
    return found


def _below_unknown(flow: Flow, name: str, wanted: set[str], rows: Made, how: _How) -> set[str]:
    """Those before a transform of which it isn't known what it makes of what.

    A column is taken for the one that had its name before, and one with a new name for any of them.
    """
    found: set[str] = set()
    for edge in flow.side.nodes[name].inputs:
        facts = flow.side.facts.get(edge.key)
        given = set(column_keys(facts.columns) or ()) if facts is not None else set()
        for columns in [wanted] if wanted <= given else [{key} for key in sorted(given)]:
            found |= _below(flow, edge, columns, rows, how)
    return found


def _is_distinct(flow: Flow, name: str, *, any_mode: bool) -> bool:
    """Whether a node keeps by an aggregation which rows there are, and they come out of its state."""
    if not any_mode and flow.updates:
        return False  # then those come out that rows have just come for
    kinds = flow.side.kinds_at(name)
    return bool(kinds & {"aggregate", "except"})


def asked_before(flow: Flow, edge: InputRecord, use: str) -> set[str]:
    """The nodes before which Spark asks for a column that an aggregation asks for, as its window does.

    Args:
        flow: The version.
        edge: The input.
        use: The column, behind the position of the input.
    """
    return _below(flow, edge, of_input([use], 0), Made(uses=frozenset([use])), _How(through=True))


def equal_below(flow: Flow, edge: InputRecord, equal: Equality) -> set[str]:
    """The nodes before which Spark asks that something is equal in the rows of an input.

    Args:
        flow: The version.
        edge: The input.
        equal: What is to be equal, over the columns of the input.
    """
    uses = equal.sides[0] | equal.sides[1]
    keys = {use.partition(":")[2] for use in uses}
    return _below(flow, edge, keys, Made(EQUALITIES[0], uses), _How(equal=True, through=True))
