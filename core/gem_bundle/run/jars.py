"""The jars a pipeline needs: resolved once, kept by content, checked at every start.

Maven coordinates are resolved by Ivy, the resolver that Spark ships and `spark.jars.packages` uses;
but Ivy needs a JVM and seconds at every start, so what it found is kept. The cache holds

- ``locks/<key>.json``: the answer to one question (coordinates, overrides, repositories and what
  this Spark ships), written last, so that whatever is interrupted leaves no half answer;
- ``files/<sha256>/<name>.jar``: the jars, each once, however many pipelines use it;
- ``ivy``: Ivy's own cache, so that a pipeline with one more gem downloads only what is new.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CACHE = "GEM_BUNDLE_CACHE"
SCALA = "2.13"
CENTRAL = "https://repo1.maven.org/maven2"

_FORMAT = 1
_PART = r"[A-Za-z0-9_.-]+"
_COORDINATE = re.compile(rf"({_PART}):({_PART}):({_PART})")


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar that a session needs.

    Args:
        coordinate: What it is: ``group:artifact:version``.
        path: Where it lies in the cache.
        sha256: The checksum of its content.
        size: In bytes.
        origin: The repository it came from.
        requested_by: The coordinates whose dependency it is; empty for one that was asked for.
        cached: Whether it was taken from the cache, without asking a repository.
    """

    coordinate: str
    path: Path
    sha256: str
    size: int
    origin: str
    requested_by: tuple[str, ...] = ()
    cached: bool = False


@dataclass(frozen=True, slots=True)
class _Module:
    """A Maven coordinate in parts."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def name(self) -> str:
        return f"{self.group}:{self.artifact}"


@dataclass(frozen=True, slots=True)
class _Request:
    """One question to the repositories; equal questions have equal keys."""

    modules: tuple[_Module, ...]
    overrides: Mapping[str, str]
    repositories: tuple[str, ...]
    shipped: frozenset[str]

    @property
    def key(self) -> str:
        asked = [
            _FORMAT,
            [str(module) for module in self.modules],
            sorted(self.overrides.items()),
            self.repositories,
            sorted(self.shipped),
        ]
        return sha256(json.dumps(asked).encode()).hexdigest()

    @property
    def is_changing(self) -> bool:
        """Whether it asks for a version whose content may change, so that no answer may be kept."""
        versions = [module.version for module in self.modules] + list(self.overrides.values())
        return any(version.endswith("-SNAPSHOT") for version in versions)


@dataclass(slots=True)
class _Report:
    """What Ivy says about one resolution."""

    found: list[Jar] = field(default_factory=list)
    missing: dict[_Module, tuple[str, ...]] = field(default_factory=dict)


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


def fill(coordinate: str, *, spark_version: str, scala: str = SCALA) -> str:
    """A gem's coordinate for one version of Spark.

    Args:
        coordinate: ``group:artifact:version`` with the placeholders ``{spark}`` (``4.2.0``),
            ``{spark_minor}`` (``4.2``) and ``{scala}`` (``2.13``).
        spark_version: The version of Spark.
        scala: The Scala version that Spark is built with.

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
    """Where jars are kept: ``$GEM_BUNDLE_CACHE``, else ``gem-bundle`` in the user's cache folder."""
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

    The first time a repository is asked (the local Maven repository, then `repositories`, then
    Maven Central); from then on the cache answers, without a JVM and without a network, and the
    checksum of every file is compared. A file that doesn't match is fetched again. Several
    processes may resolve at once.

    Args:
        coordinates: ``group:artifact:version``, placeholders filled.
        overrides: Versions to use instead, by ``group:artifact``, wherever the artifact comes in.
        repositories: URLs of further Maven repositories.
        cache: Where to keep the jars; by default `cache_folder`.
        report: Is told what happens, in short lines, when a repository has to be asked.

    Raises:
        GemError: GB502 when something can't be found or isn't a coordinate, GB501 when Java is
            needed and missing, GB509 when pyspark is missing.
    """
    modules = {_overridden(_parse(text), overrides) for text in coordinates}
    if not modules:
        return []
    home = spark_home()
    request = _Request(
        tuple(sorted(modules, key=str)),
        dict(overrides),
        (*(url.rstrip("/") for url in repositories), _central()),
        shipped_artifacts(home),
    )
    store = (cache or cache_folder()) / "jars"
    lock = store / "locks" / f"{request.key}.json"
    if not request.is_changing:
        kept = _kept(lock, store)
        if kept is not None:
            return kept
    # A lock without its files means damage, and Ivy's own cache may have it too.
    fresh = request.is_changing or lock.exists()
    return _fetch(request, home, store, lock, fresh=fresh, report=report or (lambda _line: None))


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


def shipped_artifacts(home: Path) -> frozenset[str]:
    """The names of the artifacts that a Spark ships in its ``jars`` folder.

    The names are read off ``name-version.jar``; where a name has a part that begins with a digit
    (``log4j-1.2-api``) the shorter reading counts too, which names what it stands in for.
    """
    return frozenset(
        jar.stem[: dash.start()]
        for jar in (home / "jars").glob("*.jar")
        for dash in re.finditer(r"-(?=\d)", jar.stem)
    )


def _parse(text: str) -> _Module:
    match = _COORDINATE.fullmatch(text.strip())
    if not match:
        raise GemError(
            "GB502",
            f"`{text}` is not a Maven coordinate",
            "Write it as `group:artifact:version`, with one exact version; the placeholders are "
            "{spark}, {spark_minor} and {scala}.",
        )
    return _Module(*match.groups())


def _overridden(module: _Module, overrides: Mapping[str, str]) -> _Module:
    return replace(module, version=overrides.get(module.name, module.version))


def _central() -> str:
    # Spark's own variable for those who can't reach Maven Central.
    return os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", CENTRAL).rstrip("/")


def _kept(lock: Path, store: Path) -> list[Jar] | None:
    """The jars of a lock, or None when it or one of them is missing or damaged."""
    try:
        entries = json.loads(lock.read_bytes())["jars"]
        jars = [
            Jar(
                coordinate=entry["coordinate"],
                path=store / "files" / entry["sha256"] / entry["file"],
                sha256=entry["sha256"],
                size=entry["size"],
                origin=entry["origin"],
                requested_by=tuple(entry["requested_by"]),
                cached=True,
            )
            for entry in entries
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return jars if all(_is_intact(jar.path, jar.sha256) for jar in jars) else None


def _is_intact(path: Path, checksum: str) -> bool:
    try:
        return _checksum(path) == checksum
    except OSError:
        return False


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _fetch(
    request: _Request,
    home: Path,
    store: Path,
    lock: Path,
    *,
    fresh: bool,
    report: Callable[[str], None],
) -> list[Jar]:
    """Ask Ivy, move what it brings into the store and write the lock."""
    import tempfile

    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="resolving-", dir=store) as scratch:
        work = Path(scratch)
        downloads = work / "ivy" if fresh else store / "ivy"
        jars = [_store(jar, store) for jar in _run_ivy(request, home, work, downloads, report)]
    jars.sort(key=lambda jar: jar.coordinate)
    entries = [asdict(jar) | {"file": jar.path.name} for jar in jars]
    for entry in entries:
        del entry["path"], entry["cached"]
    asked = {
        "coordinates": [str(module) for module in request.modules],
        "overrides": dict(request.overrides),
        "repositories": list(request.repositories),
    }
    _write(lock, json.dumps({"format": _FORMAT, **asked, "jars": entries}, indent=1).encode())
    return jars


def _store(jar: Jar, store: Path) -> Jar:
    """The jar in the store, under its checksum; it was checked by Ivy against its repository's."""
    path = store / "files" / jar.sha256 / jar.path.name
    if not _is_intact(path, jar.sha256):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, jar.path.read_bytes())
    return replace(jar, path=path)


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _run_ivy(
    request: _Request, home: Path, work: Path, downloads: Path, report: Callable[[str], None]
) -> list[Jar]:
    import subprocess

    from gem_bundle.run.java import find_java

    ivy = max((home / "jars").glob("ivy-*.jar"), default=None)
    if ivy is None:
        raise GemError(
            "GB509",
            f"the Spark in `{home}` has no Ivy in its folder `jars`",
            "Install a whole Spark: `pip install 'gem-bundle[spark]'`.",
        )
    local = Path.home() / ".m2" / "repository"
    repositories = (local.as_uri(), *request.repositories)
    settings, question = work / "ivysettings.xml", work / "ivy.xml"
    settings.write_text(_settings_xml(work, downloads, repositories), encoding="utf-8")
    question.write_text(_question_xml(request), encoding="utf-8")
    names = ", ".join(module.artifact for module in request.modules)
    report(f"Resolving {names} (once; later runs use the cache)")
    process = subprocess.Popen(
        [
            find_java().path,
            *_proxy_settings(),
            "-cp",
            ivy,
            "org.apache.ivy.Main",
            *("-settings", settings, "-ivy", question, "-confs", "default"),
            *("-retrieve", f"{work}/jars/[organisation]_[artifact]-[revision].[ext]"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    said: list[str] = []
    with process:
        try:
            for line in process.stdout or ():
                said.append(line.rstrip())
                if line.startswith("downloading "):
                    report(f"Downloading {line.split()[1].rpartition('/')[2]}")
        except BaseException:
            process.kill()
            raise
    outcome = _read_report(work / "gem-bundle-pipeline-default.xml", work / "jars", repositories)
    if process.returncode != 0 or outcome.missing:
        raise _unresolved(outcome, request, repositories, said)
    return outcome.found


def _settings_xml(work: Path, downloads: Path, repositories: Iterable[str]) -> str:
    from xml.sax.saxutils import quoteattr

    resolvers = "\n".join(
        f"<ibiblio name={quoteattr(url)} m2compatible='true' root={quoteattr(url + '/')} "
        "timeoutConstraint='patient'/>"
        for url in dict.fromkeys(repositories)
    )
    # The lock kind lets several processes share the cache and is released when one dies. `dual`
    # takes a jar from a later repository when an earlier one has only its POM, as a local Maven
    # repository often does.
    return f"""<ivysettings>
<settings defaultResolver='all'/>
<timeout-constraints>
<timeout-constraint name='patient' connectionTimeout='10000' readTimeout='60000'/>
</timeout-constraints>
<caches repositoryCacheDir={quoteattr(str(downloads))} resolutionCacheDir={quoteattr(str(work))}
 lockStrategy='artifact-lock-nio'/>
<resolvers>
<chain name='all' returnFirst='true' dual='true'>
{resolvers}
</chain>
</resolvers>
</ivysettings>
"""


def _question_xml(request: _Request) -> str:
    """The question as an Ivy file.

    What Spark ships is excluded here and not left out later: it saves most of the look-ups, and
    some of those artifacts aren't in every repository.
    """
    from xml.sax.saxutils import quoteattr

    wanted = "\n".join(
        f"<dependency org={quoteattr(module.group)} name={quoteattr(module.artifact)} "
        f"rev={quoteattr(module.version)} conf='default->default'/>"
        for module in request.modules
    )
    excluded = "\n".join(
        f"<exclude module={quoteattr(name)}/>" for name in sorted(request.shipped | _NEVER)
    )
    overridden = "\n".join(
        f"<override org={quoteattr(group)} module={quoteattr(artifact)} rev={quoteattr(version)}/>"
        for name, version in sorted(request.overrides.items())
        for group, _, artifact in [name.partition(":")]
    )
    return f"""<ivy-module version='2.0'>
<info organisation='gem-bundle' module='pipeline'/>
<configurations><conf name='default'/></configurations>
<dependencies>
{wanted}
{excluded}
{overridden}
</dependencies>
</ivy-module>
"""


# Part of every Spark under other names, or in one piece: a second copy breaks it.
_NEVER = frozenset(
    {"hadoop-client", "hadoop-common", "hadoop-hdfs", "log4j", "slf4j-log4j12", "slf4j-reload4j"}
)


def _proxy_settings() -> Iterator[str]:
    """The proxies of the environment (``https_proxy``, ``no_proxy``) as Java takes them."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    proxies = getproxies()
    for scheme in ("http", "https"):
        url = urlsplit(proxies.get(scheme, ""))
        if url.hostname:
            yield f"-D{scheme}.proxyHost={url.hostname}"
            yield f"-D{scheme}.proxyPort={url.port or 80}"
    if proxies.get("no"):
        hosts = [host.strip() for host in proxies["no"].split(",") if host.strip()]
        yield "-Dhttp.nonProxyHosts=" + "|".join(
            f"*{host}" if host.startswith(".") else host for host in hosts
        )


def _read_report(path: Path, retrieved: Path, repositories: Iterable[str]) -> _Report:
    """What Ivy's report says; an empty one where Ivy failed before it could write it."""
    from xml.etree import ElementTree as ET

    report = _Report()
    try:
        root = ET.parse(path).getroot()  # noqa: S314 (Ivy has just written it)
    except (OSError, ET.ParseError):
        return report
    for module in root.iter("module"):
        for revision in module.iter("revision"):
            if revision.get("evicted"):
                continue
            this = _Module(
                module.get("organisation", ""), module.get("name", ""), revision.get("name", "")
            )
            callers = tuple(
                f"{caller.get('organisation')}:{caller.get('name')}:{caller.get('callerrev')}"
                for caller in revision.iter("caller")
                if caller.get("organisation") != "gem-bundle"
            )
            if revision.get("error"):
                report.missing[this] = callers
            for artifact in revision.iter("artifact"):
                name = f"{this.group}_{artifact.get('name')}-{this.version}.{artifact.get('ext')}"
                file = retrieved / name
                if artifact.get("status") == "failed":
                    report.missing[this] = callers
                elif file.suffix == ".jar" and file.is_file():
                    place = artifact.find("origin-location")
                    url = "" if place is None else place.get("location", "")
                    report.found.append(
                        Jar(
                            str(this),
                            file,
                            _checksum(file),
                            file.stat().st_size,
                            _origin(url, repositories),
                            callers,
                        )
                    )
    return report


def _origin(url: str, repositories: Iterable[str]) -> str:
    """The repository that a file's address belongs to."""
    # Ivy writes file:/x where the rest of the world writes file:///x.
    plain = re.sub(r"^file:/+", "file:///", url)
    return next((root for root in repositories if plain.startswith(root + "/")), plain)


def _unresolved(
    outcome: _Report, request: _Request, repositories: Sequence[str], said: Sequence[str]
) -> GemError:
    """The error for what Ivy couldn't find: what, for whom, where it looked, and what helps."""
    unreachable = sorted(_unreachable_hosts(said))
    reached = "" if not unreachable else f"; {' and '.join(unreachable)} can't be reached"
    if not outcome.missing:
        problems = [line.strip() for line in said if line.strip()]
        return GemError(
            "GB502",
            f"the jars {_listed(request.modules)} can't be resolved{reached}: "
            f"{_last_words(problems)}",
            _REMEDY_NETWORK,
        )
    parts = []
    for module, callers in sorted(outcome.missing.items(), key=lambda item: str(item[0])):
        needed = f" (needed by `{callers[0]}`)" if callers else ""
        parts.append(f"`{module}`{needed}")
    looked = ", ".join(repositories)
    message = f"no repository has {' and '.join(parts)}; looked in {looked}{reached}"
    if unreachable:
        return GemError("GB502", message, _REMEDY_NETWORK)
    return GemError("GB502", message, _override_hint(list(outcome.missing), request.repositories))


_REMEDY_NETWORK = (
    "Connect to a network once (jars are then kept), or name a repository that can be reached in "
    'gem-bundle.toml: [jars] repositories = ["https://…"].'
)


def _listed(modules: Iterable[_Module]) -> str:
    return ", ".join(f"`{module}`" for module in modules)


def _last_words(lines: Sequence[str]) -> str:
    errors = [line for line in lines if re.search(r"error|exception|failed|impossible", line, re.I)]
    return (errors or list(lines) or ["Ivy says nothing"])[-1]


def _unreachable_hosts(said: Iterable[str]) -> set[str]:
    from urllib.parse import urlsplit

    hosts = set()
    for line in said:
        match = re.search(r"Server access error at url (\S+)|Host (\S+) not found", line)
        if match:
            hosts.add(urlsplit(match.group(1)).netloc if match.group(1) else match.group(2))
    return hosts


def _override_hint(missing: Sequence[_Module], repositories: Sequence[str]) -> str:
    examples = []
    for module in sorted(missing, key=str):
        newest = _newest(module, repositories)
        examples.append(f'"{module.name}" = "{newest or "<another version>"}"')
    return (
        "Take a version that exists, in gem-bundle.toml: [jars.overrides] "
        + ", ".join(examples)
        + "; or name the repository that has it: [jars] repositories = [\"https://…\"]."
    )


def _newest(module: _Module, repositories: Sequence[str]) -> str | None:
    """The newest final release of an artifact in the first repository that knows it."""
    from urllib.request import urlopen

    for root in repositories:
        url = f"{root}/{module.group.replace('.', '/')}/{module.artifact}/maven-metadata.xml"
        if not url.startswith(("https://", "http://")):
            continue
        try:
            with urlopen(url, timeout=5) as answer:  # noqa: S310 (the scheme is checked above)
                text = answer.read().decode(errors="replace")
        except OSError:
            continue
        versions = re.findall(r"<version>(\d+(?:\.\d+)*)</version>", text)
        if versions:
            return max(versions, key=lambda v: [int(part) for part in v.split(".")])
    return None
