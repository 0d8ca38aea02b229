"""The transform `join`: two inputs side by side."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, field_validator, model_validator

from gem_bundle import (
    REJECTED_HERE,
    Column,
    Facts,
    Field,
    Finding,
    JoinOperator,
    Kept,
    Lineage,
    Made,
    Operator,
    OptionChange,
    Options,
    Rejects,
    Transform,
    combined,
    entering,
    reason,
)
from gem_bundle.expressions import (
    analyse,
    asked_by,
    asked_of_pairs,
    backquoted,
    check_expression,
    check_steady_columns,
    equal_keys,
    equal_parts,
    equalities_of_inputs,
    join_condition,
    kept_by,
    made_of_inputs,
    missing_names,
    only_narrows,
    terms_of_semi_join,
)
from gem_bundle.lineage import MAYBE_NULL, Equality, column_keys, same
from gem_bundle.operators import LACKING, JoinType, any_of
from gem_bundle.types import Expression, StringList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_PARTNER = "__gem_bundle_partner"
_SPELLINGS = {
    "leftouter": "left",
    "rightouter": "right",
    "outer": "full",
    "fullouter": "full",
    "semi": "left_semi",
    "leftsemi": "left_semi",
    "anti": "left_anti",
    "leftanti": "left_anti",
}


def _join_type(value: object) -> object:
    """Spark's own spellings: ``left_outer``, ``leftouter``, ``LEFT OUTER``."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower().replace(" ", "_")
    return _SPELLINGS.get(text.replace("_", ""), text)


class JoinOptions(Options):
    """Options of the transform `join`, from the guide's *Join operations*."""

    how: Annotated[JoinType, BeforeValidator(_join_type)] = Field(
        "inner",
        description="Which rows stay: pairs only (`inner`), also the unpaired ones of one side or of both "
        "(`left`, `right`, `full`), the first input's rows that have a partner (`left_semi`) or "
        "none (`left_anti`), or every row with every row (`cross`).",
        examples=["left"],
        change="mixed",
    )
    on: StringList | None = Field(
        None,
        min_length=1,
        description="Columns that both inputs have and whose values must be equal; they come once, in front.",
        examples=[["page"]],
        change="mixed",
    )
    condition: Expression | None = Field(
        None,
        description="Which rows are pairs, as a boolean expression with the inputs' names in front "
        "of their columns.",
        examples=["orders.id = payments.order_id and payments.at <= orders.at + interval 1 hour"],
        change="mixed",
    )

    unmatched: Literal["drop", "reject"] = Field(
        "drop",
        description="What becomes of rows of the first input without a partner in an inner join: they are "
        "left out, or with `reject` handed to the output `rejected`. The other input can't be a stream then.",
        change="from_now_on",
    )

    @field_validator("on")
    @classmethod
    def _each_once(cls, on: list[str] | None) -> list[str] | None:
        seen: set[str] = set()
        for name in on or ():
            if name.lower() in seen:
                raise ValueError(f"`{name}` stands there twice")
            seen.add(name.lower())
        return on

    @model_validator(mode="after")
    def _one_way_to_pair(self) -> "JoinOptions":
        given = [name for name in ("on", "condition") if getattr(self, name) is not None]
        if self.how == "cross" and given:
            raise ValueError(f"a cross join has no `{given[0]}`; use `how: inner`")
        if self.how != "cross" and len(given) != 1:
            raise ValueError("give either `on` or `condition`, or `how: cross`")
        if self.unmatched == "reject" and self.how != "inner":
            raise ValueError("`unmatched: reject` goes with `how: inner`, which leaves such rows out")
        return self


class Join(Transform[JoinOptions]):
    """Put two inputs side by side.

    With `on` the named columns come first and once, then the other columns of the first input, then
    those of the second. With `condition` all columns of both come; where both have a name, the inputs' names
    tell them apart, here and in the next node: `orders.id`, `payments.id`. The inputs' names
    are their ids, or the keys of `inputs: {left: …, right: …}`, which a join of a node with itself
    needs.

    What two streams wait for is state; watermarks on both and a range of time in the condition bound it.

    In visual tools: Join.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, 2)
    example = {"how": "left", "on": ["page"]}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The joined rows."""
        return self._joined(inputs, self.options.how)

    def _joined(self, inputs: "tuple[DataFrame, ...]", how: str) -> "DataFrame":
        from pyspark.sql.functions import expr

        options = self.options
        left, right = (df.alias(name) for df, name in zip(inputs, self._names(), strict=True))
        if options.on is not None:
            return left.join(right, on=options.on, how=how)
        if options.condition is not None:
            return left.join(right, on=expr(options.condition), how=how)
        return left.crossJoin(right)

    def rejects(self) -> bool:
        """Whether rows of the first input without a partner are rejected."""
        return self.options.unmatched == "reject"

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows of the first input without a partner."""
        from pyspark.sql.functions import array

        why = f"`{self._names()[1]}` has no row for it"
        return Rejects(self._joined(inputs, "left_anti"), array(reason("unmatched", why)))

    def told_apart(self, *inputs: "DataFrame") -> "DataFrame | None":
        """The pairs, and the rows without a partner."""
        from pyspark.sql.functions import col, lit

        left, right = inputs
        joined = self._joined((left, right.withColumn(_PARTNER, lit(True))), "left")
        return joined.withColumn(REJECTED_HERE, col(_PARTNER).isNull()).drop(_PARTNER)

    def infer_rejected(self, *inputs: Facts) -> Facts:
        """Of the first input; a table beside it changes nothing about that."""
        return super().infer_rejected(inputs[0])

    def infer(self, *inputs: Facts) -> Facts:
        """The columns of both, or of the first alone; of two streams a join keeps state."""
        left, right = self._called(inputs)
        operator = self._operator(left, right)
        if operator.how not in {"left_semi", "left_anti"}:
            keys = {name.lower() for name in self.options.on or ()}
            left, of_left = entering(left, lambda column: column.name.lower() in keys)
            right, of_right = entering(right, lambda column: column.name.lower() in keys)
            operator = replace(operator, event_times=(of_left, of_right))
        return combined(operator, [left, right]).with_all_columns(self._columns(left, right))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The columns of both; the condition decides which pairs there are, and of streams rows are kept."""
        left, right = self._called(inputs)
        # As the nodes before have them: there two columns of one name may be told apart.
        known = [column_keys(facts.columns) for facts in inputs]
        made = self._columns(left, right)
        keys = column_keys(made)
        if made is None or keys is None or known[0] is None or known[1] is None:
            return None
        found: dict[str, Made] = {}
        options = self.options
        on = [name.lower() for name in options.on or ()]
        for key, column in zip(keys, made, strict=True):
            if column.name.lower() in on:
                sides = {"right": [1], "full": [0, 1]}.get(options.how, [0])
                found[key] = Made("=", frozenset(f"{side}:{column.name.lower()}" for side in sides))
                continue
            side = 0 if any(column is other for other in left.columns or ()) else 1
            names = known[side] or []
            of_side = (left, right)[side].columns or ()
            name = next((n for n, other in zip(names, of_side, strict=True) if other is column), None)
            uses = None if name is None else frozenset({f"{side}:{name}"})
            # Where a row may lack its partner, all of the partner's columns may be null.
            lacking = side in LACKING.get(options.how, ())
            found[key] = Made("=", uses, frozenset({MAYBE_NULL}) if lacking else uses)
        condition, columns = self._condition(), [left.columns, right.columns]
        if condition is not None:
            rows = made_of_inputs(condition, columns)
        else:
            rows = Made(" ".join(on), frozenset(f"{side}:{name}" for side in (0, 1) for name in on))
        rows = Made(f"{options.how} {rows.rule}", rows.uses)
        both = left.streaming is not False and right.streaming is not False
        kept = self._kept(left, right, rows) if both else None
        asks = rows.uses if condition is None else asked_by(condition, columns)
        semi = options.how == "left_semi" and condition is not None
        terms = terms_of_semi_join(condition or "", columns) if semi else ()
        equals = self._equal(columns) if options.how in {"inner", "left_semi"} else ()
        return Lineage(found, rows, kept, asks=asks, equals=equals, terms=terms)

    def _equal(self, columns: "Sequence[Sequence[Column] | None]") -> tuple[Equality, ...]:
        """What of both inputs is to be equal."""
        condition = self._condition()
        if condition is not None:
            return equalities_of_inputs(condition, columns)
        each = ([frozenset({f"{side}:{name.lower()}"}) for side in (0, 1)] for name in self.options.on or ())
        return tuple(Equality((one, other)) for one, other in each)

    def _kept(self, left: Facts, right: Facts, rows: Made) -> Kept:
        """What is kept of two streams: all rows where no watermark lets any go, by what is equal."""
        condition, columns = self._condition(), [left.columns, right.columns]
        if condition is None:
            on = [name.lower() for name in self.options.on or ()]
            types = tuple(of.type for name in on if (of := left.column(name)) is not None)
            parts = tuple(same(name, side) for name in on for side in (0, 1))
            return Kept((rows,), types, rows=True, parts=parts)
        keys = rows
        one, other = self._names()
        if self.options.how == "inner":
            keys = kept_by(condition, left, right, (one, other))
        parts = equal_parts(condition, columns)
        pairs = asked_of_pairs(condition, columns, self.options.how)
        return Kept((keys,), equal_keys(condition, columns), rows=True, parts=parts, pairs=pairs)

    def _condition(self) -> str | None:
        """Which rows are pairs, as a condition; None where that can't be written as one."""
        left, right = self._names()
        if self.options.on is None or left.lower() == right.lower():
            return self.options.condition
        names = [backquoted(name) for name in self.options.on]
        return " and ".join(f"{backquoted(left)}.{name} = {backquoted(right)}.{name}" for name in names)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns of `on` are in both inputs, and a condition can tell the inputs apart."""
        names = self._names()
        options = self.options
        if self.rejects() and inputs[1].streaming:
            yield Finding(
                "GB205",
                f"a row without a partner can't be told: `{names[1]}` is a stream, whose rows may still come",
                f"Read `{names[1]}` with `mode: batch`, or join with `how: left` and a range of time.",
                "unmatched",
            )
        if options.condition is not None and names[0].lower() == names[1].lower():
            yield Finding(
                "GB205",
                f"the condition can't tell the inputs `{names[0]}` and `{names[1]}` apart: Spark "
                "ignores case",
                f"Name them, for example `inputs: {{left: {names[0]}, right: {names[1]}}}`.",
                "condition",
            )
            return
        for facts, name in zip(inputs, names, strict=False):
            for finding in missing_names(options.on or (), facts, "on"):
                message = finding.message.replace("there is", f"the input `{name}` has", 1)
                yield replace(finding, message=message)
        if options.condition is not None:
            left, right = self._called(inputs)
            both = combined(Operator("join"), [left, right]).with_all_columns(
                None if left.columns is None or right.columns is None else [*left.columns, *right.columns]
            )
            yield from check_expression(
                options.condition,
                both,
                "condition",
                wants="boolean",
                analytic=False,
                generators=False,
                stars=False,
            )
            yield from check_steady_columns(options.condition, both, "condition")
        for facts in inputs:
            for name in options.on or ():
                yield from check_steady_columns(backquoted(name), facts, "on")

    def change(self, option: str, before: Any) -> OptionChange | None:
        """An outer join keeps all that an inner one does, and a longer span all that a shorter one does."""
        if option == "how" and before in {"left", "right", "full"} and self.options.how == "inner":
            return OptionChange("from_now_on")
        condition = self.options.condition
        if option == "condition" and self.options.how == "inner" and before and condition:
            return OptionChange("from_now_on") if only_narrows(before, condition) else None
        return None

    def _called(self, inputs: tuple[Facts, ...]) -> tuple[Facts, Facts]:
        """Both inputs under their names, as `apply` gives them to Spark."""
        left, right = (facts.called(name) for facts, name in zip(inputs, self._names(), strict=True))
        return left, right

    def _operator(self, left: Facts, right: Facts) -> JoinOperator:
        how, names = self.options.how, self._names()
        made = JoinOperator(
            option=next((name for name in ("condition", "on") if getattr(self.options, name)), "how"),
            how=how,
            how_option="how",
            names=(names[0], names[1]),
            watermarked=(left.watermarked, right.watermarked),
            times=(left.time, right.time),
        )
        if self.options.condition is not None:
            known = left.columns is not None and right.columns is not None
            both = [*(left.columns or ()), *(right.columns or ())] if known else None
            made = replace(made, clock=analyse(self.options.condition, both).clock)
            return join_condition(self.options.condition, left, right, made.names).of(made)
        equal = self.options.on is not None
        carried = any_of(_key_carries(name, left, right) for name in self.options.on or ())
        return replace(made, equality=equal, event_time_key=carried, bounded=(False, False))

    def _names(self) -> tuple[str, ...]:
        return self.input_names or ("left", "right")

    def _columns(self, left: Facts, right: Facts) -> list[Column] | None:
        how, on = self.options.how, self.options.on
        one_sided = how in {"left_semi", "left_anti"}
        if left.columns is None or (right.columns is None and not one_sided):
            return None
        of_left, of_right = list(left.columns), list(right.columns or ())
        keys: list[Column] = []
        for name in on or ():
            first = _take(name, of_left)
            second = _take(name, of_right) if not one_sided else first
            if first is None or second is None:
                return None
            keys.append(_key(first, second, how))
        return [*keys, *of_left] if one_sided else [*keys, *of_left, *of_right]


def _key_carries(name: str, left: Facts, right: Facts) -> bool | None:
    """Whether a column of `on` is event time with a watermark on one of the sides."""
    first, second = left.column(name), right.column(name)
    if first is None or second is None:
        return None
    carried = any_of([first.watermarked, second.watermarked])
    # Where the types differ Spark compares casts, and a cast carries no watermark.
    same = first.type is not None and first.type == second.type
    return None if carried and not same else carried


def _take(name: str, columns: list[Column]) -> Column | None:
    """Remove the column of that name and return it; None when no column or several have it."""
    found = [column for column in columns if column.name.lower() == name.lower()]
    if len(found) != 1:
        return None
    columns.remove(found[0])
    return found[0]


def _key(left: Column, right: Column, how: JoinType) -> Column:
    """A column of `on`: it is the right one in a right join, and made of both in a full join."""
    if how == "right":
        return right
    if how == "full":
        return Column(left.name, left.type if left.type == right.type else None)
    return left
