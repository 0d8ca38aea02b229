"""`gem-bundle test`: run the declared tests of pipelines."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.cli.complete import complete_file
from gem_bundle.cli.output import counted, paint, print_diagnostics, print_error, print_note, scrubbed
from gem_bundle.cli.params import parameter_options, quiet_option
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.testing.declared.load import DeclaredTest, TestFile
    from gem_bundle.testing.declared.suite import Suite
    from gem_bundle.testing.running.outcome import TestOutcome

_PAINTS = {"missing": "red", "unexpected": "green", "changed": "yellow"}


@click.command(
    "test",
    short_help="Run the tests of pipelines.",
    epilog="\b\nExamples:\n"
    "  gem-bundle test\n"
    "  gem-bundle test orders.test.yaml -k late -x\n"
    "  gem-bundle test --update orders.test.yaml\n"
    "  gem-bundle test --create orders.yaml counts",
)
@click.argument("files", metavar="[FILE]...", nargs=-1, shell_complete=complete_file)
@click.option(
    "-k",
    "keywords",
    multiple=True,
    metavar="WORDS",
    help="Only tests in whose file or name all these words are; given several times: any of them.",
)
@click.option("-x", "--exitfirst", "stop_early", is_flag=True, help="Stop after the first test that fails.")
@click.option(
    "--junit-xml",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Write what the tests came to as JUnit XML, for a CI server.",
)
@click.option("--update", is_flag=True, help="Make the tests expect what comes; comments stay.")
@click.option(
    "--create",
    nargs=2,
    metavar="FILE NODE",
    help="Write a new test of a node, of rows that the pipeline's sources really have.",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    metavar="ROWS",
    help="With --create: how many rows to take of each source.",
)
@parameter_options
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    keywords: tuple[str, ...],
    junit_xml: Path | None,
    create: tuple[str, str] | None,
    rows: int,
    parameters: dict[str, Any],
    profile: str | None,
    *,
    stop_early: bool,
    update: bool,
    quiet: bool,
) -> None:
    """Run the declared tests of pipelines: those of `orders.yaml` are in `orders.test.yaml` beside it.

    Without FILE all test files in the current folder and below are run; FILE is a test file, a folder, or a
    pipeline. Nothing outside is touched: sources get the rows of the tests, and targets are captured. The
    exit status is 1 when a test fails.

    With --create the real sources are read, a few rows of each. Only then are there -p and --profile: tests
    say themselves what they run with.
    """
    if create is not None:
        alone = {
            "FILE": files,
            "-k": keywords,
            "-x": stop_early,
            "--junit-xml": junit_xml,
            "--update": update,
        }
        _refuse(ctx, alone, "doesn't go with `--create`")
        _create(*create, rows, parameters, profile, quiet=quiet)
        return
    _refuse(ctx, {"-p": parameters, "--profile": profile}, "is for `--create`: a test says it itself")
    from gem_bundle.testing.declared.suite import Suite

    if junit_xml is not None and not junit_xml.absolute().parent.is_dir():
        ctx.fail(f"The folder of `{junit_xml}` doesn't exist.")
    suite = Suite.load(_test_files(ctx, files), keywords)
    if not suite.tests and not suite.broken:
        ctx.fail(f"No test has all the words of `{'` or `'.join(keywords)}` in its name.")
    view = _View(quiet=quiet)
    suite.run(view, stop_early=stop_early, keep_going=update)
    view.summary(suite)
    if junit_xml is not None:
        from gem_bundle.testing.running.report import junit_xml as as_junit_xml

        junit_xml.write_text(as_junit_xml(suite.outcomes, suite.broken), encoding="utf-8")
    if update and not _update(suite, quiet=quiet):
        raise SystemExit(1)
    if not update and not suite.ok:
        raise SystemExit(1)


def _refuse(ctx: click.Context, given: Mapping[str, object], why: str) -> None:
    for name, value in given.items():
        if value:
            ctx.fail(f"`{name}` {why}.")


def _test_files(ctx: click.Context, named: Iterable[str]) -> list[str]:
    """The test files that the arguments mean, each once."""
    from gem_bundle.testing.declared.files import declared_beside, find_test_files, is_test_file

    found: dict[str, None] = {}
    for name in named or (".",):
        if Path(name).is_dir():
            there = [file.removeprefix("./") for file in find_test_files(name)]
            if not there:
                where = "this folder" if name == "." else f"`{name}`"
                ctx.fail(
                    f"There is no test file in {where} or below: their names end in `.test.yaml`. "
                    "`gem-bundle test --create FILE NODE` writes one."
                )
            found |= dict.fromkeys(there)
        elif is_test_file(name) or not Path(name).is_file():
            found[name] = None
        elif (beside := declared_beside(name)) is not None:
            found[beside] = None
        else:
            ctx.fail(
                f"`{name}` has no test file beside it. `gem-bundle test --create {name} NODE` writes one."
            )
    return list(found)


class _View:
    """A line for each test on standard output, and on a terminal what goes on meanwhile."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown = 0

    def broken(self, file: TestFile) -> None:
        """The errors of a file."""
        print_diagnostics(found for found in file.diagnostics if found.is_error)

    def starting_spark(self) -> None:
        """That it takes a moment."""
        if self._live:
            self._status("Starting Spark …")
        elif not self._quiet:
            print_note("Starting Spark …")

    def running(self, test: DeclaredTest, number: int, total: int) -> None:
        """Which test runs, where somebody watches."""
        self._status(f"[{number}/{total}] {test.file}: {test.name} …")

    def ended(self, outcome: TestOutcome) -> None:
        """One line, and for a test that failed all that is known of it."""
        from gem_bundle.testing.running.report import explanation

        self._status("")
        if outcome.ok and self._quiet:
            return
        verdict = paint("ok", "ok") if outcome.ok else paint("FAILED", "error")
        place = paint(f"{outcome.file}:{outcome.place.line}", "place")
        click.echo(scrubbed(f"{place}: {outcome.name}: {verdict} ({outcome.seconds:.1f} s)"))
        if not outcome.ok:
            for line in explanation(outcome, _painted):
                click.echo(f"    {line}")

    def summary(self, suite: Suite) -> None:
        """How many tests came to what."""
        if self._quiet:
            return
        ended = [outcome for found in suite.outcomes.values() for outcome in found]
        failed = sum(not outcome.ok for outcome in ended)
        parts = [paint(f"{failed:,} failed", "error")] if failed else []
        parts += [paint(f"{len(ended) - failed:,} passed", "ok")] if len(ended) > failed else []
        parts += [f"{len(suite.tests) - len(ended):,} not run"] if len(suite.tests) > len(ended) else []
        parts += [paint(counted(len(suite.broken), "file") + " with errors", "error")] if suite.broken else []
        click.echo(f"{', '.join(parts)} in {time.monotonic() - self._began:.1f} s")

    def _status(self, text: str) -> None:
        """Put a text into the terminal's last line, in the place of the one before."""
        if self._live:
            import shutil

            shown = scrubbed(text)[: shutil.get_terminal_size().columns - 1]
            # Blanks and no control sequence: click removes those where colours aren't wanted.
            click.echo(f"\r{' ' * self._shown}\r{shown}", nl=False, err=True)
            self._shown = len(shown)


def _painted(text: str, role: str) -> str:
    return click.style(text, bold=True) if role == "step" else click.style(text, fg=_PAINTS.get(role))


def _update(suite: Suite, *, quiet: bool) -> bool:
    """Write what came into the test files; returns whether nothing is left for a person to decide on."""
    from gem_bundle.testing.declared.update import is_left, update, write

    done = not suite.broken
    for file in suite.files:
        outcomes = {outcome.name: outcome for outcome in suite.outcomes.get(file.file, ())}
        found = update(file, outcomes)
        write(found, Path(file.file))
        if not quiet and found.changed:
            click.echo(f"{file.file}: {counted(found.changed, 'expectation')} updated")
        for sentence in found.left:
            print_note(f"{file.file}: {sentence}")
        done = done and not found.left and not any(map(is_left, outcomes.values()))
    return done


def _create(
    file: str, node: str, rows: int, parameters: dict[str, str], profile: str | None, *, quiet: bool
) -> None:
    from gem_bundle.run.options import RunOptions
    from gem_bundle.testing.declared.create import NoTestError, create

    try:
        created = create(file, node, rows, RunOptions(parameters=parameters, profile=profile, quiet=quiet))
    except NoTestError as error:
        print_error(error.message, error.hint)
        raise SystemExit(1) from None
    if quiet:
        return
    given = ", ".join(f"{counted(number, 'row')} of `{name}`" for name, number in created.rows.items())
    click.echo(f"{created.place}: {created.name} ({given})")
    if created.nothing:
        nothing = listed_names(created.nothing)
        print_note(f"Nothing came to {nothing}: add rows that are later, or other ones.")
    print_note("It holds rows of real sources, and expects what came of them just now: look at both.")
