"""`gem-bundle gems`: what is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gem_bundle.cli.complete import complete_gem
from gem_bundle.cli.output import aligned, counted, heading, paint, print_json
from gem_bundle.cli.params import format_option, kind_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.plugins import GemEntry, Registry


class _Row(NamedTuple):
    """A gem with its summary, or with the reason why it can't be used."""

    entry: GemEntry
    summary: str
    error: str


@click.command(
    "gems",
    short_help="List the installed gems.",
    epilog="Example: gem-bundle gems --kind source",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_gem)
@kind_option
@format_option("text", "json")
@click.pass_context
def command(ctx: click.Context, names: tuple[str, ...], kind: str | None, output_format: str) -> None:
    """List the installed gems: kind, name, distribution, and what each does.

    Plugins that can't be loaded are listed below with their error, and so are gems that two plugins
    register.
    """
    from gem_bundle.plugins import load_registry

    registry = load_registry()
    entries = [entry for entry in registry if kind in {None, entry.kind}]
    known = {entry.name for entry in entries}
    for name in names:
        if name not in known:
            what = f"{kind} gem" if kind else "gem"
            ctx.fail(f"There is no {what} `{name}`. {registry.suggest(name, known, what=f'{what}s')}")
    rows = [_row(entry) for entry in entries if not names or entry.name in names]
    if output_format == "json":
        print_json(_as_dict(rows, registry))
    else:
        _print_text(rows, registry)


def _row(entry: GemEntry) -> _Row:
    from gem_bundle.errors import PluginError

    try:
        return _Row(entry, entry.load().summary(), "")
    except PluginError as error:
        return _Row(entry, "", error.reason)


def _as_dict(rows: Sequence[_Row], registry: Registry) -> dict[str, Any]:
    return {
        "gems": [
            {
                "kind": row.entry.kind,
                "name": row.entry.name,
                "summary": row.summary,
                "distribution": row.entry.origin.distribution,
                "version": row.entry.origin.version,
                "plugin": row.entry.origin.plugin,
                "error": row.error or None,
            }
            for row in rows
        ],
        "broken_plugins": [
            {
                "plugin": broken.origin.plugin,
                "distribution": broken.origin.distribution,
                "version": broken.origin.version,
                "error": broken.error,
            }
            for broken in registry.broken
        ],
        "duplicates": [{"message": reason, "hint": hint} for reason, hint in registry.duplicates()],
    }


def _print_text(rows: Sequence[_Row], registry: Registry) -> None:
    if rows:
        table = [("KIND", "NAME", "DISTRIBUTION", "SUMMARY")]
        for row in rows:
            entry = row.entry
            summary = row.summary or "can't be loaded, see below"
            table.append((entry.kind, entry.name, str(entry.origin), summary))
        first, *lines = aligned(table)
        click.echo(heading(first))
        click.echo("\n".join(lines))
    else:
        click.echo("No gems are installed.")
    problems = [(row.error, "") for row in rows if row.error]
    problems += [
        (f"The plugin `{b.origin.plugin}` of `{b.origin}` can't be loaded: {b.error}", "")
        for b in registry.broken
    ]
    problems += registry.duplicates()
    if problems:
        click.echo(f"\n{heading(counted(len(problems), 'problem'))}")
    for reason, hint in problems:
        click.echo(f"  {paint('warning:', 'warning')} {reason}")
        if hint:
            click.echo(paint(f"      {hint}", "hint"))
