"""What a run shows: a live view on a terminal, JSON lines elsewhere, nothing when asked to be quiet.

All of it goes to standard error: standard output belongs to sinks that print rows.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from gem_bundle.run.moments import now_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console, RenderableType
    from rich.live import Live

    from gem_bundle.run.options import LogFormat
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.report import Report
    from gem_bundle.run.supervisor import View

_WIDE = 115


def make_view(log_format: LogFormat, *, quiet: bool, stream: TextIO | None = None) -> View:
    """The view that fits: quiet, live, or lines.

    Args:
        log_format: ``text``, ``json``, or ``auto`` to decide by whether the stream is a terminal.
        quiet: Show nothing.
        stream: Where to; by default standard error.
    """
    stream = sys.stderr if stream is None else stream
    if quiet:
        return QuietView()
    if log_format == "json" or (log_format == "auto" and not stream.isatty()):
        return JsonView(stream)
    return LiveView(stream)


class QuietView:
    """Shows nothing."""

    def started(self, report: Report) -> None:
        """All queries run."""

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""

    def tick(self) -> None:
        """A moment has passed."""

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""

    def ended(self, report: Report) -> None:
        """The run is over."""


class JsonView(QuietView):
    """One JSON object a line: ``started``, ``progress`` for each micro-batch, ``stopping``, ``ended``.

    Between them ``unhealthy``, ``healthy`` and ``restarting``, of single targets.

    Args:
        stream: Where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def started(self, report: Report) -> None:
        """All queries run."""
        self._line("started", pipeline=report.pipeline, targets=list(report.targets))

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""
        self._line(
            "progress",
            target=totals.target,
            batch_id=batch.batch_id,
            rows_in=batch.rows_in,
            rows_out=batch.rows_out,
            rows_per_second=batch.rows_per_second,
            watermark=batch.watermark,
            state_rows=batch.state_rows,
            late_rows=batch.late_rows,
            duration_ms=batch.duration_ms,
            total_rows_in=totals.rows_in,
            total_rows_out=totals.rows_out,
            **{name: counts for name, counts in asdict(batch.held).items() if counts},
        )

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""
        self._line("stopping", reason=reason)

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""
        self._line(event, **facts)

    def ended(self, report: Report) -> None:
        """The run is over."""
        self._line("ended", **report.as_dict())

    def _line(self, event: str, **facts: Any) -> None:
        print(json.dumps({"event": event, "time": now_text(), **facts}), file=self._stream, flush=True)


class LiveView(QuietView):
    """A table with a row for each target, renewed while the run goes on, and a summary at the end.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console: Console = Console(file=stream, highlight=False)
        self._live: Live | None = None
        self._report: Report | None = None
        self._note = ""

    def started(self, report: Report) -> None:
        """All queries run."""
        from rich.live import Live

        self._report = report
        self._live = Live(self._body(), console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def progress(self, batch: MicroBatch, totals: Totals) -> None:  # noqa: ARG002
        """A micro-batch ended."""
        self._renew()

    def tick(self) -> None:
        """A moment has passed."""
        self._renew()

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""
        self._note = f"Stopping ({reason}): the running micro-batches end first."
        self._renew()

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""
        self._console.print(event_words(event, facts), markup=False)

    def ended(self, report: Report) -> None:
        """The run is over."""
        self._report = report
        if self._live is not None:
            self._live.stop()
        if report.started and report.ended:
            self._console.print(self._body())
            self._console.print(summary(report))

    def _renew(self) -> None:
        if self._live is not None:
            self._live.update(self._body(), refresh=True)

    def _body(self) -> RenderableType:
        from rich.console import Group

        assert self._report is not None
        wide = self._console.width >= _WIDE
        parts: list[RenderableType] = [_table(self._report) if wide else _lines(self._report)]
        if self._note:
            parts.append(self._note)
        return Group(*parts)


def event_words(event: str, facts: Mapping[str, Any]) -> str:
    """What happened to a target, in a line."""
    target, reason = facts["target"], facts["reason"]
    if event == "restarting":
        return f"{target}: started again in {facts['wait']:g} s (restart {facts['restarts']}): {reason}"
    said = "well again" if event == "healthy" else "unwell" if facts["level"] == "fail" else "worth a look"
    return f"{target}: {said}: {facts['limit'] if event == 'healthy' else reason}"


def _table(report: Report) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(
        title=report.pipeline,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("target", no_wrap=True)
    for name in ("micro-batch", "rows in", "rows out", "rows/s", "took", "state rows"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("watermark", no_wrap=True)
    for name in ("total in", "total out"):
        table.add_column(name, justify="right", style="bold", no_wrap=True)
    for totals in report.targets.values():
        last = totals.last
        cells = ["-"] * 7 if last is None else [str(last.batch_id), *_cells(last), _watermark(totals)]
        table.add_row(totals.target, *cells, _number(totals.rows_in), _number(totals.rows_out))
    return table


def _lines(report: Report) -> RenderableType:
    """The same for a narrow terminal: some lines for each target."""
    from rich.text import Text

    text = Text(f"{report.pipeline}\n", style="bold")
    for totals in report.targets.values():
        text.append(f"  {totals.target}\n", style="default")
        *lines, total = target_lines(totals)
        for line in lines:
            text.append(f"    {line}\n", style="not bold")
        text.append(f"    {total}\n")
    text.rstrip()
    return text


def target_lines(totals: Totals) -> list[str]:
    """The numbers of a target in words: its last micro-batch, where there was one, and its totals."""
    lines = []
    if totals.last is not None:
        rows_in, rows_out, speed, took, state = _cells(totals.last)
        lines += [
            f"micro-batch {totals.last.batch_id}: {rows_in} rows in, {rows_out} rows out, "
            f"{speed} rows/s, took {took}",
            f"watermark {_watermark(totals)}, {state} state rows",
            *(_lag(source, totals.last) for source in totals.last.lag),
        ]
    if totals.restarts:
        lines.append(f"started again {_counted(totals.restarts, 'time')}")
    return [*lines, f"total {_number(totals.rows_in)} rows in, {_number(totals.rows_out)} rows out"]


def _lag(source: str, last: MicroBatch) -> str:
    seconds = last.lag_seconds.get(source)
    waited = f", {seconds:,.0f} s" if seconds is not None else ""
    unit = last.lag_units.get(source, "records").removesuffix("s")
    return f"{_counted(last.lag[source], unit)}{waited} behind `{source}`"


def _cells(last: MicroBatch) -> list[str]:
    return [
        _number(last.rows_in),
        _number(last.rows_out),
        f"{last.rows_per_second:,.0f}",
        f"{last.duration_ms / 1000:.1f} s",
        _number(last.state_rows),
    ]


def _watermark(totals: Totals) -> str:
    return (totals.watermark or "-").replace("T", " ").removesuffix("Z").removesuffix(".000")


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def summary(report: Report, beginning: str = "") -> str:
    """A run in one or two lines.

    Args:
        report: Its numbers.
        beginning: How it begins; by default with how the run ended, and after what time.
    """
    verb = {"finished": "Finished", "stopped": "Stopped", "failed": "Failed"}[report.status]
    batches = report.micro_batches
    parts = []
    if batches:
        speed = report.rows_in / report.seconds if report.seconds else 0.0
        parts.append(_counted(batches, "micro-batch", "micro-batches"))
        parts.append(f"{_counted(report.rows_in, 'row')} in ({speed:,.0f} rows/s)")
    if report.rows_out is not None:
        parts.append(f"{_counted(report.rows_out, 'row')} out")
    late = report.late_rows
    if late:
        parts.append(f"{_counted(late, 'late row')} dropped")
    held = report.held
    for node, rows in held.rejected.items():
        nobody = ", nobody takes them" if node in report.untaken else ""
        parts.append(f"{_counted(rows, 'row')} rejected by `{node}`{nobody}")
    for node, rules in held.broken.items():
        parts += [f"{_counted(rows, 'row')} breaking `{rule}` of `{node}`" for rule, rows in rules.items()]
    after = beginning or f"{verb} after {report.seconds:.1f} s"
    return f"{after}: {', '.join(parts)}." if parts else f"{after}."


def _counted(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
