"""What a restart does to the rows of targets, and where it is said."""

from gem_bundle import Target, TargetSemantics
from tests.core.checking import check, found, marked


class KeepTarget(Target):
    """Keeps each row once."""

    semantics = TargetSemantics(delivery="exactly_once", condition="Its checkpoint is kept.")


class ScreenTarget(Target):
    """For looking at."""

    semantics = TargetSemantics(delivery="none")


class QueueTarget(Target):
    """Says when it gets rows twice."""

    semantics = TargetSemantics(delivery="at_least_once", condition="A micro-batch is written again.")


GEMS = {"target_keep": KeepTarget, "target_look": ScreenTarget, "target_queue": QueueTarget}


def said(text: str) -> list[str]:
    """What is said of a pipeline over one source, after the places were compared with the marks."""
    plain, places = marked(f"pipeline: p\nsources: {{a: {{gem: topic, options: {{topic: x}}}}}}\n{text}")
    checked = check(plain, **GEMS)
    assert [(line, column) for _, line, column in found(checked)] == places
    return [f"{d.code} {d.severity}: {d.message}" for d in checked.diagnostics]


def test_a_sink_for_looking_at_beside_one_that_keeps() -> None:
    text = "targets:\n  keep: {gem: keep, input: a}\n  screen: {gem: ▶look, input: a}\n"

    assert said(text) == [
        "GB340 warning: target `screen`: `look` is for looking at: after a failure its rows are lost or come "
        "again, while `keep` beside it must not lose any"
    ]


def test_it_is_said_of_each_and_of_the_first_of_several() -> None:
    text = (
        "targets:\n"
        "  one: {gem: ▶look, input: a}\n"
        "  keep: {gem: keep, input: a}\n"
        "  also: {gem: keep, input: a}\n"
        "  two: {gem: ▶look, input: a}\n"
    )
    first, second = said(text)

    assert "while `keep` and others beside it" in first
    assert "target `two`" in second


def test_sinks_for_looking_at_by_themselves() -> None:
    text = "targets:\n  one: {gem: look, input: a}\n  two: {gem: look, input: a}\n"

    assert said(text) == []
    assert said(f"{text}  sink: {{gem: sink, input: a}}\n") == []


def test_a_target_that_gets_rows_again() -> None:
    assert said("targets: {queue: {gem: ▶queue, input: a}}") == [
        "GB341 note: target `queue`: `queue` gets every row at least once: a micro-batch is written again"
    ]


def test_a_target_that_has_declared_nothing_is_left_alone() -> None:
    assert said("targets: {sink: {gem: sink, input: a}}") == []


def test_a_batch_writes_once() -> None:
    text = "mode: batch\ntargets:\n  keep: {gem: keep, input: a}\n  queue: {gem: queue, input: a}\n"

    assert said(text + "  look: {gem: look, input: a}\n") == []
