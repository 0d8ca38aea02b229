"""The columns that come to the target: what its place refuses or mistakes, and what is called otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.model import ALL_RIGHT
from gem_bundle.diagnostics import listed_names
from gem_bundle.gem import Target
from gem_bundle.schema import are_read_apart, differ_for_certain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.record import NodeRecord


def compare_columns(both: Comparison) -> Iterator[Change]:
    """Columns that flow into the target now and didn't before, or with another type."""
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    taken = _taken(both)
    if old.columns is None or new.columns is None:
        return
    if (old.gem, old.places) != (new.gem, new.places):
        return  # another place, which takes its first columns
    yield from _misplaced(both)
    yield from _mistyped(both)
    if taken == "any":
        return
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


def _misplaced(both: Comparison) -> Iterator[Change]:
    """Columns that stand elsewhere, where that is all that tells them apart."""
    before, after = (
        _by_place(side.gems.get(side.target), side.nodes[side.target]) for side in (both.old, both.new)
    )
    moved = [name for place, name in enumerate(after) if name in before and before.index(name) != place]
    if not moved:
        return
    target = both.new.target
    message = (
        f"target `{target}`: the columns were {listed_names(before)} and are {listed_names(after)}, which "
        "the place tells apart by their order alone: what was written and what is from now on are read for "
        "each other"
    )
    hint = f"Keep their order, with new ones behind them (a `select` before `{target}`), or write elsewhere."
    yield both.change("mixed", "GB437", message, target, key="input", hint=hint, before=before, after=after)


def _mistyped(both: Comparison) -> Iterator[Change]:
    """Columns of another type, in a place that has files of both types then."""
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    gem = both.new.gems.get(new.id)
    if not isinstance(gem, Target):
        return
    had = {name.lower(): kind for name, kind in old.columns or ()}
    now = {name.lower(): kind for name, kind in new.columns or ()}
    for name in gem.columns_by_type(list(now)):
        before, after = had.get(name), now[name]
        if are_read_apart(before, after):
            message = (
                f"target `{new.id}`: the column `{name}` was `{before}` and is `{after}`: the place then has "
                "files of both types, and who reads them by the type of one fails at the others, or mistakes "
                "their values"
            )
            hint = "Give the column another name, or its type back, or write elsewhere."
            yield both.change(
                "mixed", "GB437", message, new.id, key="input", hint=hint, before=before, after=after
            )


def _by_place(gem: object, node: NodeRecord) -> list[str]:
    names = [name.lower() for name, _ in node.columns or ()]
    return list(gem.columns_by_place(names)) if isinstance(gem, Target) else []


def tell_of_names(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, those told of that give rows other columns, or other names: `n` is `N` to Spark alone.

    Which columns there are may go by more than what a node computes: a filter has some of those that were
    left out before it, and others are chosen by their names or types.

    Args:
        both: What is compared.
        changes: What the rules say of nodes.
    """
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    if old.columns is None or new.columns is None or (both.is_rewritten and both.new.stateful):
        return changes
    had, has = ({name.lower(): name for name, _ in columns} for columns in (old.columns, new.columns))
    named = [f"`{had[key]}` is called `{has[key]}`" for key in has if key in had and has[key] != had[key]]
    if not named or _taken(both) != "any":
        if any(change.verdict not in ALL_RIGHT for change in changes):
            return changes  # it is said of rows already that they are different
        named = [f"rows have `{has[key]}`" for key in has if key not in had]
        named += [f"rows have no `{had[key]}`" for key in had if key not in has]
    if not named:
        return changes
    known = {*both.new.nodes, *(node.id for node in both.removed if node.kind == "transform")}

    def told(change: Change) -> Change:
        if change.verdict != "continues" or change.node not in known:
            return change
        return replace(
            change, verdict="from_now_on", message=f"{change.difference}; from now on {', '.join(named)}"
        )

    return [told(change) for change in changes]


def _taken(both: Comparison) -> str:
    """Which columns the target's place takes, as `Target.columns_taken` has it."""
    gem = both.new.gems.get(both.new.target)
    return gem.columns_taken(both.plan.definition.spark) if isinstance(gem, Target) else "any"
