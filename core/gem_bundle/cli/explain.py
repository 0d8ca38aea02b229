"""`gem-bundle explain`: what a diagnostic code means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gem_bundle.cli.complete import complete_code
from gem_bundle.cli.output import aligned, heading, paint, print_json, wrapped
from gem_bundle.cli.params import format_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.codes import Code


@click.command(
    "explain",
    short_help="Tell what a diagnostic's code means.",
    epilog="Example: gem-bundle explain GB310",
)
@click.argument("code", required=False, metavar="[CODE]", shell_complete=complete_code)
@format_option("text", "json")
@click.pass_context
def command(ctx: click.Context, code: str | None, output_format: str) -> None:
    """Tell what the rule behind a diagnostic's code is, what breaks it and what keeps it.

    Without a code, list them all.
    """
    from dataclasses import asdict

    from gem_bundle.codes import CODES

    if code is None:
        if output_format == "json":
            print_json([asdict(found) for found in CODES.values()])
        else:
            _print_list(list(CODES.values()))
        return
    found = CODES.get(code.upper())
    if found is None:
        ctx.fail(f"There is no code `{code}`. {_hint(code.upper(), CODES)}")
    if output_format == "json":
        print_json(asdict(found))
    else:
        _print_code(found)


def _hint(code: str, known: Iterable[str]) -> str:
    """The first code that begins alike, at least that of the same group."""
    listed = "`gem-bundle explain` lists them all."
    if not code.startswith("GB"):
        return f"Codes that don't begin with GB are a plugin's own; {listed}"
    names = sorted(known)
    alike = (name for length in (4, 3) for name in names if name.startswith(code[:length]))
    close = next(alike, None) if len(code) >= 3 else None
    return f"Did you mean `{close}`? {listed}" if close else listed


def _print_list(codes: list[Code]) -> None:
    from gem_bundle.codes import GROUPS

    for number, (prefix, title) in enumerate(GROUPS.items()):
        group = [code for code in codes if code.code.startswith(prefix)]
        if not group:
            continue
        click.echo(("\n" if number else "") + heading(title))
        for line in aligned([(code.code, code.severity, code.title) for code in group], "  "):
            click.echo(line)


def _print_code(code: Code) -> None:
    click.echo(f"{paint(f'{code.severity}[{code.code}]:', code.severity)} {heading(code.title)}")
    for paragraph in code.why.split("\n\n") if code.why else ():
        click.echo()
        click.echo("\n".join(wrapped(" ".join(paragraph.split()))))
    for title, example in (("Breaks it", code.breaks), ("Keeps it", code.keeps)):
        if example:
            click.echo(f"\n{heading(title)}\n")
            click.echo("\n".join(f"    {line}".rstrip() for line in example.splitlines()))
    if code.source:
        click.echo()
        click.echo("\n".join(wrapped(code.source, "From: ")))
