"""What a name in an expression means, resolved as Spark's analyser does it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from gem_bundle.diagnostics import suggest
from gem_bundle.expressions.names import VALUES
from gem_bundle.facts import UNKNOWN_DELAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gem_bundle.facts import Column

# Of the names that are values this one is what a column is called too.
_WHO_RUNS_IT = "user"

Outcome = Literal["column", "value", "unknown", "missing", "ambiguous"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is certainly wrong with an expression."""

    code: str
    message: str
    hint: str = ""
    word: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name means.

    Args:
        outcome: ``column``: this column, and the fields in it; ``value``: no column, but a value such as
            `current_date`; ``unknown``: that can't be told; ``missing`` and ``ambiguous``: nothing.
        column: The column.
        fields: The names behind the column's.
        candidates: The columns it may be, when it is ambiguous.
        lateral: The column is one that the same projection made before.
    """

    outcome: Outcome
    column: Column | None = None
    fields: tuple[str, ...] = ()
    candidates: tuple[Column, ...] = ()
    lateral: bool = False


_UNKNOWN = Meaning("unknown")
_MISSING = Meaning("missing")
# `session.x` is a variable of the session.
_OF_VARIABLES = frozenset({"session", "system"})


class Scope:
    """The names that an expression may use.

    Args:
        columns: The columns it is over, or None when they are unknown.
        earlier: The columns that the same projection made before it.
        also: Other names that the same projection makes, of which nothing is known; a set has them in
            lower case.
        dropped: Names of columns that earlier nodes dropped and that Spark finds nevertheless; None when
            there may be any.
        qualifiers: The names, in lower case, that may stand before a column's; None when there may be any.
    """

    def __init__(
        self,
        columns: Sequence[Column] | None,
        earlier: Sequence[Column] = (),
        also: Iterable[str] = (),
        dropped: Iterable[str] | None = (),
        qualifiers: frozenset[str] | None = None,
    ) -> None:
        self.columns = columns
        self._columns = _shared_index(columns or ())
        self._possible: bool | None = None
        self._earlier = _index(earlier)
        # A set is taken as it is: its names are in lower case already, and it may be large.
        self._also = also if isinstance(also, set | frozenset) else {name.lower() for name in also}
        self._qualifiers = qualifiers
        self._dropped = None if dropped is None else {name.lower() for name in dropped}

    def make(self, column: Column) -> None:
        """Add a column that the projection has made."""
        self._earlier.setdefault(column.name.lower(), []).append(column)
        if _may_be_timely(column):
            self._possible = True

    @property
    def possible_delay(self) -> str | None:
        """The delay of something of which nothing is known: none where there is no event time at all."""
        if self.columns is None:
            return UNKNOWN_DELAY
        if self._possible is None:
            made = (column for columns in self._earlier.values() for column in columns)
            self._possible = any(map(_may_be_timely, self.columns)) or any(map(_may_be_timely, made))
        return UNKNOWN_DELAY if self._possible else None

    def resolve(self, parts: Sequence[str], *, lateral: bool = True) -> Meaning:
        """What a name of one or more parts means: ``id``, ``orders.id``, ``orders.place.city``.

        Args:
            parts: The parts.
            lateral: Whether it may be one that the same projection makes: not within an aggregate or
                window function.
        """
        if self.columns is None:
            return _UNKNOWN
        found = self._qualified(parts) or _one_of(self._named(parts[0]), tuple(parts[1:]))
        if found is not None:
            return _UNKNOWN if self._may_be_an_input(found) else found
        first = parts[0].lower()
        if lateral and first in self._earlier:
            made = self._earlier[first]
            if len(made) == 1:
                return Meaning("column", made[0], tuple(parts[1:]), lateral=True)
            return Meaning("ambiguous", candidates=tuple(made))
        if len(parts) == 1 and first in VALUES:
            return Meaning("value")
        # Columns such as `_metadata` of files exist without being among the known ones.
        if first.startswith("_") or (lateral and first in self._also) or self._may_be_dropped(parts):
            return _UNKNOWN
        known = self._qualifiers
        if known is not None and len(parts) > 1 and first not in known | _OF_VARIABLES:
            return _MISSING
        return self._under_another_name(parts)

    def problem(self, parts: Sequence[str], meaning: Meaning) -> Problem | None:
        """What is wrong with a name that has this meaning, if something certainly is."""
        name = ".".join(parts)
        if meaning.outcome == "missing":
            own = parts[0].lower() in self._also or parts[0].lower() in self._earlier
            hint = (
                "Columns that this node makes can't be used within its aggregate and window functions."
                if own
                else self._suggestion(parts)
            )
            return Problem("GB210", f"there is no column `{name}`", hint)
        if meaning.outcome == "ambiguous":
            owners = [f"`{c.qualifier}.{c.name}`" for c in meaning.candidates if c.qualifier]
            if len(owners) > 1:
                told = f"`{name}` may be {' or '.join(owners)}"
                return Problem("GB211", told, f"Say which one is meant, for example {owners[0]}.")
            hint = "Give them different names where they are made."
            return Problem("GB211", f"there are several columns `{name}`", hint)
        if name.lower() == _WHO_RUNS_IT and meaning.outcome == "value" and _WHO_RUNS_IT not in self._also:
            told = f"there is no column `{name}`, and Spark takes it for who runs the query"
            return Problem("GB219", told, "Write `current_user()` if that is meant.")
        return None

    def missing_field(self, owner: str, name: str, known: Iterable[str]) -> Problem:
        """What is wrong with a field that a struct doesn't have."""
        told = f"`{owner}` has no field `{name}`" if owner else f"there is no field `{name}`"
        return Problem("GB210", told, suggest(name, known, what="fields"))

    def _named(self, name: str) -> Sequence[Column]:
        return self._columns.get(name.lower(), ())

    def _qualified(self, parts: Sequence[str]) -> Meaning | None:
        if len(parts) < 2:
            return None
        owner = parts[0].lower()
        found = [c for c in self._named(parts[1]) if c.qualifier is not None and c.qualifier.lower() == owner]
        return _one_of(found, tuple(parts[2:]))

    def _may_be_an_input(self, found: Meaning) -> bool:
        """Whether the first part may be the name of an input too, which goes before columns."""
        owner = found.column
        if owner is None or not found.fields or owner.type is not None or owner.qualifier is not None:
            return False
        return any(column.qualifier is None for column in self._named(found.fields[0]))

    def _under_another_name(self, parts: Sequence[str]) -> Meaning:
        """A column of an input whose name isn't known here; `orders.at` is `at` or nothing."""
        if not any(self._named(part) for part in parts[1:]):
            return _MISSING
        found = self._named(parts[1])
        if len(parts) == 2 and len(found) == 1 and found[0].qualifier is None:
            return Meaning("column", found[0])
        return _UNKNOWN

    def _may_be_dropped(self, parts: Sequence[str]) -> bool:
        return self._dropped is None or any(part.lower() in self._dropped for part in parts)

    def _suggestion(self, parts: Sequence[str]) -> str:
        columns = self.columns or ()
        if len(parts) == 1:
            return suggest(parts[0], {column.name for column in columns}, what="columns")
        owned = {c.name for c in columns if c.qualifier and c.qualifier.lower() == parts[0].lower()}
        if owned:
            return suggest(parts[1], owned, what=f"columns of `{parts[0]}`")
        inputs = {c.qualifier for c in columns if c.qualifier}
        return suggest(parts[0], inputs or {column.name for column in columns}, what="names")


def _may_be_timely(column: Column) -> bool:
    """Whether a column is event time, or has it inside, or may be."""
    return bool(column.delay or column.marks or column.type is None)


_Found = TypeVar("_Found")
_KEPT = 16


def once_for_columns(find: Callable[[Sequence[Column]], _Found]) -> Callable[[Sequence[Column]], _Found]:
    """Find out once what many expressions ask of the same columns, which are compared by identity.

    Args:
        find: Finds it out. Of what isn't a tuple it does so each time.
    """
    recent: OrderedDict[int, tuple[Sequence[Column], _Found]] = OrderedDict()

    def found(columns: Sequence[Column]) -> _Found:
        if not isinstance(columns, tuple):
            return find(columns)
        known = recent.get(id(columns))
        if known is None or known[0] is not columns:
            known = recent[id(columns)] = (columns, find(columns))
            if len(recent) > _KEPT:
                recent.popitem(last=False)
        return known[1]

    return found


def _index(columns: Iterable[Column]) -> dict[str, list[Column]]:
    index: dict[str, list[Column]] = {}
    for column in columns:
        index.setdefault(column.name.lower(), []).append(column)
    return index


_shared_index = once_for_columns(_index)


def _one_of(found: Sequence[Column], fields: tuple[str, ...]) -> Meaning | None:
    """The only one of several columns; None when there is none."""
    if not found:
        return None
    if len(found) == 1:
        return Meaning("column", found[0], fields)
    # One column that was selected twice isn't ambiguous; which it is can't be told of equal ones.
    kinds = {column.type for column in found}
    if len({column.qualifier for column in found}) > 1 or (len(kinds) > 1 and None not in kinds):
        return Meaning("ambiguous", candidates=tuple(found), fields=fields)
    return Meaning("column", found[0], fields) if len(set(found)) == 1 else _UNKNOWN
