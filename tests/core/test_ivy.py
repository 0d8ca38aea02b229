"""Resolving jars with the real Ivy, from repositories that the tests write and from Maven Central."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest

from gem_bundle.errors import GemError
from gem_bundle.run.jars import Jar, resolve, spark_home

pytestmark = pytest.mark.spark

CENTRAL = "DEFAULT_ARTIFACT_REPOSITORY"


class Repository:
    """A Maven repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = folder.as_uri()

    def add(self, coordinate: str, *needs: str, content: str = "") -> Path:
        """Publish an artifact with its dependencies; returns its jar."""
        group, artifact, version = coordinate.split(":")
        home = self.folder / group.replace(".", "/") / artifact
        place = home / version
        place.mkdir(parents=True, exist_ok=True)
        dependencies = "".join(
            f"<dependency><groupId>{g}</groupId><artifactId>{a}</artifactId>"
            f"<version>{v}</version></dependency>"
            for g, a, v in (need.split(":") for need in needs)
        )
        (place / f"{artifact}-{version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>"
            f"<artifactId>{artifact}</artifactId><version>{version}</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        jar = place / f"{artifact}-{version}.jar"
        with ZipFile(jar, "w") as archive:
            archive.writestr("what", content or coordinate)
        versions = "".join(f"<version>{p.name}</version>" for p in home.iterdir() if p.is_dir())
        (home / "maven-metadata.xml").write_text(
            f"<metadata><versioning><versions>{versions}</versions></versioning></metadata>"
        )
        return jar


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The only repository there is: it stands in for Maven Central, and the home folder is empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = Repository(tmp_path / "repository")
    monkeypatch.setenv(CENTRAL, found.url)
    return found


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def gone(repository: Repository) -> None:
    """Take the repository away, as when the network is down."""
    repository.folder.mkdir(exist_ok=True)
    repository.folder.rename(repository.folder.with_name("gone"))


def names(jars: list[Jar]) -> list[str]:
    return [jar.coordinate for jar in jars]


def content(jar: Jar) -> str:
    with ZipFile(jar.path) as archive:
        return archive.read("what").decode()


def failure(*coordinates: str, **arguments: Any) -> GemError:
    with pytest.raises(GemError) as caught:
        resolve(coordinates, **{"overrides": {}, **arguments})
    assert caught.value.code == "GB502"
    return caught.value


def test_dependencies_come_along_and_know_who_needs_them(repository: Repository, cache: Path) -> None:
    repository.add("g:top:1.0", "g:middle:2.0")
    repository.add("g:middle:2.0", "g:bottom:3.0")
    repository.add("g:bottom:3.0")
    told: list[str] = []
    jars = resolve(["g:top:1.0"], overrides={}, cache=cache, report=told.append)
    assert {jar.coordinate: jar.requested_by for jar in jars} == {
        "g:top:1.0": (),
        "g:middle:2.0": ("g:top:1.0",),
        "g:bottom:3.0": ("g:middle:2.0",),
    }
    for jar in jars:
        assert content(jar) == jar.coordinate
        assert jar.path.stat().st_size == jar.size
        assert (jar.origin, jar.cached) == (repository.url, False)
        assert jar.path.is_relative_to(cache)
    assert told[0] == "Resolving top (kept for later runs)"
    assert "Downloading bottom-3.0.jar" in told


def test_the_second_time_the_cache_answers_alone(
    repository: Repository, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add("g:a:1.0", "g:b:1.0")
    repository.add("g:b:1.0")
    first = resolve(["g:a:1.0"], overrides={}, cache=cache)
    gone(repository)
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", "")
    told: list[str] = []
    second = resolve(["g:a:1.0"], overrides={}, cache=cache, report=told.append)
    assert all(jar.cached for jar in second)
    assert [(j.coordinate, j.path, j.sha256, j.origin, j.requested_by) for j in second] == [
        (j.coordinate, j.path, j.sha256, j.origin, j.requested_by) for j in first
    ]
    assert told == []


def test_a_question_with_another_answer_is_another_question(repository: Repository, cache: Path) -> None:
    for version in ("1.0", "2.0"):
        repository.add(f"g:a:{version}")
    assert names(resolve(["g:a:1.0"], overrides={}, cache=cache)) == ["g:a:1.0"]
    assert names(resolve(["g:a:1.0"], overrides={"g:a": "2.0"}, cache=cache)) == ["g:a:2.0"]
    assert names(resolve(["g:a:2.0"], overrides={}, cache=cache)) == ["g:a:2.0"]


def test_two_versions_of_one_artifact_need_a_decision(repository: Repository, cache: Path) -> None:
    repository.add("g:a:2.0")
    error = failure("g:a:1.0", "g:a:2.0", cache=cache)
    assert error.message == "`g:a` is asked for in two versions, 1.0 and 2.0"
    assert 'overrides = {"g:a" = "2.0"}' in error.hint
    jars = resolve(["g:a:1.0", "g:a:2.0"], overrides={"g:a": "2.0"}, cache=cache)
    assert names(jars) == ["g:a:2.0"]


def test_an_override_reaches_dependencies(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0", "g:b:9.9")
    repository.add("g:b:1.5")
    jars = resolve(["g:a:1.0"], overrides={"g:b": "1.5"}, cache=cache)
    assert names(jars) == ["g:a:1.0", "g:b:1.5"]


def test_what_spark_ships_is_neither_asked_for_nor_returned(repository: Repository, cache: Path) -> None:
    shipped = sorted(file.name for file in (spark_home() / "jars").glob("zstd-jni-*.jar"))
    assert shipped
    repository.add("g:a:1.0", "com.github.luben:zstd-jni:0.1", "org.apache.logging.log4j:log4j-1.2-api:0.1")
    assert names(resolve(["g:a:1.0"], overrides={}, cache=cache)) == ["g:a:1.0"]


def test_an_artifact_that_spark_ships_needs_no_jar_at_all(repository: Repository, cache: Path) -> None:
    assert resolve(["com.github.luben:zstd-jni:0.1"], overrides={}, cache=cache) == []
    gone(repository)
    assert resolve(["com.github.luben:zstd-jni:0.1"], overrides={}, cache=cache) == []


def test_further_repositories_are_asked_before_central(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    own = Repository(tmp_path / "own")
    repository.add("g:a:1.0", content="central")
    repository.add("g:b:1.0")
    own.add("g:a:1.0", "g:b:1.0", content="own")
    jars = resolve(["g:a:1.0"], overrides={}, repositories=[own.url + "/"], cache=cache)
    assert {jar.coordinate: jar.origin for jar in jars} == {
        "g:a:1.0": own.url,
        "g:b:1.0": repository.url,
    }
    assert content(jars[0]) == "own"


def test_the_local_maven_repository_is_asked_first(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    local = Repository(tmp_path / "home" / ".m2" / "repository")
    local.add("g:a:1.0", content="built here")
    [jar] = resolve(["g:a:1.0"], overrides={}, cache=cache)
    assert (content(jar), jar.origin) == ("built here", local.url)


def test_a_local_maven_repository_may_have_a_pom_without_its_jar(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    Repository(tmp_path / "home" / ".m2" / "repository").add("g:a:1.0").unlink()
    repository.add("g:a:1.0")
    assert names(resolve(["g:a:1.0"], overrides={}, cache=cache)) == ["g:a:1.0"]


def test_a_damaged_file_is_replaced_even_without_a_network(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0")
    [jar] = resolve(["g:a:1.0"], overrides={}, cache=cache)
    whole = jar.path.read_bytes()
    gone(repository)
    jar.path.write_bytes(whole[:-1] + b"!")
    [healed] = resolve(["g:a:1.0"], overrides={}, cache=cache)
    assert (healed.path, healed.cached) == (jar.path, False)
    assert healed.path.read_bytes() == whole
    jar.path.unlink()
    assert resolve(["g:a:1.0"], overrides={}, cache=cache)[0].path.read_bytes() == whole


def test_damage_in_ivys_cache_too_is_fetched_anew(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0")
    [jar] = resolve(["g:a:1.0"], overrides={}, cache=cache)
    whole = jar.path.read_bytes()
    copies = [jar.path, *(cache / "jars" / "ivy").rglob("a-1.0.jar")]
    assert len(copies) == 2
    for damage in (whole[:40], whole.replace(b"g:a:1.0", b"g:a:6.6")):
        for copy in copies:
            copy.write_bytes(damage)
        [healed] = resolve(["g:a:1.0"], overrides={}, cache=cache)
        assert healed.path.read_bytes() == whole


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"jars": [{"coordinate": "g:a:1.0"}]}'])
def test_a_damaged_lock_is_written_anew(repository: Repository, cache: Path, damage: str) -> None:
    repository.add("g:a:1.0")
    resolve(["g:a:1.0"], overrides={}, cache=cache)
    [lock] = (cache / "jars" / "locks").iterdir()
    lock.write_text(damage)
    resolve(["g:a:1.0"], overrides={}, cache=cache)
    assert json.loads(lock.read_text())["coordinates"] == ["g:a:1.0"]
    assert resolve(["g:a:1.0"], overrides={}, cache=cache)[0].cached


def test_a_snapshot_is_asked_for_every_time(repository: Repository, cache: Path) -> None:
    for text in ("first", "second"):
        repository.add("g:a:1-SNAPSHOT", content=text)
        [jar] = resolve(["g:a:1-SNAPSHOT"], overrides={}, cache=cache)
        assert content(jar) == text


def test_what_killed_processes_left_is_swept_up(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0")
    old, new = cache / "jars" / "resolving-old", cache / "jars" / "resolving-new"
    for folder, age in ((old, 90_000), (new, 60)):
        folder.mkdir(parents=True)
        (folder / "part").write_text("x")
        os.utime(folder, (time.time() - age, time.time() - age))
    resolve(["g:a:1.0"], overrides={}, cache=cache)
    assert not old.exists()
    assert new.exists()


RESOLVE = """
import sys
from pathlib import Path
from gem_bundle.run.jars import resolve
for jar in resolve(sys.argv[2:], overrides={}, cache=Path(sys.argv[1])):
    print(jar.coordinate, jar.sha256)
"""


def resolving(cache: Path, *coordinates: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RESOLVE, cache, *coordinates],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_may_resolve_at_once(repository: Repository, cache: Path) -> None:
    for n in range(8):
        repository.add(f"g:a{n}:1.0", "g:shared:1.0")
    repository.add("g:shared:1.0")
    coordinates = [f"g:a{n}:1.0" for n in range(8)]
    # Two ask the same question, the third one that shares jars with it.
    processes = [
        resolving(cache, *coordinates),
        resolving(cache, *coordinates),
        resolving(cache, *coordinates[:4]),
    ]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert said[0][0] == said[1][0]
    assert len(said[0][0].splitlines()) == 9
    assert len(said[2][0].splitlines()) == 5
    assert all(jar.cached for jar in resolve(coordinates, overrides={}, cache=cache))


@contextmanager
def serving(folder: Path, handler: type[SimpleHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_a_process_that_is_killed_halfway_leaves_nothing_that_is_used(
    repository: Repository, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add("g:a:1.0", "g:b:1.0")
    whole = repository.add("g:b:1.0", content="x" * 100_000).read_bytes()
    halfway, killed = threading.Event(), threading.Event()

    class Halting(QuietHandler):
        def do_GET(self) -> None:
            if not self.path.endswith("b-1.0.jar") or killed.is_set():
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[:50_000])
            self.wfile.flush()
            halfway.set()
            killed.wait(60)
            return None

    with serving(repository.folder, Halting) as url:
        monkeypatch.setenv(CENTRAL, url)
        process = resolving(cache, "g:a:1.0")
        assert halfway.wait(60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed.set()
        assert not list((cache / "jars").glob("locks/*"))
        jars = resolve(["g:a:1.0"], overrides={}, cache=cache)
    assert names(jars) == ["g:a:1.0", "g:b:1.0"]
    assert jars[1].path.read_bytes() == whole


def test_the_proxy_of_the_environment_is_used(
    repository: Repository, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add("g:a:1.0")
    asked: list[str] = []

    class Proxy(QuietHandler):
        def translate_path(self, path: str) -> str:
            asked.append(path)
            return super().translate_path(urlsplit(path).path)

    with serving(repository.folder, Proxy) as url:
        monkeypatch.setenv(CENTRAL, "http://maven.invalid")
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        [jar] = resolve(["g:a:1.0"], overrides={}, cache=cache)
        assert jar.origin == "http://maven.invalid"
        assert "http://maven.invalid/g/a/1.0/a-1.0.jar" in asked
        monkeypatch.setenv("no_proxy", "maven.invalid")
        assert "maven.invalid can't be reached" in failure("g:b:1.0", cache=cache).message


def test_what_is_missing_is_named_with_who_needs_it_and_what_exists(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    repository.add("g:a:1.0", "g:b:4.2.0")
    for version in ("4.0.0", "3.10.0", "4.1.0-preview1"):
        repository.add(f"g:b:{version}")
    error = failure("g:a:1.0", "g:c:1.0", cache=cache)
    local = (tmp_path / "home" / ".m2" / "repository").as_uri()
    assert error.message == (
        "no repository has `g:b:4.2.0` (which `g:a:1.0` needs) and `g:c:1.0`; "
        f"looked in {local}, {repository.url}"
    )
    assert error.hint == (
        "Take another version, in gem-bundle.toml: [jars] overrides = "
        '{"g:b" = "4.0.0", "g:c" = "another version"}; or name a repository that has it: '
        '[jars] repositories = ["https://…"].'
    )


def test_the_override_that_the_error_proposes_helps(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0", "g:b:4.2.0")
    repository.add("g:b:4.0.0")
    assert '"g:b" = "4.0.0"' in failure("g:a:1.0", cache=cache).hint
    assert resolve(["g:a:1.0"], overrides={"g:b": "4.0.0"}, cache=cache)


def test_an_artifact_may_consist_of_its_dependencies(repository: Repository, cache: Path) -> None:
    pom = repository.add("g:all:1.0", "g:a:1.0").with_suffix(".pom")
    pom.write_text(pom.read_text().replace("<version>", "<packaging>pom</packaging><version>", 1))
    pom.with_suffix(".jar").unlink()
    repository.add("g:a:1.0")
    assert names(resolve(["g:all:1.0"], overrides={}, cache=cache)) == ["g:a:1.0"]


def test_a_pom_without_a_jar_is_missing_too(repository: Repository, cache: Path) -> None:
    repository.add("g:a:1.0", "g:b:1.0")
    repository.add("g:b:1.0").unlink()
    assert "`g:b:1.0` (which `g:a:1.0` needs)" in failure("g:a:1.0", cache=cache).message


def test_a_jar_that_differs_from_its_repositorys_checksum_is_refused(
    repository: Repository, cache: Path
) -> None:
    jar = repository.add("g:a:1.0")
    jar.with_suffix(".jar.sha1").write_text("0" * 40)
    assert "`g:a:1.0`" in failure("g:a:1.0", cache=cache).message


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/maven2", "http://maven.invalid/maven2"])
def test_no_network_is_told_apart_from_a_missing_artifact(
    repository: Repository, cache: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(CENTRAL, url)
    error = failure("io.delta:delta-spark_4.2_2.13:4.4.0", cache=cache)
    assert "`io.delta:delta-spark_4.2_2.13:4.4.0`" in error.message
    assert error.message.endswith(f"{urlsplit(url).netloc} can't be reached")
    assert error.hint.startswith("Connect to a network once")
    assert "repositories" in error.hint


def test_maven_central_has_what_the_built_in_gems_need(jars: list[Path]) -> None:
    artifacts = {jar.name for jar in jars}
    assert {
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "io.delta_delta-storage-4.4.0.jar",
        "org.apache.kafka_kafka-clients-3.9.2.jar",
        "org.apache.spark_spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    } <= artifacts
    assert not [name for name in artifacts if "scala-library" in name or "slf4j" in name]
