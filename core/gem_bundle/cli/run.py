"""`gem-bundle run`: run a pipeline."""

from __future__ import annotations

from typing import Any

import click

from gem_bundle.cli.complete import complete_target
from gem_bundle.cli.output import print_diagnostics
from gem_bundle.cli.params import (
    Address,
    accept_option,
    file_argument,
    parameter_options,
    report_option,
    spark_log_option,
    targets_option,
)


@click.command(
    "run",
    short_help="Run a pipeline.",
    epilog="Example: gem-bundle run orders.yaml -p topic=orders --available-now",
)
@file_argument
@parameter_options
@targets_option("Run only this target and what it needs; may be given several times.")
@click.option(
    "--fresh",
    multiple=True,
    metavar="ID",
    shell_complete=complete_target,
    help="Give this target new state, from where it ended; its old checkpoint is kept.",
)
@click.option("--available-now", is_flag=True, help="Process what is there, then end.")
@accept_option
@report_option("Write the run's numbers to a JSON file.")
@click.option(
    "--log-format",
    type=click.Choice(["auto", "text", "json"]),
    default="auto",
    show_default=True,
    help="How progress is shown: a live view, or JSON lines; auto takes lines off a terminal.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show errors only.")
@click.option(
    "--stop-timeout",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a running micro-batch may take to end after SIGINT or SIGTERM.",
)
@spark_log_option
@click.option(
    "--serve",
    type=Address(),
    metavar="[HOST:]PORT",
    help="Answer over HTTP meanwhile: metrics, health, state and events; port 0 takes a free one.",
)
@click.option(
    "--allow-control",
    is_flag=True,
    help="Let requests to that server stop the run, and stop and resume single targets.",
)
@click.option(
    "--lineage",
    metavar="URL|FILE",
    help="Tell by OpenLineage's events what is read and written, a server or a file.",
)
@click.option("--show-settings", is_flag=True, help="Print the session's settings and their origins.")
def command(
    file: str,
    parameters: dict[str, Any],
    profile: str | None,
    targets: tuple[str, ...],
    log_format: Any,
    serve: tuple[str, int] | None,
    *,
    allow_control: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Run a pipeline until it ends, fails, or is asked to stop.

    All targets' queries start together. SIGINT and SIGTERM let the running micro-batches end, then stop;
    the next run continues where this one stopped. Progress goes to standard error.

    A pipeline that has changed since its last run is compared with it first, as `gem-bundle plan` does.
    A change by which rows are lost, come again or are mixed stops the run before anything happens.
    """
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.api import run_pipeline
    from gem_bundle.run.options import RunOptions, ServeOptions
    from gem_bundle.run.view import make_view

    if allow_control and serve is None:
        raise click.UsageError("`--allow-control` is about the server that `--serve` starts.")
    options = RunOptions(
        parameters=parameters,
        profile=profile,
        targets=targets,
        log_format=log_format,
        quiet=quiet,
        serve=ServeOptions(*serve, allow_control=allow_control) if serve is not None else None,
        **rest,
    )
    report = run_pipeline(
        lambda load_options: load_file(file, load_options),
        options,
        make_view(log_format, quiet=quiet),
        warn=None if quiet else lambda diagnostic: print_diagnostics([diagnostic]),
    )
    if not report.ok:
        print_diagnostics(report.diagnostics)
        raise SystemExit(1)
