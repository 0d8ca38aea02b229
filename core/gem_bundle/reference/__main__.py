"""``python -m gem_bundle.reference FOLDER``: write the reference, or say what of it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gem_bundle.errors import PluginError
from gem_bundle.plugins import load_registry
from gem_bundle.reference import reference, stale, write


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--distribution", metavar="NAME", help="Describe only what this distribution brings.")
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 when a page is out of date.")
def command(folder: Path, distribution: str | None, check: bool) -> None:
    """Write the reference of what is installed as Markdown pages.

    Files in the folder that are not generated pages are left alone.
    """
    registry = load_registry()
    for broken in registry.broken:
        click.echo(f"{broken.origin}: {broken.error}", err=True)
    try:
        pages = reference(registry, distribution)
    except PluginError as error:
        raise click.ClickException(str(error)) from error
    if len(pages) == 1:
        raise click.ClickException(f"`{distribution}` brings no gems, sections or commands.")
    wrong = stale(folder, pages) if check else write(folder, pages)
    for name, what in wrong.items():
        click.echo(f"{folder / name}: {what if check else 'removed' if name not in pages else 'written'}")
    if check and wrong:
        hint = "run this without --check"
        click.echo(f"{len(wrong)} of {len(pages)} pages differ from what is installed: {hint}.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    command(prog_name="python -m gem_bundle.reference")
