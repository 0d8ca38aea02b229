"""Rows that are made up over a schema: the same for the same seed, on every machine.

Each column has numbers of its own, so that one more column changes nothing in the others, and one more
row nothing in those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gem_bundle.testing.values import MisfitError, Reader, as_single

if TYPE_CHECKING:
    from gem_bundle.schema import DataType, StructField

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
_START = datetime(2026, 1, 1)  # in the session's time zone
_MOST = {"tinyint": 100, "smallint": 1_000, "int": 1_000, "bigint": 1_000}
_NUMBERS = frozenset({*_MOST, "float", "double", "decimal"})
_TIMES = frozenset({"timestamp", "timestamp_ntz", "date"})
_FRACTION = Annotated[float, Field(ge=0, le=1)]
_LENGTH = Annotated[int, Field(ge=0, le=1_000)]

Make = Callable[[int], Any]


class ColumnShape(BaseModel):
    """How the values of a column, a field, or the items of an array are made."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    value: Any = Field(None, description="Always this value.")
    choices: list[Any] | dict[str, Annotated[float, Field(ge=0)]] | None = Field(
        None,
        min_length=1,
        description="One of these values, each as often; or by weight: `{ok: 9, failed: 1}`.",
    )
    range: tuple[Any, Any] | None = Field(
        None, description="Something from the first to the second: numbers, dates or timestamps."
    )
    start: Any = Field(None, description="Advance from here, row by row: a number, a date or a timestamp.")
    step: Any = Field(None, description="How far a row is from the one before it: `1 minute`, `1`.")
    jitter: Any = Field(
        None, description="How far a value may be from its place, so that rows come out of order."
    )
    nulls: _FRACTION = Field(0.0, description="How many of the values are null, as a fraction of 1.")
    length: _LENGTH | tuple[_LENGTH, _LENGTH] | None = Field(
        None, description="How long a text, an array or a map is, also from one length to another."
    )
    fields: dict[str, ColumnShape] = Field(default_factory=dict, description="The fields of a struct.")
    items: ColumnShape | None = Field(None, description="The items of an array.")
    keys: ColumnShape | None = Field(None, description="The keys of a map.")
    values: ColumnShape | None = Field(None, description="The values of a map.")

    @model_validator(mode="after")
    def _one_way(self) -> ColumnShape:
        given = self.model_fields_set & {"value", "choices", "range", "start"}
        if len(given) > 1:
            raise ValueError(f"`{'` and `'.join(sorted(given))}` don't go together")
        if given & {"value", "choices", "range"} and self.model_fields_set & {"step", "jitter"}:
            raise ValueError("`step` and `jitter` go with `start`")
        if isinstance(self.choices, dict) and not sum(self.choices.values()):
            raise ValueError("all weights of `choices` are 0")
        return self


def generate(
    fields: Sequence[StructField],
    rows: int,
    seed: int = 0,
    columns: Mapping[str, ColumnShape | Mapping[str, Any]] | None = None,
    time_zone: str = "UTC",
) -> list[tuple[Any, ...]]:
    """Make up rows, in the form of `gem_bundle.testing.values`.

    By default a timestamp advances by a minute from row to row, numbers are between 0 and 1,000 at most,
    texts are short words, and nothing is null.

    Args:
        fields: The columns.
        rows: How many rows.
        seed: Another one gives other rows.
        columns: How the values of some columns are made.
        time_zone: The session's: of timestamps that are given without a zone.

    Raises:
        MisfitError: When there is no such column, or its type has no such values.
        pydantic.ValidationError: When a column's shape is wrong.
    """
    shapes = {name: ColumnShape.model_validate(shape) for name, shape in (columns or {}).items()}
    maker = _Maker(Reader(time_zone), str(seed))
    makes = maker.of_fields(fields, shapes, ())
    return [tuple(make(index) for make in makes) for index in range(rows)]


class _Maker:
    """Makes for each column the function that makes its values."""

    def __init__(self, reader: Reader, seed: str) -> None:
        self._reader = reader
        self._seed = seed

    def of_fields(
        self, fields: Sequence[StructField], shapes: Mapping[str, ColumnShape], path: tuple[str, ...]
    ) -> list[Make]:
        from gem_bundle.diagnostics import suggest

        names = [field.name for field in fields]
        for name in shapes:
            if name not in names:
                hint = suggest(name, names, what="columns")
                raise MisfitError(path, f"there is no column `{name}` to make values for. {hint}".rstrip())
        return [self._of(f.type, shapes.get(f.name, _ANY), (*path, f.name)) for f in fields]

    def _of(self, kind: DataType, shape: ColumnShape, path: tuple[str, ...]) -> Make:
        """The function that makes the value of a row, called with the row's number from 0."""
        # Random.random is the one method whose numbers no version of Python may change.
        chance = Random(f"{self._seed}/{'/'.join(path)}").random  # noqa: S311 (nothing to guess)
        make = self._given(kind, shape, path, chance) or self._made_up(kind, shape, path, chance)
        if not shape.nulls:
            return make

        def make_or_null(index: int) -> Any:
            value = make(index)
            return None if chance() < shape.nulls else value

        return make_or_null

    def _given(
        self, kind: DataType, shape: ColumnShape, path: tuple[str, ...], chance: Callable[[], float]
    ) -> Make | None:
        """The way that the shape asks for; None when it leaves the way to the type."""
        if "value" in shape.model_fields_set:
            constant = self._read(shape.value, kind, path)
            return lambda _: constant
        if shape.choices is not None:
            return self._choice(kind, shape.choices, path, chance)
        if shape.range is not None:
            low, high = (self._read(bound, kind, path) for bound in shape.range)
            if low is None or high is None or kind.name not in _NUMBERS | _TIMES:
                raise MisfitError(path, f"`range` is for numbers, dates and timestamps, not for `{kind}`")
            if low > high:
                raise MisfitError(path, "`range` begins with the larger value")
            return lambda _: _between(low, high, kind, chance())
        if shape.model_fields_set & {"start", "step", "jitter"}:
            return self._advancing(kind, shape, path, chance)
        return None

    def _choice(
        self,
        kind: DataType,
        choices: list[Any] | dict[str, float],
        path: tuple[str, ...],
        chance: Callable[[], float],
    ) -> Make:
        # The keys of a mapping are texts, whatever they mean.
        of_text = isinstance(choices, dict)
        values = [self._read(choice, kind, path, from_text=of_text) for choice in choices]
        weights = list(choices.values()) if isinstance(choices, dict) else [1.0] * len(values)
        total = sum(weights)

        def choose(_: int) -> Any:
            left = chance() * total
            for value, weight in zip(values, weights, strict=True):
                left -= weight
                if left < 0:
                    return value
            return values[-1]

        return choose

    def _advancing(
        self, kind: DataType, shape: ColumnShape, path: tuple[str, ...], chance: Callable[[], float]
    ) -> Make:
        if kind.name not in _NUMBERS | _TIMES:
            raise MisfitError(path, f"`start` is for numbers, dates and timestamps, not for `{kind}`")
        is_time = kind.name in _TIMES
        first = (_START.date() if kind.name == "date" else _START) if is_time else 0
        start = self._read(first if shape.start is None else shape.start, kind, path)
        default = ("1 day" if kind.name == "date" else "1 minute") if is_time else 1
        distance = _INTERVAL if is_time else kind
        step = self._read(default if shape.step is None else shape.step, distance, path)
        jitter = None if shape.jitter is None else self._read(shape.jitter, distance, path)

        def advance(index: int) -> Any:
            value = start + index * step
            return value if jitter is None else value + _between(-jitter, jitter, distance, chance())

        return advance

    def _made_up(
        self, kind: DataType, shape: ColumnShape, path: tuple[str, ...], chance: Callable[[], float]
    ) -> Make:
        """The way that suits the type."""
        name = kind.name
        if name in {"timestamp", "timestamp_ntz"}:
            return self._advancing(kind, shape, path, chance)
        if name in _NUMBERS or name == "date":
            low, high = self._usual_bounds(kind, path)
            return lambda _: _between(low, high, kind, chance())
        if name == "boolean":
            return lambda _: chance() < 0.5
        if name == "struct":
            makes = self.of_fields(kind.fields, shape.fields, path)
            return lambda index: tuple(make(index) for make in makes)
        shortest, longest = _lengths(shape, (0, 3) if kind.parts else (4, 8))

        def length() -> int:
            return shortest + int(chance() * (longest - shortest + 1))

        if name == "array":
            item = self._of(kind.parts[0], shape.items or _ANY, (*path, "items"))
            return lambda index: tuple(item(index) for _ in range(length()))
        if name == "map":
            key = self._of(kind.parts[0], shape.keys or _ANY, (*path, "keys"))
            value = self._of(kind.parts[1], shape.values or _ANY, (*path, "values"))
            return lambda index: {key(index): value(index) for _ in range(length())}
        if name == "binary":
            return lambda _: bytes(int(chance() * 256) for _ in range(length()))
        if name == "time":
            return lambda _: time(int(chance() * 24), int(chance() * 60), int(chance() * 60))
        if name == "interval" or name.startswith("interval day"):
            return lambda _: timedelta(seconds=int(chance() * 86_400))
        if name.startswith("string") or name in {"char", "varchar"}:
            most = kind.arguments[0] if kind.arguments else longest
            return lambda _: _word(min(length(), most), chance).ljust(most if name == "char" else 0)
        raise MisfitError(path, f"no values of the type `{kind}` can be made up")

    def _usual_bounds(self, kind: DataType, path: tuple[str, ...]) -> tuple[Any, Any]:
        if kind.name == "date":
            return _START.date(), _START.date() + 30 * _DAY
        if kind.name == "decimal":
            precision, scale = kind.arguments
            high = min(Decimal(1000), Decimal(10) ** (precision - scale) - Decimal(10) ** -scale)
            return self._read(0, kind, path), self._read(high, kind, path)
        return self._read(0, kind, path), self._read(_MOST.get(kind.name, 100), kind, path)

    def _read(self, value: Any, kind: DataType, path: tuple[str, ...], *, from_text: bool = False) -> Any:
        try:
            return self._reader.value(value, kind, from_text=from_text)
        except MisfitError as error:
            raise MisfitError((*path, *error.path), error.reason) from None


_ANY = ColumnShape()


def _interval_type() -> DataType:
    from gem_bundle.schema import DataType

    return DataType("interval day to second")


_INTERVAL = _interval_type()


def _between(low: Any, high: Any, kind: DataType, share: float) -> Any:
    """The value that far between two others, in steps that suit the type."""
    if kind.name in {"float", "double"}:
        value = low + share * (high - low)
        digits = max(2, 3 - Decimal(high - low).adjusted()) if high > low else 15
        value = min(max(round(value, digits), low), high)
        return as_single(value) if kind.name == "float" else value
    unit: Any = 1
    if kind.name == "decimal":
        unit = Decimal(1).scaleb(-kind.arguments[1])
    elif isinstance(low, datetime | timedelta):
        unit = _SECOND if high - low >= _SECOND else _MICROSECOND
    elif isinstance(low, date):
        unit = _DAY
    return low + int(share * (int((high - low) / unit) + 1)) * unit


def _lengths(shape: ColumnShape, usual: tuple[int, int]) -> tuple[int, int]:
    if shape.length is None:
        return usual
    return (shape.length, shape.length) if isinstance(shape.length, int) else shape.length


def _word(length: int, chance: Callable[[], float]) -> str:
    syllables = (_SYLLABLES[int(chance() * len(_SYLLABLES))] for _ in range((length + 1) // 2))
    return "".join(syllables)[:length]
