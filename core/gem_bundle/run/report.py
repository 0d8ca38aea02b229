"""The summary of a run: the numbers on the terminal and in ``--report FILE.json``."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.run.held import HeldRows
from gem_bundle.run.moments import now_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.run.progress import Totals

Status = Literal["finished", "stopped", "failed"]
_WRITABLE = "Name a file in a folder that exists and that you may write to."


@dataclass
class Report:
    """What a run did.

    Args:
        pipeline: The pipeline's name.
        version: The pipeline's version.
        status: ``finished`` when all queries ended by themselves, ``stopped`` when they were asked to,
            ``failed`` when one of them failed.
        started: When the queries started, ISO 8601 in UTC.
        ended: When the last one ended.
        seconds: How long the queries ran.
        targets: The numbers of each target.
        diagnostics: Why it failed.
        untaken: The nodes that reject rows which nobody takes.
    """

    pipeline: str
    version: str
    status: Status = "finished"
    started: str = ""
    ended: str = ""
    seconds: float = 0.0
    targets: dict[str, Totals] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    untaken: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether no query failed."""
        return self.status != "failed"

    @property
    def rows_in(self) -> int:
        """Rows read by all queries."""
        return sum(totals.rows_in for totals in self._queries())

    @property
    def rows_out(self) -> int | None:
        """Rows written by all targets' queries, or None where some can't be counted."""
        counts = [totals.rows_out for totals in self.targets.values()]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def micro_batches(self) -> int:
        """The micro-batches of all queries."""
        return sum(totals.micro_batches for totals in self._queries())

    @property
    def late_rows(self) -> int:
        """Rows that all queries dropped because they were late."""
        return sum(totals.late_rows for totals in self._queries())

    @property
    def held(self) -> HeldRows:
        """What transforms rejected, dropped and counted; what several queries held is counted once."""
        found = HeldRows()
        for totals in self.targets.values():
            found.merge(totals.held)
        return found

    def _queries(self) -> Iterator[Totals]:
        """The numbers of one target of each query."""
        groups: set[str] = set()
        for totals in self.targets.values():
            if totals.group not in groups:
                yield totals
            if totals.group:
                groups.add(totals.group)

    def start(self) -> None:
        """Note when the queries started."""
        self.started = now_text()

    def end(self, status: Status, seconds: float) -> None:
        """Note how and when it ended."""
        self.status = status
        self.ended = now_text()
        self.seconds = round(seconds, 3)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON takes it."""
        return {
            "pipeline": self.pipeline,
            "version": self.version,
            "status": self.status,
            "started": self.started,
            "ended": self.ended,
            "seconds": self.seconds,
            "totals": {
                "micro_batches": self.micro_batches,
                "rows_in": self.rows_in,
                "rows_out": self.rows_out,
                "late_rows": self.late_rows,
                "rejected_rows": sum(self.held.rejected.values()),
            },
            "rejected": self.held.rejected,
            "broken": self.held.broken,
            "targets": {name: totals.as_dict() for name, totals in self.targets.items()},
            "diagnostics": [diagnostic.as_dict() for diagnostic in self.diagnostics],
        }

    def write(self, path: Path) -> None:
        """Write it as JSON; a reader sees the old file or the new one, never half of it.

        Raises:
            GemError: GB511 when the file can't be written.
        """
        write_json(path, self.as_dict())


def check_report_place(path: Path | None) -> None:
    """See to it that a report can be written later.

    Raises:
        PipelineError: GB511 when its folder doesn't exist.
    """
    if path is not None and not path.absolute().parent.is_dir():
        message = f"the report can't be written to {path}: its folder doesn't exist"
        raise PipelineError([Diagnostic("GB511", "error", message, hint=_WRITABLE)])


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a report as JSON; a reader sees the old file or the new one, never half of it.

    Raises:
        GemError: GB511 when the file can't be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise GemError("GB511", f"the report can't be written to {path}: {reason}", _WRITABLE) from error
