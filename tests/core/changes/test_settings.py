"""Settings that a checkpoint keeps: what a plan says of them goes by what the checkpoint has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import Offsets, SparkCheckpoint
from gem_bundle.changes.compare import compare
from gem_bundle.contexts import SOURCE_NAMING
from tests.core.changes.edits import BASE, COLUMNS, plan, verdict

PARTITIONS = "spark.sql.shuffle.partitions"


def told(
    key: str, before: str | None, after: str | None, left: str | None, log: str = "v2"
) -> list[tuple[str, str, str]]:
    """What is said of another value of a setting, where the checkpoint has one of its own."""
    made = plan(COLUMNS + (f"spark: {{{key}: '{after}'}}\n" if after is not None else ""))
    ran = replace(version_of(made, "out"), settings={} if before is None else {key: before})
    kept = SparkCheckpoint(
        "/shop/checkpoints/shop/out",
        offsets=(Offsets(0, log, settings={} if left is None else {key: left}, sources={"clicks": 1}),),
    )
    found = compare(ran, version_of(made, "out"), made, "out", checkpoint=kept)
    return [(change.verdict, change.code, change.message) for change in found.changes]


@pytest.mark.parametrize("before", [None, "8"])
def test_a_value_that_the_checkpoint_has_is_no_change(before: str | None) -> None:
    assert told(PARTITIONS, before, "5", "5") == []


@pytest.mark.parametrize(
    ("before", "after", "left", "keeps"),
    [
        (None, "5", "200", "keeps `200` of its first run"),
        ("8", "5", "200", "keeps `200` of its first run"),
        ("8", "5", "8", "keeps the value of its first run"),
        ("8", "5", None, "keeps the value of its first run"),
        (None, "5", None, "keeps the value of its first run"),
        ("8", None, "200", "keeps `200` of its first run"),
    ],
)
def test_another_one_has_no_effect(
    before: str | None, after: str | None, left: str | None, keeps: str
) -> None:
    ((verdict, code, message),) = told(PARTITIONS, before, after, left)
    assert (verdict, code) == ("continues", "GB440")
    assert keeps in message


@pytest.mark.parametrize(
    ("before", "after", "log", "verdicts"),
    [
        ("true", None, "v2", []),
        (None, "true", "v2", []),
        # An earlier Spark made it, which has no names to give.
        (None, "false", "v1", []),
        (None, "false", "v2", ["refused"]),
        ("false", None, "v1", ["refused"]),
    ],
)
def test_named_sources_are_there_or_not(
    before: str | None, after: str | None, log: str, verdicts: list[str]
) -> None:
    found = told(SOURCE_NAMING, before, after, None, log)
    assert [verdict for verdict, _, _ in found] == verdicts


ZONE = "spark.sql.session.timeZone"


def test_a_change_of_a_setting_stands_at_its_line() -> None:
    given = f"spark:\n  {PARTITIONS}: 9\n  {ZONE}: Asia/Tokyo\n"
    changes = verdict(BASE, BASE + given).changes
    first = BASE.count("\n") + 2
    assert [(c.code, c.path, c.place.line) for c in changes] == [
        ("GB440", ("spark", PARTITIONS), first),
        ("GB448", ("spark", ZONE), first + 1),
    ]
    without_state = COLUMNS + given
    found = verdict(COLUMNS, without_state).changes
    assert ("GB448", ("spark", ZONE)) in [(c.code, c.path) for c in found]


def test_one_that_the_file_does_not_give_any_more_stands_nowhere_in_it() -> None:
    (change,) = verdict(BASE + f"spark: {{{PARTITIONS}: 9}}\n", BASE).changes
    assert (change.code, change.path) == ("GB440", ())
