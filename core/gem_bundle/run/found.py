"""The runs of a pipeline, found by their records, and told in the words of a run's summary."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import GemError, describe_error
from gem_bundle.files import advice, below, open_folder
from gem_bundle.run.held import HeldRows
from gem_bundle.run.lock import lock_file
from gem_bundle.run.progress import MicroBatch, Totals
from gem_bundle.run.report import Report
from gem_bundle.run.view import event_words, summary, target_lines
from gem_bundle.runs.life import Verdict, judge
from gem_bundle.runs.record import FOLDER, read_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.files import Folder
    from gem_bundle.runs.record import RunRecord


@dataclass(frozen=True)
class FoundRun:
    """A run, and how it is.

    Args:
        record: What it says of itself.
        verdict: What that is worth.
    """

    record: RunRecord
    verdict: Verdict

    @property
    def is_healthy(self) -> bool:
        """Whether it goes on and no query of it has failed."""
        return self.verdict.is_healthy(self.record)

    def as_dict(self) -> dict[str, Any]:
        """The record with the verdict, as JSON takes it."""
        return {**self.record.as_dict(), "healthy": self.is_healthy, **self.verdict.as_dict()}


def seen_folder(place: str) -> Folder:
    """The folder with the records of a pipeline's runs.

    Raises:
        GemError: GB406 when nothing here can read that kind of place.
    """
    try:
        return open_folder(place)
    except Exception as error:
        raise _unseen(place, error) from error


def runs_in(place: str) -> list[FoundRun]:
    """The runs whose records lie in a folder, the newest first.

    Raises:
        GemError: GB406 when it can't be seen.
    """
    folder = seen_folder(place)
    try:
        records = read_runs(folder)
    except Exception as error:
        raise _unseen(place, error) from error
    return [FoundRun(record, judge(record, _locks(record))) for record in records]


def _locks(record: RunRecord) -> Iterator[Any]:
    for target in record.targets.values():
        path = lock_file(target.checkpoint) if target.checkpoint else None
        if path is not None:
            yield path


def places_below(root: str) -> list[str]:
    """Where records of runs lie below a folder with checkpoints, of one pipeline or of several.

    Raises:
        GemError: GB406 when it can't be seen.
    """
    try:
        names = open_folder(root).names()
        if FOLDER in names:
            return [below(root, FOLDER)]
        places = [below(root, name) for name in sorted(names) if not name.startswith(".")]
        return [below(place, FOLDER) for place in places if FOLDER in open_folder(place).names()]
    except Exception as error:
        raise _unseen(root, error) from error


def of_interest(found: Sequence[FoundRun]) -> list[FoundRun]:
    """The runs that are alive, or may be; where there are none the last one."""
    alive = [run for run in found if run.verdict.is_alive or run.verdict.state == "silent"]
    return alive or list(found[:1])


def report_of(record: RunRecord) -> Report:
    """The numbers of a run as its report has them."""
    report = Report(record.pipeline, record.version, started=record.started, seconds=record.seconds)
    for name, target in record.targets.items():
        numbers = {"target": name, **_numbers(Totals, target.totals)}
        last = numbers.pop("last", None)
        numbers["last"] = micro_batch_of(last) if last else None
        report.targets[name] = Totals(**numbers)
    return report


def lines_of(run: FoundRun, progress: int = 0) -> Iterator[str]:
    """A run in words.

    Args:
        run: The run.
        progress: So many of the last micro-batches of each target are told too.
    """
    record, verdict = run.record, run.verdict
    report = report_of(record)
    yield f"{record.pipeline} {record.version}, {record.process}, since {clock(record.started)}"
    yield f"  {summary(report, _beginning(run))}"
    if verdict.is_alive and verdict.silence is not None:
        yield f"  heartbeat {max(verdict.silence, 0):,.0f} s ago"
    for diagnostic in record.diagnostics:
        if not any(target.failure == diagnostic for target in record.targets.values()):
            yield f"  {_told(diagnostic)}"
    for name, totals in report.targets.items():
        target = record.targets[name]
        yield f"  {name}: {target.state if verdict.state != 'died' else 'died'}"
        if target.failure is not None:
            yield f"    {_told(target.failure)}"
        for unwell in target.unwell:
            words = event_words("unhealthy", {"target": name, **unwell})
            yield f"    {words}, since {clock(unwell['since'])}"
        for line in target_lines(totals):
            yield f"    {line}"
        for batch in target.recent[-progress:] if progress else ():
            yield f"    {_batch(batch)}"


def _beginning(run: FoundRun) -> str:
    record, verdict = run.record, run.verdict
    lasted = f"{record.seconds:.1f} s"
    told = {
        "starting": "Starting",
        "running": f"Running for {lasted}",
        "stopping": f"Stopping after {lasted}",
        "finished": f"Finished at {clock(record.ended)} after {lasted}",
        "stopped": f"Stopped at {clock(record.ended)} after {lasted}",
        "failed": f"Failed at {clock(record.ended)} after {lasted}",
        "died": f"Died after {lasted} or later",
        "silent": f"Silent after {lasted}",
    }[verdict.state]
    why = verdict.why or record.reason
    return f"{told} ({why})" if why else told


def micro_batch_of(batch: Mapping[str, Any]) -> MicroBatch:
    """A micro-batch as its record has it."""
    return MicroBatch(**_numbers(MicroBatch, batch))


def _batch(batch: Mapping[str, Any]) -> str:
    made = micro_batch_of(batch)
    numbers, _, _ = target_lines(Totals("", last=made))
    return f"{clock(made.timestamp)} {numbers}"


def _told(diagnostic: Mapping[str, Any]) -> str:
    place = ":".join(str(diagnostic[key]) for key in ("file", "line", "column") if diagnostic.get(key))
    severity, code, message = (diagnostic.get(key, "") for key in ("severity", "code", "message"))
    text = f"{severity}[{code}]: {message}"
    return f"{place}: {text}" if place else text


def clock(text: str) -> str:
    """A time of a record for people: UTC, in seconds."""
    return text[:19].replace("T", " ") or "-"


def _numbers(shape: type, content: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as their shape has them: what transforms held lies among the others in JSON."""
    return {**_known(shape, content), "held": HeldRows(**_known(HeldRows, content))}


def _known(shape: type, content: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that a shape has; another version of gem-bundle may have written others."""
    known = {entry.name for entry in fields(shape)}
    return {name: value for name, value in content.items() if name in known}


def _unseen(place: str, error: Exception) -> GemError:
    said = describe_error(error)
    hint = "Ask where that place can be read; for one in the cloud, install the package that teaches fsspec "
    hint += "its scheme (s3fs, gcsfs, adlfs, …)."
    return GemError("GB406", f"runs can't be seen from here: {said}, at {place}", advice(said, hint))
