"""`gem-bundle preview`: the first rows of any node."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_node
from gem_bundle.cli.params import file_argument, parameter_options

if TYPE_CHECKING:
    from gem_bundle.run.preview import Preview


@click.command(
    "preview",
    short_help="Show the first rows of a node.",
    epilog="Example: gem-bundle preview orders.yaml parsed -n 5",
)
@file_argument
@click.argument("node", metavar="NODE", shell_complete=complete_node)
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="ROWS",
    help="How many rows.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a stream may take to deliver them.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A table, or one JSON object a row.",
)
@parameter_options
def command(
    file: str,
    node: str,
    rows: int,
    timeout: float,
    output_format: str,
    parameters: dict[str, Any],
    profile: str | None,
) -> None:
    """Show the schema and the first rows of a node, streams included.

    A stream is read by a query of its own with a throw-away checkpoint; the pipeline's checkpoints and
    targets are never touched. For a node with several outputs write NODE.OUTPUT.
    """
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.api import open_for, prepare
    from gem_bundle.run.options import RunOptions
    from gem_bundle.run.preview import preview

    options = RunOptions(parameters=parameters, profile=profile)
    plan, _ = prepare(lambda load_options: load_file(file, load_options), options)
    with open_for(plan, [node.partition(".")[0]], options, brief=True) as session:
        found = preview(plan, node, session.spark, rows, timeout)
        if output_format == "json":
            _print_json(found)
        else:
            _print_table(found)


def _print_json(found: Preview) -> None:
    for row in found.rows:
        click.echo(json.dumps(row.asDict(recursive=True), default=str))


def _print_table(found: Preview) -> None:
    from rich.console import Console
    from rich.table import Table

    kind = "stream" if found.streaming else "static"
    console = Console(highlight=False)
    table = Table(title=f"{found.node} ({kind})", title_justify="left")
    for field in found.schema.fields:
        table.add_column(f"{field.name}\n[dim]{field.dataType.simpleString()}[/dim]", overflow="fold")
    for row in found.rows:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)
    count = len(found.rows)
    if not count:
        console.print("No rows.")
    elif found.complete:
        console.print("1 row, all there is." if count == 1 else f"{count:,} rows, all there are.")
    else:
        console.print("The first row." if count == 1 else f"The first {count:,} rows.")


def _cell(value: object) -> str:
    from rich.markup import escape

    if value is None:
        return "[dim]null[/dim]"
    if isinstance(value, bytes | bytearray):
        try:
            return escape(bytes(value).decode("utf-8"))
        except UnicodeDecodeError:
            return f"0x{bytes(value[:32]).hex()}"
    as_dict = getattr(value, "asDict", None)
    return escape(str(as_dict(recursive=True) if as_dict else value))
