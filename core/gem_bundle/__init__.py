"""gem-bundle's public API for gem authors and for pipelines written in Python.

Names are imported when they are first used, so that ``from gem_bundle import hookimpl`` in a
plugin's entry point costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.builder import Pipeline as Pipeline
    from gem_bundle.contexts import ReadContext as ReadContext
    from gem_bundle.contexts import StreamReadContext as StreamReadContext
    from gem_bundle.contexts import WriteContext as WriteContext
    from gem_bundle.contexts import analysed as analysed
    from gem_bundle.contexts import is_over_connect as is_over_connect
    from gem_bundle.diagnostics import Diagnostic as Diagnostic
    from gem_bundle.diagnostics import Finding as Finding
    from gem_bundle.errors import GemBundleError as GemBundleError
    from gem_bundle.errors import GemError as GemError
    from gem_bundle.errors import PassingError as PassingError
    from gem_bundle.errors import PipelineError as PipelineError
    from gem_bundle.errors import UnreachableError as UnreachableError
    from gem_bundle.facts import Column as Column
    from gem_bundle.facts import Facts as Facts
    from gem_bundle.facts import combined as combined
    from gem_bundle.facts import entering as entering
    from gem_bundle.facts import event_times as event_times
    from gem_bundle.facts import merged as merged
    from gem_bundle.gem import PartRead as PartRead
    from gem_bundle.gem import Source as Source
    from gem_bundle.gem import Target as Target
    from gem_bundle.gem import Transform as Transform
    from gem_bundle.hookspecs import Register as Register
    from gem_bundle.hookspecs import RegisterCommand as RegisterCommand
    from gem_bundle.hookspecs import RegisterSection as RegisterSection
    from gem_bundle.hookspecs import hookimpl as hookimpl
    from gem_bundle.lineage import Kept as Kept
    from gem_bundle.lineage import Lineage as Lineage
    from gem_bundle.lineage import Made as Made
    from gem_bundle.lineage import Step as Step
    from gem_bundle.operators import AggregateOperator as AggregateOperator
    from gem_bundle.operators import DeduplicateOperator as DeduplicateOperator
    from gem_bundle.operators import JoinOperator as JoinOperator
    from gem_bundle.operators import LimitOperator as LimitOperator
    from gem_bundle.operators import Operator as Operator
    from gem_bundle.operators import StatefulOperator as StatefulOperator
    from gem_bundle.operators import WatermarkOperator as WatermarkOperator
    from gem_bundle.options import Field as Field
    from gem_bundle.options import NoOptions as NoOptions
    from gem_bundle.options import Options as Options
    from gem_bundle.python import import_function as import_function
    from gem_bundle.rejected import ORIGIN as ORIGIN
    from gem_bundle.rejected import REJECTED_HERE as REJECTED_HERE
    from gem_bundle.rejected import Counts as Counts
    from gem_bundle.rejected import MostRejected as MostRejected
    from gem_bundle.rejected import Rejects as Rejects
    from gem_bundle.rejected import ending as ending
    from gem_bundle.rejected import reason as reason
    from gem_bundle.semantics import ALL_OUTPUT_MODES as ALL_OUTPUT_MODES
    from gem_bundle.semantics import MICRO_BATCH_TRIGGERS as MICRO_BATCH_TRIGGERS
    from gem_bundle.semantics import Called as Called
    from gem_bundle.semantics import OptionChange as OptionChange
    from gem_bundle.semantics import RowsReplaced as RowsReplaced
    from gem_bundle.semantics import SourcePart as SourcePart
    from gem_bundle.semantics import SourceSemantics as SourceSemantics
    from gem_bundle.semantics import TargetSemantics as TargetSemantics
    from gem_bundle.views import NodeView as NodeView
    from gem_bundle.views import PipelineView as PipelineView
    from gem_bundle.waiting import Position as Position
    from gem_bundle.waiting import Waiting as Waiting
    from gem_bundle.waiting import WaitingContext as WaitingContext

_HOMES = {
    "builder": ("Pipeline",),
    "contexts": ("ReadContext", "StreamReadContext", "WriteContext", "analysed", "is_over_connect"),
    "diagnostics": ("Diagnostic", "Finding"),
    "errors": ("GemBundleError", "GemError", "PassingError", "PipelineError", "UnreachableError"),
    "facts": ("Column", "Facts", "combined", "entering", "event_times", "merged"),
    "gem": ("PartRead", "Source", "Target", "Transform"),
    "hookspecs": ("Register", "RegisterCommand", "RegisterSection", "hookimpl"),
    "operators": (
        "AggregateOperator",
        "DeduplicateOperator",
        "JoinOperator",
        "LimitOperator",
        "Operator",
        "StatefulOperator",
        "WatermarkOperator",
    ),
    "lineage": ("Kept", "Lineage", "Made", "Step"),
    "options": ("Field", "NoOptions", "Options"),
    "python": ("import_function",),
    "rejected": ("ORIGIN", "REJECTED_HERE", "Counts", "MostRejected", "Rejects", "ending", "reason"),
    "semantics": (
        "ALL_OUTPUT_MODES",
        "Called",
        "MICRO_BATCH_TRIGGERS",
        "OptionChange",
        "RowsReplaced",
        "SourcePart",
        "SourceSemantics",
        "TargetSemantics",
    ),
    "views": ("NodeView", "PipelineView"),
    "waiting": ("Position", "Waiting", "WaitingContext"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 (derived, so that it can't differ from what is importable)


def __getattr__(name: str) -> object:
    from gem_bundle.late import load_name

    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
