"""What state Spark may put a condition before that stands behind it: all of it that can't be ruled out.

Spark's optimizer takes conditions apart, puts in their place what computed columns are made of, asks for what
they would be null without, and carries them over what a join wants to be equal. Which state has been kept
without a condition, or with it, is told here by what no rule of it can do. For the exact form of what is kept
there is `gem_bundle.changes.conditions`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.changes.asked import (
    Asked,
    anything,
    asked_by_terms,
    asked_of,
    is_told_by_terms,
    joins_rows,
    leaves_rows_out,
    nullable_before,
)
from gem_bundle.changes.clauses import fields_of, gets_before_groups, is_whole
from gem_bundle.changes.conditions import (
    SEMI,
    how_it_joins,
    is_written_down,
    lacks_no_value,
    never_lacking_before,
    pushed_below,
)
from gem_bundle.changes.forms import followed, is_column
from gem_bundle.changes.needed import ALL, of_input
from gem_bundle.lineage import UNCHANGED, column_keys, uses_of
from gem_bundle.operators import LACKING, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Lineage, Term

_WINDOWS = ("window ", "('window'")
_FIELD_OF = re.compile(r"^field \w+ of ")


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
        name: A transform, which keeps no state, or groups that ask something of the rows that get into them.
        output: The one of its outputs that is meant.
        unchanged: What of its condition doesn't count, as `same_terms` tells it.
        groups: Groups count that it gets before, not only rows that are kept and what goes by the watermark.
        nulls: Those count too that it gets before for what it would be null without alone.
        there: Columns of its input that are asked for in any case, as `asked_in_both` tells it.
    """
    node = flow.side.nodes[name]
    lineage = flow.lineage(name, output)
    keeps = flow.keeps(name)
    lineage = lineage and (lineage.before_groups if keeps else lineage)
    if node.kind != "transform" or (keeps and lineage is None) or name not in flow.behind_operators:
        return set()
    found: set[str] = set()
    if lineage is None:
        for edge in node.inputs:
            found |= _below(flow, edge, anything(groups=groups))
        return found
    if lineage.only_nulls and not lineage.nulls_left_out(never_lacking_before(flow, name)):
        return set()  # it leaves out nothing
    if not leaves_rows_out(flow, name, lineage):
        return set()
    told = lineage.rows.uses is not None and lineage.kept is None
    if told and joins_rows(flow, name) and SEMI.issuperset(how_it_joins(flow, name)):
        pushed = pushed_below(flow, name, output, unchanged=unchanged)
        below = {state for state in pushed if flow.recalls(state)}
        # Whether it gets before a watermark too isn't told there.
        return {s for s in below if groups or flow.keeps_rows(s) or s in flow.by_event_time}
    if is_told_by_terms(flow, name, lineage):
        asking = asked_by_terms(flow, name, lineage, unchanged)
        asking = [asked._replace(groups=groups, nulls=nulls, there=there) for asked in asking]
        return found.union(*(_below(flow, node.inputs[0], asked) for asked in asking))
    for position, edge in enumerate(node.inputs):
        asked = asked_of(flow, name, lineage, position)
        if asked is not None:
            found |= _below(flow, edge, asked._replace(groups=groups, nulls=nulls, there=there))
    return found


def _below(flow: Flow, edge: InputRecord, asked: Asked) -> set[str]:
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
        found |= {before} if counts and flow.recalls_rows(before) else set()
    return found | _further(flow, before, made, asked)


def _first_there(made: Lineage | None) -> set[str]:
    """The columns that a node makes by making several rows of each: before it there is none of them."""
    if made is None or not made.expands:
        return set()
    return {key for key, column in made.columns.items() if column.rule not in UNCHANGED}


def _stays(flow: Flow, name: str, asked: Asked) -> bool:
    """Whether a condition is one thing over what comes out of a node, by its form, and asks for no value."""
    nullable = {f"0:{key}" for key, never in flow.nulls.never(name).items() if never is False}
    return asked.form is not None and is_whole(asked.form, nullable)


def _by_name(flow: Flow, edge: InputRecord, asked: Asked) -> Asked:
    """A condition before a node of which nothing is known: a column is the one that had its name, or any."""
    facts = flow.side.facts.get(edge.key)
    given = column_keys(facts.columns) if facts is not None else None
    return asked if given is not None and asked.columns <= set(given) else asked.over(None)


def _sides(made: Lineage, asked: Asked) -> set[int]:
    """The sides of a join that a condition is over."""
    return {side for column in asked.columns & set(made.columns) for side in made.sides_of(column)}


def _is_of_what_lacks(flow: Flow, name: str, sides: set[int]) -> bool:
    """Whether a condition is about rows alone that an outer join may lack: it stays behind."""
    joins = how_it_joins(flow, name)
    lacking = LACKING.get(joins[0], frozenset()) if len(joins) == 1 else frozenset()
    return bool(sides) and sides <= lacking


def _goes_through_groups(flow: Flow, edge: InputRecord, made: Lineage, asked: Asked) -> bool:
    """Whether something of a condition may get before groups: what it asks of their keys."""
    name = edge.node
    asked = asked._replace(there=asked.there | _parts_of_windows(made))
    kinds = {operator.kind for operator in flow.side.stateful if operator.node == name}
    if made.rows.uses is None and asked.form is not None and asked.columns <= set(made.columns):
        results = made.kept.results if made.kept is not None else frozenset()
        others = {f"0:{key}" for key in set(made.columns) - results}
        return kinds != {"deduplicate"} and gets_before_groups(asked.form, others, others, set())
    if made.rows.uses is None or ALL in asked.columns:
        return kinds != {"deduplicate"}
    if not kinds <= {"aggregate", "except"} or (made.kept is not None and not made.kept.keys):
        return False  # a removal of duplicates, or a limit
    keys = set(made.columns) - (made.kept.results if made.kept is not None else frozenset())
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
    return not all(never.get(key) or lacks_no_value(flow, edge, key) for key in over - asked.there)


def _parts_with(
    flow: Flow,
    edge: InputRecord,
    asked: Asked,
    columns: Set[str],
    lacking_fields: Set[str] = frozenset(),
) -> bool:
    """Whether a condition has parts that are about nothing but some columns, or may have: without a form."""
    if asked.form is None:
        return True
    known = flow.nulls.never(edge.node)
    open_to_null = {key for key, never in known.items() if not never} - asked.there
    counted = open_to_null if asked.nulls else set()
    lacking = {f"0:{key}" for key in counted if not lacks_no_value(flow, edge, key)}
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


def _further(flow: Flow, name: str, made: Lineage, asked: Asked) -> set[str]:
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
    if asked.columns and not uses and not all(map(is_written_down, filter(None, steps))):
        # The condition is the same for all rows, and Spark alone knows whether it lets any through.
        return found.union(*(_below(flow, edge, anything(groups=asked.groups)) for edge in inputs))
    both_sides = len({use.partition(":")[0] for use in uses}) > 1 and any(
        step is not None and step.rule == "=" for step in steps
    )
    if asked.either and both_sides and not computed and not equal & uses:
        return found
    if asked.bare and computed and len(steps) == 1 and steps[0] is not None:
        asked, computed = asked.computed_by(steps[0].rule, nullable_before(flow, name)), False
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


def _passed(columns: frozenset[str], made: Lineage, position: int) -> frozenset[str]:
    """Those columns of an input that are some columns behind it as they are."""
    steps = [made.columns[column] for column in columns & set(made.columns)]
    uses = {use for step in steps if step.rule == "=" for use in step.uses or ()}
    return frozenset(of_input(uses, position))
