"""Columns packed into one column of messages, and messages taken apart into columns.

For transforms between columns and a format, such as ``to_json`` and ``from_json``: the gem knows the
format, and this is what such transforms have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator

from gem_bundle.diagnostics import Finding
from gem_bundle.expressions import (
    check_expression,
    check_steady_columns,
    find,
    keyed,
    made_of,
    missing_columns,
    project,
    reference,
    split_alias,
)
from gem_bundle.facts import Column
from gem_bundle.lineage import Lineage, Made, passed, uses_of
from gem_bundle.schema import with_article

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from gem_bundle.facts import Facts

__all__ = ["PARSED", "Packing", "ParseMode", "Unpacking"]

_HIDDEN = "__gem_bundle_"
PARSED = f"{_HIDDEN}parsed"
"""A name for the column of what was read, which `Unpacking.placed` leaves out."""

ParseMode = Annotated[
    Literal["PERMISSIVE", "FAILFAST"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]
"""What Spark does with a message that can't be read: make its fields null, or fail."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Columns that become one column of messages.

    Args:
        columns: What is packed: expressions as a list, or by the name of their field; None for all columns.
        column: The name of the column with the messages.
        keep: Whether the input's columns go on, the packed ones too.
    """

    columns: Sequence[str] | Mapping[str, str] | None
    column: str
    keep: bool

    def packed(self) -> SparkColumn:
        """A struct of what is packed."""
        from pyspark.sql.functions import col, expr, struct

        if self.columns is None:
            return struct(col("*"))
        return struct(
            *(expr(b) if isinstance(key, int) else expr(b).alias(key) for key, b in keyed(self.columns))
        )

    def fields(self, facts: Facts) -> list[Column] | None:
        """The fields of that struct; None where they aren't known.

        Args:
            facts: Those of the input.
        """
        if self.columns is None:
            return None if facts.columns is None else list(facts.columns)
        for key, body in keyed(self.columns):
            text, alias = split_alias(body)
            if isinstance(key, int) and alias is None and reference(text) is None and not text.endswith("*"):
                return None  # Spark gives it a name of its own
        columns = dict(self.columns) if hasattr(self.columns, "keys") else list(self.columns)
        found = project(columns, facts)
        return None if found is None else list(found)

    def placed(self, df: DataFrame, message: SparkColumn) -> DataFrame:
        """The messages, alone or beside the input's columns.

        Args:
            df: The input.
            message: The messages, made of `packed`.
        """
        if self.keep:
            return df.withColumns({self.column: message})
        return df.select(message.alias(self.column))

    def infer(self, facts: Facts, kind: str) -> Facts:
        """The column of messages, in the place of one of its name or behind the kept ones.

        Args:
            facts: Those of the input.
            kind: Its type.
        """
        message = Column(self.column, kind)
        if not self.keep:
            return facts.with_columns([message])
        if facts.columns is None:
            return facts
        name = message.name.lower()
        columns = [message if c.name.lower() == name else c for c in facts.columns]
        return facts.with_columns(columns if message in columns else [*columns, message])

    def lineage(self, facts: Facts, writing: str) -> Lineage | None:
        """The message of what is packed; kept columns as they are.

        Args:
            facts: Those of the input.
            writing: How messages are written, as a text that is the same wherever they are written so.
        """
        through = passed(facts.columns)
        if through is None:
            return None
        if self.columns is None:
            packed, rules = [*through.values()], list(through)
        else:
            packed = [made_of(split_alias(body)[0], facts.columns) for _, body in keyed(self.columns)]
            rules = [f"{key} {body}" for key, body in keyed(self.columns)]
        order = tuple(use for made in packed for use in made.in_order)
        message = Made(f"{rules} {writing}", uses_of(packed), order=order, whole="packed")
        return Lineage((through if self.keep else {}) | {self.column.lower(): message})

    def check(self, facts: Facts) -> Iterator[Finding]:
        """The expressions are over columns that exist; a star stands for all of them.

        They are those of an option `columns`.

        Args:
            facts: Those of the input.
        """
        for key, expression in keyed(self.columns or ()):
            if not split_alias(expression)[0].endswith("*"):
                yield from check_expression(
                    expression, facts, ("columns", key), aggregates="allowed", generators=False
                )


@dataclass(frozen=True, slots=True)
class Unpacking:
    """A column of messages whose fields become columns.

    Args:
        column: The column, or a field of a struct.
        keep: Whether the input's other columns go on, in front of the fields.
        fields: The fields; None where they aren't known.
    """

    column: str
    keep: bool
    fields: Sequence[Column] | None

    @property
    def source(self) -> str | None:
        """The column that its fields replace, in lower case; None for a field of a struct, which stays."""
        parts = reference(self.column)
        if parts is None:
            return self.column.lower()
        return parts[0].lower() if len(parts) == 1 else None

    @staticmethod
    def read_once(df: DataFrame, one: SparkColumn) -> DataFrame:
        """The rows, with what their message was read as in the column `PARSED`.

        A condition about it would be put before a plain projection, with a copy of it, so that each message
        would be read several times. None is put before a generator.

        Args:
            df: The input.
            one: What was read, as an array of one.
        """
        from pyspark.sql.functions import explode

        return df.select("*", explode(one).alias(PARSED))

    def placed(self, df: DataFrame, fields: str = PARSED) -> DataFrame:
        """The fields, alone or behind the kept columns.

        Args:
            df: The input, and behind its columns what was read, in columns whose names begin with
                ``__gem_bundle_``.
            fields: The struct of the fields.
        """
        if not self.keep:
            return df.select(f"{fields}.*")
        hidden = [name for name in df.columns if name.startswith(_HIDDEN)]
        # Dropped first: a field may have the same name.
        kept = df.drop(self.source) if self.source else df
        return kept.select("*", f"{fields}.*").drop(*hidden)

    def infer(self, facts: Facts) -> Facts:
        """The fields' columns, behind the kept ones.

        Args:
            facts: Those of the input.
        """
        if not self.keep:
            return facts.with_columns(self.fields)
        kept = self._kept(facts)
        return facts.with_columns(None if kept is None or self.fields is None else [*kept, *self.fields])

    def lineage(self, facts: Facts, reading: str, fits: str | None) -> Lineage | None:
        """Each field of the message, with its type and how it is read; kept columns as they are.

        Args:
            facts: Those of the input.
            reading: How messages are read, as a text that is the same wherever they are read so.
            fits: What they have to fit, where rows whose message doesn't are left out.
        """
        message = made_of(self.column, facts.columns)
        through = passed(facts.columns) if self.keep else {}
        if self.fields is None or through is None:
            return None
        made = {
            field.name.lower(): Made(
                f"{field.name}: {field.type} {reading} {message.rule}", message.uses, whole="unpacked"
            )
            for field in self.fields
        }
        columns = {key: kept for key, kept in through.items() if key != self.source} | made
        taken = Made() if fits is None else Made(f"fits {fits} {reading} {message.rule}", message.uses)
        return Lineage(columns, taken, unpacks=fits is None)

    def check(
        self, facts: Facts, types: tuple[str, ...], wanted: str, hint: str, *, certain: bool = True
    ) -> Iterator[Finding]:
        """The column exists and has a type that can be read, and no kept one has the name of a field.

        The options are called `column` and `keep`.

        Args:
            facts: Those of the input.
            types: How the types begin that can be read.
            wanted: What is read from what, behind a semicolon: ``JSON is read from text or bytes``.
            hint: What to do where the type is another one.
            certain: Whether Spark refuses any other type.
        """
        yield from missing_columns([self.column], facts, "column")
        parts = reference(self.column)
        column = find(parts, facts.columns or ()) if parts else None
        if column is not None and column.type and not column.type.lower().startswith(types):
            message = f"`{self.column}` is {with_article(column.type)}; {wanted}"
            yield Finding("GB205", message, hint, "column", "error" if certain else "warning")
        yield from check_steady_columns(self.column, facts, "column")
        kept = {each.name.lower() for each in self._kept(facts) or () if self.keep}
        for field in self.fields or ():
            if field.name.lower() in kept:
                yield Finding(
                    "GB205",
                    f"there will be two columns `{field.name}`: the field, and a kept one",
                    "Rename or drop the other column first.",
                    "keep",
                    "warning",
                )

    def _kept(self, facts: Facts) -> list[Column] | None:
        if facts.columns is None:
            return None
        return [each for each in facts.columns if each.name.lower() != self.source]
