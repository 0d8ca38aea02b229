"""`gem-bundle runs`: what runs, what ran, what died."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gem_bundle.cli.complete import complete_file
from gem_bundle.cli.output import aligned, print_json, print_note
from gem_bundle.cli.params import format_option, parameter_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.run.found import FoundRun


@click.command(
    "runs",
    short_help="List what runs, what ran and what died.",
    epilog="Example: gem-bundle runs s3://lake/checkpoints",
)
@click.argument("place", metavar="[FOLDER|FILE]", default=".", shell_complete=complete_file)
@parameter_options
@format_option("text", "json")
def command(place: str, parameters: dict[str, str], profile: str | None, output_format: str) -> None:
    """List the last runs of pipelines: of one file, or of all in a folder.

    A folder has pipeline files or is a root of checkpoints, which may be a URL; by
    default it is the current one. For each pipeline the last 10 runs are known.
    """
    found = [run for one in _places(place, parameters, profile) for run in _runs_in(one)]
    found.sort(key=lambda run: run.record.id, reverse=True)
    if output_format == "json":
        print_json({"runs": [run.as_dict() for run in found]})
    elif found:
        for line in aligned([_HEAD, *map(_row, found)]):
            click.echo(line)
    else:
        print_note(f"{place}: no run is known here.")


def _places(place: str, parameters: Mapping[str, str], profile: str | None) -> list[str]:
    """Where records of runs are looked for, each once."""
    from pathlib import Path

    from gem_bundle.cli.definition import read_definition
    from gem_bundle.run.found import places_below
    from gem_bundle.runs.record import runs_place
    from gem_bundle.types import is_remote

    if is_remote(place):
        return places_below(place)
    path = Path(place.removeprefix("file://").removeprefix("file:"))
    if not path.is_dir():
        return [runs_place(read_definition(place, parameters, profile))]
    found = places_below(str(path.absolute()))
    for file in sorted([*path.glob("*.yaml"), *path.glob("*.yml")]):
        if _is_pipeline(file.read_bytes(), str(file)):
            try:
                found.append(runs_place(read_definition(str(file), parameters, profile)))
            except SystemExit:
                print_note(f"{file} can't be read, so its runs aren't known.")
    return list(dict.fromkeys(found))


def _is_pipeline(content: bytes, file: str) -> bool:
    from gem_bundle.pipeline.document import parse

    values = parse(content, file).values
    return isinstance(values, dict) and "pipeline" in values


def _runs_in(place: str) -> list[FoundRun]:
    from gem_bundle.run.found import runs_in

    return runs_in(place)


_HEAD = ("pipeline", "version", "state", "since", "until", "rows in", "rows out", "process")


def _row(run: FoundRun) -> tuple[str, ...]:
    from gem_bundle.run.found import clock, report_of

    record = run.record
    report = report_of(record)
    rows_out = "-" if report.rows_out is None else f"{report.rows_out:,}"
    return (
        record.pipeline,
        record.version,
        run.verdict.state,
        clock(record.started),
        clock(record.ended),
        f"{report.rows_in:,}",
        rows_out,
        str(record.process),
    )
