"""What a start would do to rows: the plan of a bundle's pipeline against its checkpoints, without a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.run.options import RunOptions
    from gem_bundler.bundle.inside import Installed


def plan(installed: Installed, name: str | None, root: Path, run: RunOptions) -> int:
    """Say what becomes of rows when the bundle starts, as `gem-bundle plan` does; nothing is started.

    Args:
        installed: The bundle.
        name: The pipeline; None for the first one.
        root: What the pipeline's relative paths are relative to.
        run: Parameters, profile, targets, those with new state, and accepted changes.

    Returns:
        The exit status: 1 when a start would be stopped, or the pipeline has errors.
    """
    from gem_bundle.changes.accepting import check_accepted
    from gem_bundle.changes.formats.text import as_text, summary
    from gem_bundle.changes.planning import plan_changes
    from gem_bundle.changes.unplanned import why_unplanned
    from gem_bundle.check.checker import check_definition
    from gem_bundle.cli.output import paint, print_diagnostics, scrubbed
    from gem_bundle.diagnostics import in_order
    from gem_bundle.errors import PipelineError
    from gem_bundle.pipeline.chosen import chosen_target_ids
    from gem_bundle.pipeline.loader import LoadOptions

    pipeline = installed.pipeline(name)
    load = LoadOptions(run.parameters, run.profile, skip_env=True)
    if run.environment is not None:
        load.environment = run.environment
    checked = check_definition(installed.load(pipeline, root, load))
    missing = why_unplanned(checked)
    found = [*checked.diagnostics, *missing]
    targets: list[TargetChanges] = []
    unknown = 0
    if checked.definition is not None:
        try:
            for names in filter(None, (run.targets, run.fresh)):
                chosen_target_ids(checked.definition, names)
        except PipelineError as error:
            missing = list(error.diagnostics)
            found += missing
        if checked.plan is not None and not missing:
            targets, wrong = plan_changes(checked.plan, run.targets, run.environment)
            known = (target.with_new_state() if target.target in run.fresh else target for target in targets)
            targets = [target.accepting(run.accept) for target in known]
            found += [*wrong, *check_accepted(checked.plan, (t.target for t in targets), run.accept)]
            unknown = len({diagnostic.node for diagnostic in wrong if diagnostic.is_error})
    print_diagnostics(in_order(diagnostic for diagnostic in found if diagnostic.severity != "note"))
    if targets or unknown:
        for line in as_text(targets, paint):
            click.echo(scrubbed(line))
        text, colour = summary(targets, unknown)
        click.echo(f"{pipeline.name}: {paint(text, colour)}")
    failed = any(diagnostic.is_error for diagnostic in found) or any(target.stops for target in targets)
    return 1 if failed else 0
