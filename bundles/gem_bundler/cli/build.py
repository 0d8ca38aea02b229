"""`gem-bundle build`: make a bundle of pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_profile
from gem_bundle.cli.output import counted, print_diagnostics, print_note
from gem_bundle.cli.params import files_argument, quiet_option
from gem_bundle.diagnostics import listed_names
from gem_bundler.bundle.model import PLATFORMS

if TYPE_CHECKING:
    from gem_bundler.build import Built
    from gem_bundler.bundle.model import Platform


def _platforms(_ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[Platform, ...]:
    found: dict[Any, None] = {}
    for name in (part.strip() for part in value.split(",")):
        if name not in PLATFORMS:
            known = listed_names(PLATFORMS)
            raise click.BadParameter(f"`{name}` is none of {known}.", param=parameter)
        found[name] = None
    return tuple(found)


@click.command(
    "build",
    short_help="Make a bundle for a cluster.",
    epilog="Example: gem-bundle build orders.yaml --for spark-submit,databricks",
)
@files_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dist"),
    show_default=True,
    metavar="FOLDER",
    help="Where the bundle's folder is made.",
)
@click.option(
    "--for",
    "platforms",
    default="spark-submit",
    show_default=True,
    callback=_platforms,
    metavar="PLATFORMS",
    help="Whose job definitions are written: spark-submit, databricks, kubernetes; several with commas.",
)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profile,
    help="The profile that the job definitions are for.",
)
@click.option("--thin", is_flag=True, help="Leave the dependencies out: the cluster installs them by itself.")
@click.option("--vendor-jars", is_flag=True, help="Copy the jars in, for clusters without a network.")
@click.option(
    "--update-lock", is_flag=True, help="Resolve dependencies and jars again, though they are locked."
)
@click.option(
    "--python", metavar="VERSION", help="The cluster's Python, such as 3.11; by default the one that builds."
)
@click.option(
    "--platform",
    metavar="TAG",
    help="The cluster's machines as a wheel tag; by default manylinux2014_x86_64.",
)
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="FOLDER",
    help="The project's folder; by default the nearest one with a pyproject.toml or gem-bundle.toml.",
)
@click.option(
    "--sign",
    "key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="KEY",
    help="Sign the bundle with this Ed25519 key (PEM).",
)
@click.option(
    "--no-executors",
    is_flag=True,
    help="Don't start Spark to load on executors what they haven't loaded before.",
)
@quiet_option
def command(
    files: tuple[str, ...],
    *,
    python: str | None,
    platform: str | None,
    no_executors: bool,
    quiet: bool,
    **rest: Any,
) -> None:
    """Check pipelines, and make one bundle of them.

    The bundle is a folder with a wheel, everything that it needs, and the job definitions. The same
    inputs give the same bytes, on any machine and at any time. At the end it is proved that the bundle
    works where nothing but pyspark is installed, on a driver and on two executors; these start Spark, and
    only for dependencies and modules that they haven't loaded before.
    """
    from gem_bundler.build import BuildOptions, build

    given = {"python": python, "platform": platform}
    rest |= {name: value for name, value in given.items() if value is not None}
    built = build(files, BuildOptions(executors=not no_executors, **rest), None if quiet else print_note)
    if quiet:
        return
    if built.diagnostics:
        print_diagnostics(built.diagnostics)
    for text in built.done:
        print_note(text[:1].upper() + text[1:] + ".")
    _tell(built)


def _tell(built: Built) -> None:
    folder = built.folder
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    size = sum(file.size for file in built.manifest.files)
    click.echo(f"{shown}: {counted(len(built.manifest.files), 'file')}, {size / 1e6:.1f} MB")
