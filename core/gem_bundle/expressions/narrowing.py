"""Whether a condition asks for the same as another one, but for shorter spans of time."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.expressions.spark_parser import exp

# Those that are as long at any time. Months aren't, and days are longer where clocks are put back.
_SECONDS = {
    "microsecond": Fraction(1, 1_000_000),
    "millisecond": Fraction(1, 1000),
    "second": Fraction(1),
    "minute": Fraction(60),
    "hour": Fraction(3600),
}
_Span = tuple[str, frozenset[tuple[str, int]], Fraction]


def only_narrows(before: str, after: str) -> bool:
    """Whether what one condition is true of the other is true of too, since only spans of time are shorter.

    Of ``b.at <= a.at + interval 1 hour`` that is so with half an hour. The terms stand in the same order; of
    anything else it isn't known, and the answer is no.

    Args:
        before: The condition that lets more through.
        after: The one that lets less through.
    """
    trees = parsed(before), parsed(after)
    if trees[0] is None or trees[1] is None:
        return False
    old, new = list(_terms(trees[0])), list(_terms(trees[1]))
    return len(old) == len(new) and all(
        one == other or _is_shorter(other, one) for one, other in zip(old, new, strict=True)
    )


def _terms(tree: exp.Expr) -> Iterator[str | _Span]:
    from gem_bundle.expressions.join_terms import conjuncts, ranges

    for term in conjuncts(tree):
        spans = [_span(type(term).__name__, low, high) for low, high in ranges(term)]
        if spans and None not in spans:
            yield from (span for span in spans if span is not None)
        else:
            yield term.sql(dialect="spark")


def _is_shorter(one: str | _Span, other: str | _Span) -> bool:
    """Whether a span is one about the same, and shorter."""
    if isinstance(one, str) or isinstance(other, str):
        return False
    return one[:2] == other[:2] and one[2] > other[2]


def _span(kind: str, low: exp.Expr, high: exp.Expr) -> _Span | None:
    """How much is added to what is to be the lower one, and what the two are made of besides."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare, parts_of

    columns: Counter[str] = Counter()
    added = Fraction(0)
    waiting = [(low, 1), (high, -1)]
    while waiting:
        node, sign = waiting.pop()
        node = bare(node)
        parts = parts_of(node)
        if parts is not None:
            columns[".".join(parts).lower()] += sign
        elif isinstance(node, exp.Add | exp.Sub):
            waiting.append((node.this, sign))
            waiting.append((node.expression, -sign if isinstance(node, exp.Sub) else sign))
        elif isinstance(node, exp.Interval):
            length = _length(node)
            if length is None:
                return None
            added += sign * length
        else:
            return None
    return kind, frozenset(columns.items()), added


def _length(node: exp.Interval) -> Fraction | None:
    """How many seconds an interval is long; None where that isn't the same at any time."""
    unit = node.args.get("unit")
    words = f"{node.this.name} {unit.name if unit is not None else ''}".lower().split()
    if len(words) != 2 or words[1].removesuffix("s") not in _SECONDS:
        return None
    try:
        return Fraction(words[0]) * _SECONDS[words[1].removesuffix("s")]
    except ValueError:
        return None
