"""Run a pipeline from end to end: what `gem-bundle run` and `Pipeline.run` call."""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.accepting import check_accepted
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.damage import check_checkpoint, has_source_evolution
from gem_bundle.changes.history import keep_versions, record_of
from gem_bundle.changes.planning import hold_to_plan
from gem_bundle.check.checker import check_definition
from gem_bundle.check.stages.connect import check_connect
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.facts import output_key
from gem_bundle.pipeline.chosen import chosen_target_ids, split_from_group, unknown_node
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.model import Trigger
from gem_bundle.pipeline.secrets import SecretStore, hidden
from gem_bundle.run.batch import run_batch
from gem_bundle.run.elsewhere import check_groups, check_jars, check_version, lacking
from gem_bundle.run.environment import open_plan_session
from gem_bundle.run.frames import Frames, NodeFailure
from gem_bundle.run.fresh import begin_fresh, check_fresh, finish_fresh
from gem_bundle.run.live_record import check_live_runs
from gem_bundle.run.lock import CheckpointLocks
from gem_bundle.run.lost_java import untold_by_py4j
from gem_bundle.run.lost_spark import lost_spark, of_all, told_of_its_end
from gem_bundle.run.options import RunOptions
from gem_bundle.run.progress import Totals
from gem_bundle.run.recorder import Recorder
from gem_bundle.run.report import Report, check_report_place
from gem_bundle.run.start_guard import StartGivenUp, StartGuard
from gem_bundle.run.steering import StopRequest
from gem_bundle.run.supervisor import View, run_queries
from gem_bundle.run.view import QuietView

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.changes.record import Accepted
    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.serving.server import RunServer
    from gem_bundle.run.session import Session


def run_file(
    path: str | os.PathLike[str], options: RunOptions | None = None, view: View | None = None
) -> Report:
    """Run a pipeline file; see `run_pipeline`."""
    return run_pipeline(lambda load_options: load_file(path, load_options), options, view)


def run_pipeline(
    load: Callable[[LoadOptions], Loaded],
    options: RunOptions | None = None,
    view: View | None = None,
    warn: Callable[[Diagnostic], None] | None = None,
    stop: StopRequest | None = None,
) -> Report:
    """Run a pipeline until its queries end, one fails, or the process is asked to stop.

    Args:
        load: Reads the pipeline with the parameters and secrets of this run.
        options: What is asked for.
        view: Who is told about progress; by default nobody.
        warn: Who is told about warnings before the start.
        stop: By setting its reason the caller stops the run, as a signal does.

    Returns:
        What was done; `Report.ok` is False when a query failed.

    Raises:
        PipelineError: When the pipeline can't be started; nothing has run then.
    """
    options = options or RunOptions()
    view = view or QuietView()
    plan, warnings = prepare(load, options)
    # Notes are for whoever writes the pipeline: `gem-bundle check` says them.
    for warning in (found for found in warnings if warn and found.severity != "note"):
        assert warn is not None
        warn(warning)
    targets = chosen_targets(plan, options)
    written, plan = plan, _with_targets(plan, targets)
    report = Report(plan.definition.name, plan.definition.version)
    report.targets = {
        node.id: Totals(node.id, node.group if plan.definition.mode == "stream" else "") for node in targets
    }
    report.untaken = frozenset(plan.definition.nodes) - plan.definition.with_rejected_taken()
    stop = StopRequest() if stop is None else stop
    with ExitStack() as stack:
        check_report_place(options.report)
        _check_outlets(plan, options)
        if plan.definition.mode == "batch" and options.fresh:
            wrong = [
                check_fresh(plan, name, is_run=False)
                for name in chosen_target_ids(plan.definition, options.fresh)
            ]
            raise PipelineError(_placed(plan, diagnostic) for found in wrong for diagnostic in found)
        held = [node.id for node in plan.restartable(targets)]
        seen = None
        if plan.definition.mode == "stream":
            seen = _guard_checkpoints(plan, written, targets, stack, options)
        _tell_accepted(written, held, options, warn)
        if seen is not None:
            accepted = _held_to_plan(written, held, options, seen)
            places = {node.id: plan.definition.checkpoint(node.id) for node in plan.restartable(targets)}
            if places or options.serve is not None:
                recorder = Recorder(plan.definition, places, report, view, stop, warn)
                view = stack.enter_context(recorder)
                if options.serve is not None:
                    view = stack.enter_context(_server(written, warnings, options, recorder, stop, warn))
        view = stack.enter_context(_with_lineage(plan, targets, options, view, stop, warn))
        session = stack.enter_context(open_for(plan, [node.id for node in targets], options))
        _hold_to_session(plan, targets, session, warn)
        stack.enter_context(stop.on_signals())
        with told_of_its_end(plan, targets, session, report, stop):
            if plan.definition.mode == "batch":
                run_batch(plan, targets, session.spark, report, view, stop)
            else:
                # A store that didn't answer may by now, and then a version would be written down unlooked at.
                accepted |= _held_to_plan(written, [name for name in held if name not in accepted], options)
                _begin_fresh(written, targets, session.spark, options, accepted)
                _keep_versions(written, targets, options, accepted, warn)
                patience = options.stop_timeout
                run_queries(plan, targets, session.spark, report, view, stop, stop_timeout=patience)
        if not report.ok:
            session.drop_classes()
        report.diagnostics = [found.rewritten(hidden) for found in report.diagnostics]
        if options.report is not None:
            report.write(options.report)
        view.ended(report)
    return report


def _hold_to_session(
    plan: Plan, targets: Sequence[Node], session: Session, warn: Callable[[Diagnostic], None] | None
) -> None:
    """Refuse what can't be in a session, and warn of what is otherwise there.

    Raises:
        PipelineError: GB370 or GB386 for what a server can't do.
    """
    upstream = plan.upstream(node.id for node in targets)
    found = [*check_groups(plan, session.spark, targets), *check_version(plan, session.spark, upstream)]
    if any(each.is_error for each in found):
        raise PipelineError(found)
    if warn is not None:
        for each in (*found, *lacking(plan, session, upstream)):
            warn(each.rewritten(hidden))


def prepare(
    load: Callable[[LoadOptions], Loaded], options: RunOptions, *, discover: bool = False
) -> tuple[Plan, list[Diagnostic]]:
    """Read and check a pipeline with its secrets resolved.

    Args:
        load: Reads the pipeline.
        options: What is asked for.
        discover: Let sources look at what is there for the columns that nobody declares.

    Returns:
        The plan and the warnings.

    Raises:
        PipelineError: When it has errors.
    """
    secrets = SecretStore(options.environment)
    load_options = LoadOptions(options.parameters, options.profile, secrets=secrets)
    if options.environment is not None:
        load_options.environment = options.environment
    checked = check_definition(load(load_options), discover=discover)
    if checked.plan is None:
        raise PipelineError(checked.diagnostics)
    return checked.plan, checked.diagnostics


def node_dataframe(plan: Plan, node: str, spark: SparkSession) -> DataFrame:
    """The DataFrame that flows out of a node: ``id``, or ``id.output`` where it has several.

    Args:
        plan: The checked pipeline.
        node: The node; for a target, what flows into it.
        spark: The session.

    Raises:
        PipelineError: When there is no such node, or its part of the plan can't be built.
    """
    from gem_bundle.run.failures import build_failure

    name, _, output = node.partition(".")
    found = plan.definition.nodes.get(name)
    if found is None:
        raise PipelineError([unknown_node(plan.definition, name, list(plan.definition.nodes))])
    if found.kind == "target":
        name, output = found.inputs[0].node, found.inputs[0].output or ""
    if output_key(name, output) not in plan.facts:
        known = [f"`{key}`" for key in plan.facts if key.partition(".")[0] == name]
        message = f"`{name}` has no output `{output}`"
        place = plan.definition.locator.place(found.path, key=True)
        hint = f"There is {', '.join(known)}."
        raise PipelineError([Diagnostic("GB106", "error", message, name, found.path, place, hint)])
    try:
        return Frames(plan, spark).of(name, output or None)
    except NodeFailure as failure:
        raise PipelineError([build_failure(plan, failure.node, failure.error)]) from failure


def chosen_targets(plan: Plan, options: RunOptions) -> list[Node]:
    """The targets to run, with the triggers of this run.

    Raises:
        PipelineError: GB108 for an id that is no target, GB384 for a part of a group.
    """
    chosen = chosen_target_ids(plan.definition, options.targets)
    targets = [node for node in plan.definition.of_kind("target") if node.id in chosen]
    apart = [found for node in targets for found in split_from_group(plan.definition, node, chosen)]
    if apart:
        raise PipelineError(apart)
    if options.available_now and plan.definition.mode == "stream":
        targets = [replace(node, trigger=Trigger("available_now")) for node in targets]
    return targets


def _with_targets(plan: Plan, targets: Sequence[Node]) -> Plan:
    """The plan with the targets as this run has them."""
    nodes = {**plan.definition.nodes, **{node.id: node for node in targets}}
    return replace(plan, definition=replace(plan.definition, nodes=nodes))


def _held_to_plan(
    plan: Plan, targets: Sequence[str], options: RunOptions, seen: Collection[str] = ()
) -> dict[str, tuple[Accepted, ...]]:
    """What was taken on purpose, by target; one whose checkpoint can't be seen from here is left out."""
    return hold_to_plan(plan, targets, options.accept, options.environment, options.fresh, seen)


def _tell_accepted(
    written: Plan, held: Sequence[str], options: RunOptions, warn: Callable[[Diagnostic], None] | None
) -> None:
    """Warn of what is taken on purpose and isn't there."""
    if warn is not None:
        for warning in check_accepted(written, held, options.accept):
            warn(warning)


def _guard_checkpoints(
    plan: Plan, written: Plan, targets: Sequence[Node], stack: ExitStack, options: RunOptions
) -> list[str]:
    """Lock the targets' checkpoints, and look whether a run can continue from them.

    What a run left that was killed while it put a new checkpoint in the place of an old one is finished here.

    Returns:
        The targets whose checkpoints can be seen from here.
    """
    places = plan.checkpoints(targets)
    seen: set[str] = set()
    found: list[Diagnostic] = []
    for target, location in places.items():
        evolution = has_source_evolution(plan.definition.spark, plan.node(target).trigger)
        with suppress(UnseenError):  # it is left to Spark
            checkpoint = read_checkpoint(location)
            seen.add(location)
            continuous = checkpoint is not None and checkpoint.continuous is True
            # Where the file has another trigger now, the plan says it.
            if continuous and options.available_now and written.node(target).trigger.kind == "continuous":
                found.append(_continuous(target))
            evolution = evolution and not continuous
            found += check_checkpoint(target, checkpoint, source_evolution=evolution)
    for node in plan.restartable(targets):
        found += [d for d in record_of(node.id, plan.definition.record(node.id))[1] if d.is_error]
    if not found:
        locks = stack.enter_context(CheckpointLocks(places))
        found = locks.acquire() or check_live_runs(plan.definition, places)
    if not found:
        for target, location in places.items():
            found += finish_fresh(target, location)
        for target in options.fresh and chosen_target_ids(plan.definition, options.fresh):
            found += check_fresh(plan, target, is_run=target in places, accept=options.accept)
    if found:
        raise PipelineError([_placed(plan, diagnostic) for diagnostic in found])
    return [node.id for node in plan.restartable(targets) if plan.definition.checkpoint(node.id) in seen]


def _continuous(target: str) -> Diagnostic:
    """That micro-batches can't go on from a checkpoint of continuous processing."""
    message = (
        f"the checkpoint of target `{target}` was made by continuous processing, and Spark can't go on from "
        "it with the micro-batches of `--available-now`"
    )
    return Diagnostic("GB434", "error", message, target, hint="Run it without `--available-now`.")


def _check_outlets(plan: Plan, options: RunOptions) -> None:
    """See to it that the run may tell others what it is to tell them."""
    if options.serve is not None:
        _check_serving(plan, options)
    if options.lineage is not None:
        _check_lineage(plan, options.lineage)


def _check_serving(plan: Plan, options: RunOptions) -> None:
    """See to it that the run may have its server.

    Raises:
        PipelineError: GB509 or GB518 when it can't.
    """
    from gem_bundle.run.serving.server import check_serving

    assert options.serve is not None
    try:
        check_serving(options.serve, options.environment)
        if plan.definition.mode == "batch":
            message = "a batch pipeline has no queries that a server could show"
            raise GemError("GB518", message, "Run it without `--serve`; `--report` writes its numbers.")
    except GemError as error:
        raise PipelineError([of_all(plan, error)]) from error


def _server(
    plan: Plan,
    diagnostics: Iterable[Diagnostic],
    options: RunOptions,
    recorder: Recorder,
    stop: StopRequest,
    warn: Callable[[Diagnostic], None] | None,
) -> RunServer:
    """The server that is asked for. What it needs isn't even imported where none is."""
    from gem_bundle.pipeline.groups import rejecting_nodes
    from gem_bundle.run.serving.drawn import draw
    from gem_bundle.run.serving.server import RunServer

    assert options.serve is not None
    tell = None if options.quiet else lambda address: print(f"Serving at {address}", file=sys.stderr)
    drawn = draw(plan, diagnostics)
    rejecting = {node.id: rejecting_nodes(plan, node.id) for node in plan.definition.of_kind("target")}
    return RunServer(options.serve, options.environment, recorder, stop, warn, tell, drawn, rejecting)


def _check_lineage(plan: Plan, place: str) -> None:
    """See to it that events can be sent.

    Raises:
        PipelineError: GB509 or GB511 when they can't.
    """
    from gem_bundle.run.openlineage.client import check_lineage

    try:
        check_lineage(place)
    except GemError as error:
        raise PipelineError([of_all(plan, error)]) from error


@contextmanager
def _with_lineage(
    plan: Plan,
    targets: Sequence[Node],
    options: RunOptions,
    view: View,
    stop: StopRequest,
    warn: Callable[[Diagnostic], None] | None,
) -> Iterator[View]:
    """The view, with what sends events where they are asked for; else what that needs isn't even imported."""
    if options.lineage is None:
        yield view
        return
    from gem_bundle.run.openlineage.datasets import with_columns
    from gem_bundle.run.openlineage.view import LineageView

    known = with_columns(plan)
    with LineageView(options.lineage, known, targets, stop, view, warn, options.environment) as telling:
        yield telling


def _begin_fresh(
    plan: Plan,
    targets: Sequence[Node],
    spark: SparkSession,
    options: RunOptions,
    accepted: Mapping[str, tuple[Accepted, ...]],
) -> None:
    """Give the targets that are to have it new state, from where they ended."""
    for node in targets:
        if node.id in options.fresh:
            taken = accepted.get(node.id, ())
            kept, failed = begin_fresh(plan, node.id, spark, options.environment, taken)
            if failed:
                raise PipelineError([d if d.place.line else _placed(plan, d) for d in failed])
            if not options.quiet:
                print(
                    f"{node.id}: begins with new state; the old checkpoint is kept in {kept}", file=sys.stderr
                )


def _keep_versions(
    plan: Plan,
    targets: Sequence[Node],
    options: RunOptions,
    accepted: Mapping[str, tuple[Accepted, ...]],
    warn: Callable[[Diagnostic], None] | None,
) -> None:
    """Write down beside the checkpoints what is about to run, as the file has it."""
    ids = [node.id for node in plan.restartable(targets)]
    found = keep_versions(plan, ids, accepted, environment=options.environment)
    placed = [_placed(plan, diagnostic) for diagnostic in found]
    if any(diagnostic.is_error for diagnostic in placed):
        raise PipelineError(placed)
    for diagnostic in placed if warn is not None else ():
        assert warn is not None
        warn(diagnostic)


def _placed(plan: Plan, diagnostic: Diagnostic) -> Diagnostic:
    node = plan.node(diagnostic.node or "")
    return diagnostic.moved(plan.definition.locator.place(node.path, key=True))


@contextmanager
def open_for(
    plan: Plan,
    nodes: Iterable[str],
    options: RunOptions,
    *,
    brief: bool = False,
    tried: Collection[str] | None = None,
) -> Iterator[Session]:
    """A session in which some nodes and what they need can run, after their preflight.

    While Java starts, the gems try what they need from the outside; when that fails, the start is given up.

    Args:
        plan: The pipeline.
        nodes: The nodes; ids that don't exist are left for the caller to report.
        options: What is asked for.
        brief: The session is over in a minute or two.
        tried: Those of them whose preflight is done; None for all.

    Raises:
        PipelineError: When something that is needed is missing.
    """
    needed = plan.upstream(name for name in nodes if name in plan.definition.nodes)

    def report(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    guard = StartGuard()

    def look(done: Future[list[Diagnostic]]) -> None:
        if done.exception() is None and any(diagnostic.is_error for diagnostic in done.result()):
            guard.give_up()

    with ThreadPoolExecutor(max_workers=1) as pool:
        looked_at = [name for name in needed if tried is None or name in tried]
        preflight = pool.submit(check_connect, plan, looked_at)
        preflight.add_done_callback(look)
        try:
            session = open_plan_session(
                plan,
                needed,
                report=report,
                spark_log=options.spark_log,
                brief=brief,
                guard=guard,
                environment=options.environment,
            )
        except StartGivenUp:
            raise PipelineError(diagnostic.rewritten(hidden) for diagnostic in preflight.result()) from None
        except GemError as error:
            found = [d for d in preflight.result() if d.is_error]
            raise PipelineError([of_all(plan, error), *found]) from error
        found = preflight.result()
    try:
        if any(diagnostic.is_error for diagnostic in found):
            raise PipelineError(diagnostic.rewritten(hidden) for diagnostic in found)
        # What is decided outside when a run starts, such as the version of a schema.
        for diagnostic in found:
            if diagnostic.severity == "note":
                report(str(diagnostic.rewritten(hidden)))
        if options.show_settings:
            _show_settings(session)
        missing = check_jars(plan, session, needed)
        if missing:
            raise PipelineError(missing)
        with untold_by_py4j():
            yield session
    except BaseException as error:
        session.drop_classes()
        lost = lost_spark(error, session.log)
        if lost is not None and isinstance(error, Exception):
            raise PipelineError([of_all(plan, lost)]) from error
        raise
    finally:
        session.close()


def _show_settings(session: Session) -> None:
    for setting in session.settings:
        print(hidden(f"{setting.key} = {setting.value}  ({setting.origin})"), file=sys.stderr)
    for setting in session.refused:
        said = f"{setting.key} = {setting.value}  (not set: the session has another)"
        print(hidden(said), file=sys.stderr)
