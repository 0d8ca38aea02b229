"""`gem-bundle replay`: bring rejected rows back in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_node
from gem_bundle.cli.params import file_argument, parameter_options, quiet_option, spark_log_option

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    "replay",
    short_help="Bring rejected rows back in.",
    epilog="Example: gem-bundle replay shop.yaml parsed --from out/broken --dry-run",
)
@file_argument
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.option(
    "--from", "place", required=True, metavar="PLACE", help="Their place: a path, table:NAME or a topic."
)
@click.option("--where", default="", metavar="CONDITION", help="Only those for which this holds.")
@click.option("--limit", type=click.IntRange(min=1), metavar="ROWS", help="So many at most.")
@click.option("--dry-run", is_flag=True, help="Write nothing, and tell how many there are.")
@parameter_options
@spark_log_option
@quiet_option
def command(
    file: str,
    node: str,
    place: str,
    where: str,
    limit: int | None,
    parameters: dict[str, Any],
    profile: str | None,
    spark_log: Path | None,
    *,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Bring rows that a node rejected back in, after the pipeline or the data was mended.

    They come as rows of the node's input and go through the rest of the pipeline as a batch, beside a run
    of it. Each comes back once: what was replayed stands beside the checkpoints. Rows that are rejected
    again go where the node's rejected rows go.
    """
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.replay.api import Wanted, replay
    from gem_bundle.run.options import RunOptions

    options = RunOptions(parameters=parameters, profile=profile, quiet=quiet, spark_log=spark_log)
    wanted = Wanted(node, place, where, limit, dry_run)
    done = replay(lambda load_options: load_file(file, load_options), options, wanted)
    rows = f"{done.rows:,} {'row' if done.rows == 1 else 'rows'}"
    if dry_run:
        click.echo(f"{rows} of `{node}` would come back in")
        return
    click.echo(f"{rows} of `{node}` came back in")
    for target, count in done.written.items():
        click.echo(f"  {target}: {count:,}")
    if done.resumed:
        click.echo(f"  {done.resumed:,} of them were of a replay that had not come to its end")
