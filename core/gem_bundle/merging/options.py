"""The option `merge` of targets whose tables take a MERGE: its parts, and what is wrong with them."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ValidationError, WithJsonSchema, model_validator

from gem_bundle.diagnostics import Finding
from gem_bundle.expressions import check_expression, check_repeatable, column_of, missing_names
from gem_bundle.facts import Facts
from gem_bundle.merging.naming import SOURCE, TARGET, Place, TableNames
from gem_bundle.options import Field, Options
from gem_bundle.schema import without_equality
from gem_bundle.semantics import OptionChange
from gem_bundle.types import Expression, ExpressionList, StringList

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.facts import Column

_CONDITION = re.compile(r"[=<>(]")
_SCALAR = {"type": ["string", "number", "boolean"]}
_ASSIGNED_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": ["all", "none"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": _SCALAR},
    ]
}


def _keys(value: Any) -> Any:
    if isinstance(value, str) and not _CONDITION.search(value):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _assigned(value: Any) -> Any:
    if isinstance(value, str) and value not in {"all", "none"}:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


Assigned = Annotated[
    Literal["all", "none"] | list[str] | dict[str, Expression],
    BeforeValidator(_assigned),
    WithJsonSchema(_ASSIGNED_SCHEMA),
]


class UnmatchedOptions(Options):
    """What becomes of the table's rows that a micro-batch has no row for."""

    when: Expression | None = Field(
        None,
        description="Only of those for which this holds, over `target`.",
        examples=["target.day = current_date()"],
    )
    update: dict[str, Expression] | None = Field(
        None,
        description="Columns that get values, over `target`; without it the rows are deleted.",
        examples=[{"active": "false"}],
        min_length=1,
    )


def _has_wrong_type(expression: str) -> bool:
    """Whether an expression names a type that no Spark has."""
    from gem_bundle.expressions import check_types

    return any(not found.since for found in check_types(expression, "on"))


def _unmatched(value: Any) -> Any:
    return {} if value == "delete" else value


class MergeOptions(Options):
    """How rows change the rows of a table that have their key: upserts."""

    on: Annotated[
        list[str] | Expression,
        BeforeValidator(_keys),
        WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
    ] = Field(
        description="The columns of the key, compared so that null equals null; or a condition over `source` "
        "(a row that comes) and `target` (one of the table) with an equality of columns in it.",
        examples=[["id"], "target.id = source.id and target.day >= current_date() - interval 7 days"],
        min_length=1,
    )
    sequence_by: ExpressionList = Field(
        [],
        description="What tells which of the changes of a key is the last; the later parts decide where the "
        "first ones are equal. Its columns are in the table. Without it, rows come in their order, one of a "
        "key in a micro-batch.",
        examples=["updated_at", ["committed_at", "position"]],
    )
    delete_when: Expression | None = Field(
        None,
        description="Rows for which this holds delete the row with their key.",
        examples=["op = 'd'"],
    )
    update: Assigned = Field(
        "all",
        description="What a row of the table gets when a row with its key comes: `all` columns, `none`, some "
        "of them, or expressions over `source` and `target`.",
        examples=["all", ["status", "updated_at"], {"amount": "target.amount + source.amount"}],
    )
    insert: Assigned = Field(
        "all",
        description="What a new row of the table gets: `all` columns, `none` (no rows are added), some of "
        "them, or expressions over `source`.",
        examples=["all", ["id", "name"]],
    )
    leave_out: StringList = Field(
        [], description="Columns that the table doesn't get, with `all`.", examples=[["op"]]
    )
    ignore_null_updates: bool = Field(False, description="Whether a null leaves the table's value as it is.")
    unmatched_by_source: (
        Annotated[
            UnmatchedOptions,
            BeforeValidator(_unmatched),
            WithJsonSchema({"anyOf": [{"const": "delete"}, {"type": "object"}]}),
        ]
        | None
    ) = Field(
        None,
        description="What becomes of the table's rows that a micro-batch has no row for: `delete`, or an "
        "update. For inputs that are always all there is.",
        examples=["delete", {"when": "target.active", "update": {"active": "false"}}],
    )

    @model_validator(mode="after")
    def _fit(self) -> Self:
        # With a type that there isn't it can't be read, and `check` says which one that is.
        if isinstance(self.on, str) and not self.pairs() and not _has_wrong_type(self.on):
            raise ValueError(
                "`on` as a condition needs an equality of two columns, as in `target.id = source.id`"
            )
        keys = {name.lower() for name in self.key_columns()}
        for expression in self.sequence_by:
            if expression.lower() in keys:
                raise ValueError(
                    f"`sequence_by: {expression}` is in the key: all rows of a key have one value of it"
                )
        if self.ignore_null_updates and (isinstance(self.update, dict) or self.update == "none"):
            raise ValueError("`ignore_null_updates` is for `update: all` and for a list of columns")
        if not isinstance(self.insert, str):
            given = {name.lower() for name in self.insert}
            lost = [target for target, _ in self.pairs() if target.lower() not in given]
            if lost:
                raise ValueError(f"`insert` has to give `{lost[0]}`, by which rows are found again")
        if keys & {name.lower() for name in self.leave_out}:
            raise ValueError("the table has to have the columns of the key")
        if self.update == self.insert == "none" and self.delete_when is None:
            raise ValueError("with `update: none` and `insert: none` nothing is written")
        return self

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The columns of the key: that of the table, and that of the rows."""
        if isinstance(self.on, list):
            return tuple((name, name) for name in self.on)
        from gem_bundle.expressions import equal_columns

        return equal_columns(self.on, TARGET, SOURCE) or ()

    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key, as the rows have them."""
        return tuple(source for _, source in self.pairs())

    def inserted(self, columns: Iterable[str]) -> Mapping[str, str]:
        """What a new row gets, by column, as expressions over `source`."""
        return self._of(self.insert, columns)

    def updated(self, columns: Iterable[str]) -> Mapping[str, str]:
        """What a row that is there gets, by column, as expressions over `source` and `target`."""
        keys = {target.lower() for target, _ in self.pairs()}
        made = self._of(self.update, columns)
        return {name: text for name, text in made.items() if name.lower() not in keys}

    def _of(self, assigned: Assigned, columns: Iterable[str]) -> Mapping[str, str]:
        from gem_bundle.expressions import backquoted

        if isinstance(assigned, dict):
            return assigned
        if assigned == "none":
            return {}
        out = {name.lower() for name in self.leave_out}
        names = [name for name in columns if name.lower() not in out] if assigned == "all" else assigned
        return {name: f"{SOURCE}.{backquoted(name)}" for name in names}

    def brought(self, columns: Iterable[str]) -> Mapping[str, str]:
        """The columns that the table has for certain, in the order of the rows', over `source`.

        Args:
            columns: The columns of the rows.
        """
        from gem_bundle.expressions import backquoted

        found = dict(self.inserted(columns)) or {
            target: f"{SOURCE}.{backquoted(source)}" for target, source in self.pairs()
        }
        if not isinstance(self.update, dict):
            found |= self.updated(columns)
        return found

    def written(self, facts: Facts) -> Facts:
        """What is known of the columns that a new table gets.

        Args:
            facts: The rows.
        """
        if facts.columns is None:
            return facts
        columns = facts.called(SOURCE).columns or ()
        brought = self.brought([column.name for column in columns])
        return facts.with_columns([column_of(text, name, columns) for name, text in brought.items()])

    def conditions(self) -> Iterator[tuple[Place, str]]:
        """The conditions of the statement, each behind its place."""
        if isinstance(self.on, str):
            yield ("merge", "on"), self.on
        if self.unmatched_by_source is not None and self.unmatched_by_source.when is not None:
            yield ("merge", "unmatched_by_source", "when"), self.unmatched_by_source.when

    def assignments(self) -> Iterator[tuple[Place, str]]:
        """The expressions by which the statement gives columns their values, each behind its place."""
        unmatched = self.unmatched_by_source
        for place, given in (
            (("update",), self.update),
            (("insert",), self.insert),
            (("unmatched_by_source", "update"), None if unmatched is None else unmatched.update),
        ):
            if isinstance(given, dict):
                yield from ((("merge", *place, name), text) for name, text in given.items())

    @property
    def remembers(self) -> bool:
        """Whether the keys of deleted rows are kept: so that a row that comes late stays away."""
        return bool(self.sequence_by) and self.delete_when is not None

    def check(self, facts: Facts, table: Sequence[Column] | None) -> Iterator[Finding]:
        """The columns are there, one row of a key comes last, and the table can tell which one it has.

        Args:
            facts: The rows.
            table: The columns of the table that is there; None when they aren't known.
        """
        yield from missing_names(self.key_columns(), facts, ("merge", "on"))
        yield from missing_names(self.leave_out, facts, ("merge", "leave_out"))
        for option in ("update", "insert"):
            given = getattr(self, option)
            if isinstance(given, list):
                yield from missing_names(given, facts, ("merge", option))
        yield from check_keys(self.key_columns(), facts, ("merge", "on"))
        yield from check_rows(self.sequence_by, self.delete_when, facts, "merge")
        if facts.columns is not None:
            yield from self._check_insert([column.name for column in facts.columns])
        for expression in self.sequence_by:
            yield from self._check_sequence(expression, facts)
        yield from self._check_expressions(facts, table)
        for place, condition in self.conditions():
            yield from check_repeatable(
                condition,
                Facts(),
                place,
                rule="a MERGE takes conditions on the two rows alone",
                hint="Make a column of it before, and compare with that.",
                subqueries=True,
            )
        if not self.sequence_by and not _one_of_a_key(facts):
            yield Finding(
                "GB207",
                "several rows of a key in one micro-batch end the query: nothing tells which is the last",
                "Give `sequence_by`, or have one row of each key by `aggregate` or `deduplicate`.",
                "merge",
                "warning",
            )
        if self.unmatched_by_source is not None and facts.streaming:
            yield Finding(
                "GB207",
                "`unmatched_by_source` changes all rows of the table that a micro-batch has no row for, and "
                "a micro-batch is a part of a stream",
                "It is for inputs that are always all there is; in a stream remove it.",
                ("merge", "unmatched_by_source"),
                "warning",
            )

    def lost_keys(self, columns: Iterable[str]) -> list[str]:
        """The columns of the table's key that a new row doesn't get.

        Args:
            columns: The columns of the rows.
        """
        if self.insert == "none":
            return []
        given = {name.lower() for name in self.inserted(columns)}
        return [target for target, _ in self.pairs() if target.lower() not in given]

    def _check_insert(self, columns: Sequence[str]) -> Iterator[Finding]:
        named = {name.lower() for name in columns}
        if not named.issuperset(name.lower() for name in self.key_columns()):
            return  # of a column that isn't there something is said already
        for name in self.lost_keys(columns):
            yield Finding(
                "GB207",
                f"new rows get no `{name}`, by which they are to be found again",
                f"Let `insert` give `{name}`, or have a column of that name before.",
                ("merge", "insert"),
            )

    def _check_expressions(self, facts: Facts, table: Sequence[Column] | None) -> Iterator[Finding]:
        """What is wrong with the expressions, each over the rows and columns that it may name."""
        rows = facts.called(SOURCE)
        names = [column.name for column in facts.columns or ()]
        given = self.update if isinstance(self.update, dict) else {}
        of_table = TableNames(table, [*(self.brought(names) if names else ()), *given], names)
        if isinstance(self.on, str):
            yield from of_table.check_both(self.on, rows, ("merge", "on"), wants="boolean")
        if isinstance(self.insert, dict):
            for name, expression in self.insert.items():
                option = ("merge", "insert", name)
                yield from check_expression(expression, rows, option, analytic=False, generators=False)
        if isinstance(self.update, dict):
            for name, expression in self.update.items():
                yield from of_table.check_both(expression, rows, ("merge", "update", name))
            yield from of_table.check_names(self.update, ("merge", "update"))
        if self.unmatched_by_source is not None:
            place = ("merge", "unmatched_by_source")
            when, update = self.unmatched_by_source.when, self.unmatched_by_source.update or {}
            if when is not None:
                yield from of_table.check(when, (*place, "when"), wants="boolean")
            for name, expression in update.items():
                yield from of_table.check(expression, (*place, "update", name))
            yield from of_table.check_names(update, (*place, "update"))

    def _check_sequence(self, expression: str, facts: Facts) -> Iterator[Finding]:
        from gem_bundle.expressions import columns_named, qualified

        named = columns_named(expression)
        if facts.columns is None:
            return
        columns = [column.name for column in facts.columns]
        if named is None or qualified(expression, TARGET, columns) is None:
            # Of a column that is nowhere something is said already.
            if all(name.lower() == SOURCE or facts.column(name) is not None for name in named or ()):
                yield Finding(
                    "GB214",
                    f"it can't be told what `{expression}` is of a row of the table",
                    "Make a column of it before, and name that.",
                    ("merge", "sequence_by"),
                )
            return
        written = {name.lower() for name in self.inserted(columns)} | {
            target.lower() for target, _ in self.pairs()
        }
        kept = {name.lower() for name in self.updated(columns)}
        for name in named:
            inserts = self.insert == "none" or name.lower() in written
            updates = self.update == "none" or name.lower() in kept
            if not (inserts and updates):
                yield Finding(
                    "GB207",
                    f"the table doesn't get `{name}` with each change, and can't tell whether one is late",
                    f"Let `update` and `insert` have `{name}`.",
                    ("merge", "sequence_by"),
                )

    def change(self, before: Mapping[str, Any]) -> OptionChange:
        """What other options of the merge do."""
        now = self.model_dump(mode="json")
        # What an earlier version wrote down may lack options, and have a text or null for a list.
        with suppress(ValidationError):
            given = {name: value for name, value in before.items() if value is not None}
            before = type(self).model_validate(given).model_dump(mode="json")
        if before == now:
            return OptionChange("continues", "it says the same in other words")
        if any(now[name] != before.get(name) for name in ("on", "sequence_by")):
            return OptionChange(
                "mixed",
                "rows that the table has by the old key and sequence are matched by the new ones",
                "Write into another table, or be certain that the keys of the rows there are unique.",
            )
        return OptionChange("from_now_on", "changes that come from now on are merged by the new rules")


def merged_or_added(merge: MergeOptions | None) -> OptionChange:
    """What it means to a table that rows change those with their key from now on, or no longer do.

    Args:
        merge: How they do from now on; None when they are added.
    """
    if merge is not None:
        return OptionChange(
            "mixed",
            "rows from now on change those with their key, and as rows were added so far, a key may be there "
            "several times",
            "Be certain that the keys of the rows there are unique, and accept the change. Else write into "
            "another table, under another id.",
        )
    return OptionChange(
        "mixed",
        "rows from now on are added beside those with their key, which they changed so far",
        "Write into another table, under another id. Or accept the change, if that is meant.",
    )


def check_rows(
    sequence_by: Iterable[str], delete_when: str | None, facts: Facts, option: str
) -> Iterator[Finding]:
    """What is wrong with what puts changes in order, and with what tells deletes.

    Args:
        sequence_by: What tells which of the changes of a key is the last.
        delete_when: What holds for changes that delete; None for no such changes.
        facts: The rows.
        option: The option that has the two.
    """
    from gem_bundle.expressions import check_order

    for expression in sequence_by:
        yield from check_order(expression, facts.called(SOURCE), (option, "sequence_by"))
    if delete_when is not None:
        place = (option, "delete_when")
        yield from check_expression(
            delete_when,
            facts.called(SOURCE),
            place,
            wants="boolean",
            analytic=False,
            generators=False,
        )


def check_keys(names: Iterable[str], facts: Facts, place: Place) -> Iterator[Finding]:
    """Columns of a key that can't be compared for equality.

    Args:
        names: The columns.
        facts: The rows.
        place: The option that names them.
    """
    for name in names:
        column = facts.column(name)
        if column is not None and column.type is not None and without_equality(column.type):
            yield Finding(
                "GB213",
                f"`{name}` is {column.type}, and it can't be told whether two of them are equal",
                "Take other columns for the key.",
                place,
            )


def _one_of_a_key(facts: Facts) -> bool:
    """Whether there may be an operator that leaves one row of a key."""
    return any(o.kind in {"aggregate", "deduplicate", "unknown"} for o in facts.operators)
