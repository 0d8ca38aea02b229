"""What is installed here and comes from no index: distributions whose files have to be packed.

gem-bundle and the plugins normally come from an index, and a bundle takes their wheels from there. Whoever
develops them has them in editable mode, or installed from a folder, a file or a repository; then no index has
exactly these files, and the bundle packs what is installed.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.version import Version

from gem_bundle.errors import GemError
from gem_bundler.dependencies.graph import walk
from gem_bundler.wheels.files import SIGNATURES, WheelFacts, facts, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Origin = Literal["index", "local", "editable"]
EDITABLE = "editable"

_OF_THE_INSTALLATION = {
    "INSTALLER",
    "RECORD",
    "REQUESTED",
    "WHEEL",
    "direct_url.json",
    "uv_build.json",
    "uv_cache.json",
    *SIGNATURES,
}
_NATIVE = (".so", ".pyd", ".dylib", ".dll")


@dataclass(frozen=True, slots=True)
class Packed:
    """A wheel made of what is installed.

    Args:
        facts: What it says of itself; the version of an editable one is marked.
        file: The name of its file.
        content: Its bytes.
        editable: It was installed in editable mode.
    """

    facts: WheelFacts
    file: str
    content: bytes
    editable: bool


def installed(name: str) -> Distribution:
    """The installed distribution of that name.

    Raises:
        GemError: GB648 when there is none.
    """
    found = list(Distribution.discover(name=name))
    if not found:
        raise GemError(
            "GB648",
            f"the distribution `{name}` isn't installed here, so its version isn't known",
            f"Install it (`pip install {name}`): the bundle takes the versions that the pipeline was checked "
            "with.",
        )
    # A build leaves metadata in the folder of the sources, and Python finds it there too: what an installer
    # has written says where the distribution comes from.
    return next((each for each in found if each.read_text("INSTALLER") is not None), found[0])


def origin(found: Distribution) -> Origin:
    """Where an installed distribution comes from.

    ``direct_url.json`` (PEP 610) is there when it wasn't an index. Conda writes one too, with the folder that
    it was built in on another machine; that says nothing.
    """
    text = found.read_text("direct_url.json")
    if text is None or (found.read_text("INSTALLER") or "").strip() == "conda":
        return "index"
    try:
        is_editable = json.loads(text).get("dir_info", {}).get("editable", False)
    except (ValueError, AttributeError):
        return "index"
    return "editable" if is_editable else "local"


def version(found: Distribution) -> str:
    """The version of an installed distribution; that of an editable one ends in ``+editable``."""
    plain = Version(found.version)
    if origin(found) != "editable":
        return str(plain)
    local = [part for part in (plain.local, EDITABLE) if part]
    return f"{plain.public}+{'.'.join(local)}"


def closure(requirements: Iterable[str], markers: Mapping[str, str]) -> dict[str, Distribution]:
    """The installed distributions that some requirements need, by their normalised names.

    Args:
        requirements: As PEP 508 has it.
        markers: The values of environment markers on the target. What is needed there and isn't installed
            here is left out.
    """
    found: dict[str, Distribution] = {}

    def requires_of(name: str) -> Iterable[str] | None:
        try:
            found[name] = found.get(name) or installed(name)
        except GemError:
            return None
        return found[name].requires or ()

    walk(requirements, requires_of, markers)
    return dict(sorted(found.items()))


def pack(found: Distribution) -> Packed:
    """A wheel of an installed distribution, with the same bytes wherever the same files are installed.

    Of an editable one the packages are taken from where they are developed, of another one the files that its
    ``RECORD`` lists. Scripts, compiled Python and what the installer wrote are left out.

    Raises:
        GemError: GB648 when its files can't be found, or when it is editable and has native parts.
    """
    is_editable = origin(found) == "editable"
    name, marked = found.metadata["Name"], version(found)
    stem = f"{re.sub('[-_.]+', '_', name).lower()}-{marked}"
    info = f"{stem}.dist-info"
    metadata = found.read_text("METADATA") or ""
    if marked != str(Version(found.version)):
        metadata = re.sub(r"(?m)^Version: .*$", f"Version: {marked}", metadata, count=1)
    files = {f"{info}/{path}": content for path, content in _metadata_files(found)}
    files[f"{info}/METADATA"] = metadata.encode()
    if is_editable:
        sources = dict(_editable_sources(found))
        _refuse_native(name, sources)
        tags = ["py3-none-any"]
    else:
        sources = dict(_installed_sources(found))
        tags = _tags(found)
    if not sources:
        raise GemError(
            "GB648",
            f"the files of `{name}` can't be found, though it is installed"
            + (" in editable mode" if is_editable else ""),
            "Install it from a wheel: `pip wheel --no-deps -w wheels FOLDER`, then `pip install` that file.",
        )
    files.update(sources)
    is_pure = all(tag.endswith("-any") for tag in tags)
    files[f"{info}/WHEEL"] = "".join(
        f"{line}\n"
        for line in (
            "Wheel-Version: 1.0",
            "Generator: gem-bundle",
            f"Root-Is-Purelib: {str(is_pure).lower()}",
            *(f"Tag: {tag}" for tag in tags),
        )
    ).encode()
    content = make_wheel(files, info)
    return Packed(facts(metadata, files), f"{stem}-{_compressed(tags)}.whl", content, is_editable)


def _metadata_files(found: Distribution) -> Iterator[tuple[str, bytes]]:
    """The files of the folder ``….dist-info`` that don't come from the installer."""
    for file in sorted(found.files or ()):
        folder, _, rest = file.as_posix().partition("/")
        if folder.endswith(".dist-info") and rest and rest not in {*_OF_THE_INSTALLATION, "METADATA"}:
            path = Path(str(found.locate_file(file)))
            if path.is_file():
                yield rest, path.read_bytes()


def _installed_sources(found: Distribution) -> Iterator[tuple[str, bytes]]:
    for file in sorted(found.files or ()):
        name = file.as_posix()
        if file.parts[0].endswith(".dist-info") or ".." in file.parts or not _is_source(file.parts):
            continue
        path = Path(str(found.locate_file(file)))
        if path.is_file():
            yield name, path.read_bytes()


def _editable_sources(found: Distribution) -> Iterator[tuple[str, bytes]]:
    """The files of the packages and modules of an editable distribution."""
    for name in sorted(_editable_modules(found)):
        spec = find_spec(name)
        if spec is None:
            continue
        for folder in spec.submodule_search_locations or ():
            yield from _folder(Path(folder), name)
        if not spec.submodule_search_locations and spec.origin and Path(spec.origin).is_file():
            file = Path(spec.origin)
            yield file.name, file.read_bytes()


def _folder(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for parent, folders, files in os.walk(folder):
        inner = Path(parent).relative_to(folder).parts
        folders[:] = sorted(f for f in folders if _is_source((f,)))
        for file in sorted(files):
            if _is_source((file,)):
                yield "/".join((name, *inner, file)), (Path(parent) / file).read_bytes()


def _editable_modules(found: Distribution) -> set[str]:
    """The import names of an editable distribution.

    Setuptools lists them. Other build backends put the folder of the sources on Python's path: of a folder
    that holds nothing else all are taken; of the project's own folder, where tests and tools lie too, those
    that have the distribution's name or that an entry point names.
    """
    listed = set((found.read_text("top_level.txt") or "").split())
    if listed:
        return listed
    project = _project(found)
    own = re.sub(r"[-.]+", "_", found.metadata["Name"])
    likely = {own, own.lower(), *(point.module.partition(".")[0] for point in found.entry_points)}
    names = {name for name in likely if _lies_in(name, project)}
    for file in found.files or ():
        if file.suffix == ".pth":
            for line in Path(str(file.locate())).read_text(encoding="utf-8").splitlines():
                folder = Path(line)
                is_project = any((folder / name).is_file() for name in ("pyproject.toml", "setup.py"))
                if folder.is_dir() and not is_project:
                    names.update(_importable(folder))
    return names


def _importable(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        is_module = path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").is_file())
        if is_module and path.stem.isidentifier():
            yield path.stem


def _project(found: Distribution) -> Path | None:
    url = urlsplit(json.loads(found.read_text("direct_url.json") or "{}").get("url", ""))
    return Path(url2pathname(url.path)).resolve() if url.scheme == "file" else None


def _lies_in(name: str, folder: Path | None) -> bool:
    if not name.isidentifier():
        return False
    spec = find_spec(name)
    if spec is None or folder is None:
        return False
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else [])]
    return any(Path(place).resolve().is_relative_to(folder) for place in places)


def _is_source(parts: tuple[str, ...]) -> bool:
    return not any(
        part == "__pycache__" or part.startswith(".") or part.endswith((".pyc", ".pyo")) for part in parts
    )


def _refuse_native(name: str, files: Iterable[str]) -> None:
    native = next((file for file in files if file.endswith(_NATIVE)), None)
    if native is not None:
        raise GemError(
            "GB648",
            f"`{name}` is installed in editable mode and has the native part `{native}`, compiled for this "
            "machine only",
            "Build a wheel of it for the cluster's platform and install that one; or build with --thin and "
            "install it on the cluster.",
        )


def _tags(found: Distribution) -> list[str]:
    lines = (found.read_text("WHEEL") or "").splitlines()
    return sorted(line.partition(":")[2].strip() for line in lines if line.startswith("Tag:")) or [
        "py3-none-any"
    ]


def _compressed(tags: Iterable[str]) -> str:
    """Several tags in the short form of file names (PEP 425): ``py2.py3-none-any``."""
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(sorted(set(part))) for part in parts)
