"""The bundler: turns a checked pipeline into a bundle for a cluster."""

from pathlib import Path

from gem_bundle import RegisterCommand, RegisterSection, hookimpl


@hookimpl
def gem_bundle_register_commands(register: RegisterCommand) -> None:
    """Register the bundler's commands."""
    for name in ("build", "verify", "diff"):
        register(name, f"gem_bundler.cli.{name}:command")


@hookimpl
def gem_bundle_register_sections(register: RegisterSection) -> None:
    """Register the section `job`."""
    register("job", "gem_bundler.job.section:Job")


@hookimpl
def gem_bundle_read_version(place: Path, pipeline: str, code: Path) -> tuple[str, bytes] | None:
    """Read a pipeline out of a bundle, so that another version of it can be compared."""
    from gem_bundler.bundle.versions import read_version

    return read_version(place, pipeline, code)
