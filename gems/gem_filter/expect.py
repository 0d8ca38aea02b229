"""The transform `expect`: rules that rows have to keep, and what becomes of those that don't."""

import re
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from gem_bundle import (
    Counts,
    Facts,
    Field,
    Finding,
    Lineage,
    MostRejected,
    Operator,
    Options,
    Rejects,
    Transform,
    ending,
    reason,
)
from gem_bundle.expressions import check_expression, check_steady, made_of
from gem_bundle.lineage import passed
from gem_bundle.types import Expression
from gem_filter.rules import Action, Rule, RuleOptions, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame


def _share_or_number(given: int | str) -> int | str:
    if isinstance(given, str):
        number = given.removesuffix("%").strip()
        if not given.endswith("%") or not re.fullmatch(r"\d+(\.\d+)?", number) or float(number) > 100:
            raise ValueError("write a share such as `5%`, or a number of rows")
        return f"{number}%"
    if given < 0:
        raise ValueError("a number of rows can't be negative")
    return given


class ExpectOptions(Options):
    """Options of the transform `expect`."""

    rules: dict[str, Expression | RuleOptions] = Field(
        min_length=1,
        description="What has to be true of each row, as a mapping of the rule's name to a condition, or to "
        "a condition or a column with what else the rule says.",
        examples=[{"paid": "amount > 0", "known": {"column": "page", "in": ["home", "cart"]}}],
        change="from_now_on",
    )
    action: Action = Field(
        "reject",
        description="What becomes of a row that breaks a rule: `reject` leaves it out and hands it to the "
        "output `rejected`, with all the rules it breaks; `drop` leaves it out and counts it; `warn` lets it "
        "through and counts it; `fail` ends the query, and shows it.",
        change="from_now_on",
    )

    max_rejected: Annotated[int | str, AfterValidator(_share_or_number)] | None = Field(
        None,
        description="How many rows of a micro-batch may be rejected, or which share of them: when there are "
        "more, nothing of the micro-batch is written and the query ends. In a stream the targets behind it "
        "are in one `group`.",
        examples=["5%", 1000],
        change="from_now_on",
    )


class Expect(Transform[ExpectOptions]):
    """Let the rows through that keep all rules, and reject the others, each with its reasons; or count them.

    A rule is a condition that has to be true of the row alone. False breaks it, and so does null, unless the
    rule says `null: pass`.

    With `fail` the micro-batch is not written by targets that write it as a whole, such as Delta tables and
    files; of others some rows may have gone out already.
    """

    example = {"rules": {"paid": "amount > 0", "known": {"column": "page", "in": ["home", "cart"]}}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows that keep the rules."""
        df = self._without_failing(inputs[0])
        for rule in self._rules("reject", "drop"):
            df = df.filter(_kept(rule))
        return df

    def most_rejected(self) -> MostRejected | None:
        """What `max_rejected` says."""
        given = self.options.max_rejected
        if given is None or not self.rejects():
            return None
        if isinstance(given, str):
            return MostRejected(share=float(given.removesuffix("%")) / 100)
        return MostRejected(given)

    def counts(self, *inputs: "DataFrame") -> Counts:  # noqa: ARG002 (the rules are about any of its rows)
        """The rows that break a rule which warns or drops; a row that is rejected too isn't dropped."""
        from pyspark.sql.functions import lit

        rules = {rule.name: ~_kept(rule) for rule in self._rules("warn", "drop")}
        dropping = self._rules("drop")
        if not dropping:
            return Counts(rules)
        not_rejected = [_kept(rule) for rule in self._rules("reject")]
        kept = [_kept(rule) for rule in dropping]
        return Counts(rules, reduce(and_, not_rejected, lit(True)) & ~reduce(and_, kept))

    def rejects(self) -> bool:
        """Whether one of the rules rejects."""
        return bool(self._rules("reject"))

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows that break a rule which rejects."""
        from pyspark.sql.functions import array, array_compact, when

        reasons = [when(~_kept(rule), reason(rule.name, _words(rule))) for rule in self._rules("reject")]
        return Rejects(self._without_failing(inputs[0]), array_compact(array(*reasons)))

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        return inputs[0].after(Operator("filter", "rules"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; the rules decide which rows stay."""
        (facts,) = inputs
        through = passed(facts.columns)
        if through is None:
            return None
        return Lineage(through, made_of(self._condition(), facts.columns))

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Each rule is a condition over columns that exist, and depends on the row alone."""
        (facts,) = inputs
        for rule in self._rules():
            found = list(
                check_expression(
                    rule.condition, facts, rule.option, wants="boolean", analytic=False, generators=False
                )
            )
            yield from found or check_steady(rule.condition, facts, rule.option)

    def _rules(self, *actions: Action) -> list[Rule]:
        """The rules, or those with one of some actions."""
        rules = rules_of(self.options.rules, self.options.action)
        return [rule for rule in rules if not actions or rule.action in actions]

    def _condition(self) -> str:
        """All that decides which rows stay, in a form for comparisons."""
        return (
            " and ".join(
                f"coalesce(({rule.condition}), {'true' if rule.null_passes else 'false'})"
                for rule in self._rules("reject", "drop")
            )
            or "true"
        )

    def _without_failing(self, df: "DataFrame") -> "DataFrame":
        """The same rows; one that breaks a rule which fails ends the query."""
        from pyspark.sql.functions import lit, struct, when

        for rule in self._rules("fail"):
            end = ending(self.node, rule.name, _words(rule), struct("*"))
            df = df.filter(when(_kept(rule), lit(True)).otherwise(end))
        return df


def _kept(rule: Rule) -> "Column":
    """Whether a row keeps a rule: never null."""
    from pyspark.sql.functions import coalesce, expr, lit

    return coalesce(expr(rule.condition), lit(rule.null_passes))


def _words(rule: Rule) -> "Column":
    """What is said of a row that breaks a rule."""
    from pyspark.sql.functions import expr, lit, when

    told = f"`{rule.condition}` is"
    return when(expr(rule.condition).isNull(), lit(f"{told} null")).otherwise(lit(f"{told} false"))
