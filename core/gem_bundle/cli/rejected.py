"""`gem-bundle rejected`: what was rejected, and why."""

from __future__ import annotations

import json
from typing import Any

import click

from gem_bundle.cli.complete import complete_file
from gem_bundle.cli.params import format_option, parameter_options


@click.command(
    "rejected",
    short_help="Count rejected rows by reason.",
    epilog="Example: gem-bundle rejected out/broken",
)
@click.argument("where", metavar="FILE|PLACE", shell_complete=complete_file)
@click.option("--in", "place", default="", metavar="PLACE", help="Of a pipeline, this place only.")
@format_option("text", "json")
@parameter_options
def command(
    where: str, place: str, output_format: str, parameters: dict[str, Any], profile: str | None
) -> None:
    """Count rejected rows by node, reason and day, with three of each.

    FILE is a pipeline, whose targets have put them somewhere; PLACE is a path, table:NAME,
    or a topic, kafka://BROKER/TOPIC.
    """
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.replay.counts import counts
    from gem_bundle.run.options import RunOptions

    options = RunOptions(parameters=parameters, profile=profile, quiet=True)
    if place or where.endswith((".yaml", ".yml")):
        found = counts(lambda load_options: load_file(where, load_options), options, place)
    else:
        found = counts(None, options, where)
    if output_format == "json":
        reasons = [{**reason._asdict(), "samples": list(reason.samples)} for reason in found]
        click.echo(json.dumps({"rejected": reasons}, indent=2, ensure_ascii=False))
        return
    for reason in found:
        click.echo(f"{reason.node}: {reason.reason}, {reason.day}: {reason.rows:,}")
        for sample in reason.samples:
            click.echo(f"  {sample}")
    if not found:
        click.echo("nothing was rejected")
