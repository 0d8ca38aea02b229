"""`gem-bundle backfill`: compute a span of event time anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_target
from gem_bundle.cli.output import counted, print_diagnostics, print_note, scrubbed
from gem_bundle.cli.params import (
    file_argument,
    parameter_options,
    quiet_option,
    report_option,
    spark_log_option,
)

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path


def _moment(ctx: click.Context, parameter: click.Parameter, text: str) -> datetime:
    from gem_bundle.backfill.interval import moment_of

    try:
        return moment_of(text)
    except ValueError:
        message = f"`{text}` is no time; write `2026-01-31` or `2026-01-31T10:00:00Z`."
    except OverflowError:
        message = f"`{text}` isn't in the years 1 to 9999 in UTC."
    raise click.BadParameter(message, ctx, parameter)


def _length(ctx: click.Context, parameter: click.Parameter, text: str | None) -> timedelta | None:
    from gem_bundle.backfill.interval import length_of

    try:
        return None if text is None else length_of(text)
    except ValueError as error:
        raise click.BadParameter(f"`{text}`: {error}.", ctx, parameter) from None


@click.command(
    "backfill",
    short_help="Compute a span of time anew.",
    epilog="\b\nExamples:\n"
    "  gem-bundle backfill it.yaml --target t --from 2026-01-01 --to 2026-01-08\n"
    "  gem-bundle backfill it.yaml --target t --from 2026-01-01 --to 2026-01-08 \\\n"
    '    --step "1 day" --compare',
)
@file_argument
@parameter_options
@click.option("--target", required=True, metavar="ID", shell_complete=complete_target, help="The target.")
@click.option(
    "--from",
    "start",
    required=True,
    metavar="TIME",
    callback=_moment,
    help="The first moment: a date, or a date and a time; without a zone it is UTC.",
)
@click.option(
    "--to", "end", required=True, metavar="TIME", callback=_moment, help="The first moment behind it."
)
@click.option(
    "--column",
    metavar="NAME",
    help="The column that has the time, where it isn't the event time.",
)
@click.option("--into", metavar="PLACE", help="Write to another place: a path, or table:NAME.")
@click.option("--compare", is_flag=True, help="Write nothing, and tell how the rows differ.")
@click.option(
    "--step",
    metavar="LENGTH",
    callback=_length,
    help='Do it in parts of this length, such as "1 day": each is one commit.',
)
@click.option(
    "--margin",
    metavar="LENGTH",
    callback=_length,
    help="How long before or after its time what a row is made of may have come to its source; by default "
    "sources are read whole.",
)
@click.option(
    "--partition",
    metavar="NAME",
    help="The column of the sources with the day that rows are filed under, such as that of folders "
    "`day=2026-01-31`: only days of the time are read, and those that `--margin` adds.",
)
@report_option("Write what was done to a JSON file.")
@spark_log_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: str,
    parameters: dict[str, Any],
    profile: str | None,
    target: str,
    start: datetime,
    end: datetime,
    step: timedelta | None,
    margin: timedelta | None,
    partition: str | None,
    report: Path | None,
    spark_log: Path | None,
    *,
    quiet: bool,
    **rest: Any,
) -> None:
    """Compute a span of event time of a target anew, beside the live run and without its checkpoint.

    The pipeline as it is now runs as a batch over what its sources still have. What comes out for the
    time takes the place of what is there, in one commit for each step. Where rows could be lost or be
    written twice nothing is done, and the reason is told.

    One that was stopped goes on with its next step when it is called again. With `--compare` the exit
    status is 1 when there are differences.
    """
    from gem_bundle.backfill.api import BackfillOptions, StepDone, lines_of, run_backfill
    from gem_bundle.backfill.interval import Interval
    from gem_bundle.backfill.rules import Wanted
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.options import RunOptions

    if end <= start:
        ctx.fail("`--to` must lie behind `--from`.")
    interval = Interval(start, end)
    try:
        interval.steps(step)
    except ValueError as error:
        ctx.fail(f"`--step`: {error}.")
    wanted = Wanted(target, interval, **rest)

    def tell(done: StepDone) -> None:
        for line in lines_of(done):
            if wanted.compare:
                click.echo(scrubbed(line))
            elif not quiet:
                print_note(line)

    done = run_backfill(
        lambda load_options: load_file(file, load_options),
        RunOptions(parameters=parameters, profile=profile, quiet=quiet, spark_log=spark_log, report=report),
        BackfillOptions(wanted, step, margin, partition),
        tell,
    )
    if done.skipped and not quiet:
        print_note(f"{counted(done.skipped, 'step')} {'was' if done.skipped == 1 else 'were'} done before.")
    if done.diagnostics:
        print_diagnostics(done.diagnostics)
    if not done.ok:
        raise SystemExit(1)
