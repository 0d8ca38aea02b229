"""`gem-bundle jars`: what a pipeline needs beside Spark, and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gem_bundle.cli.output import aligned, counted, heading, print_diagnostics, print_json, print_note
from gem_bundle.cli.params import file_argument, format_option, parameter_options, quiet_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.jars import Jar
    from gem_bundle.settings import Settings


class _Row(NamedTuple):
    """A jar, who needs it, whether the project's settings ask for it, and whether they chose its version."""

    jar: Jar
    nodes: tuple[str, ...]
    wanted: bool
    overridden: bool

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON takes it."""
        jar = self.jar
        return {
            "coordinate": jar.coordinate,
            "nodes": list(self.nodes),
            "project": self.wanted,
            "needed_by": list(jar.requested_by),
            "overridden": self.overridden,
            "origin": jar.origin,
            "cached": jar.cached,
            "path": str(jar.path),
            "sha256": jar.sha256,
            "size": jar.size,
        }

    def needed_by(self) -> str:
        """The nodes and the project that asked for it, or the jars whose dependency it is."""
        artifacts = [coordinate.split(":")[1] for coordinate in self.jar.requested_by]
        names = [f"`{node}`" for node in self.nodes] + ["the project"] * self.wanted + artifacts
        return f"for {', '.join(names)}"


@click.command(
    "jars",
    short_help="Show the jars a pipeline needs.",
    epilog="Example: gem-bundle jars orders.yaml",
)
@file_argument
@parameter_options
@format_option("text", "json")
@quiet_option
def command(
    file: str, parameters: dict[str, str], profile: str | None, output_format: str, *, quiet: bool
) -> None:
    """Show the jars that a pipeline needs beside Spark's own: who needs each, and where it came from.

    What isn't in the cache yet is fetched, so that the next run starts without a network. Versions and
    repositories can be set for a project under `[jars]` in gem-bundle.toml.
    """
    from gem_bundle.check import check_file
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.run.environment import find_jars
    from gem_bundle.settings import load_settings

    checked = check_file(file, LoadOptions(parameters, profile, skip_env=True))
    plan = checked.plan
    if plan is None:
        print_diagnostics(checked.diagnostics)
        raise SystemExit(1)
    jars = find_jars(plan, report=None if quiet else print_note)
    rows = _rows(plan, jars, load_settings(plan.definition.folder))
    if output_format == "json":
        print_json([row.as_dict() for row in rows])
        return
    for line in _text(file, rows):
        click.echo(line)


def _rows(plan: Plan, jars: Iterable[Jar], settings: Settings) -> list[_Row]:
    """The jars that nodes and the project asked for first, then what those depend on."""
    from gem_bundle.run.environment import needed_jars, project_jars

    nodes: dict[str, list[str]] = {}
    for name in plan.order:
        for coordinate in needed_jars(plan, [name]):
            nodes.setdefault(_artifact(coordinate), []).append(name)
    project = {_artifact(coordinate) for coordinate in project_jars(settings)}
    rows = []
    for jar in jars:
        name = _artifact(jar.coordinate)
        rows.append(_Row(jar, tuple(nodes.get(name, ())), name in project, name in settings.overrides))
    return sorted(rows, key=lambda row: (not row.nodes, not row.wanted, row.jar.coordinate))


def _artifact(coordinate: str) -> str:
    """``group:artifact``, by which a version is overridden."""
    return coordinate.rpartition(":")[0]


def _text(file: str, rows: list[_Row]) -> Iterator[str]:
    if not rows:
        yield f"{file}: needs no jars beside Spark's own"
        return
    total = sum(row.jar.size for row in rows)
    yield heading(f"{file}: {counted(len(rows), 'jar')}, {_megabytes(total)}")
    origins = dict.fromkeys(row.jar.origin for row in rows)
    table = []
    for row in rows:
        needed = row.needed_by() + (", version from the project's settings" if row.overridden else "")
        cells = (row.jar.coordinate, f"{_megabytes(row.jar.size):>8}", needed)
        table.append(cells if len(origins) == 1 else (*cells, f"from {row.jar.origin}"))
    yield from aligned(table, "  ")
    folders = dict.fromkeys(str(row.jar.path.parent.parent) for row in rows)
    came = f"They came from {next(iter(origins))} and" if len(origins) == 1 else "They"
    yield f"{came} are kept in {', '.join(folders)}."


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
