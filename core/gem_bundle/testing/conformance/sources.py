"""The tests of sources: what is there is read, once, again after a crash, and as inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle.contexts import ReadContext
from gem_bundle.gem import Source
from gem_bundle.rejected import Rejecting, rejected_rows
from gem_bundle.testing.conformance.code import CodeTests
from gem_bundle.testing.conformance.declaration import DeclarationTests, wrong_method
from gem_bundle.testing.conformance.feeding import feeds, reads
from gem_bundle.testing.conformance.inference import differences
from gem_bundle.testing.conformance.options import OptionTests
from gem_bundle.testing.conformance.outside import OutsideTests
from gem_bundle.testing.conformance.pickling import PicklingTests
from gem_bundle.testing.conformance.secrets import SecretTests
from gem_bundle.testing.conformance.source_changes import SourceChangeTests
from gem_bundle.testing.conformance.streams import (
    NAME,
    Batches,
    all_rows,
    continuous,
    difference,
    drained,
    drained_rows,
    forget_last_commit,
    read_stream,
    rows_of,
    running,
)
from gem_bundle.testing.conformance.suite import applies, fail, fail_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gem_bundle.gem import Gem
    from gem_bundle.testing.conformance.suite import GemConformance

    Rows = Sequence[Mapping[str, Any]]

_ANYBODY = Rejecting("pipeline", "0.1.0", "node", "gem")
_ENOUGH = 2  # micro-batches with rows, of a source that makes its own


def _reads_batches(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
    return reads(gem, streaming=False)


def _reads_streams(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return reads(gem, streaming=True)


def _reads_backlog(suite: type[GemConformance], gem: Gem) -> bool:
    return _reads_streams(suite, gem) and cast("Source", gem).semantics.backlog


def _replays(suite: type[GemConformance], gem: Gem) -> bool:
    return _reads_streams(suite, gem) and cast("Source", gem).semantics.replayable


def _passes_over(suite: type[GemConformance], gem: Gem) -> bool:
    return _reads_backlog(suite, gem) and bool(cast("Source", gem).semantics.only_new)


def _is_continuous(suite: type[GemConformance], gem: Gem) -> bool:
    return _reads_streams(suite, gem) and "continuous" in cast("Source", gem).semantics.triggers


def _rejects(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return cast("Source", gem).rejects()


def _rejected(gem: Source, whole: DataFrame) -> DataFrame:
    return rejected_rows(gem.reject(whole), _ANYBODY)


def _divides(what: str, rows: int, given: int, rejected: int) -> list[str]:
    if rows == given + rejected:
        return []
    return [f"{what} has {rows} rows, and {given} are given, and {rejected} are rejected"]


def _when_it_comes_again(df: DataFrame, checkpoint: Path, before: Batches) -> list[str]:
    """What is otherwise in a micro-batch that died before it was committed, and comes again."""
    if not before:
        return []
    last = forget_last_commit(checkpoint)
    rows = [
        [row for batch, rows in found if batch == last for row in rows]
        for found in (drained(df, checkpoint), before)
    ]
    problem = difference(*rows)
    return [f"when a micro-batch of a stream comes again, {problem}"] if problem else []


def _discovers(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return type(gem).discover is not Source.discover  # type: ignore[attr-defined]


class SourceConformance(
    SourceChangeTests, DeclarationTests, OptionTests, SecretTests, CodeTests, PicklingTests, OutsideTests
):
    """The tests of a source. Implement `feed`, and `provide` where rows come from somewhere."""

    def test_semantics_are_declared(self) -> None:
        """The class declares its semantics, and implements what they say and nothing else."""
        fail_for(_undeclared(self.gem, self.made(), Source))

    @pytest.mark.spark
    @applies(_reads_batches)
    def test_infers_what_a_batch_has(self) -> None:
        """`infer` says what Spark's analyser says of the static relation."""
        gem = self._fed()
        gem.streaming = False
        inferred = gem.infer()
        found = gem.read(ReadContext(NAME, self.spark))
        problems = list(differences(inferred, found, how="as a batch"))
        if found.isStreaming:
            problems.append("`read` returns a stream; it is to return a static relation")
        fail_for(problems)

    @pytest.mark.spark
    @applies(_reads_streams)
    def test_infers_what_a_stream_has(self) -> None:
        """`infer` says what Spark's analyser says of the stream."""
        gem = self._fed()
        gem.streaming = True
        inferred = gem.infer()
        found = read_stream(gem, self.spark)
        problems = list(differences(inferred, found, how="as a stream"))
        if not found.isStreaming:
            problems.append("`read_stream` returns a static relation; it is to return a stream")
        fail_for(problems)

    @pytest.mark.spark
    @applies(_discovers)
    def test_discovers_what_is_there(self) -> None:
        """`discover` says the columns that Spark finds, or nothing."""
        from gem_bundle.facts import Facts

        gem = self._fed()
        gem.streaming = not reads(gem, streaming=False)
        found = gem.discover()
        if found is None:
            return
        df = read_stream(gem, self.spark) if gem.streaming else gem.read(ReadContext(NAME, self.spark))
        fail_for(
            [
                problem.replace("`infer`", "`discover`")
                for problem in differences(Facts(columns=tuple(found)), df, how="really")
            ]
        )

    @pytest.mark.spark
    @applies(_reads_batches)
    def test_reads_a_batch(self) -> None:
        """A batch has the rows that are there, each once."""
        gem = self.live()
        wanted = [*self._given(1), *self._given(2)]
        gem.streaming = False
        _same(rows_of(gem.read(ReadContext(NAME, self.spark))), wanted, "a batch")

    @pytest.mark.spark
    @applies(_rejects)
    def test_gives_or_rejects_each_row(self) -> None:
        """Each row is given or rejected, in a batch and in a stream, also when a micro-batch comes again."""
        gem = self.live()
        if feeds(type(self)):
            self._given(1)
        problems = []
        if reads(gem, streaming=False):
            gem.streaming = False
            whole = gem.read(ReadContext(NAME, self.spark, undivided=True))
            given = gem.read(ReadContext(NAME, self.spark))
            problems += _divides("a batch", whole.count(), given.count(), _rejected(gem, whole).count())
            for column in given.columns:
                problems += _divides(
                    f"a batch of which only `{column}` is asked for",
                    given.count(),
                    len(given.select(f"`{column}`").collect()),
                    0,
                )
        if reads(gem, streaming=True):
            gem.streaming = True
            whole = read_stream(gem, self.spark, undivided=True)
            counts = []
            for number, df in enumerate((whole, read_stream(gem, self.spark), _rejected(gem, whole))):
                checkpoint = self.folder.with_name(f"checkpoint-{number}")
                before = drained(df, checkpoint)
                counts.append(len(all_rows(before)))
                problems += _when_it_comes_again(df, checkpoint, before)
            problems += _divides("a stream", *counts)
        fail_for(problems)

    @pytest.mark.spark
    @applies(_reads_streams)
    def test_reads_a_stream(self) -> None:
        """A stream has the rows that are there, each once; with a backlog it comes to an end."""
        gem = self.live()
        wanted, batches = self._first_run(gem)
        if wanted is not None:
            _same(all_rows(batches), wanted, "a stream")

    @pytest.mark.spark
    @applies(_reads_backlog)
    def test_reads_on_after_a_restart(self) -> None:
        """A second run on the checkpoint of the first has the new rows, and only those."""
        gem = self.live()
        self._first_run(gem)
        wanted = self._given(2)
        again = self.live()
        found = drained_rows(read_stream(again, self.spark), self.checkpoint)
        _same(found, wanted, "the second run")

    @pytest.mark.spark
    @applies(_replays)
    def test_replays_the_same_rows(self) -> None:
        """A micro-batch that is run again after a crash has the same rows, also when new ones have come."""
        gem = self.live()
        wanted, before = self._first_run(gem)
        last = forget_last_commit(self.checkpoint)
        first = [row for number, rows in before if number == last for row in rows]
        again = read_stream(self.live(), self.spark)
        if gem.semantics.backlog:
            new = self._given(2)
            after = drained(again, self.checkpoint)
        else:
            new = None
            after = running(again, self.checkpoint, lambda found: len(found) > 0, lambda: None)
        replayed = [row for number, rows in after if number == last for row in rows]
        problem = difference(replayed, first)
        if problem or len(replayed) != len(first):
            fail(
                "the source says that it is replayable, and a micro-batch that was run again had other rows: "
                f"{problem or f'{len(replayed)} in place of {len(first)}'}"
            )
        if wanted is not None and new is not None:
            rest = [row for number, rows in after if number != last for row in rows]
            _same(rest, new, "what follows the micro-batch that was run again")

    @pytest.mark.spark
    @applies(lambda suite, gem: _reads_backlog(suite, gem) and _replays(suite, gem))
    def test_reads_over_two_paths(self) -> None:
        """A source that reaches one target over two paths is read once for each."""
        gem = self.live()
        given: Rows = [] if gem.semantics.only_new else self._given(1)
        both = read_stream(gem, self.spark, "left").union(read_stream(gem, self.spark, "right"))
        if given:
            rows = drained_rows(both, self.checkpoint)
        else:
            given, batches = self._while_running(both, times=2)
            rows = all_rows(batches)
        _same(rows, [*given, *given], "the union of two readers")

    @pytest.mark.spark
    @applies(_passes_over)
    def test_the_first_run_passes_over_what_is_there(self) -> None:
        """A source that says `only_new` reads nothing of what is there when it first runs."""
        gem = self.live()
        old = self._given(1)
        found = drained_rows(read_stream(gem, self.spark), self.checkpoint)
        if found:
            fail(f"`only_new` is declared, and the first run read {len(found)} of {len(old)} rows there were")

    @pytest.mark.spark
    @applies(_is_continuous)
    def test_runs_continuously(self) -> None:
        """A stream runs with the continuous trigger, which the semantics name."""
        stream = read_stream(self._fed(), self.spark)
        continuous(stream.writeStream.format("noop"), self.checkpoint)

    @pytest.mark.spark
    def test_a_preview_changes_nothing(self) -> None:
        """`for_preview` is read as a source too, and leaves everything for the source itself."""
        gem = self.live()
        if not feeds(type(self)):
            if not isinstance(gem.for_preview(), Source):
                fail("`for_preview` must return a source")
            return
        wanted = [*self._given(1), *self._given(2)]
        for look in ("first", "second"):
            preview = gem.for_preview()
            if reads(gem, streaming=False):
                preview.streaming = False
                found = rows_of(preview.read(ReadContext(NAME, self.spark)))
            elif gem.semantics.backlog and not gem.semantics.only_new:
                found = drained_rows(read_stream(preview, self.spark), self.folder.with_name(look))
            else:
                return
            _same(found, wanted, f"the {look} preview")

    def _use_once(self, gem: Any) -> None:
        if reads(gem, streaming=False):
            gem.streaming = False
            rows_of(gem.read(ReadContext(NAME, self.spark)))
        if reads(gem, streaming=True):
            # Only looked at: what runs is Spark's.
            read_stream(gem, self.spark).columns  # noqa: B018

    def _first_run(self, gem: Any) -> tuple[Rows | None, Batches]:
        """The first rows, and what a first run gives; without rows that are known where none are fed."""
        if gem.semantics.backlog and not gem.semantics.only_new:
            wanted = self._given(1)
            return wanted, drained(read_stream(gem, self.spark), self.checkpoint)
        stream = read_stream(gem, self.spark)
        if not gem.semantics.backlog and not feeds(type(self)):
            return None, running(stream, self.checkpoint, _has_made_some, lambda: None)
        return self._while_running(stream)

    def _while_running(self, stream: DataFrame, times: int = 1) -> tuple[Rows, Batches]:
        """The first rows, fed to a stream that runs already, and what it gives.

        Args:
            stream: The stream.
            times: How often it gives each row.
        """
        fed: list[Mapping[str, Any]] = []
        batches = running(
            stream,
            self.checkpoint,
            lambda found: len(all_rows(found)) >= len(fed) * times,
            lambda: fed.extend(self._given(1)),
        )
        return fed, batches


def _has_made_some(batches: Batches) -> bool:
    return sum(bool(rows) for _, rows in batches) >= _ENOUGH


def _same(found: Rows, wanted: Rows, what: str) -> None:
    problem = difference(found, wanted)
    if problem:
        fail(f"{what} is wrong: {problem}")


def _undeclared(gem: type[Any], made: Any, base: type[Any]) -> list[str]:
    """What differs between the declared semantics and the methods that are there."""
    problems = []
    if gem.semantics is base.semantics:
        problems.append(f"declare `semantics = {type(base.semantics).__name__}(…)`: what the gem promises")
    semantics = made.semantics
    for declared, method in ((semantics.batch, "read"), (semantics.streaming, "read_stream")):
        problems += wrong_method(method, declared, getattr(gem, method) is not getattr(base, method))
    if not (reads(made, streaming=False) or reads(made, streaming=True)):
        problems.append("neither a batch nor a stream is allowed, by the semantics or by `check`")
    if not semantics.replayable and not semantics.condition:
        problems.append("`condition` must say why the source isn't replayable, in a sentence")
    if semantics.inline:
        problems += [
            f"`inline` says that the rows stand in the options, and there is a method `{method}`"
            for method in ("connect", "discover", "places")
            if getattr(gem, method) is not getattr(base, method)
        ]
    return problems
