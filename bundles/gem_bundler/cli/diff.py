"""`gem-bundle diff`: what changed between two bundles."""

from __future__ import annotations

from pathlib import Path

import click

from gem_bundle.cli.params import format_option


@click.command(
    "diff",
    short_help="Say what changed between two bundles.",
    epilog="Example: gem-bundle diff dist/orders-1.3.0+g0123456789ab dist/orders-1.4.0+gba9876543210",
)
@click.argument("old", type=click.Path(file_okay=False, path_type=Path), metavar="OLD")
@click.argument("new", type=click.Path(file_okay=False, path_type=Path), metavar="NEW")
@format_option("text", "json")
def command(old: Path, new: Path, output_format: str) -> None:
    """Compare two bundles: pipelines and their nodes, versions, dependencies, jars, the job.

    Values of secrets are in no bundle. The exit status is 0 also when something changed.
    """
    from gem_bundler.bundle.manifest import read
    from gem_bundler.proof.diff import diff, to_json, to_text

    changes = diff(read(old), read(new))
    if output_format == "json":
        click.echo(to_json(changes))
    else:
        click.echo(to_text(changes) or "Nothing has changed.")
