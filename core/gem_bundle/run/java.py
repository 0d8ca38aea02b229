"""Which Java starts Spark and resolves jars, and what to say when there is none."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OLDEST = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark.

    Args:
        path: The `java` program.
        version: What it says it is, for example ``17.0.15``.
    """

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 of ``17.0.15``, 8 of ``1.8.0_292``."""
        return major_version(self.version)


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to use: that of ``JAVA_HOME``, else the first `java` on the search path.

    Args:
        environment: Where both are looked up; by default the process's own.

    Raises:
        GemError: GB501 when there is none, or none of at least version 17, which Spark 4 needs.
    """
    if environment is None:
        environment = os.environ
    looked_at: list[str] = []
    for label, path in _candidates(environment):
        if path is None or not path.is_file():
            looked_at.append(f"{label}: no `{path or 'java'}`")
            continue
        version = _release(path) or _ask(path)
        if version is None:
            looked_at.append(f"{label}: `{path}` doesn't start")
        elif major_version(version) < OLDEST:
            looked_at.append(f"{label}: `{path}` is Java {version}")
        else:
            return Java(path, version)
    if not environment.get("JAVA_HOME"):
        looked_at.insert(0, "JAVA_HOME is not set")
    raise GemError(
        "GB501",
        f"Spark needs Java {OLDEST} or newer, and there is none ({'; '.join(looked_at)})",
        f"Install it (Debian and Ubuntu: `apt-get install openjdk-{OLDEST}-jre-headless`, Fedora: "
        f"`dnf install java-{OLDEST}-openjdk-headless`, macOS: `brew install openjdk@{OLDEST}`) "
        "or set JAVA_HOME to where it is.",
    )


def major_version(version: str) -> int:
    """The feature release in a version text; 0 when it has none."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else 0


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    import shutil

    home = environment.get("JAVA_HOME")
    if home:
        yield f"JAVA_HOME={home}", Path(home, "bin", "java.exe" if os.name == "nt" else "java")
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    yield "PATH", Path(on_path) if on_path else None


def _release(java: Path) -> str | None:
    """The version in the `release` file beside `bin`: reading it saves starting a JVM."""
    try:
        text = (java.resolve().parent.parent / "release").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else None


def _ask(java: Path) -> str | None:
    import subprocess

    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', said.stderr + said.stdout)
    return match.group(1) if match else None
