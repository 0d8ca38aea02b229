"""What tests of pipelines and of gems are written with.

Names are imported when they are first used, so that a test run that uses none pays for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.testing.conformance import GemConformance as GemConformance
    from gem_bundle.testing.conformance import Given as Given
    from gem_bundle.testing.conformance import SourceConformance as SourceConformance
    from gem_bundle.testing.conformance import TargetConformance as TargetConformance
    from gem_bundle.testing.conformance import TransformConformance as TransformConformance
    from gem_bundle.testing.running.outcome import Captured as Captured
    from gem_bundle.testing.running.outcome import TestOutcome as TestOutcome
    from gem_bundle.testing.running.prepared import Replace as Replace
    from gem_bundle.testing.running.session import open_session_for as open_session_for
    from gem_bundle.testing.steps import AddRows as AddRows
    from gem_bundle.testing.steps import AdvanceClock as AdvanceClock
    from gem_bundle.testing.steps import AdvanceWatermark as AdvanceWatermark
    from gem_bundle.testing.steps import CheckRows as CheckRows
    from gem_bundle.testing.steps import CheckWatermark as CheckWatermark
    from gem_bundle.testing.steps import ExpectFailure as ExpectFailure
    from gem_bundle.testing.steps import Process as Process
    from gem_bundle.testing.steps import Restart as Restart
    from gem_bundle.testing.steps import Step as Step
    from gem_bundle.testing.steps import StepsFailed as StepsFailed
    from gem_bundle.testing.steps import Stop as Stop
    from gem_bundle.testing.steps import run_steps as run_steps

_HOMES = {
    "conformance": (
        "GemConformance",
        "Given",
        "SourceConformance",
        "TargetConformance",
        "TransformConformance",
    ),
    "running.outcome": ("Captured", "TestOutcome"),
    "running.prepared": ("Replace",),
    "running.session": ("open_session_for",),
    "steps": (
        "AddRows",
        "AdvanceClock",
        "AdvanceWatermark",
        "CheckRows",
        "CheckWatermark",
        "ExpectFailure",
        "Process",
        "Restart",
        "Step",
        "StepsFailed",
        "Stop",
        "run_steps",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 (derived, so that it can't differ from what is importable)


def __getattr__(name: str) -> object:
    from gem_bundle.late import load_name

    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
