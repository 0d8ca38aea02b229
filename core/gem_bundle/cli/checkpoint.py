"""`gem-bundle checkpoint`: what the checkpoints of a pipeline hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gem_bundle.cli.output import aligned, heading, print_diagnostics, print_json, scrubbed_diagnostic
from gem_bundle.cli.params import file_argument, format_option, parameter_options, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.changes.inspection import Inspection
    from gem_bundle.diagnostics import Diagnostic


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
    from gem_bundle.changes.gone import left_behind
    from gem_bundle.changes.inspection import inspect
    from gem_bundle.cli.definition import look_up
    from gem_bundle.errors import PipelineError
    from gem_bundle.pipeline.chosen import chosen_target_ids

    read = look_up(file, parameters, profile, targets)
    if read.definition is None:
        _show([], read.errors, output_format)
        raise SystemExit(read.status)
    gone = left_behind(read.definition, targets)
    wanted = [target for target in targets if target not in gone]
    try:
        chosen = chosen_target_ids(read.definition, wanted) if wanted or not gone else []
    except PipelineError as error:
        _show([], error.diagnostics, output_format)
        raise SystemExit(1) from error
    found = inspect(read.definition, [*chosen, *gone])
    diagnostics = [diagnostic for inspection in found for diagnostic in inspection.diagnostics]
    _show(found, diagnostics, output_format)
    if diagnostics:
        raise SystemExit(1)


def _show(found: Sequence[Inspection], diagnostics: Sequence[Diagnostic], output_format: str) -> None:
    """Print what there is to tell, and what is wrong."""
    from gem_bundle.changes.inspection import lines_of

    if output_format == "json":
        print_json(
            {
                "ok": not diagnostics,
                "targets": {inspection.target: inspection.as_dict() for inspection in found},
                "diagnostics": [scrubbed_diagnostic(diagnostic).as_dict() for diagnostic in diagnostics],
            }
        )
        return
    for number, inspection in enumerate(found):
        lines = list(lines_of(inspection))
        if lines:
            click.echo(("\n" if number else "") + heading(inspection.target))
            for line in aligned(lines, "  "):
                click.echo(line)
    print_diagnostics(diagnostics)
