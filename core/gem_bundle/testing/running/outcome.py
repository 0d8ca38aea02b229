"""What a test of a pipeline came to: rows, mismatches and diagnostics, step by step.

Plain data without pyspark, so that it can be compared, printed, written as JUnit XML and turned into
expectations by code that needs no session. The values of rows have the form of
`gem_bundle.testing.values`: timestamps know their zone, arrays and structs are tuples, maps are dicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.diagnostics import NOWHERE, Place

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.schema import StructField
    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.rows.compare import Difference

Aspect = Literal["rows", "watermark", "failure"]


def is_output(name: str) -> bool:
    """Whether a test means an output of a node, and no target."""
    return "." in name


def called(name: str) -> str:
    """What a report calls that of which rows were expected."""
    return f"`{name}`" if is_output(name) else f"target `{name}`"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with their columns.

    Args:
        fields: The columns in order: names, types, and whether they may be null.
        rows: A tuple of values for each row, in the order in which the rows came.
    """

    fields: tuple[StructField, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(found.name for found in self.fields)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that is not as it was expected.

    Args:
        aspect: What differs: the ``rows`` (or their number, order or schema), the ``watermark``, or the
            ``failure`` that was expected, came, or didn't.
        message: What differs, in one sentence.
        target: The target it is about; None for the step as a whole.
        difference: How the rows differ, where they do.
        place: Where the expectation stands.
    """

    aspect: Aspect
    message: str
    target: str | None = None
    difference: Difference | None = None
    place: Place = NOWHERE

    def __str__(self) -> str:
        subject = f"{called(self.target)}: " if self.target else ""
        lines = [f"{subject}{self.message}"]
        if self.difference is not None:
            lines += [f"    {line}" for line in self.difference.lines()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Captured:
    """What a target got in one step.

    Args:
        target: Its id.
        output_mode: Its output mode; in ``complete`` the rows are the whole result, else those of this step.
        rows: The rows.
        micro_batches: How many micro-batches ran in this step; 0 in a batch pipeline.
        watermark: The event-time watermark after the step, ISO 8601 in UTC as Spark reports it; None
            before there is one, and where the query has none.
        late_rows: How many rows were dropped in this step because they were older than the watermark.
        state_rows: How many rows all state stores hold after the step.
    """

    target: str
    output_mode: OutputMode = "append"
    rows: Rows = field(default_factory=Rows)
    micro_batches: int = 0
    watermark: str | None = None
    late_rows: int = 0
    state_rows: int = 0


@dataclass
class StepOutcome:
    """What one step came to.

    Args:
        number: The step's number, from 1.
        place: Where the step stands.
        captured: What the targets got, by id. Empty when the step failed before.
        failures: Why it failed, where it did: as a run would have said it.
        mismatches: What isn't as it was expected.
        expected_failure: The code it was expected to fail with, where it was.
        seconds: How long it took.
    """

    number: int
    place: Place = NOWHERE
    captured: dict[str, Captured] = field(default_factory=dict)
    failures: list[Diagnostic] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    expected_failure: str | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all is as it was expected, a failure included."""
        return not self.mismatches and (not self.failures or self.expected_failure is not None)

    @property
    def watermarks(self) -> dict[str, str]:
        """The watermark of each target that has one."""
        return {name: found.watermark for name, found in self.captured.items() if found.watermark}


@dataclass
class TestOutcome:
    """What a test came to.

    Args:
        name: The test's name.
        file: The file it stands in.
        place: Where it stands there.
        steps: Its steps as far as they were taken; the last one is the one that went wrong, if one did.
        diagnostics: What is wrong with the test itself or keeps its pipeline from starting; unless
            `expected_failure` says so, the test has failed then, and has no steps.
        mismatches: What isn't as it was expected about the start: a failure that should have been.
        expected_failure: The code that the start was expected to fail with.
        time_zone: The time zone of the session in which its rows are written.
        seconds: How long it took.
    """

    __test__ = False  # its name looks like a test's to pytest

    name: str
    file: str = ""
    place: Place = NOWHERE
    steps: list[StepOutcome] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    expected_failure: str | None = None
    time_zone: str = "UTC"
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the test has passed."""
        failed = any(d.is_error for d in self.diagnostics) and self.expected_failure is None
        return not failed and not self.mismatches and all(step.ok for step in self.steps)

    @property
    def wrong(self) -> StepOutcome | None:
        """The step that went wrong, if one did."""
        return next((step for step in self.steps if not step.ok), None)
