"""Settings that a checkpoint keeps: what a plan says of them goes by what the checkpoint has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare
from gem_bundle.changes.logs import Offsets
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


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("spark.sql.files.ignoreCorruptFiles", "true", "never read again"),
        ("spark.sql.files.ignoreMissingFiles", "true", "never read again"),
        ("spark.sql.streaming.fileStreamSink.ignoreMetadata", "true", "its log doesn't name"),
        ("spark.sql.streaming.noDataMicroBatches.enabled", "false", "with the rows that come next"),
    ],
)
def test_which_rows_come_and_when_leaves_state_right(key: str, value: str, said: str) -> None:
    given = BASE + f"spark: {{{key}: '{value}'}}\n"
    (change,) = verdict(BASE, given).changes
    assert (change.verdict, change.code, change.path) == ("from_now_on", "GB448", ("spark", key))
    assert said in change.message
    (back,) = verdict(given, BASE).changes
    assert back.verdict == "from_now_on"
    assert said not in back.message
    default = "true" if value == "false" else "false"
    assert not verdict(BASE, BASE + f"spark: {{{key}: '{default}'}}\n").changes


OVER_TIME = BASE.replace(
    "gem: file, input: named, options: {format: json, path: out}", "gem: console, input: named"
)


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (OVER_TIME, True),
        (OVER_TIME.replace("input: named}", "input: named, output_mode: update}"), False),
        (COLUMNS, False),
    ],
)
def test_a_micro_batch_without_rows_brings_nothing_but_what_waits_for_time(text: str, waits: bool) -> None:
    given = text + "spark: {spark.sql.streaming.noDataMicroBatches.enabled: 'false'}\n"
    assert [change.code for change in verdict(text, given).changes] == ["GB448"] * waits


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.binaryAsString", "true"),
        ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ],
)
def test_how_values_are_read_and_written_gets_into_state(key: str, value: str) -> None:
    for text, effect in ((BASE, "mixed"), (COLUMNS, "from_now_on")):
        (change,) = verdict(text, text + f"spark: {{{key}: '{value}'}}\n").changes
        assert (change.verdict, change.code) == (effect, "GB448")


@pytest.mark.parametrize(
    ("before", "after", "verdict_", "said"),
    [
        ("4.0.1", "4.1.1", "continues", "it reads what the other has left"),
        ("4.1.1", "4.1.0", "continues", "it reads what the other has left"),
        ("4.1.1", "4.0.1", "continues", "isn't known"),
        ("4.2.0", "4.1.1", "refused", "can't read"),
    ],
)
def test_that_an_earlier_spark_reads_a_checkpoint_is_not_promised(
    before: str, after: str, verdict_: str, said: str
) -> None:
    made = plan(COLUMNS)
    now = replace(version_of(made, "out"), spark=after)
    (change,) = compare(replace(now, spark=before), now, made, "out").changes
    assert (change.verdict, change.code) == (verdict_, "GB441")
    assert said in change.message


@pytest.mark.parametrize(
    ("read", "effect"), [("max(user)", "mixed"), ("max(USER)", "refused"), ("max(upper('USER'))", "mixed")]
)
def test_a_column_in_other_letters_is_a_value_of_sparks_where_letters_count(read: str, effect: str) -> None:
    text = BASE.replace("page string", "page string, user int").replace("max(n)", read)
    (change,) = verdict(text, text + "spark: {spark.sql.caseSensitive: 'true'}\n").changes
    assert (change.verdict, change.code) == (effect, "GB448")
