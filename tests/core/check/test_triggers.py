"""Triggers against sinks, sources and the queries between them, and where it is said."""

from typing import get_args

import pytest

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    AggregateOperator,
    Facts,
    Field,
    JoinOperator,
    Operator,
    Options,
    Source,
    SourceSemantics,
    Target,
    TargetSemantics,
    Transform,
    combined,
)
from gem_bundle.operators import OperatorKind
from gem_bundle.pipeline.loader import LoadOptions
from tests.core.checking import check, found, marked

ALL = MICRO_BATCH_TRIGGERS | {"continuous", "real_time"}


class AnySource(Source):
    """Takes every trigger."""

    semantics = SourceSemantics(triggers=ALL)


class SlowSource(Source):
    """Takes micro-batches only."""


class AnyTarget(Target):
    """Takes every trigger."""

    semantics = TargetSemantics(triggers=ALL)


class AsyncOptions(Options):
    """Whether the checkpoint is written beside the micro-batches."""

    beside: bool = Field(True, description="It is.")


class AsyncTarget(Target[AsyncOptions]):
    """Writes its checkpoint beside the micro-batches."""

    semantics = TargetSemantics(triggers=ALL, async_progress="beside")


class StepOptions(Options):
    """What it is made of."""

    kind: str = Field(description="The operator.")


class StepTransform(Transform[StepOptions]):
    """One operator."""

    def infer(self, *inputs: Facts) -> Facts:
        if self.options.kind == "aggregate":
            return inputs[0].after(AggregateOperator(option="kind"))
        return inputs[0].after(Operator(self.options.kind, option="kind"))  # type: ignore[arg-type]


class JoinTransform(Transform):
    """A join."""

    inputs = (2, 2)

    def infer(self, *inputs: Facts) -> Facts:
        return combined(JoinOperator(how="left_semi", equality=True, event_time_key=True), inputs)


GEMS = {
    "source_any": AnySource,
    "source_slow": SlowSource,
    "target_any": AnyTarget,
    "target_async": AsyncTarget,
    "transform_step": StepTransform,
    "transform_two": JoinTransform,
}
# What the rules of streams say of these kinds, whatever the trigger, has tests of its own.
OTHERS = {"GB301", "GB304", "GB305", "GB306", "GB307", "GB309", "GB328"}


def said(text: str) -> list[str]:
    """What is said of triggers, after the places were compared with the marks."""
    plain, places = marked(f"pipeline: p\n{text}")
    checked = check(plain, **GEMS)
    assert [(line, column) for code, line, column in found(checked) if code not in OTHERS] == places
    return [f"{d.code} {d.severity}: {d.message}" for d in checked.diagnostics if d.code not in OTHERS]


def query(
    kind: str, trigger: str, *, spark: str = "{}", mode: str = "update", source: str = "any", gem: str = "any"
) -> str:
    return (
        f"spark: {spark}\n"
        f"sources: {{a: {{gem: {source}}}}}\n"
        f"transforms: {{s: {{gem: step, input: a, options: {{kind: {kind}}}}}}}\n"
        f"targets: {{t: {{gem: {gem}, input: s, output_mode: {mode}, trigger: {trigger}}}}}\n"
    )


# Declared


def test_a_source_and_a_sink_say_what_they_take() -> None:
    assert said(query("unknown", "▶{continuous: 1 second}", source="slow")) == [
        "GB314 error: target `t`: the source `a` (`slow`) can't be run with the trigger `continuous`"
    ]
    assert said(query("unknown", "▶{real_time: 1 minute}", gem="sink")) == [
        "GB314 error: target `t`: `sink` can't be run with the trigger `real_time`"
    ]


# Continuous


@pytest.mark.parametrize("kind", sorted(set(get_args(OperatorKind)) - {"unknown", "filter", "join"}))
def test_operators_that_continuous_processing_lacks(kind: str) -> None:
    (told,) = said(query(f"▶{kind}", "{continuous: 1 second}"))

    assert told.startswith(
        "GB360 error: transform `s`: continuous processing (`t`) takes each row by itself, as `select` and "
        "`filter` do, and doesn't have "
    )
    assert told.rpartition("doesn't have ")[2] not in {"", f"`{kind}`"} - {"`except`", "`intersect`"}


@pytest.mark.parametrize("kind", ["filter", "unknown"])
@pytest.mark.parametrize("mode", ["append", "update"])
def test_operators_that_continuous_processing_may_have(kind: str, mode: str) -> None:
    assert said(query(kind, "{continuous: 1 second}", mode=mode)) == []


def test_a_join_in_continuous_processing() -> None:
    text = (
        "sources: {a: {gem: any}, b: {gem: any, mode: batch}}\n"
        "transforms: {j: {gem: ▶two, inputs: [a, b]}}\n"
        "targets: {t: {gem: any, input: j, trigger: {continuous: 1 second}}}\n"
    )
    assert "doesn't have a join" in said(text)[0]


# Real time


@pytest.mark.parametrize("mode", ["append", "▶append", "update"])
def test_real_time_updates(mode: str) -> None:
    text = query("filter", "{real_time: 1 minute}", mode=mode if mode == "update" else "▶append")

    assert len(said(text)) == (mode != "update")


ALLOWED = {"cte", "current_time", "filter", "generate", "row_ids", "union", "unknown", "watermark", "with"}


@pytest.mark.parametrize("kind", sorted(set(get_args(OperatorKind)) - {"join"}))
def test_operators_in_real_time(kind: str) -> None:
    trigger = "{real_time: 1 minute}"
    if kind in ALLOWED:
        assert said(query(kind, trigger)) == []
        return
    (told,) = said(query(f"▶{kind}", trigger))
    assert told.startswith("GB361 error: transform `s`: real-time mode (`t`) hands rows on at once")


def test_the_check_of_real_time_can_be_switched_off_as_in_spark() -> None:
    setting = "{spark.sql.streaming.realTimeMode.allowlistCheck: false}"

    assert said(query("aggregate", "{real_time: 1 minute}", spark=setting)) == []


@pytest.mark.parametrize(("mode", "gem", "count"), [("stream", "▶two", 1), ("batch", "two", 0)])
def test_joins_in_real_time(mode: str, gem: str, count: int) -> None:
    text = (
        f"sources: {{a: {{gem: any}}, b: {{gem: any, mode: {mode}}}}}\n"
        f"transforms: {{j: {{gem: {gem}, inputs: [a, b]}}}}\n"
        "targets: {t: {gem: any, input: j, output_mode: update, trigger: {real_time: 1 minute}}}\n"
    )
    assert len(said(text)) == count


@pytest.mark.parametrize(
    ("interval", "setting", "ok"),
    [
        ("5 seconds", "", True),
        ("4 seconds 999 milliseconds", "", False),
        ("1 second", "1000", True),
        ("1 second", "1s", True),
        ("1 second", "2s", False),
        ("1 second", "sometimes", True),
    ],
)
def test_how_short_real_time_can_be(interval: str, setting: str, ok: bool) -> None:
    spark = f"{{spark.sql.streaming.realTimeMode.minBatchDuration: {setting}}}" if setting else "{}"
    told = said(query("filter", f"{{real_time: {'' if ok else '▶'}{interval}}}", spark=spark))

    assert ok == (told == [])
    assert ok or told[0].startswith(f"GB363 error: target `t`: `{interval}` is too short")


# The pace of micro-batches


@pytest.mark.parametrize(
    ("interval", "short"),
    [
        ("0 seconds", False),
        ("1 millisecond", True),
        ("99 milliseconds", True),
        ("100 milliseconds", False),
        ("1 hour", False),
    ],
)
def test_intervals_shorter_than_any_micro_batch(interval: str, short: bool) -> None:
    told = said(query("filter", f"{{processing_time: {'▶' if short else ''}{interval}}}"))

    assert short == bool(told)
    assert not short or told[0].startswith(
        f"GB364 note: target `t`: `{interval}` is shorter than any micro-batch"
    )


def test_once_is_deprecated() -> None:
    (told,) = said(query("filter", "▶{once: true}"))

    assert told.startswith(
        "GB362 warning: target `t`: `once` puts everything that is there into one micro-batch"
    )
    assert said(query("filter", "{available_now: true}")) == []


def test_an_interval_that_is_not_known_yet() -> None:
    text = "pipeline: p\n" + query("filter", "{real_time: '${env:PACE}'}")
    options = LoadOptions(environment={}, skip_env=True)

    assert found(check(text, options, **GEMS)) == []


# Asynchronous progress


@pytest.mark.parametrize("trigger", ["{available_now: true}", "{once: true}", "{real_time: 1 minute}"])
def test_asynchronous_progress_and_triggers(trigger: str) -> None:
    text = query("filter", trigger, gem="async").replace("trigger:", "options: {beside: ▶true}, trigger:")
    plain, places = marked(f"pipeline: p\n{text}")
    told = [d for d in check(plain, **GEMS).diagnostics if d.code == "GB365"]

    assert [(d.line, d.column) for d in told] == places
    assert "can't be used with the trigger `" in told[0].message


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("aggregate", "an aggregation"),
        ("deduplicate", "a removal"),
        ("limit", "a limit"),
        ("custom", "an operator"),
    ],
)
def test_asynchronous_progress_and_state(kind: str, words: str) -> None:
    text = query(kind, "{processing_time: 1 second}", gem="async")
    plain, _ = marked(f"pipeline: p\n{text}")
    (told,) = [d for d in check(plain, **GEMS).diagnostics if d.code == "GB365"]

    assert f"{words}" in told.message
    assert "(`s`) has state" in told.message


@pytest.mark.parametrize("kind", ["filter", "unknown", "watermark", "union"])
def test_asynchronous_progress_without_state(kind: str) -> None:
    assert said(query(kind, "{processing_time: 1 second}", gem="async")) == []


# Versions


class NewOptions(Options):
    """Options of several versions."""

    old: int | None = Field(None, description="Always there.")
    new: int | None = Field(None, description="Newer.", since="4.1", spark="brandNew")
    newest: int | None = Field(None, description="Newest.", since="4.2")


class NewSource(Source[NewOptions]):
    """Takes every trigger."""

    semantics = SourceSemantics(triggers=ALL)


NEW = (
    "spark: {spark.sql.streaming.queryEvolution.enableSourceEvolution: true, spark.a: 1}\n"
    "sources: {a: {gem: new, options: {old: 1, brandNew: 2, newest: 3}}}\n"
    "targets: {t: {gem: any, input: a, output_mode: update, trigger: {real_time: 1 minute}}}\n"
)
PLACES = {"evolution": (2, 9), "brandNew": (3, 53), "newest": (3, 64), "real_time": (4, 65)}


@pytest.mark.parametrize(
    ("version", "lacking"),
    [
        ("4.0", ["evolution", "brandNew", "newest", "real_time"]),
        ("4.0.1", ["evolution", "brandNew", "newest", "real_time"]),
        ("4.1", ["evolution", "newest", "real_time"]),
        ("4.1.1", ["evolution", "newest", "real_time"]),
        ("4.2", []),
        ("4.10", []),
        (None, []),
    ],
)
def test_what_a_version_of_spark_lacks(
    version: str | None, lacking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version=version))
    checked = check(f"pipeline: p\n{NEW}", **GEMS, source_new=NewSource)

    assert found(checked) == [("GB370", *PLACES[name]) for name in lacking]
    assert {d.severity for d in checked.diagnostics if not d.node} <= {"warning"}
    assert {d.severity for d in checked.diagnostics if d.node} <= {"error"}


JOINED = """
sources: {{a: {{gem: any}}, b: {{gem: any}}}}
transforms: {{j: {{gem: two, inputs: [a, b]}}}}
targets: {{t: {{gem: any, input: j, output_mode: {mode}}}}}
"""


@pytest.mark.parametrize("version", ["4.0.1", "4.1.1", "4.2.0"])
@pytest.mark.parametrize("mode", ["append", "update"])
def test_older_sparks_only_append_the_rows_of_a_join_of_streams(
    version: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version=version))
    checked = check(f"pipeline: p{JOINED.format(mode=mode)}", **GEMS)

    told = [d for d in checked.diagnostics if d.code == "GB370"]
    assert [d.node for d in told] == (["t"] if mode == "update" and version < "4.2" else [])
    assert all(f"not in {version}" in d.message and "`j`" in d.message for d in told)


@pytest.mark.parametrize("version", ["4.0.1", "4.1.1", "4.2.0"])
def test_older_sparks_know_sources_by_their_order(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version=version))
    only = "targets: {only: {gem: any, input: a}, "
    checked = check(f"pipeline: p{JOINED.format(mode='append')}".replace("targets: {", only), **GEMS)

    told = [d for d in checked.diagnostics if d.code == "GB372"]
    assert [(d.node, d.severity, d.line) for d in told] == ([("t", "note", 4)] if version < "4.2" else [])
    assert all(f"not in {version}" in d.message and "(`a`, `b`)" in d.message for d in told)


def test_without_pyspark_it_is_the_version_that_all_is_tested_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from gem_bundle.check.stages import versions

    monkeypatch.setattr(versions, "installed_spark", lambda: None)

    assert found(check(f"pipeline: p\n{NEW}", **GEMS, source_new=NewSource)) == []
