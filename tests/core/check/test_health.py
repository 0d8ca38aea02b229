"""Limits of health: what they say, what is wrong with them, and where they can't be measured."""

from __future__ import annotations

from typing import Any

import pytest

from gem_bundle import (
    AggregateOperator,
    Facts,
    Operator,
    Source,
    SourceSemantics,
    Target,
    Transform,
    WatermarkOperator,
)
from gem_bundle.pipeline.health import LIMITS, Health, Limit, Restarts
from tests.core.checking import check, load, marked

TEXT = """
pipeline: p
{top}
sources:
  clicks: {{gem: counting}}
transforms:
  made: {{gem: {gem}, input: clicks}}
targets:
  one:
    gem: any
    input: made
    {one}
  two: {{gem: any, input: made}}
"""


class Counting(Source):
    """Tells what waits in it."""

    semantics = SourceSemantics(lag=frozenset({"records"}))

    def infer(self) -> Facts:
        return Facts(streaming=True)


class Plain(Transform):
    """Keeps nothing."""

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0]


class Stateful(Transform):
    """Has a watermark and an aggregation."""

    def infer(self, *inputs: Facts) -> Facts:
        marked = inputs[0].after(WatermarkOperator("watermark", delay="1 minute"))
        return marked.after(AggregateOperator("aggregate"))


class Unclear(Transform):
    """Can't tell what it is made of."""

    def infer(self, *inputs: Facts) -> Facts:
        return inputs[0].after(Operator("unknown"))


class Sink(Target):
    """Takes everything."""


GEMS: dict[str, Any] = {
    "target_any": Sink,
    "source_counting": Counting,
    "transform_plain": Plain,
    "transform_stateful": Stateful,
    "transform_unclear": Unclear,
}


def verdict(
    one: str = "", top: str = "", gem: str = "plain"
) -> tuple[list[tuple[str, int, int]], list[tuple[int, int]], list[str]]:
    text, places = marked(TEXT.format(one=one, top=top, gem=gem))
    checked = check(text, **GEMS)
    about = [d for d in checked.diagnostics if d.code in {"GB390", "GB004", "GB005"}]
    return [(d.code, d.line, d.column) for d in about], places, [d.message for d in about]


def of(target: str, one: str = "", top: str = "") -> tuple[Health, Restarts | None]:
    definition = load(TEXT.format(one=one, top=top, gem="plain")).definition
    assert definition is not None
    return definition.nodes[target].health, definition.nodes[target].restarts


def test_a_value_is_a_limit_that_fails() -> None:
    health, restarts = of(
        "one", top="health: {no_progress: 10 minutes, rejected: 1%, state_rows: 50_000_000}"
    )
    assert health == Health(
        (
            Limit("no_progress", "seconds", fail=600.0),
            Limit("state_rows", "count", fail=50_000_000.0),
            Limit("rejected", "share", fail=0.01),
        )
    )
    assert restarts is None


def test_levels_and_for_how_long() -> None:
    top = "health: {behind: {records: {warn: 10, fail: 20, lasting: 1 minute}, time: 1 hour}, on_unhealthy: stop}"
    assert of("two", top=top)[0] == Health(
        (Limit("behind.records", "count", 10, 20, 60), Limit("behind.time", "seconds", fail=3600)), "stop"
    )


def test_a_target_says_otherwise_what_it_names_and_nothing_else() -> None:
    top = "health: {batch_time: 1 minute, behind: {records: 5, time: 1 hour}, state_rows: 9, on_unhealthy: stop}"
    one = "health: {batch_time: 2 minutes, behind: {records: 7}, state_rows: , on_unhealthy: restart}"
    assert of("one", one, top)[0] == Health(
        (
            Limit("behind.records", "count", fail=7),
            Limit("behind.time", "seconds", fail=3600),
            Limit("batch_time", "seconds", fail=120),
        ),
        "restart",
    )
    assert of("two", one, top)[0].on_unhealthy == "stop"
    assert (
        of("one", "health: {behind: }", top)[0].limits
        == of("two", top="health: {batch_time: 1 minute, state_rows: 9}")[0].limits
    )


def test_restarts() -> None:
    assert of("one", top="restarts: {}")[1] == Restarts(5, 3600, 10)
    one = "restarts: {max: 1, within: 5 minutes, wait: 1 second}"
    assert of("one", one, "restarts: {max: 9}")[1] == Restarts(1, 300, 1)
    assert of("two", one, "restarts: {max: 9}")[1] == Restarts(9, 3600, 10)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("{▶batch_tim: 1 minute}", "GB004", "unknown key `batch_tim`"),
        ("{batch_time: ▶10}", "GB005", "a duration needs a unit"),
        ("{batch_time: ▶1 month}", "GB005", "months and years"),
        ("{rejected: ▶0.01}", "GB005", "must be a text"),
        ("{rejected: ▶101%}", "GB005", "from 0% to 100%"),
        ("{state_rows: ▶-1}", "GB005", "greater than or equal to 0"),
        ("{state_rows: ▶{lasting: 1 minute}}", "GB005", "`warn`, `fail` or both"),
        ("{on_unhealthy: ▶explode}", "GB005", "`report`, `restart` or `stop`"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(text: str, code: str, words: str) -> None:
    says, places, messages = verdict(f"health: {text}")
    assert says == [(code, *places[0])]
    assert words in messages[0]


@pytest.mark.parametrize(
    ("limit", "gem", "why"),
    [
        ("watermark_behind: ▶1 hour", "plain", "no watermark"),
        ("state_rows: ▶5", "plain", "nothing on the way keeps state"),
        ("rejected: ▶1%", "plain", "has an output `rejected`"),
        ("behind: {time: ▶1 hour}", "plain", "`counting` can't tell it"),
    ],
)
@pytest.mark.parametrize("where", ["one", "top"])
def test_a_limit_that_nothing_measures(limit: str, gem: str, why: str, where: str) -> None:
    says, places, messages = verdict(**{where: f"health: {{{limit}}}"}, gem=gem)
    assert says == [("GB390", *places[0])]
    assert why in messages[0]


@pytest.mark.parametrize(
    ("limit", "gem"),
    [
        ("watermark_behind: 1 hour, state_rows: 5", "stateful"),
        ("watermark_behind: 1 hour, state_rows: 5", "unclear"),
        ("no_progress: 1 hour, batch_time: 1 hour, behind: {records: 5}", "plain"),
    ],
)
def test_what_is_measured_or_may_be(limit: str, gem: str) -> None:
    for where in ("one", "top"):
        assert verdict(**{where: f"health: {{{limit}}}"}, gem=gem)[0] == []


def test_a_batch_pipeline_has_neither() -> None:
    one = (
        "restarts: ▶{}\n    health: {"
        + ", ".join(f"{name}: ▶1 hour" for name in ("no_progress", "batch_time"))
        + "}"
    )
    says, places, _ = verdict(one, top="mode: batch")
    assert says == [("GB390", *place) for place in places]
    assert "no_progress" in LIMITS
