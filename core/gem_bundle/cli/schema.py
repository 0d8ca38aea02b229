"""`gem-bundle schema`: the JSON Schema of pipeline files and of their tests, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gem_bundle.cli.output import print_note
from gem_bundle.cli.params import quiet_option


@click.command(
    "schema",
    short_help="Print the JSON Schema of pipeline files, or of their tests.",
    epilog="\b\nExamples:\n"
    "  gem-bundle schema -o pipeline.schema.json\n"
    "  gem-bundle schema --tests -o test.schema.json\n"
    "and for editors with yaml-language-server, in the first line of a pipeline:\n"
    "  # yaml-language-server: $schema=pipeline.schema.json",
)
@click.option("--tests", is_flag=True, help="That of test files (`orders.test.yaml`) instead.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to a file instead.",
)
@quiet_option
def command(output: Path | None, *, tests: bool, quiet: bool) -> None:
    """Print the JSON Schema of the pipeline file, with the options of all installed gems.

    With it an editor completes gems and options, shows what they are for, and marks what is misspelt or
    missing while you type. Write it again when you have installed or updated gems.
    """
    import json

    text = json.dumps(_declared_tests() if tests else _pipeline(quiet=quiet), indent=2, ensure_ascii=False)
    if output is None:
        click.echo(text)
    else:
        output.write_text(f"{text}\n", encoding="utf-8")


def _declared_tests() -> dict[str, Any]:
    from gem_bundle.testing.declared.schema import declared_tests_schema

    return declared_tests_schema()


def _pipeline(*, quiet: bool) -> dict[str, Any]:
    from gem_bundle.describe import pipeline_schema
    from gem_bundle.plugins import load_registry

    registry = load_registry()
    if not quiet:
        for broken in registry.broken:
            print_note(f"The gems of `{broken.origin}` are missing, they can't be loaded: {broken.error}")
    return pipeline_schema(registry)
