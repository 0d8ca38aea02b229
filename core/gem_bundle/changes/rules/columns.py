"""Columns that the target's place doesn't take, because of those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.gem import Target
from gem_bundle.schema import differ_for_certain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change


def compare_columns(both: Comparison) -> Iterator[Change]:
    """Columns that flow into the target now and didn't before, or with another type."""
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    gem = both.new.gems.get(new.id)
    taken = gem.columns_taken(both.plan.definition.spark) if isinstance(gem, Target) else "any"
    if taken == "any" or old.columns is None or new.columns is None:
        return
    if (old.gem, old.places) != (new.gem, new.places):
        return  # another place, which takes its first columns
    had = {name.lower(): kind for name, kind in old.columns}
    for name, kind in new.columns:
        key = name.lower()
        if key not in had and taken == "same":
            message = (
                f"target `{new.id}`: the column `{name}` is new, and its place has been filled without it"
            )
            hint = "Let the target take new columns (Delta: `merge_schema: true`), or write elsewhere."
        elif key in had and differ_for_certain(had[key], kind):
            message = (
                f"target `{new.id}`: the column `{name}` was `{had[key]}` and is `{kind}`, which its place "
                "doesn't take"
            )
            hint = "Give the column another name, or write elsewhere."
        else:
            continue
        yield both.change("refused", "GB436", message, new.id, hint=hint, before=had.get(key), after=kind)
