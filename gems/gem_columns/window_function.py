"""The transform `window_function`: columns computed over the rows around each row."""

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, model_validator

from gem_bundle import Facts, Field, Finding, Options, Transform
from gem_bundle.expressions import analyse, check_expression, project
from gem_bundle.schema import type_of, with_article
from gem_bundle.types import Expression, ExpressionList, interval_length
from gem_columns.select import with_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_bundle.expressions import Analysis

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_BEHIND = re.compile(r"\s*((ignore|respect)\s+nulls|filter\s*\(.*\))?\s*", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"(.+?)(\s+(asc|desc))?(\s+nulls\s+(first|last))?", re.IGNORECASE | re.DOTALL)
_BOUND = re.compile(
    r"unbounded\s+(preceding|following)|current\s+row|(?P<by>.+?)\s+(preceding|following)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_MOST_ROWS = 2**31 - 1
_TIMES = frozenset({"timestamp", "timestamp_ntz"})
# What Spark 4.2 refuses as what a frame by values is of, in both of its modes.
_NO_RANGE = frozenset({"string", "char", "varchar", "boolean", "binary", "void", "array", "struct"})
_NO_RANGE_BY = {
    "number": _TIMES,
    "interval": frozenset({"float", "double"}),
    "months": frozenset({"float", "double"}),
}
_BY_TIME = "Write a length of time, as in `interval 1 hour preceding`."
# They are about places in an order, and have frames of their own.
_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"})


def _one_call(text: str) -> str:
    """An expression that is one call of a function: what else stands there would be of one row."""
    match = _CALL.match(text)
    end = _closing(text, match.end()) if match is not None else None
    if end is None or not _BEHIND.fullmatch(text[end:]):
        raise ValueError(
            f"`{text}` is more than one call of a function, such as `sum(amount)`; compute the rest in a "
            "`with_columns` behind it"
        )
    return text


def _closing(text: str, start: int) -> int | None:
    """Where the bracket is closed that was opened just before."""
    depth, quote, escaped = 1, "", False
    for position in range(start, len(text)):
        character = text[position]
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote != "`"
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if not depth:
                return position + 1
    return None


def _bound(text: str) -> str:
    if not _BOUND.fullmatch(text.strip()):
        raise ValueError(
            f"`{text}` is no bound: write `unbounded preceding`, `3 preceding`, `current row`, `1 "
            "following`, or for a range of time `interval 1 hour preceding`"
        )
    return text.strip()


def _reach(bound: str) -> tuple[str, Fraction | None]:
    """How far from the row a bound is: of what it is a number, and how many, those before it negative.

    Where that can't be told of the text, there is no number.
    """
    match = _BOUND.fullmatch(bound)
    assert match is not None, "it was checked"
    words = bound.lower().split()
    if match["by"] is None:
        return ("row", Fraction()) if words[0] == "current" else (words[1], None)
    sign = -1 if words[-1] == "preceding" else 1
    if _NUMBER.fullmatch(match["by"]):
        return "number", sign * Fraction(match["by"])
    if words[0] != "interval":
        return "", None
    try:
        months, microseconds = interval_length(match["by"])
    except ValueError:
        return "interval", None
    if not months:
        return "interval", Fraction(sign * microseconds)
    # How long a month is depends on where it stands.
    return "months", None if microseconds else Fraction(sign * months)


WindowCall = Annotated[Expression, AfterValidator(_one_call)]
Bound = Annotated[str, AfterValidator(_bound)]


class FrameOptions(Options):
    """Which of the rows around count (SQL reference: *Window frame*)."""

    unit: Literal["rows", "range"] = Field(
        "rows",
        description="How far it reaches is said in `rows`, or as a `range` of the values of `order_by`.",
    )
    start: Bound = Field(
        "unbounded preceding",
        description="Where it begins.",
        examples=["6 preceding", "interval 1 hour preceding"],
    )
    end: Bound = Field("current row", description="Where it ends.", examples=["unbounded following"])

    @model_validator(mode="after")
    def _has_rows(self) -> "FrameOptions":
        (first, begins), (last, ends) = _reach(self.start), _reach(self.end)
        if first == "following":
            raise ValueError("a frame can't begin at `unbounded following`")
        if last == "preceding":
            raise ValueError("a frame can't end at `unbounded preceding`")
        for kind, far, bound in ((first, begins, self.start), (last, ends, self.end)):
            if self.unit == "rows" and (
                kind in {"interval", "months"}
                or (kind == "number" and far is not None and (far.denominator > 1 or abs(far) > _MOST_ROWS))
            ):
                raise ValueError(f"`{bound}` is no number of rows: write a whole one, or say `unit: range`")
        alike = first == last or "row" in (first, last)
        if alike and begins is not None and ends is not None and begins > ends:
            raise ValueError(
                f"no row is between `{self.start}` and `{self.end}`: the start is behind the end"
            )
        return self

    def moved(self) -> list[str]:
        """Of what kinds the bounds by values are: ``number``, ``interval``, ``months`` or not known."""
        matches = [(bound, _BOUND.fullmatch(bound)) for bound in (self.start, self.end)]
        return [_reach(bound)[0] for bound, match in matches if match is not None and match["by"]]


class WindowFunctionOptions(Options):
    """Options of the transform `window_function`, from the SQL reference's *Window functions*."""

    default_change = "from_now_on"

    columns: dict[str, WindowCall] = Field(
        min_length=1,
        description="The columns to compute, as a mapping of name to one call of a window function or an "
        "aggregate function.",
        examples=[{"place": "row_number()", "before": "lag(amount)", "total": "sum(amount)"}],
    )
    partition_by: ExpressionList = Field(
        [],
        description="Rows that agree in these expressions are around each other; by default all are, in one "
        "task.",
        examples=[["page"]],
    )
    order_by: ExpressionList = Field(
        [],
        description="Their order: expressions, each with `asc` (default) or `desc` and `nulls first` or "
        "`nulls last` behind it where wanted.",
        examples=[["at", "id desc"]],
    )
    frame: FrameOptions | None = Field(
        None,
        description="Which of them count for aggregates: by default those up to the row and its equals, "
        "without `order_by` all. Functions of places (`row_number`, `lag` …) have frames of their own.",
        examples=[{"start": "6 preceding"}],
    )

    @model_validator(mode="after")
    def _frame_has_its_order(self) -> "WindowFunctionOptions":
        names = [name.lower() for name in self.columns]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise ValueError(f"`{doubled}` stands twice in `columns`: Spark ignores case")
        if self.frame is None:
            return self
        if self.frame.unit == "range" and self.frame.moved() and len(self.order_by) != 1:
            raise ValueError("a `range` by values needs one expression in `order_by`, whose values it is of")
        return self


class WindowFunction(Transform[WindowFunctionOptions]):
    """Compute columns over the rows around each row: places, earlier values, running totals.

    A column that exists is replaced where it stands; new ones come last. All rows of a partition are
    needed at once, so it is for batch pipelines and static inputs; a stream has windows over event time in
    `aggregate`.

    In visual tools: Sequence, WindowFunction.
    """

    example = {"columns": {"place": "row_number()"}, "partition_by": ["page"], "order_by": ["amount desc"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows with the computed columns."""
        from pyspark.sql.functions import expr

        return inputs[0].withColumns({name: expr(text) for name, text in self._texts().items()})

    def infer(self, *inputs: Facts) -> Facts:
        """The input's columns, replaced and extended."""
        (facts,) = inputs
        texts = self._texts()
        made = project(texts, facts)
        behind = with_operators(facts, texts)
        if facts.columns is None or made is None:
            return behind.with_columns(None)
        new = {column.name.lower(): column for column in made}
        known = {column.name.lower() for column in facts.columns}
        kept = [new.get(column.name.lower(), column) for column in facts.columns]
        return behind.with_columns([*kept, *(c for c in made if c.name.lower() not in known)])

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Expressions are over columns that exist, and functions of places have an order."""
        (facts,) = inputs
        options = self.options
        for position, text in enumerate(options.partition_by):
            yield from check_expression(
                text, facts, ("partition_by", position), wants="order", analytic=False, generators=False
            )
        for position, text in enumerate(options.order_by):
            match = _KEY.fullmatch(text)
            assert match is not None, "an expression is not empty"
            found = list(
                check_expression(
                    match[1], facts, ("order_by", position), wants="order", analytic=False, generators=False
                )
            )
            yield from found or self._range(match[1], facts)
        for name, text in options.columns.items():
            place = ("columns", name)
            found = list(check_expression(f"{text} over ()", facts, place, generators=False))
            yield from found
            called = _called(text)
            if called in _RANKS and not options.order_by:
                message = f"`{called}` is about places in an order, and there is none"
                yield Finding("GB205", message, "Say which in `order_by`.", place)
            elif not found and _is_scalar(called, analyse(text, facts.columns, name=name)):
                yield Finding(
                    "GB212",
                    f"`{called}` is neither a window function nor an aggregate function",
                    "Compute it in a `with_columns`.",
                    place,
                )

    def _range(self, key: str, facts: Facts) -> "Iterator[Finding]":
        """Whether a frame by values can be of those of a key."""
        frame = self.options.frame
        kind = (
            analyse(key, facts.columns).column.type if frame is not None and frame.unit == "range" else None
        )
        read = None if kind is None else type_of(kind)
        if frame is None or read is None:
            return
        for moved in dict.fromkeys(frame.moved()):
            if read.name in _NO_RANGE | _NO_RANGE_BY.get(moved, frozenset()):
                by = "a number" if moved == "number" else "a length of time" if moved else "a value"
                yield Finding(
                    "GB213",
                    f"`{key}` is {with_article(kind)}, from which nothing is {by} away",
                    _BY_TIME if read.name in _TIMES else "Order by a number or a time, or say `unit: rows`.",
                    "frame",
                )

    def _texts(self) -> dict[str, str]:
        """The columns as SQL has them."""
        options = self.options
        parts = []
        if options.partition_by:
            parts.append(f"partition by {', '.join(options.partition_by)}")
        if options.order_by:
            parts.append(f"order by {', '.join(options.order_by)}")
        frame = options.frame
        reach = "" if frame is None else f" {frame.unit} between {frame.start} and {frame.end}"
        return {
            name: f"{text} over ({' '.join(parts)}{'' if _called(text) in _RANKS else reach})"
            for name, text in options.columns.items()
        }


def _is_scalar(called: str, found: "Analysis") -> bool:
    """Whether a call is certain to be of a function of one row, since its type is known."""
    known = found.parsed and found.column.type is not None
    return known and not found.aggregates and called not in _RANKS | _VALUES


_VALUES = frozenset({"first_value", "last_value", "nth_value", "first", "last", "any_value"})


def _called(text: str) -> str:
    match = _CALL.match(text)
    return match[1].lower() if match is not None else ""
