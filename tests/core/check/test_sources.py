"""What sources read the first time, again, and in which order; and where it is said."""

from dataclasses import replace

import pytest

from gem_bundle import (
    Facts,
    Field,
    Options,
    Source,
    SourceSemantics,
    Target,
    TargetSemantics,
    Transform,
    WatermarkOperator,
)
from tests.core.checking import check, found, marked


class LogOptions(Options):
    """Where to begin."""

    start: str = Field("latest", description="Where to begin.", spark="theStart")
    newest: bool = Field(False, description="Newest first.")


class LogSource(Source[LogOptions]):
    """Begins at the end unless told otherwise."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__(options)
        self.semantics = replace(
            self.semantics,
            only_new="start" if options.start == "latest" else False,
            newest_first="newest" if options.newest else None,
        )


class ClockSource(Source):
    """Makes its rows."""

    semantics = SourceSemantics(batch=False, backlog=False, only_new=True)


class LineSource(Source):
    """Can't be read again."""

    semantics = SourceSemantics(replayable=False)


class OnceTarget(Target):
    """Keeps each row once."""

    semantics = TargetSemantics(delivery="exactly_once")


class MarkTransform(Transform):
    """A watermark."""

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0].after(WatermarkOperator(column="at", delay="1 hour"))


class HazyTransform(Transform):
    """Nobody knows what it does."""


GEMS = {
    "source_log": LogSource,
    "source_clock": ClockSource,
    "source_line": LineSource,
    "target_keep": OnceTarget,
    "transform_mark": MarkTransform,
    "transform_hazy": HazyTransform,
}


def said(text: str) -> list[str]:
    """What is said of a pipeline, after the places were compared with the marks."""
    plain, places = marked(f"pipeline: p\n{text}")
    checked = check(plain, **GEMS)
    assert [(line, column) for _, line, column in found(checked)] == places
    return [f"{d.code} {d.severity}: {d.message}" for d in checked.diagnostics]


# Again


def test_a_source_that_cannot_be_read_again_before_a_target_that_writes_once() -> None:
    text = (
        "sources: {a: {gem: ▶line}, b: {gem: log}}\n"
        "transforms: {c: {gem: mix, inputs: [a, b]}}\n"
        "targets: {t: {gem: keep, input: c}, u: {gem: keep, input: a}, v: {gem: sink, input: a}}\n"
    )
    assert said(text) == [
        "GB350 warning: source `a`: `line` can't be read again, so rows that were on their way to `t` are lost "
        "when a run fails, although that target writes each row exactly once"
    ]


def test_before_a_target_that_promises_less_it_is_no_surprise() -> None:
    assert said("sources: {a: {gem: line}}\ntargets: {t: {gem: sink, input: a}}\n") == []


def test_a_static_relation_is_read_once() -> None:
    text = (
        "sources: {a: {gem: line, mode: batch}, b: {gem: log}}\n"
        "transforms: {c: {gem: mix, inputs: [a, b]}}\n"
        "targets: {t: {gem: keep, input: c}}\n"
    )
    assert said(text) == []


# The first time


ENDS = "targets: {t: {gem: sink, input: a, trigger: %s}}\n"


@pytest.mark.parametrize("trigger", ["{available_now: true}", "▶{once: true}"])
@pytest.mark.parametrize(
    "source",
    [
        "{gem: log, options: {start: ▶latest}}",
        "{gem: log, options: {theStart: ▶latest}}",
        "{gem: log, ▶options: {newest: false}}",
        "▶a: {gem: log}",
    ],
)
def test_the_first_run_of_a_source_that_begins_at_the_end(source: str, trigger: str) -> None:
    source = source if "a:" in source else f"a: {source}"
    told = [line for line in said(f"sources:\n  {source}\n{ENDS % trigger}") if "GB362" not in line]

    kind = trigger.strip("▶{}").removesuffix(": true")
    assert told == [
        f"GB351 warning: source `a`: the first run of `t` reads nothing and ends (`{kind}`): `start` lets it "
        "begin behind everything that is there"
    ]


def test_it_is_said_once_of_a_source() -> None:
    text = (
        "sources: {▶a: {gem: log}}\n"
        "targets:\n"
        "  t: {gem: sink, input: a, trigger: {available_now: true}}\n"
        "  u: {gem: sink, input: a, trigger: {available_now: true}}\n"
    )
    assert len(said(text)) == 1


@pytest.mark.parametrize(
    ("source", "trigger"),
    [
        ("{gem: log, options: {start: earliest}}", "{available_now: true}"),
        ("{gem: log}", "{processing_time: 1 second}"),
        ("{gem: log, mode: batch}", "{available_now: true}"),
    ],
)
def test_runs_that_read_something(source: str, trigger: str) -> None:
    text = (
        f"sources: {{a: {source}, b: {{gem: topic, options: {{topic: x}}}}}}\n"
        "transforms: {c: {gem: mix, inputs: [a, b]}}\n"
        f"targets: {{t: {{gem: sink, input: c, trigger: {trigger}}}}}\n"
    )
    assert said(text) == []


def test_a_source_without_rows_of_its_own() -> None:
    text = "sources: {a: {gem: clock}}\ntargets:\n  t:\n    gem: sink\n    input: a\n    trigger: "

    assert said(text + "▶{available_now: true}\n") == [
        "GB351 warning: target `t`: the first run of `t` reads nothing and ends (`available_now`): `a` (`clock`) has "
        "no rows before it is read"
    ]
    assert said(text + "{processing_time: 1 second}\n") == []


# In which order


def ordered(*transforms: str, newest: str = "true", mode: str = "stream") -> str:
    chain = "".join(
        f"  t{number}: {{gem: {gem}, input: {f't{number - 1}' if number else 'a'}}}\n"
        for number, gem in enumerate(transforms)
    )
    return (
        f"sources: {{a: {{gem: log, mode: {mode}, options: {{newest: {newest}}}}}, b: {{gem: log}}}}\n"
        f"transforms:\n{chain}  all: {{gem: mix, inputs: [t{len(transforms) - 1}, b]}}\n"
        "targets: {t: {gem: sink, input: all}}\n"
    )


def test_newer_rows_before_older_ones_and_a_watermark() -> None:
    assert said(ordered("hazy", "mark", "hazy", newest="▶true")) == [
        "GB352 warning: source `a`: `newest` takes newer rows before older ones, and the newer ones move the "
        "watermark of `t1`, so that the older ones are dropped as late"
    ]


def test_without_one_of_the_two_no_row_is_late() -> None:
    assert said(ordered("hazy")) == []
    assert said(ordered("mark", newest="false")) == []
    assert said(ordered("mark", mode="batch")) == []


def test_a_watermark_on_another_stream() -> None:
    text = (
        "sources: {a: {gem: log, options: {newest: true}}, b: {gem: log}}\n"
        "transforms:\n"
        "  m: {gem: mark, input: b}\n"
        "  all: {gem: mix, inputs: [a, m]}\n"
        "targets: {t: {gem: sink, input: all}}\n"
    )
    assert said(text) == []
