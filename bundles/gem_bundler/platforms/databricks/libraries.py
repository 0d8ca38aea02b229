"""What a job on Databricks installs: wheels out of the bundle or from an index, and jars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundler.platforms.common import installed_requirements, of_the_platform

if TYPE_CHECKING:
    from gem_bundler.bundle.model import Bundle, LockedDistribution, LockedJar
    from gem_bundler.job.section import Job

FOLDER = "wheels"
"""Where in the bundle's folder the wheels are."""

_PLATFORM_GROUPS = frozenset({"org.apache.spark", "io.delta", "org.apache.kafka"})
# Further jars that those bring along.
_PLATFORM_JARS = frozenset({"org.apache.commons:commons-pool2", "org.antlr:antlr4-runtime"})


def from_index(bundle: Bundle, job: Job) -> bool:
    """Whether the job asks a package index for what the bundle's wheel needs; a thin bundle's has to."""
    return job.libraries == "index" or bundle.deps is None


def wheels(bundle: Bundle, job: Job) -> list[str]:
    """The wheels that the job installs beside the bundle's own, by their path in the bundle's folder.

    A cluster installs one library after the other, and each time pip asks the index for whatever isn't
    there yet; so what others need comes before them.
    """
    if from_index(bundle, job):
        return []
    return [f"{FOLDER}/{found.file}" for found in _needed_first(bundle.distributions)]


def requirements(bundle: Bundle, job: Job) -> list[str]:
    """What the job asks a package index for."""
    return installed_requirements(bundle) if from_index(bundle, job) else []


def own_jars(bundle: Bundle) -> list[str]:
    """The coordinates of the jars that Databricks doesn't bring itself."""
    return [jar.coordinate for jar in bundle.jars if not _is_of_the_platform(jar)]


def _needed_first(distributions: tuple[LockedDistribution, ...]) -> list[LockedDistribution]:
    by_name = {found.name: found for found in distributions}
    ordered: dict[str, LockedDistribution] = {}
    begun: set[str] = set()

    def take(name: str) -> None:
        # Distributions may need each other; then one of them has to come first.
        if name in begun or name not in by_name or of_the_platform(name):
            return
        begun.add(name)
        for needed in sorted(by_name[name].requires):
            take(needed)
        ordered[name] = by_name[name]

    for name in sorted(by_name):
        take(name)
    return list(ordered.values())


def _is_of_the_platform(jar: LockedJar) -> bool:
    group, artifact = jar.coordinate.split(":")[:2]
    return (
        "databricks" in jar.platforms or group in _PLATFORM_GROUPS or f"{group}:{artifact}" in _PLATFORM_JARS
    )
