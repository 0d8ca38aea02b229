"""`gem-bundle metrics`: the metrics of runs, and what watches them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.output import aligned, print_json, print_note
from gem_bundle.cli.params import format_option

if TYPE_CHECKING:
    from collections.abc import Callable


def _file_option(name: str, help_text: str) -> Callable[[Any], Any]:
    return click.option(name, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=help_text)


@click.command(
    "metrics",
    short_help="List the metrics of runs, and write alerts and a dashboard.",
    epilog="Example: gem-bundle metrics --alerts gem-bundle.rules.yml",
)
@_file_option("--alerts", "Write alert rules for Prometheus; - is standard output.")
@_file_option("--grafana", "Write a dashboard that Grafana imports; - is standard output.")
@format_option("text", "json")
def command(alerts: Path | None, grafana: Path | None, output_format: str) -> None:
    """List the metrics that runs with `--serve` have, or write what watches them.

    The alert rules and the dashboard are for all pipelines. They are a beginning: change
    their bounds as you need them.
    """
    from gem_bundle.run.serving.metrics import METRICS
    from gem_bundle.run.serving.watching import alert_rules, dashboard

    if alerts is not None:
        _write(alerts, _as_yaml(alert_rules()))
    if grafana is not None:
        _write(grafana, _as_json(dashboard()))
    if alerts is not None or grafana is not None:
        return
    if output_format == "json":
        names = ("name", "type", "labels", "help")
        rows = [(m.exposed_name, m.kind, ["pipeline", *m.labels], m.help) for m in METRICS]
        print_json({"metrics": [dict(zip(names, row, strict=True)) for row in rows]})
        return
    for line in aligned([(m.exposed_name, m.kind, m.help) for m in METRICS]):
        click.echo(line)


def _write(file: Path, text: str) -> None:
    from gem_bundle.errors import GemError

    if str(file) == "-":
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"{file} can't be written: {error.strerror or error}"
        raise GemError("GB511", message, "Name a file in a folder that you may write to.") from error
    print_note(f"{file}: written")


def _as_yaml(content: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def _as_json(content: dict[str, Any]) -> str:
    import json

    return json.dumps(content, indent=2) + "\n"
