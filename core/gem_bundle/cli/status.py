"""`gem-bundle status`: how the run of a pipeline is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gem_bundle.cli.output import print_json
from gem_bundle.cli.params import file_argument, format_option, parameter_options

if TYPE_CHECKING:
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.run.found import FoundRun


@click.command(
    "status",
    short_help="Say how the run of a pipeline is.",
    epilog="Example: gem-bundle status orders.yaml --watch",
)
@file_argument
@parameter_options
@click.option("--watch", is_flag=True, help="Go on until the run is over, or Ctrl-C.")
@click.option(
    "--progress",
    type=click.IntRange(1, 20),
    metavar="N",
    help="Show the last N micro-batches of each target too, up to 20.",
)
@click.option("--plan", is_flag=True, help="Show Spark's plan of each query too; the run is asked for it.")
@format_option("text", "json")
def command(
    file: str,
    parameters: dict[str, str],
    profile: str | None,
    progress: int | None,
    output_format: str,
    *,
    watch: bool,
    plan: bool,
) -> None:
    """Say how the run of a pipeline is, also one on another machine, without starting Spark.

    For each target: the last micro-batch, the watermark, state, totals, and what it
    failed with. The run writes this down beside its checkpoints every 5 seconds.
    The exit status is 0 only when a run is alive, none of its queries has failed, and
    no target breaks a limit of its health.
    """
    from gem_bundle.cli.definition import read_definition

    definition = read_definition(file, parameters, profile)
    found = _look(definition)
    _show(found, progress or 0, output_format, _plans(definition, found) if plan else {})
    try:
        while watch and any(run.verdict.is_alive for run in found):
            _pause()
            before, found = found, _look(definition)
            if [run.record for run in found] != [run.record for run in before] or not all(
                run.verdict.is_alive for run in found
            ):
                plans = _plans(definition, found) if plan else {}
                _show(found, progress or 0, output_format, plans, again=True)
    except KeyboardInterrupt:
        click.echo(err=True)
    if not all(run.is_healthy for run in found):
        raise SystemExit(1)


def _look(definition: Definition) -> list[FoundRun]:
    from gem_bundle.run.asking import nobody
    from gem_bundle.run.found import of_interest, runs_in
    from gem_bundle.runs.record import runs_place

    found = of_interest(runs_in(runs_place(definition)))
    if not found:
        raise nobody(definition, None)
    return found


def _plans(definition: Definition, found: list[FoundRun]) -> dict[str, dict[str, str]]:
    """The plans of the queries of the runs that live, by run and target."""
    from gem_bundle.run.asking import plans_of

    return {run.record.id: plans_of(definition, run) for run in found if run.verdict.is_alive}


def _show(
    found: list[FoundRun],
    progress: int,
    output_format: str,
    plans: dict[str, dict[str, str]],
    *,
    again: bool = False,
) -> None:
    from gem_bundle.run.found import lines_of

    if output_format == "json":
        told = [run.as_dict() for run in found]
        for content in told:
            if content["id"] in plans:
                content["plans"] = plans[content["id"]]
        print_json({"ok": all(run.is_healthy for run in found), "runs": told})
        return
    if again:
        click.clear()  # which does nothing where there is no terminal
    for run in found:
        for line in lines_of(run, progress):
            click.echo(line)
        for target, text in plans.get(run.record.id, {}).items():
            click.echo(f"  plan of {target}:")
            click.echo("\n".join(f"    {line}" for line in (text or "none yet").splitlines()))


def _pause() -> None:
    import time

    time.sleep(1)
