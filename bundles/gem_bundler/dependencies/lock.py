"""The lock of a bundle's dependencies: exactly these files, and what they were resolved for.

It is kept beside the pipeline as ``<pipeline>.deps.lock``, belongs into version control, and is copied into
the bundle. It is JSON of its own and not a ``pylock.toml`` (PEP 751), for three reasons. A pylock has to give
each wheel a URL or a path; a URL names the mirror, at times with a password, that one machine fetched from,
while a hash says what is wanted and lets every machine ask the index that it is set up for. A pylock is for
an environment marker and not for a platform tag, and has no place for the version of Spark that is left out.
And a distribution that was packed from an editable installation is in it a folder, without a hash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import GemError
from gem_bundler.bundle.lock_files import write_lock
from gem_bundler.bundle.model import LockedDistribution

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Question:
    """What dependencies were resolved for; a lock is good as long as this is the same.

    Args:
        requirements: The distributions that are wanted, with exact versions, and the project's own
            requirements.
        python: The version of Python.
        platform: The platform tag.
        spark: The version of Spark of the cluster, which brings pyspark.
        packed: Of each distribution that is packed from what is installed, its name and what it requires.
    """

    requirements: tuple[str, ...]
    python: str
    platform: str
    spark: str
    packed: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def differences(self, other: Question) -> Iterator[str]:
        """What is different there, in words: this is what the lock has, the other what is wanted now."""
        for what, before, now in (
            ("Python", self.python, other.python),
            ("the platform", self.platform, other.platform),
            ("Spark", self.spark, other.spark),
        ):
            if before != now:
                yield f"{what} was {before} and is {now} now"
        for gone in sorted(set(self.requirements) - set(other.requirements)):
            yield f"`{gone}` isn't wanted any more"
        for new in sorted(set(other.requirements) - set(self.requirements)):
            yield f"`{new}` is new"
        before_packed, now_packed = dict(self.packed), dict(other.packed)
        for name in sorted(before_packed.keys() | now_packed.keys()):
            before_requires, now_requires = before_packed.get(name), now_packed.get(name)
            if before_requires is None:
                yield f"`{name}` came from an index and is installed from elsewhere now"
            elif now_requires is None:
                yield f"`{name}` was installed from elsewhere and comes from an index now"
            elif before_requires != now_requires:
                yield f"`{name}` requires other distributions now"


@dataclass(frozen=True, slots=True)
class DepsLock:
    """The dependencies of a bundle, each one file.

    Args:
        question: What they were resolved for.
        distributions: They, by name.
    """

    question: Question
    distributions: tuple[LockedDistribution, ...]

    def modules(self) -> frozenset[str]:
        """The import names that the dependencies bring."""
        return frozenset(name for found in self.distributions for name in found.modules)

    def to_bytes(self) -> bytes:
        """The lock as its file has it."""
        content = {
            "format": FORMAT,
            "python": self.question.python,
            "platform": self.question.platform,
            "spark": self.question.spark,
            "requirements": list(self.question.requirements),
            "packed": {name: list(requires) for name, requires in self.question.packed},
            "distributions": [_as_dict(found) for found in self.distributions],
        }
        return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str = "deps.lock") -> DepsLock:
        """A lock that was written before.

        Args:
            content: The bytes of the file.
            name: What to call it in a message.

        Raises:
            GemError: GB647 when it is damaged or of another format.
        """
        try:
            found = json.loads(content)
            written = found["format"]
            if written == FORMAT:
                return cls(_question(found), tuple(_distribution(each) for each in found["distributions"]))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise GemError(
                "GB647",
                f"the lock `{name}` can't be read: {type(error).__name__}: {error}",
                "Take it from version control again, or build with --update-lock to make a new one.",
            ) from None
        raise GemError(
            "GB647",
            f"the lock `{name}` has the format {written}, and this gem-bundle reads format {FORMAT}",
            "Build with the gem-bundle that wrote it, or with --update-lock to make a new one.",
        )

    @classmethod
    def read(cls, path: Path) -> DepsLock:
        """The lock in a file.

        Raises:
            GemError: GB647 when it can't be read.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise GemError(
                "GB647", f"the lock `{path.name}` can't be read: {error.strerror}", f"Look at `{path}`."
            ) from None
        return cls.from_bytes(content, path.name)

    def write(self, path: Path) -> None:
        """Write the lock.

        Raises:
            GemError: GB647 when it can't be written.
        """
        write_lock(path, self.to_bytes())


def _as_dict(found: LockedDistribution) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": found.name,
        "version": found.version,
        "file": found.file,
        "sha256": found.sha256,
        "requires": list(found.requires),
        "licence": found.licence,
        "modules": list(found.modules),
    }
    if found.packed:
        entry["packed"] = "editable" if found.editable else "installed"
    return entry


def _distribution(entry: dict[str, Any]) -> LockedDistribution:
    packed = entry.get("packed")
    return LockedDistribution(
        name=_text(entry["name"]),
        version=_text(entry["version"]),
        file=_file_name(entry["file"]),
        sha256=_text(entry["sha256"]),
        requires=_texts(entry["requires"]),
        licence=_text(entry["licence"]),
        editable=packed == "editable",
        packed=packed is not None,
        modules=_texts(entry["modules"]),
    )


def _question(content: dict[str, Any]) -> Question:
    return Question(
        _texts(content["requirements"]),
        _text(content["python"]),
        _text(content["platform"]),
        _text(content["spark"]),
        tuple((_text(name), _texts(requires)) for name, requires in sorted(content["packed"].items())),
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(_text(item) for item in value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _file_name(value: object) -> str:
    """The name of a wheel; nothing that leads to another folder."""
    name = _text(value)
    if "/" in name or "\\" in name or not name.endswith(".whl"):
        raise ValueError(f"{name!r} is not the name of a wheel")
    return name
