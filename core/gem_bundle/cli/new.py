"""`gem-bundle new`: a project, or a gem of one's own, to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from gem_bundle.cli.output import counted, print_error
from gem_bundle.cli.params import KINDS, quiet_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.scaffold import Tree
    from gem_bundle.semantics import Kind

_MISUSED = 2


@click.command(
    "new",
    short_help="Write a project, or a gem, to begin with.",
    epilog="\b\nExamples:\n  gem-bundle new orders\n  gem-bundle new gem acme_queue --kind source",
)
@click.argument("words", metavar="[gem] NAME", nargs=-1)
@click.option("--kind", type=click.Choice(KINDS), help="For a gem: what it is.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], kind: str | None, *, quiet: bool) -> None:
    """Write a new project, or with `gem` a distribution with a gem of your own.

    A project has a pipeline, some data, tests, settings and a file for CI, and runs as it is. A gem's
    distribution has a gem that works, its tests, and those that every gem has to pass; it is found
    once it is installed.

    The folder is made in the current one. What is there already is never written over.
    """
    what, name = _asked(ctx, words, kind)
    from gem_bundle.errors import GemError
    from gem_bundle.scaffold import gem_names, project_names

    try:
        names = project_names(name) if what == "project" else gem_names(name, cast("Kind", kind))
    except GemError as error:
        print_error(error.message, error.hint, error.code)
        ctx.exit(_MISUSED)
    from gem_bundle.scaffold import GemNames, check_free, gem_tree, project_tree, write

    if isinstance(names, GemNames):
        check_free(names)
        tree = gem_tree(names)
        then = ["pip install -e '.[dev]'", f"gem-bundle describe {names.name}", "pytest"]
    else:
        tree = project_tree(names)
        file = f"{names.pipeline}.yaml"
        then = [f"gem-bundle check {file}", "gem-bundle test", f"gem-bundle run {file}"]
    write(tree, Path.cwd())
    if not quiet:
        click.echo("\n".join(_told(tree, then)))


def _asked(ctx: click.Context, words: tuple[str, ...], kind: str | None) -> tuple[str, str]:
    """What is wanted, a project or a gem, and the name of it."""
    example = f"`{ctx.command_path} gem acme_queue --kind source`"
    if words and words[0] == "gem":
        if len(words) != 2:
            ctx.fail(f"Name one gem, as in {example}.")
        if kind is None:
            name = shlex.quote(words[1])
            ctx.fail(f"Say what it is: `{ctx.command_path} gem {name} --kind {'|'.join(KINDS)}`.")
        return "gem", words[1]
    if len(words) != 1:
        ctx.fail(f"Name one project, as in `{ctx.command_path} orders`, or a gem, as in {example}.")
    if kind is not None:
        name = shlex.quote(words[0])
        ctx.fail(f"A project has no kind. For a gem: `{ctx.command_path} gem {name} --kind {kind}`.")
    return "project", words[0]


def _told(tree: Tree, then: Iterable[str]) -> Iterable[str]:
    yield f"{tree.folder}: {counted(len(tree.texts), 'file')}"
    yield from (f"  {path}" for path in sorted(tree.texts))
    yield "\nNext:"
    yield f"  cd {tree.folder}"
    yield from (f"  {line}" for line in then)
