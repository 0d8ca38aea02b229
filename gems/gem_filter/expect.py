"""The transform `expect`: rules that rows have to keep, and what becomes of those that don't."""

import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator

from gem_bundle import (
    Counts,
    DeduplicateOperator,
    Facts,
    Field,
    Finding,
    GemError,
    Kept,
    Lineage,
    Made,
    MostRejected,
    Operator,
    Options,
    Rejects,
    Transform,
    ending,
    entering,
    reason,
)
from gem_bundle.expressions import check_expression, check_steady, check_tried, made_of
from gem_bundle.lineage import MAYBE_NULL, passed
from gem_bundle.schema import quoted, with_article, without_equality
from gem_bundle.types import Expression
from gem_filter.once import is_collated, no_state_by, row_of, with_claims, with_firsts, without_claims
from gem_filter.rules import Action, ForeignKey, Rule, RuleOptions, Unique, rules_of, tried_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

_JUDGED = "__gem_bundle_judged"
"""The column that says of a row whether it is rejected, and with a number whether it breaks another rule."""


def _share_or_number(given: int | str) -> int | str:
    if isinstance(given, str):
        number = given.removesuffix("%").strip()
        if not given.endswith("%") or not re.fullmatch(r"\d+(\.\d+)?", number) or float(number) > 100:
            raise ValueError("write a share such as `5%`, or a number of rows")
        return f"{number}%"
    if given < 0:
        raise ValueError("a number of rows can't be negative")
    return given


def _named(rules: dict[str, Expression | RuleOptions]) -> dict[str, Expression | RuleOptions]:
    if any(not name.strip() for name in rules):
        raise ValueError("a rule needs a name: by that its rows are counted, and have their reason")
    return rules


class ExpectOptions(Options):
    """Options of the transform `expect`."""

    rules: Annotated[dict[str, Expression | RuleOptions], AfterValidator(_named)] = Field(
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
    rule says `null: pass`. Where Spark would end the query, as at a cast that fails or a division by zero,
    the condition is null: a row with a value that nobody expected is a rejected row.

    A rule with `unique` compares the rows of a micro-batch with each other, and in a batch those of the
    table: of the rows of one value it lets one through that keeps the other rules, the first as JSON sorts
    them. In a stream the targets behind it are in one group. With `unique: within_watermark` a value that was
    let through in an earlier micro-batch is remembered, as long as the watermark's delay; rows that are
    late by the watermark are dropped then.

    A rule with `foreign_key` looks a value up in another input, which isn't a stream: it is read when the
    query starts, and in a group for each micro-batch.

    With `fail` the micro-batch is not written by targets that write it as a whole, such as Delta tables and
    files; of others some rows may have gone out already. In a group nothing of it is written to any target.

    In visual tools: DataQualityCheck, PydeequDataQuality.
    """

    example = {"rules": {"paid": "amount > 0", "known": {"column": "page", "in": ["home", "cart"]}}}

    inputs: ClassVar[tuple[int, int | None]] = (1, None)

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows that keep the rules."""
        from pyspark.sql.functions import col

        df = self._without_failing(self._found_out(inputs))
        lost, told = self._broken(df, "drop"), self._broken(df, "warn")
        broken = dict(zip(_asked(), (self._rejected(df), *lost.values(), *told.values()), strict=False))
        kept = df.withColumns(broken)
        for name in list(broken)[: len(lost) + 1]:
            kept = kept.filter(~col(name))
        own = [rule.by.found for rule in self._rules() if rule.by is not None]
        return kept.drop(*broken, *own, *(name for name in df.columns if name.startswith(_JUDGED)))

    def judged(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows, with whether each is rejected, and which of the rules that count or drop it breaks."""
        df = self._found_out(inputs)
        broken = enumerate(self._broken(df, "warn", "drop").values())
        return df.withColumns({_JUDGED: self._rejected(df), **{f"{_JUDGED}_{n}": rule for n, rule in broken}})

    def compares_rows(self) -> bool:
        """With a rule that has `unique`."""
        return bool(self._values())

    def remembers(self) -> int:
        """Each row once, and once for each rule with `unique: within_watermark`."""
        within = self._values(within_watermark=True)
        return len(within) + 1 if within else 0

    def remember(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows, with new claims for the values that are to be unique within the watermark."""
        within = self._values(inputs[0], within_watermark=True)
        return with_claims(self._with_keys(inputs), within, self._stopped(inputs[0]))

    def recall(self, rows: "DataFrame") -> "DataFrame":
        """The rows, with what was found out of their values."""
        within = self._values(rows, within_watermark=True)
        return self._with_unique(without_claims(rows, within, self._stopped(rows)))

    def ends(self) -> bool:
        """Where one of the rules fails."""
        return bool(self._rules("fail"))

    def most_rejected(self) -> MostRejected | None:
        """What `max_rejected` says."""
        given = self.options.max_rejected
        if given is None or not self.rejects():
            return None
        if isinstance(given, str):
            return MostRejected(share=float(given.removesuffix("%")) / 100)
        return MostRejected(given)

    def counts(self, *inputs: "DataFrame") -> Counts:
        """The rows that break a rule; a row that is rejected isn't dropped."""
        rejecting, broken = self._rules("reject"), self._broken(inputs[0], "warn", "drop")
        rejected = self._rejected(inputs[0])
        dropping = self._broken(inputs[0], "drop").values()
        dropped = ~rejected & reduce(or_, dropping) if dropping else None
        return Counts(broken, dropped, rejected if rejecting else None)

    def rejects(self) -> bool:
        """Whether one of the rules rejects."""
        return bool(self._rules("reject"))

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows that break a rule which rejects."""
        from pyspark.sql.functions import array, array_compact, when

        rules = self._tried(inputs[0], "reject")
        reasons = [when(~_kept(rule), reason(rule.name, _words(rule))) for rule in rules]
        return Rejects(self._without_failing(self._found_out(inputs)), array_compact(array(*reasons)))

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay. Values to be remembered are state."""
        return self._remembered(inputs[0]).after(Operator("filter", "rules"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; the rules decide which rows stay."""
        columns = inputs[0].columns
        through, values = passed(columns), self._values()
        if through is None or any(rule.key is not None for rule in self._rules()):
            return None
        others = made_of(self._condition(), columns)
        if not values:
            return Lineage(through, others)
        if not all(value.within_watermark for value in values):
            return None
        keys = tuple(made_of(value.value, columns) for value in values)
        rule = " ".join(["unique within watermark:", *(made.rule for made in (others, *keys))])
        uses: frozenset[str] | None = frozenset()
        for made in (others, *keys):
            uses = None if uses is None or made.uses is None else uses | made.uses
        kept = Kept(
            keys=keys,
            key_types=("binary",),
            parts=(Made(nulls=frozenset({MAYBE_NULL})),),
            values={"": {"expiry": ("bigint!",)}},
            taken=others,
        )
        return Lineage(through, Made(rule, uses), kept)

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Each rule is a condition over columns that exist, and depends on the row alone."""
        yield from self._check_inputs(inputs)
        facts = inputs[0]
        within = self._values(within_watermark=True)
        if within and facts.streaming is not False:
            yield from self._check_names(facts)
            facts = facts.unqualified()
            inputs = (facts, *inputs[1:])
        if self.options.max_rejected is not None and not self.rejects():
            message = "no rule rejects a row, so there is nothing that `max_rejected` could limit"
            yield Finding("GB205", message, "Remove it, or let a rule `reject`.", "max_rejected")
        for rule in self._rules():
            if rule.by is not None:
                found = list(self._check_value(rule, rule.by.value, facts))
                yield from found
                if rule.key is not None:
                    yield from self._check_key(rule, rule.key, inputs, alike=not found)
                continue
            found = list(
                check_expression(
                    rule.condition, facts, rule.option, wants="boolean", analytic=False, generators=False
                )
            )
            yield from found or self._check_decides(rule.condition, facts, rule.option)

    def _check_decides(self, expression: str, facts: Facts, option: tuple[str, ...]) -> "Iterator[Finding]":
        """What a rule is made of depends on the row alone, and ends no query."""
        yield from check_steady(expression, facts, option)
        yield from check_tried(expression, facts, option)

    def infer_rejected(self, *inputs: Facts) -> Facts:
        """Of the first input, which is all that the rows are of."""
        return super().infer_rejected(self._remembered(inputs[0]))

    def _remembered(self, facts: Facts) -> Facts:
        """What is known of the rows behind what keeps the values of earlier ones."""
        within = [rule for rule in self._rules() if rule.unique is not None and rule.unique.within_watermark]
        if not within:
            return facts
        facts, times = entering(facts.unqualified(), lambda _: True)
        return facts.after(
            DeduplicateOperator(
                option=(*within[0].option[:-1], "unique"),
                watermarked=facts.watermarked,
                within_watermark=True,
                event_times=times,
                drops=False,
            )
        )

    def _check_names(self, facts: Facts) -> "Iterator[Finding]":
        """Rows that are remembered are rows of a table, of which each column has a name of its own."""
        counted = Counter(column.name.lower() for column in facts.columns or ())
        for name in (name for name, count in counted.items() if count > 1):
            message = (
                f"there are several columns `{name}`, and of rows with values to remember each has its own"
            )
            yield Finding("GB211", message, "Give them different names before, or drop one.", "rules")

    def _check_inputs(self, inputs: tuple[Facts, ...]) -> "Iterator[Finding]":
        """Each further input is one in which values are looked up."""
        keys = {rule.key.input for rule in self._rules() if rule.key is not None}
        for name, facts in zip(self.input_names[1:], inputs[1:], strict=False):
            if name not in keys:
                hint = "Remove the input, or name it in the `foreign_key` of a rule."
                yield Finding("GB205", f"no rule looks anything up in the input `{name}`", hint, "rules")
            elif facts.streaming:
                message = f"the input `{name}` is a stream, in which a value that isn't there may still come"
                yield Finding("GB205", message, "Read it with `mode: batch`.", "rules")

    def _check_value(self, rule: Rule, value: str, facts: Facts) -> "Iterator[Finding]":
        """A value to look for: of the row alone, and one that can be compared."""
        found = list(check_expression(value, facts, rule.option, analytic=False, generators=False))
        yield from found or self._check_decides(value, facts, rule.option)
        column = facts.column(value)
        if rule.unique is None or column is None or column.type is None:
            return
        if without_equality(column.type):
            message = f"`{value}` is {with_article(column.type)}, and Spark can't tell two of them equal"
            yield Finding("GB213", message, "Make a text of it: `to_json(…)`.", rule.option)
        elif rule.unique.within_watermark and is_collated(column.type):
            yield Finding("GB213", *no_state_by(value, column.type), rule.option)

    def _check_key(
        self, rule: Rule, key: ForeignKey, inputs: tuple[Facts, ...], *, alike: bool
    ) -> "Iterator[Finding]":
        """There is such a column, and the value can be compared with it."""
        at = (*rule.option[:-1], "foreign_key")
        if key.input not in self.input_names[1:]:
            named = f"`inputs: [{self.input_names[0] if self.input_names else 'rows'}, {key.input}]`"
            message = f"the node has no further input `{key.input}`"
            yield Finding("GB205", message, f"Give it one: {named}.", (*at, "input"))
            return
        facts = inputs[self.input_names.index(key.input)]
        found = list(check_expression(quoted(key.column), facts, (*at, "column")))
        yield from found
        column = facts.column(key.column)
        if alike and not found and column is not None and inputs[0].columns is not None:
            looked_up = replace(column, name=f"{key.found}_value")
            both = inputs[0].with_columns([*inputs[0].columns, looked_up])
            equal = f"({key.value}) = {key.found}_value"
            yield from check_expression(equal, both, rule.option, wants="boolean")

    def _found_out(self, inputs: "tuple[DataFrame, ...]") -> "DataFrame":
        """The rows, with what has to be found out of each before the rules can be asked."""
        return self._with_unique(self._with_keys(inputs))

    def _with_keys(self, inputs: "tuple[DataFrame, ...]") -> "DataFrame":
        """The rows, with a column for each value to look for that is true where it was found."""
        from pyspark.sql.functions import col, expr, lit

        df = inputs[0]
        for rule in self._tried(df):
            if rule.key is None or rule.key.found in df.columns:
                continue
            known = inputs[self.input_names.index(rule.key.input)].select(
                col(quoted(rule.key.column)).alias(f"{rule.key.found}_value")
            )
            known = known.where(f"{rule.key.found}_value is not null").distinct()
            known = known.withColumn(rule.key.found, lit(True))
            found = expr(rule.key.value) == col(f"{rule.key.found}_value")
            df = df.join(known, found, "left").drop(f"{rule.key.found}_value")
        return df

    def _with_unique(self, df: "DataFrame") -> "DataFrame":
        """The rows, with a column for each unique value that is true of one of the rows that have it."""
        if self.compares_rows() and df.isStreaming:
            message = (
                f"`{self.node}` compares each row with the others of its micro-batch, which a stream has not"
            )
            hint = "Give the targets behind it a `group`; a run has its micro-batches as tables then."
            raise GemError("GB387", message, hint, "rules")
        missing = [value for value in self._values(df) if value.found not in df.columns]
        return with_firsts(df, missing, self._stopped(df)) if missing else df

    def _values(self, df: "DataFrame | None" = None, *, within_watermark: bool = False) -> list[Unique]:
        """The values that are to be unique, or those within the watermark; of rows, null where one raises."""
        rules = [rule for rule in self._rules() if rule.unique is not None]
        if df is not None and rules:
            rules = tried_rules(rules, df)
        found = (rule.unique for rule in rules if rule.unique is not None)
        return [value for value in found if value.within_watermark or not within_watermark]

    def _stopped(self, df: "DataFrame") -> "Column":
        """Whether a row isn't let through for a rule that isn't about unique values: it comes behind others.

        Whichever is asked for, the good rows or the others, it has to be the same one that is let through.
        """
        from pyspark.sql.functions import lit

        rules = (rule for rule in self._tried(df, "reject", "drop") if rule.unique is None)
        return ~reduce(and_, map(_kept, rules), lit(True))

    def _rules(self, *actions: Action) -> list[Rule]:
        """The rules, or those with one of some actions."""
        rules = rules_of(self.options.rules, self.options.action)
        return [rule for rule in rules if not actions or rule.action in actions]

    def _tried(self, df: "DataFrame", *actions: Action) -> list[Rule]:
        """The same rules, null where Spark would end the query for a row."""
        return tried_rules(self._rules(*actions), df)

    def _rejected(self, df: "DataFrame") -> "Column":
        """Whether a row is rejected."""
        from pyspark.sql.functions import col, lit

        if _JUDGED in df.columns:
            return col(_JUDGED)
        return ~reduce(and_, map(_kept, self._tried(df, "reject")), lit(True))

    def _broken(self, df: "DataFrame", *actions: Action) -> "dict[str, Column]":
        """Whether a row breaks each of the rules that count or drop, of those with some actions, by name."""
        from pyspark.sql.functions import col

        judged = _JUDGED in df.columns
        return {
            rule.name: col(f"{_JUDGED}_{n}") if judged else ~_kept(rule)
            for n, rule in enumerate(self._tried(df, "warn", "drop"))
            if rule.action in actions
        }

    def _condition(self) -> str:
        """All that decides of a row alone whether it stays, in a form for comparisons."""
        return (
            " and ".join(
                f"coalesce(({rule.condition}), {'true' if rule.null_passes else 'false'})"
                for rule in self._rules("reject", "drop")
                if rule.unique is None
            )
            or "true"
        )

    def _without_failing(self, df: "DataFrame") -> "DataFrame":
        """The same rows; one that breaks a rule which fails ends the query."""
        from pyspark.sql.functions import expr, lit, when

        rules = dict(zip(_asked(), self._tried(df, "fail"), strict=False))
        if not rules:
            return df
        kept = df.withColumns({name: expr(rule.condition) for name, rule in rules.items()})
        row = row_of(kept)
        for name, rule in rules.items():
            asked = rule._replace(condition=name, words=rule.words or rule.condition)
            end = ending(self.node, rule.name, _words(asked), row)
            kept = kept.filter(when(_kept(asked), lit(True)).otherwise(end))
        return kept.drop(*rules)


def _asked() -> "Iterator[str]":
    """Names for columns with what comes of the rules.

    A filter by a condition itself would find columns that a projection before has left out, and what counts
    or rejects the rows that break it would not.
    """
    return (f"__gem_bundle_asked_{number}" for number in itertools.count())


def _kept(rule: Rule) -> "Column":
    """Whether a row keeps a rule: never null."""
    from pyspark.sql.functions import coalesce, expr, lit

    return coalesce(expr(rule.condition), lit(rule.null_passes))


def _words(rule: Rule) -> "Column":
    """What is said of a row that breaks a rule."""
    from pyspark.sql.functions import expr, lit, when

    told = f"`{rule.words or rule.condition}` is"
    return when(expr(rule.condition).isNull(), lit(f"{told} null")).otherwise(lit(f"{told} false"))
