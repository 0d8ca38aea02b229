"""State stores that Spark left: whether it takes what they have for what the query keeps, keys and values."""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.rules.state import listed
from gem_bundle.changes.shapes import bare, fit, operators_of, shapes
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as Ids

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.shapes import Shape
    from gem_bundle.changes.state_files import StateStore

SPARK_NAMES = {
    "aggregate": frozenset({"stateStoreSave", "sessionWindowStateStoreSaveExec"}),
    "deduplicate": frozenset({"dedupe", "dedupeWithinWatermark"}),
    "join": frozenset({"symmetricHashJoin"}),
}
"""What Spark calls the operators of a kind."""

_OF_SHAPES = {
    "aggregate": "stateStoreSave",
    "deduplicate": "dedupe",
    "deduplicate within watermark": "dedupeWithinWatermark",
    "sessions": "sessionWindowStateStoreSaveExec",
}
_VERSION_OF_AGGREGATES = "spark.sql.streaming.aggregation.stateFormatVersion"
_MOMENTS = ("n", "avg", "m2", "m3", "m4")
_PAIRS = ("n", "xAvg", "yAvg", "ck", "xMk", "yMk")
_EXTREMUM = ("valueWithExtremumOrdering", "extremumOrdering")
_BUFFERS = {
    **dict.fromkeys(("count", "count_if"), ("count",)),
    **dict.fromkeys(("sum", "try_sum"), ("sum", "isEmpty")),
    **dict.fromkeys(("avg", "try_avg"), ("sum", "count")),
    **{name: (name,) for name in ("max", "min", "bit_and", "bit_or", "bit_xor")},
    **{name: (name, "valueSet") for name in ("first", "last")},
    **dict.fromkeys(("max_by", "min_by"), _EXTREMUM),
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop", "skewness", "kurtosis"), _MOMENTS),
    **dict.fromkeys(("covar_samp", "covar_pop", "corr"), _PAIRS),
}
"""What Spark calls what it keeps for an aggregate function, of 4.0 to 4.2."""

_BYTES = "buf"
_KNOWN = frozenset({_BYTES, *(name for names in _BUFFERS.values() for name in names)})

_FUNCTION = re.compile(r"\('(\w+)', |(count)\(1\)")
_OF_COLUMNS = re.compile(r"\('\w+', \((?:\('\d+:\w+',\),? ?)+\)\)")
# A function stands for what it keeps where that isn't known.
_UNKNOWN = re.compile(r"\?|\w+ with |(?!decimal)\w+\(")


def kinds_of(names: Iterable[str]) -> list[str]:
    """What Spark calls operators in the words of pipelines."""
    return sorted(next((k for k, found in SPARK_NAMES.items() if name in found), name) for name in names)


def compare_stores(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    """The operators whose keys or values aren't those in the checkpoint.

    Args:
        both: The new version, on both sides.
        checkpoint: What Spark left.
    """
    for shape, name, stores in _paired(both, checkpoint):
        why = _other_kind(shape, name) or _other_keys(both, shape, stores)
        why = why or _other_types(shape, _values_left(checkpoint, stores))
        if why:
            message = f"the state of `{shape.node}` has another shape, and Spark refuses to go on: {why}"
            yield both.change("refused", "GB422", message, shape.node, hint=both.begin_anew).of_state()
        elif why := _other_names(shape, _values_left(checkpoint, stores)):
            what = f"the state of `{shape.node}` was made by other aggregates"
            hint = both.or_begin_anew("Put back those that made it")
            yield both.of_state("mixed", "GB423", f"{what}: {why}", shape.node, difference=what, hint=hint)


def untold(both: Comparison, checkpoint: SparkCheckpoint) -> list[str]:
    """The ids of the nodes of which it can't be told whether Spark takes the values in the checkpoint.

    Args:
        both: The new version, on both sides.
        checkpoint: What Spark left.
    """
    return [
        shape.node
        for shape, _, stores in _paired(both, checkpoint)
        if not shape.kind.startswith("deduplicate")
        and (_values_left(checkpoint, stores) is None or _functions(shape) is None)
    ]


def _paired(
    both: Comparison, checkpoint: SparkCheckpoint
) -> Iterator[tuple[Shape, str, tuple[StateStore, ...]]]:
    """What is kept for each operator, with what Spark calls it and its stores, as far as that is plain.

    Which operator is which is plain only where there is one of its kind.
    """
    kinds = [operator.kind for operator in operators_of(both.after)]
    for shape, kind in zip(shapes(both.after), kinds, strict=True):
        names = SPARK_NAMES.get(kind, frozenset())
        left = [(name, stores) for name, stores in checkpoint.stores if name in names]
        name, stores = left[0] if len(left) == 1 and kinds.count(kind) == 1 else ("", ())
        yield shape, name, stores


def _other_kind(shape: Shape, name: str) -> str:
    wanted = _OF_SHAPES.get(shape.kind, name)
    if not name or name == wanted:
        return ""
    return f"to Spark it is one of `{name}` in the checkpoint, not of `{wanted}`"


def _other_keys(both: Comparison, shape: Shape, left: Iterable[StateStore]) -> str:
    """Why Spark doesn't take the keys of a checkpoint for those of an operator; empty when it does."""
    # Of a join each side has stores, whose keys begin with what is compared.
    store = next((store for store in left if store.keys is not None), None)
    if store is None or store.keys is None or shape.keys is None or shape.kind.startswith("join"):
        return ""
    keys = shape.keys
    if shape.kind == "sessions":
        # Sessions are looked up by where they begin.
        keys = (*keys[1:], "timestamp")
    old = tuple(bare(kind) for _, kind in store.keys)
    if _are(old, keys, _optional(both, shape)):
        return ""
    return f"its keys in the checkpoint are {listed(old)}, not {listed(keys)}"


def _optional(both: Comparison, shape: Shape) -> frozenset[int]:
    """Where the keys stand that Spark may leave out: what is always the same, and what is said again."""
    lineage = both.after.lineage(shape.node)
    kept = lineage.kept if lineage is not None else None
    if shape.kind != "aggregate" or kept is None or shape.keys is None or len(kept.keys) != len(shape.keys):
        return frozenset()
    found = set()
    seen: set[object] = set()
    for place, (key, kind) in enumerate(zip(kept.keys, shape.keys, strict=True)):
        made = (kind, key.uses)
        if not key.uses or made in seen:
            found.add(place)
        seen.add(made)
    return frozenset(found)


def _are(old: Sequence[str | None], new: Sequence[str | None], optional: Ids[int]) -> bool:
    """Whether keys are those of the checkpoint, some of which Spark may have left out."""
    reached = {0}
    for place, kind in enumerate(new):
        taken = {at + 1 for at in reached if at < len(old) and fit(old[at : at + 1], [kind])}
        reached = taken | reached if place in optional else taken
    return len(old) in reached


Values = tuple[tuple[str, str], ...]
"""Names, empty where unknown, and types, which end in ``!`` where they are never null."""


class _Function(NamedTuple):
    """What is kept for an aggregate function.

    Args:
        values: Its values.
        optional: It may be the same as one before it, for which Spark keeps nothing again.
    """

    values: Values
    optional: bool


def _values_left(checkpoint: SparkCheckpoint, stores: Sequence[StateStore]) -> Values | None:
    """The values in the store of an operator; None where they aren't known."""
    if len(stores) != 1 or stores[0].values is None:
        return None
    if checkpoint.settings.get(_VERSION_OF_AGGREGATES, "2") != "2":
        return None  # with version 1 there are keys among them
    nullable = stores[0].nullable or (True,) * len(stores[0].values)
    return tuple(
        (name, f"{bare(kind)}{'' if may_be_null else '!'}")
        for (name, kind), may_be_null in zip(stores[0].values, nullable, strict=True)
    )


def _functions(shape: Shape) -> list[_Function] | None:
    """What Spark keeps for an aggregation; None where that can't be told, as for other kinds."""
    if shape.kind != "aggregate" or shape.values is None:
        return None
    found: dict[str, _Function] = {}
    for text, kept in groupby(zip(shape.holds, shape.values, strict=True), itemgetter(0)):
        kinds = [str(kind) for _, kind in kept]
        if any(map(_UNKNOWN.match, kinds)):
            return None
        called = _FUNCTION.match(text)
        name = (called[1] or called[2]) if called is not None else ""
        # What has bytes of its own is called alike, whatever they are.
        names = _BUFFERS.get(name, (_BYTES,) if kinds == ["binary"] else ())[: len(kinds)]
        values = tuple(zip_longest(names, kinds, fillvalue=""))
        again = any(values == other.values for other in found.values())
        # Spark counts all rows where what is counted is never null, and works out what is in an argument.
        sure = name != "count" and _OF_COLUMNS.fullmatch(text)
        found.setdefault(text, _Function(values, again and not sure))
    return list(found.values())


def _other_types(shape: Shape, left: Values | None) -> str:
    """Why Spark doesn't take the values of a checkpoint for those of an operator; empty when it does."""
    kept = _functions(shape)
    if left is None or kept is None or _taken_for(left, kept) is not None:
        return ""
    were, are = listed(kind for _, kind in left), listed(kind for one in kept for _, kind in one.values)
    if were == are:
        return f"its values {are} may be null now, and those in the checkpoint never are"
    return f"its values in the checkpoint are {were}, not {are}"


def _other_names(shape: Shape, left: Values | None) -> str:
    """Why Spark takes the values of a checkpoint for others, by their names; empty where it doesn't."""
    kept = _functions(shape)
    taken = _taken_for(left, kept) if left is not None and kept is not None else None
    # Others may be another Spark's.
    others = [(old, new) for old, new in taken or () if new and old in _KNOWN and old != new]
    if not others:
        return ""
    were, are = (listed_names(dict.fromkeys(names)) for names in zip(*others, strict=True))
    return f"the checkpoint has {were} where the query keeps {are}, and Spark takes one for the other"


def _taken_for(left: Values, kept: Sequence[_Function]) -> list[tuple[str, str]] | None:
    """The names of values in a checkpoint with those that Spark takes them for; None where it refuses them.

    Where several fit, those are told that are called most alike.
    """
    reached: dict[int, list[tuple[str, str]]] = {0: []}
    for one in kept:
        after = dict(reached) if one.optional else {}
        for at, pairs in reached.items():
            old = left[at : at + len(one.values)]
            if fit([kind for _, kind in old], [kind for _, kind in one.values]):
                found = [*pairs, *((was, name) for (was, _), (name, _) in zip(old, one.values, strict=True))]
                end = at + len(old)
                after[end] = min(after.get(end, found), found, key=_others)
        reached = after
    return reached.get(len(left))


def _others(pairs: Sequence[tuple[str, str]]) -> int:
    return sum(old != new for old, new in pairs)
