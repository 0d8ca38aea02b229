"""What a transform makes of what: which columns come from which, so that an edit's effect can be followed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence, Set

    from gem_bundle.facts import Column
    from gem_bundle.options import Options

MAYBE_NULL = "?"
"""Among `Made.nulls`: it may be null whatever it is made of."""

UNCERTAIN = "~"
"""Among `Made.nulls`: whether it may be null of what is never null isn't known."""

NEVER_TRUE = "!"
"""Among `Lineage.asks`: the condition is true of no row whatever, so that Spark asks for nothing else."""

UNCHANGED = frozenset({"=", "union"})
"""The rules of columns that are columns of inputs as they are."""
_NAMES = re.compile(r"(?<=')\d+:[^']*(?=')")


class Equality(NamedTuple):
    """What a condition wants to be equal.

    Args:
        sides: The columns that each side is made of, each behind the position of its input.
        takes_nulls: Nulls are equal, as with ``<=>``.
        rules: How each side is made of them, as `Made.nameless` tells it.
    """

    sides: tuple[frozenset[str], frozenset[str]]
    takes_nulls: bool = False
    rules: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Made:
    """How something is made of the columns that go in.

    Args:
        rule: The rule, in a form that is the same wherever the rule is.
        uses: The columns it is made of, by `column_keys`, each behind the position of its input: ``0:page``.
            None is unknown: any of them.
        nulls: What makes it null, as Spark takes it by its form: those of the columns where one that is null
            does, `MAYBE_NULL` where it may be null by itself, `UNCERTAIN` where that isn't known. None is
            unknown; a column that is another one as it is, is null where that one is.
        order: Those that it uses in the order in which they stand in it, each as often; where it is left out
            they may stand in any.
        equals: What is equal where it is true, if it is a condition.
        whole: Spark takes it as it is, and finds nothing of it out when it plans: a text or message that
            columns are ``packed`` into, which isn't null where one of them is, or a field that is
            ``unpacked``. Empty is unknown.
    """

    rule: str = ""
    uses: frozenset[str] | None = frozenset()
    nulls: frozenset[str] | None = field(default=None, compare=False)
    order: tuple[str, ...] = field(default=(), compare=False)
    equals: tuple[Equality, ...] = field(default=(), compare=False)
    whole: Literal["", "packed", "unpacked"] = field(default="", compare=False)

    @property
    def in_order(self) -> tuple[str, ...]:
        """What it uses in the order in which that stands in it, as far as both are known."""
        return self.order or tuple(sorted(self.uses or ()))

    @property
    def nameless(self) -> str:
        """The rule whatever the columns are called; empty for a column as it is."""
        return "" if self.rule in UNCHANGED else _NAMES.sub("", self.rule)

    def never_null(self, known: Mapping[str, bool | None]) -> bool | None:
        """Whether Spark takes it for something that is never null; None where that isn't known.

        Args:
            known: The same of the columns that it may be made of.
        """
        nulls = self.uses if self.rule in UNCHANGED and self.nulls is None else self.nulls
        if nulls is None:
            return None
        found = [known.get(use) for use in nulls - {MAYBE_NULL, UNCERTAIN}]
        if MAYBE_NULL in nulls or False in found:
            return False
        return None if UNCERTAIN in nulls or None in found else True


@dataclass(frozen=True, slots=True)
class Kept:
    """What a transform keeps of a stream from one micro-batch to the next.

    Args:
        keys: What it is kept by, in order.
        key_types: The Spark types of those, None where unknown.
        parts: What the keys are made of where that is told by itself, as of joins, which are kept by what is
            equal.
        values: What is kept for each column that comes out: for each of its aggregate functions the types of
            Spark's own buffers; one that is never null ends in ``!``. None where that isn't known.
        reads: The columns that come out of it and that it reads itself, whoever else does.
        rows: Rows of the inputs are kept, as far as they are needed: of what `values` tell, else of their
            columns.
        taken: Which rows get into it, where the transform itself leaves some out before.
        taken_by: The conditions that all must hold for that, each by itself, where it is told by them.
        sides: The positions of the inputs whose rows are kept, from left to right, if that is another order.
        order: The aggregate functions in the order in which Spark keeps what they have, unless that is the
            order of the columns.
        pairs: Of rows that are kept for a join the columns that its condition asks of pairs, each behind the
            position of its input: what it asks of one side alone is asked before, and isn't kept for it. None
            is all that it asks for.
        once: Of the groups duplicates are dropped behind, of which there are none: Spark leaves that out.
        asks: The columns that come out of it of which a condition of its own leaves out the nulls.
        tables: Of an input that is joined with itself, for each column that comes out, which of the two
            tables it is made of: 0 is the left one.
        tables_asked: The columns of each of two tables of which its condition asks of pairs, by their keys.
        tables_read: Those of which its condition asks anything, of an input that is joined with itself.
    """

    keys: tuple[Made, ...] = ()
    key_types: tuple[str | None, ...] | None = None
    values: Mapping[str, Mapping[str, tuple[str, ...]] | None] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    rows: bool = False
    taken: Made = field(default_factory=Made)
    parts: tuple[Made, ...] = ()
    sides: tuple[int, ...] = ()
    order: tuple[str, ...] = field(default=(), compare=False)
    pairs: frozenset[str] | None = field(default=None, compare=False)
    once: bool = field(default=False, compare=False)
    asks: frozenset[str] = field(default=frozenset(), compare=False)
    tables: Mapping[str, frozenset[int]] = field(default_factory=dict, compare=False)
    tables_asked: tuple[frozenset[str], ...] = field(default=(), compare=False)
    tables_read: tuple[frozenset[str], ...] = field(default=(), compare=False)
    taken_by: tuple[Term, ...] = field(default=(), compare=False)

    @property
    def results(self) -> frozenset[str]:
        """The columns that come out of what is kept for them.

        Of those for which Spark keeps nothing, as of the count of no row, it knows what they are: conditions
        on them aren't about results.
        """
        return frozenset(key for key, functions in self.values.items() if functions != {})

    def side_at(self, position: int) -> int:
        """The side of a join that an input is: 0 is the left one.

        Args:
            position: The position of the input.
        """
        return self.sides.index(position) if self.sides else position

    def position_of(self, side: int) -> int:
        """The position of the input that is a side of a join.

        Args:
            side: The side.
        """
        return self.sides[side] if self.sides else side

    def are_told_by(self, names: Set[str], columns: Mapping[str, Made]) -> bool:
        """Whether it keeps groups, and some columns tell each of them from the others.

        Args:
            names: The columns, among those that come out.
            columns: How those that come out are made.
        """
        known = [columns[name] for name in names if name in columns]
        return bool(self.values) and not self.rows and all(key in known for key in self.keys)


class Term(NamedTuple):
    """One of the conditions that all must hold.

    Args:
        made: What it is made of.
        asks: The columns that it would be null without, as `Lineage.asks` has them.
        fails: Whether it doesn't hold where none of its columns has a value; None where that isn't known.
    """

    made: Made
    asks: frozenset[str] | None = None
    fails: bool | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a transform makes of what.

    Args:
        columns: For each column that comes out, by `column_keys`, how it is made.
        rows: How it is decided which rows come out, and how many.
        kept: What it keeps of a stream; None where it keeps nothing.
        reads: The columns that it reads though they decide neither values nor rows, as those that rows are
            sorted by, each behind the position of its input. None is unknown.
        asks: The columns of which its condition leaves out the nulls, as Spark reads it off its form, each
            behind the position of its input, or `NEVER_TRUE`. None is unknown.
        only_nulls: Where its condition leaves out nothing but nulls: the columns that are null, all of them,
            in a row that it leaves out, for each kind of such rows.
        expands: It makes several rows of each, as an unpivot does: Spark leaves a condition about those
            behind it, and puts a semi join before it that asks only for columns that go through as they are.
        several: It makes several rows of each that its condition lets through, as windows that overlap do.
        equals: What its condition wants to be equal: behind a join Spark makes keys of the join of that.
        terms: The conditions that all must hold, each by itself, where its condition is told by them. Of a
            left semi join those about its rows alone, and last what it asks of pairs.
        unpacks: All that it computes it takes out of one column that it has computed before, behind the
            others.
    """

    columns: Mapping[str, Made]
    rows: Made = field(default_factory=Made)
    kept: Kept | None = None
    reads: frozenset[str] | None = frozenset()
    asks: frozenset[str] | None = field(default=None, compare=False)
    only_nulls: frozenset[frozenset[str]] = field(default=frozenset(), compare=False)
    expands: bool = field(default=False, compare=False)
    several: bool = field(default=False, compare=False)
    equals: tuple[Equality, ...] = field(default=(), compare=False)
    terms: tuple[Term, ...] = field(default=(), compare=False)
    unpacks: bool = field(default=False, compare=False)

    def nulls_left_out(self, never_null: Mapping[str, bool | None]) -> frozenset[frozenset[str]]:
        """What `only_nulls` leaves out, without what no row is.

        Args:
            never_null: Which columns of the inputs are never null, each behind the position of its input.
        """
        return frozenset(uses for uses in self.only_nulls if not any(never_null.get(use) for use in uses))

    @property
    def before_groups(self) -> Lineage | None:
        """What it asks of rows before it groups them, as a filter would; None where it asks nothing."""
        kept = self.kept
        if kept is None or not kept.taken_by:
            return None
        return replace(self, rows=kept.taken, terms=kept.taken_by, kept=None, only_nulls=frozenset())

    def sides_of(self, key: str) -> frozenset[int]:
        """Which sides of a join a column behind it is made of: 0 is the left one. Both if that isn't known.

        Args:
            key: The column, among those that come out.
        """
        kept, uses = self.kept or Kept(), self.columns[key].uses
        if kept.tables:
            return kept.tables.get(key, frozenset({0, 1}))
        if uses is None:
            return frozenset({0, 1})
        return frozenset(kept.side_at(int(use.partition(":")[0])) for use in uses)


class Step(NamedTuple):
    """A part of what a transform does, as a transform of the same gem of its own.

    Args:
        options: Its options.
        inputs: By the names it calls them by, what it gets rows of: the name of an input of the transform, or
            the number of an earlier step.
    """

    options: Options
    inputs: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Result:
    """A column behind an aggregation: what it is made of decides on the order in which Spark keeps that.

    Args:
        of: The aggregation's own results in the order in which they stand in it, each as often.
        is_cheap: Spark computes it wherever it is read, as what is grouped by.
    """

    of: tuple[str, ...] = ()
    is_cheap: bool = True


def results_of(lineage: Lineage) -> dict[str, Result] | None:
    """The columns that come out of an aggregation.

    Args:
        lineage: What it makes of what.

    Returns:
        None where it asks for its results itself, or sorts by them: nothing behind it becomes a part of it.
    """
    kept = lineage.kept or Kept()
    if kept.order or kept.reads & kept.results:
        return None
    own = kept.results
    return {key: Result((key,), is_cheap=False) if key in own else Result() for key in lineage.columns}


def collapsed(
    results: Mapping[str, Result], behind: Lineage, needed: Container[str]
) -> dict[str, Result] | None:
    """The columns of a query that Spark makes a part of the aggregation before it: rule `CollapseProject`.

    Args:
        results: The columns behind the aggregation.
        behind: What the query makes of them.
        needed: Those of its columns that somebody reads.

    Returns:
        None where it doesn't: it would compute something more than once, or the query asks for results.
    """
    if behind.rows.uses is None or behind.expands or behind.several:
        return None
    if any(results.get(name, Result()).of for name in uses_at(behind.rows.uses, 0)):
        return None
    found: dict[str, Result] = {}
    read: Counter[str] = Counter()
    computed = False
    for key, made in behind.columns.items():
        if key not in needed:
            continue
        names = list(results) if made.uses is None else uses_at(made.in_order, 0)
        if not behind.unpacks or made.rule in UNCHANGED or not computed:
            read.update(names)
        computed = computed or made.rule not in UNCHANGED
        parts = [results.get(name, Result()) for name in names]
        is_cheap = made.rule in UNCHANGED or made.rule.startswith(".") or not names
        of = tuple(name for part in parts for name in part.of)
        found[key] = Result(of, is_cheap and all(part.is_cheap for part in parts))
    if any(count > 1 and not results.get(name, Result()).is_cheap for name, count in read.items()):
        return None
    return found


def uses_at(uses: Iterable[str], position: int) -> list[str]:
    """The columns of the input at a position among those of several, as `Made.uses` tells them apart.

    Args:
        uses: The columns, each behind the position of its input.
        position: The position.
    """
    parted = (use.partition(":") for use in uses)
    return [key for place, _, key in parted if place == str(position)]


def column_keys(columns: Iterable[Column] | None) -> list[str] | None:
    """What columns are told apart by: their names in lower case, with the input's name in front if need be.

    Those that have that in common too are told apart by their order: no expression can name them, but Spark
    hands them on, and keeps them.

    Returns:
        One for each; None when they are unknown.
    """
    if columns is None:
        return None
    known = list(columns)
    keys = [column.name.lower() for column in known]
    times = Counter(keys)
    if len(times) == len(keys):
        return keys
    seen: Counter[str] = Counter()
    keys = []
    for column in known:
        key = column.name.lower()
        if times[key] > 1:
            key = f"{column.qualifier}.{key}".lower() if column.qualifier else key
            seen[key] += 1
            key = key if seen[key] == 1 else f"{key}#{seen[key]}"
        keys.append(key)
    return keys if len(set(keys)) == len(keys) else None


def passed(columns: Sequence[Column] | None, position: int = 0) -> dict[str, Made] | None:
    """Columns that go through as they are.

    Args:
        columns: The columns of an input.
        position: The position of the input.
    """
    keys = column_keys(columns)
    return None if keys is None else {key: same(key, position) for key in keys}


def same(key: str, position: int = 0) -> Made:
    """A column that is another one as it is."""
    return Made("=", frozenset({f"{position}:{key}"}))


def uses_of(made: Iterable[Made]) -> frozenset[str] | None:
    """The columns of which several things are made together; None where those of one of them are unknown.

    Args:
        made: How each of them is made.
    """
    found = [each.uses for each in made]
    return None if None in found else frozenset[str]().union(*filter(None, found))
