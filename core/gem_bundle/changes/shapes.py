"""What Spark keeps for each operator of a query: by what keys, of which types, and in which order."""

from __future__ import annotations

import re
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.behind import asked_behind
from gem_bundle.changes.conditions import is_always_there
from gem_bundle.changes.emptied import in_empty_branches
from gem_bundle.changes.fields import fields_read, is_nested, kept_fields
from gem_bundle.changes.joins import (
    asked_just_before,
    is_event_time,
    is_read_whole,
    joined_how,
    joins_at,
    keys_from_behind,
    parts_left,
    read_of_rows,
)
from gem_bundle.changes.needed import ALL, of_input, read_in_both, table_reads, values_for
from gem_bundle.changes.order import asks_for_results, results_in_order
from gem_bundle.changes.semi_joins import joins_of, taken_from
from gem_bundle.changes.steps import in_steps
from gem_bundle.lineage import column_keys
from gem_bundle.operators import JoinOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.semi_joins import Taken
    from gem_bundle.lineage import Kept
    from gem_bundle.operators import Operator

    _Way = Sequence[tuple[str, int]]

_FIELD = re.compile(r"(?<=[<,\s])[`\w]+:\s*")

# How a type ends: it is never null, may be null, or that isn't known.
_NULLS = {True: "!", False: "", None: "~"}
# Whatever they are of, what is kept for them is null until a value comes.
_NULL_AT_FIRST = frozenset({"?max", "?min", "?sum"})
_OUTER = frozenset({"left", "right", "full"})


class Shape(NamedTuple):
    """What Spark keeps for one operator.

    Args:
        node: The id of the node it belongs to.
        kind: What kind of operator it is, as Spark compares it.
        keys: The types of its keys, None where unknown.
        values: The types of its values, None where unknown.
        results: The columns of results that somebody behind reads: Spark keeps nothing for others. None where
            unknown.
        never_null: Whether Spark takes each key for never null, None where unknown.
        kept_by: What its keys are, in order.
        holds: What its values are, in order: the functions, or the columns of rows.
        empty: A condition behind lets nothing of it through, as Spark finds by its form.
        asked: Of a join the columns without which it keeps no row, by its condition or one behind it.
        taken: Those of them that Spark takes for never null when it reads a row that was kept, whatever its
            schema says.
        fields: Of which columns of a join's rows some fields are kept, each with the ways to those; and what
            is read of columns whose type isn't known.
        constants: How those of its values are made that are constants of which it isn't known whether they
            are null.
    """

    node: str
    kind: str
    keys: tuple[str | None, ...] | None
    values: tuple[str | None, ...] | None
    results: frozenset[str] | None = None
    never_null: tuple[bool | None, ...] = ()
    kept_by: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    empty: bool = False
    asked: frozenset[str] = frozenset()
    taken: frozenset[str] = frozenset()
    constants: Mapping[str, str] = MappingProxyType({})
    fields: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def shapes(flow: Flow) -> list[Shape]:
    """What Spark keeps for a query, operator by operator."""
    flow, origins = in_steps(flow)
    orders: dict[str, Iterator[list[str]]] = {}
    paths: dict[int, Iterator[_Path]] = {}
    found = []
    empty = in_empty_branches(flow)
    for operator in operators_of(flow):
        node = operator.node
        # Each path has an order of its own, and columns that are read on it.
        order = next(orders.setdefault(node, results_in_order(flow, node)), None)
        each = range(joins_of(flow, operator) if isinstance(operator, JoinOperator) else 1)
        ways = zip(flow.needed.on_paths(node), flow.side.paths(node), strict=False)
        told = (_Path(columns, way, branch) for columns, way in ways for branch in reversed(each))
        path = next(paths.setdefault(id(operator), told), _Path(flow.needed.behind(node)))
        shape = _shape(flow, operator, order, path)
        found.append(shape._replace(node=origins.get(node, node), empty=node in empty))
    return found


def operators_of(flow: Flow) -> list[Operator]:
    """The operators that keep state, or may, in Spark's order, each as often as Spark has it."""
    return [
        operator
        for operator in flow.side.kept_on_paths
        if not _finds_no_duplicates(flow, operator) and not flow.leaves_out(operator.node)
        for _ in range(joins_of(flow, operator) if isinstance(operator, JoinOperator) else 1)
    ]


def _finds_no_duplicates(flow: Flow, operator: Operator) -> bool:
    """Whether Spark drops no duplicates, since there are none: its rule `RemoveRedundantAggregates`.

    It does where it has made one of that and of what computes columns behind it: `CollapseProject`.
    """
    lineage = flow.lineage(operator.node)
    if lineage is None or lineage.kept is None or not getattr(operator, "rows", False):
        return False
    if not lineage.kept.once:
        passed = {use for key in lineage.kept.keys if key.rule == "=" for use in key.uses or ()}
        if not _are_one_each(flow, flow.side.nodes[operator.node].inputs[0], of_input(passed, 0)):
            return False
    return not any(_computes(flow, path) for path in flow.side.paths(operator.node))


def _are_one_each(flow: Flow, edge: InputRecord, keys: set[str]) -> bool:
    """Whether no two rows have the same values in some columns, since they come of groups formed by those."""
    while True:
        before = flow.lineage(edge.node, edge.output)
        if before is None or flow.side.nodes[edge.node].kind != "transform":
            return False
        if before.kept is not None:
            return before.kept.are_told_by(keys, before.columns) and not flow.leaves_out(edge.node)
        inputs = flow.side.nodes[edge.node].inputs
        if len(inputs) != 1 or before.expands or flow.side.kinds_at(edge.node) - {"filter", "repartition"}:
            return False
        made = [before.columns[key] for key in keys & before.columns.keys()]
        keys = {use.partition(":")[2] for one in made if one.rule == "=" for use in one.uses or ()}
        (edge,) = inputs


def _computes(flow: Flow, path: list[tuple[str, int]]) -> bool:
    """Whether the first nodes on a path, until one does more, compute a column that somebody reads."""
    for name, _ in path:
        lineage = flow.lineage(name)
        if lineage is not None and lineage.kept is not None and not lineage.kept.rows:
            # What it groups by is computed before.
            return any(key.rule != "=" and key.uses != frozenset() for key in lineage.kept.keys)
        if lineage is None or lineage.expands or flow.side.kinds_at(name) - {"filter"}:
            return False
        needed = flow.needed.behind(name)
        read = [made for key, made in lineage.columns.items() if key in needed or ALL in needed]
        if any(made.rule != "=" and made.uses != frozenset() for made in read):
            return True
    return False


class _Path(NamedTuple):
    """One of the times that Spark plans an operator.

    Args:
        read: The columns behind it that are read there.
        way: How it goes on to the target; None where that isn't known.
        branch: Which one it is of those that Spark makes of one semi join.
    """

    read: set[str]
    way: _Way | None = None
    branch: int = 0


def _shape(flow: Flow, operator: Operator, order: list[str] | None, path: _Path) -> Shape:
    """What Spark keeps for an operator on a path.

    Of an aggregation it is in the order of its results, if that is known.
    """
    node = operator.node
    kind: str = operator.kind
    if isinstance(operator, JoinOperator):
        # Whether a row has had a partner is kept only where those without one come out.
        how = joined_how(flow, operator)
        kind = f"join {how}" if how in _OUTER else "join"
    elif getattr(operator, "within_watermark", False):
        kind = "deduplicate within watermark"
    elif getattr(operator, "sessions", False):
        kind = "sessions"
    lineage = flow.lineage(node)
    kept = lineage.kept if lineage is not None else None
    types = kept.key_types if kept is not None else None
    if types is None:
        types = getattr(operator, "key_types", None)
    keys = None if types is None else tuple(map(bare, types))
    if getattr(operator, "rows", False) and sum(o.node == node for o in flow.side.stateful) > 1:
        # What the node tells of what it keeps is of its groups; of rows that it keeps once there is no value.
        types = getattr(operator, "key_types", None)
        return Shape(node, kind, None if types is None else tuple(map(bare, types)), ())
    if lineage is None or kept is None:
        return Shape(node, kind, keys, None)
    by = () if kept.rows else tuple(f"{key.rule} {sorted(key.uses or ('?',))}" for key in kept.keys)
    if keys is not None and isinstance(operator, JoinOperator):
        keys += (None,) * keys_from_behind(flow, operator)
    if kept.rows and not kept.values:
        shape = _with_rows(flow, Shape(node, kind, keys, None, kept_by=by), kept, path)
        return _with_nulls(flow, shape, kept)
    buffers: dict[str, tuple[str, ...]] = {}
    needed = values_for(kept, path.read)
    without_unread = flow.parts.results(node, lineage, needed)
    if without_unread != needed and not asks_for_results(flow, node):
        needed = without_unread
    results = frozenset(needed)
    for column in needed if order is None else order:
        if column not in needed:
            continue
        functions = needed[column]
        if functions is None:
            return _with_nulls(flow, Shape(node, kind, keys, None, results, kept_by=by), kept)
        for text, types in functions.items():
            buffers.setdefault(flow.nulls.counted(node, text), types)
    if kept.order:
        buffers = {text: buffers[text] for text in kept.order if text in buffers} | buffers
    values = tuple(str(bare(kind)) for types in buffers.values() for kind in types)
    holds = tuple(text for text, types in buffers.items() for _ in types)
    return _with_nulls(flow, Shape(node, kind, keys, values, results, kept_by=by, holds=holds), kept)


def _with_nulls(flow: Flow, shape: Shape, kept: Kept) -> Shape:
    coming = flow.nulls.before(shape.node)
    return shape._replace(never_null=tuple(made.never_null(coming) for made in kept.parts or kept.keys))


def _with_rows(flow: Flow, shape: Shape, kept: Kept, path: _Path) -> Shape:
    """With the columns of both inputs that are read for some behind it, and what is asked of them."""
    node = shape.node
    found: dict[str, str | None] = {}
    asked: set[str] = set()
    taken: set[str] = set()
    constants: dict[str, str] = {}
    fields: dict[str, tuple[str, ...]] = {}
    read_of: dict[str, list[tuple[str, ...]]] | None = None
    coming = flow.side.nodes[node].inputs
    far = _asked_far(flow, node)
    # What lacks the key finds no partner, whatever it is read as.
    compared = {use for made in kept.parts or kept.keys for use in made.uses or ()}
    for side, position in enumerate(kept.sides or range(len(coming))):
        edge, needed, called, asked_there = _rows_kept(flow, node, position, side, path)
        facts = flow.side.facts.get(edge.key)
        keys = column_keys(facts.columns) if facts is not None else None
        if facts is None or facts.columns is None or keys is None:
            return shape
        asks = _called(called, _asked_of(flow, node, position, side)) | asked_there
        never_null = flow.nulls.never(edge.node, edge.output)
        for key, column in zip(keys, facts.columns, strict=True):
            name = f"{side}:{key}"
            if key not in needed:
                continue
            ways: list[tuple[str, ...]] = []
            if edge == coming[position] and (column.type is None or is_nested(column.type)):
                read_of = _fields_read(flow, node, path.way) if read_of is None else read_of
                ways = read_of.get(name, [])
            if column.type is None:
                found[name] = None
                fields[name] = tuple(dict.fromkeys(".".join(path) for path in ways))
                continue
            some = kept_fields(column.type, ways) if ways else None
            if some is not None:
                found |= {f"{name}.{path}": f"{bare(kind)}~" for path, kind in some.items()}
                fields[name] = tuple(some)
                continue
            never = never_null.get(key)
            of = node, position
            if not never and asked_just_before(flow, edge, needed, key, of, asked=key in asks):
                never = True
            text = flow.constant(edge.node, edge.output, key) if never is None else None
            if text is not None:
                constants[name] = text
            found[name] = f"{bare(column.type)}{_NULLS[never]}"
        found[f"|{side}"] = "|"
        asks = {
            k
            for k in asks - _called(called, of_input(compared, position))
            if not is_always_there(flow, edge, k)
        }
        asked |= {f"{side}:{key}" for key in asks}
        if is_read_whole(flow, edge, needed):
            # Without its time a row is older than any range takes.
            taken |= {f"{side}:{key}" for key in asks if not is_event_time(flow, edge, key)}
        taken |= {f"{side}:{key}" for key in asks & _called(called, of_input(far, position))}
    values, holds = tuple(found.values()), tuple(found)
    return shape._replace(
        values=values,
        holds=holds,
        asked=frozenset(asked),
        taken=frozenset(taken),
        constants=constants,
        fields=fields,
    )


def _rows_kept(flow: Flow, node: str, position: int, side: int, path: _Path) -> Taken:
    """Where a join takes the rows of a side from, and those of their columns that it keeps on a path."""
    needed, read = read_of_rows(flow, node, position), path.read
    if read != flow.needed.behind(node):
        here = flow.needed.read_for(node, position, read)  # on this path; others read other columns
        needed = read_in_both(needed, here)
    lineage = flow.lineage(node)
    kept = lineage.kept if lineage is not None else None
    if lineage is not None and kept is not None and kept.tables and kept.tables_asked:
        # Of an input that is joined with itself each of the two tables has columns of its own.
        of_table = table_reads(lineage, position, side, read, kept.tables_asked[side])
        needed = read_in_both(needed, of_table)
    return taken_from(flow, node, position, needed, path.branch)


def _called(names: Mapping[str, str], keys: Iterable[str]) -> set[str]:
    """What columns are called where a join takes its rows from."""
    return {names.get(key, key) for key in keys}


def _fields_read(flow: Flow, node: str, way: _Way | None) -> dict[str, list[tuple[str, ...]]]:
    """What is read of nested columns on a way behind a join; nothing is known where that isn't."""
    joins = joins_at(flow, node)
    if way is None or len(joins) != 1:
        return {}
    return fields_read(flow, node, way, parts_left(flow, joins[0]))


def _asked_of(flow: Flow, node: str, position: int, side: int) -> set[str]:
    """The columns of an input that the condition of a join, or one behind it, leaves out nulls of."""
    lineage = flow.lineage(node)
    how = next(map(partial(joined_how, flow), joins_at(flow, node)), "full")
    asks: set[str] = set()
    if (side % 2 == 0 and how not in {"right", "full"}) or (side % 2 and how in {"inner", "right"}):
        asks |= asked_behind(flow, node)
    if lineage is not None and how not in {"full", ("left", "right")[side % 2]}:
        asks |= (lineage.rows.uses if lineage.asks is None else lineage.asks) or set()
    return of_input(asks, position)


def _asked_far(flow: Flow, node: str) -> set[str]:
    """The columns of a join's inputs of which nothing but the pairs of another join behind leaves out nulls.

    The join itself then lets what lacks them through, and where it makes rows of both sides, which it takes
    for ones without nulls, the rows that come behind lack them too.
    """
    behind, lineage, read = flow.states_behind(node), flow.lineage(node), flow.needed.behind(node)
    joined = any(isinstance(o, JoinOperator) and o.node in behind for o in flow.side.stateful)
    if lineage is None or not joined:
        return set()
    columns = lineage.columns.keys() if ALL in read else read & lineage.columns.keys()
    if len(frozenset[int]().union(*map(lineage.sides_of, columns))) < 2:
        return set()
    return asked_behind(flow, node) - asked_behind(flow, node, far=False)


def bare(kind: str | None) -> str | None:
    """A type without the names of fields, which Spark doesn't compare."""
    return None if kind is None else _FIELD.sub("", kind)


def fit(old: Sequence[str | None], new: Sequence[str | None]) -> bool:
    """Whether Spark takes values of the old types as ones of the new: what was never null must stay so."""
    if len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one is None or other is None:
            continue
        if one.startswith("?") != other.startswith("?"):
            if one.endswith("!") and other in _NULL_AT_FIRST:
                return False
            continue  # of one of them the type isn't known
        if one.rstrip("!~") != other.rstrip("!~"):
            return False
        if one.endswith("!") and not other.endswith(("!", "~")):
            return False
    return True
