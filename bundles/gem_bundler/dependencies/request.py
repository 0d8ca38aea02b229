"""The Python dependencies of a bundle: the runtime, the plugins in use, and what these need.

pip resolves and downloads; here it is only told for which Python and platform, and what came out is written
down in a lock. From then on exactly those files are taken, from the cache or from the index.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from gem_bundle.errors import GemError
from gem_bundle.run.jars import cache_folder
from gem_bundler.bundle.target_platform import DEFAULT_PLATFORM, Target, building_python
from gem_bundler.dependencies.download import download
from gem_bundler.dependencies.graph import applying
from gem_bundler.dependencies.installed import closure, origin, pack
from gem_bundler.dependencies.lock import DepsLock, Question
from gem_bundler.dependencies.needed import exact_requirements, name_of
from gem_bundler.dependencies.resolution import ask_pip
from gem_bundler.dependencies.store import WheelStore, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.metadata import Distribution
    from pathlib import Path

    from gem_bundler.dependencies.installed import Packed


@dataclass(frozen=True, slots=True)
class DepsRequest:
    """What a bundle needs of Python.

    Args:
        distributions: The installed distributions whose gems are used, and the runtime, with extras where
            they are needed (``gem-bundle[kafka]``); `needed_distributions` tells them. The versions that
            are installed are taken.
        spark: The version of Spark of the cluster. It brings pyspark and py4j, which are left out.
        requirements: What the project's own modules need beside that, as PEP 508 has it.
        python: The minor version of the cluster's Python; by default the one that is running.
        platform: The platform tag of the cluster's machines.
    """

    distributions: tuple[str, ...]
    spark: str
    requirements: tuple[str, ...] = ()
    python: str = field(default_factory=building_python)
    platform: str = DEFAULT_PLATFORM


def resolve(
    request: DepsRequest,
    lock: Path | None = None,
    *,
    update: bool = False,
    cache: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> DepsLock:
    """The files that a bundle needs: those of its lock, or else what pip finds, which the lock then keeps.

    The versions that are installed here are preferred, since the pipeline was checked with them; where they
    can't be had for the target, pip chooses. What isn't installed from an index is packed from what is
    installed; an editable distribution that has changed is packed anew also with a lock.

    Args:
        request: What is needed.
        lock: The lock's file; without one everything is resolved each time.
        update: Resolve again, though there is a lock.
        cache: Where wheels are kept; by default `cache_folder`.
        report: Told what takes long, and what differs from what one might expect.

    Raises:
        GemError: GB646 when the lock was made for something else, GB647 when it can't be read or written;
            GB640 to GB645 and GB648 when the dependencies can't be had.
    """
    tell = report or (lambda _line: None)
    target = Target(request.python, request.platform)
    own = _parsed(request.requirements)
    here = closure((*request.distributions, *own), target.markers())
    packed = _pack_local(here, request, target)
    question = Question(
        tuple(sorted((*exact_requirements(request.distributions), *own))),
        request.python,
        request.platform,
        request.spark,
        tuple((name, _own_requirements(found, request, target)) for name, found in packed.items()),
    )
    store = WheelStore(cache or cache_folder())
    if lock is not None and lock.exists() and not update:
        kept = DepsLock.read(lock)
        differences = list(kept.question.differences(question))
        if differences:
            raise GemError(
                "GB646",
                f"the lock `{lock.name}` was made for something else: {'; '.join(differences)}",
                "Build with --update-lock to resolve the dependencies again, and commit the new lock.",
            )
        found = _refresh(kept, packed, lock.name, tell)
    else:
        names = ", ".join(question.requirements)
        tell(f"Resolving {names} for {target}" + (" (kept in the lock)" if lock else ""))
        found = ask_pip(question, target, packed, here, store, tell)
    for each in packed.values():
        store.keep_packed(each)
    if lock is not None:
        found.write(lock)
    return found


def fetch(
    lock: DepsLock, *, cache: Path | None = None, report: Callable[[str], None] | None = None
) -> dict[str, Path]:
    """The wheels of a lock by the names of their files, each compared with its hash.

    Those that the cache hasn't got are fetched from the index.

    Args:
        lock: Which ones.
        cache: Where wheels are kept; by default `cache_folder`.
        report: Told what is fetched.

    Raises:
        GemError: GB645 when a file is another one than the lock names; GB640, GB642 or GB644 when it can't be
            had.
    """
    store = WheelStore(cache or cache_folder())
    missing = []
    for found in lock.distributions:
        if store.find(found) is None:
            if found.packed:
                raise GemError(
                    "GB645",
                    f"`{found.name}` was packed from what was installed, and that has changed since",
                    "Build again; with --update-lock where the lock is kept.",
                )
            missing.append(found)
    if missing:
        if report is not None:
            report(f"Fetching {', '.join(f'{each.name} {each.version}' for each in missing)}")
        target = Target(lock.question.python, lock.question.platform)
        wanted = [f"{each.name}=={each.version} --hash=sha256:{each.sha256}" for each in missing]
        with store.workplace() as folder:
            download(wanted, target, folder, dependencies=False)
            for path in folder.iterdir():
                store.keep(path)
    files = {found.file: store.find(found) for found in lock.distributions}
    return {name: path for name, path in files.items() if path is not None}


def _pack_local(here: Mapping[str, Distribution], request: DepsRequest, target: Target) -> dict[str, Packed]:
    """What of the installed distributions has to be packed, by name."""
    wanted = {name_of(text) for text in (*request.distributions, *request.requirements)}
    found = {}
    for name, each in here.items():
        if origin(each) == "index":
            continue
        packed = pack(each)
        if target.runs(packed.file):
            found[name] = packed
        elif name in wanted:
            raise GemError(
                "GB648",
                f"the installed `{name}`, which came from no index, doesn't run with {target}: it would be "
                f"packed as `{packed.file}`",
                "Install a wheel of it that does, or name the platform and the Python that it is for.",
            )
    return found


def _refresh(
    lock: DepsLock, packed: Mapping[str, Packed], name: str, report: Callable[[str], None]
) -> DepsLock:
    """The lock with what is in the editable distributions now."""
    found = []
    for each in lock.distributions:
        now = packed.get(each.name)
        if not each.packed or now is None or digest(now.content) == each.sha256:
            found.append(each)
            continue
        if not each.editable:
            raise GemError(
                "GB646",
                f"`{each.name}` {each.version} has other files now than when the lock `{name}` was made",
                "Build with --update-lock to take them, and commit the new lock.",
            )
        report(f"{each.name} is installed in editable mode and has changed: its files are packed anew")
        found.append(replace(each, sha256=digest(now.content), modules=now.facts.modules))
    return DepsLock(lock.question, tuple(found))


def _own_requirements(packed: Packed, request: DepsRequest, target: Target) -> tuple[str, ...]:
    """What a packed distribution requires on the target, with the extras that are asked for."""
    extras = {""}
    for text in (*request.distributions, *request.requirements):
        if name_of(text) == packed.facts.name:
            extras |= Requirement(text).extras
    markers = target.markers()
    return tuple(
        sorted({str(r) for extra in extras for r in applying(packed.facts.requires, markers, extra)})
    )


def _parsed(requirements: Iterable[str]) -> list[str]:
    """The project's own requirements in their normal form."""
    found = []
    for text in requirements:
        try:
            found.append(str(Requirement(text)))
        except InvalidRequirement:
            raise GemError(
                "GB643",
                f"`{text}` is not a requirement",
                "Write the name of a distribution and, where it matters, its versions: `requests>=2.31`.",
            ) from None
    return found
