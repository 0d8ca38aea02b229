"""Transforms that say something else than they do."""

# ruff: noqa: RUF012 (`Gem` and `GemConformance` declare them class variables)

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict, SecretStr

from gem_bundle import (
    AggregateOperator,
    Column,
    Facts,
    Field,
    Finding,
    Lineage,
    Made,
    Operator,
    Options,
    Rejects,
    Transform,
    reason,
)
from gem_bundle.lineage import passed
from gem_bundle.testing.conformance.inputs import EVENTS, Given
from gem_combine.join import Join
from gem_filter.expect import Expect
from tests.kit.wrong.right import Flag, Flagging, FlagOfStreams, FlagOptions, TransformSuite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAGES = Given("page string, team string", [{"page": "home", "team": "web"}], static=True)
BORROWED = {
    **TransformSuite.waive,
    "test_no_option_is_ignored": "the options are those of a built-in gem, whose own suite reads them",
}


UNKILLED = {
    "test_keeps_or_rejects_each_row_of_a_killed_run": "a kill takes long, and `DividesAnew` shows what it finds"
}


class ForgetsAColumn(Flag):
    """Keep quiet about the column that is added."""

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0]


class TestForgetsAColumn(TransformSuite):
    gem = ForgetsAColumn
    caught_by = {
        "test_infers_what_a_table_becomes",
        "test_infers_what_a_stream_becomes",
        "test_infers_what_a_watermark_becomes",
    }


class CallsItStatic(Flag):
    """Say of a stream that it is none."""

    def infer(self, *inputs: Facts) -> Facts:
        return replace(super().infer(*inputs), streaming=False)


class TestCallsItStatic(TransformSuite):
    gem = CallsItStatic
    caught_by = {"test_infers_what_a_stream_becomes", "test_infers_what_a_watermark_becomes"}


class LosesTheWatermark(Flag):
    """Compute the event time anew, and say that it is as it was."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return super().apply(*inputs).withColumn("at", expr("at + interval 0 seconds"))


class TestLosesTheWatermark(TransformSuite):
    gem = LosesTheWatermark
    caught_by = {"test_infers_what_a_watermark_becomes"}


class KnowsNothing(Flag):
    """Leave it to others to find out which columns there are."""

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0].with_columns(None)


class TestKnowsNothing(TransformSuite):
    gem = KnowsNothing
    caught_by = {"test_infers_the_columns"}


class CountsSecretly(Flag):
    """Aggregate, and don't tell."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return inputs[0].groupBy("id").count()

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0].with_columns([Column("id", "bigint"), Column("count", "bigint")])


class TestCountsSecretly(TransformSuite):
    gem = CountsSecretly
    expected = [{"id": 1, "count": 1}, {"id": 2, "count": 1}, {"id": 3, "count": 1}, {"id": 4, "count": 1}]  # fmt: skip
    caught_by = {
        "test_tells_its_operators",
        "test_appends_what_checks_allow",
        "test_completes_what_checks_allow",
    }


class RunsAJob(Flag):
    """Look how many rows there are, before anything runs."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        df = inputs[0]
        return super().apply(df if df.isStreaming or df.count() else df.limit(0))


class TestRunsAJob(TransformSuite):
    gem = RunsAJob
    caught_by = {"test_runs_nothing"}


class Remembers(Flag):
    """Do something else when it is called for the second path."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        called = vars(self).setdefault("called", [])
        called.append(1)
        df = super().apply(*inputs)
        return df if len(called) == 1 else df.drop("page")


class TestRemembers(TransformSuite):
    gem = Remembers
    caught_by = {"test_applies_twice"}


class OnlyBatches(Flag):
    """Do something else with a stream than with a batch."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        df = super().apply(*inputs)
        return df.filter("id > 1") if df.isStreaming else df


class TestOnlyBatches(TransformSuite):
    gem = OnlyBatches
    caught_by = {"test_appends_what_checks_allow"}


class SilentAboutBatches(FlagOfStreams):
    """Leave it to Spark to say that static rows have no watermark."""

    def check(self, *inputs: Facts) -> tuple[Finding, ...]:  # type: ignore[override]
        return ()


class TestSilentAboutBatches(TransformSuite):
    gem = SilentAboutBatches
    caught_by = {"test_works_in_batch"}


class RefusesBatches(Flag):
    """Refuse what Spark would do."""

    check = FlagOfStreams.check


class TestRefusesBatches(TransformSuite):
    gem = RefusesBatches
    caught_by = {"test_works_in_batch"}


class LosesRowsOfStreams(FlagOfStreams):
    """Take streams only, and lose a row of each."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*inputs).filter("id > 1")


class TestLosesRowsOfStreams(TransformSuite):
    gem = LosesRowsOfStreams
    caught_by = {"test_appends_what_checks_allow"}


class LetsRejectedRowsThrough(Flag):
    """Reject rows, and let them through all the same."""

    def rejects(self) -> bool:
        return True

    def reject(self, *inputs: DataFrame) -> Rejects:
        from pyspark.sql.functions import array, expr, when

        return Rejects(inputs[0], when(expr("id > 1"), array(reason("large", "it is large"))))


class TestLetsRejectedRowsThrough(TransformSuite):
    gem = LetsRejectedRowsThrough
    waive = {**TransformSuite.waive, **UNKILLED}
    caught_by = {
        "test_keeps_or_rejects_each_row",
        "test_keeps_or_rejects_rows_it_never_saw",
        "test_keeps_or_rejects_rows_that_come_again",
    }


class LosesWhatNobodyShowedIt(Flag):
    """Reject large numbers, and forget those that are larger still."""

    def rejects(self) -> bool:
        return True

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*(df.filter("id <= 3") for df in inputs))

    def reject(self, *inputs: DataFrame) -> Rejects:
        from pyspark.sql.functions import array, expr, when

        return Rejects(inputs[0], when(expr("id between 4 and 1000"), array(reason("large", "it is large"))))


class TestLosesWhatNobodyShowedIt(TransformSuite):
    gem = LosesWhatNobodyShowedIt
    waive = {**TransformSuite.waive, **UNKILLED}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}]
    caught_by = {"test_keeps_or_rejects_rows_it_never_saw", "test_keeps_or_rejects_rows_that_come_again"}


class ChangesWhatItRejects(Flag):
    """Hand on what it rejects otherwise than it came in."""

    def rejects(self) -> bool:
        return True

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*(df.filter("coalesce(id, 0) <= 2") for df in inputs))

    def reject(self, *inputs: DataFrame) -> Rejects:
        from pyspark.sql.functions import array, expr, lit, when

        changed = inputs[0].withColumn("amount", lit(0.125))
        return Rejects(changed, when(expr("id > 2"), array(reason("large", "it is large"))))


class TestChangesWhatItRejects(TransformSuite):
    gem = ChangesWhatItRejects
    waive = {**TransformSuite.waive, **UNKILLED}
    expected = [{"id": 1}, {"id": 2}]
    caught_by = {"test_keeps_or_rejects_rows_it_never_saw"}


class DividesAnew(Flag):
    """Divide rows by a number that each process draws for itself."""

    salt: ClassVar[int] = secrets.randbelow(2**31)

    def rejects(self) -> bool:
        return True

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*(df.filter(f"pmod(xxhash64({self.salt}, *), 2) = 0") for df in inputs))

    def reject(self, *inputs: DataFrame) -> Rejects:
        from pyspark.sql.functions import array, expr, when

        drawn = expr(f"pmod(xxhash64({self.salt}, *), 2) = 1")
        return Rejects(inputs[0], when(drawn, array(reason("drawn", "it was drawn"))))


class TestDividesAnew(TransformSuite):
    gem = DividesAnew
    expected = None
    caught_by = {"test_keeps_or_rejects_each_row_of_a_killed_run"}


class LosesRowsWithoutAKey(Join):
    """Reject rows without a partner, but for those whose key is null: they are in neither output."""

    def reject(self, *inputs: DataFrame) -> Rejects:
        return super().reject(inputs[0].where("page is not null"), *inputs[1:])


class TestLosesRowsWithoutAKey(TransformSuite):
    gem = LosesRowsWithoutAKey
    inputs = {"events": EVENTS, "pages": PAGES}
    options = {"on": ["page"], "unmatched": "reject"}
    expected = [{"id": 1}, {"id": 3}]
    waive = {**BORROWED, **UNKILLED}
    caught_by = {"test_keeps_or_rejects_each_row", "test_keeps_or_rejects_rows_it_never_saw"}


class LosesRowsThatCameBefore(Expect):
    """Remember values, and lose the rows that have one a second time."""

    def recall(self, rows: DataFrame) -> DataFrame:
        recalled = super().recall(rows)
        for found in set(recalled.columns) - set(rows.columns):
            recalled = recalled.where(found)
        return recalled


class TestLosesRowsThatCameBefore(TransformSuite):
    gem = LosesRowsThatCameBefore
    options = {"rules": {"once": {"column": "id", "unique": "within_watermark"}}}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    waive = {**BORROWED, **UNKILLED}
    caught_by = {"test_keeps_or_rejects_rows_by_those_it_remembers"}


class TellsOfFewerRowsThanItMakes(Expect):
    """Remember values beside the rows, and tell of the rows only."""

    def remembers(self) -> int:
        return 1


class TestTellsOfFewerRowsThanItMakes(TestLosesRowsThatCameBefore):
    gem = TellsOfFewerRowsThanItMakes


class UndocumentedOptions(FlagOptions):
    """One option says nothing."""

    limit: int = Field(5, description="")


class Undocumented(Flagging[UndocumentedOptions]):
    """Take an option that nobody knows what it is for."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        assert self.options.limit
        return super().apply(*inputs)


class TestUndocumented(TransformSuite):
    gem = Undocumented
    caught_by = {"test_options_are_documented"}


class InvalidDefaultOptions(FlagOptions):
    """One default would be refused."""

    share: float = Field(2.0, gt=0, lt=1, description="The share of the rows.")


class InvalidDefault(Flagging[InvalidDefaultOptions]):
    """Start from a share that nobody could ask for."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        assert self.options.share
        return super().apply(*inputs)


class TestInvalidDefault(TransformSuite):
    gem = InvalidDefault
    caught_by = {"test_defaults_are_valid"}


class IgnoredOptions(FlagOptions):
    """One option has no effect."""

    upside_down: bool = Field(False, description="Whether odd numbers are meant.")


class Ignores(Flagging[IgnoredOptions]):
    """Take an option and do nothing with it."""


class TestIgnores(TransformSuite):
    gem = Ignores
    caught_by = {"test_no_option_is_ignored"}


class LaxOptions(FlagOptions):
    """Whatever is written is taken."""

    model_config = ConfigDict(extra="allow")


class Lax(Flagging[LaxOptions]):
    """Take options that don't exist."""


class TestLax(TransformSuite):
    gem = Lax
    caught_by = {"test_unknown_options_are_refused", "test_the_json_schema_is_valid"}


class OpenSecretOptions(FlagOptions):
    """The password is a text like any other."""

    password: str | None = Field(None, description="What opens the door.")


class OpenSecret(Flagging[OpenSecretOptions]):
    """Print the password with everything else."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        assert self.options.password != ""
        return super().apply(*inputs)


class TestOpenSecret(TransformSuite):
    gem = OpenSecret
    caught_by = {"test_secrets_are_declared"}


class UnpickledOptions(FlagOptions):
    """One value holds what can't travel."""

    keyword: SecretStr | None = Field(None, description="What opens the door.")

    def __reduce__(self) -> Any:
        raise TypeError("this can't be pickled")


class Unpickled(Flagging[UnpickledOptions]):
    """Have options that stay where they are."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        assert self.options.keyword is None
        return super().apply(*inputs)


class TestUnpickled(TransformSuite):
    gem = Unpickled
    caught_by = {"test_options_pickle"}


class Bounds(Options):
    """Which rows are kept."""

    least: int = Field(1, description="The least number that is kept.", change="continues")


class SaysNothingIsDifferent(Transform[Bounds]):
    """Let rows from a number on through, and say that another number is no matter."""

    example = {"least": 1}

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return inputs[0].filter(f"id >= {self.options.least}")

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0].after(Operator("filter", "least"))


class TestSaysNothingIsDifferent(TransformSuite):
    gem = SaysNothingIsDifferent
    options = {"least": 1}
    expected = None
    edits = [("least", 3)]
    caught_by = {"test_says_what_another_value_does"}


class Sums(Options):
    """What is summed up."""

    times: int = Field(1, description="By which the sum is multiplied.", change="from_now_on")


class ForgetsItsState(Transform[Sums]):
    """Say that another rule is one from now on, where the state is made by the old one."""

    example = {"times": 1}

    def apply(self, *inputs: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return inputs[0].groupBy("page").agg(expr(f"sum(id * {self.options.times})").alias("n"))

    def infer(self, *inputs: Facts) -> Facts:
        operator = AggregateOperator("aggregate", "times", event_time=False, sessions=False)
        return inputs[0].after(operator).with_columns([Column("page", "string"), Column("n", "bigint")])


class TestForgetsItsState(TransformSuite):
    gem = ForgetsItsState
    options = {"times": 1}
    expected = [{"page": "home", "n": 4}, {"page": "cart", "n": 2}, {"page": None, "n": 4}]
    edits = [("times", 3)]
    caught_by = {"test_says_what_another_value_does"}


class HidesAColumn(Flag):
    """Say that a column is made of nothing."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        from pyspark.sql.functions import expr

        return super().apply(*inputs).withColumn("page", expr("concat(page, string(id))"))

    def lineage(self, *inputs: Facts) -> Lineage | None:
        through = passed(inputs[0].columns)
        return None if through is None else Lineage({**through, self.options.name: Made("true")})


class TestHidesAColumn(TransformSuite):
    gem = HidesAColumn
    expected = None
    caught_by = {"test_the_lineage_names_what_counts"}


class HidesAFilter(Flag):
    """Leave rows out, and say that all come through."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return super().apply(*inputs).filter("amount > 0")

    def infer(self, *inputs: Facts) -> Facts:
        return super().infer(*inputs).after(Operator("filter", "name"))

    lineage = HidesAColumn.lineage


class TestHidesAFilter(TransformSuite):
    gem = HidesAFilter
    expected = None
    inputs = {"events": replace(EVENTS, rows=[{**row, "amount": n - 2} for n, row in enumerate(EVENTS.rows)])}
    caught_by = {"test_the_lineage_names_what_counts"}
