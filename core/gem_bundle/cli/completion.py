"""`gem-bundle completion`: what makes the shell complete commands, files, gems and nodes."""

from __future__ import annotations

import click


@click.command(
    "completion",
    short_help="Print the script that makes your shell complete.",
    epilog="\b\nExamples:\n"
    '  eval "$(gem-bundle completion bash)"        in ~/.bashrc\n'
    '  eval "$(gem-bundle completion zsh)"         in ~/.zshrc\n'
    "  gem-bundle completion fish | source         in ~/.config/fish/config.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes your shell complete.

    Then tab completes commands and options, pipeline files, their nodes, targets, profiles and
    parameters, names of gems, and codes of diagnostics.
    """
    from click.shell_completion import get_completion_class

    root = ctx.find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, "gem-bundle", "_GEM_BUNDLE_COMPLETE").source())
