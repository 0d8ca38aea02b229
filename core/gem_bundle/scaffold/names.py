"""What a name on the command line stands for: the names of a project, and those of a gem."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from gem_bundle.semantics import Kind

LONGEST = 32
"""The characters of the longest name: lines of Python that have it several times stay readable."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_PREFIX = re.compile(r"gem[-_](?=.)")
_YAML_WORDS = frozenset({"false", "null", "true"})


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """The names of a project.

    Args:
        name: Its own and its folder's.
        pipeline: That of its pipeline, and of the pipeline's files.
    """

    name: str
    pipeline: str

    @property
    def folder(self) -> str:
        """The folder that is written."""
        return self.name


@dataclass(frozen=True, slots=True)
class GemNames:
    """The names of a gem that is a distribution of its own.

    Args:
        kind: Its kind.
        name: Its own, by which pipelines call it.
    """

    kind: Kind
    name: str

    @property
    def package(self) -> str:
        """The Python package."""
        return f"gem_{self.name}"

    @property
    def distribution(self) -> str:
        """The distribution, as `pip` calls it."""
        return f"gem-{self.name.replace('_', '-')}"

    @property
    def folder(self) -> str:
        """The folder that is written."""
        return self.distribution

    @property
    def stem(self) -> str:
        """What the names of its classes begin with: ``AcmeQueue``, to which ``Source`` is added."""
        words = self.name.split("_")
        if len(words) > 1 and words[-1] == self.kind:
            words.pop()
        return "".join(word.capitalize() for word in words)


def project_names(text: str) -> ProjectNames:
    """The names of the project that a user calls so.

    Raises:
        GemError: GB801 when it is no name; the hint has one that is.
    """
    problem = _problem(text)
    if problem:
        raise _bad(text, "project", problem, _nearest(text, "orders"))
    return ProjectNames(text, text.replace("-", "_"))


def gem_names(text: str, kind: Kind) -> GemNames:
    """The names of the gem that a user calls so: by its own name, or by its distribution's or package's.

    ``acme_queue``, ``acme-queue``, ``gem-acme-queue`` and ``gem_acme_queue`` are one.

    Raises:
        GemError: GB801 when it is no name; the hint has one that is.
    """
    name = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    problem = _problem(name)
    if problem:
        raise _bad(text, "gem", problem, _nearest(name, f"acme_{kind}").replace("-", "_"))
    return GemNames(kind, name.replace("-", "_"))


def _problem(name: str) -> str:
    """What keeps a text from being a name, as the rest of a sentence; empty when nothing does."""
    if not name:
        return "it is empty"
    if len(name) > LONGEST:
        return f"it has {len(name)} characters, and {LONGEST} are the most"
    if name in _YAML_WORDS:
        return f"in a pipeline file `{name}` is no text"
    if _NAME.fullmatch(name):
        return ""
    if not re.fullmatch(r"[a-z0-9_-]+", name):
        return "names are made of lower-case letters (a to z), digits and underscores or hyphens"
    if not name[0].isalpha():
        return "names begin with a letter"
    return "underscores and hyphens stand one at a time between letters and digits"


def _nearest(name: str, otherwise: str) -> str:
    """The name that comes nearest to a text that is none."""
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    separator = "-" if "-" in plain and "_" not in plain else "_"
    # What has a path before it, or an ending behind it, is meant without them.
    plain = plain.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    words = re.findall(r"[a-z0-9]+", plain)
    number = ""
    while words and words[0].isdigit():
        number = f"{number}{words.pop(0)}"
    if words and words[0][0].isdigit():
        digits = re.match(r"[0-9]+", words[0])
        assert digits is not None
        words[0] = words[0].removeprefix(digits[0])
        number = f"{number}{digits[0]}"
    if words and number:
        words.append(number)
    found = separator.join(words)[:LONGEST].strip("-_")
    if found in _YAML_WORDS:
        found = f"is{separator}{found}"
    return found or otherwise


def _bad(text: str, what: str, problem: str, better: str) -> GemError:
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    message = f"`{shown}` can't be the name of a {what}: {problem}"
    return GemError("GB801", message, f"`{better}` is a name that can be used.")
