"""The tests of transforms: what `infer` says is what Spark does, and a stream gives what a batch gives."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest

from gem_bundle.gem import Transform
from gem_bundle.testing.conformance.changes import ChangeTests
from gem_bundle.testing.conformance.code import CodeTests
from gem_bundle.testing.conformance.declaration import DeclarationTests
from gem_bundle.testing.conformance.guard import ACTIONS, watched
from gem_bundle.testing.conformance.inference import differences
from gem_bundle.testing.conformance.inputs import EVENTS, Folder, Given, facts_of
from gem_bundle.testing.conformance.options import OptionTests
from gem_bundle.testing.conformance.pickling import PicklingTests
from gem_bundle.testing.conformance.rejecting import RejectingTests
from gem_bundle.testing.conformance.secrets import SecretTests
from gem_bundle.testing.conformance.streams import difference, drained_rows, rows_of
from gem_bundle.testing.conformance.suite import applies, fail, fail_for
from gem_bundle.testing.conformance.verdict import refusals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Gem
    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.conformance.suite import GemConformance

    Rows = Sequence[Mapping[str, Any]]

# The nodes of Spark's analysed plan, and the operators by which `infer` tells of them.
_NODES = {
    "Aggregate": "aggregate",
    "Distinct": "aggregate",
    "Deduplicate": "deduplicate",
    "DeduplicateWithinWatermark": "deduplicate",
    "EventTimeWatermark": "watermark",
    "FlatMapGroupsWithState": "custom",
    "FlatMapGroupsInPandasWithState": "custom",
    "TransformWithState": "custom",
    "TransformWithStateInPySpark": "custom",
    "TransformWithStateInPandas": "custom",
    "GlobalLimit": "limit",
    "Join": "join",
    "LocalLimit": "limit",
    "Sort": "sort",
    "Window": "analytic_window",
}
_NODE = re.compile(r"^[\s:+|~*-]*([A-Za-z]+)", re.MULTILINE)  # `~` marks a stream


def _takes_streams(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
    return not cast("Transform", gem).compares_rows()


def _marks(suite: type[GemConformance], gem: Gem) -> bool:
    inputs = cast("type[TransformConformance]", suite).inputs
    return _takes_streams(suite, gem) and any(given.event_time is not None for given in inputs.values())


def _expects(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return cast("type[TransformConformance]", suite).expected is not None


class TransformConformance(
    ChangeTests, DeclarationTests, OptionTests, SecretTests, CodeTests, PicklingTests, RejectingTests
):
    """The tests of a transform. Give it `inputs` that fit its options, and the rows that are `expected`.

    Attributes:
        inputs: What it is given, by the names of its inputs. By default `events` with the columns `id`,
            `page`, `amount` and the event time `at`.
        expected: The rows that come out, in any order: each has the columns to compare. Of a transform
            with several outputs, those of all together; of one whose `check` refuses static inputs, those
            of a stream in the output mode `append`. None leaves them open.
        edits: Other values of options, each with the name of its option. What the gem says of a query that
            goes on with one is held against what becomes of the rows. Booleans and options with named
            values are tried without being named here.
        passed_over: A condition, as Spark reads it, that is true of the rows of the first input that are in
            none of the outputs on purpose, of a transform that rejects; None when there are none.
    """

    inputs: ClassVar[Mapping[str, Given]] = {"events": EVENTS}
    expected: ClassVar[Sequence[Mapping[str, Any]] | None] = None

    def test_takes_its_inputs(self) -> None:
        """The class says how many inputs it takes, and implements `apply`."""
        least, most = self.gem.inputs  # type: ignore[attr-defined]
        problems = []
        if self.gem.apply is Transform.apply:  # type: ignore[attr-defined]
            problems.append("implement `apply`")
        if not least <= len(self.inputs) <= (most or len(self.inputs)):
            problems.append(
                f"the gem takes {least} to {most or 'any number of'} inputs, and the suite is given "
                f"{len(self.inputs)}: say in `inputs` what it is to be given"
            )
        fail_for(problems)

    @pytest.mark.spark
    def test_infers_the_columns(self) -> None:
        """With the sample options `infer` knows the columns, so that a check sees mistakes behind the gem."""
        gem = self.live()
        if gem.outputs():
            return  # of one of several outputs a check knows no columns
        inferred = gem.infer(*map(facts_of, self.tables()))
        if inferred.columns is None:
            fail(
                "`infer` leaves the columns unknown, and no check sees a mistake in what comes after the gem"
            )

    @pytest.mark.spark
    def test_infers_what_a_table_becomes(self) -> None:
        """`infer` says what Spark's analyser says of static inputs."""
        self._compare(self.tables(), "over static inputs")

    @pytest.mark.spark
    @applies(_takes_streams)
    def test_infers_what_a_stream_becomes(self) -> None:
        """`infer` says what Spark's analyser says of streams without a watermark."""
        self._compare(self.streams(), "over streams")

    @pytest.mark.spark
    @applies(_marks)
    def test_infers_what_a_watermark_becomes(self) -> None:
        """`infer` says what Spark's analyser says of streams with a watermark."""
        self._compare(self.streams(marked=True), "over streams with a watermark")

    @pytest.mark.spark
    @applies(_takes_streams)
    def test_tells_its_operators(self) -> None:
        """`infer` tells the operators that streams restrict, or that it doesn't know them."""
        gem = self.live()
        inputs = self.streams(marked=True)
        told = {operator.kind for operator in gem.infer(*map(facts_of, inputs)).all_operators()}
        if "unknown" in told:
            return
        before = {node for df in inputs for node in _nodes(df)} - {"Join"}
        problems = []
        for df in _outputs(gem.apply(*inputs)).values():
            problems += [
                f"Spark's plan has the operator {node}, and `infer` doesn't tell of it: "
                f"`facts.after(Operator('{_NODES[node]}'))`, or leave the operators unknown"
                for node in sorted(_nodes(df) - before)
                if _NODES[node] not in told
            ]
        fail_for(list(dict.fromkeys(problems)))

    @pytest.mark.spark
    def test_names_its_outputs(self) -> None:
        """`apply` returns one DataFrame, or a mapping with the names that `outputs` says."""
        from pyspark.sql import DataFrame

        gem = self.live()
        found, names = gem.apply(*self.tables()), gem.outputs()
        if names and not (isinstance(found, dict) and tuple(found) == tuple(names)):
            fail(f"`outputs` says {list(names)}, and `apply` returns {_shape(found)}")
        if not names and not isinstance(found, DataFrame):
            fail(f"`outputs` names none, so `apply` is to return one DataFrame, and returns {_shape(found)}")

    @pytest.mark.spark
    def test_runs_nothing(self) -> None:
        """`apply` builds a plan and runs none: it is called for every path, before any query starts."""
        gem = self.live()
        tables = self.tables()
        with watched(ACTIONS) as uses:
            gem.apply(*tables)
        fail_for([f"{use}: `apply` must build a plan and run nothing" for use in uses])

    @pytest.mark.spark
    def test_applies_twice(self) -> None:
        """A second path through the node gets the same as the first: the gem keeps nothing between calls."""
        gem = self.live()
        tables = self.tables()
        first, second = (_outputs(gem.apply(*tables)) for _ in range(2))
        problems = [
            f"the second call gives other columns: {second[name].columns}, not {df.columns}"
            for name, df in first.items()
            if second[name].columns != df.columns
        ]
        fail_for(problems)

    @pytest.mark.spark
    def test_works_in_batch(self) -> None:
        """Static inputs become the expected rows; where Spark takes none, a check says so."""
        refused = self._refused(self.tables())
        try:
            found = self._batch()
        except Exception as error:  # whatever Spark says, it doesn't run
            if refused:
                return
            if _is_refusal(error):
                fail(f"a check accepts static inputs, and Spark refuses them: {_said(error)}")
            raise
        if refused:
            fail(f"Spark takes static inputs, and `check` refuses them: {refused[0]}")
        self._expect(found, "of a batch")

    @pytest.mark.spark
    @applies(_takes_streams)
    def test_appends_what_checks_allow(self) -> None:
        """A stream in the output mode `append` runs if a check accepts it, and only then."""
        self._agree("append")

    @pytest.mark.spark
    @applies(_takes_streams)
    def test_updates_what_checks_allow(self) -> None:
        """A stream in the output mode `update` runs if a check accepts it, and only then."""
        self._agree("update")

    @pytest.mark.spark
    @applies(_takes_streams)
    def test_completes_what_checks_allow(self) -> None:
        """A stream in the output mode `complete` runs if a check accepts it, and only then."""
        self._agree("complete")

    def tables(self) -> list[DataFrame]:
        """The inputs as static relations."""
        return [folder.table(self.spark) for folder in self._folders().values()]

    def streams(self, *, marked: bool = False) -> list[DataFrame]:
        """The inputs as streams, but for those that are tables beside streams.

        Args:
            marked: Whether those with an event time get their watermark.
        """
        found = []
        for name, folder in self._folders().items():
            if self.inputs[name].static:
                found.append(folder.table(self.spark))
                continue
            df = folder.stream(self.spark, name)
            event_time = self.inputs[name].event_time
            found.append(df.withWatermark(*event_time) if marked and event_time else df)
        return found

    def _use_once(self, gem: Any) -> None:
        for df in _outputs(gem.apply(*self.tables())).values():
            df.columns  # noqa: B018 (Spark analyses it)

    def _folders(self) -> dict[str, Folder]:
        if not hasattr(self, "_given"):
            self._given = {}
            for name, given in self.inputs.items():
                self._given[name] = Folder(self.folder.with_name(f"given_{name}"), given.schema)
                self._given[name].add(given.rows)
        return self._given

    def _compare(self, inputs: list[DataFrame], how: str) -> None:
        gem = self.live()
        given = [facts_of(df) for df in inputs]
        problems: list[str] = []
        for name, df in _outputs(gem.apply(*inputs)).items():
            known = gem.infer_output(name, *given) if gem.outputs() else gem.infer(*given)
            problems += differences(known, df, how=how)
        fail_for(list(dict.fromkeys(problems)))

    def _batch(self) -> list[dict[str, Any]]:
        gem = self.live()
        return [row for df in _outputs(gem.apply(*self.tables())).values() for row in rows_of(df)]

    def _refused(self, inputs: Sequence[DataFrame]) -> list[str]:
        """Why the gem's own rules refuse inputs."""
        found = self.live().check(*map(facts_of, inputs))
        return [finding.message for finding in found if finding.severity == "error"]

    def _expect(self, rows: Rows, what: str) -> None:
        """The rows, of which there are all columns, are the expected ones."""
        if self.expected is None:
            return
        columns = {name for row in rows for name in row}
        absent = sorted({name for row in self.expected for name in row} - columns) if rows else []
        if absent:
            fail(f"`expected` has columns that don't come out: {', '.join(f'`{name}`' for name in absent)}")
        problem = difference(rows, self.expected)
        if problem:
            fail(f"{what}, {problem}")

    def _agree(self, mode: OutputMode) -> None:
        """A check accepts what Spark runs, and nothing else."""
        gem = self.live()
        inputs = self.streams(marked=True)
        facts = gem.infer(*map(facts_of, inputs))
        refused = self._refused(inputs) or refusals(facts, mode)
        for name, df in _outputs(gem.apply(*inputs)).items():
            try:
                rows = drained_rows(df, self.checkpoint.with_name(f"checkpoint_{name}"), mode)
            except Exception as error:  # whatever Spark says, it doesn't run
                if refused or _knows_nothing(facts):
                    return
                if _is_refusal(error):
                    fail(f"a check accepts the stream in `{mode}`, and Spark refuses it: {_said(error)}")
                raise
            if refused:
                fail(f"Spark runs the stream in `{mode}`, and a check refuses it: {refused[0]}")
            if mode == "append" and len(gem.outputs()) < 2:
                self._compare_with_batch(rows, facts)

    def _compare_with_batch(self, rows: Rows, facts: Facts) -> None:
        """A stream that holds nothing back gives what a batch gives; without a batch, what is expected."""
        if self._refused(self.tables()):
            self._expect(rows, "of a stream")
        elif rows and all(operator.stateful is False for operator in facts.all_operators()):
            problem = difference(rows, self._batch())
            if problem:
                fail(f"a stream gives other rows than a batch: {problem}")


def _outputs(found: Any) -> dict[str, DataFrame]:
    return dict(found) if isinstance(found, dict) else {"output": found}


def _shape(found: Any) -> str:
    return f"a mapping with {list(found)}" if isinstance(found, dict) else f"a {type(found).__name__}"


def _nodes(df: DataFrame) -> set[str]:
    """The nodes of Spark's analysed plan that streams restrict."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain(extended=True)
    analysed = text.getvalue().partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    return set(_NODE.findall(analysed)) & set(_NODES)


def _knows_nothing(facts: Facts) -> bool:
    return any(operator.kind == "unknown" for operator in facts.all_operators())


def _is_refusal(error: Exception) -> bool:
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)


def _said(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
