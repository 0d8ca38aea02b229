"""The jars a pipeline needs: resolved once, kept by content, checked at every start.

The cache folder holds, below ``jars``:

- ``locks/<key>.json``: the answer to one question (coordinates, overrides, repositories and what
  this Spark ships). It is written last, so that an interrupted run leaves no half answer;
- ``files/<sha256>/<name>.jar``: the jars, each once, however many pipelines use it;
- ``ivy``: Ivy's own cache, so that a pipeline with one more gem downloads only what is new.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError
from gem_bundle.run.ivy import Module, Question, ask, central

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

CACHE = "GEM_BUNDLE_CACHE"
SCALA = "2.13"

_FORMAT = 1
_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")
_A_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar that a session needs.

    Args:
        coordinate: What it is: ``group:artifact:version``.
        path: Where it lies in the cache.
        sha256: The checksum of its content.
        size: In bytes.
        origin: The repository it came from.
        requested_by: The coordinates that depend on it; empty for one that was asked for.
        cached: Whether it was taken from the cache, without asking a repository.
    """

    coordinate: str
    path: Path
    sha256: str
    size: int
    origin: str
    requested_by: tuple[str, ...] = ()
    cached: bool = False


def spark_version() -> str:
    """The version of the installed pyspark, without importing it.

    Raises:
        GemError: GB509 when it isn't installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise GemError(
            "GB509",
            "running a pipeline needs pyspark, which isn't installed",
            "Install it with `pip install 'gem-bundle[spark]'`.",
        ) from None


def spark_home() -> Path:
    """The folder of the Spark that will run: ``SPARK_HOME``, else the one inside pyspark.

    Raises:
        GemError: GB509 when there is neither.
    """
    chosen = os.environ.get("SPARK_HOME")
    if chosen:
        return Path(chosen)
    from importlib.util import find_spec

    spark_version()
    found = find_spec("pyspark")
    if found is None or found.origin is None or not (Path(found.origin).parent / "jars").is_dir():
        raise GemError(
            "GB509",
            "the installed pyspark brings no Spark of its own",
            "Install it with `pip install 'gem-bundle[spark]'`, or set SPARK_HOME to a Spark.",
        )
    return Path(found.origin).parent


def fill(coordinate: str, *, spark_version: str, scala: str = SCALA) -> str:
    """A gem's coordinate for one version of Spark.

    Args:
        coordinate: ``group:artifact:version`` with the placeholders ``{spark}`` (``4.2.0``),
            ``{spark_minor}`` (``4.2``) and ``{scala}`` (``2.13``).
        spark_version: The version of Spark.
        scala: The version of Scala that Spark is built with.

    Raises:
        GemError: GB502 when it has another placeholder or isn't a coordinate.
    """
    values = {
        "spark": spark_version,
        "spark_minor": ".".join(spark_version.split(".")[:2]),
        "scala": scala,
    }
    filled = re.sub(r"\{(\w+)\}", lambda m: values.get(m.group(1), m.group(0)), coordinate)
    return str(_parse(filled))


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where gem-bundle keeps what it can get again.

    ``$GEM_BUNDLE_CACHE``, else ``gem-bundle`` in the user's cache folder (``$XDG_CACHE_HOME``, else
    ``~/.cache``).
    """
    if environment is None:
        environment = os.environ
    chosen = environment.get(CACHE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    user = environment.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "gem-bundle"


def resolve(
    coordinates: Iterable[str],
    *,
    overrides: Mapping[str, str],
    repositories: Sequence[str] = (),
    cache: Path | None = None,
    report: Callable[[str], None] | None = None,
) -> list[Jar]:
    """The jars behind Maven coordinates, with all they depend on, except what Spark ships itself.

    The first time the local Maven repository, `repositories` and Maven Central are asked, in this
    order; from then on the cache answers, without a JVM and without a network, and every file is
    compared with its checksum. A damaged one is fetched again. Several processes may resolve at once.

    Args:
        coordinates: ``group:artifact:version``, placeholders filled.
        overrides: Versions to use instead, by ``group:artifact``, wherever the artifact comes in.
        repositories: URLs of further Maven repositories.
        cache: Where to keep the jars; by default `cache_folder`.
        report: Is told in short lines what happens when a repository has to be asked.

    Raises:
        GemError: GB502 when something can't be found or isn't a coordinate, GB501 when Java is
            needed and missing, GB509 when pyspark is missing.
    """
    parsed = [_parse(text) for text in coordinates]
    if not parsed:
        return []
    modules = {replace(m, version=overrides.get(m.name, m.version)) for m in parsed}
    home = spark_home()
    question = Question(
        tuple(sorted(modules)),
        dict(overrides),
        tuple(dict.fromkeys((*(url.rstrip("/") for url in repositories), central()))),
        shipped_artifacts(home),
    )
    store = (cache or cache_folder()) / "jars"
    lock = store / "locks" / f"{_key(question)}.json"
    kept = _read_lock(lock, store)
    if kept and not _is_changing(question) and all(_is_intact(jar) for jar in kept):
        return kept
    if report is not None:
        names = ", ".join(module.artifact for module in question.modules)
        report(f"Resolving {names} (kept for later runs)")
    return _fetch(question, home, store, lock, kept or [], report or (lambda _line: None))


def shipped_artifacts(home: Path) -> frozenset[str]:
    """The names of the artifacts that a Spark ships in its folder ``jars``.

    They are read off ``name-version.jar``; of a name with a part that begins with a digit
    (``log4j-1.2-api``) the shorter reading counts too: it is what that artifact stands in for.
    """
    return frozenset(
        jar.stem[: dash.start()]
        for jar in (home / "jars").glob("*.jar")
        for dash in re.finditer(r"-(?=\d)", jar.stem)
    )


def _parse(text: str) -> Module:
    match = _COORDINATE.fullmatch(text.strip())
    if not match:
        raise GemError(
            "GB502",
            f"`{text}` is not a Maven coordinate",
            "Write it as `group:artifact:version`, with one exact version; the placeholders are "
            "{spark}, {spark_minor} and {scala}.",
        )
    return Module(*match.groups())


def _key(question: Question) -> str:
    asked = [
        _FORMAT,
        [str(module) for module in question.modules],
        sorted(question.overrides.items()),
        question.repositories,
        sorted(question.shipped),
    ]
    return sha256(json.dumps(asked).encode()).hexdigest()


def _is_changing(question: Question) -> bool:
    """Whether a version is asked for whose content may change, so that no answer can be kept."""
    versions = [*(module.version for module in question.modules), *question.overrides.values()]
    return any(version.endswith("-SNAPSHOT") for version in versions)


def _read_lock(lock: Path, store: Path) -> list[Jar] | None:
    """The jars of a lock, or None when it isn't there or can't be read."""
    try:
        return [
            Jar(
                coordinate=entry["coordinate"],
                path=store / "files" / entry["sha256"] / entry["file"],
                sha256=entry["sha256"],
                size=entry["size"],
                origin=entry["origin"],
                requested_by=tuple(entry["requested_by"]),
                cached=True,
            )
            for entry in json.loads(lock.read_bytes())["jars"]
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _is_intact(jar: Jar) -> bool:
    try:
        return jar.path.stat().st_size == jar.size and _checksum(jar.path) == jar.sha256
    except OSError:
        return False


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _fetch(
    question: Question,
    home: Path,
    store: Path,
    lock: Path,
    known: Iterable[Jar],
    report: Callable[[str], None],
) -> list[Jar]:
    """Ask the repositories, put what they have into the store and write the lock."""
    import tempfile

    ivy = max((home / "jars").glob("ivy-*.jar"), default=None)
    if ivy is None:
        raise GemError(
            "GB509",
            f"the Spark in `{home}` has no Ivy in its folder `jars`",
            "Install a whole Spark: `pip install 'gem-bundle[spark]'`.",
        )
    store.mkdir(parents=True, exist_ok=True)
    _sweep(store)
    expected = {} if _is_changing(question) else {jar.coordinate: jar.sha256 for jar in known}

    def attempt(work: Path, downloads: Path) -> list[Jar]:
        return [
            Jar(
                str(found.module),
                found.path,
                _checksum(found.path),
                found.path.stat().st_size,
                found.repository,
                found.requested_by,
            )
            for found in ask(question, ivy, work, downloads, report)
        ]

    with tempfile.TemporaryDirectory(prefix="resolving-", dir=store) as scratch:
        first, second = Path(scratch, "1"), Path(scratch, "2")
        first.mkdir()
        second.mkdir()
        jars = attempt(first, first / "ivy" if _is_changing(question) else store / "ivy")
        if not all(_is_sound(jar, expected) for jar in jars):
            # Ivy's cache is damaged, so it is left aside.
            jars = attempt(second, second / "ivy")
        jars = sorted((_keep(jar, store) for jar in jars), key=lambda jar: jar.coordinate)
    _write_lock(lock, question, jars)
    return jars


def _sweep(store: Path) -> None:
    """Remove what runs that were killed while they resolved have left."""
    import shutil
    import time

    for folder in store.glob("resolving-*"):
        try:
            abandoned = time.time() - folder.stat().st_mtime > _A_DAY
        except OSError:
            continue
        if abandoned:
            shutil.rmtree(folder, ignore_errors=True)


def _is_sound(jar: Jar, expected: Mapping[str, str]) -> bool:
    """Whether a jar is whole, and the one that it was when it was resolved before."""
    from zipfile import BadZipFile, ZipFile
    from zlib import error as ZlibError  # noqa: N812 (it is an exception)

    try:
        with ZipFile(jar.path) as archive:
            whole = archive.testzip() is None
    except (BadZipFile, ZlibError, EOFError):
        return False
    return whole and expected.get(jar.coordinate, jar.sha256) == jar.sha256


def _keep(jar: Jar, store: Path) -> Jar:
    """The jar in the store, under its checksum."""
    kept = replace(jar, path=store / "files" / jar.sha256 / jar.path.name)
    if not _is_intact(kept):
        _write(kept.path, jar.path.read_bytes())
    return kept


def _write_lock(lock: Path, question: Question, jars: Iterable[Jar]) -> None:
    entries = [
        {
            "coordinate": jar.coordinate,
            "file": jar.path.name,
            "sha256": jar.sha256,
            "size": jar.size,
            "origin": jar.origin,
            "requested_by": jar.requested_by,
        }
        for jar in jars
    ]
    content = {
        "format": _FORMAT,
        "coordinates": [str(module) for module in question.modules],
        "overrides": dict(question.overrides),
        "repositories": question.repositories,
        "jars": entries,
    }
    _write(lock, json.dumps(content, indent=1).encode())


def _write(path: Path, content: bytes) -> None:
    """Write a file so that others see it whole or not at all."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
