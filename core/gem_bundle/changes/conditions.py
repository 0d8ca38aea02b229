"""Conditions: what Spark puts them before, what it knows behind them, and what it makes of a join by them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.changes.flow import ALL, IS_NULL, of_input, read_of
from gem_bundle.expressions.functions import BY_CHANCE
from gem_bundle.lineage import NEVER_TRUE, Lineage, Made, column_keys, same, uses_of
from gem_bundle.operators import JoinOperator, WatermarkOperator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord

_CONJUNCTION = "(<class 'sqlglot.expressions.core.And'>"
_TRUE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', True)"
IS_TRUE = f"{_TRUE},))"
"""The rule of a condition that is `true` and nothing else."""
UNCHANGED = frozenset({"=", "union"})
"""The rules of columns that are columns of inputs as they are."""
# Which inputs of an outer join have nulls where a row of the other one has no partner.
_LACKING = {"left": frozenset("1"), "right": frozenset("0"), "full": frozenset("01")}
_SEMI = frozenset({"left_semi", "left_anti"})
# What a semi join is put before.
_PASSED = frozenset({"filter", "generate", "repartition", "union"})
_BY_CHANCE = re.compile(rf"(?i)[.'](?:{'|'.join(sorted(BY_CHANCE))}|monotonically_?increasing_?id)'")
_EQUALITY = "sqlglot.expressions.core.EQ'"
_EQUALITIES = (f"(<class '{_EQUALITY}", "(<class 'sqlglot.expressions.core.NullSafeEQ'")


def let_nothing_through(flow: Flow) -> tuple[str, ...]:
    """The nodes whose condition on a row is never true, as Spark finds it by its form."""
    return tuple(
        name
        for name in flow.side.order
        if flow.side.nodes[name].kind == "transform"
        and any(_is_never_true(flow, name, output) for output in flow.outputs(name))
    )


def _is_never_true(flow: Flow, name: str, output: str) -> bool:
    lineage = flow.lineage(name, output)
    # What is the same for all rows isn't put before what keeps state.
    if lineage is None or not lineage.rows.uses:
        return False
    if NEVER_TRUE in (lineage.asks or ()):
        return True
    never = flow.never_null_before(name) if IS_NULL.match(lineage.rows.rule) else {}
    return all(never.get(use) for use in lineage.rows.uses)


def pushed_below(flow: Flow, name: str, output: str = "") -> set[str]:
    """The aggregations and joins that Spark puts a filter before, though it stands behind.

    It does so with conditions over what is grouped by, or over one side of a join, in branches of unions
    too. State that was made without the filter, or with it, is then not what the query takes it for.

    Args:
        flow: The version.
        name: A transform.
        output: The one of its outputs that is the filter.
    """
    lineage = flow.lineage(name, output)
    if lineage is None or lineage.kept is not None or lineage.expands or lineage.rows.uses is None:
        return set()
    # What is the same for all rows is asked of the first input of a join, and isn't moved elsewhere.
    constant = not lineage.rows.uses
    if constant and (not lineage.rows.rule.startswith("(") or lineage.rows.rule.startswith(_TRUE)):
        return set()
    if lineage.only_nulls:
        never = never_lacking_before(flow, name)
        if all(any(never.get(use) for use in uses) for uses in lineage.only_nulls):
            return set()  # it leaves out nothing
    inputs = flow.side.nodes[name].inputs
    semi = _is_semi_join(flow, name)
    if len(inputs) > 1 and not semi:
        return set()
    wanted = of_input(lineage.rows.uses, 0)
    return _below(flow, inputs[0], wanted, lineage.rows, semi=semi) if wanted or not semi else set()


def never_lacking_before(flow: Flow, name: str) -> dict[str, bool | None]:
    """Which columns of its inputs no row lacks, whatever Spark takes them for: they are asked for."""
    inputs = flow.side.nodes[name].inputs

    def is_asked_for(use: str) -> bool:
        position, _, key = use.partition(":")
        return is_always_there(flow, inputs[int(position)], key)

    return {use: never or is_asked_for(use) for use, never in flow.never_null_before(name).items()}


def is_always_there(flow: Flow, edge: InputRecord, key: str) -> bool:
    """Whether no row of an input lacks a value of a column, because a condition before asks for it."""
    while True:
        node = flow.side.nodes[edge.node]
        lineage = flow.lineage(node.id, edge.output)
        joins = [o.how for o in flow.side.operators if o.node == node.id and isinstance(o, JoinOperator)]
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


def _is_semi_join(flow: Flow, name: str) -> bool:
    """Whether a node is a join that only decides which rows of its first input stay, like a filter."""
    joins = [o for o in flow.side.operators if o.node == name and isinstance(o, JoinOperator)]
    return bool(joins) and all(join.how in _SEMI for join in joins)


def _below(flow: Flow, edge: InputRecord, wanted: set[str], rows: Made, *, semi: bool = False) -> set[str]:
    """Those among the nodes from an input on, for a condition over some of its columns.

    Args:
        flow: The version.
        edge: The input.
        wanted: The columns.
        rows: The condition.
        semi: It is one of a semi join, which goes before an aggregation as a whole, and only with an
            equality: Spark's rule `PushDownLeftSemiAntiJoin`.
    """
    before, made = edge.node, flow.lineage(edge.node, edge.output)
    if made is None or (made.kept is not None and made.rows.uses is None):
        # By what it keeps isn't known, so that the condition may be about that.
        return {before} if flow.keeps(before) else set()
    several = not semi and rows.rule.startswith(_CONJUNCTION)
    if made.kept is not None and made.kept.rows:
        sides = {
            use.partition(":")[0]
            for column in wanted & set(made.columns)
            for use in made.columns[column].uses or ("?:",)
        }
        # With both sides' columns it becomes a part of the join's condition, and what is equal a key.
        key = rows.rule.startswith(_EQUALITIES) or _CONJUNCTION in rows.rule
        gets_before = not rows.uses or several or len(sides) == 1 or key
        return {before} if gets_before else set()
    if made.kept is not None:
        keys = set(made.columns) - set(made.kept.values)
        gets_before = bool(rows.uses) and (bool(wanted & keys) if several else wanted <= keys)
        groups = bool(made.kept.values) and not flow.drops_duplicates(before)
        gets_before = gets_before and (groups or _is_distinct(flow, before))
        # Of columns of one name it is known that they are to be equal, and there is no condition.
        equal = _EQUALITY in rows.rule or "sqlglot" not in rows.rule
        gets_before = gets_before and (not semi or equal)
        return {before} if gets_before else set()
    if not semi and not several and wanted & _marked(flow, before):
        return set()
    steps = [made.columns.get(column) for column in wanted]
    if any(step is None or step.uses is None for step in steps):
        return set()
    if made.expands and any(step is not None and step.rule not in UNCHANGED for step in steps):
        return set()
    uses = {use for step in steps if step is not None for use in step.uses or ()}
    inputs = flow.side.nodes[before].inputs
    if len(inputs) > 1 and any(step is not None and step.rule == "=" for step in steps):
        inputs = inputs if len({use.partition(":")[0] for use in uses}) == 1 else ()
    found: set[str] = set()
    for position, other in enumerate(inputs):
        moved = of_input(uses, position)
        if moved or not wanted:
            found |= _below(flow, other, moved, rows, semi=semi)
    return found


def _marked(flow: Flow, name: str) -> set[str]:
    """The columns that a node puts a watermark on: Spark puts no condition on one of them before it."""
    found = (o for o in flow.side.operators if o.node == name and isinstance(o, WatermarkOperator))
    return {operator.column.strip("`").lower() for operator in found}


def _is_distinct(flow: Flow, name: str) -> bool:
    """Whether a node keeps by an aggregation which rows there are, and they come out of its state."""
    if flow.side.nodes[flow.side.target].output_mode == "update":
        return False  # then those come out that rows have just come for
    kinds = {operator.kind for operator in flow.side.operators if operator.node == name}
    return bool(kinds & {"aggregate", "except"})


def kept_of(flow: Flow, name: str, position: int) -> tuple[InputRecord, set[str]]:
    """Where a join takes the rows of an input from, and those of their columns that it keeps.

    Spark puts a semi join before what makes several rows of each, where it asks for none of what is made.
    """
    edge, wanted = flow.side.nodes[name].inputs[position], flow.needed_of(name, position)
    joins = (o for o in flow.side.stateful if o.node == name and isinstance(o, JoinOperator))
    lineage = flow.lineage(name)
    if position or [o.how for o in joins] != ["left_semi"]:
        return edge, wanted
    if lineage is None or lineage.rows.uses is None:
        return edge, wanted
    asked = of_input(lineage.rows.uses, 0)
    while True:
        before = flow.lineage(edge.node, edge.output)
        if before is None or not before.expands or before.rows.uses or not _passes(before, asked):
            return edge, wanted
        wanted = _read_for(flow, edge.node, before, 0, wanted)
        (edge,) = flow.side.nodes[edge.node].inputs


def joins_of(flow: Flow, join: JoinOperator) -> int:
    """How many joins with state Spark makes of one: a semi join goes before a union, once for each input.

    It is Spark's rule `PushDownLeftSemiAntiJoin`. The join gets there through what computes columns, makes
    several rows of each or leaves some out; not through a watermark, nor through what keeps state.

    Args:
        flow: The version.
        join: The join.
    """
    lineage = flow.lineage(join.node)
    if join.how not in _SEMI or lineage is None or lineage.kept is None:
        return 1
    if tuple(lineage.kept.sides or (0, 1)) != (0, 1):
        return 1
    asked = of_input(lineage.rows.uses or (), 0)
    return _inputs_before(flow, flow.side.nodes[join.node].inputs[0], asked)


def _inputs_before(flow: Flow, edge: InputRecord, asked: set[str]) -> int:
    node, lineage = flow.side.nodes[edge.node], flow.lineage(edge.node, edge.output)
    kinds = {operator.kind for operator in flow.side.operators if operator.node == node.id}
    if node.kind != "transform" or lineage is None or not kinds <= _PASSED:
        return 1
    made = (lineage.rows, *lineage.columns.values())
    if any(_BY_CHANCE.search(one.rule) for one in made) or (lineage.expands and not _passes(lineage, asked)):
        return 1
    uses = {use for key in asked if key in lineage.columns for use in lineage.columns[key].uses or ()}
    return sum(_inputs_before(flow, other, of_input(uses, place)) for place, other in enumerate(node.inputs))


def asked_just_before(flow: Flow, name: str, position: int, key: str, *, asked: bool) -> bool:
    """Whether Spark asks for a column that isn't null so near to a node that it still knows it there.

    It asks as early as it can: at the source, or behind what a condition can't be put before. What
    computes columns on the way from there, leaves some out, calls them otherwise or puts them into another
    order makes it forget that again.

    Args:
        flow: The version.
        name: The node.
        position: The position of its input.
        key: The column.
        asked: The node itself asks for it; a condition before it may too.
    """
    edge, wanted = kept_of(flow, name, position)
    first = wanted
    tested: set[str] = set()
    ever = True
    others: set[str] = set()
    while True:
        node = flow.side.nodes[edge.node]
        lineage = flow.lineage(node.id, edge.output)
        if node.kind != "transform" or lineage is None:
            return False
        if any(o.kind == "limit" for o in flow.side.operators if o.node == node.id):
            return asked  # no condition is put before it
        if flow.watermarks(node.id):
            # A condition is put before it, but for one about event time. Before it Spark knows that what is
            # asked of a copy holds of event time too, and then asks no more.
            if _is_event_time(flow, node.id, key):
                return asked and not any(_are_one(flow, node.inputs[0], key, other) for other in others)
        elif flow.drops_duplicates(node.id):
            # What it compares, and what is tested behind it, is left out where nobody reads it.
            tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
            return asked and ever and (tested <= first or ALL in first)
        made = [found for column, found in lineage.columns.items() if column in wanted or ALL in wanted]
        passed = {use for found in made if found.rule == "=" for use in found.uses or ()}
        given = {int(use.partition(":")[0]) for m in lineage.columns.values() for use in m.uses or ()}
        read = {f"{p}:{c}" for p in given for c in _read_for(flow, node.id, lineage, p, wanted)}
        filters = not lineage.kept and len(node.inputs) == 1 and f"0:{key}" not in (lineage.rows.uses or ())
        if len(passed) < len(made) or (read - passed and not filters) or _arranges(flow, node.id, wanted):
            return False
        streams = [place for place, other in enumerate(node.inputs) if flow.side.is_streaming(other.node)]
        if len(streams) != 1:
            return False
        (place,) = streams
        if len(node.inputs) == 1 and not lineage.kept:
            tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
            asks = {use.partition(":")[2] for use in lineage.asks or ()}
            asked = asked or key in asks
            others |= asks - {key}
            ever = ever and NEVER_TRUE not in (lineage.asks or ())
        wanted = _read_for(flow, node.id, lineage, place, wanted)
        edge = node.inputs[place]


def _arranges(flow: Flow, name: str, wanted: Set[str]) -> bool:
    """Whether a node calls columns of its only input otherwise, or puts them into another order."""
    inputs, lineage = flow.side.nodes[name].inputs, flow.lineage(name)
    facts = flow.side.facts.get(inputs[0].key) if len(inputs) == 1 else None
    coming = column_keys(facts.columns) if facts is not None else None
    if lineage is None or coming is None or lineage.kept or any(o.node == name for o in flow.side.operators):
        return False
    given = [(key, made) for key, made in lineage.columns.items() if key in wanted or ALL in wanted]
    if any(made != same(key) for key, made in given):
        return True
    keys = {key for key, _ in given}
    return [key for key, _ in given] != [key for key in coming if key in keys]


def _are_one(flow: Flow, edge: InputRecord, one: str, other: str) -> bool:
    """Whether two columns of an input are the same column of something before, as it is."""
    while True:
        node, lineage = flow.side.nodes[edge.node], flow.lineage(edge.node, edge.output)
        if node.kind != "transform" or lineage is None:
            return False
        made = [lineage.columns.get(key) for key in (one, other)]
        uses = [
            next(iter(m.uses))
            for m in made
            if m is not None and m.rule == "=" and m.uses and len(m.uses) == 1
        ]
        if len(uses) < len(made) or len({use.partition(":")[0] for use in uses}) > 1:
            return False
        if uses[0] == uses[1]:
            return True
        position = int(uses[0].partition(":")[0])
        one, other = (use.partition(":")[2] for use in uses)
        edge = node.inputs[position]


def asked_behind(flow: Flow, name: str, *, tried: bool = False) -> set[str]:
    """The columns of a node's inputs that conditions behind it ask for, and that Spark puts before it.

    Each is behind the position of its input, as in `gem_bundle.lineage.Made.uses`.

    Args:
        flow: The version.
        name: The node.
        tried: Those count too without which a condition is null, as Spark finds out by trying nulls.
    """
    found: set[str] = set()
    for lineage, known in _conditions_behind(flow, name):
        nulls = (lineage.rows.nulls or frozenset()) if tried else frozenset()
        asks = {use.partition(":")[2] for use in (lineage.asks or frozenset()) | nulls}
        passed = (known[key] for key in asks & known.keys())
        found |= {use for made in passed if made.rule == "=" for use in made.uses or ()}
    return found


def _conditions_behind(flow: Flow, name: str) -> Iterator[tuple[Lineage, Mapping[str, Made]]]:
    """The nodes whose conditions Spark puts before one, with what the columns before them are made of."""
    lineage = flow.lineage(name)
    waiting = [(name, "", dict(lineage.columns) if lineage is not None else {})]
    while waiting:
        before, read, known = waiting.pop()
        for other in flow.side.readers_of.get(before, ()):
            inputs = flow.side.nodes[other].inputs
            if len(inputs) != 1 or inputs[0].output != read:
                continue
            for output in flow.outputs(other):
                lineage = flow.lineage(other, output)
                if lineage is None or lineage.kept:
                    continue
                if name in pushed_below(flow, other, output):
                    yield lineage, known
                waiting.append(
                    (other, output, {key: _of(known, made) for key, made in lineage.columns.items()})
                )


def _of(known: Mapping[str, Made], made: Made) -> Made:
    """Something made of columns, as made of what those are made of."""
    if made.uses is None:
        return made
    found = [known.get(use.partition(":")[2], Made("?", None)) for use in made.uses]
    if made.rule == "=" and len(found) == 1:
        return found[0]
    return Made("of several" if made.rule == "=" else made.rule, uses_of(found))


def keys_from_behind(flow: Flow, join: JoinOperator) -> int:
    """How many keys an inner join has by conditions behind it: what of both sides is to be equal is one.

    Args:
        flow: The version.
        join: The join.
    """
    lineage = flow.lineage(join.node)
    kept = lineage.kept if lineage is not None else None
    if kept is None or joined_how(flow, join) != "inner":
        return 0
    parts = kept.parts
    known = {frozenset((one.uses, other.uses)) for one, other in zip(parts[::2], parts[1::2], strict=False)}
    found: dict[frozenset[frozenset[str] | None], int] = {}
    for behind, columns in _conditions_behind(flow, join.node):
        for equal in behind.equals:
            sides = [_of(columns, Made("both", side)).uses for side in equal.sides]
            places = [{use.partition(":")[0] for use in side or ()} for side in sides]
            if [len(of_side) for of_side in places] != [1, 1] or places[0] == places[1]:
                continue
            pair = frozenset(sides)
            if pair not in known:
                # Spark fills nulls, and whether it was one is a key of its own.
                found[pair] = max(found.get(pair, 0), 2 if equal.takes_nulls else 1)
    return sum(found.values())


def joined_how(flow: Flow, join: JoinOperator) -> str:
    """How Spark joins: where a condition behind asks for a column of the side that may lack, none lacks.

    It is Spark's rule `EliminateOuterJoin`.

    Args:
        flow: The version.
        join: The join.
    """
    lineage = flow.lineage(join.node)
    kept = lineage.kept if lineage is not None else None
    if join.how not in _LACKING or kept is None or tuple(kept.sides or (0, 1)) != (0, 1):
        return join.how
    asked = {use.partition(":")[0] for use in asked_behind(flow, join.node, tried=True)}
    lacking = _LACKING[join.how] - asked
    return next(how for how, sides in _LACKING.items() if sides == lacking) if lacking else "inner"


def _passed_on(flow: Flow, name: str, output: str = "") -> dict[str, Made]:
    """The columns of a node that are columns of its inputs as they are."""
    lineage = flow.lineage(name, output)
    columns = lineage.columns.items() if lineage is not None else ()
    return {key: made for key, made in columns if made.rule == "="}


def _read_for(flow: Flow, name: str, lineage: Lineage, position: int, wanted: Set[str]) -> set[str]:
    """The columns of an input that a node reads for some of those that it gives."""
    edge = flow.side.nodes[name].inputs[position]
    facts = flow.side.facts.get(edge.key)
    return read_of(lineage, position, wanted, column_keys(facts.columns if facts else None) or [ALL])


def _is_event_time(flow: Flow, name: str, key: str) -> bool:
    """Whether a column behind a node carries a watermark."""
    facts = flow.side.facts[name]
    keys = column_keys(facts.columns) or ()
    return any(c.watermarked and key == k for k, c in zip(keys, facts.columns or (), strict=False))


def _passes(lineage: Lineage, keys: Set[str]) -> bool:
    """Whether some columns that come out are those of the only input as they are, under the same names."""
    return all(key in lineage.columns and lineage.columns[key] == same(key) for key in keys)
