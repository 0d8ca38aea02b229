"""The bundler: turns a checked pipeline into a bundle for a cluster."""

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
