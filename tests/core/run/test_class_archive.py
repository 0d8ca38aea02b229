"""Archives of classes: which one a session gets, what becomes of what is recorded, and what damage does."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from gem_bundle.run import class_archive_finish as finishing
from gem_bundle.run.class_archive import ClassArchive, class_archive
from gem_bundle.run.jars import spark_home
from gem_bundle.run.java import find_java

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gem_bundle.run.java import Java

# No process has such a number.
GONE = (1 << 31) - 1
MAGIC = (0xF00BABA2).to_bytes(4, sys.byteorder)


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
    assert first.options[0].startswith(f"-Xlog:class+load=debug:file={first.file}:")
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


NOTED = b"""\
java.lang.Object source: shared objects file
 klass: 0x00007f1e00000d68 super: 0x0000000000000000 loader: [loader data: 0x00007f1e0000abf0 of 'bootstrap']
java.lang.Comparable source: jrt:/java.base
 klass: 0x00007f1e00000e68 super: 0x00007f1e00000d68 loader: [loader data: 0x00007f1e0000abf0 of 'bootstrap']
java.lang.Object source: shared objects file
 klass: 0x00007f1e00000d68 super: 0x0000000000000000 loader: [loader data: 0x00007f1e0000abf0 of 'bootstrap']
a.Made$$Lambda/0x00000008010 source: a.Made
 klass: 0x00007f1e00000f68 super: 0x00007f1e00000d68 loader: [loader data: 0x00007f1e0000abf0 of 'app']
com.sun.proxy.$Proxy1 source: __dynamic_proxy__
 klass: 0x00007f1e00000f78 super: 0x00007f1e00000d68 loader: [loader data: 0x00007f1e0000abf0 of 'app']
org.Spark source: file:/spark/core.jar
 klass: 0x00007f1e00001068 super: 0x00007f1e00000d68 interfaces: 0x00007f1e00000e68 loader: [loader data: \
0x00007f1e0000f50 for instance a 'jdk/internal/loader/ClassLoaders$AppClassLoader'{0x00000000d7939560}] bytes: 9
org.Delta source: file:/cache/delta%20core.jar
 klass: 0x00007f1e00001168 super: 0x00007f1e00001068 interfaces: 0x00007f1e00000e68 loader: [loader data: \
0x00007f1e0000f90 for instance a 'org/apache/spark/util/MutableURLClassLoader'{0x00000000d7939590}] bytes: 9
org.Deltas source: file:/cache/delta%20core.jar
 klass: 0x00007f1e00001268 super: 0x00007f1e00001168 loader: [loader data: \
0x00007f1e0000f90 for instance a 'org/apache/spark/util/MutableURLClassLoader'{0x00000000d7939590}] bytes: 9
org.OfProxy source: file:/cache/delta%20core.jar
 klass: 0x00007f1e00001368 super: 0x00007f1e00000f78 loader: [loader data: \
0x00007f1e0000f90 for instance a 'org/apache/spark/util/MutableURLClassLoader'{0x00000000d7939590}] bytes: 9
org.InAFolder source: file:/cache/classes/
 klass: 0x00007f1e00001468 super: 0x00007f1e00000d68 loader: [loader data: \
0x00007f1e0000f90 for instance a 'org/apache/spark/util/MutableURLClassLoader'{0x00000000d7939590}] bytes: 9
org.CutOff source: file:/spark/core.jar
 klass: 0x00007f1e00001568 sup"""

LISTED = [
    b"java/lang/Object id: 0",
    b"java/lang/Comparable id: 1",
    b"org/Spark id: 2",
    b"org/Delta id: 3 super: 2 interfaces: 1 source: /cache/delta core.jar",
    b"org/Deltas id: 4 super: 3 source: /cache/delta core.jar",
]


@pytest.mark.parametrize("moved", [False, True])
def test_of_noted_classes_those_are_listed_that_are_there_before_a_program_runs(
    tmp_path: Path, *, moved: bool
) -> None:
    noted = tmp_path / "k-1.new"
    # Java moves aside what it has noted when that gets long.
    half = NOTED.index(b"org.Spark") if moved else 0
    if moved:
        finishing.rotated(noted).write_bytes(NOTED[:half])
    noted.write_bytes(NOTED[half:])
    assert list(finishing.classes_of(noted)) == LISTED


@pytest.mark.programs
@pytest.mark.parametrize("wanted", [True, False])
def test_an_archive_is_made_of_what_is_noted_if_something_has_run(tmp_path: Path, *, wanted: bool) -> None:
    place, noted, java = tmp_path / "k.json", tmp_path / "k-1.new", tmp_path / "java"
    noted.write_bytes(NOTED)
    # In place of Java: it gets a list and writes an archive; for one with jars that have changed it ends.
    java.write_text(
        f"""#!{sys.executable}
import sys
given = dict(option.split("=") for option in sys.argv[1:] if "=" in option)
listed = open(given["-XX:SharedClassListFile"], "rb").read()
if b"source:" in listed or sys.argv[-2:] != ["-cp", "jars"]:
    sys.exit(1)
open(given["-XX:SharedArchiveFile"], "wb").write({MAGIC!r} + listed)
"""
    )
    java.chmod(0o755)
    subprocess.run(
        [
            *(sys.executable, "-I", "-S", finishing.__file__, str(noted), str(place) if wanted else ""),
            *(str(java), "-cp", "jars"),
        ],
        check=True,
    )
    java.unlink()
    if wanted:
        file = finishing.read(place)
        assert file is not None
        assert file.read_bytes() == MAGIC + b"\n".join([*LISTED[:3], b""])
    else:
        assert names(tmp_path) == []


@pytest.mark.parametrize("another", [True, False])
def test_one_archive_is_made_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, another: bool
) -> None:
    noted, place = tmp_path / "k-1.new", tmp_path / "k.json"
    noted.write_bytes(NOTED)

    def dump(_: Path, aside: Path, java: Sequence[str]) -> int:
        aside.write_bytes(MAGIC + java[0].encode())
        return 0

    monkeypatch.setattr(finishing, "_dump", dump)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        if another:
            fcntl.flock(handle, fcntl.LOCK_EX)
        finishing.make(noted, place, ["java"])
    finally:
        os.close(handle)
    file = finishing.read(place)
    assert (file is None) is another
    assert names(tmp_path) == ([] if file is None else sorted([file.name, place.name]))


FINISHED = """
import atexit, os, sys
from pathlib import Path
from gem_bundle.run.class_archive import ClassArchive
from gem_bundle.run.java import Java

atexit.register(lambda: os.wait())  # comes after what is registered later
sys.addaudithook(lambda event, _: event == "subprocess.Popen" and print("something is started", flush=True))
archive = ClassArchive(Path("k.json").absolute(), Path("k-1.new").absolute(), recorded=True)
java = Java(Path("java").absolute(), "17")
print([archive.finish(java, {}, "jars") for _ in range(2)])
archive.wanted = bool(int(sys.argv[1]))
print("work is done", flush=True)
"""


@pytest.mark.programs
@pytest.mark.parametrize("wanted", [True, False])
def test_an_archive_is_made_after_work_is_done_by_a_session_of_its_own(
    tmp_path: Path, *, wanted: bool
) -> None:
    (tmp_path / "k-1.new").write_bytes(NOTED)
    (tmp_path / "java").write_text(
        f"""#!{sys.executable}
import os, sys
given = dict(option.split("=") for option in sys.argv[1:] if "=" in option)
open(given["-XX:SharedArchiveFile"], "wb").write({MAGIC!r} + b"%d" % os.getsid(0))
"""
    )
    (tmp_path / "java").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", FINISHED, str(int(wanted))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[True, False]", "work is done", "something is started"]
    file = finishing.read(tmp_path / "k.json")
    assert (file is not None) is wanted
    assert not list(tmp_path.glob("*.new"))
    if file is not None:
        # What ends a program with all of its session, such as a closed terminal, leaves this alone.
        assert int(file.read_bytes().removeprefix(MAGIC)) != os.getsid(0)


def test_the_cache_stays_within_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for number in range(4):
        place = recorded(tmp_path, bytes([number]) * 12, key=f"k{number}", aside=f"k{number}.new")
        os.utime(place, (now - 1000 + number,) * 2)
    os.utime(tmp_path / "k1.json", (now, now))  # was used again
    monkeypatch.setattr(finishing, "LIMIT", 40)
    recorded(tmp_path, b"the newest", key="k9", aside="k9.new")
    finishing.tidy(tmp_path, tmp_path / "k9.json")
    assert [name for name in names(tmp_path) if name.endswith(".json")] == ["k1.json", "k9.json"]
    for left in tmp_path.glob("*.jsa"):
        os.utime(left, (now - 100,) * 2)
    for abandoned in (f"k5-{GONE}.new", f"k5-{GONE}.new.0", f"k6-{os.getpid()}.new", ".writing-x"):
        (tmp_path / abandoned).write_bytes(b"half")
        os.utime(tmp_path / abandoned, (now - 4000,) * 2)
    (tmp_path / f"k7-{GONE}.new").write_bytes(b"new")
    finishing.tidy(tmp_path)
    described = {json.loads((tmp_path / f"{key}.json").read_text())["file"] for key in ("k1", "k9")}
    # A stream that goes on for days loads no class for hours.
    noted = {f"k6-{os.getpid()}.new", f"k7-{GONE}.new"}
    assert set(names(tmp_path)) == {"k1.json", "k9.json", *noted, *described}


def test_what_is_being_written_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(finishing, "LIMIT", 100)
    for number in range(9):
        (tmp_path / f"k-{number}.new").write_bytes(b"noted 10 b")
        os.utime(tmp_path / f"k-{number}.new", (now - 9 + number,) * 2)
    for number in range(3):
        place = recorded(tmp_path, bytes([number]) * 26, key=f"k{number}", aside="a.new")
        os.utime(place, (now - 1000 + number,) * 2)
    finishing.tidy(tmp_path)
    kept = [name for name in names(tmp_path) if not name.endswith(".jsa")]
    assert kept == ["k-7.new", "k-8.new", "k1.json", "k2.json"]


@pytest.mark.parametrize("records", [True, False])
def test_a_session_that_has_an_archive_removes_what_killed_ones_left(
    tmp_path: Path, java: Java, home: Path, *, records: bool
) -> None:
    folder = tmp_path / "classes"
    first = class_archive(folder, java, home, {}, {})
    assert first is not None
    recorded(folder, key=first.place.stem, aside=first.file.name)
    left = folder / f"other-{GONE}.new"
    left.write_bytes(NOTED)
    os.utime(left, (time.time() - 4000,) * 2)
    whole = names(folder)
    found = class_archive(folder, java, home, {}, {}, records=records)
    assert found is not None
    assert not found.recorded
    assert names(folder) == sorted({*whole} - {left.name})


def test_what_killed_sessions_left_is_removed_before_a_disk_is_taken_for_full(
    tmp_path: Path, java: Java, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / f"k-{GONE}.new"
    left.write_bytes(NOTED)
    os.utime(left, (time.time() - 4000,) * 2)

    def free(_: Path) -> shutil._ntuple_diskusage:
        return shutil._ntuple_diskusage(1 << 40, 0, 0 if left.exists() else 1 << 40)

    monkeypatch.setattr(shutil, "disk_usage", free)
    assert class_archive(tmp_path, java, home, {}, {}) is not None


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

    def run(self, archive: ClassArchive, *options: str) -> subprocess.CompletedProcess[str]:
        command = [self.java.path, *archive.options, *options, "-cp", self.jar, IVY, "-version"]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)

    def make(self, archive: ClassArchive) -> None:
        finishing.make(archive.file, archive.place, [str(self.java.path), "-cp", str(self.jar)])

    def mapped(self, archive: ClassArchive) -> bool:
        """Whether Java takes Ivy's classes from the archive; it says so when it is asked."""
        said = self.run(archive, "-Xlog:class+load").stdout
        return f"{IVY} source: shared objects file" in said


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
    program.make(plain)
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
    said = program.run(archive).stdout
    assert "Apache Ivy" in said
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        program.make(archive)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(archive.place.parent) == []
    again = program.archive()
    assert again.recorded
    program.run(again)
    program.make(again)
    assert program.mapped(program.archive())
