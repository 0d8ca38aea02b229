"""``--create``: a new test of rows that the sources of a pipeline really have, and of what comes of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic, Place, suggest
from gem_bundle.errors import GemBundleError, PipelineError
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.api import open_for
from gem_bundle.run.api import prepare as prepare_run
from gem_bundle.run.preview import preview
from gem_bundle.schema import quoted
from gem_bundle.testing.declared.edit import CannotEditError, Editor
from gem_bundle.testing.declared.files import SUFFIXES, declared_beside
from gem_bundle.testing.declared.load import load_tests, tests_in
from gem_bundle.testing.declared.run import run_test
from gem_bundle.testing.declared.update import replace_file, update
from gem_bundle.testing.rows.notation import flow, text
from gem_bundle.testing.running.event_time import carriers, moment
from gem_bundle.testing.running.prepared import Circumstances, Feed, Prepared, prepare
from gem_bundle.testing.running.session import session_for
from gem_bundle.testing.values import Shower, fields_of_schema, take_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.options import RunOptions
    from gem_bundle.schema import StructField
    from gem_bundle.testing.running.outcome import TestOutcome

_STATIC_ROWS = 100
# How far event time passes for what is in the state to come out: windows are rarely longer.
_LATER = (timedelta(days=1), timedelta(days=31), timedelta(days=366))


class NoTestError(GemBundleError, LookupError):
    """No test can be made.

    Args:
        message: Why.
        hint: What to do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


@dataclass(frozen=True)
class Created:
    """A new test.

    Args:
        name: Its name.
        place: Where it stands.
        rows: How many rows it gives to each node.
        nothing: The targets to which nothing came.
    """

    name: str
    place: Place
    rows: Mapping[str, int]
    nothing: tuple[str, ...] = ()


@dataclass
class _Sample:
    """Rows of a source.

    Args:
        fields: Its columns.
        rows: The rows, in the form of `gem_bundle.testing.values`.
        has_schema: The test has to say the columns.
    """

    fields: tuple[StructField, ...]
    rows: list[tuple[Any, ...]]
    has_schema: bool = False


def create(file: str, node: str, rows: int, options: RunOptions) -> Created:
    """Write a new test of a node into the test file beside a pipeline, which is made where there is none.

    The real sources are read, as `gem-bundle preview` reads them. The test expects what comes of their rows
    at each target that the node leads to.

    Args:
        file: The pipeline file.
        node: The node.
        rows: How many rows to take of each source. Of a static relation a hundred are taken where it has
            as many, since the streams' rows look for theirs in it.
        options: Parameters and profile.

    Raises:
        PipelineError: When the pipeline, or the test of it, can't run.
        NoTestError: When its sources have no rows, or the test file can't be added to.
    """
    plan, _ = prepare_run(lambda load_options: load_file(file, load_options), options)
    targets = _targets(plan, node)
    with open_for(plan, targets, options, brief=True) as session:
        spark = session.spark
        prepared, samples = _sampled(file, plan, targets, rows, options, spark)
        place = declared_beside(file) or str(Path(file).with_suffix(SUFFIXES[0]))
        draft = _Draft(place, f"{node} of real rows", prepared, samples, options)
        with session_for(spark, prepared) as (time_zone, _):
            shower = Shower(time_zone)
        outcome = draft.run([_rows_of_step(prepared, samples, shower)], shower, spark)
        for later in _LATER:
            more = _rows_of_later(prepared, samples, outcome, later, shower)
            if not more:
                break
            outcome = draft.run([_rows_of_step(prepared, samples, shower), more], shower, spark)
            if any(
                captured.rows.rows for captured in outcome.steps[-1].captured.values() if captured.watermark
            ):
                break
    return draft.write(outcome)


def _targets(plan: Plan, node: str) -> list[str]:
    """The targets that a node leads to."""
    name = node.partition(".")[0]
    if name not in plan.definition.nodes:
        place = plan.definition.locator.place(())
        hint = suggest(name, plan.definition.nodes, what="nodes")
        message = f"the pipeline has no node `{name}`"
        raise PipelineError([Diagnostic("GB108", "error", message, place=place, hint=hint)])
    return [target.id for target in plan.definition.of_kind("target") if name in plan.upstream([target.id])]


def _sampled(
    file: str, plan: Plan, targets: list[str], rows: int, options: RunOptions, spark: SparkSession
) -> tuple[Prepared, dict[str, _Sample]]:
    """The pipeline of the test, and the rows of each source that it needs.

    Raises:
        NoTestError: When no source has any.
    """
    samples: dict[str, _Sample] = {}
    for name in plan.upstream(targets):
        columns = plan.facts[name].columns if plan.node(name).kind == "source" else ()
        if columns is None or any(column.type is None for column in columns):
            samples[name] = _sample(plan, name, rows, spark, has_schema=True)
    said = Circumstances(
        profile=options.profile,
        parameters=options.parameters,
        targets=dict.fromkeys(targets, Place()),
        feeds=[Feed(name, _ddl(sample.fields)) for name, sample in samples.items()],
    )
    prepared = prepare(file, said)
    for name in prepared.fed:
        if name not in samples:
            samples[name] = _sample(plan, name, rows, spark)
    if not any(sample.rows for sample in samples.values()):
        raise NoTestError("the sources of the pipeline have no rows", "Write a test by hand, or add some.")
    return prepared, samples


def _sample(plan: Plan, name: str, rows: int, spark: SparkSession, *, has_schema: bool = False) -> _Sample:
    static = plan.definition.mode == "stream" and plan.node(name).mode == "batch"
    found = preview(plan, name, spark, max(rows, _STATIC_ROWS) if static else rows)
    fields = fields_of_schema(found.schema)
    return _Sample(fields, [take_row(row, fields) for row in found.rows], has_schema)


def _ddl(fields: Iterable[StructField]) -> str:
    return ", ".join(f"{quoted(field.name)} {field.type}" for field in fields)


def _rows_of_step(prepared: Prepared, samples: Mapping[str, _Sample], shower: Shower) -> dict[str, list[str]]:
    """The lines of the rows of the first step, by node: what a test doesn't say is null."""
    return {
        name: [_row(row, sample.fields, shower) for row in sample.rows]
        for name, sample in samples.items()
        if sample.rows and not _is_static(prepared, name)
    }


def _rows_of_later(
    prepared: Prepared,
    samples: Mapping[str, _Sample],
    outcome: TestOutcome,
    later: timedelta,
    shower: Shower,
) -> dict[str, list[str]]:
    """Rows that let event time pass, where something waits for that: the last ones again, but later.

    They are like real rows, so that no filter on the way to the watermark leaves them out.
    """
    first = outcome.steps[0].captured.values()
    waiting = [captured for captured in first if captured.output_mode == "append" and captured.state_rows]
    marks = [captured.watermark for captured in waiting if captured.watermark]
    if not marks:
        return {}
    found = {}
    for name, row in carriers(prepared, max(moment(mark, "UTC") for mark in marks) + later).items():
        last = samples[name].rows[-1] if samples[name].rows else row
        moved = tuple(old if time is None else time for old, time in zip(last, row, strict=True))
        found[name] = [_row(moved, prepared.fed[name].fields, shower)]
    return found


def _row(row: tuple[Any, ...], fields: tuple[StructField, ...], shower: Shower) -> str:
    return flow({name: value for name, value in shower.row(row, fields).items() if value is not None})


def _is_static(prepared: Prepared, name: str) -> bool:
    return prepared.definition.mode == "stream" and not prepared.fed[name].streaming


class _Draft:
    """A test that is tried before it is written.

    Args:
        file: The test file.
        name: What the test is about; a number is added where there is such a test already.
        prepared: The pipeline.
        samples: The rows of its sources.
        options: Parameters and profile.
    """

    def __init__(
        self,
        file: str,
        name: str,
        prepared: Prepared,
        samples: Mapping[str, _Sample],
        options: RunOptions,
    ) -> None:
        self._file = Path(file)
        self._prepared = prepared
        self._samples = samples
        self._options = options
        self._before = self._file.read_text(encoding="utf-8-sig") if self._file.is_file() else ""
        taken = {test.name for test in load_tests(file).tests} if self._before else set()
        numbered = (f"{name} {number}" for number in range(2, len(taken) + 3))
        self.name = name if name not in taken else next(n for n in numbered if n not in taken)
        self._text = ""
        self._line = 0

    def run(self, steps: list[dict[str, list[str]]], shower: Shower, spark: SparkSession) -> TestOutcome:
        """Run the test with these rows, and make it expect what comes.

        Raises:
            PipelineError: When it can't run.
            NoTestError: When the test file can't be added to.
        """
        lines = self._lines(steps, shower)
        if self._before:
            editor = Editor(self._before.replace("\r\n", "\n"))
            try:
                self._line = editor.add_key(("tests",), self.name, lines)
                self._text = editor.result()
            except CannotEditError:
                message = f"the tests of `{self._file}` are written so that none can be added"
                raise NoTestError(message, "Write `tests:` over several lines.") from None
        else:
            head = f"# Tests of {self._prepared.definition.file}: `gem-bundle test` runs them.\ntests:\n"
            self._text = head + "".join(f"  {line}\n" for line in lines.splitlines())
            self._line = 3
        return self._tried(spark)

    def _tried(self, spark: SparkSession) -> TestOutcome:
        """Run the test as it stands in the text, and make it expect what came."""
        loaded = tests_in(parse(self._text, str(self._file)))
        test = next((found for found in loaded.tests if found.name == self.name), None)
        if test is None:
            raise PipelineError(loaded.diagnostics)
        outcome = run_test(test, lambda: spark, keep_going=True)
        wrong = [*outcome.diagnostics, *(failure for step in outcome.steps for failure in step.failures)]
        if any(found.is_error for found in wrong):
            raise PipelineError(wrong)
        self._text = update(loaded, {self.name: outcome}).text
        return outcome

    def _lines(self, steps: list[dict[str, list[str]]], shower: Shower) -> str:
        """The test as YAML, with nothing expected yet."""
        lines = [f"{text(self.name)}:"]
        if self._options.profile is not None:
            lines.append(f"  profile: {text(self._options.profile)}")
        if self._options.parameters:
            lines.append(f"  parameters: {flow(dict(self._options.parameters))}")
        static = {name: found for name, found in self._samples.items() if _is_static(self._prepared, name)}
        if static:
            lines.append("  replace:")
            for name, sample in static.items():
                rows = [_row(row, sample.fields, shower) for row in sample.rows]
                lines += self._data(name, rows, "    ", always=True)
        lines.append("  steps:")
        for added in steps:
            lines.append("    - add:")
            for name, rows in added.items():
                lines += self._data(name, rows, "        ")
            lines.append("      expect:")
            lines += (f"        {target}: []" for target in self._prepared.targets)
        return "".join(f"{line}\n" for line in lines)

    def _data(self, name: str, rows: list[str], pad: str, *, always: bool = False) -> Iterator[str]:
        """Rows of a node, with their schema where the pipeline doesn't tell it."""
        sample = self._samples[name]
        yield f"{pad}{name}:"
        if sample.has_schema:
            yield f"{pad}  schema: {text(_ddl(sample.fields))}"
        if sample.has_schema or always:
            yield f"{pad}  rows:"
            pad += "  "
        yield from (f"{pad}  - {row}" for row in rows)

    def write(self, outcome: TestOutcome) -> Created:
        """Write the test file.

        Args:
            outcome: What the test came to.

        Raises:
            OSError: When it can't be written.
        """
        bom, crlf = "", False
        if self._file.is_file():
            content = self._file.read_bytes()
            bom, crlf = "\ufeff" if content.startswith(b"\xef\xbb\xbf") else "", b"\r\n" in content
        found = bom + (self._text.replace("\n", "\r\n") if crlf else self._text)
        replace_file(self._file, found.encode())
        came = {name for step in outcome.steps for name, got in step.captured.items() if got.rows.rows}
        return Created(
            self.name,
            Place(str(self._file), self._line),
            {name: len(sample.rows) for name, sample in self._samples.items()},
            tuple(name for name in self._prepared.targets if name not in came),
        )
