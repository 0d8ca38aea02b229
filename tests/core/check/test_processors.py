"""Stateful processors: the time they go by, and state that nothing takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.check.streaming.processors import ProcessorUse, processor_use
from tests.core.streams import assert_found, check

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "from pyspark.sql.streaming import StatefulProcessor\n"
SCREEN = "targets:\n  screen: {gem: console, input: last}\n"
STATE = "handle.getValueState('n', 'n bigint')"


def processor(*lines: str, base: str = "StatefulProcessor") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"{HEAD}class Own({base}):\n    def init(self, handle):\n{body}"


@pytest.mark.parametrize(
    ("code", "use"),
    [
        (processor(STATE), ProcessorUse(state=True)),
        (processor(STATE, "handle.registerTimer(1)"), ProcessorUse(state=True, timers=True)),
        (processor("handle.getValueState('n', 'n int', 1)"), ProcessorUse(state=True, ttl=True)),
        (processor("handle.getValueState('n', 'n int', None)"), ProcessorUse(state=True)),
        (processor("handle.getMapState('n', 'n int', 'm int')"), ProcessorUse(state=True)),
        (processor("handle.getListState('n', 'n int', ttlDurationMs=60 * 1000)"), ProcessorUse(state=True, ttl=True)),
        (processor("handle.getListState('n', 'n int', ttlDurationMs=self.ttl)"), ProcessorUse(state=True, ttl=None)),
        (processor("handle.getValueState('n', 'n int', **self.given)"), ProcessorUse(state=True, ttl=None)),
        (processor("handle.getMapState('n', 'n int', 'm int', ttlDurationMs=1)"), ProcessorUse(state=True, ttl=True)),
        (processor(STATE, "self.n.clear()"), ProcessorUse(state=True, takes_away=True)),
        (f"{HEAD}def timer(h):\n    h.registerTimer(1)\n" + processor("timer(handle)").removeprefix(HEAD), ProcessorUse(timers=True)),
        ("from helpers import Base\n" + processor(STATE, base="Base"), None),
        ("class Other:\n    pass\n", None),
        ("class Own(:\n", None),
    ],
)  # fmt: skip
def test_what_a_class_asks_for_stands_in_its_source(
    code: str, use: ProcessorUse | None, tmp_path: Path
) -> None:
    (tmp_path / "own_processors.py").write_text(code, encoding="utf-8")
    assert processor_use("own_processors:Own", tmp_path) == use


def test_a_class_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert processor_use("no_such_processors:Own", tmp_path) is None


def stateful(options: str = "", source: str = "ticks", module: str = "tests.core.named_jobs") -> str:
    timely = ""
    if source != "ticks":
        timely = (
            f"  {source}: {{gem: watermark, input: ticks, options: {{column: timestamp, delay: 1 minute}}}}\n"
        )
    return (
        f"transforms:\n{timely}  last:\n    gem: stateful\n    input: {source}\n    options:\n"
        f"      processor: ▶{module}:Own\n"
        "      group_by: value\n"
        f"      schema: value bigint, at timestamp\n{options}{SCREEN}"
    )


def test_event_time_needs_a_watermark() -> None:
    (found,) = assert_found(stateful("      time: event\n"), "GB330")
    assert found.severity == "warning"  # Spark runs it
    assert found.message == (
        "transform `last`: no column before it carries a watermark: with `time: event` no timer is ever due"
    )
    (found,) = assert_found(stateful("      event_time: at\n"), "GB330")
    assert found.severity == "error"


def test_with_a_watermark_it_has_one() -> None:
    text = stateful("      time: event\n      event_time: at\n", "timely").replace("▶", "")
    assert [found.code for found in check(text).diagnostics] == []


@pytest.mark.parametrize(
    ("asked", "time", "code", "said"),
    [
        ("handle.registerTimer(1)", "none", "GB330", "`Own` registers timers, and with `time: none`"),
        (
            "handle.getListState('n', 'n int', 5)",
            "none",
            "GB330",
            "which goes by the clock: with `time: none`",
        ),
        (STATE, "none", "GB339", "the state of `Own` grows with every new key"),
        (STATE, "processing", "GB339", "it has no timers and no time to live"),
    ],
)
def test_what_a_class_asks_for_fits_its_time(
    asked: str, time: str, code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_processors.py").write_text(processor(asked), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = assert_found(stateful(f"      time: {time}\n", module="own_processors"), code)
    assert said in found.message
    severity = "note" if code == "GB339" else "warning" if "Timer" in asked else "error"
    assert found.severity == severity


def test_a_time_to_live_that_may_be_none_is_nobody_s_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "handle.getListState('n', 'n int', ttlDurationMs=self.ttl)"
    (tmp_path / "own_processors.py").write_text(processor(asked), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert check(stateful(module="own_processors").replace("▶", "")).diagnostics == []


def test_with_the_clock_a_query_never_ends_by_itself() -> None:
    screen = "  screen: {gem: console, input: last, trigger: ▶▶{available_now: true}}\n"
    text = stateful("      time: processing\n").replace("▶", "").partition("  screen:")[0]
    found, _ = assert_found(text + screen, "GB330", "GB351")
    assert found.severity == "warning"
    assert "`last` goes by the clock" in found.message


@pytest.mark.parametrize(
    ("version", "form", "told"), [("4.0.1", "rows", 1), ("4.0.1", "pandas", 0), ("4.1.1", "rows", 0)]
)
def test_processors_of_rows_are_newer_than_those_of_data_frames(
    version: str, form: str, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version=version))
    text = stateful(f"      form: {form}\n").replace("▶", "")
    checked = check(text + "  other: {gem: console, input: last}\n")
    found = [d for d in checked.diagnostics if d.code == "GB370"]
    assert [(d.node, "`form: pandas`" in d.hint) for d in found] == [("last", True)] * told
