"""`gem-bundle rejected`: what was rejected, and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_file
from gem_bundle.cli.params import format_option, parameter_options

if TYPE_CHECKING:
    from gem_bundle.replay.counts import OfNode


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

    A row with several reasons is counted under each. Of a pipeline it tells too how many were replayed.

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
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
        return
    for reason in found.rejected:
        click.echo(f"{reason.node}: {reason.reason}, {reason.day}: {reason.rows:,}")
        for sample in reason.samples:
            click.echo(f"  {sample}")
    for node in found.nodes:
        click.echo(_summary(node))
    if not found.nodes:
        click.echo("nothing was rejected")


def _summary(node: OfNode) -> str:
    """All rows of a node in a sentence."""
    rows = f"{node.node}: {node.rows:,} {'row' if node.rows == 1 else 'rows'} in all"
    more = []
    if node.several:
        more.append(f"{node.several:,} under more than one reason")
    if node.replayed:
        more.append(f"{node.replayed:,} replayed already")
    return ", ".join([rows, *more])
