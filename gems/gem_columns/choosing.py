"""Columns chosen by their names, a pattern or their types, for the transforms that work on many at once."""

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, model_validator

from gem_bundle import Facts, Field, Options
from gem_bundle.diagnostics import suggest
from gem_bundle.schema import type_of
from gem_bundle.types import StringList

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_ALONE = {"array", "map", "struct", "interval"}


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"`{text}` is no regular expression: {error}") from None
    return text


def _kinds(names: list[str]) -> list[str]:
    found = []
    for name in names:
        plain = name.strip().lower()
        kind = None if plain in _ALONE | {"number"} else type_of(plain)
        if plain not in _ALONE | {"number"} and (kind is None or kind.parts or kind.fields):
            known = ["number", "string", "boolean", "date", "timestamp", "binary", *sorted(NUMBERS | _ALONE)]
            raise ValueError(f"`{name}` is no type. {suggest(plain, known, what='types')}")
        found.append(plain if kind is None else kind.name)
    return found


Pattern = Annotated[str, AfterValidator(_pattern)]
Kinds = Annotated[StringList, AfterValidator(_kinds)]


class ChoiceOptions(Options):
    """Which columns: those that meet all that is said, but for those that are left out."""

    columns: StringList | None = Field(
        None,
        min_length=1,
        description="Columns by their names.",
        examples=[["page", "team"]],
        change="from_now_on",
    )
    matching: Pattern | None = Field(
        None,
        description="A regular expression that is found in the names, in any case.",
        examples=["^src_", "_(at|on)$"],
        change="from_now_on",
    )
    types: Kinds | None = Field(
        None,
        min_length=1,
        description="Types, without what stands in brackets: `decimal`, `array`. `number` is every number.",
        examples=[["string"], ["date", "timestamp"]],
        change="from_now_on",
    )
    except_columns: StringList = Field(
        [], description="Columns that are left out, by their names.", change="from_now_on"
    )
    except_matching: Pattern | None = Field(
        None, description="Columns that are left out, by a regular expression.", change="from_now_on"
    )
    except_types: Kinds = Field(
        [],
        description="Columns that are left out, by their types.",
        examples=[["binary"]],
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _something_said(self) -> "ChoiceOptions":
        if not any((self.columns, self.matching, self.types, *self._exceptions())):
            raise ValueError("say which columns: by `columns`, `matching` or `types`, or what is left out")
        return self

    def _exceptions(self) -> tuple[Any, ...]:
        return self.except_columns, self.except_matching, self.except_types

    def chooses(self, name: str, kind: str | None) -> bool | None:
        """Whether it means a column; None where that depends on a type that isn't known.

        Args:
            name: Its name.
            kind: Its type, without what stands in brackets.
        """
        if self.columns is not None and name.lower() not in {known.lower() for known in self.columns}:
            return False
        if name.lower() in {known.lower() for known in self.except_columns}:
            return False
        if self.matching is not None and not re.search(self.matching, name, re.IGNORECASE):
            return False
        if self.except_matching is not None and re.search(self.except_matching, name, re.IGNORECASE):
            return False
        if kind is None:
            return None if self.types is not None or self.except_types else True
        if self.types is not None and not _among(kind, self.types):
            return False
        return not _among(kind, self.except_types)


def _among(kind: str, types: "Iterable[str]") -> bool:
    names = set(types)
    family = "interval" if kind.startswith("interval") else kind
    return family in names or (kind in NUMBERS and "number" in names)


def kinds_of(df: "DataFrame") -> list[tuple[str, str | None]]:
    """The columns of a DataFrame, each with its type without what stands in brackets."""
    return [
        (field.name, re.split(r"[<(]", field.dataType.simpleString(), maxsplit=1)[0].strip())
        for field in df.schema
    ]


def kinds_known(facts: Facts) -> "Sequence[tuple[str, str | None]] | None":
    """The same of what is known before a start; None where the columns aren't."""
    if facts.columns is None:
        return None
    types = [None if column.type is None else type_of(column.type) for column in facts.columns]
    return [
        (column.name, None if kind is None else kind.name)
        for column, kind in zip(facts.columns, types, strict=True)
    ]
