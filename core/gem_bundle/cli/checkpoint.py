"""`gem-bundle checkpoint`: what the checkpoints of a pipeline hold."""

from __future__ import annotations

import click

from gem_bundle.cli.output import aligned, heading, print_diagnostics, print_json
from gem_bundle.cli.params import file_argument, format_option, parameter_options, targets_option


@click.command(
    "checkpoint",
    short_help="Show what checkpoints hold.",
    epilog="Example: gem-bundle checkpoint show orders.yaml --target table",
)
@click.argument("action", type=click.Choice(["show"]))
@file_argument
@parameter_options
@targets_option("Show the checkpoint of this target only; may be given several times.")
@format_option("text", "json")
def command(
    action: str,  # noqa: ARG001 (there is only one)
    file: str,
    parameters: dict[str, str],
    profile: str | None,
    targets: tuple[str, ...],
    output_format: str,
) -> None:
    """Show how far the targets of a pipeline have got, without starting Spark.

    For each one: up to where its sources were read, the last micro-batches, the
    watermark, what state there is, the settings that can't change any more, and
    which versions of the pipeline ran. Nothing is changed.
    """
    from gem_bundle.changes.inspection import inspect, lines_of
    from gem_bundle.cli.definition import read_definition
    from gem_bundle.errors import PipelineError
    from gem_bundle.pipeline.chosen import chosen_target_ids

    definition = read_definition(file, parameters, profile)
    try:
        chosen = chosen_target_ids(definition, targets)
    except PipelineError as error:
        print_diagnostics(error.diagnostics)
        raise SystemExit(1) from error
    found = inspect(definition, chosen)
    diagnostics = [diagnostic for inspection in found for diagnostic in inspection.diagnostics]
    if output_format == "json":
        shown = {inspection.target: inspection.as_dict() for inspection in found}
        print_json({"ok": not diagnostics, "targets": shown})
    else:
        for number, inspection in enumerate(found):
            lines = list(lines_of(inspection))
            if lines:
                click.echo(("\n" if number else "") + heading(inspection.target))
                for line in aligned(lines, "  "):
                    click.echo(line)
    if diagnostics:
        if output_format == "text":
            print_diagnostics(diagnostics)
        raise SystemExit(1)
