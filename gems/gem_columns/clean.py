"""The transform `clean`: texts in order, and values in the place of nulls."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from math import isfinite
from operator import and_, or_
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, GemError, Lineage, Made, Operator, Options, Transform
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import (
    asked_by,
    backquoted,
    check_expression,
    made_of,
    missing_names,
    nulls_left_out,
    terms_of,
)
from gem_bundle.lineage import MAYBE_NULL, passed
from gem_bundle.schema import literal, with_article
from gem_bundle.types import StringList
from gem_columns.choosing import NUMBERS, kinds_known, kinds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

WhiteSpace = Literal["keep", "trim", "collapse", "remove"]
Case = Literal["keep", "lower", "upper", "title"]
Characters = Literal["letters", "digits", "punctuation", "control"]

# `(?U)` counts the letters and the white space of all alphabets, and no-break spaces.
_CHARACTERS = {
    "letters": r"\p{L}\p{M}",
    "digits": r"\p{Nd}",
    "punctuation": r"\p{P}\p{S}",
    "control": r"\p{Cc}&&[^\s]",
}
_ENDS, _SPACES = r"(?U)^\s+|\s+$", r"(?U)\s+"
_WHOLE = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)", re.IGNORECASE)


def _holds(kind: str | None, whole: str, number: float) -> bool:
    """Whether a type of numbers has one, rounded where it has digits behind the point."""
    if kind in _WHOLE:
        bits = _WHOLE[kind]
        return isfinite(number) and number == int(number) and -(1 << bits) <= number < 1 << bits
    match = _DECIMAL.fullmatch(whole)
    if match is None:
        return True
    digits, behind = int(match[1]), int(match[2] or 0)
    unit = Fraction(10) ** -behind
    return isfinite(number) and abs(Fraction(str(number))) < unit * 10**digits - unit / 2


class NullOptions(Options):
    """What stands in the place of nulls, by the kind of the column."""

    text: str | None = Field(None, description="For columns of type string.", examples=["unknown"])
    number: int | float | None = Field(None, description="For columns with numbers.", examples=[0])
    boolean: bool | None = Field(None, description="For columns of type boolean.")

    @model_validator(mode="after")
    def _one_at_least(self) -> "NullOptions":
        if self.text is None and self.number is None and self.boolean is None:
            raise ValueError("give a `text`, a `number` or a `boolean`")
        return self


class CleanOptions(Options):
    """Options of the transform `clean`; they work in the order in which they stand here."""

    columns: StringList | None = Field(
        None,
        min_length=1,
        description="The columns to clean; by default all.",
        examples=[["name", "city"]],
        change="from_now_on",
    )
    remove: list[Characters] = Field(
        [],
        description="Characters that are taken out of texts, of any alphabet: `letters`, `digits`, "
        "`punctuation` (symbols too), `control` (those that nobody sees, white space aside).",
        examples=[["control"], ["letters", "punctuation"]],
        change="from_now_on",
    )
    white_space: WhiteSpace = Field(
        "keep",
        description="What becomes of white space in texts, line breaks and no-break spaces included: `trim` "
        "takes it from both ends, `collapse` also makes one space of what is within, `remove` leaves none.",
        change="from_now_on",
    )
    case: Case = Field(
        "keep",
        description="Texts in one case: `lower`, `upper`, or `title` for the first letter of each word.",
        change="from_now_on",
    )
    empty_as_null: bool = Field(
        False, description="Make a null of a text that is empty by then.", change="from_now_on"
    )
    drop_rows: Literal["never", "any", "all"] = Field(
        "never",
        description="Leave rows out in which `any` of the columns is null, or `all` are.",
        change="from_now_on",
    )
    nulls: NullOptions | None = Field(
        None,
        description="Values for the nulls that are left.",
        examples=[{"text": "unknown", "number": 0}],
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _does_something(self) -> "CleanOptions":
        if not (self.for_texts() or self.drop_rows != "never" or self.nulls is not None):
            raise ValueError("say what to clean, for example `white_space: trim`")
        return self

    def for_texts(self) -> bool:
        """Whether texts are changed, nulls aside."""
        return bool(self.remove) or self.white_space != "keep" or self.case != "keep" or self.empty_as_null


class Clean(Transform[CleanOptions]):
    """Put texts in order, and fill or leave out nulls.

    Columns keep their names, types and places; a column of another type stays as it is. Each row is cleaned
    by itself, so a stream keeps no state. Names are taken as they stand, without backquotes.

    In visual tools: DataCleansing.
    """

    example = {"white_space": "collapse", "empty_as_null": True, "nulls": {"number": 0}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The cleaned rows.

        Raises:
            GemError: When a column isn't there, or a number doesn't fit into one.
        """
        from pyspark.sql.functions import col

        (df,) = inputs
        options = self.options
        kinds = kinds_of(df)
        for name in options.columns or ():
            if name.lower() not in {known.lower() for known, _ in kinds}:
                hint = suggest(name, df.columns, what="columns")
                raise GemError("GB205", f"there is no column `{name}`", hint, "columns")
        whole = {field.name: field.dataType.simpleString() for field in df.schema}
        for problem in self._misfits(kinds, whole):
            raise GemError(problem.code, problem.message, problem.hint, "nulls")
        chosen = [(name, kind) for name, kind in kinds if self._means(name)]
        texts = {n: self._text(col(backquoted(n))) for n, kind in chosen if kind == "string"}
        if options.for_texts() and texts:
            df = df.withColumns(texts)
        there = [col(backquoted(name)).isNotNull() for name, _ in chosen]
        if options.drop_rows != "never":
            df = df.filter(reduce(and_ if options.drop_rows == "any" else or_, there))
        types = {field.name: field.dataType for field in df.schema}
        filled = {name: self._filled(col(backquoted(name)), kind, types[name]) for name, kind in chosen}
        made = {name: value for name, value in filled.items() if value is not None}
        return df.withColumns(made) if made else df

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns keep their types, and event time is never touched."""
        (facts,) = inputs
        return facts if self.options.drop_rows == "never" else facts.after(Operator("filter", "drop_rows"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of itself; those that are looked at for nulls decide which rows stay."""
        (facts,) = inputs
        through, kinds = passed(facts.columns), kinds_known(facts)
        if through is None or kinds is None or len(through) != len(kinds):
            return None
        rule = repr(self.options.model_dump(exclude={"columns", "drop_rows"}))
        made = dict(through)
        for key, (name, kind) in zip(through, kinds, strict=True):
            if self._means(name) and (kind is None or self._touches(kind)):
                nulls, filling = self._nulls(kind, key), self._filling(name, kind)
                opaque = Made(f"clean {rule}", frozenset({f"0:{key}"}))
                made[key] = replace(made_of(filling, facts.columns) if filling else opaque, nulls=nulls)
        tested = [(name, kind) for name, kind in kinds if self._means(name)]
        if self.options.drop_rows == "never" or not tested:
            return Lineage(made)
        word = "and" if self.options.drop_rows == "any" else "or"
        condition = f" {word} ".join(f"{backquoted(name)} is not null" for name, _ in tested)
        rows = made_of(condition, facts.columns)
        if self.options.empty_as_null and any(kind in {"string", None} for _, kind in tested):
            return Lineage(made, Made(f"{rows.rule} of clean {rule}", rows.uses))
        return Lineage(
            made,
            rows,
            asks=asked_by(condition, [facts.columns]),
            only_nulls=nulls_left_out(condition, [facts.columns]),
            terms=terms_of(condition, facts.columns),
        )

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns exist, something of them is cleaned, and what fills them fits."""
        (facts,) = inputs
        options = self.options
        yield from missing_names(options.columns or (), facts, "columns")
        kinds = kinds_known(facts) or ()
        yield from self._misfits(kinds, {c.name: c.type for c in facts.columns or ()})
        for name in dict.fromkeys(name.lower() for name, _ in kinds if self._means(name)):
            yield from check_expression(backquoted(name), facts, "columns")
        if options.drop_rows != "never":
            return
        chosen = [(name, kind) for name, kind in kinds if self._means(name)]
        for name, kind in chosen if options.columns is not None else ():
            if kind is not None and not self._touches(kind):
                message = f"`{name}` is {with_article(kind)}, and nothing that is said here cleans one"
                yield Finding("GB205", message, "Leave it out.", "columns", "warning")

    def _means(self, name: str) -> bool:
        columns = self.options.columns
        return columns is None or name.lower() in {known.lower() for known in columns}

    def _touches(self, kind: str) -> bool:
        """Whether columns of a type are changed."""
        return (kind == "string" and self.options.for_texts()) or self._fills(kind)

    def _fills(self, kind: str) -> bool:
        """Whether columns of a type get a value for their nulls."""
        nulls = self.options.nulls or NullOptions.model_construct()
        if kind in NUMBERS:
            return nulls.number is not None
        return {"string": nulls.text, "boolean": nulls.boolean}.get(kind) is not None

    def _filling(self, name: str, kind: str | None) -> str:
        """What becomes of a column as an expression, where it is nothing but filled; else empty."""
        nulls = self.options.nulls
        if nulls is None or kind is None or not self._fills(kind):
            return ""
        if kind == "string":
            given = "" if self.options.for_texts() else literal(nulls.text or "")
        elif kind == "boolean":
            given = "true" if nulls.boolean else "false"
        else:
            given = f"cast({int(nulls.number or 0)} as {kind})" if kind in _WHOLE else ""
        return f"coalesce({backquoted(name)}, {given})" if given else ""

    def _nulls(self, kind: str | None, key: str) -> frozenset[str] | None:
        """What makes a cleaned column null, as `Made.nulls` has it."""
        if kind is None:
            return None
        if self._fills(kind):
            return frozenset()
        return frozenset({MAYBE_NULL if self.options.empty_as_null else f"0:{key}"})

    def _misfits(
        self, kinds: "Sequence[tuple[str, str | None]]", types: "Mapping[str, str | None]"
    ) -> "Iterator[Finding]":
        """A finding for each column whose type doesn't hold the number for its nulls."""
        number = self.options.nulls.number if self.options.nulls is not None else None
        for name, kind in kinds if number is not None else ():
            whole = types.get(name) or ""
            if number is not None and self._means(name) and not _holds(kind, whole, number):
                fraction = kind in _WHOLE and isfinite(number) and number != int(number)
                yield Finding(
                    "GB213",
                    f"`{name}` is {with_article(whole)}, which can't hold {number}",
                    f"Give {'a whole number' if fraction else 'another one'}, or name the other `columns`.",
                    ("nulls", "number"),
                )

    def _text(self, value: "Column") -> "Column":
        """A text in order."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        options = self.options
        for characters in options.remove:
            value = F.regexp_replace(value, f"(?U)[{_CHARACTERS[characters]}]", "")
        if options.white_space in {"trim", "collapse"}:
            value = F.regexp_replace(value, _ENDS, "")
        if options.white_space in {"collapse", "remove"}:
            value = F.regexp_replace(value, _SPACES, " " if options.white_space == "collapse" else "")
        case = {"lower": F.lower, "upper": F.upper, "title": F.initcap}.get(options.case)
        value = value if case is None else case(value)
        return F.when(value != "", value) if options.empty_as_null else value

    def _filled(self, column: "Column", kind: str | None, of: "DataType") -> "Column | None":
        """A column with a value for its nulls; None where it gets none."""
        from pyspark.sql import functions as F  # noqa: N812

        nulls = self.options.nulls
        if nulls is None:
            return None
        if kind == "string" and nulls.text is not None:
            return F.coalesce(column, F.lit(nulls.text))
        if kind == "boolean" and nulls.boolean is not None:
            return F.coalesce(column, F.lit(nulls.boolean))
        if kind in NUMBERS and nulls.number is not None:
            # As a text, since a double doesn't hold every decimal.
            text = str(int(nulls.number) if kind in _WHOLE else nulls.number)
            return F.coalesce(column, F.lit(text).cast(of))
        return None
