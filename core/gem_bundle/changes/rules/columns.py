"""The columns that come to the target: those that its place refuses, and those that are called otherwise."""

from __future__ import annotations

from dataclasses import replace
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
    taken = _taken(both)
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


def tell_of_names(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, those told of that call columns otherwise: `n` is `N` to Spark, not to who reads files.

    Args:
        both: What is compared.
        changes: What the rules say of nodes.
    """
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    had = {name.lower(): name for name, _ in old.columns or ()}
    now = [(had[name.lower()], name) for name, _ in new.columns or () if name != had.get(name.lower(), name)]
    if not now or _taken(both) != "any" or (both.is_rewritten and both.new.stateful):
        return changes
    named = ", ".join(f"`{was}` is called `{name}`" for was, name in now)

    def told(change: Change) -> Change:
        if change.verdict != "continues" or change.node not in both.new.nodes:
            return change
        what = change.difference
        return replace(change, verdict="from_now_on", message=f"{what}; from now on {named}")

    return [told(change) for change in changes]


def _taken(both: Comparison) -> str:
    """Which columns the target's place takes, as `Target.columns_taken` has it."""
    gem = both.new.gems.get(both.new.target)
    return gem.columns_taken(both.plan.definition.spark) if isinstance(gem, Target) else "any"
