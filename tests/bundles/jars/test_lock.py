"""The lock of jars."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

import gem_bundler.jars.lock
from gem_bundle.errors import GemError
from gem_bundle.run.jars import Jar
from gem_bundler.jars.lock import (
    JarRequest,
    is_cached,
    jar_file,
    jar_lock_bytes,
    lock_jars,
    read_jar_lock,
    vendor,
)
from tests.checked import plan_of
from tests.core.test_ivy import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundler.bundle.model import LockedJar

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
STORAGE = "io.delta:delta-storage:4.4.0"
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
POOL = "org.apache.commons:commons-pool2:2.13.1"
ACME = "com.acme:acme-spark_2.13:1.0"
JSON = "com.acme:acme-json:1.0"
REQUEST = JarRequest((DELTA, KAFKA, ACME), (("com.acme:acme-json", "1.0"),), ("https://user.example/maven",))
NEEDED_BY = {
    DELTA: (),
    KAFKA: (),
    ACME: (),
    STORAGE: (DELTA,),
    POOL: (KAFKA, ACME),
    JSON: (ACME,),
}


class Maven:
    """Stands for the resolution, and notes what it is asked."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.asked: list[tuple[tuple[str, ...], dict[str, str]]] = []
        self.contents = {coordinate: coordinate.encode() for coordinate in NEEDED_BY}

    def resolve(
        self, coordinates: tuple[str, ...], *, overrides: dict[str, str], cache: Path, **_: Any
    ) -> list[Jar]:
        self.asked.append((coordinates, overrides))
        assert cache == self.cache
        found = []
        for coordinate, content in self.contents.items():
            digest = sha256(content).hexdigest()
            name = coordinate.replace(":", "-") + ".jar"
            path = cache / "jars" / "files" / digest / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            found.append(Jar(coordinate, path, digest, len(content), "central", NEEDED_BY[coordinate]))
        return found


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    found = Maven(tmp_path / "cache")
    monkeypatch.setattr(gem_bundler.jars.lock, "resolve", found.resolve)
    return found


def locked(maven: Maven, lock: Path | None = None, **arguments: Any) -> tuple[LockedJar, ...]:
    return lock_jars(arguments.pop("request", REQUEST), lock, cache=maven.cache, **arguments)


def test_what_a_pipeline_s_gems_ask_for(tmp_path: Path) -> None:
    (tmp_path / "clicks.yaml").write_text(
        "pipeline: clicks\n"
        "sources:\n  clicks: {gem: kafka, options: {bootstrap_servers: [b:9092], subscribe: [clicks]}}\n"
        "targets:\n  table: {gem: delta, input: clicks, options: {path: out}}\n"
    )
    (tmp_path / "gem-bundle.toml").write_text(
        '[jars]\npackages = ["a:store:1"]\nexclude = ["a:huge"]\n'
        'overrides = {"a:b" = "2"}\nrepositories = ["https://maven.example.com"]\n'
    )
    plan = plan_of(tmp_path / "clicks.yaml")
    request = JarRequest.of([plan, plan], {})

    assert request.coordinates == ("a:store:1", DELTA, KAFKA)
    assert request.exclude == ("a:huge",)
    assert request.overrides == (("a:b", "2"),)
    assert request.repositories == ("https://maven.example.com",)


def test_every_jar_is_locked_with_its_hash_and_its_size(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "clicks.jars.lock"
    jars = locked(maven, lock)

    assert [jar.coordinate for jar in jars] == sorted(NEEDED_BY)
    for jar in jars:
        assert jar_file(jar, maven.cache).read_bytes() == jar.coordinate.encode()
        assert jar.size == len(jar.coordinate)
    assert maven.asked == [(REQUEST.coordinates, {"com.acme:acme-json": "1.0"})]
    assert read_jar_lock(lock) == (replace(REQUEST, repositories=()), jars)
    assert "example" not in lock.read_text()


def test_the_lock_knows_what_databricks_brings(maven: Maven) -> None:
    brought = {jar.coordinate for jar in locked(maven) if "databricks" in jar.platforms}

    # The pool is needed by a jar too that isn't part of the platform.
    assert brought == {DELTA, KAFKA, STORAGE}


def test_with_a_lock_and_a_cache_nobody_is_asked(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    first = locked(maven, lock)
    content = lock.read_bytes()
    maven.asked.clear()

    assert locked(maven, lock) == first
    assert maven.asked == []
    assert lock.read_bytes() == content


def test_what_the_cache_has_lost_is_fetched_again(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    jars = locked(maven, lock)
    jar_file(jars[0], maven.cache).write_bytes(b"x" * jars[0].size)
    jar_file(jars[1], maven.cache).unlink()
    assert [is_cached(jar, maven.cache) for jar in jars[:3]] == [False, False, True]

    assert locked(maven, lock) == jars
    assert all(is_cached(jar, maven.cache) for jar in jars)
    assert len(maven.asked) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({STORAGE: b"other"}, f"`{STORAGE}` is another file"),
        ({STORAGE: None}, f"`{STORAGE}` isn't there"),
    ],
)
def test_a_repository_that_gives_other_files_is_refused(
    change: dict[str, bytes | None], said: str, maven: Maven, tmp_path: Path
) -> None:
    lock = tmp_path / "jars.lock"
    jars = locked(maven, lock)
    for coordinate, content in change.items():
        if content is None:
            del maven.contents[coordinate]
        else:
            maven.contents[coordinate] = content
    for jar in jars:
        jar_file(jar, maven.cache).unlink()

    with pytest.raises(GemError, match=said) as caught:
        locked(maven, lock)
    assert caught.value.code == "GB645"
    assert "`jars.lock`" in caught.value.message
    assert read_jar_lock(lock)[1] == jars
    assert locked(maven, lock, update=True) != jars


def test_a_jar_that_comes_in_is_refused(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    content = maven.contents.pop(JSON)
    jars = locked(maven, lock)
    maven.contents[JSON] = content
    jar_file(jars[0], maven.cache).unlink()

    with pytest.raises(GemError, match=f"`{JSON}` has come in"):
        locked(maven, lock)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(REQUEST, coordinates=(DELTA, KAFKA)), f"`{ACME}` isn't wanted any more"),
        (replace(REQUEST, coordinates=(*REQUEST.coordinates, JSON)), f"`{JSON}` is new"),
        (
            replace(REQUEST, overrides=(("com.acme:acme-json", "2.0"),)),
            "the project's version of `com.acme:acme-json` was 1.0 and is 2.0 now",
        ),
        (
            replace(REQUEST, overrides=()),
            "the project's version of `com.acme:acme-json` was 1.0 and is not set now",
        ),
        (replace(REQUEST, exclude=("a:huge",)), "`a:huge` is left out now"),
    ],
)
def test_a_lock_for_other_jars_is_refused(now: JarRequest, said: str, maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    locked(maven, lock)
    content = lock.read_bytes()

    with pytest.raises(GemError) as caught:
        locked(maven, lock, request=now)
    assert (caught.value.code, caught.value.message) == (
        "GB646",
        f"the lock `jars.lock` was made for other jars: {said}",
    )
    assert lock.read_bytes() == content
    locked(maven, lock, request=now, update=True)
    assert read_jar_lock(lock)[0] == replace(now, repositories=())


def test_other_repositories_are_no_reason_for_another_lock(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    first = locked(maven, lock)

    assert locked(maven, lock, request=replace(REQUEST, repositories=())) == first


def test_without_a_lock_nothing_is_written(maven: Maven, tmp_path: Path) -> None:
    assert len(locked(maven)) == len(NEEDED_BY)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_pipeline_without_jars_asks_nobody(maven: Maven) -> None:
    assert locked(maven, request=JarRequest(())) == ()
    assert maven.asked == []


def content_of(**changes: Any) -> bytes:
    return json.dumps({**json.loads(jar_lock_bytes(REQUEST, [])), **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        content_of(coordinates=None),
        content_of(overrides=[]),
        content_of(jars=[{}]),
        content_of(
            jars=[{"coordinate": "a:b:1", "file": "../x.jar", "sha256": "", "size": 1, "platforms": []}]
        ),
    ],
)
def test_a_damaged_lock_is_not_guessed_at(content: bytes, maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_bytes(content)

    with pytest.raises(GemError, match=r"`jars.lock` can't be read") as caught:
        locked(maven, lock)
    assert caught.value.code == "GB647"
    assert lock.read_bytes() == content


def test_another_format_is_refused(maven: Maven, tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_bytes(content_of(format=2))

    with pytest.raises(GemError, match="has the format 2, and this gem-bundle reads format 1") as caught:
        locked(maven, lock)
    assert caught.value.code == "GB647"


def test_a_lock_that_can_not_be_written_is_told(maven: Maven, tmp_path: Path) -> None:
    with pytest.raises(GemError, match="can't be written") as caught:
        locked(maven, tmp_path / "gone" / "jars.lock")
    assert caught.value.code == "GB647"


def test_vendored_jars_are_copies(maven: Maven, tmp_path: Path) -> None:
    jars = locked(maven)
    copies = vendor(jars, tmp_path / "bundle" / "jars", maven.cache)

    assert [path.name for path in copies] == [jar.file for jar in jars]
    for jar, path in zip(jars, copies, strict=True):
        assert sha256(path.read_bytes()).hexdigest() == jar.sha256
        assert path.stat().st_mode & 0o777 == 0o644


def test_a_jar_that_is_not_what_the_lock_names_is_not_vendored(maven: Maven, tmp_path: Path) -> None:
    jars = locked(maven)
    jar_file(jars[2], maven.cache).write_bytes(b"other")

    with pytest.raises(GemError, match=f"`{jars[2].coordinate}`") as caught:
        vendor(jars, tmp_path / "jars", maven.cache)
    assert caught.value.code == "GB645"


@pytest.mark.spark
def test_a_lock_serves_a_machine_whose_cache_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repository = Repository(tmp_path / "repository")
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", repository.url)
    repository.add("g:top:1.0", "g:bottom:3.0")
    repository.add("g:bottom:3.0")
    request = JarRequest(("g:top:1.0",))
    lock = tmp_path / "jars.lock"
    jars = lock_jars(request, lock, cache=tmp_path / "one")

    assert [jar.coordinate for jar in jars] == ["g:bottom:3.0", "g:top:1.0"]
    assert lock_jars(request, lock, cache=tmp_path / "two") == jars
    assert all(is_cached(jar, tmp_path / "two") for jar in jars)
    repository.add("g:bottom:3.0", content="replaced")
    with pytest.raises(GemError, match=r"`g:bottom:3.0` is another file"):
        lock_jars(request, lock, cache=tmp_path / "three")
