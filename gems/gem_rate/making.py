"""How the source `generate` makes values: what its options say, as expressions over the number of a row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, model_validator

from gem_bundle import Field, Options
from gem_bundle.schema import literal
from gem_bundle.types import Interval, interval_length

_SCALE = 2**53  # what a double holds of a hash
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"`{value}` is no time: write it as `2026-01-31T10:00:00`") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _fixed(step: str) -> str:
    months, microseconds = interval_length(step)
    if months or not microseconds:
        raise ValueError("a step has a length of its own, such as `1 minute`: neither months nor nothing")
    return step


Step = Annotated[Interval, AfterValidator(_fixed)]
Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_utc)]


class Sequence(Options):
    """Numbers one after the other."""

    start: int = Field(0, ge=-(2**62), le=2**62, description="The first number.")
    step: int = Field(1, ge=-(2**31), le=2**31, description="From one to the next.")


class Integer(Options):
    """Whole numbers, all between two as likely."""

    min: int = Field(ge=-(2**62), le=2**62, description="The smallest.")
    max: int = Field(ge=-(2**62), le=2**62, description="The largest.")

    @model_validator(mode="after")
    def _in_order(self) -> Integer:
        if self.min > self.max:
            raise ValueError("`min` is above `max`")
        if self.max - self.min >= _SCALE:
            raise ValueError("`min` and `max` are too far apart")
        return self


class Number(Options):
    """Numbers between two."""

    min: float = Field(allow_inf_nan=False, description="The smallest.")
    max: float = Field(allow_inf_nan=False, description="The largest.")
    digits: int | None = Field(None, ge=0, le=15, description="Digits behind the point.")

    @model_validator(mode="after")
    def _in_order(self) -> Number:
        if self.min > self.max:
            raise ValueError("`min` is above `max`")
        return self


class Normal(Options):
    """Numbers around a mean, as a normal distribution has them."""

    mean: float = Field(0.0, allow_inf_nan=False, description="Their mean.")
    deviation: float = Field(1.0, ge=0, allow_inf_nan=False, description="Their standard deviation.")
    digits: int | None = Field(None, ge=0, le=15, description="Digits behind the point.")


class Time(Options):
    """Times; those that are given here without a time zone are in UTC."""

    start: Moment = Field(description="The first, or the earliest.", examples=["2026-01-31T10:00:00"])
    step: Step | None = Field(
        None, description="From one row to the next.", examples=["1 second", "10 minutes"]
    )
    end: Moment | None = Field(None, description="Without a `step`: before when, all times as likely.")

    @model_validator(mode="after")
    def _one_way(self) -> Time:
        if (self.step is None) == (self.end is None):
            raise ValueError("give either a `step` or an `end`")
        if self.end is not None and self.end <= self.start:
            raise ValueError("`end` must be after `start`")
        return self


Plain = bool | int | float | str


class Making(Options):
    """How the values of a column are made: one of these, and how many are null."""

    sequence: Sequence | None = Field(None, description="Numbers one after the other, as `bigint`.")
    integer: Integer | None = Field(None, description="Whole numbers between two, as `bigint`.")
    number: Number | None = Field(None, description="Numbers between two, as `double`.")
    normal: Normal | None = Field(None, description="Numbers around a mean, as `double`.")
    boolean: float | None = Field(None, ge=0, le=1, description="How large a part is true.", examples=[0.5])
    time: Time | None = Field(None, description="Times, as `timestamp`.")
    choice: list[Plain] | dict[str, float] | None = Field(
        None,
        min_length=1,
        description="One of these values, or of these texts with how likely each is in relation to the "
        "others.",
        examples=[["home", "cart"], {"home": 5, "cart": 1}],
    )
    text: str | None = Field(
        None,
        min_length=1,
        description="A text in which each `#` is some digit and each `?` some letter.",
        examples=["??-###"],
    )
    nulls: float = Field(0.0, ge=0, le=1, description="How large a part is null.", examples=[0.1])

    @model_validator(mode="after")
    def _one_way(self) -> Making:
        given = [name for name in WAYS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"say one way to make values: {', '.join(f'`{name}`' for name in WAYS)}")
        if isinstance(self.choice, dict) and (
            any(weight < 0 for weight in self.choice.values()) or not any(self.choice.values())
        ):
            raise ValueError("how likely a value is can't be negative, nor zero for all")
        if isinstance(self.choice, list) and len({_kind(value) for value in self.choice}) > 1:
            raise ValueError("the values of a `choice` must be of one kind; put texts in quotes")
        return self


WAYS = ("sequence", "integer", "number", "normal", "boolean", "time", "choice", "text")
_KINDS = {
    "sequence": "bigint",
    "integer": "bigint",
    "number": "double",
    "normal": "double",
    "boolean": "boolean",
    "time": "timestamp",
    "text": "string",
}


def kind_of(made: Making) -> str:
    """The Spark type of a column."""
    if made.choice is not None:
        return _kind(made.choice[0]) if isinstance(made.choice, list) else "string"
    return next(kind for way, kind in _KINDS.items() if getattr(made, way) is not None)


def sql_of(made: Making, column: str, seed: int, number: str) -> str:
    """The expression of a column's values.

    Args:
        made: How they are made.
        column: Its name.
        seed: What they depend on, beside that and the row's number.
        number: The column with the row's number.
    """
    chance = _Chance(column, seed, number)
    value = _value(made, chance, number)
    return f"case when {chance.part('nulls')} >= {made.nulls!r}D then {value} end" if made.nulls else value


class _Chance:
    """Numbers that look like chance, and are the same for a row in every run."""

    def __init__(self, column: str, seed: int, number: str) -> None:
        self._given = f"{seed}L, {_literal(column.lower())}, {number}"

    def part(self, what: str) -> str:
        """A number from 0 up to 1, another one for everything it decides."""
        return f"(pmod(xxhash64({self._given}, {_literal(what)}), {_SCALE}L) / {_SCALE}D)"


def _value(made: Making, chance: _Chance, number: str) -> str:
    if made.sequence is not None:
        return f"({made.sequence.start}L + {number} * {made.sequence.step}L)"
    if made.integer is not None:
        count = made.integer.max - made.integer.min + 1
        return f"({made.integer.min}L + cast(floor({chance.part('integer')} * {count}L) as bigint))"
    if made.number is not None:
        low, high = made.number.min, made.number.max
        return _rounded(f"({low!r}D + {chance.part('number')} * {high - low!r}D)", made.number.digits)
    if made.normal is not None:
        # Box and Muller: two even chances make one of a normal distribution.
        far = f"sqrt(-2D * ln(1D - {chance.part('far')}))"
        drawn = f"{far} * cos(2D * pi() * {chance.part('turned')})"
        return _rounded(f"({made.normal.mean!r}D + {made.normal.deviation!r}D * {drawn})", made.normal.digits)
    if made.boolean is not None:
        return f"({chance.part('boolean')} < {made.boolean!r}D)"
    if made.time is not None:
        return _time(made.time, chance, number)
    if made.text is not None:
        return _text(made.text, chance)
    assert made.choice is not None, "one way is given"
    return _choice(made.choice, chance)


def _time(made: Time, chance: _Chance, number: str) -> str:
    first = round(made.start.timestamp() * 1_000_000)
    if made.step is not None:
        _, step = interval_length(made.step)
        return f"timestamp_micros({first}L + {number} * {step}L)"
    assert made.end is not None, "without a step there is an end"
    span = round(made.end.timestamp() * 1_000_000) - first
    return f"timestamp_micros({first}L + cast(floor({chance.part('time')} * {span}L) as bigint))"


def _choice(values: list[Plain] | dict[str, float], chance: _Chance) -> str:
    part = chance.part("choice")
    if isinstance(values, list):
        listed = ", ".join(map(_literal, values))
        return f"element_at(array({listed}), cast(floor({part} * {len(values)}) as int) + 1)"
    total, reached, cases = sum(values.values()), 0.0, []
    likely = [(value, weight) for value, weight in values.items() if weight]
    for value, weight in likely[:-1]:
        reached += weight
        cases.append(f"when {part} < {reached / total!r}D then {_literal(value)}")
    last = _literal(likely[-1][0])
    return f"case {' '.join(cases)} else {last} end" if cases else last


def _text(pattern: str, chance: _Chance) -> str:
    pieces: list[str] = []
    for position, character in enumerate(pattern):
        alphabet = {"#": "0123456789", "?": _LETTERS}.get(character)
        if alphabet is None:
            pieces.append(_literal(character))
        else:
            place = f"cast(floor({chance.part(f'text {position}')} * {len(alphabet)}) as int) + 1"
            pieces.append(f"substring('{alphabet}', {place}, 1)")
    return f"concat({', '.join(pieces)})"


def _rounded(text: str, digits: int | None) -> str:
    return text if digits is None else f"round({text}, {digits})"


def _kind(value: Plain) -> str:
    return {bool: "boolean", int: "bigint", float: "double", str: "string"}[type(value)]


def _literal(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}L"
    if isinstance(value, float):
        return f"{value!r}D"
    return literal(value)
