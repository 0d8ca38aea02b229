"""What became of edits that were tried before: an experiment takes seconds, and another verdict changes nothing in it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.differential.edits.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Known:
    """Truths by edit, in a file of JSON lines if they are to last.

    Args:
        path: The file, which is made where there is none; None keeps them nowhere.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._truths: dict[str, Truth] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                values = json.loads(line)
                name = values.pop("edit")
                self._truths[name] = Truth(**values)

    def of(self, seed: str, versions: list[dict[str, Any]], find: Callable[[], Truth]) -> Truth:
        """What became of an edit: as it was found before, else by experiment.

        Args:
            seed: What its rows come from.
            versions: Version 1, and version 2.
            find: Makes the experiment.
        """
        name = hashlib.sha256(json.dumps([seed, versions], sort_keys=True).encode()).hexdigest()[:24]
        if name not in self._truths:
            self._truths[name] = found = find()
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"edit": name, **asdict(found)}) + "\n")
        return self._truths[name]
