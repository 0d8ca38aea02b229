"""Conditions of joins at random: equalities, and ranges of time in the many ways people write them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.expressions import Writer
from tests.differential.relations import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.differential.relations import Col, Relation


class Condition:
    """Writes the condition of a join of two relations that are called by names.

    Args:
        random: Where chance comes from.
        left: The first input.
        right: The second input.
        names: What expressions call them.
    """

    def __init__(self, random: Random, left: Relation, right: Relation, names: tuple[str, str]) -> None:
        self.random = random
        self._names = names
        self._left = _qualifiable(left)
        self._right = _qualifiable(right)
        self._writers = [
            Writer(random, [replace(col, qualifier=name) for col in cols], {col.name.lower() for col in cols})
            for cols, name in zip((self._left, self._right), names, strict=True)
        ]

    def draw(self) -> str | None:
        """A condition; None where nothing in the two can be compared."""
        equal = self._equality()
        window = self._window_equality()
        range_ = self._range()
        roll = self.random.random()
        parts: list[str | None]
        if roll < 0.34:
            parts = [equal, range_]
        elif roll < 0.52:
            parts = [equal]
        elif roll < 0.60:
            parts = [equal, self._time_equality()]
        elif roll < 0.66:
            parts = [self._time_equality()]
        elif roll < 0.72:
            parts = [window, equal if self.random.random() < 0.5 else None]
        elif roll < 0.80:
            parts = [range_]
        elif roll < 0.88:
            parts = [range_, self._range(), equal]
        elif roll < 0.94:
            parts = [equal, self._one_sided()]
        else:
            parts = [equal, self._odd()]
        given = [part for part in parts if part is not None]
        if not given:
            given = [found for found in (equal, range_, window) if found is not None][:1]
        if not given:
            return None
        self.random.shuffle(given)
        bracketed = [f"({part})" if " or " in part or self.random.random() < 0.1 else part for part in given]
        return self.random.choice([" and ", " AND "]).join(bracketed)

    def _name(self, col: Col, side: int) -> str:
        return f"{self._names[side]}.{col.name}"

    def _pair(self, *families: str) -> tuple[str, str] | None:
        """A column of each side, of one family."""
        pairs = [
            (self._name(one, 0), self._name(other, 1), one.name.lower() == other.name.lower())
            for one in self._left
            for other in self._right
            if one.family == other.family and one.family in families
        ]
        same = [pair for pair in pairs if pair[2]]
        chosen = same if same and self.random.random() < 0.7 else pairs
        if not chosen:
            return None
        left, right, _ = self.random.choice(chosen)
        return left, right

    def _equality(self) -> str | None:
        pair = self._pair("number", "string", "date")
        if pair is None:
            return None
        left, right = pair
        if self.random.random() < 0.3:
            left, right = right, left
        forms = [f"{left} = {right}"] * 12
        forms += [f"{left} <=> {right}", f"{left} == {right}", f"hash({left}) = hash({right})"]
        forms += [f"upper(string({left})) = upper(string({right}))", f"coalesce({left}, {left}) = {right}"]
        return self.random.choice(forms)

    def _time_equality(self) -> str | None:
        pair = self._times()
        if pair is None:
            return None
        left, right = pair
        forms = [f"{left} = {right}"] * 6
        forms += [
            f"{right} = {left}",
            f"{left} <=> {right}",
            f"date_trunc('hour', {left}) = date_trunc('hour', {right})",
            f"{left} + interval 1 hour = {right}",
            f"cast({left} as timestamp) = {right}",
            f"date({left}) = date({right})",
            f"date({left}) = {right}",
        ]
        return self.random.choice(forms)

    def _window_equality(self) -> str | None:
        left = [col for col in self._left if col.type == WINDOW]
        right = [col for col in self._right if col.type == WINDOW]
        if not left or not right:
            return None
        one, other = self._name(self.random.choice(left), 0), self._name(self.random.choice(right), 1)
        forms = [f"{one} = {other}"] * 4
        forms += [f"{one}.end = {other}.end", f"{one}.start <= {other}.start", f"{other} = {one}"]
        forms += [f"{one}.start = {other}.start and {one}.end = {other}.end"]
        return self.random.choice(forms)

    def _times(self) -> tuple[str, str] | None:
        left = [col for col in self._left if col.family == "timestamp"]
        right = [col for col in self._right if col.family == "timestamp"]
        left = [col for col in left if col.marked] or left
        right = [col for col in right if col.marked] or right
        if not left or not right:
            return None
        return self._name(self.random.choice(left), 0), self._name(self.random.choice(right), 1)

    def _range(self) -> str | None:
        """Two bounds, or one."""
        pair = self._times()
        if pair is None:
            return None
        one, other = pair if self.random.random() < 0.5 else pair[::-1]
        i = self._writers[0].interval
        forms: list[Callable[[], str]] = [
            lambda: f"{one} between {other} and {other} + {i()}",
            lambda: f"{one} between {other} - {i()} and {other} + {i()}",
            lambda: f"{one} >= {other} and {one} <= {other} + {i()}",
            lambda: f"{one} > {other} - {i()} and {one} < {other} + {i()}",
            lambda: f"{other} + {i()} >= {one} and {other} - {i()} <= {one}",
            lambda: f"{one} - {i()} <= {other} and {other} <= {one}",
            lambda: f"{one} <= {other} + {i()}",
            lambda: f"{one} >= {other} - {i()}",
            lambda: f"{one} < {other}",
            lambda: f"{one} BETWEEN {other} AND {other} + {i()} + {i()}",
            lambda: f"{one} - {i()} - {i()} <= {other}",
            lambda: f"{i()} + {one} >= {other}",
        ]
        return self.random.choice(forms)()

    def _one_sided(self) -> str | None:
        """A condition on one input alone."""
        writer = self.random.choice(self._writers)
        if not writer.cols:
            return None
        return writer.boolean(1)[0]

    def _odd(self) -> str | None:
        """Bounds that Spark can or can't solve, one wouldn't know."""
        pair = self._times()
        if pair is None:
            return None
        one, other = pair if self.random.random() < 0.5 else pair[::-1]
        i = self._writers[0].interval()
        return self.random.choice(
            [
                f"{one} - {other} <= interval '1' hour",
                f"{one} - {other} between interval '0' hour and interval '1' hour",
                f"cast({one} as bigint) <= cast({other} as bigint) + 3600",
                f"cast({one} as double) < cast({other} as double) + 60",
                f"cast({one} as long) between cast({other} as long) and cast({other} as long) + 60",
                f"unix_timestamp({one}) - unix_timestamp({other}) < 60",
                f"cast({one} as timestamp) <= cast({other} as timestamp) + {i}",
                f"date_trunc('hour', {one}) <= {other}",
                f"not ({one} < {other})",
                f"not ({one} > {other} + {i})",
                f"{one} < {other} or {one} > {other} + {i}",
                f"{one} > timestamp '2024-01-01 00:00:00'",
                f"{one} <= {one} + {i} and {other} > {one}",
                f"timestampadd(HOUR, 1, {one}) >= {other}",
                f"{one} + ({i}) - ({i}) <= {other}",
                f"{one} <= date_add({other}, 1)",
                f"-(cast({one} as bigint)) >= -(cast({other} as bigint)) - 60",
                f"cast({one} as date) <= cast({other} as date)",
                f"cast({one} as decimal(20, 6)) <= cast({other} as decimal(20, 6)) + 60",
                f"{one} is not null and {one} <= {other} + {i}",
                f"coalesce({one}, {other}) <= {other} + {i}",
                f"{one} <= {other} + {i} is true",
                f"least({one}, {other}) > {other} - {i}",
                f"{one} >= {other} - make_dt_interval(0, 1) and {one} <= {other}",
                f"if({one} <= {other} + {i}, true, false)",
                "true",
                "1 = 1",
            ]
        )


def _qualifiable(relation: Relation) -> list[Col]:
    """The columns that ``input.column`` names without doubt."""
    ambiguous = relation.ambiguous()
    return [col for col in relation.cols if col.name.lower() not in ambiguous]
