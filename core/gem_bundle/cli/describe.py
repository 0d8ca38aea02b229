"""`gem-bundle describe`: a gem's options, semantics, jars and an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from gem_bundle.cli.complete import complete_gem
from gem_bundle.cli.output import aligned, heading, print_json, wrapped
from gem_bundle.cli.params import KINDS, format_option, kind_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.describe import GemDescription, OptionDescription
    from gem_bundle.plugins import GemEntry, Registry
    from gem_bundle.semantics import Kind


@click.command(
    "describe",
    short_help="Show a gem's options, semantics and an example.",
    epilog="\b\nExamples:\n  gem-bundle describe kafka\n  gem-bundle describe source kafka --format schema",
)
@click.argument("words", nargs=-1, required=True, metavar="[KIND] NAME", shell_complete=complete_gem)
@kind_option
@format_option("text", "json", "markdown", "schema")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], kind: str | None, output_format: str) -> None:
    """Show a gem's options, semantics, jars and an example.

    A name can stand for several gems, a source and a target for instance: all of them are shown unless
    you say which kind. The format `schema` is the JSON Schema of the options.
    """
    from gem_bundle.plugins import load_registry

    if len(words) == 2 and words[0] in KINDS and kind in {None, words[0]}:
        kind, name = words
    elif len(words) == 1:
        name = words[0]
    else:
        ctx.fail(f"Name one gem, as in `{ctx.command_path} kafka` or `{ctx.command_path} source kafka`.")
    entries = _find(ctx, load_registry(), cast("Kind | None", kind), name)
    if output_format == "schema":
        _print_schema(ctx, name, entries)
        return
    from gem_bundle.describe import describe_gem
    from gem_bundle.describe.markdown import markdown

    gems = [describe_gem(entry) for entry in entries]
    if output_format == "json":
        print_json([gem.as_dict() for gem in gems])
    elif output_format == "markdown":
        click.echo("\n\n".join(markdown(gem) for gem in gems))
    else:
        click.echo("\n\n".join("\n".join(_text(gem)) for gem in gems))


def _find(ctx: click.Context, registry: Registry, kind: Kind | None, name: str) -> list[GemEntry]:
    """The gems of that name, or a usage error with the nearest name."""
    kinds = (kind,) if kind else KINDS
    found = [registry.get(one, name) for one in kinds if registry.has(one, name)]
    if not found:
        known = {known for one in kinds for known in registry.names(one)}
        what = f"{kind} gem" if kind else "gem"
        others = [one for one in KINDS if registry.has(one, name)]
        hint = (
            f"`{name}` is a {' and a '.join(others)}."
            if others
            else registry.suggest(name, known, what=f"{what}s")
        )
        ctx.fail(f"There is no {what} `{name}`. {hint}")
    return found


def _print_schema(ctx: click.Context, name: str, entries: list[GemEntry]) -> None:
    from gem_bundle.describe import json_schema

    if len(entries) > 1:
        kinds = " and a ".join(entry.kind for entry in entries)
        ctx.fail(f"`{name}` is a {kinds}, and a schema is of one: add `--kind {entries[0].kind}`.")
    print_json(json_schema(entries[0].load().options_type))


def _text(gem: GemDescription) -> Iterable[str]:
    from gem_bundle.describe import example_yaml, semantics_in_words

    yield f"{heading(f'{gem.name} ({gem.kind})')}  {gem.origin}"
    yield from wrapped(gem.summary)
    for paragraph in gem.details:
        yield ""
        yield from wrapped(paragraph)
    usual = [option for option in gem.options if not option.advanced]
    for title, options in (
        ("Options", usual),
        ("Advanced options", [option for option in gem.options if option.advanced]),
    ):
        if options:
            yield f"\n{heading(title)}"
            for option in options:
                yield from _option(option)
    if not gem.options:
        yield f"\n{heading('Options')}\n  none"
    yield f"\n{heading('Semantics')}"
    yield from aligned(semantics_in_words(gem), "  ")
    if gem.jars:
        yield f"\n{heading('Jars')}"
        yield from (f"  {jar}" for jar in gem.jars)
    yield f"\n{heading('Example')}"
    yield from (f"  {line}" for line in example_yaml(gem).splitlines())


def _option(option: OptionDescription) -> Iterable[str]:
    from gem_bundle.describe import option_notes, value_in_words

    facts = [option.type]
    if option.required:
        facts.append("required")
    elif option.default not in (None, [], {}):
        facts.append(f"default {value_in_words(option.default)}")
    yield from wrapped(f"{click.style(option.name, fg='cyan')}: {'; '.join(facts)}", "  ", "      ")
    yield from wrapped(" ".join([option.description, *option_notes(option)]), "      ")
