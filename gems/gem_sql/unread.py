"""A query without what queries within it compute and nobody reads: Spark's `ColumnPruning` leaves it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def without_unread(tree: Any) -> Any:
    """The same query where inner ones lack the items that are named nowhere else.

    An item stays where it can't be told what is read, as with a star, or it is more than a value of its row.

    Args:
        tree: The query, which isn't changed.
    """
    if next(_inner(tree), None) is None or not _is_by_name(tree):
        return tree
    found = tree.copy()
    changed = False
    # What only an item that goes has read isn't read by anybody then.
    while any(_leave_out(found, select) for select in list(_inner(found))):
        changed = True
    return found if changed else tree


def _is_by_name(tree: Any) -> bool:
    """Whether all that is read of a query within a query is read by its name."""
    from gem_bundle.expressions.query import exp

    for star in tree.find_all(exp.Star):
        call = star.parent
        if not (isinstance(call, exp.Anonymous) and call.name.lower() == "count"):
            return False
    return not any(join.args.get("method") for join in tree.find_all(exp.Join))


def _inner(tree: Any) -> Iterator[Any]:
    """The queries within a query whose columns it reads by their names."""
    from gem_bundle.expressions.query import exp

    for select in tree.find_all(exp.Select):
        parent: Any = select.parent
        if isinstance(parent, exp.CTE):
            clause: Any = parent.parent
            by_name = not parent.args["alias"].args.get("columns") and not clause.args.get("recursive")
        else:
            by_name = isinstance(parent, exp.Subquery) and isinstance(parent.parent, exp.From | exp.Join)
            alias = parent.args.get("alias") if by_name else None
            by_name = by_name and not (alias is not None and alias.args.get("columns"))
        if by_name and not select.args.get("distinct"):
            yield select


def _leave_out(tree: Any, select: Any) -> bool:
    """Leave out what nobody reads of a query within another one; whether there was anything."""
    kept = [item for item in select.expressions if not _is_unread(tree, select, item)]
    if not kept or len(kept) == len(select.expressions):
        return False
    select.set("expressions", kept)
    return True


def _is_unread(tree: Any, select: Any, item: Any) -> bool:
    from gem_bundle.expressions import AGGREGATES, GENERATORS
    from gem_bundle.expressions.query import exp

    name = item.alias_or_name.lower()
    if not name or not isinstance(item, exp.Alias | exp.Column) or not _ignores_places(select):
        return False
    calls = {call.name.lower() for call in item.find_all(exp.Anonymous)}
    if calls & GENERATORS or next(item.find_all(exp.Query, exp.Window), None) is not None:
        return False
    if calls & AGGREGATES and not select.args.get("group"):
        return False  # without any it would be another query
    own = {id(part) for part in item.walk()}
    given = (exp.Alias, exp.TableAlias)  # what a name is given to isn't read by it
    named = (part for part in tree.find_all(exp.Identifier) if id(part) not in own)
    return all(part.name.lower() != name or isinstance(part.parent, given) for part in named)


def _ignores_places(select: Any) -> bool:
    """Whether nothing in a query goes by where its items stand, or by all that there are."""
    from gem_bundle.expressions.query import exp

    group, order = (select.args.get(clause) for clause in ("group", "order"))
    if group is not None and True in group.args.values():
        return False
    by = [part for clause in (group, order) if clause is not None for part in clause.expressions]
    return not any(part.find(exp.Literal) for part in by)
