"""What became of edits that were tried before: an experiment takes seconds, and another verdict changes nothing in it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.logs import Offsets
from tests.differential.edits.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_TRIES = 2
_ENDED = Truth("wrong", "the process of Spark has ended: state that was taken for another kind")


class Known:
    """Truths by edit, in a file of JSON lines if they are to last.

    What Spark's whole process has ended by, twice, is wrong.

    Args:
        path: The file, which is made where there is none; None keeps them nowhere.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._truths: dict[str, Truth] = {}
        self._read: dict[str, tuple[Offsets, ...]] = {}
        self._begun: Counter[str] = Counter()
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                values = json.loads(line)
                name = values.pop("edit")
                if "begun" in values:
                    self._begun[name] += 1
                elif "read" in values:
                    self._read[name] = tuple(Offsets(n, "v2", sources=s) for n, s in values["read"])
                else:
                    self._truths[name] = Truth(**values)

    def of(self, seed: str, versions: list[dict[str, Any]], find: Callable[[], Truth]) -> Truth:
        """What became of an edit: as it was found before, else by experiment.

        Args:
            seed: What its rows come from.
            versions: Version 1, and version 2.
            find: Makes the experiment.
        """
        name = _name(seed, versions)
        if name not in self._truths:
            if self._begun[name] < _TRIES:
                self._keep({"edit": name, "begun": True})
                found = find()
            else:
                found = _ENDED
            self._truths[name] = found
            self._keep({"edit": name, **asdict(found)})
        return self._truths[name]

    def checkpoint(
        self, seed: str, version: dict[str, Any], find: Callable[[], SparkCheckpoint]
    ) -> SparkCheckpoint:
        """What version 1 has read, micro-batch by micro-batch.

        Args:
            seed: What its rows come from.
            version: Version 1.
            find: Runs it.
        """
        name = _name(seed, [version])
        if name not in self._read:
            self._read[name] = offsets = find().offsets
            self._keep({"edit": name, "read": [[o.batch, dict(o.sources)] for o in offsets]})
        return SparkCheckpoint("/drawn/checkpoint", offsets=self._read[name])

    def _keep(self, values: dict[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(values) + "\n")


def _name(seed: str, versions: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps([seed, versions]).encode()).hexdigest()[:24]
