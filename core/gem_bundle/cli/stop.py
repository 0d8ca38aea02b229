"""`gem-bundle stop`: ask a run to stop, or one of its queries."""

from __future__ import annotations

import click

from gem_bundle.cli.params import file_argument, parameter_options, targets_option


@click.command(
    "stop",
    short_help="Stop the run of a pipeline.",
    epilog="Example: gem-bundle stop orders.yaml --target table",
)
@file_argument
@parameter_options
@targets_option("Stop the query of this target only; may be given several times.")
@click.option("--now", is_flag=True, help="Don't let the running micro-batches end first.")
@click.option("--wait", is_flag=True, help="Wait until it has stopped.")
def command(
    file: str,
    parameters: dict[str, str],
    profile: str | None,
    targets: tuple[str, ...],
    *,
    now: bool,
    wait: bool,
) -> None:
    """Ask the run of a pipeline to stop, from any machine that sees its checkpoints.

    The running micro-batches end first, and the next run continues there. With
    `--target` the other queries go on, and `gem-bundle resume` starts that one
    again; when no query is left, the run ends.
    """
    from gem_bundle.cli.definition import read_definition
    from gem_bundle.run.asking import ask_runs, wait_until_done
    from gem_bundle.run.found import lines_of

    definition = read_definition(file, parameters, profile)
    asked = ask_runs(definition, "stop", targets, now=now)
    if wait:
        ended = wait_until_done(definition, asked, targets)
        for run in ended:
            for line in lines_of(run):
                click.echo(line)
        if any(run.verdict.state in {"failed", "died"} for run in ended):
            raise SystemExit(1)
        return
    what = "to stop" + "".join(f" `{target}`" for target in targets)
    how = "at once" if now else "when the running micro-batches have ended"
    for run in asked:
        click.echo(f"{definition.name}: asked {run.record.process} {what}, {how}.")
