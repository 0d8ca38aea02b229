"""What a `run --fresh` that was killed has yet to do, by its journal beside the checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from gem_bundle.changes.history import record_of
from gem_bundle.changes.record import Record
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import describe_error
from gem_bundle.types import local_path


class JournalError(Exception):
    """The journal can't be read."""


class Begun(NamedTuple):
    """A checkpoint with new state that is to take the place of the old one; the next run sees to it.

    Args:
        location: Where it lies: beside the old one, or in its place already.
        kept: Where the old one is kept.
        record: What is going to run on it.
    """

    location: Path
    kept: Path
    record: Record


class GoesOn(NamedTuple):
    """Where the next run of a target goes on.

    Args:
        own: The target's own checkpoint location.
        begun: What is to take the place of the checkpoint there, if something is.
    """

    own: str
    begun: Begun | None = None

    @property
    def location(self) -> str:
        """Where the checkpoint lies that the next run continues from."""
        return self.own if self.begun is None else str(self.begun.location)

    def record(self, target: str, beside: str) -> tuple[Record | None, list[Diagnostic]]:
        """The record of what ran there, or is going to, or why it can't be read.

        Args:
            target: The id of the target.
            beside: Beside what it is: `Definition.record`.
        """
        return record_of(target, beside) if self.begun is None else (self.begun.record, [])


def journal_of(folder: Path) -> Path:
    """The journal beside a checkpoint."""
    return folder.with_name(f".{folder.name}.fresh.json")


def staging_of(folder: Path) -> Path:
    """Where the checkpoint is made that is to take the place of one."""
    return folder.with_name(f".{folder.name}.fresh")


def begun_anew(location: str) -> Begun | None:
    """What is to take the place of a checkpoint; None where nothing is.

    Args:
        location: The checkpoint's location.

    Raises:
        JournalError: When there is a journal that can't be read.
    """
    path = local_path(location)
    if path is None:
        return None
    folder = Path(path)
    journal = journal_of(folder)
    try:
        content = json.loads(journal.read_text(encoding="utf-8"))
        kept, record = folder.with_name(content["kept"]), Record.from_json(content["record"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as error:
        raise JournalError(
            f"{journal}, by which one that was begun is ended, can't be read ({describe_error(error)})"
        ) from error
    staging = staging_of(folder)
    return Begun(staging if staging.is_dir() else folder, kept, record)


def goes_on(location: str) -> GoesOn:
    """Where the next run goes on that has a checkpoint location.

    Args:
        location: The checkpoint location.

    Raises:
        JournalError: When something was begun there whose journal can't be read.
    """
    return GoesOn(location, begun_anew(location))


def damaged_journal(target: str, location: str, error: JournalError) -> Diagnostic:
    """What is said of a journal that can't be read.

    Args:
        target: The id of the target.
        location: The checkpoint's location.
        error: Why it can't.
    """
    message = f"target `{target}` can't begin with new state where it ended: {error}"
    name = Path(location).name
    hint = f"See to it that `{name}` beside it is the checkpoint that is meant, and remove the file."
    return Diagnostic("GB407", "error", message, target, hint=hint)
