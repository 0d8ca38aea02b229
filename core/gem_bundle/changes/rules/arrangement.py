"""Columns that come to a node in another order, which matters to what takes all of them as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.comparison import Told
from gem_bundle.changes.needed import ALL
from gem_bundle.changes.reach import Taint, other_state
from gem_bundle.changes.rules.transforms import tell
from gem_bundle.lineage import column_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage, Made


def compare_arrangements(both: Comparison) -> Iterator[Told]:
    """The nodes for which the order of columns means something, where that is another one.

    That no value is different doesn't help them: the JSON of a whole row is another text, and a union by
    position puts other columns under each other.

    Args:
        both: What is compared.
    """
    for old, new in both.pairs:
        if new.kind != "transform" or old.gem != new.gem:
            continue
        inputs = _arranged(both, old, new)
        if not inputs:
            continue
        before, after = both.before.lineage(old.id), both.after.lineage(new.id)
        # What other options make of what is told by itself.
        taint = _different(before, after, told=old.options != new.options)
        own = both.after.keeps(new.id) and (_keeps_all(after) or other_state(before, after))
        reach = both.reach(old, new, taint, own_state=own)
        if not reach.states and not reach.target:
            continue
        what = f"transform `{new.id}` has the columns of {', '.join(inputs)} in another order"
        key = "inputs" if len(new.inputs) > 1 else "input"
        yield Told(tell(both, reach, "GB425", what, new.id, key=key), reach)


def _arranged(both: Comparison, old: NodeRecord, new: NodeRecord) -> list[str]:
    """The inputs some of whose columns stand elsewhere among them than they did."""
    found = []
    for one, other in zip(old.inputs, new.inputs, strict=False):
        before, after = _columns(both.old, one.key), _columns(both.new, other.key)
        if any(before.index(key) != place for place, key in enumerate(after) if key in before):
            found.append(f"`{other.key}`")
    return found


def _columns(side: Side, key: str) -> tuple[str, ...]:
    facts = side.facts.get(key)
    return tuple(column_keys(facts.columns) or ()) if facts is not None else ()


def _different(before: Lineage | None, after: Lineage | None, *, told: bool) -> Taint:
    """What a node makes otherwise of the columns that it had, for their order."""
    if before is None or after is None:
        return Taint(rows=True, columns={ALL})

    def is_other(before: Made, after: Made) -> bool:
        # Of what may be made of anything nobody knows in which order it takes the columns.
        return after.uses is None if before == after else not told

    columns = after.columns.items()
    return Taint(
        rows=is_other(before.rows, after.rows),
        columns={key for key, made in columns if is_other(before.columns.get(key, made), made)},
    )


def _keeps_all(lineage: Lineage | None) -> bool:
    """Whether what a node keeps may be made of all columns, as they stand."""
    if lineage is None or lineage.kept is None:
        return True
    columns: Mapping[str, Made] = lineage.columns
    return any(made.uses is None for made in (*lineage.kept.keys, lineage.kept.taken)) or any(
        columns[key].uses is None for key in lineage.kept.values if key in columns
    )
