"""The command `gem-bundle`: finds its subcommands and turns what they raise into an exit status."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from gem_bundle.cli import errors
from gem_bundle.cli.output import wants_colour

# One module of this package each, with the command in `command`; in the order of `--help`.
COMMANDS = (
    "new",
    "gems",
    "describe",
    "check",
    "run",
    "runs",
    "status",
    "stop",
    "resume",
    "metrics",
    "preview",
    "test",
    "checkpoint",
    "graph",
    "ui",
    "plan",
    "backfill",
    "rejected",
    "replay",
    "explain",
    "schema",
    "jars",
    "completion",
)

_DEBUG = click.Option(
    ["--debug"],
    is_flag=True,
    expose_value=False,
    callback=errors.set_debug,
    help="Show Python's traceback with an error.",
)


class Cli(click.Group):
    """A group whose commands are modules, imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The commands' names, in the order of the help; those of plugins come last."""
        from gem_bundle.cli.commands import plugin_commands

        return [*COMMANDS, *(name for name in plugin_commands() if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name; every one of them takes ``--debug``."""
        if cmd_name in COMMANDS:
            command: click.Command = import_module(f"gem_bundle.cli.{cmd_name}").command
        else:
            from gem_bundle.cli.commands import plugin_commands

            added = plugin_commands().get(cmd_name)
            if added is None:
                return None
            command = added.load_or_broken()
        if _DEBUG not in command.params:
            command.params.append(_DEBUG)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; a misspelt one is answered with the nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            known = self.list_commands(ctx)
            if name not in known:
                from gem_bundle.diagnostics import suggest

                ctx.fail(f"There is no command `{name}`. {suggest(name, known, what='commands')}")
        return super().resolve_command(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """A context that knows whether colours are wanted."""
        return super().make_context(info_name, args, parent, **{"color": wants_colour(), **extra})

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever it raises ends in a sentence and an exit status."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
            raise click.exceptions.Exit(errors.explain(error, command)) from error


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import platform
    from importlib.metadata import PackageNotFoundError, version

    try:
        pyspark = version("pyspark")
    except PackageNotFoundError:
        pyspark = "not installed"
    click.echo(f"gem-bundle {version('gem-bundle')}")
    click.echo(f"Python {platform.python_version()}")
    click.echo(f"pyspark {pyspark}")
    ctx.exit()


@click.group(
    cls=Cli,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: gem-bundle check orders.yaml && gem-bundle run orders.yaml",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of gem-bundle, Python and pyspark.",
)
def main() -> None:
    """Compose Spark Structured Streaming pipelines out of gems.

    A pipeline is a YAML file; gems are plugins that read, transform and write its rows.
    """


main.params.append(_DEBUG)

# These stay; the others are over in a moment.
_LONG = {"run", "backfill", "rejected", "replay", "preview", "test", "--watch", "--wait"}


def entry() -> None:
    """What the shell starts: the command, without what would only cost time where it is over in a moment.

    Importing what a check needs makes next to no garbage, and looking for it, also once more at exit,
    takes a sixth of the command's time. Pydantic's plugins watch validation, and to find them it reads
    the metadata of every installed distribution.
    """
    if not _LONG.intersection(sys.argv[1:]):
        gc.disable()
        atexit.register(gc.freeze)
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    main()
