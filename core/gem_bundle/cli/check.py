"""`gem-bundle check`: whether a pipeline can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from gem_bundle.cli.output import counted, paint, print_diagnostics, print_note, scrubbed_diagnostic
from gem_bundle.cli.params import files_argument, format_option, parameter_options, quiet_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle.check import Checked
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry


_NAMED = 3


class _Request(NamedTuple):
    """What is asked of each file."""

    parameters: dict[str, str]
    profile: str | None
    skip_env: bool
    engine: bool
    connect: bool
    deny_warnings: bool
    quiet: bool

    def load_options(self) -> LoadOptions:
        """How a file is read; secrets are looked up only where something is going to use them."""
        from gem_bundle.pipeline.loader import LoadOptions
        from gem_bundle.pipeline.secrets import SecretStore

        secrets = SecretStore() if self.engine or self.connect else None
        return LoadOptions(self.parameters, self.profile, secrets=secrets, skip_env=self.skip_env)

    def is_failing(self, diagnostic: Diagnostic) -> bool:
        """Whether it is a reason for the exit status 1."""
        return diagnostic.is_error or (self.deny_warnings and diagnostic.severity == "warning")

    def accepts(self, verdicts: Iterable[_Verdict]) -> bool:
        """Whether nothing was found that is a reason for the exit status 1."""
        return not any(self.is_failing(found) for verdict in verdicts for found in verdict.diagnostics)

    def shown(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """What a person wants to see."""
        return [found for found in diagnostics if not self.quiet or self.is_failing(found)]


class _Verdict(NamedTuple):
    """What was found in one file, and how many nodes it has."""

    file: str
    diagnostics: list[Diagnostic]
    disabled: frozenset[str] = frozenset()
    nodes: int = 0
    tried: tuple[str, ...] = ()


@click.command(
    "check",
    short_help="Say whether pipelines can run, without running them.",
    epilog="\b\nExamples:\n"
    "  gem-bundle check orders.yaml -p topic=orders\n"
    "  gem-bundle check --connect --deny-warnings orders.yaml clicks.yaml\n"
    "  gem-bundle check --watch orders.yaml\n"
    "  gem-bundle check --format sarif orders.yaml > verdict.sarif",
)
@files_argument
@parameter_options
@click.option("--engine", is_flag=True, help="Ask Spark's own analyser too; starts a JVM.")
@click.option(
    "--connect",
    is_flag=True,
    help="Try brokers, topics and paths too, and look what columns there are.",
)
@click.option("--skip-env", is_flag=True, help="Accept environment variables that are not set.")
@click.option("--deny-warnings", is_flag=True, help="Exit with status 1 for warnings too.")
@click.option("--watch", is_flag=True, help="Check again whenever a file is saved, until Ctrl-C.")
@format_option("text", "json", "sarif", "github")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    parameters: dict[str, str],
    profile: str | None,
    output_format: str,
    *,
    engine: bool,
    connect: bool,
    skip_env: bool,
    deny_warnings: bool,
    watch: bool,
    quiet: bool,
) -> None:
    """Say whether pipelines can run: every problem at once, with its line and a remedy.

    Nothing is started and nothing is opened but the files themselves, unless you ask for it with
    `--engine` or `--connect`. The exit status is 1 when there are errors.

    The format `sarif` is for code scanning, `github` annotates the lines of a pull request in GitHub
    Actions. With `--watch`, the files and the project's settings are looked at until you press Ctrl-C,
    and what has changed is checked again.
    """
    from gem_bundle.plugins import load_registry

    if watch and output_format != "text":
        ctx.fail(f"`--watch` prints text: it doesn't go with `--format {output_format}`.")
    if watch and engine:
        ctx.fail("`--watch` starts no JVM: it doesn't go with `--engine`.")
    registry = load_registry()
    request = _Request(parameters, profile, skip_env, engine, connect, deny_warnings, quiet)
    if watch:
        from gem_bundle.cli.watch import watch_files

        watch_files(files, lambda some: _print_all(some, request, registry), quiet=quiet)
        return
    if output_format == "text":
        verdicts = _print_all(files, request, registry)
    else:
        verdicts = [_check(file, request, registry) for file in files]
        verdicts.append(_Verdict("", _broken_plugins(registry, verdicts)))
        _print_formatted(verdicts, request, output_format)
    if not request.accepts(verdicts):
        raise SystemExit(1)


def _print_all(files: Iterable[str], request: _Request, registry: Registry) -> list[_Verdict]:
    """Check files, and print each verdict as text as soon as it is there."""
    verdicts = []
    for file in files:
        verdict = _check(file, request, registry)
        verdicts.append(verdict)
        _print_text(verdict, request)
    plugins = _broken_plugins(registry, verdicts)
    if not request.quiet:
        print_diagnostics(plugins)
    return [*verdicts, _Verdict("", plugins)]


def _print_formatted(verdicts: list[_Verdict], request: _Request, output_format: str) -> None:
    """Print what was found in all files in one of the formats for programs."""
    ok = request.accepts(verdicts)
    found = [scrubbed_diagnostic(diagnostic) for verdict in verdicts for diagnostic in verdict.diagnostics]
    if output_format == "json":
        from gem_bundle.check.formats.json import as_json

        click.echo(as_json(found, ok=ok))
    elif output_format == "sarif":
        from gem_bundle.check.formats.sarif import as_sarif

        click.echo(as_sarif(found, ok=ok))
    else:
        from gem_bundle.check.formats.github import as_annotation

        for diagnostic in request.shown(found):
            click.echo(as_annotation(diagnostic))


def _check(file: str, request: _Request, registry: Registry) -> _Verdict:
    """The verdict on one file; what the project's settings silence is left out."""
    from gem_bundle.check import check_file
    from gem_bundle.diagnostics import in_order

    checked = check_file(file, request.load_options(), registry, discover=request.connect)
    found = checked.diagnostics
    tried: tuple[str, ...] = ()
    if checked.plan is not None:
        more, tried = _try(checked.plan, file, request)
        found = in_order([*found, *checked.silence.kept(more)])
    return _Verdict(file, found, checked.silence.disabled, _node_count(checked), tried)


def _node_count(checked: Checked) -> int:
    return 0 if checked.definition is None else len(checked.definition.nodes)


def _try(plan: Plan, file: str, request: _Request) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """What Spark's analyser and the outside world have to say, as far as they are asked."""
    from gem_bundle.diagnostics import Diagnostic, Place
    from gem_bundle.errors import GemError

    found: list[Diagnostic] = []
    tried: list[str] = []
    if request.connect:
        from gem_bundle.check.stages.connect import check_connect

        found += check_connect(plan)
        tried += [*_reached(plan), *_unknown_columns(plan)]
    if request.engine:
        from gem_bundle.check.stages.inference import as_declared
        from gem_bundle.run.engine import check_engine

        try:
            found += check_engine(as_declared(plan), report=None if request.quiet else print_note)
        except GemError as error:
            found.append(Diagnostic(error.code, "error", error.message, place=Place(file), hint=error.hint))
        tried.append("Spark's analyser agrees")
    return found, tuple(tried)


def _reached(plan: Plan) -> list[str]:
    """What to say where nothing is wrong: gems leave to Spark what lies in a file system of its own."""
    left = [name for name in plan.order if _is_left_to_spark(plan, name)]
    if not left:
        return ["everything it needs can be reached"]
    return ["everything that was tried can be reached", f"the places of {_some(left)} are left to Spark"]


def _is_left_to_spark(plan: Plan, name: str) -> bool:
    from gem_bundle.files import in_file_system

    places: Mapping[str, Iterable[str]] = getattr(plan.gems[name], "places", dict)()
    return any(in_file_system(place) for found in places.values() for place in found)


def _unknown_columns(plan: Plan) -> list[str]:
    """What to say of sources that neither declare their columns nor could look."""
    sources = [node.id for node in plan.definition.of_kind("source")]
    unknown = [name for name in sources if plan.facts[name].columns is None]
    return [f"columns of {_some(unknown)} stay unknown"] if unknown else []


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    shown = [f"`{name}`" for name in names[:_NAMED]]
    return ", ".join([*shown, *([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])])


def _broken_plugins(registry: Registry, verdicts: Iterable[_Verdict]) -> list[Diagnostic]:
    """A warning for each plugin that can't be loaded, unless the settings of all files silence it."""
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.plugins import BLOCK, PICK

    if all("GB203" in verdict.disabled for verdict in verdicts):
        return []
    return [
        Diagnostic(
            "GB203",
            "warning",
            f"the plugin `{broken.origin.plugin}` of `{broken.origin}` can't be loaded: {broken.error}",
            hint=f"Correct {PICK}."
            if broken.origin.distribution == PICK
            else f"Update or remove it, or switch it off with {BLOCK}={broken.origin.plugin}.",
        )
        for broken in registry.broken
    ]


def _print_text(verdict: _Verdict, request: _Request) -> None:
    print_diagnostics(request.shown(verdict.diagnostics))
    if not request.quiet:
        click.echo(f"{verdict.file}: {_summary(verdict, deny_warnings=request.deny_warnings)}")


def _summary(verdict: _Verdict, *, deny_warnings: bool) -> str:
    counts = {
        severity: sum(d.severity == severity for d in verdict.diagnostics)
        for severity in ("error", "warning", "note")
    }
    listed = ", ".join(counted(number, what) for what, number in counts.items() if number)
    if counts["error"]:
        return paint(listed, "error")
    if counts["warning"] and deny_warnings:
        return paint(f"{listed} (denied)", "error")
    about = "; ".join([counted(verdict.nodes, "node"), *verdict.tried])
    return f"{paint(f'ok, {listed}' if listed else 'ok', 'ok')} ({about})"
