"""The transform `route`: rows dealt out to several outputs by conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import StringConstraints, model_validator

from gem_bundle import Facts, Field, Finding, Lineage, Made, Operator, Options, Transform
from gem_bundle.expressions import (
    asked_by,
    check_expression,
    check_steady,
    equalities,
    made_of,
    nulls_left_out,
    terms_of,
)
from gem_bundle.lineage import NEVER_TRUE, passed, uses_of
from gem_bundle.types import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

OutputName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


class RouteOptions(Options):
    """Options of the transform `route`."""

    conditions: dict[OutputName, Expression] = Field(
        min_length=1,
        description="The outputs, as a mapping of name to the condition for which rows go there.",
        examples=[{"large": "amount > 100", "refund": "amount < 0"}],
        change="from_now_on",
    )
    matching: Literal["first", "all"] = Field(
        "first",
        description="Where a row goes that meets several conditions: to the `first` of them, in the order in "
        "which they stand, or to `all`.",
        change="from_now_on",
    )
    rest: OutputName | None = Field(
        None,
        description="An output for the rows that meet none; without it they are left out.",
        examples=["other"],
        change="from_now_on",
    )

    @model_validator(mode="after")
    def _names_of_their_own(self) -> RouteOptions:
        if self.rest in self.conditions:
            raise ValueError(f"`rest` and a condition are both called `{self.rest}`")
        if "rejected" in {*self.conditions, self.rest}:
            raise ValueError("`rejected` is the output of rows that a gem can't use; choose another name")
        return self


class Route(Transform[RouteOptions]):
    """Deal rows out to several outputs, each with its condition.

    Other nodes take an output by its name: `input: routed.large`. A condition that is null isn't met. Outputs
    that different targets take are different queries, and each row is dealt out anew in each: so
    conditions are over the row alone, without the clock and without chance.

    In visual tools: RowDistributor.
    """

    example = {"conditions": {"large": "amount > 100", "refund": "amount < 0"}, "rest": "other"}

    def outputs(self) -> tuple[str, ...]:
        """Those of the conditions, and that of the rest."""
        rest = self.options.rest
        return (*self.options.conditions, *([] if rest is None else [rest]))

    def apply(self, *inputs: DataFrame) -> dict[str, DataFrame]:
        """The rows of each output."""
        return {name: inputs[0].filter(self._taken(name)) for name in self.outputs()}

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        return inputs[0].after(Operator("filter", "conditions"))

    def infer_output(self, output: str, *inputs: Facts) -> Facts:  # noqa: ARG002 (the same of each)
        """What was known before, in every output."""
        return self.infer(*inputs)

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; the conditions decide which rows come out where."""
        (facts,) = inputs
        through = passed(facts.columns)
        if through is None:
            return None
        made = {name: made_of(text, facts.columns) for name, text in self.options.conditions.items()}
        rule = " ".join(f"{name} {condition.rule}" for name, condition in made.items())
        decides = Made(f"{self.options.matching} {self.options.rest} {rule}", uses_of(made.values()))
        return Lineage(through, decides)

    def lineage_output(self, output: str, *inputs: Facts) -> Lineage | None:
        """All columns as they are; which rows come out goes by its condition, and by those before it."""
        (facts,) = inputs
        through = passed(facts.columns)
        conditions = self.options.conditions
        if through is None or output not in self.outputs():
            return None
        before, taken = self._before(output)
        texts = [f"not coalesce({conditions[name]}, false)" for name in before]
        texts += [f"({conditions[name]})" for name in taken]
        condition = " and ".join(texts) or "true"
        # As Spark gets them: by their order it sees that an output is empty, and asks for nothing then.
        written = [f"coalesce({conditions[name]}, false)" for name in taken]
        written += [f"not coalesce({conditions[name]}, false)" for name in before]
        if NEVER_TRUE in (asked_by(" and ".join(written), [facts.columns]) or ()):
            condition = "false"
        asks = asked_by(condition, [facts.columns])
        only = nulls_left_out(condition, [facts.columns])
        equals = equalities(condition, facts.columns)
        made, terms = made_of(condition, facts.columns), terms_of(condition, facts.columns)
        return Lineage(through, made, asks=asks, only_nulls=only, equals=equals, terms=terms)

    def check(self, *inputs: Facts) -> Iterator[Finding]:
        """Each condition is one, over columns that exist, and depends on the row alone."""
        (facts,) = inputs
        for name, text in self.options.conditions.items():
            place = ("conditions", name)
            found = list(
                check_expression(
                    text,
                    facts,
                    place,
                    wants="boolean",
                    dropped=facts.hidden,
                    analytic=False,
                    generators=False,
                )
            )
            yield from found or check_steady(text, facts, place)

    def _before(self, output: str) -> tuple[list[str], list[str]]:
        """The conditions that rows of an output don't meet, and the one that they do."""
        names = list(self.options.conditions)
        if output not in names:
            return names, []
        return names[: names.index(output)] if self.options.matching == "first" else [], [output]

    def _taken(self, output: str) -> Column:
        """Which rows an output gets."""
        from pyspark.sql.functions import coalesce, expr, lit

        met = {name: coalesce(expr(text), lit(False)) for name, text in self.options.conditions.items()}
        before, mine = self._before(output)
        taken = met[mine[0]] if mine else lit(True)
        for name in before:
            taken = taken & ~met[name]
        return taken
