"""The page of the commands: what ``--help`` says of each."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from gem_bundle.describe.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_STATUS = (
    "The exit status is 0 when all is well, 1 when a pipeline has errors or a query failed, and 2 when the "
    "command was used wrongly."
)


def commands_page(group: click.Group, program: str, names: Iterable[str]) -> str:
    """Commands with their arguments, their options and their examples.

    Args:
        group: The command that they belong to.
        program: Its name in a shell.
        names: The commands to show, in this order.
    """
    names = list(names)
    with click.Context(group, info_name=program, **group.context_settings) as context:
        found = [(name, group.get_command(context, name)) for name in names]
        commands = [(name, command) for name, command in found if command is not None]
        rows = [
            (f"[`{program} {name}`](#{program}-{name})", command.get_short_help_str(limit=200))
            for name, command in commands
        ]
        parts = ["# Commands", table(("command", "what it does"), rows)]
        # What every command takes is said once.
        common = set.intersection(*({_names(p) for p in command.params} for _, command in commands))
        parts.append("Every command takes these:")
        shared = [p for p in commands[0][1].params if _names(p) in common]
        parts.append(_options(shared, context, [commands[0][1].get_help_option(context)]))
        parts.append(_STATUS)
        for name, command in commands:
            own = click.Context(command, info_name=name, parent=context)
            parts += _command(command, own, [p for p in command.params if _names(p) not in common])
    return "\n\n".join(parts)


def _command(command: click.Command, context: click.Context, params: list[click.Parameter]) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## `{context.command_path}`"
    yield f"```text\n{context.command_path} {usage}\n```"
    yield from _paragraphs(command.help or "")
    listed = _options(params, context)
    if listed:
        yield listed
    if command.epilog:
        yield from _examples(command.epilog)


def _names(parameter: click.Parameter) -> tuple[str, ...]:
    return (parameter.param_type_name, *parameter.opts, *parameter.secondary_opts)


def _options(
    params: Iterable[click.Parameter], context: click.Context, others: Iterable[click.Parameter | None] = ()
) -> str:
    rows = []
    for parameter in (*params, *others):
        record = parameter.get_help_record(context) if parameter is not None else None
        if record is not None and record[1]:
            rows.append((f"`{record[0]}`", record[1]))
    return table(("option", "what it does"), rows) if rows else ""


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```"
        else:
            yield " ".join(paragraph.split())


def _examples(epilog: str) -> Iterator[str]:
    """What stands below a command's options: command lines behind ``Example:``, or a text."""
    text = inspect.cleandoc(epilog).removeprefix("\b").strip("\n")
    word, colon, rest = text.partition(":")
    if not colon or word not in {"Example", "Examples"}:
        yield from _paragraphs(epilog)
        return
    lines = inspect.cleandoc(rest).splitlines()
    yield f"{word}:"
    yield "```text\n" + "\n".join(lines) + "\n```"
