"""What Acme's pipelines must keep to, beyond what Spark asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Finding, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle import PipelineView


@hookimpl
def gem_bundle_check_pipeline(pipeline: PipelineView) -> Iterator[Finding]:
    """All rules, one after the other."""
    yield from no_console_in_production(pipeline)
    yield from losses_are_decided_on(pipeline)


def no_console_in_production(pipeline: PipelineView) -> Iterator[Finding]:
    """Nobody looks at the screen of a cluster."""
    if pipeline.profile != "prod":
        return
    for target in pipeline.of_kind("target", "console"):
        yield Finding(
            "ACME001",
            "in production nobody looks at a console, and its rows fill the driver's log",
            "Remove it, or move it into a profile for development.",
            node=target.id,
            key="gem",
        )


def losses_are_decided_on(pipeline: PipelineView) -> Iterator[Finding]:
    """Whether a stream stops or goes on when records are gone is for its owner to say."""
    for source in pipeline.of_kind("source", "kafka"):
        if "fail_on_data_loss" not in source.options:
            yield Finding(
                "ACME002",
                "it doesn't say what happens when records are gone before they were read",
                "Set `fail_on_data_loss`: `true` stops the stream, `false` goes on without them.",
                node=source.id,
                option="fail_on_data_loss",
                severity="warning",
            )
