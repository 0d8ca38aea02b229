"""Asking runs that live to stop, or single targets of them to stop and to go on."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError
from gem_bundle.pipeline.chosen import chosen_target_ids
from gem_bundle.run.found import runs_in, seen_folder
from gem_bundle.runs.record import ENDED, runs_place
from gem_bundle.runs.requests import Request, ask, is_asked, take_answer, who

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.pipeline.model import Definition
    from gem_bundle.run.found import FoundRun
    from gem_bundle.runs.requests import Action

_PAUSE_SECONDS = 0.3
PLAN_SECONDS = 30.0


def ask_runs(
    definition: Definition, action: Action, targets: Sequence[str], *, now: bool = False
) -> list[FoundRun]:
    """Ask the runs of a pipeline that live.

    Args:
        definition: The pipeline.
        action: What they are asked.
        targets: Which targets are meant; none for whole runs.
        now: Don't wait for the running micro-batches to end.

    Returns:
        The runs that were asked.

    Raises:
        GemError: GB517 when there is none to ask, GB406 when that can't be seen.
        PipelineError: GB108 for each target that neither the pipeline has nor a run had.
    """
    place = runs_place(definition)
    found = runs_in(place)
    had = {target for run in found for target in run.record.targets}
    chosen_target_ids(definition, [target for target in targets if target not in had])
    asked = [
        run
        for run in found
        if (run.verdict.is_alive or run.verdict.state == "silent")
        and (not targets or not run.record.targets.keys().isdisjoint(targets))
    ]
    if not asked:
        raise nobody(definition, found[0] if found else None, targets)
    folder = seen_folder(place)
    for run in asked:
        for target in targets or [""]:
            if not target or target in run.record.targets:
                ask(folder, run.record.id, Request(action, target, now, who()))
    return asked


def plans_of(definition: Definition, run: FoundRun, seconds: float = PLAN_SECONDS) -> dict[str, str]:
    """Spark's plans of the queries of a run, by target; empty texts for those that have none.

    Args:
        definition: The pipeline.
        run: The run, which is asked.
        seconds: How long its answers are waited for.

    Raises:
        GemError: GB517 when it doesn't answer, GB406 when that can't be seen.
    """
    folder = seen_folder(runs_place(definition))
    asked = {
        target: Request("plan", target, by=who(), answer=secrets.token_hex(8))
        for target in run.record.targets
    }
    for request in asked.values():
        ask(folder, run.record.id, request)
    found: dict[str, str] = {}
    until = time.monotonic() + seconds
    while True:
        for target in asked.keys() - found.keys():
            text = take_answer(folder, run.record.id, asked[target])
            if text is not None:
                found[target] = text
        if len(found) == len(asked):
            return {target: found[target] for target in asked}
        if time.monotonic() > until:
            message = f"the run by {run.record.process} hasn't answered within {seconds:g} s"
            raise GemError("GB517", message, "An older gem-bundle doesn't know what it was asked.")
        time.sleep(_PAUSE_SECONDS)


def nobody(definition: Definition, last: FoundRun | None, targets: Sequence[str] = ()) -> GemError:
    """What is said where no run is known that could be meant.

    Args:
        definition: The pipeline.
        last: Its last run, where one is known.
        targets: The targets that were asked for.
    """
    named = " or ".join(f"`{target}`" for target in targets)
    where = f" with target {named}" if targets else ""
    if last is None:
        message = f"no run of `{definition.name}`{where} is known at {runs_place(definition)}"
        hint = "It hasn't run yet with these checkpoints, or its targets keep none."
    else:
        message = f"no run of `{definition.name}`{where} is alive"
        hint = f"The last one ({last.record.process}): {last.verdict.state}"
        hint += f", {last.verdict.why}." if last.verdict.why else "."
    return GemError("GB517", message, f"{hint} `gem-bundle run` starts one.")


def wait_until_done(
    definition: Definition, asked: Sequence[FoundRun], targets: Sequence[str]
) -> list[FoundRun]:
    """Wait until runs, or targets of them, have stopped; a run that dies meanwhile has.

    Args:
        definition: The pipeline.
        asked: The runs.
        targets: The targets; none for whole runs.

    Returns:
        The runs as they are then.
    """
    place = runs_place(definition)
    folder = seen_folder(place)
    ids = {run.record.id for run in asked}
    while True:
        found = [run for run in runs_in(place) if run.record.id in ids]
        if not any(
            run.verdict.is_alive and (is_asked(folder, run.record.id) or _goes_on(run, targets))
            for run in found
        ):
            return found
        time.sleep(_PAUSE_SECONDS)


def _goes_on(run: FoundRun, targets: Sequence[str]) -> bool:
    states = [target.state for name, target in run.record.targets.items() if name in targets]
    return any(state not in ENDED for state in states) if targets else True
