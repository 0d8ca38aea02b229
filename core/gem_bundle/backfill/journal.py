"""What a backfill has done, kept beside the checkpoint: one that was stopped goes on where it was."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gem_bundle.files import open_folder, split

if TYPE_CHECKING:
    from gem_bundle.backfill.interval import Interval

FORMAT = 1


def journal_file(location: str) -> tuple[str, str]:
    """The folder and the name of the file that tells what was done for a target.

    Args:
        location: The location of its checkpoint.
    """
    folder, name = split(location)
    return folder, f".{name}.backfill.json"


@dataclass
class Journal:
    """Which intervals one backfill has done.

    Args:
        location: The location of the target's checkpoint.
        what: What is done: another pipeline, another span of time or another place is another backfill.
        done: The intervals that are done, as texts.
    """

    location: str
    what: dict[str, Any]
    done: list[str] = field(default_factory=list)

    def load(self) -> None:
        """Take up what an earlier run of the same backfill has done, unless it came to its end."""
        folder, name = journal_file(self.location)
        try:
            content = json.loads(open_folder(folder).read(name))
            same = content["format"] == FORMAT and content["what"] == self.what and not content["finished"]
            self.done = [str(text) for text in content["done"]] if same else []
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, RecursionError):
            self.done = []  # then all of it is done once more, which changes nothing

    def has(self, interval: Interval) -> bool:
        """Whether an interval is done."""
        return str(interval) in self.done

    def add(self, interval: Interval) -> None:
        """Write down that an interval is done."""
        self.done.append(str(interval))
        self._write(finished=False)

    def finish(self) -> None:
        """Write down that all are done: then the same command begins anew."""
        self._write(finished=True)

    def _write(self, *, finished: bool) -> None:
        folder, name = journal_file(self.location)
        content = {"format": FORMAT, "what": self.what, "done": self.done, "finished": finished}
        open_folder(folder).write(name, json.dumps(content).encode())
