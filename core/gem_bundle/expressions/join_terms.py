"""A join's condition taken apart, as Spark's `ExtractEquiJoinKeys` and `StreamingJoinHelper` do it.

Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from gem_bundle.expressions.apart import equal_terms
from gem_bundle.expressions.kinds import TIMESTAMP, family
from gem_bundle.expressions.scope import Scope
from gem_bundle.expressions.trees import interval_type, parts_of
from gem_bundle.expressions.walk import Walk, references_in
from gem_bundle.operators import any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.facts import Column, Facts
    from gem_bundle.schema import DataType

Side = Literal["left", "right"]
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}
_TERM_CASTS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "timestamp"})
_TIMES = frozenset("dt")


class _Invalid(Exception):  # noqa: N818 (it never leaves this module)
    """Spark can't take this apart."""


class _Unknown(Exception):  # noqa: N818 (it never leaves this module)
    """Whether Spark can take this apart can't be told."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A summand: a column of one side, or a constant, which has no side.

    Args:
        side: Whose column it is.
        column: What is known of the column.
        name: What tells it from other columns of its side.
        negated: It is subtracted.
    """

    side: Side | None = None
    column: Column | None = None
    name: str = ""
    negated: bool = False


class Sides:
    """The two inputs of a join, whose columns its condition is about.

    Args:
        left: The facts of the left input.
        right: The facts of the right input.
        names: The names by which the condition calls them.
    """

    def __init__(self, left: Facts, right: Facts, names: tuple[str, str]) -> None:
        self._facts: dict[Side, Facts] = {"left": left.called(names[0]), "right": right.called(names[1])}
        self._names: dict[Side, str] = {"left": names[0].lower(), "right": names[1].lower()}
        self._scopes = {side: Scope(facts.columns) for side, facts in self._facts.items()}
        columns = [facts.columns for facts in self._facts.values()]
        self._both = Scope(None if None in columns else [c for known in columns for c in known or ()])

    def equality(self, tree: exp.Expr) -> bool | None:
        """Whether some conjunct is an equality with all of one operand left and all of the other right."""
        return any_of(map(self._is_key, equal_terms(tree)))

    def event_time_key(self, tree: exp.Expr) -> bool | None:
        """Whether an operand of such an equality is nothing but a column that carries a watermark."""
        return any_of(
            self._has_mark(node) for node in equal_terms(tree) if isinstance(node, exp.EQ | exp.NEQ)
        )

    def bounded(self, tree: exp.Expr, side: Side) -> bool | None:
        """Whether the other side's watermark bounds how long rows of a side are kept."""
        if self._facts[_OTHER[side]].watermarked is False:
            return False
        return any_of(self._bounds(low, high, side) for node in conjuncts(tree) for low, high in ranges(node))

    def _owner(self, parts: list[str]) -> tuple[Side, Column | None] | None:
        """The side that a name belongs to, and its column when it is one as it is."""
        found: list[tuple[Side, Column | None]] = []
        for side, scope in self._scopes.items():
            if len(parts) > 1 and parts[0].lower() == self._names[_OTHER[side]] != self._names[side]:
                continue  # it names the other input
            if scope.columns is None:
                # What is called by an input's name is that input's.
                if len(parts) > 1 and parts[0].lower() == self._names[side]:
                    return side, None
                found.append((side, None))
                continue
            meaning = scope.resolve(parts)
            if meaning.outcome == "column" and meaning.column is not None:
                if len(parts) > 1 and parts[0].lower() == self._names[side]:
                    return side, None if meaning.fields else meaning.column
                found.append((side, None if meaning.fields else meaning.column))
            elif meaning.outcome != "missing":
                return None
        return found[0] if len(found) == 1 and None not in self._columns() else None

    def _columns(self) -> list[object]:
        return [scope.columns for scope in self._scopes.values()]

    def _sides(self, node: exp.Expr) -> set[Side] | None:
        """The sides that an operand is about; None when that can't be told."""
        names = references_in(node)
        owners = None if names is None else [self._owner(parts) for parts in names]
        if owners is None or None in owners:
            return None
        return {owner[0] for owner in owners if owner is not None}

    def _is_key(self, node: exp.Expr) -> bool | None:
        one, other = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.expression)
        sides = self._sides(one), self._sides(other)
        if sides[0] is None or sides[1] is None:
            return None
        if not (sides[0] and sides[1]):
            return False  # it is asked of one side alone, before the join
        return len(sides[0]) < 2 and len(sides[1]) < 2 and not sides[0] & sides[1]

    def _has_mark(self, node: exp.Expr) -> bool | None:
        key = self._is_key(node)
        if key is False:
            return False
        carried = any_of(self._is_marked(operand) for operand in (node.this, node.expression))
        return None if key is None and carried is not False else carried

    def _is_marked(self, node: exp.Expr) -> bool | None:
        parts = parts_of(_bare(node))
        if parts is None:
            return False
        owner = self._owner(parts)
        if owner is None:
            return None
        facts = self._facts[owner[0]]
        if owner[1] is None and facts.columns is None:
            return False if facts.watermarked is False else None
        return False if owner[1] is None else owner[1].watermarked

    def _bounds(self, low: exp.Expr, high: exp.Expr, side: Side) -> bool | None:
        """Whether ``low < high`` makes a bound for a side's column out of the other side's watermark."""
        try:
            terms = set(self._terms(low, negated=False)) | set(self._terms(high, negated=True))
        except _Invalid:
            return False
        except _Unknown:
            return None
        for owner in _OTHER:
            if len({term.name for term in terms if term.side == owner}) > 1:
                return False
        own = [term for term in terms if term.side == side]
        if len(own) != 1 or not own[0].negated:
            return False
        others = [term for term in terms if term.side == _OTHER[side]]
        if not others:
            return len(terms) > 1
        return None if others[0].column is None else others[0].column.watermarked

    def _terms(self, node: exp.Expr, *, negated: bool) -> Iterator[_Term]:
        node = _bare(node)
        parts = parts_of(node)
        if parts is not None:
            yield self._column_term(parts, negated=negated)
        elif isinstance(node, exp.Interval):
            yield self._interval_term(node, negated=negated)
        elif isinstance(node, exp.Add | exp.Sub):
            yield from self._terms(node.this, negated=negated)
            yield from self._terms(node.expression, negated=negated ^ isinstance(node, exp.Sub))
            self._refuse_times(node)
        elif isinstance(node, exp.Neg):
            yield from self._terms(node.this, negated=not negated)
        elif isinstance(node, exp.Literal) and not node.is_string:
            yield _Term(name=node.name, negated=negated)
        elif isinstance(node, exp.Cast) and not isinstance(node.this, exp.Literal):
            if _cast_name(node) not in _TERM_CASTS:
                raise _Invalid
            yield from self._terms(node.this, negated=negated)
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _TERM_CASTS:
            if len(node.expressions) != 1:
                raise _Invalid
            yield from self._terms(node.expressions[0], negated=negated)
        else:
            raise _Invalid

    def _column_term(self, parts: list[str], *, negated: bool) -> _Term:
        owner = self._owner(parts)
        if owner is None:
            raise _Unknown
        side, column = owner
        if column is None:
            if self._facts[side].columns is None:
                raise _Unknown
            raise _Invalid  # a field of a struct is no attribute
        return _Term(side, column, column.name.lower(), negated)

    def _interval_term(self, node: exp.Interval, *, negated: bool) -> _Term:
        """A length of time, which may not have months: they differ in length."""
        if not isinstance(node.this, exp.Literal) or family(interval_type(node)) != "v":
            raise _Invalid
        return _Term(name=node.sql(), negated=negated)

    def _refuse_times(self, node: exp.Expr) -> None:
        """Refuse what isn't about timestamps: differences of times, dates and days, intervals that differ."""
        left, right = (self._type(operand) for operand in (node.this, node.expression))
        if family(left) == family(right) == "v":
            if left != right:
                raise _Invalid  # one of them is cast to the type of both
            return
        if isinstance(node, exp.Sub) and not isinstance(_bare(node.expression), exp.Interval | exp.Literal):
            if family(left) in _TIMES and family(right) in _TIMES:
                raise _Invalid
            if left is None or right is None:
                raise _Unknown
        for time, other in ((left, right), (right, left)):
            if other is not None and other.name == "interval day" and time != TIMESTAMP:
                raise _Unknown if time is None else _Invalid

    def _type(self, node: exp.Expr) -> DataType | None:
        return Walk(self._both).run(node).type


def conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that all must hold."""
    waiting = [tree]
    while waiting:
        node = _bare(waiting.pop())
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            yield node


def ranges(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The pairs of a comparison that are in order: the first is the lower one."""
    if isinstance(node, exp.LT | exp.LTE):
        yield node.this, node.expression
    elif isinstance(node, exp.GT | exp.GTE):
        yield node.expression, node.this
    elif isinstance(node, exp.Between):
        yield node.args["low"], node.this
        yield node.this, node.args["high"]


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    return node


def _cast_name(node: exp.Cast) -> str:
    text: str = node.args["to"].sql(dialect="spark").lower()
    return text.partition("(")[0]
