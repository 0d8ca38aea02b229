"""What a run is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LogFormat = Literal["auto", "text", "json"]


@dataclass(frozen=True)
class ServeOptions:
    """The server of a run.

    Args:
        host: Where it listens.
        port: The port; 0 takes a free one.
        token: What requests have to carry; empty for what the environment says, which may be nothing.
        allow_control: Let requests stop the run, and stop and resume single targets.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default="", repr=False)
    allow_control: bool = False


@dataclass(frozen=True)
class RunOptions:
    """How to run a pipeline.

    Args:
        parameters: Values for the pipeline's parameters.
        profile: The profile to use.
        targets: Run only these targets and what they need; empty for all.
        available_now: Drain what is there and end, whatever the targets' triggers say.
        report: A file to write the summary to, as JSON.
        log_format: How progress is shown: ``text`` is the live view, ``json`` lines, ``auto`` decides by
            whether the output is a terminal.
        quiet: Show no progress.
        stop_timeout: Seconds a running micro-batch may take to end after a request to stop.
        spark_log: Where Spark's own log goes; by default a file in the cache folder.
        show_settings: Print the session's settings and where each comes from.
        accept: Changes since the last run that are taken on purpose: codes, each with the id of a node or an
            empty text for all.
        environment: Environment variables; None is the process's.
        serve: The server that it has meanwhile; None for none.
        lineage: Where OpenLineage's events go to, a URL or a file; None for nowhere.
        fresh: The targets that get a checkpoint with new state, which begins where the old one ended.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    targets: tuple[str, ...] = ()
    available_now: bool = False
    report: Path | None = None
    log_format: LogFormat = "auto"
    quiet: bool = False
    stop_timeout: float = 300.0
    spark_log: Path | None = None
    show_settings: bool = False
    accept: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] | None = None
    fresh: tuple[str, ...] = ()
    serve: ServeOptions | None = None
    lineage: str | None = None
