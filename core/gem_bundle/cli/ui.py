"""`gem-bundle ui`: a page of a pipeline that follows its file."""

from __future__ import annotations

from typing import Any

import click

from gem_bundle.cli.output import print_diagnostics, print_error, print_note
from gem_bundle.cli.params import Address, file_argument, parameter_options, quiet_option


@click.command(
    "ui",
    short_help="Show a pipeline on a page while you write it.",
    epilog="Example: gem-bundle ui orders.yaml --open",
)
@file_argument
@parameter_options
@click.option(
    "--serve",
    type=Address(),
    default="0",
    metavar="[HOST:]PORT",
    help="Where the page is; by default a free port of this machine.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open it in a browser.")
@quiet_option
def command(
    file: str,
    parameters: dict[str, Any],
    profile: str | None,
    serve: tuple[str, int],
    *,
    is_opened: bool,
    quiet: bool,
) -> None:
    """Show a pipeline on a page: its graph, its file and what `check` says, again whenever it is saved.

    A click on a node shows its options, the columns that flow in and out, and, by Spark, its first rows
    as `gem-bundle preview` finds them. While the pipeline runs, here or elsewhere, its numbers are beside it.
    Ctrl-C ends it.
    """
    from gem_bundle.cli.watch import watch_files
    from gem_bundle.run.options import ServeOptions
    from gem_bundle.run.serving.address import token_of
    from gem_bundle.run.serving.server import answering, check_serving
    from gem_bundle.ui.page import FilePage, make_file_app

    options = ServeOptions(*serve)
    check_serving(options, None)
    token = token_of(options, None)
    with FilePage(file, parameters, profile) as page:
        found = page.check()
        if any(diagnostic.code == "GB001" for diagnostic in found):
            print_diagnostics(found)
            raise SystemExit(1)
        try:
            app = make_file_app(page, options.host, token)
            with answering(app, options, page.events) as address:
                print_note(f"Serving at {address}")
                if is_opened:
                    click.launch(f"{address}/#token={token}" if token else address)
                watch_files([file], lambda _: page.check(), quiet=quiet)
        except OSError as error:
            reason = error.strerror or str(error)
            print_error(f"the page can't be at {options.host}:{options.port}: {reason}", "Take another port.")
            raise SystemExit(1) from error
