"""Which columns an expression is made of, and its rule in a form that spaces and brackets don't change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import folded
from gem_bundle.expressions.names import reference
from gem_bundle.expressions.scope import Scope, once_for_columns
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN, Made, column_keys

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.facts import Column

_WINDOWS = frozenset({"window", "session_window"})
_WINDOW = re.compile(r"\('window'")
# They count, or list, what there is, of nothing too.


def made_over(
    expression: str, inputs: list[tuple[int, Sequence[Column] | None]], earlier: Mapping[str, Made]
) -> Made:
    """How an expression over several inputs is made.

    Args:
        expression: The expression.
        inputs: The columns of each input, behind its position.
        earlier: What names mean that stand for expressions before it.
    """

    def nulls_of_name(parts: Sequence[str]) -> frozenset[str]:
        """What makes a name null."""
        if _fields(parts, inputs):
            return frozenset({MAYBE_NULL})
        column = _resolved(parts, inputs)
        if column is not None:
            return frozenset({column})
        before = earlier.get(parts[0].lower())
        if before is None:
            return frozenset({UNCERTAIN})
        if len(parts) > 1:
            # A field of what is made is what it is made of, but of a window's ends Spark doesn't see that.
            is_seen = before.rule != "=" and not _WINDOW.match(before.rule)
            return frozenset({UNCERTAIN if is_seen else MAYBE_NULL})
        found = before.uses if before.rule == "=" else before.nulls
        return frozenset({UNCERTAIN}) if found is None else found

    parts = reference(expression)
    if parts is not None:
        names: list[list[str]] | None = [list(parts)]
        fields = _fields(parts, inputs)
        rule = f".{'.'.join(fields)}" if fields else "="
        nulls = nulls_of_name(parts)
    else:
        tree = folded(expression)
        if tree is None:
            return Made(" ".join(expression.split()), None)
        from gem_bundle.expressions.nulls import nulls_in
        from gem_bundle.expressions.trees import shape

        names = names_in(tree)
        rule = repr(shape(tree, columns_of(names or (), inputs)))
        nulls = nulls_in(tree, nulls_of_name)
    if names is None:
        return Made(rule, None, nulls)
    order: list[str] = []
    for name in names:
        found = _resolved(name, inputs)
        before = earlier.get(name[0].lower()) if found is None else None
        if found is not None:
            order.append(found)
        elif before is not None and before.uses is not None:
            order += before.in_order
            rule = f"field {'.'.join(name[1:]).lower()} of" if rule == "=" and len(name) > 1 else rule
            rule += f" {before.rule}"
        elif before is None and _is_value(name, inputs):
            rule, nulls = (f"value {name[0].lower()}", frozenset()) if rule == "=" else (rule, nulls)
        else:
            # Two names of which nobody knows what they are aren't one and the same.
            return Made(f"= {expression.strip().lower()}" if rule == "=" else rule, None, nulls)
    return Made(rule, frozenset(order), nulls, tuple(order))


def _is_value(name: Sequence[str], inputs: Iterable[tuple[int, Sequence[Column] | None]]) -> bool:
    """Whether a name that no column has is a value to Spark, as `user` is."""
    return all(Scope(columns).resolve(list(name)).outcome == "value" for _, columns in inputs)


class _Names:
    """What names mean over columns: each is asked for by several of what tells how an expression is made."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._scope = Scope(columns)
        self._keys = column_keys(columns)
        self._places: dict[int, int] = {}
        for place, column in enumerate(columns):
            # A name means a column of theirs as it is, and of equal ones the first.
            self._places.setdefault(id(column), place)
        self._meant: dict[tuple[str, ...], tuple[bool, str | None, tuple[str, ...]]] = {}

    def meant(self, parts: Sequence[str]) -> tuple[bool, str | None, tuple[str, ...]]:
        """Whether a name is a column's, which one, if that can be told, and the fields it goes into."""
        name = tuple(parts)
        if name not in self._meant:
            found = self._scope.resolve(name)
            column = found.column
            key = None if column is None or self._keys is None else self._keys[self._places[id(column)]]
            fields = tuple(field.lower() for field in found.fields) if column is not None else ()
            self._meant[name] = (column is not None, key, fields)
        return self._meant[name]


_names_of = once_for_columns(_Names)


def names_in(tree: exp.Expr) -> list[list[str]] | None:
    """The names of all columns in an expression, in order; None where some may be of something else."""
    from gem_bundle.expressions.deciding import are_same
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import UNIT_FIRST, means_all_columns, parts_of

    found: list[list[str]] = []
    waiting: list[exp.Expr] = [tree]
    while waiting:
        node = waiting.pop()  # the last one, so that what stands first is put there last
        parts = parts_of(node)
        if parts is not None:
            found.append(parts)
        elif isinstance(node, exp.Lambda):
            inner = names_in(node.this)
            if inner is None:
                return None
            given = {parameter.name.lower() for parameter in node.expressions}
            found += [name for name in inner if name[0].lower() not in given]
        elif isinstance(node, exp.Query | exp.Exists | exp.Window):
            return None
        elif isinstance(node, exp.Star):
            if means_all_columns(node):
                return None  # as in the JSON of a whole row
        elif isinstance(node, exp.NullSafeEQ) and are_same(node.this, node.expression):
            continue  # which Spark knows to be true
        elif isinstance(node, exp.Cast | exp.Alias):
            waiting.append(node.this)
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            waiting.append(node.this)  # of what a field is, and not of a column of its name
        elif isinstance(node, exp.Interval):
            waiting += [] if isinstance(node.this, exp.Literal) else [node.this]
        elif isinstance(node, exp.Anonymous) and node.name.lower() in UNIT_FIRST:
            waiting.extend(reversed(node.expressions[1 if len(node.expressions) == 3 else 0 :]))
        else:
            waiting.extend(node.iter_expressions(reverse=True))
    return found


def _fields(parts: Sequence[str], inputs: Iterable[tuple[int, Sequence[Column] | None]]) -> tuple[str, ...]:
    """The fields of a column that a name with dots goes into."""
    for _, columns in inputs:
        is_there, _, fields = (False, None, ()) if columns is None else _names_of(columns).meant(parts)
        if is_there:
            return fields
    return ()


def columns_of(
    names: Iterable[Sequence[str]], inputs: list[tuple[int, Sequence[Column] | None]]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Which column each name is, with the fields that it goes into."""
    found = ((tuple(name), _resolved(name, inputs)) for name in names)
    return {name: (column, *_fields(name, inputs)) for name, column in found if column is not None}


def _resolved(parts: Sequence[str], inputs: Iterable[tuple[int, Sequence[Column] | None]]) -> str | None:
    """The column that a name is, behind the position of its input."""
    for position, columns in inputs:
        key = None if columns is None else _names_of(columns).meant(parts)[1]
        if key is not None:
            return f"{position}:{key}"
    return None


def tested_by(condition: str, bodies: Mapping[str, str], never: Container[str]) -> frozenset[str] | None:
    """The columns that a condition needs; None where that isn't known.

    Spark asks of no column whether it is null where it never is.

    Args:
        condition: A boolean expression over columns.
        bodies: The expressions that columns are made by, by name in lower case, as far as they are known.
        never: Columns that are known to be never null, by name in lower case.
    """
    tree = folded(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.folding import without_decided
    from gem_bundle.expressions.nulls import nulls_in

    def never_null(name: Sequence[str]) -> bool:
        """Whether a column is made by something that is never null."""
        if name[-1].lower() in never:
            return True
        body = folded(bodies.get(name[-1].lower(), ""))
        return body is not None and not nulls_in(body, lambda _: frozenset({MAYBE_NULL}))

    names = names_in(without_decided(tree, never_null))
    if names is None:
        return None
    return frozenset({name[-1].lower() for name in names} | {name[0].lower() for name in names})


def asked_by(condition: str, inputs: Sequence[Sequence[Column] | None]) -> frozenset[str] | None:
    """The columns of which a condition leaves out nulls, as `gem_bundle.lineage.Lineage.asks` has them.

    Args:
        condition: A boolean expression.
        inputs: The columns of what it is over.
    """
    tree = folded(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.asked import asked_of

    known = list(enumerate(inputs))
    names = names_in(tree) or ()
    # Of what isn't known it isn't known either that it is one column.
    columns = {tuple(name): ("?", *map(str.lower, name)) for name in names}
    columns |= columns_of(names, known)
    return asked_of(tree, lambda parts: _resolved(parts, known), columns)


def nulls_left_out(condition: str, inputs: Sequence[Sequence[Column] | None]) -> frozenset[frozenset[str]]:
    """What `gem_bundle.lineage.Lineage.only_nulls` has of a condition that leaves out nothing but nulls.

    Args:
        condition: A boolean expression.
        inputs: The columns of what it is over.
    """
    tree = folded(condition)
    if tree is None:
        return frozenset()
    from gem_bundle.expressions import asked

    known = list(enumerate(inputs))

    def resolved(parts: Sequence[str]) -> str | None:
        # What has a field that is null may be there.
        return None if _fields(parts, known) else _resolved(parts, known)

    return asked.nulls_left_out(tree, resolved)


def windows_over(expression: str) -> list[str]:
    """What the windows in an expression are over: Spark leaves out the rows for which that is null.

    Args:
        expression: An expression.
    """
    calls = _window_calls(expression) or ()
    return list(dict.fromkeys(call.expressions[0].sql(dialect="spark") for call in calls if call.expressions))


def has_overlapping_windows(expression: str) -> bool:
    """Whether a window in an expression overlaps with the next one, or may: Spark makes a row for each then.

    Args:
        expression: An expression.
    """
    calls = _window_calls(expression)
    if not calls:
        return calls is None
    from gem_bundle.expressions.nulls import nulls_in

    return any(nulls_in(call, lambda _: frozenset()) for call in calls if call.name.lower() == "window")


def _window_calls(expression: str) -> list[exp.Anonymous] | None:
    """The windows in an expression, those of sessions too; None where it can't be read."""
    if "window" not in expression.lower():
        return []
    tree = folded(expression)
    if tree is None:
        return None
    from gem_bundle.expressions.spark_parser import exp

    return [call for call in tree.find_all(exp.Anonymous) if call.name.lower() in _WINDOWS]
