"""What a bundle is: the facts that its wheel, its manifest and its job definitions are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gem_bundler.job.section import Job

FORMAT = 1
"""The version of the bundle's format; another one is refused, with a sentence that says what reads it."""

Platform = Literal["spark-submit", "databricks", "kubernetes"]
PLATFORMS: tuple[Platform, ...] = ("spark-submit", "databricks", "kubernetes")


@dataclass(frozen=True, slots=True)
class BundleParameter:
    """A parameter of a pipeline, as someone who starts the job needs to know it.

    Args:
        name: Its name, for ``-p name=value``.
        type: ``string``, ``integer``, ``number``, ``boolean`` or ``list``.
        required: It has no default and must be given at start.
        default: Its default.
        description: What it is for.
    """

    name: str
    type: str
    required: bool = False
    default: Any = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class BundleTarget:
    """A target of a pipeline.

    Args:
        id: Its id.
        gem: The name of its gem.
        trigger: The kind of its trigger (``default``, ``available_now``, ``processing_time``, …).
        interval: The trigger's interval, where it has one.
        output_mode: Its output mode.
    """

    id: str
    gem: str
    trigger: str = "default"
    interval: str | None = None
    output_mode: str = "append"


@dataclass(frozen=True, slots=True)
class BundlePipeline:
    """One pipeline in a bundle.

    Args:
        name: Its name; the checkpoints are ``<root>/<name>/<target id>``.
        file: Its file, by its path within the project, with ``/``.
        mode: ``stream`` or ``batch``.
        description: What it is for.
        checkpoints: The root of its checkpoints as the file has it: a URL, an absolute path, or one relative
            to where the job runs.
        parameters: Its parameters.
        secrets: The names of the secrets it needs (``scope/key``).
        targets: Its targets.
        spark: Its Spark settings.
        fingerprint: The hash (sha256, hex) of what it is: nodes, options, settings; no parameter's value of a
            run and no secret.
        nodes: Its nodes by id, as the file has them: kind, gem, inputs, options with references left open.
        profiles: The values that each profile gives to parameters.
    """

    name: str
    file: str
    mode: Literal["stream", "batch"] = "stream"
    description: str = ""
    checkpoints: str = "checkpoints"
    parameters: tuple[BundleParameter, ...] = ()
    secrets: tuple[str, ...] = ()
    targets: tuple[BundleTarget, ...] = ()
    spark: tuple[tuple[str, str], ...] = ()
    fingerprint: str = ""
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GemUse:
    """A gem that a bundle's pipelines use.

    Args:
        kind: ``source``, ``transform`` or ``target``.
        name: Its name.
        distribution: The distribution it comes from.
        version: That distribution's version; a version of an editable installation ends in ``+editable``.
    """

    kind: str
    name: str
    distribution: str
    version: str


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of a bundle, checked by its hash.

    Args:
        path: Its path within the bundle's folder, with ``/``.
        sha256: The hash of its bytes, in hex.
        size: Its size in bytes.
    """

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class LockedJar:
    """A jar that the pipelines need on the class path.

    Args:
        coordinate: ``group:artifact:version``.
        file: The name of its file.
        sha256: The hash of its bytes, in hex.
        size: Its size in bytes.
        platforms: The platforms that bring it themselves (``databricks``).
    """

    coordinate: str
    file: str
    sha256: str
    size: int
    platforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockedDistribution:
    """A Python distribution that the bundle needs.

    Args:
        name: Its normalised name (PEP 503).
        version: Its version.
        file: The name of its wheel.
        sha256: The hash of the wheel's bytes, in hex.
        requires: The normalised names of those it needs itself.
        licence: What it says of its licence (SPDX where it does).
        editable: It was packed from an editable installation.
        packed: It was packed from what is installed on the building machine, because it came from no index;
            every editable one is.
        modules: The import names that it brings.
    """

    name: str
    version: str
    file: str
    sha256: str
    requires: tuple[str, ...] = ()
    licence: str = ""
    editable: bool = False
    packed: bool = False
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a bundle was built for.

    Args:
        python: The version of Python, ``3.11``.
        spark: The version of Spark, ``4.2.0``.
        scala: The version of Scala, ``2.13``.
        java: The least version of Java, ``17``.
        platform: The platform of the native parts, a wheel tag such as ``manylinux2014_x86_64``.
        gem_bundle: The version of gem-bundle.
    """

    python: str
    spark: str
    scala: str
    java: int
    platform: str
    gem_bundle: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle as its job definitions see it.

    Args:
        name: Its name: the first pipeline's, ``[a-z][a-z0-9_]*``.
        version: The full version: the pipeline's and the hash of the contents, ``1.4.0+g0123456789ab``.
        description: What it is for.
        pipelines: Its pipelines, the first one is started unless another one is named.
        runtime: What it was built for.
        gems: The gems in use.
        wheel: The name of the wheel's file.
        archive: The name of the zip file with the same bytes, for ``--py-files``.
        package: The import name of the package that the build makes, ``<name>_bundle``.
        entry_point: The console entry point, by the name of its script.
        requires: ``name==version`` of the distributions that a cluster installs by itself.
        missing: Those of them that the index in use hasn't got.
        distributions: All that are locked, with what they need; empty for a thin bundle.
        deps: The name of the archive of dependencies, or None for a thin bundle.
        jars: The jars, those that a platform brings itself included.
        vendored: Whether the jars' files are in the bundle (in ``jars/``).
        modules: The import names of the user's own modules in the wheel.
        profile: The profile that the job definitions are for.
        profiles: The names of the profiles with values for the first pipeline's parameters.
        job: The `job:` section, with the profiles that are in it.
    """

    name: str
    version: str
    description: str
    pipelines: tuple[BundlePipeline, ...]
    runtime: Runtime
    gems: tuple[GemUse, ...]
    wheel: str
    archive: str
    package: str
    entry_point: str
    requires: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    distributions: tuple[LockedDistribution, ...] = ()
    deps: str | None = None
    jars: tuple[LockedJar, ...] = ()
    vendored: bool = False
    modules: tuple[str, ...] = ()
    profile: str | None = None
    profiles: tuple[str, ...] = ()
    job: Job | None = None
