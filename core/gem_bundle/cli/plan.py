"""`gem-bundle plan`: what an edit of a pipeline does to its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gem_bundle.cli.complete import complete_file
from gem_bundle.cli.output import paint, print_diagnostics, scrubbed, scrubbed_diagnostic
from gem_bundle.cli.params import (
    file_argument,
    format_option,
    parameter_options,
    quiet_option,
    targets_option,
)

if TYPE_CHECKING:
    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Definition


@click.command(
    "plan",
    short_help="Say what an edit does to the checkpoints.",
    epilog="\b\nExamples:\n"
    "  gem-bundle plan orders.yaml -p topic=orders\n"
    "  gem-bundle plan orders.yaml --against old/orders.yaml --markdown > it.md\n"
    "  gem-bundle plan orders.yaml --target table --format json",
)
@file_argument
@parameter_options
@targets_option("Look at this target only; may be given several times.")
@click.option(
    "--against",
    metavar="FILE|BUNDLE",
    shell_complete=complete_file,
    help="Compare with another version of the file, or a bundle, in place of what ran last.",
)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a comment on a pull request.")
@format_option("text", "json")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    parameters: dict[str, str],
    profile: str | None,
    targets: tuple[str, ...],
    against: str | None,
    output_format: str,
    *,
    markdown: bool,
    quiet: bool,
) -> None:
    """Say what an edit does to the rows of each target, before it runs.

    The pipeline is compared with what ran last on each checkpoint, and every change is told at its line.
    Nothing is started and nothing is changed.

    From harmless to fatal: with a change a target `continues`, goes by it `from_now_on`, or rows are
    `skipped`, come `again`, or are `mixed` with what the old rule made, or Spark has `refused` to go on.
    From `skipped` on the exit status is 1, and where a checkpoint can't be seen or is damaged.
    """
    from gem_bundle.diagnostics import in_order

    if markdown and output_format != "text":
        ctx.fail("`--markdown` is a format of its own: it doesn't go with `--format`.")
    found, diagnostics, unknown = _plan(file, parameters, profile, targets, against)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
    ok = not errors and not any(target.stops for target in found)
    if output_format == "json":
        from gem_bundle.changes.formats.json import as_json

        shown = [scrubbed_diagnostic(diagnostic) for diagnostic in in_order(diagnostics)]
        click.echo(scrubbed(as_json(found, shown, ok=ok)))
    else:
        print_diagnostics(errors if quiet else in_order(diagnostics))
        wanted = [target for target in found if target.stops or not quiet]
        if markdown:
            from gem_bundle.changes.formats.markdown import as_markdown

            shown = [scrubbed_diagnostic(diagnostic) for diagnostic in in_order(errors)]
            if not ok or not quiet:
                click.echo(scrubbed(as_markdown(file, wanted, shown, unknown)), nl=False)
        elif found or unknown or not errors:
            from gem_bundle.changes.formats.text import as_text, summary

            for line in as_text(wanted, paint):
                click.echo(scrubbed(line))
            if not quiet:
                text, colour = summary(found, unknown)
                click.echo(f"{file}: {paint(text, colour)}")
    if not ok:
        raise SystemExit(1)


def _plan(
    file: str,
    parameters: dict[str, str],
    profile: str | None,
    targets: tuple[str, ...],
    against: str | None,
) -> tuple[list[TargetChanges], list[Diagnostic], int]:
    """What becomes of each target, what is wrong with the pipeline or the other version of it.

    Returns:
        At the end of how many targets it isn't known what becomes of them.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from gem_bundle.changes.gone import left_behind
    from gem_bundle.changes.planning import plan_changes
    from gem_bundle.changes.unplanned import why_unplanned
    from gem_bundle.check import check_file
    from gem_bundle.errors import PipelineError
    from gem_bundle.pipeline.loader import LoadOptions

    checked = check_file(file, LoadOptions(parameters, profile, skip_env=True))
    diagnostics = list(checked.diagnostics)
    missing = why_unplanned(checked)
    if against is None and checked.definition is not None:
        missing += _unknown(checked.definition, targets, left_behind(checked.definition, targets))
    if checked.plan is None or missing:
        return [], [*diagnostics, *missing], 0
    if against is None:
        found, more = plan_changes(checked.plan, targets)
        unknown = {diagnostic.node for diagnostic in more if diagnostic.is_error}
        return found, [*diagnostics, *more], len(unknown)
    from gem_bundle.changes.against import plan_against
    from gem_bundle.changes.versions import check_version

    with TemporaryDirectory(prefix="gem-bundle-plan-") as work:
        try:
            former = check_version(
                Path(against),
                checked.plan.definition,
                LoadOptions(parameters, profile, skip_env=True),
                Path(work),
            )
        except PipelineError as error:
            return [], [*diagnostics, *error.diagnostics], 0
        missing = why_unplanned(former)
        if former.plan is None or missing:
            return [], [*diagnostics, *(d for d in former.diagnostics if d.is_error), *missing], 0
        now = {node.identity for node in checked.plan.definition.of_kind("target")}
        ran = former.plan.definition.of_kind("target")
        gone = [node.id for node in ran if node.identity not in now]
        missing = _unknown(checked.plan.definition, targets, gone)
        if missing:
            return [], [*diagnostics, *missing], 0
        return plan_against(checked.plan, former.plan, targets), diagnostics, 0


def _unknown(definition: Definition, targets: tuple[str, ...], gone: list[str]) -> list[Diagnostic]:
    """GB108 for each target that neither the pipeline has, right or wrong, nor has had."""
    from gem_bundle.errors import PipelineError
    from gem_bundle.pipeline.chosen import chosen_target_ids

    section = definition.locator.place(("targets",), key=True)
    known = {t for t in targets if definition.locator.place(("targets", t), key=True) != section}
    try:
        chosen_target_ids(definition, [t for t in targets if t not in known and t not in gone])
    except PipelineError as error:
        return list(error.diagnostics)
    return []
