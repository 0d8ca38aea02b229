"""An archive of Spark's classes, with which a Spark that is started here starts sooner.

Java reads, checks and links thousands of classes until a first micro-batch has run. What it makes of them
it can write to a file, and map into memory the next time: class data sharing with an archive of an
application's classes (JEP 310). There is one for each Java, Spark and set of jars. The first session that
finds none has Java note the names of the classes that it loads, which costs it next to nothing; once this
process has ended, `class_archive_finish` has another Java make an archive of them.

A Java that records an archive itself (JEP 350) checks every class once more while it runs, and is half as
slow again.

An archive that is missing, cut off, of another Java or can't be written never shows: a start is then as slow
as it is without.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.run import class_archive_finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gem_bundle.run.java import Java

# Where Java's archive of its own classes lies, on which this one stands; other makes of Java have none.
_BASE = ("lib/server/classes.jsa", "lib/server/libjvm.so", "lib/server/libjvm.dylib")
# Java says aloud what it can't share. Options that come later, those of a pipeline, say otherwise.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
# Who gives one of these has an archive of their own, or wants none; with an agent Java makes none.
_OTHERS = (
    "-Xshare",
    "-XX:SharedArchiveFile",
    "-XX:ArchiveClassesAtExit",
    "-XX:+AutoCreateSharedArchive",
    "-XX:AOT",
    "-javaagent",
    "-agentlib",
    "-agentpath",
)
_ROOM = 1 << 30
# How much Java notes before it begins anew: five times what a run needs until it has seen everything once.
_NOTES = 32 << 20
# Spark's own default.
_MEMORY = "1g"
# Linux takes no longer argument of a program (MAX_ARG_STRLEN).
_ARGUMENT = 1 << 17
# Where this process's Java notes classes.
_noted: set[Path] = set()
# From this size of the heap on, pointers are wider, and so are classes.
_WIDE_HEAP = 32 << 30
_UNITS = {"": 1 << 20, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(slots=True)
class ClassArchive:
    """What a session's Java is told about its archive.

    Args:
        place: The archive's description in the cache.
        file: The archive; where there is none yet, the file in which Java notes its classes.
        recorded: Whether classes are noted, and no archive used.
        wanted: Whether an archive is made of them: a session in which nothing has run knows few classes.
    """

    place: Path
    file: Path
    recorded: bool
    wanted: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """Options for Java."""
        if not self.recorded:
            return (f"-XX:SharedArchiveFile={self.file}", *_QUIET)
        return (f"-Xlog:class+load=debug:file={self.file}:none:filecount=1,filesize={_NOTES}",)

    def forget(self) -> None:
        """Remove it: a Java doesn't start with it."""
        for file in (self.place, self.file):
            with suppress(OSError):
                file.unlink()

    def finish(self, java: Java, settings: Mapping[str, str], class_path: str) -> bool:
        """See to it that an archive is made of the noted classes once this process has ended.

        Args:
            java: The Java that notes them.
            settings: What its session was started with.
            class_path: Its class path.

        Returns:
            False where nothing is noted for this session: the second one of a process has the first one's
            Java, which notes what it was told to when it was started.
        """
        if self.file in _noted or not self.file.exists() or len(class_path) > _ARGUMENT:
            return False
        _noted.add(self.file)
        options = [f"-Xmx{_size(settings.get('spark.driver.memory', _MEMORY))}", *_java_options(settings, {})]

        def leave() -> None:
            with suppress(OSError):
                subprocess.Popen(
                    [
                        *(sys.executable, "-I", "-S", class_archive_finish.__file__),
                        *(str(self.file), str(self.place) if self.wanted else ""),
                        *(str(java.path), *options, "-cp", class_path),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )

        atexit.register(leave)
        return True


def class_archive(
    folder: Path,
    java: Java,
    home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    records: bool = True,
) -> ClassArchive | None:
    """The archive that suits a session, or where to record it; None where neither can be.

    Args:
        folder: Where archives are kept.
        java: The Java that will run.
        home: The Spark that will run.
        settings: What the session is started with.
        environment: The environment variables that it is started with.
        records: Whether one is recorded where there is none.
    """
    # An option is split at such characters, and by more than one program. From a zip nothing can be started.
    if re.search(r"[\s'\"\\:,]", str(folder)) or not Path(class_archive_finish.__file__).is_file():
        return None
    try:
        key = _key(java, home, settings, environment)
        if key is None:
            return None
        place = folder / f"{key}.json"
        known = class_archive_finish.read(place)
        with suppress(OSError):
            class_archive_finish.tidy(folder, place)
        if known is not None:
            with suppress(OSError):
                os.utime(place)  # what wasn't used for long is removed first
            return ClassArchive(place, known, recorded=False)
        if not records:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).free < _ROOM:
            return None
    except (OSError, ValueError):
        return None
    aside = folder / f"{key}-{os.getpid()}{class_archive_finish.ASIDE}"
    return ClassArchive(place, aside, recorded=True)


def _key(java: Java, home: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """What an archive is valid for; None where Java can't make one.

    An archive is tied to the Java that made it, to the class path, each file of it unchanged, and to options
    that decide how classes lie in memory.
    """
    java_home = java.path.resolve().parent.parent
    base = [java_home / name for name in _BASE if (java_home / name).is_file()]
    class_path = list(_class_path(home, settings, environment))
    options = list(_java_options(settings, environment))
    if (
        len(base) < 2
        or any(option.startswith(_OTHERS) for option in options)
        # Java makes none for a class path with folders in it, unless they are empty.
        or any(path.is_dir() and any(path.iterdir()) for path in class_path)
    ):
        return None
    jars = sorted((home / "jars").glob("*.jar"))
    asked = {
        "java": [_stamp(file) for file in base],
        "spark": [_stamp(file) for file in jars],
        "class_path": [_stamp(path) if path.is_file() else str(path) for path in class_path],
        "jars": sorted(jar for jar in settings.get("spark.jars", "").split(",") if jar),
        "options": options,
        "wide": _size(settings.get("spark.driver.memory", _MEMORY)) >= _WIDE_HEAP,
    }
    return sha256(json.dumps(asked).encode()).hexdigest()[:32]


def _class_path(home: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[Path]:
    """What Spark puts on Java's class path beside its own jars."""
    yield Path(environment.get("SPARK_CONF_DIR") or home / "conf")
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH"):
        yield from _paths(environment.get(name, ""))
    yield from _paths(settings.get("spark.driver.extraClassPath", ""))


def _paths(text: str) -> Iterable[Path]:
    return (Path(item) for item in text.split(os.pathsep) if item)


def _java_options(settings: Mapping[str, str], environment: Mapping[str, str]) -> Iterator[str]:
    """Options of Java that somebody gives; system properties change no class."""
    given = [settings.get("spark.driver.extraJavaOptions", "")]
    given += [
        environment.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    ]
    for text in given:
        yield from (option for option in shlex.split(text) if not option.startswith("-D"))


def _stamp(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _size(text: str) -> int:
    """A size of Spark's, such as ``4g``, in bytes; without a unit it is in MiB."""
    match = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    return int(match[1]) * _UNITS[match[2]] if match else 0
