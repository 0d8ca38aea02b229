"""Projects and wheels for the tests of bundles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle.pipeline.loader import LoadOptions, load_file, read_file
from gem_bundle.plugins import load_registry
from gem_bundler.bundle.contents import Contents, collect
from gem_bundler.bundle.manifest import Manifest
from gem_bundler.bundle.model import LockedDistribution, LockedJar, Runtime
from gem_bundler.bundle.written import describe
from gem_bundler.wheels.bundle import Wheel, build_wheel, distribution_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Definition

RUNTIME = Runtime(
    python="3.11",
    spark="4.2.0",
    scala="2.13",
    java=17,
    platform="manylinux2014_x86_64",
    gem_bundle="0.1.0",
)
TICKS = """\
pipeline: ticks
sources:
  ticks: {gem: rate}
targets:
  screen: {gem: console, input: ticks}
"""
CLEAN = """\
pipeline: ticks
sources:
  ticks: {gem: rate}
transforms:
  clean: {gem: python, input: ticks, options: {function: "jobs:clean"}}
targets:
  screen: {gem: console, input: clean}
"""
JOBS = 'def clean(ticks):\n    return ticks.where("value > 0")\n'
PLUGGY = LockedDistribution(
    name="pluggy", version="1.6.0", file="pluggy-1.6.0-py3-none-any.whl", sha256="aa" * 32, licence="MIT"
)
ACME = LockedDistribution(
    name="acme-gems",
    version="1.0+editable",
    file="acme_gems-1.0+editable-py3-none-any.whl",
    sha256="bb" * 32,
    requires=("pluggy",),
    licence="Acme's own, see LICENSE",
    editable=True,
)
DELTA = LockedJar(
    "io.delta:delta-spark_4.2_2.13:4.4.0", "delta-spark_4.2_2.13-4.4.0.jar", "cc" * 32, 7_000_000
)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, by their path within the folder; returns the folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def load(folder: Path, *names: str, profile: str | None = None) -> list[Definition]:
    """The pipelines of some files."""
    options = LoadOptions(profile=profile, require_parameters=False, skip_env=True)
    found = [load_file(folder / name, options) for name in names]
    assert [d for each in found for d in each.diagnostics] == []
    return [each.definition for each in found if each.definition is not None]


def collected(folder: Path, *names: str) -> Contents:
    """What goes into a bundle of some pipeline files."""
    return collect(load(folder, *(names or ("ticks.yaml",))), folder)


def problems(folder: Path, *names: str) -> list[Diagnostic]:
    """What is wrong with it."""
    return list(collected(folder, *names).diagnostics)


def draft(folder: Path, *names: str, **changes: Any) -> Manifest:
    """A manifest as a build begins with it."""
    registry = load_registry()
    definitions = load(folder, *(names or ("ticks.yaml",)))
    pipelines = []
    for definition, name in zip(definitions, names or ("ticks.yaml",), strict=True):
        values = read_file(folder / name).values
        pipelines.append(describe(definition, values, name, registry))
    first = definitions[0]
    manifest = Manifest(
        name=first.name,
        version=first.version,
        description=first.description,
        package=f"{first.name}_bundle",
        entry_point=distribution_name(first.name),
        wheel="",
        archive="",
        pipelines=tuple(pipelines),
        runtime=RUNTIME,
        modules=collected(folder, *names).modules,
    )
    return replace(manifest, **changes)


def built(folder: Path, *names: str, **changes: Any) -> Wheel:
    """The wheel of some pipeline files."""
    return build_wheel(draft(folder, *names, **changes), collected(folder, *names))
