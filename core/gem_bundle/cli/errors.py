"""What happens to an exception: a sentence on standard error and an exit status, never a traceback.

The exit statuses: 0 fine, 1 the pipeline has errors or a query failed, 2 the command was used wrongly; and
as for every Unix program 130 after an interrupt and 141 when nobody reads the output any more.
"""

from __future__ import annotations

import os
import sys

import click

from gem_bundle.cli.output import print_diagnostics, print_error, print_note, scrubbed

FAILED = 1
INTERRUPTED = 130
NOBODY_READS = 141

_DEBUG = "gem_bundle.debug"


def set_debug(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Remember that ``--debug`` was given, before or after the command's name."""
    if value:
        ctx.meta[_DEBUG] = True


def debug_wanted() -> bool:
    """Whether the running command was given ``--debug``."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_DEBUG))


def explain(error: BaseException, command: str) -> int:
    """Say what went wrong, for the person who can fix it.

    Args:
        error: What a command raised.
        command: The command as the user typed it, for the report of a bug.

    Returns:
        The exit status.
    """
    from gem_bundle.errors import GemError, PipelineError, PluginError
    from gem_bundle.run.lost_spark import lost_spark

    if isinstance(error, BrokenPipeError):
        _stop_writing()
        return NOBODY_READS
    if isinstance(error, KeyboardInterrupt):
        print_note("\nInterrupted.")
        return INTERRUPTED
    if debug_wanted():
        import traceback

        click.echo(scrubbed("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, PipelineError):
        print_diagnostics(error.diagnostics)
    elif isinstance(error, GemError):
        print_error(error.message, error.hint, error.code)
    elif isinstance(error, PluginError):
        print_error(error.reason, error.hint)
    elif isinstance(error, OSError) and error.filename is not None:
        print_error(f"{error.filename}: {error.strerror}")
    elif (lost := lost_spark(error)) is not None:
        print_error(lost.message, lost.hint, lost.code)
    else:
        print_error(
            f"`{command}` failed in a way that it should not: {type(error).__name__}: {error}",
            "This is a bug of gem-bundle or of a gem. Please report it, with what the same command "
            "prints with `--debug` and with `gem-bundle --version`.",
        )
    return FAILED


def _stop_writing() -> None:
    """Send what is still buffered nowhere, else Python complains about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
