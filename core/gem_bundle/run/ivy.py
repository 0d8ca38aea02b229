"""One question to Maven repositories, put through Ivy: the resolver that Spark ships.

`spark.jars.packages` would ask Ivy too, but at every start, with a JVM that is already Spark, and
without a way to give an artifact another version. How answers are kept is `gem_bundle.run.jars`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import listed_names
from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CENTRAL = "https://repo1.maven.org/maven2"

# Parts of every Spark under other names: a second copy of them breaks it.
_NEVER = frozenset(
    {"hadoop-client", "hadoop-common", "hadoop-hdfs", "log4j", "slf4j-log4j12", "slf4j-reload4j"}
)
_NETWORK_HINT = (
    "Connect to a network once (jars are kept from then on), or name a repository that can be "
    'reached, in gem-bundle.toml: [jars] repositories = ["https://…"].'
)


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """A Maven coordinate in parts."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def name(self) -> str:
        """What it is in every version: ``group:artifact``."""
        return f"{self.group}:{self.artifact}"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Args:
        modules: What is needed.
        overrides: Versions to use instead, by ``group:artifact``, wherever the artifact comes in.
        repositories: URLs in the order they are asked, after the local Maven repository.
        shipped: Names of artifacts that are there already and stay out of the answer.
        excluded: What else stays out, as ``group:artifact``.
    """

    modules: tuple[Module, ...]
    overrides: Mapping[str, str]
    repositories: tuple[str, ...]
    shipped: frozenset[str]
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Download:
    """One jar of the answer: where it lies, which repository had it, and who needs it."""

    module: Module
    path: Path
    repository: str
    requested_by: tuple[str, ...]


@dataclass(slots=True)
class _Answer:
    found: list[Download] = field(default_factory=list)
    missing: dict[Module, tuple[str, ...]] = field(default_factory=dict)


def central() -> str:
    """The address of Maven Central, or what Spark's own variable for it says."""
    return os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", CENTRAL).rstrip("/")


def ask(
    question: Question, ivy: Path, work: Path, downloads: Path, report: Callable[[str], None]
) -> list[Download]:
    """Resolve and download; Ivy compares every file with the checksum its repository gives.

    Args:
        question: What is asked.
        ivy: Ivy's own jar.
        work: An empty folder; the jars lie in it afterwards.
        downloads: Ivy's cache, which several processes may share.
        report: Is told what is being downloaded.

    Raises:
        GemError: GB502 when something can't be found, GB501 when there is no Java.
    """
    import subprocess

    from gem_bundle.run.java import find_java

    local = Path.home() / ".m2" / "repository"
    repositories = tuple(dict.fromkeys((local.as_uri(), *question.repositories)))
    settings, file = work / "ivysettings.xml", work / "ivy.xml"
    settings.write_text(_settings_xml(work, downloads, repositories), encoding="utf-8")
    file.write_text(_question_xml(question), encoding="utf-8")
    process = subprocess.Popen(
        [
            find_java().path,
            "-XX:TieredStopAtLevel=1",  # Ivy is done before better code pays: 0.4 s for 0.7 s
            *_proxy_settings(),
            *("-cp", ivy, "org.apache.ivy.Main"),
            *("-settings", settings, "-ivy", file, "-confs", "default"),
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
                said.append(line.strip())
                if line.startswith("downloading "):
                    report(f"Downloading {line.split()[1].rpartition('/')[2]}")
        except BaseException:
            process.kill()
            raise
    answer = _read_answer(work / "gem-bundle-pipeline-default.xml", work / "jars", repositories)
    if process.returncode != 0 or answer.missing:
        raise _unresolved(answer.missing, question, repositories, said)
    return answer.found


def _settings_xml(work: Path, downloads: Path, repositories: Iterable[str]) -> str:
    from xml.sax.saxutils import quoteattr

    resolvers = "\n".join(
        f"<ibiblio name={quoteattr(url)} m2compatible='true' root={quoteattr(url + '/')} "
        "timeoutConstraint='patient'/>"
        for url in repositories
    )
    # The kind of lock lets processes share the cache, and ends with its process. With `dual` a jar
    # may come from a later repository than its POM: a local Maven repository often has only that.
    return f"""<ivysettings>
<settings defaultResolver='all'/>
<timeout-constraints>
<timeout-constraint name='patient' connectionTimeout='10000' readTimeout='60000'/>
</timeout-constraints>
<caches lockStrategy='artifact-lock-nio' defaultCacheDir={quoteattr(str(downloads))}
 resolutionCacheDir={quoteattr(str(work))}/>
<resolvers>
<chain name='all' returnFirst='true' dual='true'>
{resolvers}
</chain>
</resolvers>
</ivysettings>
"""


def _question_xml(question: Question) -> str:
    """The question as an Ivy file.

    What Spark ships is excluded in the question and not dropped from the answer: that saves most
    of the look-ups (11 s instead of 35 s for Delta and Kafka), and not every repository has it all.
    """
    from xml.sax.saxutils import quoteattr

    wanted = "\n".join(
        f"<dependency org={quoteattr(module.group)} name={quoteattr(module.artifact)} "
        f"rev={quoteattr(module.version)} conf='default->default'/>"
        for module in question.modules
    )
    excluded = "\n".join(
        [
            *(f"<exclude module={quoteattr(name)}/>" for name in sorted(question.shipped | _NEVER)),
            *(
                f"<exclude org={quoteattr(group)} module={quoteattr(artifact)}/>"
                for name in sorted(question.excluded)
                for group, _, artifact in [name.partition(":")]
            ),
        ]
    )
    overridden = "\n".join(
        f"<override org={quoteattr(group)} module={quoteattr(artifact)} rev={quoteattr(version)}/>"
        for name, version in sorted(question.overrides.items())
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


def _proxy_settings() -> Iterator[str]:
    """The proxies of the environment (``https_proxy``, ``no_proxy``), which Java doesn't read."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies

    proxies = getproxies()
    for scheme in ("http", "https"):
        url = urlsplit(proxies.get(scheme, ""))
        if url.hostname:
            yield f"-D{scheme}.proxyHost={url.hostname}"
            yield f"-D{scheme}.proxyPort={url.port or 80}"
    direct = [host.strip().lstrip(".") for host in proxies.get("no", "").split(",")]
    patterns = [pattern for host in direct if host for pattern in (host, f"*.{host}")]
    if patterns:
        yield "-Dhttp.nonProxyHosts=" + "|".join(["localhost", "127.*", "[::1]", *patterns])


def _read_answer(report: Path, jars: Path, repositories: Iterable[str]) -> _Answer:
    """What Ivy's report says; nothing where Ivy failed before it could write one."""
    from xml.etree import ElementTree as ET

    answer = _Answer()
    try:
        root = ET.parse(report).getroot()  # noqa: S314 (Ivy has just written it)
    except (OSError, ET.ParseError):
        return answer
    for element in root.iter("module"):
        for revision in element.iter("revision"):
            if revision.get("evicted"):
                continue
            module = Module(
                element.get("organisation", ""), element.get("name", ""), revision.get("name", "")
            )
            callers = tuple(
                f"{caller.get('organisation')}:{caller.get('name')}:{caller.get('callerrev')}"
                for caller in revision.iter("caller")
                if caller.get("organisation") != "gem-bundle"
            )
            if revision.get("error"):
                answer.missing[module] = callers
            for artifact in revision.iter("artifact"):
                name = f"{module.group}_{artifact.get('name')}-{module.version}.jar"
                origin = artifact.find("origin-location")
                url = "" if origin is None else origin.get("location", "")
                if artifact.get("status") == "failed":
                    answer.missing[module] = callers
                elif (jars / name).is_file():
                    place = _repository(url, repositories)
                    answer.found.append(Download(module, jars / name, place, callers))
    return answer


def _repository(url: str, repositories: Iterable[str]) -> str:
    """The repository that a file's address belongs to."""
    # Ivy writes file:/x where the rest of the world writes file:///x.
    plain = re.sub(r"^file:/+", "file:///", url)
    return next((root for root in repositories if plain.startswith(root + "/")), plain)


def _unresolved(
    missing: Mapping[Module, tuple[str, ...]],
    question: Question,
    repositories: Sequence[str],
    said: Iterable[str],
) -> GemError:
    """The error for what Ivy couldn't find: what, for whom, where it looked, and what helps."""
    lines = [line for line in said if line]
    unreachable = sorted(_unreachable(lines))
    reached = f"; {' and '.join(unreachable)} can't be reached" if unreachable else ""
    if not missing:
        problems = [line for line in lines if re.search("error|exception|fail", line, re.I)]
        last = (problems or lines or ["it says nothing"])[-1]
        names = listed_names(question.modules)
        return GemError("GB502", f"Ivy can't resolve {names}{reached}: {last}", _NETWORK_HINT)
    named = " and ".join(
        f"`{module}`" + (f" (which `{callers[0]}` needs)" if callers else "")
        for module, callers in sorted(missing.items())
    )
    message = f"no repository has {named}; looked in {', '.join(repositories)}{reached}"
    if unreachable:
        return GemError("GB502", message, _NETWORK_HINT)
    examples = ", ".join(
        f'"{module.name}" = "{_newest(module, question.repositories) or "another version"}"'
        for module in sorted(missing)
    )
    return GemError(
        "GB502",
        message,
        f"Take another version, in gem-bundle.toml: [jars] overrides = {{{examples}}}; or name a "
        'repository that has it: [jars] repositories = ["https://…"].',
    )


def _unreachable(lines: Iterable[str]) -> set[str]:
    from urllib.parse import urlsplit

    hosts = set()
    for line in lines:
        match = re.search(r"Server access error at url (\S+)|Host (\S+) not found", line)
        if match:
            hosts.add(match.group(2) or urlsplit(match.group(1)).netloc)
    return hosts


def _newest(module: Module, repositories: Iterable[str]) -> str | None:
    """The newest final release of an artifact in the first repository that lists its versions."""
    from urllib.request import urlopen

    for root in repositories:
        url = f"{root}/{module.group.replace('.', '/')}/{module.artifact}/maven-metadata.xml"
        if not url.startswith(("https://", "http://", "file://")):
            continue
        try:
            with urlopen(url, timeout=5) as answer:  # noqa: S310 (the scheme is checked above)
                text = answer.read().decode(errors="replace")
        except (OSError, ValueError):
            continue
        versions = re.findall(r"<version>(\d+(?:\.\d+)*)</version>", text)
        if versions:
            return str(max(versions, key=lambda version: [int(n) for n in version.split(".")]))
    return None
