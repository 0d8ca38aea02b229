"""`gem-bundle schema`: the JSON Schema of the pipeline file, for editors."""

from __future__ import annotations

from pathlib import Path

import click

from gem_bundle.cli.output import print_note
from gem_bundle.cli.params import quiet_option


@click.command(
    "schema",
    short_help="Print the JSON Schema of the pipeline file.",
    epilog="\b\nExample:\n"
    "  gem-bundle schema -o pipeline.schema.json\n"
    "and for editors with yaml-language-server, in the first line of a pipeline:\n"
    "  # yaml-language-server: $schema=pipeline.schema.json",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to a file instead.",
)
@quiet_option
def command(output: Path | None, *, quiet: bool) -> None:
    """Print the JSON Schema of the pipeline file, with the options of all installed gems.

    With it an editor completes gems and options, shows what they are for, and marks what is misspelt or
    missing while you type. Write it again when you have installed or updated gems.
    """
    import json

    from gem_bundle.describe import pipeline_schema
    from gem_bundle.plugins import load_registry

    registry = load_registry()
    schema = json.dumps(pipeline_schema(registry), indent=2, ensure_ascii=False)
    if not quiet:
        for broken in registry.broken:
            print_note(f"The gems of `{broken.origin}` are missing, they can't be loaded: {broken.error}")
    if output is None:
        click.echo(schema)
    else:
        output.write_text(f"{schema}\n", encoding="utf-8")
