"""What a bundle's main does: see that everything is as it was built for, then run the pipeline.

Everything that is wrong is said at once: files that changed since the build, another Python, Spark or Java,
parameters without a value, secrets that aren't there, and what a check of the pipeline finds.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.params import Address, accept_option, parameter_options, report_option
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundler.bundle.inside import Installed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.options import RunOptions
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.report import Report
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.run.supervisor import View
    from gem_bundler.bundle.manifest import Manifest
    from gem_bundler.bundle.model import BundlePipeline
    from gem_bundler.start.lease import Leases
    from gem_bundler.start.lease_owner import Owner

_IN_USE = "GB401"


def main(package: str, argv: Sequence[str] | None = None) -> int:
    """Start a bundle.

    Args:
        package: The import name of the package in which the bundle's manifest is.
        argv: The arguments; by default those of the command line.

    Returns:
        The exit status: 0 fine, 1 something is wrong with the bundle, its surroundings or the run, 2 the
        command was used wrongly.
    """
    from gem_bundle.cli.errors import INTERRUPTED, explain
    from gem_bundle.cli.output import print_diagnostics

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        installed = Installed(package)
        manifest = installed.manifest
    except PipelineError as error:
        print_diagnostics(error.diagnostics)
        return 1
    name = manifest.entry_point
    try:
        status = _command(installed).main(arguments, prog_name=name, standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (each kind ends in a sentence)
        return explain(error, name)
    return int(status or 0)


@dataclass(frozen=True)
class StartOptions:
    """What a start is asked for.

    Args:
        pipeline: The pipeline; None for the first one.
        root: What the pipeline's relative paths are relative to.
        keep_alive: A stream that runs already is what is wanted, and no error.
        run: The options of the run.
    """

    run: RunOptions
    pipeline: str | None = None
    root: Path = field(default_factory=Path.cwd)
    keep_alive: bool = False


def _command(installed: Installed) -> click.Command:
    manifest = installed.manifest

    @click.command(
        manifest.entry_point,
        help=f"Run the bundle {manifest.name} {manifest.version}. {manifest.description}".strip(),
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    @click.version_option(manifest.version, message=f"{manifest.name} {manifest.version}")
    @click.option("--pipeline", metavar="NAME", help="Start another pipeline of the bundle.")
    @parameter_options
    @click.option(
        "--plan", "plan_only", is_flag=True, help="Say what a start does to rows, and start nothing."
    )
    @click.option("--target", "targets", multiple=True, metavar="ID", help="Run only this target.")
    @click.option("--available-now", is_flag=True, help="Process what is there, then end.")
    @click.option(
        "--fresh", multiple=True, metavar="ID", help="Give this target new state, from where it ended."
    )
    @accept_option
    @click.option(
        "--keep-alive", is_flag=True, help="End at once, and well, if the stream is running already."
    )
    @click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=".",
        metavar="DIR",
        help="What relative paths are relative to; by default the current folder.",
    )
    @report_option("Write the run's numbers to a JSON file.")
    @click.option(
        "--serve",
        type=Address(),
        metavar="[HOST:]PORT",
        help="Answer over HTTP meanwhile; port 0 takes a free one.",
    )
    def command(
        pipeline: str | None,
        root: Path,
        serve: tuple[str, int] | None,
        *,
        plan_only: bool,
        keep_alive: bool,
        targets: tuple[str, ...],
        **rest: Any,
    ) -> int:
        from gem_bundle.run.options import RunOptions, ServeOptions
        from gem_bundle.run.session import brings_jars

        # Where Spark runs already its log is its own affair, and there may be no home to keep one in.
        log = Path(os.devnull) if brings_jars() else None
        served = None if serve is None else ServeOptions(*serve)
        run = RunOptions(targets=targets, spark_log=log, serve=served, **rest)
        if plan_only:
            from gem_bundler.start.plan import plan

            return plan(installed, pipeline, root.absolute(), run)
        return start(installed, StartOptions(run, pipeline, root.absolute(), keep_alive))

    return command


def start(installed: Installed, options: StartOptions) -> int:
    """Check everything, then run; see `main`.

    Args:
        installed: The bundle.
        options: What is asked for.

    Raises:
        GemError: When something fails that has no place in the pipeline file.
    """
    from gem_bundle.cli.output import counted, print_diagnostics, print_note
    from gem_bundle.files import advice
    from gem_bundle.python import bring_along
    from gem_bundle.run.api import run_pipeline
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.run.view import make_view

    bring_along(installed.manifest.modules)
    # The bundle's modules come first: the folder that a job runs in may hold others of the same name.
    if str(options.root) not in sys.path:
        sys.path.append(str(options.root))
    pipeline = installed.pipeline(options.pipeline)
    plan, targets, found = _prepared(installed, pipeline, options)
    print_diagnostics(diagnostic for diagnostic in found if diagnostic.severity != "note")
    if plan is None:
        errors = sum(diagnostic.is_error for diagnostic in found)
        print_note(f"{counted(errors, 'error')}: {installed.manifest.name} was not started.")
        return 1
    with ExitStack() as stack:
        leases, alive, wrong = _lease(installed.manifest, plan, targets, options)
        print_diagnostics(wrong)
        if any(diagnostic.is_error for diagnostic in wrong):
            return 1
        if alive:
            return _say_alive(pipeline.name, alive, options)
        view: View = make_view("auto", quiet=False)
        stop = StopRequest()
        if leases is not None:
            stack.enter_context(leases)
            view = _StopsWithoutLease(view, leases, stop)
        try:
            report = run_pipeline(
                lambda load_options: installed.load(pipeline, options.root, load_options),
                options.run,
                view,
                # The run checks the pipeline once more, and tells again what was told above.
                warn=lambda diagnostic: print_diagnostics([diagnostic] if diagnostic not in found else []),
                stop=stop,
            )
        except PipelineError as error:
            errors_found = [diagnostic for diagnostic in error.diagnostics if diagnostic.is_error]
            if options.keep_alive and all(diagnostic.code == _IN_USE for diagnostic in errors_found):
                # Started by `gem-bundle run`, which takes the lock and no lease.
                print_note(f"{pipeline.name} is running already; nothing to do. {errors_found[0].message}")
                return 0
            raise
        lost = leases.lost if leases is not None else ""
    if lost:
        hint = "Another run goes on from the last micro-batch that was committed; nothing is lost or doubled."
        hint = advice(lost, hint)
        report.diagnostics.append(Diagnostic("GB661", "error", f"the run was stopped: {lost}", hint=hint))
    print_diagnostics(report.diagnostics)
    return 1 if lost or not report.ok else 0


def _prepared(
    installed: Installed, pipeline: BundlePipeline, options: StartOptions
) -> tuple[Plan | None, list[Node], list[Diagnostic]]:
    """The checked pipeline and its targets, and everything that is wrong or worth a warning."""
    from gem_bundle.run.api import chosen_targets, prepare
    from gem_bundler.bundle.manifest import check_contents
    from gem_bundler.start.environment import check_environment

    manifest = installed.manifest
    found = [*check_contents(manifest, installed.data), *check_environment(manifest)]
    plan: Plan | None = None
    targets: list[Node] = []
    try:
        plan, warnings = prepare(
            lambda load_options: installed.load(pipeline, options.root, load_options), options.run
        )
        found += warnings
        targets = chosen_targets(plan, options.run)
    except PipelineError as error:
        found += error.diagnostics
    if any(diagnostic.is_error for diagnostic in found):
        plan = None
    return plan, targets, found


def _lease(
    manifest: Manifest, plan: Plan, targets: Sequence[Node], options: StartOptions
) -> tuple[Leases | None, Mapping[str, Owner], list[Diagnostic]]:
    """The leases of the run; or who has them; or why there are none."""
    from gem_bundler.start.lease import Leases
    from gem_bundler.start.lease_owner import this_process

    places = plan.checkpoints(targets)
    if not places:
        return None, {}, []
    try:
        leases = Leases(places, this_process(f"{manifest.name} {manifest.version}"))
        return leases, leases.acquire(), []
    except GemError as error:
        if options.keep_alive:
            return None, {}, [Diagnostic(error.code, "error", error.message, hint=error.hint)]
        hint = f"Spark's commit log is then the only guard against a second run. {error.hint}"
        return None, {}, [Diagnostic("GB663", "warning", error.message, hint=hint)]


def _say_alive(pipeline: str, alive: Mapping[str, Owner], options: StartOptions) -> int:
    from gem_bundle.cli.output import print_diagnostics, print_note

    if options.keep_alive:
        holders = "; ".join(f"target `{target}`: {owner}" for target, owner in alive.items())
        print_note(f"{pipeline} is running already; nothing to do. {holders}.")
        return 0
    hint = "Stop it first; or start with --keep-alive, which leaves a stream alone that runs."
    print_diagnostics(
        Diagnostic("GB660", "error", f"`{target}` is being written by {owner}", target, hint=hint)
        for target, owner in alive.items()
    )
    return 1


class _StopsWithoutLease:
    """Passes everything on to a view, and asks the run to stop when its lease is lost."""

    def __init__(self, view: View, leases: Leases, stop: StopRequest) -> None:
        self._view = view
        self._leases = leases
        self._stop = stop

    def started(self, report: Report) -> None:
        self._view.started(report)

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        self._view.progress(batch, totals)

    def tick(self) -> None:
        self._view.tick()
        if self._leases.lost and not self._stop:
            self._stop.reason = self._leases.lost

    def stopping(self, reason: str) -> None:
        self._view.stopping(reason)

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        self._view.happened(event, facts)

    def ended(self, report: Report) -> None:
        self._view.ended(report)
