"""What Spark makes of joins of streams: how it joins, how often, by what, and what it knows of their rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gem_bundle.changes.behind import (
    as_they_were,
    asked_behind,
    conditions_behind,
    lacks_what_it_is_of,
)
from gem_bundle.changes.conditions import ASKED_BEFORE, is_always_there
from gem_bundle.changes.forms import columns_in, conditions_of, followed, form_made_by, parts_of, tree_of
from gem_bundle.changes.made import as_made_before, equal_before
from gem_bundle.changes.needed import ALL, of_input, read_of
from gem_bundle.lineage import NEVER_TRUE, Lineage, Made, Term, column_keys, same
from gem_bundle.operators import LACKING, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.forms import Form
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Equality


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
    pairs = Counter(
        frozenset(((one.uses, one.nameless), (o.uses, o.nameless)))
        for one, o in zip(parts[::2], parts[1::2], strict=False)
    )
    # Spark fills nulls, and whether it was one is a key of its own; of pairs that are compared with nulls and
    # without it keeps both.
    known = {(pair, True) for pair, times in pairs.items() if times > 1}
    known |= {(pair, False) for pair, times in pairs.items() if times % 2}
    found = set()
    for _, behind, columns in conditions_behind(flow, join.node, sides=True, joins=True):
        for equal in _equal_sides(behind, columns):
            places = [{use.partition(":")[0] for use in side} for side in equal.sides]
            if [len(of_side) for of_side in places] != [1, 1] or places[0] == places[1]:
                continue
            found.add((frozenset(zip(equal.sides, equal.rules, strict=True)), equal.takes_nulls))
    return sum(2 if takes_nulls else 1 for _, takes_nulls in found - known)


def _equal_sides(behind: Lineage, known: Mapping[str, Made]) -> Iterator[Equality]:
    """What a condition behind a join wants to be equal.

    Args:
        behind: What the node with the condition does.
        known: How the columns before it are made of those that come to the join.
    """
    if behind.rows.rule == "=" and len(behind.rows.uses or ()) == 1:
        # A column is the condition, and may have been computed as one.
        made = known.get(next(iter(behind.rows.uses or ())).partition(":")[2], Made())
        yield from made.equals
    for equal in behind.equals:
        if (found := equal_before(known, equal)) is not None:
            yield found


def joined_how(flow: Flow, join: JoinOperator) -> str:
    """How Spark joins: where a condition behind asks for a column of the side that may lack, none lacks.

    It is Spark's rule `EliminateOuterJoin`.

    Args:
        flow: The version.
        join: The join.
    """
    if join not in flow.joined:
        flow.joined[join] = _joined_how(flow, join)
    return flow.joined[join]


def _joined_how(flow: Flow, join: JoinOperator) -> str:
    lineage = flow.lineage(join.node)
    kept = lineage.kept if lineage is not None else None
    if join.how not in LACKING or kept is None:
        return join.how
    asked = {use.partition(":")[0] for use in asked_behind(flow, join.node, sides=True)}
    asked |= set(_sides_that_fail(flow, join))
    lacking = {place for place in LACKING[join.how] if str(place) not in asked}
    return next(how for how, sides in LACKING.items() if sides == lacking) if lacking else "inner"


def _sides_that_fail(flow: Flow, join: JoinOperator) -> Iterator[str]:
    """The sides of a join without whose rows a condition behind it doesn't hold: Spark tries."""
    for name, lineage, known in conditions_behind(flow, join.node, sides=True):
        for term in lineage.terms or (Term(lineage.rows),):
            # Where that isn't known, it is null without what its form says.
            uses = term.made.nulls if term.fails is None else term.made.uses if term.fails else ()
            places = {use.partition(":")[0] for use in as_they_were(known, uses)}
            made = [known[key] for key in of_input(term.made.uses or (), 0) if key in known]
            if term.fails is None or (all(map(lacks_what_it_is_of, made)) and len(places) <= 1):
                yield from places
            elif not all(map(lacks_what_it_is_of, made)):
                yield from _side_that_fails(flow, join, name, form_made_by(term.made))


def _side_that_fails(flow: Flow, join: JoinOperator, name: str, form: Form | None) -> set[str]:
    """The one side that a condition is about, over what the join gives, if it fails without rows of that."""
    edges = flow.side.nodes[name].inputs
    while form is not None and len(edges) == 1 and edges[0].node != join.node:
        lineage = flow.lineage(edges[0].node, edges[0].output)
        form = None if lineage is None else followed(form, lineage)
        edges = flow.side.nodes[edges[0].node].inputs
    joined = flow.lineage(join.node)
    if form is None or len(edges) != 1 or joined is None:
        return set()
    from gem_bundle.expressions.lacking import fails_without

    keys = {use.partition(":")[2] for use in columns_in(form)} & set(joined.columns)
    sides = {str(side) for key in keys for side in joined.sides_of(key)}
    tree = tree_of(form) if len(sides) == 1 else None
    return sides if tree is not None and fails_without(tree) else set()


def joins_at(flow: Flow, name: str) -> list[JoinOperator]:
    """The joins by which a node keeps state, or may.

    Args:
        flow: The version.
        name: The node.
    """
    return [o for o in flow.side.stateful if o.node == name and isinstance(o, JoinOperator)]


def read_of_rows(flow: Flow, name: str, position: int) -> set[str]:
    """The columns of an input that a join keeps, if it takes its rows as they come.

    Args:
        flow: The version.
        name: The join.
        position: The position of the input.
    """
    return flow.needed.for_rows(name, position, _asked_before(flow, joins_at(flow, name)))


def _asked_before(flow: Flow, joins: list[JoinOperator]) -> frozenset[tuple[str, frozenset[str]]]:
    """The nodes that `parts_left` tells of, each with the columns that its condition still reads."""
    if len(joins) != 1:
        return frozenset()
    left = parts_left(flow, joins[0])
    return frozenset(
        (name, frozenset[str]().union(*(made.uses or () for made in parts))) for name, parts in left.items()
    )


def parts_left(flow: Flow, join: JoinOperator) -> dict[str, list[Made]]:
    """The nodes behind a join of whose conditions Spark asks parts of one of its sides before it.

    It is Spark's rule `PushPredicateThroughJoin`.

    Args:
        flow: The version.
        join: The join.

    Returns:
        Each with the parts of its condition that are left behind the join.
    """
    sides = ASKED_BEFORE.get(joined_how(flow, join), frozenset())
    found: dict[str, list[Made]] = {}
    for name, lineage, known in conditions_behind(flow, join.node, sides=True, groups=True):
        plain = all(made == same(key) for key, made in lineage.columns.items())
        parts = [term.made for term in lineage.terms] or [lineage.rows]
        if lineage.expands or not (plain or lineage.terms):
            continue
        left = [made for made in parts if not _is_of_one(known, made, sides)]
        if len(left) < len(parts) and all(made.uses is not None for made in left):
            found[name] = left
    return found


def _is_of_one(known: Mapping[str, Made], made: Made, sides: Set[int]) -> bool:
    """Whether a condition is about one of the sides of a join alone, and one of some of them."""
    asked = as_made_before(known, Made("both", made.uses)).uses
    places = {int(use.partition(":")[0]) for use in asked or ()}
    return len(places) == 1 and places <= sides


def _asks_of_rows(flow: Flow, name: str, position: int) -> bool:
    """Whether anything is asked of an input's rows alone before a join, by its condition or by one behind it.

    Args:
        flow: The version.
        name: The join.
        position: The position of the input.
    """
    lineage = flow.lineage(name)
    if lineage is None or any(parts_left(flow, join) for join in joins_at(flow, name)):
        return True
    parts = (part for form in conditions_of(lineage.rows.rule) for part in parts_of(form))
    return any({use.partition(":")[0] for use in columns_in(part)} == {str(position)} for part in parts)


def asked_just_before(
    flow: Flow, edge: InputRecord, wanted: Set[str], key: str, of: tuple[str, int], *, asked: bool
) -> bool:
    """Whether Spark asks for a column that isn't null so near to a join that it still knows it there.

    It asks as early as it can: at the source, or behind what a condition can't be put before. What
    computes columns on the way from there, leaves some out, calls them otherwise or puts them into another
    order makes it forget that again.

    Args:
        flow: The version.
        edge: Where the join takes the rows from, as `kept_of` has it.
        wanted: The columns that it keeps.
        key: The column.
        of: The join, and the position of its input.
        asked: The join itself asks for it; a condition before it may too.
    """
    first = wanted
    filtered = False
    tested: set[str] = set()
    ever = True
    others: set[str] = set()
    while True:
        limited = _put_before_a_limit(flow, edge)
        if limited and not filtered and not _asks_of_rows(flow, *of):
            return asked
        edge, arranged = _arranged(flow, edge, wanted, limited[-1:])
        if limited and edge.node == limited[-1]:
            return asked and not arranged
        node = flow.side.nodes[edge.node]
        lineage = flow.lineage(node.id, edge.output)
        if arranged or node.kind != "transform" or lineage is None:
            return False
        if any(o.kind == "limit" for o in flow.side.operators_at(node.id)):
            return asked  # no condition is put before it
        if flow.watermarks(node.id):
            # A condition is put before it, but for one about event time. Before it Spark knows that what is
            # asked of a copy holds of event time too, and then asks no more; nor where that is asked already.
            if is_event_time(flow, edge, key) and not is_always_there(flow, node.inputs[0], key):
                return asked and not any(_are_one(flow, node.inputs[0], key, other) for other in others)
        elif flow.drops_duplicates(node.id):
            # What it compares, and what is tested behind it, is left out where nobody reads it.
            tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
            # What is asked before it isn't asked again.
            asked = asked and not is_always_there(flow, node.inputs[0], key)
            return asked and ever and (tested <= first or ALL in first)
        groups = lineage.kept
        if groups is not None and not groups.rows and key in groups.values:
            # What is asked of a result stays behind the groups; a condition may have none of its own.
            tested |= {name for name in groups.reads if groups.values.get(name) != {}}
            return (asked or key in groups.asks) and ever and (tested <= first or ALL in first)
        made = [found for column, found in lineage.columns.items() if column in wanted or ALL in wanted]
        passed = {use for found in made if found.rule == "=" for use in found.uses or ()}
        given = {int(use.partition(":")[0]) for m in lineage.columns.values() for use in m.uses or ()}
        read = {f"{p}:{c}" for p in given for c in read_before(flow, node.id, lineage, p, wanted)}
        filters = not lineage.kept and len(node.inputs) == 1 and f"0:{key}" not in (lineage.rows.uses or ())
        if len(passed) < len(made) or (read - passed and not filters):
            return False
        streams = [place for place, other in enumerate(node.inputs) if flow.side.is_streaming(other.node)]
        if len(streams) != 1:
            return False
        (place,) = streams
        if len(node.inputs) == 1 and not lineage.kept:
            tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
            filtered = filtered or bool(lineage.rows.uses)
            asks = {use.partition(":")[2] for use in lineage.asks or ()}
            asked = asked or key in asks
            others |= asks - {key}
            ever = ever and NEVER_TRUE not in (lineage.asks or ())
        wanted = read_before(flow, node.id, lineage, place, wanted)
        edge = node.inputs[place]


def is_read_whole(flow: Flow, edge: InputRecord, wanted: Set[str]) -> bool:
    """Whether a join has the rows of files as they are, all columns of them.

    Between what asks for a column there and the join nothing makes Spark forget it then. The schema of
    what is kept doesn't say so, and it reads a null that was kept as 0, or as an empty text. Of other
    sources than files Spark computes the columns, and forgets it; which it is can't be told by a node.

    Args:
        flow: The version.
        edge: Where the join takes the rows from, as `kept_of` has it.
        wanted: The columns that it keeps.
    """
    while True:
        node, facts = flow.side.nodes[edge.node], flow.side.facts.get(edge.key)
        keys = column_keys(facts.columns) if facts is not None else None
        if keys is None or not (ALL in wanted or set(keys) <= wanted):
            return False
        if node.kind == "source":
            return True
        lineage = flow.lineage(node.id, edge.output)
        if lineage is None or lineage.kept or lineage.expands or len(node.inputs) != 1:
            return False
        if list(lineage.columns) != keys or not passes_as_they_are(lineage, set(keys)):
            return False
        (edge,) = node.inputs


def _put_before_a_limit(flow: Flow, edge: InputRecord) -> list[str]:
    """The nodes behind a limit that do nothing but to choose and compute columns, the nearest to it last.

    Spark puts them before it, and no condition: its rule `PushProjectionThroughLimitAndOffset`. Of several it
    takes the nearest first, and meanwhile a condition, where there is one, gets between that and the next.
    """
    found: list[str] = []
    while True:
        if "limit" in flow.side.kinds_at(edge.node):
            return found
        lineage = _by_column(flow, edge)
        if lineage is None or lineage.expands:
            return []
        found.append(edge.node)
        (edge,) = flow.side.nodes[edge.node].inputs


def _arranged(
    flow: Flow, edge: InputRecord, wanted: Set[str], until: Sequence[str] = ()
) -> tuple[InputRecord, bool]:
    """What stands before the nodes that do nothing but to hand columns on.

    Args:
        flow: The version.
        edge: The nearest of them, or another node.
        wanted: The columns that are read of it.
        until: A node that counts for none of them.

    Returns:
        What the farthest of them reads, and whether all of them together, of which Spark makes one, call
        columns otherwise or put them into another order.
    """
    first: dict[str, str] | None = None
    while edge.node not in until and (handed := _handed_on(flow, edge, wanted)) is not None:
        first = handed if first is None else {key: handed[name] for key, name in first.items()}
        wanted = set(handed.values())
        edge = flow.side.nodes[edge.node].inputs[0]
    facts = flow.side.facts.get(edge.key)
    coming = column_keys(facts.columns) if facts is not None else None
    if first is None or coming is None:
        return edge, False
    called = any(key != name for key, name in first.items())
    return edge, called or list(first.values()) != [key for key in coming if key in wanted]


def _by_column(flow: Flow, edge: InputRecord) -> Lineage | None:
    """What a node makes of its only input, where that is nothing but columns; None for any other node."""
    lineage = flow.lineage(edge.node, edge.output)
    alone = len(flow.side.nodes[edge.node].inputs) == 1 and not flow.side.operators_at(edge.node)
    return lineage if lineage is not None and alone and not lineage.kept else None


def _handed_on(flow: Flow, edge: InputRecord, wanted: Set[str]) -> dict[str, str] | None:
    """What the columns of a node are called in its only input; None where it does more than hand them on."""
    lineage = _by_column(flow, edge)
    if lineage is None:
        return None
    given = {key: made for key, made in lineage.columns.items() if key in wanted or ALL in wanted}
    if any(made.rule != "=" for made in given.values()):
        return None
    return {key: "".join(of_input(made.uses or (), 0)) for key, made in given.items()}


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


def read_before(flow: Flow, name: str, lineage: Lineage, position: int, wanted: Set[str]) -> set[str]:
    """The columns of an input that a node reads for some of those that it gives.

    Args:
        flow: The version.
        name: The node.
        lineage: What it makes of what.
        position: The position of the input.
        wanted: The columns that it gives.
    """
    edge = flow.side.nodes[name].inputs[position]
    facts = flow.side.facts.get(edge.key)
    return read_of(lineage, position, wanted, column_keys(facts.columns if facts else None) or [ALL])


def is_event_time(flow: Flow, edge: InputRecord, key: str) -> bool:
    """Whether a column of an input carries a watermark."""
    facts = flow.side.facts[edge.key]
    keys = column_keys(facts.columns) or ()
    return any(c.watermarked and key == k for k, c in zip(keys, facts.columns or (), strict=False))


def passes_as_they_are(lineage: Lineage, keys: Set[str]) -> bool:
    """Whether some columns that come out are those of the only input as they are, under the same names.

    Args:
        lineage: What a node makes of what.
        keys: The columns.
    """
    return all(key in lineage.columns and lineage.columns[key] == same(key) for key in keys)
