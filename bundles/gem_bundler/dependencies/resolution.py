"""Asking pip for everything that some distributions need on a target."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gem_bundle.errors import GemError
from gem_bundler.bundle.model import LockedDistribution
from gem_bundler.dependencies.download import download
from gem_bundler.dependencies.graph import walk
from gem_bundler.dependencies.lock import DepsLock
from gem_bundler.dependencies.store import digest
from gem_bundler.wheels.files import WheelFacts, make_wheel, read_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.metadata import Distribution
    from pathlib import Path

    from gem_bundler.bundle.target_platform import Target
    from gem_bundler.dependencies.installed import Packed
    from gem_bundler.dependencies.lock import Question
    from gem_bundler.dependencies.store import WheelStore

_MOST_ROUNDS = 10


_Found = dict[str, tuple["Path", WheelFacts, tuple[str, ...]]]


def ask_pip(
    question: Question,
    target: Target,
    packed: Mapping[str, Packed],
    here: Mapping[str, Distribution],
    store: WheelStore,
    report: Callable[[str], None],
) -> DepsLock:
    """Resolve what is needed, and keep the wheels that come from an index.

    Args:
        question: What is needed.
        target: What it is for.
        packed: The wheels that are made of what is installed, by name.
        here: What is installed of all that is needed, by name; these versions are tried first.
        store: Where the wheels go.
        report: Told when other versions had to be taken.

    Raises:
        GemError: GB640 to GB645 when it can't be had.
    """
    with store.workplace() as work:
        given = work / "given"
        given.mkdir()
        places = {name: _write(given / each.file, each.content) for name, each in packed.items()}
        provided = {name: _write(given / file, content) for name, file, content in _provided(question.spark)}
        urls = [f"{name} @ {path.as_uri()}" for name, path in {**provided, **places}.items()]
        pins = _pins(here, question, {*places, *provided})
        try:
            pinned = [f"{name}=={release}" for name, release in pins.items()]
            found = _rounds(question, target, work / "pinned", [*urls, *pinned], {*provided})
        except GemError as error:
            if error.code not in {"GB642", "GB643"} or not pins:
                raise
            found = _rounds(question, target, work / "free", urls, {*provided})
            _tell_others(found, pins, target, report)
        locked = tuple(
            LockedDistribution(
                name=name,
                version=wheel.version,
                file=path.name,
                sha256=digest(path.read_bytes()) if name in packed else store.keep(path),
                requires=requires,
                licence=wheel.licence,
                editable=name in packed and packed[name].editable,
                packed=name in packed,
                modules=wheel.modules,
            )
            for name, (path, wheel, requires) in sorted(found.items())
        )
    return DepsLock(question, locked)


def _rounds(
    question: Question, target: Target, folder: Path, constraints: list[str], provided: set[str]
) -> _Found:
    """Ask pip until everything that is needed on the target is there.

    pip judges environment markers by the Python that it runs in, and not by the one it is asked for
    (pypa/pip#11664). So what it left out for that reason is asked for by name in another round, and what it
    took for that reason is left out.
    """
    asked = list(question.requirements)
    for _ in range(_MOST_ROUNDS):
        folder.mkdir(exist_ok=True)
        download(asked, target, folder, constraints=constraints)
        wheels = {wheel.name: (path, wheel) for path, wheel in map(_read, folder.glob("*.whl"))}
        requires = {name: wheel.requires for name, (_, wheel) in wheels.items()}
        edges, missing = walk(question.requirements, requires.get, target.markers())
        if not missing:
            own = edges.keys() - provided
            return {name: (*wheels[name], tuple(sorted(edges[name] & own))) for name in own}
        asked += sorted(missing)
        for path in folder.iterdir():
            path.unlink()
    raise GemError(
        "GB643",
        f"the dependencies for {target} can't be resolved from this machine: {', '.join(sorted(missing))}",
        "Build with the Python and on the platform of the cluster once; the lock then serves every machine.",
    )


def _read(path: Path) -> tuple[Path, WheelFacts]:
    return path, read_wheel(path)


def _pins(here: Mapping[str, Distribution], question: Question, without: set[str]) -> dict[str, str]:
    """The versions that are installed here, but for those that the project itself doesn't want."""
    pins = {name: each.version for name, each in here.items() if name not in without}
    for text in question.requirements:
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        if name in pins and not wanted.specifier.contains(pins[name], prereleases=True):
            del pins[name]
    return pins


def _tell_others(
    found: _Found, pins: Mapping[str, str], target: Target, report: Callable[[str], None]
) -> None:
    """Tell which versions are others than those that are installed here."""
    others = [
        f"{name} {wheel.version} (here {pins[name]})"
        for name, (_, wheel, _) in sorted(found.items())
        if name in pins and wheel.version != str(Version(pins[name]))
    ]
    report(
        f"Not all versions that are installed here can be had for {target}; others are taken: "
        f"{', '.join(others)}"
    )


def _provided(spark: str) -> Iterator[tuple[str, str, bytes]]:
    """Wheels without files for what the cluster brings: pip counts with them, and nothing is downloaded.

    pyspark's extras stand for Python packages, which a cluster need not have; they stay.
    """
    brought: dict[str, tuple[str, list[str], list[str]]] = {"pyspark": (spark, [], [])}
    try:
        here = distribution("pyspark")
        brought["py4j"] = (distribution("py4j").version, [], [])
    except PackageNotFoundError:
        pass
    else:
        if here.version == spark:
            extras = [str(extra) for extra in here.metadata.get_all("Provides-Extra") or []]
            brought["pyspark"] = (spark, extras, [text for text in here.requires or () if "extra ==" in text])
    for name, (release, extras, requires) in brought.items():
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {release}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras]
        lines += [f"Requires-Dist: {text}" for text in requires]
        info = f"{name}-{release}.dist-info"
        files = {
            f"{info}/METADATA": "".join(f"{line}\n" for line in lines).encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        yield name, f"{name}-{release}-py3-none-any.whl", make_wheel(files, info)


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
