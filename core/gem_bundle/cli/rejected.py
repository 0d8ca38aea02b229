"""`gem-bundle rejected`: what was rejected, and why."""

from __future__ import annotations

import json
from typing import Any

import click

from gem_bundle.cli.params import file_argument, format_option, parameter_options


@click.command(
    "rejected",
    short_help="Count rejected rows by reason.",
    epilog="Example: gem-bundle rejected shop.yaml --in out/broken",
)
@file_argument
@click.option("--in", "place", required=True, metavar="PLACE", help="Their place: a path, or table:NAME.")
@format_option("text", "json")
@parameter_options
def command(
    file: str, place: str, output_format: str, parameters: dict[str, Any], profile: str | None
) -> None:
    """Count the rows that a pipeline rejected, by node, reason and day, with three of each."""
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.replay.api import counts
    from gem_bundle.run.options import RunOptions

    options = RunOptions(parameters=parameters, profile=profile, quiet=True)
    found = counts(lambda load_options: load_file(file, load_options), options, place)
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
