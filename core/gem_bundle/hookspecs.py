"""What can be extended. Implement a hook with `@hookimpl` in the module your entry point names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gem_bundle.diagnostics import Finding
    from gem_bundle.gem import Gem
    from gem_bundle.semantics import Kind
    from gem_bundle.views import PipelineView

hookspec = HookspecMarker("gem_bundle")
hookimpl = HookimplMarker("gem_bundle")

OF_PLUGINS = ("job",)
"""The sections of a pipeline file that plugins read."""


class Register(Protocol):
    """The callback that takes a gem: its kind, its name, and its class or ``"module:Class"``."""

    def __call__(self, kind: Kind, name: str, gem: type[Gem] | str) -> None:
        """Register one gem. A string is imported when a pipeline first uses the gem."""


class RegisterCommand(Protocol):
    """The callback that takes a command: its name and where it is."""

    def __call__(self, name: str, command: str) -> None:
        """Register one command of click's, as ``"module:command"``; it is imported when it is asked for."""


class RegisterSection(Protocol):
    """The callback that takes a section of the pipeline file: its key and its model."""

    def __call__(self, name: str, model: str) -> None:
        """Register a pydantic model, as ``"module:Class"``; it is imported when a file has the section."""


@hookspec
def gem_bundle_register_gems(register: Register) -> None:
    """Register your gems by calling ``register(kind, name, "your_module:YourClass")`` for each."""


@hookspec
def gem_bundle_register_commands(register: RegisterCommand) -> None:
    """Add commands to `gem-bundle`: call ``register("deploy", "your_module:command")`` for each.

    For this hook a module is named by an entry point of the group ``gem_bundle.commands``, so that
    `gem-bundle --help` loads no other plugins. Keep both modules light: the help imports them.
    """


@hookspec
def gem_bundle_register_sections(register: RegisterSection) -> None:
    """Say what a section of the pipeline file takes: call ``register("job", "your_module:Job")``.

    Every check validates the section, and the JSON Schema of the pipeline file has it. What it means
    is up to you: gem-bundle hands it on (`Definition.sections`), and asks it one thing: a model with a
    method ``target_spark(profile)`` says which Spark the pipeline is for, such as ``"4.0"``, with a profile
    or without one (None); what that Spark lacks is then reported. It returns None where it doesn't know.

    The sections that a pipeline file can have are ``job``.
    """


@hookspec
def gem_bundle_check_pipeline(pipeline: PipelineView) -> Iterable[Finding]:
    """Say what your platform doesn't allow in a pipeline: yield a `Finding` for each breach of a rule.

    Called by every check and before every run, without a JVM and without a network, after all other
    rules. A code is your own, such as ``ACME001``; `GB` belongs to gem-bundle. Warnings and notes can be
    silenced like any others. What raises is reported as a broken plugin and takes no check down. ::

        @hookimpl
        def gem_bundle_check_pipeline(pipeline):
            for node in pipeline.of_kind("target", "console"):
                yield Finding("ACME001", "nobody looks at a screen here", node=node.id, key="gem")

    Args:
        pipeline: What can be seen of the pipeline; secrets can't.
    """
    raise NotImplementedError


@hookspec
def gem_bundle_read_version(place: Path, pipeline: str, code: Path) -> tuple[str, bytes] | None:
    """Read the file of a pipeline out of what you make of pipelines: a bundle, an archive of releases.

    Called by `gem-bundle plan --against PLACE` for a place that is no pipeline file, of each plugin in turn
    until one knows it. Raise `PipelineError` for a place that is yours and can't be read.

    Args:
        place: A folder or a file.
        pipeline: The name of the pipeline.
        code: An empty folder, which is removed afterwards. Put the modules there from which the pipeline
            takes functions, so that their code can be compared.

    Returns:
        The name of the pipeline's file and what it holds; None where the place isn't yours.
    """
    raise NotImplementedError
