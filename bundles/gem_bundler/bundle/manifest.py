"""``bundle.json``: what is in a bundle, and what it was built for.

There is one inside the wheel, which the start checks itself against, and one in the bundle's folder, which
knows the folder's files too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.errors import PipelineError
from gem_bundler.bundle.model import (
    FORMAT,
    Bundle,
    BundleFile,
    BundlePipeline,
    GemUse,
    LockedDistribution,
    LockedJar,
    Runtime,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from gem_bundler.bundle.target_platform import Target
    from gem_bundler.job.section import Job

NAME = "bundle.json"
SIGNATURE = "bundle.json.sig"
_AGAIN = "Build the bundle again, or copy it again from where it was built."


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a bundle; `gem_bundler.bundle.model.Bundle` is the same as job definitions see it.

    Args:
        name: Its name: the first pipeline's.
        version: The version; with the hash of the contents once the wheel is built.
        description: What it is for.
        package: The import name of the package that the build makes.
        entry_point: The name of the console script, and of the distribution.
        wheel: The name of the wheel's file.
        archive: The name of the zip file with the same bytes.
        pipelines: The pipelines, the first one is started unless another one is named.
        runtime: What it was built for.
        gems: The gems in use.
        distributions: The Python distributions that it needs.
        requires: ``name==version`` of those that a cluster installs by itself.
        deps: The name of the archive of dependencies, or None for a thin bundle.
        jars: The jars.
        vendored: Whether the jars' files are in the bundle.
        modules: The import names of the user's own modules.
        profile: The profile that the job definitions are for.
        job: The job as the pipeline file has it.
        contents: The files in the wheel that are from the project, or made of it, by their path there.
        files: The files in the bundle's folder; empty in the manifest that is inside the wheel.
        format: The version of the format.
    """

    name: str
    version: str
    description: str
    package: str
    entry_point: str
    wheel: str
    archive: str
    pipelines: tuple[BundlePipeline, ...]
    runtime: Runtime
    gems: tuple[GemUse, ...] = ()
    distributions: tuple[LockedDistribution, ...] = ()
    requires: tuple[str, ...] = ()
    deps: str | None = None
    jars: tuple[LockedJar, ...] = ()
    vendored: bool = False
    modules: tuple[str, ...] = ()
    profile: str | None = None
    job: dict[str, Any] = field(default_factory=dict)
    contents: tuple[BundleFile, ...] = ()
    files: tuple[BundleFile, ...] = ()
    format: int = FORMAT

    @property
    def target(self) -> Target:
        """The Python and the machines that it was built for."""
        from gem_bundler.bundle.target_platform import Target

        return Target(self.runtime.python, self.runtime.platform)

    def bundle(self, job: Job | None = None) -> Bundle:
        """The bundle as its job definitions see it."""
        names = (name for name in Bundle.__slots__ if name not in {"profiles", "job", "missing"})
        profiles = tuple(self.pipelines[0].profiles)
        return Bundle(**{name: getattr(self, name) for name in names}, profiles=profiles, job=job)

    def to_json(self) -> bytes:
        """The manifest's file, byte for byte the same for the same facts."""
        facts = asdict(self)
        facts = {"format": facts.pop("format"), **facts}
        return (json.dumps(facts, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def describe_file(path: str, data: bytes) -> BundleFile:
    """A file's entry in a manifest."""
    return BundleFile(path, sha256(data).hexdigest(), len(data))


def write(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest of a folder in which all other files of the bundle are.

    Returns:
        The manifest with those files.
    """
    names = sorted(_names(folder) - {NAME, SIGNATURE})
    files = tuple(describe_file(name, (folder / name).read_bytes()) for name in names)
    manifest = replace(manifest, files=files)
    (folder / NAME).write_bytes(manifest.to_json())
    return manifest


def read(folder: Path) -> Manifest:
    """The manifest of a bundle's folder.

    Raises:
        PipelineError: GB630 when there is none or it is damaged, GB631 when its format is another one.
    """
    file = folder / NAME
    try:
        data = file.read_bytes()
    except OSError as error:
        if not folder.is_dir():
            message = f"there is no bundle `{folder}`"
            hint = "Name the folder that `gem-bundle build` wrote."
        else:
            message = f"`{folder}` is no bundle: its {NAME} can't be read ({error.strerror})"
            hint = f"Name the folder that `gem-bundle build` wrote. {_AGAIN}"
        raise _refusal("GB630", message, hint, str(folder)) from error
    return parse(data, str(file))


def parse(data: bytes, file: str = NAME) -> Manifest:
    """The manifest in the bytes of its file.

    Args:
        data: The bytes.
        file: The name for diagnostics.

    Raises:
        PipelineError: GB630 when it is damaged, GB631 when its format is another one.
    """
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refusal("GB630", f"the manifest is damaged: {_first(error)}", _AGAIN, file) from error
    if not isinstance(facts, dict) or not isinstance(facts.get("format"), int):
        raise _refusal("GB630", "the manifest is damaged: it names no format", _AGAIN, file)
    if facts["format"] != FORMAT:
        raise _refusal("GB631", *_other_format(facts), file)
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Manifest).validate_python(facts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise _refusal("GB630", f"the manifest is damaged: {where}: {first['msg']}", _AGAIN, file) from error


def check_files(folder: Path, manifest: Manifest) -> list[Diagnostic]:
    """Every file of a bundle's folder that is changed, missing, or in no list.

    Args:
        folder: The bundle's folder.
        manifest: Its manifest; that file itself is what `gem_bundler.proof.signing` is for.
    """
    there = _names(folder) - {NAME, SIGNATURE}

    def data(path: str) -> bytes | None:
        try:
            return (folder / path).read_bytes() if path in there else None
        except OSError:
            return None

    found = _differences(manifest.files, data, str(folder))
    known = {file.path for file in manifest.files}
    for path in sorted(there - known):
        message = f"`{path}` isn't one of the bundle's files"
        found.append(_damage(message, "Remove it: nobody knows where it comes from.", f"{folder}/{path}"))
    return found


def check_contents(manifest: Manifest, data: Callable[[str], bytes | None]) -> list[Diagnostic]:
    """Every file of a wheel that is changed or missing.

    Args:
        manifest: The manifest.
        data: The bytes of a file by its path in the wheel, or None when it isn't there.
    """
    return _differences(manifest.contents, data, "")


def _differences(
    files: Iterable[BundleFile], data: Callable[[str], bytes | None], folder: str
) -> list[Diagnostic]:
    found = []
    for file in files:
        place = f"{folder}/{file.path}" if folder else file.path
        there = data(file.path)
        if there is None:
            found.append(_damage(f"`{file.path}` is missing from the bundle", _AGAIN, place))
        elif len(there) != file.size or sha256(there).hexdigest() != file.sha256:
            found.append(_damage(f"`{file.path}` isn't what was built", _AGAIN, place))
    return found


def _names(folder: Path) -> set[str]:
    """The paths of all files in a folder, with ``/``; a link to a folder counts as a file."""
    found: set[str] = set()
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            found.update(f"{entry.name}/{name}" for name in _names(entry))
        else:
            found.add(entry.name)
    return found


def _other_format(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Message and hint about a manifest of another format."""
    runtime = facts.get("runtime")
    maker = runtime.get("gem_bundle") if isinstance(runtime, dict) else None
    by = f", built by gem-bundle {maker}" if maker else ""
    found = cast("int", facts["format"])
    age = "an older" if found < FORMAT else "a newer"
    message = f"the bundle has {age} format ({found}{by}); this gem-bundle reads format {FORMAT}"
    if found < FORMAT:
        return message, "Build it again with this gem-bundle."
    to = f" to {maker}" if maker else ""
    return message, f"Update gem-bundle{to}, or build the bundle again with this one."


def _damage(message: str, hint: str, file: str) -> Diagnostic:
    return Diagnostic("GB630", "error", message, place=Place(file), hint=hint)


def _refusal(code: str, message: str, hint: str, file: str) -> PipelineError:
    return PipelineError([Diagnostic(code, "error", message, place=Place(file), hint=hint)])


def _first(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
