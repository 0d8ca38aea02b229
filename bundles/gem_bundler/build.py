"""Build a bundle: check the pipelines, collect what they need, write one folder, and prove it.

Nothing is written where the bundle will be before it is whole: a build that fails leaves no folder behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from packaging.utils import canonicalize_name

from gem_bundle.check.checker import check_definition
from gem_bundle.check.stages.gems import make_gems
from gem_bundle.diagnostics import Diagnostic, Place, in_order
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.loader import LoadOptions, load_document, read_file
from gem_bundle.pipeline.plan import Plan
from gem_bundle.plugins import load_registry
from gem_bundle.run.jars import spark_version
from gem_bundler.bundle import manifest as manifests
from gem_bundler.bundle.contents import check_dependencies, collect
from gem_bundler.bundle.manifest import Manifest
from gem_bundler.bundle.model import GemUse, Platform, Runtime
from gem_bundler.bundle.target_platform import DEFAULT_PLATFORM, building_python
from gem_bundler.bundle.written import describe
from gem_bundler.dependencies.needed import check_thin, exact_requirements, needed_distributions
from gem_bundler.dependencies.published import missing_from_index
from gem_bundler.dependencies.request import DepsRequest, fetch, resolve
from gem_bundler.jars.lock import JarRequest, jar_lock_bytes, lock_jars, vendor
from gem_bundler.job.section import Job
from gem_bundler.start.main_py import main_py
from gem_bundler.wheels.bundle import build_wheel, distribution_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gem_bundle.diagnostics import Finding
    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.document import Document
    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import GemEntry, Registry
    from gem_bundler.bundle.contents import Contents
    from gem_bundler.bundle.model import Bundle, BundlePipeline, LockedJar
    from gem_bundler.dependencies.lock import DepsLock
    from gem_bundler.wheels.bundle import Wheel

JAVA = 17
SCALA = "2.13"
DEPS = "deps.tar.gz"
DEPS_LOCK = "deps.lock"
JARS_LOCK = "jars.lock"
SBOM = "sbom.cdx.json"
_PROJECT_FILES = ("gem-bundle.toml", "pyproject.toml", ".git")
# What a project's own list of dependencies names, and a cluster has or the bundle brings anyway.
_ANYWAY = frozenset({"gem-bundle", "pyspark", "py4j", "delta-spark"})


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build is asked for.

    Args:
        output: The folder in which the bundle's folder is made.
        platforms: Whose job definitions are written.
        profile: The profile that they are for.
        thin: Leave the dependencies out, for clusters that install them by themselves.
        vendor_jars: Copy the jars in, for clusters without a network.
        update_lock: Resolve dependencies and jars again, though they are locked.
        key: The private key to sign with.
        platform: The wheel tag of the cluster's machines.
        python: The minor version of the cluster's Python.
        project: The project's folder; None finds it by its files.
        executors: Let executors load everything too before the bundle is handed out, unless they have loaded
            the same dependencies and modules before.
    """

    output: Path = Path("dist")
    platforms: tuple[Platform, ...] = ("spark-submit",)
    profile: str | None = None
    thin: bool = False
    vendor_jars: bool = False
    update_lock: bool = False
    key: Path | None = None
    platform: str = DEFAULT_PLATFORM
    python: str = field(default_factory=building_python)
    project: Path | None = None
    executors: bool = True


@dataclass(frozen=True, slots=True)
class Built:
    """A bundle that was built.

    Args:
        folder: Where it is.
        manifest: What is in it.
        diagnostics: The warnings.
        done: How it was proved, in sentences.
    """

    folder: Path
    manifest: Manifest
    diagnostics: tuple[Diagnostic, ...] = ()
    done: tuple[str, ...] = ()


def build(
    files: Sequence[str], options: BuildOptions | None = None, report: Callable[[str], None] | None = None
) -> Built:
    """Build a bundle of one or several pipelines.

    Args:
        files: The pipeline files; the bundle is named after the first one.
        options: What is asked for.
        report: Told what is being done.

    Raises:
        PipelineError: When a pipeline has errors, or can't be bundled.
        GemError: When dependencies or jars can't be had, or the folder can't be written.
    """
    return _Build(files, options or BuildOptions(), report or (lambda _line: None)).run()


class _Pipeline(NamedTuple):
    """A pipeline of the bundle: its file as it is written, and what a check made of it."""

    document: Document
    plan: Plan

    @property
    def values(self) -> Mapping[str, Any]:
        """What is in the file, references left open."""
        return cast("Mapping[str, Any]", self.document.values)


class _Build:
    """One build; what it finds is collected as long as going on makes sense."""

    def __init__(self, files: Sequence[str], options: BuildOptions, report: Callable[[str], None]) -> None:
        self._files = list(dict.fromkeys(files))
        self._options = options
        self._tell = report
        self._registry = load_registry()
        self._found: list[Diagnostic] = []

    def run(self) -> Built:
        checked = [self._checked(file) for file in self._files]
        self._stop_at_errors()
        pipelines = [pipeline for pipeline in checked if pipeline is not None]
        definitions = [pipeline.plan.definition for pipeline in pipelines]
        project = (self._options.project or _project_of(definitions)).absolute()
        contents = collect(definitions, project, self._registry)
        self._found += contents.diagnostics
        self._stop_at_errors()
        draft, deps, jars = self._draft(pipelines, project, contents)
        job = self._job(definitions[0], pipelines[0].document)
        self._stop_at_errors()
        wheel = build_wheel(draft, contents)
        bundle = wheel.manifest.bundle(job)
        platforms = [_definitions(platform) for platform in self._options.platforms]
        asked = {text for platform in platforms for text in platform.asked(bundle)}
        bundle = replace(bundle, missing=missing_from_index(sorted(asked), draft.target))
        for platform in platforms:
            self._found += [_placed(definitions[0], finding) for finding in platform.check(bundle)]
        self._stop_at_errors()
        return self._written(wheel, bundle, deps, jars)

    def _stop_at_errors(self) -> None:
        if any(found.is_error for found in self._found):
            raise PipelineError(in_order(self._found))

    def _checked(self, file: str) -> _Pipeline | None:
        """A pipeline, its environment and its parameters without a default left open; None for errors."""
        document = read_file(file)
        loaded = self._loaded(document, skip_env=True)
        checked = check_definition(loaded, self._registry)
        self._found += [found for found in checked.diagnostics if found.severity != "note"]
        if checked.definition is None or not checked.ok:
            return None
        return _Pipeline(document, checked.plan or self._open_plan(checked.definition))

    def _loaded(self, document: Document, *, skip_env: bool) -> Loaded:
        options = LoadOptions(profile=self._options.profile, skip_env=skip_env, require_parameters=False)
        return load_document(document, options)

    def _draft(
        self, pipelines: Sequence[_Pipeline], project: Path, contents: Contents
    ) -> tuple[Manifest, DepsLock | None, tuple[JarRequest, tuple[LockedJar, ...]]]:
        """The manifest as it is known before the wheel is built, with what is locked beside the pipeline."""
        options, first = self._options, pipelines[0].plan.definition
        entries = self._entries(pipeline.plan.definition for pipeline in pipelines)
        own = set(map(canonicalize_name, contents.own))
        others = [(e.name, e.origin) for e in entries if canonicalize_name(e.origin.distribution) not in own]
        serves = any("serve" in text for text in _job_keys(pipelines))
        needed = needed_distributions(others, serve=serves)
        required = _project_requirements(project)
        spark = spark_version()
        beside = Path(first.file).absolute().parent / first.name
        deps = None
        if options.thin:
            self._found += check_thin(needed)
        else:
            request = DepsRequest(needed, spark, required, options.python, options.platform)
            deps = resolve(
                request, beside.with_suffix(".deps.lock"), update=options.update_lock, report=self._tell
            )
            self._found += check_dependencies(contents, deps.distributions)
        jar_request = JarRequest.of([pipeline.plan for pipeline in pipelines])
        jars: tuple[LockedJar, ...] = ()
        if jar_request.coordinates:
            lock = beside.with_suffix(".jars.lock")
            jars = lock_jars(jar_request, lock, update=options.update_lock, report=self._tell)
        draft = Manifest(
            name=first.name,
            version=first.version,
            description=first.description,
            package=f"{first.name}_bundle",
            entry_point=distribution_name(first.name),
            wheel="",
            archive="",
            pipelines=tuple(self._described(pipeline, project) for pipeline in pipelines),
            runtime=Runtime(options.python, spark, SCALA, JAVA, options.platform, version("gem-bundle")),
            gems=tuple(
                GemUse(entry.kind, entry.name, entry.origin.distribution, entry.origin.version)
                for entry in entries
            ),
            distributions=() if deps is None else tuple(deps.distributions),
            requires=(*exact_requirements(needed), *required),
            deps=None if deps is None else DEPS,
            jars=jars,
            vendored=options.vendor_jars,
            modules=contents.modules,
            profile=options.profile,
            # As it is written: what the environment fills in belongs to the job, and not to the bundle.
            job=dict(pipelines[0].values.get("job") or {}),
        )
        return draft, deps, (jar_request, jars)

    def _entries(self, definitions: Iterable[Definition]) -> list[GemEntry]:
        """The gems in use, each once."""
        used = {(node.kind, node.gem) for definition in definitions for node in definition.nodes.values()}
        return [self._registry.get(kind, name) for kind, name in sorted(used)]

    def _open_plan(self, definition: Definition) -> Plan:
        """The pipeline with its gems, as far as they can be made while some values are open."""
        gems, _ = make_gems(definition, self._registry)
        for node in definition.nodes.values():
            if node.id not in gems:
                gems[node.id] = _open_gem(self._registry, node)
        return Plan(definition, gems, tuple(definition.nodes), {})

    def _described(self, pipeline: _Pipeline, project: Path) -> BundlePipeline:
        definition = pipeline.plan.definition
        path = Path(os.path.normpath(Path(definition.file).absolute())).relative_to(project).as_posix()
        return describe(definition, pipeline.values, path, self._registry)

    def _job(self, definition: Definition, document: Document) -> Job | None:
        """The job of the definitions, with what the environment fills in."""
        if "job" not in definition.sections:
            return None
        loaded = self._loaded(document, skip_env=False)
        self._found += [d for d in loaded.diagnostics if d.is_error and d.path[:1] == ("job",)]
        if loaded.definition is None or any(d.is_error for d in self._found):
            return None
        return Job.model_validate(loaded.definition.sections["job"]).for_profile(self._options.profile)

    def _written(
        self,
        wheel: Wheel,
        bundle: Bundle,
        deps: DepsLock | None,
        locked: tuple[JarRequest, tuple[LockedJar, ...]],
    ) -> Built:
        """The folder, whole and proved, in the place of one that was there."""
        output = self._options.output.absolute()
        name = f"{wheel.manifest.name}-{wheel.manifest.version}"
        work: Path | None = None
        try:
            output.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=f".{wheel.manifest.name}-", dir=output))
            folder = work / name
            folder.mkdir()
            manifest = self._filled(folder, wheel, bundle, deps, locked)
            done = self._proved(folder, manifest)
            target = output / name
            if target.exists():
                target.rename(work / "before")
            folder.rename(target)
        except OSError as error:
            raise GemError(
                "GB636",
                f"the bundle can't be written to `{self._options.output}`: {error.strerror or error}",
                "Name another folder with --output, or make this one writable.",
            ) from error
        finally:
            if work is not None:
                shutil.rmtree(work, ignore_errors=True)
        return Built(target, manifest, tuple(in_order(self._found)), done)

    def _filled(
        self,
        folder: Path,
        wheel: Wheel,
        bundle: Bundle,
        deps: DepsLock | None,
        locked: tuple[JarRequest, tuple[LockedJar, ...]],
    ) -> Manifest:
        from gem_bundler.dependencies.archive import write_archive
        from gem_bundler.proof.signing import sign

        made = wheel.manifest
        _write(folder / made.wheel, wheel.data)
        _write(folder / made.archive, wheel.data)
        _write(folder / SBOM, wheel.sbom)
        digest, wheels = None, dict[str, Path]()
        if deps is not None:
            wheels = fetch(deps, report=self._tell)
            _write(folder / DEPS_LOCK, deps.to_bytes())
            write_archive(deps, wheels, folder / DEPS, self._tell)
            (folder / DEPS).chmod(0o644)
            digest = manifests.describe_file(DEPS, (folder / DEPS).read_bytes()).sha256
        _write(folder / "main.py", main_py(made, digest))
        request, jars = locked
        if jars:
            _write(folder / JARS_LOCK, jar_lock_bytes(request, jars))
            if self._options.vendor_jars:
                for path in vendor(jars, folder / "jars"):
                    path.chmod(0o644)
        for platform in self._options.platforms:
            for path, content in _definitions(platform).files(bundle).items():
                _write(folder / path, content, executable=path.endswith(".sh"))
            for path in _definitions(platform).wheels(bundle):
                _write(folder / path, wheels[Path(path).name].read_bytes())
        manifest = manifests.write(folder, made)
        (folder / manifests.NAME).chmod(0o644)
        if self._options.key is not None:
            sign(folder, self._options.key).chmod(0o644)
        return manifest

    def _proved(self, folder: Path, manifest: Manifest) -> tuple[str, ...]:
        """What was done to prove that the bundle works, as far as that is possible here, and soon."""
        from gem_bundler.proof.proofs import Proofs
        from gem_bundler.proof.verify import verify

        found = verify(
            folder,
            # What a thin bundle needs is installed by its cluster; here it would be installed anew each time.
            load=manifest.target.is_here and not self._options.thin,
            executors=self._options.executors,
            proofs=Proofs(),
            report=self._tell,
        )
        if not found.ok:
            raise PipelineError(found.diagnostics)
        return (*found.done, *(f"left out: {text}" for text in found.left_out))


def _definitions(platform: Platform) -> Any:
    """The module that writes a platform's job definitions, and says what they install."""
    return import_module(f"gem_bundler.platforms.{platform.replace('-', '_')}.definition")


def _placed(definition: Definition, finding: Finding) -> Diagnostic:
    """A finding about the job as a diagnostic at its place in the pipeline file."""
    option = finding.option
    within = () if option is None else (option,) if isinstance(option, str) else tuple(option)
    path: tuple[str | int, ...] = ("job", *within) if "job" in definition.sections else ()
    place = definition.locator.place(path, key=not within)
    return Diagnostic(finding.code, finding.severity, finding.message, None, path, place, finding.hint)


def _job_keys(pipelines: Sequence[_Pipeline]) -> Iterator[Mapping[str, Any]]:
    """The `job:` sections of pipelines, with those of their profiles."""
    for pipeline in pipelines:
        job = pipeline.plan.definition.sections.get("job")
        if isinstance(job, dict):
            yield job
            profiles = job.get("profiles")
            yield from (own for own in (profiles or {}).values() if isinstance(own, dict))


def _open_gem(registry: Registry, node: Node) -> Gem:
    """A gem some of whose options aren't known yet, for what doesn't depend on them."""
    kind = registry.get(node.kind, node.gem).load()
    known = {
        name: value
        for key, value in node.options.items()
        if (name := kind.options_type.canonical(key)) is not None and not isinstance(value, Unknown)
    }
    return kind(kind.options_type.model_construct(**known))


def _project_of(definitions: Sequence[Definition]) -> Path:
    """The nearest folder above the first pipeline that holds all of them and looks like a project."""
    folders = [Path(definition.file).absolute().parent for definition in definitions]
    common = Path(os.path.commonpath(folders))
    for folder in (common, *common.parents):
        if any((folder / name).exists() for name in _PROJECT_FILES):
            return folder
    return common


def _project_requirements(project: Path) -> tuple[str, ...]:
    """What the project's own modules need, as its ``pyproject.toml`` says (PEP 621)."""
    from packaging.requirements import InvalidRequirement, Requirement

    file = project / "pyproject.toml"
    if not file.is_file():
        return ()
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}).get("dependencies", [])
        parsed = [Requirement(text) for text in written]
    except (ValueError, InvalidRequirement, AttributeError, TypeError) as error:
        message = f"the dependencies of the project can't be read: {error}"
        hint = "`dependencies` under [project] is a list of requirements, such as `requests>=2.32`."
        wrong = Diagnostic("GB637", "error", message, place=Place(str(file)), hint=hint)
        raise PipelineError([wrong]) from error
    return tuple(sorted(str(found) for found in parsed if canonicalize_name(found.name) not in _ANYWAY))


def _write(path: Path, content: bytes, *, executable: bool = False) -> None:
    """A file with the same mode under any umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)
