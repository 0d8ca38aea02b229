"""The option `history` of the target `delta`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from gem_bundle import Column, Facts, Field, Finding, OptionChange, Options
from gem_bundle.expressions import column_of, missing_names
from gem_bundle.merging import SOURCE, check_keys, check_rows
from gem_bundle.schema import without_equality
from gem_bundle.types import Expression, StringList

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class HistoryOptions(Options):
    """How rows become a history of versions: a slowly changing dimension of type 2."""

    keys: StringList = Field(
        description="The columns of the key, compared so that null equals null.",
        examples=[["id"]],
        min_length=1,
    )
    sequence_by: Expression = Field(
        description="The order of the changes of a key: where a version begins and the one before it ends.",
        examples=["updated_at"],
    )
    delete_when: Expression | None = Field(
        None,
        description="Rows for which this holds close the version that is open, and open none.",
        examples=["op = 'd'"],
    )
    start: str = Field(
        "valid_from",
        min_length=1,
        description="The column with the sequence of the change that began a version.",
    )
    end: str = Field(
        "valid_to",
        min_length=1,
        description="The column with the sequence of the change that ended a version; null where it is open.",
    )
    current: str | None = Field(
        "is_current",
        min_length=1,
        description="The column that is true of open versions; null for none.",
    )
    track: StringList | None = Field(
        None,
        description="Columns whose changes make a version; those of others are written into the version "
        "that they fall in. By default all but the key and the columns of `sequence_by`.",
        examples=[["city", "plan"]],
        min_length=1,
    )
    leave_out: StringList = Field([], description="Columns that the table doesn't get.", examples=[["op"]])

    @model_validator(mode="after")
    def _apart(self) -> Self:
        own = [self.start, self.end, *([] if self.current is None else [self.current])]
        if len({name.lower() for name in own}) < len(own):
            raise ValueError("`start`, `end` and `current` are different columns")
        keys = {name.lower() for name in self.keys}
        if keys & {name.lower() for name in own}:
            raise ValueError("`start`, `end` and `current` are not in the key")
        if self.sequence_by.lower() in keys:
            raise ValueError(
                f"`sequence_by: {self.sequence_by}` is in the key: all rows of a key have one value of it"
            )
        out = {name.lower() for name in self.leave_out}
        if keys & out:
            raise ValueError("the table has to have the columns of the key")
        lost = [name for name in self.track or () if name.lower() in out]
        if lost:
            raise ValueError(f"`track` has `{lost[0]}`, which `leave_out` keeps from the table")
        return self

    def written(self, facts: Facts) -> Facts:
        """What is known of the columns that a new table gets.

        Args:
            facts: The rows.
        """
        if facts.columns is None:
            return facts
        out = {name.lower() for name in self.leave_out}
        kept = [column for column in facts.columns if column.name.lower() not in out]
        sequence = column_of(self.sequence_by, self.start, facts.called(SOURCE).columns or ())
        own = [sequence, replace(sequence, name=self.end)]
        if self.current is not None:
            own.append(Column(self.current, "boolean"))
        return facts.with_columns([*kept, *own])

    def tracked(self, columns: Iterable[str]) -> list[str]:
        """The columns whose changes make a version."""
        if self.track is not None:
            return self.track
        from gem_bundle.expressions import columns_named

        others = {*self.keys, *(columns_named(self.sequence_by) or ()), *self.leave_out}
        lower = {name.lower() for name in others}
        return [name for name in columns if name.lower() not in lower]

    def check(self, facts: Facts) -> Iterator[Finding]:
        """The columns are there, can be compared, and aren't those of the history itself."""
        yield from missing_names(self.keys, facts, ("history", "keys"))
        yield from missing_names(self.leave_out, facts, ("history", "leave_out"))
        yield from missing_names(self.track or (), facts, ("history", "track"))
        yield from check_keys(self.keys, facts, ("history", "keys"))
        yield from check_rows([self.sequence_by], self.delete_when, facts, "history")
        columns = [column.name for column in facts.columns or ()]
        for option in ("start", "end", "current"):
            name = getattr(self, option)
            if name is not None and facts.columns and facts.column(name) is not None:
                yield Finding(
                    "GB205",
                    f"the rows have a column `{name}` already",
                    f"Name another one: `{option}: …`.",
                    ("history", option),
                )
        for name in self.tracked(columns):
            column = facts.column(name)
            if column is not None and column.type is not None and without_equality(column.type):
                yield Finding(
                    "GB213",
                    f"`{name}` is {column.type}, and it can't be told whether it has changed",
                    "Name in `track` the columns that make a version, without it.",
                    ("history", "track"),
                )
        if facts.columns and not self.tracked(columns):
            yield Finding("GB205", "no column is tracked", "Name some in `track`.", ("history", "track"))

    def change(self, before: Mapping[str, Any]) -> OptionChange:
        """What other options of the history do."""
        now = self.model_dump(mode="json")
        if any(now[name] != before.get(name) for name in ("start", "end", "current", "keys")):
            return OptionChange(
                "refused",
                "the table that is there has its versions by other columns",
                "Write into another table, or put it back.",
            )
        if any(now[name] != before.get(name) for name in ("sequence_by", "track")):
            return OptionChange(
                "mixed", "versions that were made by the old rule stand beside those made by the new one"
            )
        return OptionChange("from_now_on", "changes that come from now on go by the new rules")
