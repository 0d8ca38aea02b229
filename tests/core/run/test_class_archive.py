"""Archives of classes: which one a session gets, what becomes of what is recorded, and what damage does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.run import class_archive_finish as finishing
from gem_bundle.run.class_archive import ClassArchive, class_archive
from gem_bundle.run.jars import spark_home
from gem_bundle.run.java import Java, find_java

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = (0xF00BABA8).to_bytes(4, sys.byteorder)


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """Something that lies in its folder as a Java does."""
    for name in ("bin/java", "lib/server/classes.jsa", "lib/server/libjvm.so"):
        file = tmp_path / "java" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return Java(tmp_path / "java" / "bin" / "java", "17.0.1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core.jar").write_text("core")
    return tmp_path / "spark"


def recorded(folder: Path, content: bytes = b"classes", key: str = "k", aside: str = "k-1.new") -> Path:
    """The description of an archive that was recorded and put in its place."""
    folder.mkdir(exist_ok=True)
    (folder / aside).write_bytes(MAGIC + content)
    finishing.finish(folder / aside, folder / f"{key}.json")
    return folder / f"{key}.json"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_first_session_records_and_the_next_one_uses_it(tmp_path: Path, java: Java, home: Path) -> None:
    folder = tmp_path / "classes"
    first = class_archive(folder, java, home, {}, {})
    assert first is not None
    assert first.recorded
    assert first.options[0] == f"-XX:ArchiveClassesAtExit={first.file}"
    assert class_archive(folder, java, home, {}, {}, records=False) is None
    first.file.write_bytes(MAGIC + b"classes")
    finishing.finish(first.file, first.place)
    second = class_archive(folder, java, home, {}, {})
    assert second is not None
    assert not second.recorded
    assert second.options[0] == f"-XX:SharedArchiveFile={second.file}"
    assert second.file.read_bytes() == MAGIC + b"classes"
    assert len(names(folder)) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"spark.jars": "/jars/delta.jar"},
        {"spark.driver.extraJavaOptions": "-XX:+UseZGC"},
        {"spark.driver.extraClassPath": "/jars/driver.jar"},
        {"spark.driver.memory": "40g"},
        {"JAVA_TOOL_OPTIONS": "-XX:-UseCompressedOops"},
        {"SPARK_CONF_DIR": "/etc/spark"},
        "another jar in Spark",
        "a newer Java",
    ],
    ids=str,
)
def test_another_java_spark_or_set_of_jars_has_another_archive(
    tmp_path: Path, java: Java, home: Path, other: dict[str, str] | str
) -> None:
    def key(settings: dict[str, str], environment: dict[str, str]) -> str:
        found = class_archive(tmp_path / "classes", java, home, settings, environment)
        assert found is not None
        return found.place.name

    same = {"spark.app.name": "b", "spark.driver.extraJavaOptions": "-Da=b", "spark.driver.memory": "2g"}
    before = key({"spark.app.name": "a"}, {})
    assert key(same, {"JAVA_TOOL_OPTIONS": "-Dc=d", "HOME": "/"}) == before
    if other == "another jar in Spark":
        (home / "jars" / "spark-core.jar").write_text("patched")
        assert key({}, {}) != before
    elif other == "a newer Java":
        (java.path.parent.parent / "lib" / "server" / "libjvm.so").write_text("newer by a letter")
        assert key({}, {}) != before
    else:
        assert isinstance(other, dict)
        assert key({k: v for k, v in other.items() if k.startswith("spark.")}, other) != before


@pytest.mark.parametrize(
    "option",
    [
        "-Xshare:off",
        "-XX:SharedArchiveFile=mine.jsa",
        "-XX:ArchiveClassesAtExit=mine.jsa",
        "-javaagent:a.jar",
    ],
)
def test_who_has_an_archive_of_their_own_keeps_it(
    tmp_path: Path, java: Java, home: Path, option: str
) -> None:
    settings = {"spark.driver.extraJavaOptions": f"-Da=b {option}"}
    assert class_archive(tmp_path / "classes", java, home, settings, {}) is None
    assert class_archive(tmp_path / "classes", java, home, {}, {"JDK_JAVA_OPTIONS": option}) is None


def test_nothing_is_recorded_where_java_makes_no_archive(tmp_path: Path, java: Java, home: Path) -> None:
    folder = tmp_path / "classes"
    assert class_archive(tmp_path / "with space", java, home, {}, {}) is None
    (home / "conf").mkdir()
    assert class_archive(folder, java, home, {}, {}) is not None
    (home / "conf" / "log4j2.properties").write_text("")
    assert class_archive(folder, java, home, {}, {}) is None
    (java.path.parent.parent / "lib" / "server" / "classes.jsa").unlink()
    assert class_archive(folder, java, home, {}, {"SPARK_CONF_DIR": str(tmp_path / "none")}) is None


def test_where_nothing_can_be_written_there_is_none_and_what_is_there_is_used(
    tmp_path: Path, java: Java, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert class_archive(tmp_path / "file" / "classes", java, home, {}, {}) is None
    folder = tmp_path / "classes"
    first = class_archive(folder, java, home, {}, {})
    assert first is not None
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert class_archive(folder, java, home, {}, {}) is None
    first.file.write_bytes(MAGIC)
    finishing.finish(first.file, first.place)
    monkeypatch.setattr(os, "utime", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert class_archive(folder, java, home, {}, {}) == ClassArchive(
        first.place, finishing.read(first.place) or first.file, recorded=False
    )


def test_a_full_disk_is_not_filled_more(
    tmp_path: Path, java: Java, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 10**6))
    assert class_archive(tmp_path / "classes", java, home, {}, {}) is None


@pytest.mark.parametrize("damage", ["cut off", "one bit", "removed", "no description", "another format"])
def test_a_damaged_archive_is_removed_and_recorded_again(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "classes"
    place = recorded(folder)
    file = finishing.read(place)
    assert file is not None
    content = file.read_bytes()
    match damage:
        case "cut off":
            file.write_bytes(content[:-1])
        case "one bit":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "removed":
            file.unlink()
        case "no description":
            place.write_text("[]")
        case _:
            place.write_text(json.dumps({**json.loads(place.read_text()), "format": 0}))
    assert finishing.read(place) is None
    assert not place.exists()
    recorded(folder, b"new classes")
    assert (finishing.read(place) or file).read_bytes() == MAGIC + b"new classes"


def test_what_java_has_not_written_whole_comes_to_no_place(tmp_path: Path) -> None:
    (tmp_path / "k-1.new").write_bytes(b"\0" * 9000)
    finishing.finish(tmp_path / "k-1.new", tmp_path / "k.json")
    finishing.finish(tmp_path / "never-written.new", tmp_path / "k.json")
    assert names(tmp_path) == []


@pytest.mark.programs
@pytest.mark.parametrize("wanted", [True, False])
def test_it_comes_to_its_place_when_java_has_ended_and_something_has_run(
    tmp_path: Path, *, wanted: bool
) -> None:
    place, aside = tmp_path / "k.json", tmp_path / "k-1.new"
    aside.write_bytes(MAGIC)
    read, write = os.pipe()
    command = [sys.executable, "-I", "-S", finishing.__file__, str(read), aside, *([place] if wanted else [])]
    with subprocess.Popen(command, pass_fds=[read]) as program:
        os.close(read)
        os.write(write, b"what Java still says")
        assert program.poll() is None
        assert aside.exists()
        os.close(write)  # as Java does when it ends
        assert program.wait() == 0
    assert place.exists() is wanted
    assert not aside.exists()


def test_of_two_sessions_at_once_the_one_with_more_classes_counts(tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    place = recorded(folder, b"few", aside="k-1.new")
    recorded(folder, b"many more", aside="k-2.new")
    recorded(folder, b"some", aside="k-3.new")
    file = finishing.read(place)
    assert file is not None
    assert file.read_bytes() == MAGIC + b"many more"
    assert not list(folder.glob("*.new"))


def test_the_cache_stays_within_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for number in range(4):
        place = recorded(tmp_path, bytes([number]) * 12, key=f"k{number}", aside=f"k{number}.new")
        os.utime(place, (now - 1000 + number,) * 2)
    os.utime(tmp_path / "k1.json", (now, now))  # was used again
    monkeypatch.setattr(finishing, "LIMIT", 40)
    recorded(tmp_path, b"the newest", key="k9", aside="k9.new")
    assert [name for name in names(tmp_path) if name.endswith(".json")] == ["k1.json", "k9.json"]
    for left in tmp_path.glob("*.jsa"):
        os.utime(left, (now - 100,) * 2)
    for abandoned in ("k5-77.new", ".writing-x"):
        (tmp_path / abandoned).write_bytes(b"half")
        os.utime(tmp_path / abandoned, (now - 4000,) * 2)
    (tmp_path / "k6-78.new").write_bytes(b"is being written")
    finishing.tidy(tmp_path)
    described = {json.loads((tmp_path / f"{key}.json").read_text())["file"] for key in ("k1", "k9")}
    assert set(names(tmp_path)) == {"k1.json", "k9.json", "k6-78.new", *described}


IVY = "org.apache.ivy.Main"


class Program:
    """A small program that a real Java runs with an archive; it prints Ivy's version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.java = find_java()
        self.jar = max((spark_home() / "jars").glob("ivy-*.jar"))

    def archive(self) -> ClassArchive:
        found = class_archive(self.folder / "classes", self.java, spark_home(), {}, {})
        assert found is not None
        return found

    def run(self, archive: ClassArchive, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
        command = [self.java.path, *archive.options, *options, "-cp", self.jar, IVY, "-version"]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, **more)

    def mapped(self, archive: ClassArchive) -> bool:
        """Whether Java takes Ivy's classes from the archive; it says so when it is asked."""
        said = self.run(archive, "-Xlog:class+load").stdout
        return f"{IVY} source: shared objects file (top)" in said


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    return Program(tmp_path)


@pytest.mark.spark
def test_java_writes_and_takes_an_archive_without_a_word(program: Program) -> None:
    plain = program.archive()
    said = program.run(plain).stdout
    assert "Apache Ivy" in said
    finishing.finish(plain.file, plain.place)
    used = program.archive()
    assert not used.recorded
    assert program.mapped(used)
    done = program.run(used)
    assert (done.stdout, done.stderr) == (said, "")
    # Another class path than that of the archive, and other pointers: an archive that was made for something else.
    for options in (("-Xbootclasspath/a:/none.jar",), ("-XX:-UseCompressedOops",)):
        done = program.run(used, *options)
        assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


@pytest.mark.spark
def test_a_disk_that_is_full_in_the_middle_leaves_nothing(program: Program) -> None:
    import resource

    archive = program.archive()

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = program.run(archive, preexec_fn=small_files)
    assert "Apache Ivy" in done.stdout
    finishing.finish(archive.file, archive.place)
    assert names(archive.place.parent) == []
    again = program.archive()
    assert again.recorded
    program.run(again)
    finishing.finish(again.file, again.place)
    assert program.mapped(program.archive())
