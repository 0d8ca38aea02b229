"""The lock of a bundle's jars: coordinates, checksums and sizes of all that the gems need on the class path.

A coordinate has one exact version, but what it depends on is decided by the repository that is asked, and by
the project's overrides. So the whole closure is written down, with the hash of each file.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import GemError
from gem_bundle.run.environment import needed_jars, project_jars
from gem_bundle.run.jars import cache_folder, resolve
from gem_bundle.settings import load_settings
from gem_bundler.bundle.lock_files import write_lock
from gem_bundler.bundle.model import LockedJar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.jars import Jar

FORMAT = 1

BROUGHT_BY: Mapping[str, tuple[str, ...]] = {
    "databricks": (
        "io.delta:delta-spark",
        "org.apache.hadoop:hadoop-aws",
        "org.apache.spark:spark-avro",
        "org.apache.spark:spark-sql-kafka-0-10",
        "software.amazon.awssdk:s3-transfer-manager",
        "software.amazon.awssdk:sts",
    ),
}
"""The artifacts that a platform has itself, with all that they need, by its name; without Scala's version."""


@dataclass(frozen=True, slots=True)
class JarRequest:
    """What jars were resolved for.

    Args:
        coordinates: ``group:artifact:version`` of what the gems ask for.
        overrides: The project's versions by ``group:artifact``.
        repositories: The project's repositories; they decide where files come from, and not which.
        exclude: What the project leaves out, as ``group:artifact``.
    """

    coordinates: tuple[str, ...]
    overrides: tuple[tuple[str, str], ...] = ()
    repositories: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, plans: Sequence[Plan], environment: Mapping[str, str] | None = None) -> JarRequest:
        """What the gems of some pipelines of one project ask for, and the project itself.

        Args:
            plans: The pipelines.
            environment: Environment variables; None is the process's.

        Raises:
            GemError: GB502 when a gem's coordinate isn't one, GB509 without pyspark.
            PipelineError: When the project's settings can't be read.
        """
        settings = [load_settings(plan.definition.folder, environment) for plan in plans]
        coordinates = {coordinate for plan in plans for coordinate in needed_jars(plan)}
        coordinates |= {coordinate for each in settings for coordinate in project_jars(each)}
        overrides = {name: version for each in settings for name, version in each.overrides.items()}
        repositories = dict.fromkeys(url for each in settings for url in each.repositories)
        exclude = {name for each in settings for name in each.exclude}
        return cls(
            tuple(sorted(coordinates)),
            tuple(sorted(overrides.items())),
            tuple(repositories),
            tuple(sorted(exclude)),
        )

    def asks_for_the_same(self, other: JarRequest) -> bool:
        """Whether another request has the same jars for an answer, wherever they come from."""
        mine, others = replace(self, repositories=()), replace(other, repositories=())
        return mine == others


def lock_jars(
    request: JarRequest,
    lock: Path | None = None,
    *,
    update: bool = False,
    cache: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> tuple[LockedJar, ...]:
    """The jars behind some coordinates, with all that they need, except what Spark ships itself.

    With a lock they are those that it names: where the cache holds all of them no repository is asked, and
    where one had to be asked and gave other files, they are refused.

    Args:
        request: What is needed.
        lock: The lock's file, which is written when it isn't there.
        update: Resolve again, though there is a lock.
        cache: gem-bundle's cache folder; by default `cache_folder`.
        report: Told when a repository has to be asked.

    Raises:
        GemError: GB502 when they can't be had, GB645 when a repository has other files than the lock, GB646
            when the lock was made for something else, GB647 when it can't be read or written.
    """
    if lock is not None and lock.exists() and not update:
        asked, kept = read_jar_lock(lock)
        if not asked.asks_for_the_same(request):
            raise GemError(
                "GB646",
                f"the lock `{lock.name}` was made for other jars: {_difference(asked, request)}",
                "Build with --update-lock to resolve them again, and commit the new lock.",
            )
        if all(is_cached(jar, cache) for jar in kept):
            return kept
        found = _resolve(request, cache, report)
        _refuse_others(kept, found, lock.name)
        return kept
    found = _resolve(request, cache, report)
    if lock is not None:
        write_lock(lock, jar_lock_bytes(request, found))
    return found


def jar_lock_bytes(request: JarRequest, jars: Iterable[LockedJar]) -> bytes:
    """The file ``jars.lock``; the URLs of repositories aren't in it."""
    content = {
        "format": FORMAT,
        "coordinates": list(request.coordinates),
        "overrides": dict(request.overrides),
        **({"exclude": list(request.exclude)} if request.exclude else {}),
        "jars": [
            {
                "coordinate": jar.coordinate,
                "file": jar.file,
                "sha256": jar.sha256,
                "size": jar.size,
                "platforms": list(jar.platforms),
            }
            for jar in jars
        ],
    }
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def read_jar_lock(path: Path) -> tuple[JarRequest, tuple[LockedJar, ...]]:
    """What a ``jars.lock`` was made for, and its jars.

    Raises:
        GemError: GB647 when it is damaged or of another format.
    """
    try:
        content = json.loads(path.read_bytes())
        written = content["format"]
        if written == FORMAT:
            request = JarRequest(
                tuple(str(text) for text in content["coordinates"]),
                tuple(sorted((str(name), str(version)) for name, version in content["overrides"].items())),
                exclude=tuple(sorted(str(name) for name in content.get("exclude", []))),
            )
            return request, tuple(_jar(entry) for entry in content["jars"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise GemError(
            "GB647",
            f"the lock `{path.name}` can't be read: {type(error).__name__}: {error}",
            "Take it from version control again, or build with --update-lock to make a new one.",
        ) from None
    raise GemError(
        "GB647",
        f"the lock `{path.name}` has the format {written}, and this gem-bundle reads format {FORMAT}",
        "Build with the gem-bundle that wrote it, or with --update-lock to make a new one.",
    )


def jar_file(jar: LockedJar, cache: Path | None = None) -> Path:
    """Where a jar lies in the cache, which keeps files by their hash."""
    return (cache or cache_folder()) / "jars" / "files" / jar.sha256 / jar.file


def is_cached(jar: LockedJar, cache: Path | None = None) -> bool:
    """Whether the cache holds a jar, whole and unchanged."""
    from gem_bundle.run.jar_store import checksum

    try:
        path = jar_file(jar, cache)
        return path.stat().st_size == jar.size and checksum(path) == jar.sha256
    except OSError:
        return False


def vendor(jars: Iterable[LockedJar], folder: Path, cache: Path | None = None) -> list[Path]:
    """Copy jars into a folder, for clusters without a network.

    Args:
        jars: Those that `lock_jars` gave.
        folder: Where they go; made when it isn't there.
        cache: gem-bundle's cache folder; by default `cache_folder`.

    Raises:
        GemError: GB645 when one isn't in the cache as the lock names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copied = []
    for jar in jars:
        if not is_cached(jar, cache):
            raise GemError(
                "GB645",
                f"the jar `{jar.coordinate}` isn't in the cache as the lock names it",
                "Run `gem-bundle jars` to fetch it again.",
            )
        target = folder / jar.file
        shutil.copyfile(jar_file(jar, cache), target)
        target.chmod(0o644)
        copied.append(target)
    return copied


def _resolve(
    request: JarRequest, cache: Path | None, report: Callable[[str], None] | None
) -> tuple[LockedJar, ...]:
    if not request.coordinates:
        return ()
    jars = resolve(
        request.coordinates,
        overrides=dict(request.overrides),
        repositories=request.repositories,
        exclude=request.exclude,
        cache=cache,
        report=report,
    )
    brought = {platform: _brought(jars, names) for platform, names in BROUGHT_BY.items()}
    return tuple(
        LockedJar(
            jar.coordinate,
            jar.path.name,
            jar.sha256,
            jar.size,
            tuple(platform for platform, found in sorted(brought.items()) if jar.coordinate in found),
        )
        for jar in sorted(jars, key=lambda jar: jar.coordinate)
    )


def _brought(jars: Sequence[Jar], names: Iterable[str]) -> set[str]:
    """The coordinates of the jars that come with some artifacts, and with nothing else."""
    found = {jar.coordinate for jar in jars if _is_one_of(jar.coordinate, names)}
    while True:
        more = {
            jar.coordinate
            for jar in jars
            if jar.requested_by and jar.coordinate not in found and found.issuperset(jar.requested_by)
        }
        if not more:
            return found
        found |= more


def _is_one_of(coordinate: str, names: Iterable[str]) -> bool:
    artifact = coordinate.rpartition(":")[0]
    return any(artifact == name or artifact.startswith(f"{name}_") for name in names)


def _difference(before: JarRequest, now: JarRequest) -> str:
    parts = [f"`{gone}` isn't wanted any more" for gone in before.coordinates if gone not in now.coordinates]
    parts += [f"`{new}` is new" for new in now.coordinates if new not in before.coordinates]
    parts += [f"`{name}` isn't left out any more" for name in before.exclude if name not in now.exclude]
    parts += [f"`{name}` is left out now" for name in now.exclude if name not in before.exclude]
    old, new_overrides = dict(before.overrides), dict(now.overrides)
    for name in sorted(old.keys() | new_overrides.keys()):
        if old.get(name) != new_overrides.get(name):
            parts.append(
                f"the project's version of `{name}` was {old.get(name, 'not set')} and is "
                f"{new_overrides.get(name, 'not set')} now"
            )
    return "; ".join(parts)


def _refuse_others(kept: Iterable[LockedJar], found: Iterable[LockedJar], name: str) -> None:
    now = {jar.coordinate: jar for jar in found}
    locked = {jar.coordinate: jar for jar in kept}
    for coordinate in sorted(locked.keys() | now.keys()):
        one, other = locked.get(coordinate), now.get(coordinate)
        if one is not None and other is not None and one.sha256 == other.sha256:
            continue
        what = "is another file" if one and other else "isn't there" if one else "has come in"
        raise GemError(
            "GB645",
            f"the repository doesn't give what the lock `{name}` names: `{coordinate}` {what}",
            "Find out who changed it: a released jar never changes. To take what is there now, build with "
            "--update-lock.",
        )


def _jar(entry: Mapping[str, Any]) -> LockedJar:
    name = str(entry["file"])
    if Path(name).name != name:
        raise ValueError(f"{name!r} is not the name of a file")
    return LockedJar(
        str(entry["coordinate"]),
        name,
        str(entry["sha256"]),
        int(entry["size"]),
        tuple(str(platform) for platform in entry["platforms"]),
    )
