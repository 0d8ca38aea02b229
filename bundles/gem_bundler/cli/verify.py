"""`gem-bundle verify`: prove that a bundle works."""

from __future__ import annotations

from pathlib import Path

import click

from gem_bundle.cli.output import print_diagnostics, print_note
from gem_bundle.cli.params import quiet_option


@click.command(
    "verify",
    short_help="Prove that a bundle works.",
    epilog="Example: gem-bundle verify dist/orders-1.4.0+g0123456789ab --key release.pub",
)
@click.argument("bundle", type=click.Path(file_okay=False, path_type=Path), metavar="BUNDLE")
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="KEY",
    help="Refuse the bundle unless it is signed with the key of which this is the public half.",
)
@click.option("--no-executors", is_flag=True, help="Don't start Spark to load the gems on executors too.")
@quiet_option
def command(bundle: Path, key: Path | None, *, no_executors: bool, quiet: bool) -> None:
    """Compare a bundle's files with its manifest, and load everything in it as a cluster would.

    That is done in an environment that has nothing but pyspark, on a driver and on two executors, and
    the pipelines are checked from inside the bundle.
    """
    from gem_bundler.proof.verify import verify

    if key is not None:
        from gem_bundler.proof.signing import verify as verify_signature

        verify_signature(bundle, key)
        if not quiet:
            print_note(f"The signature is that of {key}.")
    found = verify(bundle, executors=not no_executors, report=None if quiet else print_note)
    print_diagnostics([each for each in found.diagnostics if each.is_error or not quiet])
    if not quiet:
        for text in found.done:
            print_note(text[:1].upper() + text[1:] + ".")
        for text in found.left_out:
            print_note(f"Left out: {text}.")
    if not found.ok:
        raise SystemExit(1)
    if not quiet:
        click.echo(f"{bundle}: ok ({found.seconds:.1f} s)")
