"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gem_bundle.cli.complete import complete_file, complete_parameter, complete_profile, complete_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.semantics import Kind

    FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
    _PairType = click.ParamType[tuple[str, str]]
    _AddressType = click.ParamType[tuple[str, int]]
else:
    _AddressType = _PairType = click.ParamType  # which can't be subscripted before click 8.4


class Assignment(_PairType):
    """A value of the form ``name=value``, as a pair."""

    name = "name=value"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """The name and the value; what stands before the first ``=`` is the name."""
        if isinstance(value, tuple):
            return value[0], value[1]
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"`{value}` is not of the form name=value, as in topic=orders.", param, ctx)
        return name.strip(), text


def _as_mapping(
    ctx: click.Context, parameter: click.Parameter, pairs: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise click.BadParameter(f"`{name}` is given twice.", ctx, parameter)
        found[name] = value
    return found


file_argument = click.argument("file", metavar="FILE", shell_complete=complete_file)
"""One pipeline file, as ``file``. Reading it tells whether it is there, with a place and a code."""

files_argument = click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, shell_complete=complete_file
)
"""Pipeline files, as ``files``."""

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show errors only.")
"""``--quiet``, as ``quiet``."""

_parameter_option = click.option(
    "-p",
    "--parameter",
    "parameters",
    type=Assignment(),
    multiple=True,
    callback=_as_mapping,
    metavar="NAME=VALUE",
    shell_complete=complete_parameter,
    help="Give a parameter of the pipeline its value; may be given several times.",
)
_profile_option = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profile,
    help="Take the parameters' values from a profile of the file.",
)


def parameter_options(function: FunctionT) -> FunctionT:
    """``-p NAME=VALUE``, as ``parameters`` (a dict of texts), and ``--profile``, as ``profile``."""
    return _parameter_option(_profile_option(function))


class Acceptance(_PairType):
    """A change that is taken on purpose, ``GB4xx`` or ``GB4xx:NODE``, as a pair of code and node."""

    name = "code[:node]"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """The code and the node, which is empty where the code is taken for all of them."""
        from gem_bundle.changes.accepting import acceptance

        if isinstance(value, tuple):
            return value[0], value[1]
        try:
            return acceptance(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class Address(_AddressType):
    """Where a server listens, ``[HOST:]PORT``, as a host and a port."""

    name = "[host:]port"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        """The host, which is 127.0.0.1 where none is given, and the port."""
        from gem_bundle.run.serving.address import parse_address

        if isinstance(value, tuple):
            return value[0], value[1]
        try:
            return parse_address(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


accept_option = click.option(
    "--accept",
    "accept",
    type=Acceptance(),
    multiple=True,
    metavar="GB4xx[:NODE]",
    help="Take a change on purpose that would stop the run; may be given several times.",
)
"""``--accept``, as ``accept``: pairs of a code and a node."""


def report_option(help_text: str) -> Callable[[FunctionT], FunctionT]:
    """``--report FILE``, as ``report``: a path, or None."""
    return click.option(
        "--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help=help_text
    )


spark_log_option = click.option(
    "--spark-log",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where Spark's own log goes.",
)
"""``--spark-log FILE``, as ``spark_log``: a path, or None."""


def targets_option(help_text: str) -> Callable[[FunctionT], FunctionT]:
    """``--target ID``, as ``targets``: the ids in the order in which they are given."""
    return click.option(
        "--target", "targets", multiple=True, metavar="ID", shell_complete=complete_target, help=help_text
    )


def format_option(*formats: str) -> Callable[[FunctionT], FunctionT]:
    """``--format``, as ``output_format``; the first of the formats is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to print it.",
    )


KINDS: tuple[Kind, ...] = ("source", "transform", "target")

kind_option = click.option("--kind", type=click.Choice(KINDS), help="Only gems of this kind.")
"""``--kind``, as ``kind``: a kind of gem, or None."""
