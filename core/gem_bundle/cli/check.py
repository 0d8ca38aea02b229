"""`gem-bundle check`: whether a pipeline can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from gem_bundle.cli.output import counted, paint, print_diagnostics, print_note, scrubbed_diagnostic
from gem_bundle.cli.params import files_argument, format_option, parameter_options, quiet_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.check import Checked
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry


class _Request(NamedTuple):
    """What is asked of each file."""

    parameters: dict[str, str]
    profile: str | None
    skip_env: bool
    engine: bool
    connect: bool
    quiet: bool

    def load_options(self) -> LoadOptions:
        """How a file is read; secrets are looked up only where something is going to use them."""
        from gem_bundle.pipeline.loader import LoadOptions
        from gem_bundle.pipeline.secrets import SecretStore

        secrets = SecretStore() if self.engine or self.connect else None
        return LoadOptions(self.parameters, self.profile, secrets=secrets, skip_env=self.skip_env)


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
    "  gem-bundle check --connect --deny-warnings orders.yaml clicks.yaml",
)
@files_argument
@parameter_options
@click.option("--engine", is_flag=True, help="Ask Spark's own analyser too; starts a JVM.")
@click.option("--connect", is_flag=True, help="Try brokers, topics and paths too.")
@click.option("--skip-env", is_flag=True, help="Accept environment variables that are not set.")
@click.option("--deny-warnings", is_flag=True, help="Exit with status 1 for warnings too.")
@format_option("text", "json")
@quiet_option
def command(
    files: tuple[str, ...],
    parameters: dict[str, str],
    profile: str | None,
    output_format: str,
    *,
    engine: bool,
    connect: bool,
    skip_env: bool,
    deny_warnings: bool,
    quiet: bool,
) -> None:
    """Say whether pipelines can run: every problem at once, with its line and a remedy.

    Nothing is started and nothing is opened but the files themselves, unless you ask for it with
    `--engine` or `--connect`. The exit status is 1 when there are errors.
    """
    from gem_bundle.plugins import load_registry

    registry = load_registry()
    request = _Request(parameters, profile, skip_env, engine, connect, quiet)
    verdicts = []
    for file in files:
        verdict = _check(file, request, registry)
        verdicts.append(verdict)
        if output_format == "text":
            _print_text(verdict, deny_warnings=deny_warnings, quiet=quiet)
    plugins = _broken_plugins(registry, verdicts)
    found = [diagnostic for verdict in verdicts for diagnostic in verdict.diagnostics] + plugins
    failing = {"error", "warning"} if deny_warnings else {"error"}
    ok = not any(diagnostic.severity in failing for diagnostic in found)
    if output_format == "json":
        from gem_bundle.check.formats import as_json

        click.echo(as_json([scrubbed_diagnostic(diagnostic) for diagnostic in found], ok=ok))
    elif not quiet:
        print_diagnostics(plugins)
    if not ok:
        raise SystemExit(1)


def _check(file: str, request: _Request, registry: Registry) -> _Verdict:
    """The verdict on one file; what the project's settings silence is left out."""
    from pathlib import Path

    from gem_bundle.check import check_file
    from gem_bundle.diagnostics import in_order
    from gem_bundle.errors import PipelineError
    from gem_bundle.settings import load_settings

    checked = check_file(file, request.load_options(), registry)
    found = list(checked.diagnostics)
    disabled: frozenset[str] = frozenset()
    try:
        disabled = load_settings(Path(file)).disabled
    except PipelineError as error:
        found += error.diagnostics
    tried: tuple[str, ...] = ()
    if checked.plan is not None and not any(d.is_error for d in found):
        more, tried = _try(checked.plan, file, request)
        found += more
    kept = [d for d in in_order(found) if d.is_error or d.code not in disabled]
    return _Verdict(file, kept, disabled, _node_count(checked), tried)


def _node_count(checked: Checked) -> int:
    return 0 if checked.definition is None else len(checked.definition.nodes)


def _try(plan: Plan, file: str, request: _Request) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """What Spark's analyser and the outside world have to say, as far as they are asked."""
    from gem_bundle.diagnostics import Diagnostic, Place
    from gem_bundle.errors import GemError

    found: list[Diagnostic] = []
    tried: list[str] = []
    if request.connect:
        from gem_bundle.check.connect import check_connect

        found += check_connect(plan)
        tried.append("everything it needs can be reached")
    if request.engine:
        from gem_bundle.check.engine import check_engine

        try:
            found += check_engine(plan, report=None if request.quiet else print_note)
        except GemError as error:
            found.append(Diagnostic(error.code, "error", error.message, place=Place(file), hint=error.hint))
        tried.append("Spark's analyser agrees")
    return found, tuple(tried)


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


def _print_text(verdict: _Verdict, *, deny_warnings: bool, quiet: bool) -> None:
    shown = verdict.diagnostics
    if quiet:
        shown = [d for d in shown if d.is_error or (deny_warnings and d.severity == "warning")]
    print_diagnostics(shown)
    if not quiet:
        click.echo(f"{verdict.file}: {_summary(verdict, deny_warnings=deny_warnings)}")


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
