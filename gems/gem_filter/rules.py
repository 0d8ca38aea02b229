"""The rules of `expect`: conditions, and short forms for what is asked most."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, create_model, model_validator

from gem_bundle import Column, Field, Options
from gem_bundle.diagnostics import listed_names
from gem_bundle.schema import literal
from gem_bundle.types import Expression
from gem_filter.patterns import refused_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

WITHIN_WATERMARK = "within_watermark"

Action = Literal["reject", "warn", "drop", "fail"]
Value = str | int | float | bool


def _kind_of(value: Value) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _in_order(values: tuple[Any, Any]) -> tuple[Any, Any]:
    low, high = values
    if _kind_of(low) != _kind_of(high):
        raise ValueError(f"{low!r} and {high!r} are of two kinds, and nothing is between them")
    if isinstance(low, str) is isinstance(high, str) and low > high:
        raise ValueError(f"no value is between {low} and {high}: the lower one comes first")
    return values


def _taken_by_java(text: str) -> str:
    if (why := refused_pattern(text)) is not None:
        raise ValueError(f"`{text}` is no regular expression: {why}")
    return text


def _how_unique(given: Any) -> Any:
    if not isinstance(given, bool) and given != WITHIN_WATERMARK:
        raise ValueError(
            "`unique` is true, for the rows of a micro-batch, or `within_watermark`, for those of earlier "
            "ones too, as far as the watermark's delay goes back"
        )
    return given


class LengthOptions(Options):
    """How long a text may be."""

    min: int | None = Field(None, ge=0, description="How many characters it has at least.")
    max: int | None = Field(None, ge=0, description="How many characters it has at most.")

    @model_validator(mode="after")
    def _some(self) -> "LengthOptions":
        if self.min is None and self.max is None:
            raise ValueError("a length has a `min`, a `max`, or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no length is between {self.min} and {self.max}")
        return self


_IN: dict[str, Any] = {
    "in": (
        list[Value] | None,
        Field(None, min_length=1, description="It is one of these values.", examples=[["web", "app"]]),
    )
}
# `in` is a word of Python's, which can't stand in a class.
_WithIn: Any = create_model("_WithIn", __base__=Options, **_IN)


class KeyOptions(Options):
    """Where a value is to be found."""

    input: str = Field(description="The name of the node's input that has it, which isn't a stream.")
    column: str = Field(description="The column of that input.")


class RuleOptions(_WithIn):
    """A rule: a condition, or a column and what has to be true of it."""

    condition: Expression | None = Field(
        None, description="A condition that has to be true.", examples=["amount > 0"]
    )
    column: Expression | None = Field(
        None, description="The column that the rule is about, or an expression.", examples=["page"]
    )
    not_null: bool = Field(False, description="It isn't null.")
    between: Annotated[tuple[Value, Value], AfterValidator(_in_order)] | None = Field(
        None, description="It is one of two values, or between them.", examples=[[0, 100]]
    )
    matches: Annotated[str, AfterValidator(_taken_by_java)] | None = Field(
        None,
        min_length=1,
        description="A regular expression, in Java's syntax, is found in it; `^` and `$` stand for its ends.",
        examples=["^[A-Z]{2}$"],
    )
    length: int | LengthOptions | None = Field(
        None, description="It has so many characters.", examples=[2, {"min": 1, "max": 80}]
    )
    foreign_key: KeyOptions | None = Field(
        None,
        description="It is among the values of a column of another input, which isn't a stream.",
        examples=[{"input": "pages", "column": "page"}],
    )
    unique: Annotated[bool | Literal["within_watermark"], BeforeValidator(_how_unique)] = Field(
        False,
        description="No other row of the micro-batch, or of the table in a batch, has the same value; of "
        "rows that have, one is let through. With `within_watermark` no row of an earlier micro-batch had it "
        "either that was let through, for as long as the watermark's delay.",
        examples=[True, "within_watermark"],
    )
    action: Action | None = Field(
        None, description="What becomes of a row that breaks it; by default the node's `action`."
    )
    null: Literal["broken", "pass"] = Field(
        "broken", description="Whether null, where the condition is neither true nor false, breaks the rule."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "RuleOptions":
        forms = [name for name in _FORMS if getattr(self, name) not in (None, False)]
        if self.condition is not None and (self.column is not None or forms):
            raise ValueError("a rule is a `condition`, or a `column` and what has to be true of it, not both")
        if self.condition is None and self.column is None:
            raise ValueError("a rule needs a `condition`, or a `column` and what has to be true of it")
        if self.column is not None and not forms:
            named = listed_names(_FORMS)
            raise ValueError(f"nothing is said of the `column`: give one of {named}")
        if self.not_null and self.null == "pass":
            raise ValueError("`not_null` is broken by null, so `null: pass` can't be said with it")
        for value in (*(getattr(self, "in") or ()), *(self.between or ())):
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(
                    f"{value} can't be written so: say `isnan(amount)` or `amount < double('infinity')` as a "
                    "`condition`, with the column's name"
                )
        if isinstance(self.length, int) and self.length < 0:
            raise ValueError("a length can't be negative")
        for name in ("foreign_key", "unique"):
            if name in forms and len(forms) > 1:
                raise ValueError(f"`{name}` stands alone: write the rest as another rule")
        return self


_FORMS = ("not_null", "in", "between", "matches", "length", "foreign_key", "unique")
_KEY = "__gem_bundle_key_"


class Rule(NamedTuple):
    """A rule as `expect` goes by it.

    Args:
        name: Its name.
        condition: What has to be true.
        action: What becomes of a row that breaks it.
        null_passes: Null doesn't break it.
        option: Where the condition, or the column, stands.
        key: Where the column's values are to be found; None where the condition says all.
        unique: Which value no other row may have; None where the condition says all.
        words: What has to be true, for people; the condition, where it is an empty text.
    """

    name: str
    condition: str
    action: Action
    null_passes: bool
    option: tuple[str, ...]
    key: "ForeignKey | None" = None
    unique: "Unique | None" = None
    words: str = ""

    @property
    def by(self) -> "ForeignKey | Unique | None":
        """What has to be found out of a row before the condition can be asked."""
        return self.key or self.unique


class ForeignKey(NamedTuple):
    """Where a column's values are to be found.

    Args:
        value: The column, or an expression.
        input: The name of the input.
        column: Its column.
        found: The name of a column that is true where it was found.
    """

    value: str
    input: str
    column: str
    found: str


class Unique(NamedTuple):
    """A value that no other row may have.

    Args:
        rule: The name of its rule.
        value: The column, or an expression.
        found: The name of a column that is true of one of the rows that have it.
        within_watermark: No row of an earlier micro-batch may have had it either.
    """

    rule: str
    value: str
    found: str
    within_watermark: bool = False


def rules_of(rules: "Mapping[str, Expression | RuleOptions]", action: Action) -> list[Rule]:
    """The rules of a node.

    Args:
        rules: As the options have them.
        action: What becomes of rows, where a rule doesn't say it.
    """
    found = []
    for name, given in rules.items():
        place: tuple[str, ...] = ("rules", name)
        if isinstance(given, str):
            found.append(Rule(name, given, action, False, place))
            continue
        if given.foreign_key is not None:
            key = ForeignKey(
                given.column or "", given.foreign_key.input, given.foreign_key.column, f"{_KEY}{len(found)}"
            )
            condition = f"if({_operand(key.value)} is null, null, {key.found} is not null)"
            words = f"{key.value} is in {key.input}.{key.column}"
            passes = given.null == "pass"
            place = (*place, "column")
            found.append(Rule(name, condition, given.action or action, passes, place, key, words=words))
            continue
        if given.unique:
            within = given.unique == WITHIN_WATERMARK
            alone = Unique(name, given.column or "", f"{_KEY}{len(found)}", within)
            condition = f"if({_operand(alone.value)} is null, null, {alone.found})"
            words = f"{alone.value} is unique{' within the watermark' if within else ''}"
            passes = given.null == "pass"
            place = (*place, "column")
            found.append(
                Rule(name, condition, given.action or action, passes, place, unique=alone, words=words)
            )
            continue
        if given.condition is None:
            condition, place = " and ".join(_conditions(given)), (*place, "column")
        else:
            condition, place = given.condition, (*place, "condition")
        found.append(Rule(name, condition, given.action or action, given.null == "pass", place))
    return found


def tried_rules(rules: "Sequence[Rule]", df: "DataFrame") -> list[Rule]:
    """Rules of which no row ends the query: where Spark would end it, the condition is null.

    Args:
        rules: The rules.
        df: The rows that they are asked of, whose types tell what Spark would make of a text.
    """
    if not rules or df.sparkSession.conf.get("spark.sql.ansi.enabled") == "false":
        return list(rules)  # Spark makes nulls by itself, and other numbers of texts.
    from gem_bundle.expressions import tried

    columns = [Column(field.name, field.dataType.simpleString()) for field in df.schema]
    found = []
    for rule in rules:
        condition = tried(rule.condition, columns).expression
        words = rule.words or rule.condition
        key, unique = rule.key, rule.unique
        if key is not None:
            key = key._replace(value=tried(key.value, columns).expression)
        if unique is not None:
            unique = unique._replace(value=tried(unique.value, columns).expression)
        found.append(rule._replace(condition=condition, words=words, key=key, unique=unique))
    return found


def _conditions(rule: RuleOptions) -> "Iterator[str]":
    """The short forms as conditions, in Spark's SQL."""
    column = _operand(rule.column or "")
    if rule.not_null:
        yield f"{column} is not null"
    among = getattr(rule, "in")
    if among is not None:
        yield f"{column} in ({', '.join(map(_literal, among))})"
    if rule.between is not None:
        low, high = map(_literal, rule.between)
        yield f"{column} between {low} and {high}"
    if rule.matches is not None:
        yield f"{column} rlike {_literal(rule.matches)}"
    if isinstance(rule.length, int):
        yield f"length({column}) = {rule.length}"
    elif rule.length is not None:
        if rule.length.min is not None:
            yield f"length({column}) >= {rule.length.min}"
        if rule.length.max is not None:
            yield f"length({column}) <= {rule.length.max}"


def _operand(column: str) -> str:
    return column if column.replace("_", "a").isalnum() else f"({column})"


def _literal(value: Value) -> str:
    """A value as Spark's SQL writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return literal(value) if isinstance(value, str) else repr(value)
