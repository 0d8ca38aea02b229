"""Wheels as files: what one says of itself, and how to make one whose bytes are always the same."""

from __future__ import annotations

import base64
import csv
import io
from dataclasses import dataclass
from email.parser import HeaderParser
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile, ZipInfo

from packaging.utils import canonicalize_name
from packaging.version import Version

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from email.message import Message
    from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip file can hold; all its files carry it."""

SIGNATURES = ("RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True, slots=True)
class WheelFacts:
    """What a wheel says of itself.

    Args:
        name: The normalised name of its distribution (PEP 503).
        version: Its version.
        requires: Its ``Requires-Dist`` as they stand in its metadata.
        licence: What it says of its licence: an SPDX expression where it has one.
        modules: The import names that it brings.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    licence: str
    modules: tuple[str, ...]


def open_wheel(path: Path) -> ZipFile:
    """A wheel, opened for reading.

    Raises:
        GemError: GB645 when it is damaged, or when a name in it leads out of the folder it is unpacked in.
    """
    try:
        wheel = ZipFile(path)
    except (BadZipFile, OSError) as error:
        raise _damaged(path, str(error)) from None
    for name in wheel.namelist():
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
            wheel.close()
            raise _damaged(path, f"it has a file `{name}` outside of its folder")
    return wheel


def read_wheel(path: Path) -> WheelFacts:
    """What a wheel says of itself.

    Raises:
        GemError: GB645 when it is damaged.
    """
    with open_wheel(path) as wheel:
        info = dist_info(wheel, path)
        try:
            text = wheel.read(f"{info}/METADATA").decode()
        except (KeyError, ValueError, BadZipFile) as error:
            raise _damaged(path, str(error)) from None
        return facts(text, wheel.namelist())


def dist_info(wheel: ZipFile, path: Path) -> str:
    """The name of the folder ``….dist-info`` of a wheel.

    Raises:
        GemError: GB645 when it has none.
    """
    for name in wheel.namelist():
        folder, _, rest = name.partition("/")
        if rest == "METADATA" and folder.endswith(".dist-info"):
            return folder
    raise _damaged(path, "it has no metadata")


def facts(metadata: str, names: Iterable[str]) -> WheelFacts:
    """What a distribution's metadata and the names of its files say of it."""
    message = HeaderParser().parsestr(metadata)
    return WheelFacts(
        canonicalize_name(message["Name"]),
        str(Version(message["Version"])),
        tuple(str(text) for text in message.get_all("Requires-Dist", [])),
        _licence(message),
        tuple(sorted(modules(names))),
    )


def modules(names: Iterable[str]) -> set[str]:
    """The import names that the files of a wheel bring: packages, modules and native modules."""
    found = set()
    for name in names:
        parts = name.split("/")
        if parts[0].endswith(".data"):
            if len(parts) < 3 or parts[1] not in {"purelib", "platlib"}:
                continue
            parts = parts[2:]
        stem = parts[0].partition(".")[0]
        is_module = len(parts) == 1 and parts[0].endswith((".py", ".so", ".pyd"))
        is_package = len(parts) > 1 and stem == parts[0]
        if (is_module or is_package) and stem.isidentifier():
            found.add(stem)
    return found


def make_wheel(files: Mapping[str, bytes], info: str) -> bytes:
    """A wheel of some files.

    Nothing is compressed, since the bytes would depend on the zlib at hand; names are sorted, and time
    stamps and modes are always the same.

    Args:
        files: Their bytes by name; ``RECORD`` is added.
        info: The name of the folder ``….dist-info``.
    """
    record = f"{info}/RECORD"
    lines = [record_line(name, files[name]) for name in sorted(files)]
    everything = {**files, record: record_text([*lines, (record, "", "")])}
    target = io.BytesIO()
    with ZipFile(target, "w") as wheel:
        # PEP 427 recommends the metadata at the end.
        for name in sorted(everything, key=lambda name: (name.startswith(f"{info}/"), name)):
            entry = ZipInfo(name, EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, everything[name])
    return target.getvalue()


def record_text(lines: Iterable[tuple[str, str, str]]) -> bytes:
    """A ``RECORD`` file: of each file its name, its hash and its size."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def record_line(name: str, content: bytes) -> tuple[str, str, str]:
    """A file's line in a ``RECORD``."""
    digest = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", str(len(content))


def _licence(message: Message) -> str:
    """The SPDX expression, else the short name, else the classifiers."""
    expression = message["License-Expression"]
    if expression:
        return str(expression).strip()
    short = str(message["License"] or "").strip()
    if short and "\n" not in short and len(short) <= 100:
        return short
    classifiers = (str(text) for text in message.get_all("Classifier", []))
    names = (text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: "))
    return " OR ".join(dict.fromkeys(names))


def _damaged(path: Path, why: str) -> GemError:
    return GemError(
        "GB645",
        f"the wheel `{path.name}` is damaged: {why}",
        f"Remove `{path}`, so that it is fetched again.",
    )
