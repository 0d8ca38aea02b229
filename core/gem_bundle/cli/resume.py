"""`gem-bundle resume`: start the query of a target again that was stopped."""

from __future__ import annotations

import click

from gem_bundle.cli.complete import complete_target
from gem_bundle.cli.params import file_argument, parameter_options
from gem_bundle.diagnostics import listed_names


@click.command(
    "resume",
    short_help="Start a stopped target's query again.",
    epilog="Example: gem-bundle resume orders.yaml --target table",
)
@file_argument
@parameter_options
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    metavar="ID",
    shell_complete=complete_target,
    help="The target whose query was stopped; may be given several times.",
)
def command(file: str, parameters: dict[str, str], profile: str | None, targets: tuple[str, ...]) -> None:
    """Start the query of a target again in a run that is alive.

    For what `gem-bundle stop --target` has stopped: it continues where it stopped.
    """
    from gem_bundle.cli.definition import read_definition
    from gem_bundle.run.asking import ask_runs

    definition = read_definition(file, parameters, profile)
    what = listed_names(targets)
    for run in ask_runs(definition, "resume", targets):
        click.echo(f"{definition.name}: asked {run.record.process} to go on with {what}.")
