"""The time zone of a run that no setting gives: recorded where it is known, and another one is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes import zone
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from tests.core.changes.edits import BASE, COLUMNS, plan

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.changes.record import VersionRecord

SAID = "spark: {spark.sql.session.timeZone: Europe/Oslo}\n"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine in Oslo on which no session runs yet."""
    for name in zone._ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(zone, "_of_session", lambda: None)
    monkeypatch.setenv("TZ", "Europe/Oslo")


def version(text: str) -> VersionRecord:
    return version_of(plan(text), "out")


@pytest.mark.parametrize(
    ("given", "known"),
    [("Europe/Oslo", "Europe/Oslo"), (":Etc/UTC", "UTC"), ("UTC", "UTC"), ("nowhere", ""), ("../etc", "")],
)
def test_it_is_the_one_of_the_environment(given: str, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", given)
    assert zone.machine_zone() == known


@pytest.mark.parametrize(
    ("link", "known"), [("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"), ("/tmp/own", ""), ("", "")]
)
def test_else_the_one_of_the_machine(
    link: str, known: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", "")
    monkeypatch.setattr(zone, "_LOCAL", tmp_path / "localtime")
    if link:
        (tmp_path / "localtime").symlink_to(link)
    assert zone.machine_zone() == known


@pytest.mark.parametrize("name", [*zone._ELSEWHERE, "JAVA_TOOL_OPTIONS"])
def test_of_a_spark_that_others_start_it_isnt_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert version(BASE).zone == "Europe/Oslo"
    monkeypatch.setenv(name, "-Duser.timezone=UTC")
    assert version(BASE).zone == ""


@pytest.mark.parametrize(("session", "known"), [("Europe/Oslo", "Europe/Oslo"), ("UTC", ""), ("", "")])
def test_a_session_that_runs_has_the_last_word(
    session: str, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zone, "_of_session", lambda: session)
    assert version(BASE).zone == known


def test_what_lies_elsewhere_may_be_looked_at_from_elsewhere() -> None:
    assert version(BASE.replace("pipeline: shop", "pipeline: shop\ncheckpoints: s3a://b/c")).zone == ""
    assert version(BASE + SAID).zone == ""


@pytest.mark.parametrize(("text", "verdict"), [(BASE, "mixed"), (COLUMNS, "from_now_on")])
def test_another_machine_with_another_one_is_told(text: str, verdict: str) -> None:
    now = version(text)
    before = replace(now, zone="Asia/Tokyo")
    assert not before.is_same(now)
    found = compare(before, now, plan(text), "out")
    (change,) = found.changes
    assert (change.verdict, change.code) == (verdict, "GB448")
    assert (change.before, change.after) == ("Asia/Tokyo", "Europe/Oslo")
    assert "was the machine's own `Asia/Tokyo` and is the machine's own `Europe/Oslo`" in change.message
    if change.stops:
        assert "`spark.sql.session.timeZone: Asia/Tokyo` under `spark`" in change.hint


def test_what_the_machine_had_may_be_said() -> None:
    before = version(BASE)
    now = version(BASE + SAID)
    assert not compare(before, now, plan(BASE + SAID), "out").changes
    assert not compare(now, before, plan(BASE), "out").changes
    tokyo = compare(replace(before, zone="Asia/Tokyo"), now, plan(BASE + SAID), "out")
    assert [change.code for change in tokyo.changes] == ["GB448"]


@pytest.mark.parametrize("one", ["", "Asia/Tokyo"])
def test_where_it_isnt_known_nothing_is_said(one: str) -> None:
    now = version(BASE)
    before, after = replace(now, zone=one), replace(now, zone="")
    assert before.is_same(after)
    assert after.is_same(before)
    other = replace(before, spark="4.2.1")
    assert "GB448" not in {c.code for c in compare(other, after, plan(BASE), "out").changes}
    assert "GB448" not in {c.code for c in compare(after, other, plan(BASE), "out").changes}
