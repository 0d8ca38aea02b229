"""The jars a pipeline needs: resolved once, kept by content, checked at every start."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError
from gem_bundle.run.ivy import Module, Question, ask, central
from gem_bundle.run.jar_store import FORMAT, Jar, JarStore, checksum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Jar", "cache_folder", "fill", "resolve", "spark_home", "spark_version"]

CACHE = "GEM_BUNDLE_CACHE"
SCALA = "2.13"

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")


def spark_version() -> str:
    """The version of pyspark, without importing one that pip has installed.

    A Spark that came otherwise, as an image or an archive, has a pyspark that no distribution is known of.

    Raises:
        GemError: GB509 when there is none.
    """
    from importlib.metadata import PackageNotFoundError, version

    with suppress(PackageNotFoundError):
        return version("pyspark")
    try:
        from pyspark.version import __version__
    except ImportError:
        raise GemError(
            "GB509",
            "running a pipeline needs pyspark, which isn't installed",
            "Install it with `pip install 'gem-bundle[spark]'`.",
        ) from None
    return str(__version__)


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
            ``{spark_minor}`` (``4.2``), ``{scala}`` (``2.13``) and ``{hadoop}`` (``3.5.0``).
        spark_version: The version of Spark.
        scala: The version of Scala that Spark is built with.

    Raises:
        GemError: GB502 when it has another placeholder or isn't a coordinate.
    """
    values = {
        **({"hadoop": hadoop_version(spark_home())} if "{hadoop}" in coordinate else {}),
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
    exclude: Iterable[str] = (),
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
        exclude: Artifacts that are left out wherever they come in, as ``group:artifact``.
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
    _refuse_two_versions(modules)
    home = spark_home()
    question = Question(
        tuple(sorted(modules)),
        dict(overrides),
        tuple(dict.fromkeys((*(url.rstrip("/") for url in repositories), central()))),
        shipped_artifacts(home),
        frozenset(exclude),
    )
    store = JarStore((cache or cache_folder()) / "jars")
    key = _key(question)
    changing = _is_changing(question)
    known = None if changing else store.read(key)
    if known is not None and all(jar.is_intact() for jar in known):
        return known
    if report is not None:
        names = ", ".join(module.artifact for module in question.modules)
        report(f"Resolving {names} (kept for later runs)")
    expected = {jar.coordinate: jar.sha256 for jar in known or ()}
    with store.workplace() as work:
        jars = None if changing else _ask(question, home, work / "1", store.ivy, report)
        if jars is None or not all(_is_sound(jar, expected) for jar in jars):
            # Ivy's cache is of no use here, or damaged: do without it.
            jars = _ask(question, home, work / "2", work / "ivy", report)
        asked = {
            "coordinates": [str(module) for module in question.modules],
            "overrides": dict(question.overrides),
            "repositories": question.repositories,
            "exclude": sorted(question.excluded),
        }
        return store.write(key, sorted(jars, key=lambda jar: jar.coordinate), asked)


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


def hadoop_version(home: Path) -> str:
    """The version of the Hadoop that a Spark ships.

    Args:
        home: The folder of the Spark.

    Raises:
        GemError: GB509 when it ships none.
    """
    for jar in (home / "jars").glob("hadoop-client-api-*.jar"):
        return jar.stem.removeprefix("hadoop-client-api-")
    raise GemError(
        "GB509",
        f"the Spark in `{home}` brings no Hadoop, so `{{hadoop}}` stands for nothing",
        "Write the version of your Hadoop in its place, in gem-bundle.toml: [jars] packages.",
    )


def _parse(text: str) -> Module:
    match = _COORDINATE.fullmatch(text.strip())
    if not match:
        raise GemError(
            "GB502",
            f"`{text}` is not a Maven coordinate",
            "Write it as `group:artifact:version`, with one exact version; the placeholders are "
            "{spark}, {spark_minor}, {scala} and {hadoop}.",
        )
    return Module(*match.groups())


def _refuse_two_versions(modules: Iterable[Module]) -> None:
    versions: dict[str, str] = {}
    for module in sorted(modules):
        other = versions.setdefault(module.name, module.version)
        if other != module.version:
            raise GemError(
                "GB502",
                f"`{module.name}` is asked for in two versions, {other} and {module.version}",
                "Say which one to take, in gem-bundle.toml: [jars] overrides = "
                f'{{"{module.name}" = "{module.version}"}}.',
            )


def _key(question: Question) -> str:
    asked = [
        FORMAT,
        [str(module) for module in question.modules],
        sorted(question.overrides.items()),
        question.repositories,
        sorted(question.shipped),
        *([sorted(question.excluded)] if question.excluded else []),
    ]
    return sha256(json.dumps(asked).encode()).hexdigest()


def _is_changing(question: Question) -> bool:
    """Whether a version is asked for whose content may change, so that no answer can be kept."""
    versions = [*(module.version for module in question.modules), *question.overrides.values()]
    return any(version.endswith("-SNAPSHOT") for version in versions)


def _ask(
    question: Question,
    home: Path,
    work: Path,
    downloads: Path,
    report: Callable[[str], None] | None,
) -> list[Jar]:
    ivy = max((home / "jars").glob("ivy-*.jar"), default=None)
    if ivy is None:
        raise GemError(
            "GB509",
            f"the Spark in `{home}` has no Ivy in its folder `jars`",
            "Install a whole Spark: `pip install 'gem-bundle[spark]'`.",
        )
    work.mkdir()
    return [
        Jar(
            coordinate=str(found.module),
            path=found.path,
            sha256=checksum(found.path),
            size=found.path.stat().st_size,
            origin=found.repository,
            requested_by=found.requested_by,
        )
        for found in ask(question, ivy, work, downloads, report or (lambda _line: None))
    ]


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
