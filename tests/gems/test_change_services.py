"""What the gems of Kafka, of databases and of tables say of another value of their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.changes.rules.options import meaning_of
from gem_file.formats import formats_of
from tests.gems.test_change import gem

if TYPE_CHECKING:
    from gem_bundle import OptionChange

CLICKS: dict[str, Any] = {"bootstrap_servers": ["b:1"], "subscribe": ["clicks"]}
HOURS: dict[str, Any] = {"bootstrap_servers": ["b:1"], "topic": "hours"}
SHOP: dict[str, Any] = {"url": "jdbc:postgresql://localhost/shop"}
TOTALS: dict[str, Any] = {**SHOP, "table": "totals"}
ENABLED = "async_progress_tracking_enabled"


def found(kind: str, name: str, option: str, before: Any, **options: Any) -> OptionChange:
    """What the gem says, which is never nothing here."""
    change, known = meaning_of(gem(kind, name, **options), option, before, stateful=False)
    assert known
    return change


@pytest.mark.parametrize("after", [{}, {ENABLED: False}])
@pytest.mark.parametrize("before", [True, {"environment": True}])
def test_progress_that_was_written_beside_is_no_log_to_go_on_from(before: Any, after: dict[str, Any]) -> None:
    change = found("target", "kafka", ENABLED, before, **HOURS, **after)
    assert change.effect == "refused"
    assert "batch x doesn't exist" in change.why
    assert "`async_progress_tracking_checkpoint_interval_ms: 0`" in change.hint
    assert "two micro-batches" in change.hint


@pytest.mark.parametrize(
    ("before", "after"), [(None, {ENABLED: True}), (False, {ENABLED: True}), (False, {}), (None, {})]
)
def test_progress_can_be_written_beside_from_any_micro_batch_on(before: Any, after: dict[str, Any]) -> None:
    assert found("target", "kafka", ENABLED, before, **HOURS, **after).effect == "continues"


def test_how_often_progress_is_written_beside_changes_no_row() -> None:
    interval = "async_progress_tracking_checkpoint_interval_ms"
    assert found("target", "kafka", interval, 5, **HOURS, **{ENABLED: True}).effect == "continues"


def test_topics_that_are_given_up_are_to_be_read_to_their_end() -> None:
    change = found("source", "kafka", "subscribe", ["old"], **CLICKS, fail_on_data_loss=False)
    assert change.effect == "skipped"
    assert "never read" in change.why
    assert "accept the change" in change.hint


@pytest.mark.parametrize(
    ("before", "after", "effect", "why"),
    [
        ({}, {"kafka.isolation.level": "read_uncommitted"}, "from_now_on", "aborted"),
        ({"kafka.isolation.level": "read_committed"}, {}, "from_now_on", "aborted"),
        ({}, {"kafka.Isolation.Level": "read_committed"}, "from_now_on", "aborted"),
        ({}, {"kafka.check.crcs": False}, "from_now_on", "`kafka.check.crcs`"),
        ({}, {"kafka.fetch.min.bytes": 65536}, "continues", ""),
        ({"kafka.fetch.min.bytes": 1}, {"kafka.fetch.min.bytes": 65536}, "continues", ""),
        ({"kafka.ssl.protocol": "TLSv1.2", "kafka.client.rack": "a"}, {}, "continues", ""),
        (
            {"kafka.fetch.min.bytes": 1, "kafka.check.crcs": True},
            {"kafka.check.crcs": True},
            "continues",
            "",
        ),
        ({"kafka.fetch.min.bytes": 1}, {"kafka.check.crcs": True}, "from_now_on", "`kafka.check.crcs`"),
        (None, {"someday": 1}, "from_now_on", "`someday`"),
    ],
)
def test_raw_settings_of_a_kafka_source(before: Any, after: dict[str, Any], effect: str, why: str) -> None:
    change = found("source", "kafka", "spark_options", before, **CLICKS, spark_options=after)
    assert change.effect == effect
    assert why in change.why
    assert change.why


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({}, {"kafka.partitioner.class": "a.B"}, "from_now_on"),
        ({"kafka.interceptor.classes": "a.B"}, {}, "from_now_on"),
        ({}, {"kafka.retries": 3}, "continues"),
        ({}, {"kafka.send.buffer.bytes": 1, "kafka.ssl.protocol": "TLSv1.3"}, "continues"),
    ],
)
def test_raw_settings_of_a_kafka_target(before: Any, after: dict[str, Any], effect: str) -> None:
    change = found("target", "kafka", "spark_options", before, **HOURS, spark_options=after)
    assert change.effect == effect
    assert change.why


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ({}, {"currentSchema": "web"}, "from_now_on"),
        ({"stringtype": "unspecified"}, {}, "from_now_on"),
        ({}, {"reWriteBatchedInserts": True}, "continues"),
        ({"batchsize": 10}, {"batchsize": 20, "queryTimeout": 5}, "continues"),
        ({"sslmode": "require"}, {"sslmode": "verify-full", "ApplicationName": "totals"}, "continues"),
        ({"sslmode": "require"}, {"sslmode": "require", "options": "-c x=y"}, "from_now_on"),
    ],
)
def test_raw_settings_of_a_jdbc_target(before: Any, after: dict[str, Any], effect: str) -> None:
    change = found("target", "jdbc", "spark_options", before, **TOTALS, spark_options=after)
    assert change.effect == effect
    assert change.why


@pytest.mark.parametrize(
    ("option", "before", "after"),
    [
        ("query", "select * from a", {"query": "select * from b"}),
        ("query", None, {"query": "select * from b"}),
        ("table", "a", {"query": "select * from b"}),
        ("table", "a", {"table": "b"}),
        ("table", None, {"table": "b"}),
        ("query", "select * from a", {"table": "b"}),
    ],
)
def test_smaller_values_of_other_rows_are_never_read(option: str, before: Any, after: dict[str, Any]) -> None:
    change = found("source", "jdbc", option, before, **SHOP, **after, increasing="id")
    assert change.effect == "skipped"
    assert "smaller" in change.why
    assert "another id" in change.hint
    assert found("source", "jdbc", option, before, **SHOP, **after).effect == "from_now_on"


def test_a_table_with_a_key_takes_none_twice() -> None:
    change = found("target", "jdbc", "upsert", {"on": ["id"], "sequence_by": "at"}, **TOTALS)
    assert change.effect == "refused"
    assert "unique key" in change.why
    assert "`id`" in change.why
    assert "another table" in change.hint
    # What isn't known of it is not told.
    assert found("target", "jdbc", "upsert", {"secret": True}, **TOTALS).effect == "refused"


@pytest.mark.parametrize(
    ("before", "on", "effect", "hint"),
    [
        (None, ["id"], "refused", "CREATE UNIQUE INDEX"),
        ({"on": ["id"], "sequence_by": None}, ["id", "day"], "refused", "take away the old one"),
        ({"on": ["id", "day"], "sequence_by": None}, ["id"], "refused", "take away the old one"),
        ({"on": {"environment": True}, "sequence_by": None}, ["id"], "refused", "CREATE UNIQUE INDEX"),
        # The index is asked for by its columns, whatever their order, and names by Spark's rules.
        ({"on": ["day", "ID"], "sequence_by": None}, ["id", "day"], "continues", ""),
        ({"on": ["id"], "sequence_by": "at"}, ["id"], "from_now_on", ""),
        ({"on": ["day", "id"], "sequence_by": "at"}, ["id", "day"], "from_now_on", ""),
    ],
)
def test_another_key_is_one_that_the_table_has_to_have(
    before: Any, on: list[str], effect: str, hint: str
) -> None:
    change = found("target", "jdbc", "upsert", before, **TOTALS, upsert={"on": on})
    assert change.effect == effect
    assert hint in change.hint
    assert change.why


@pytest.mark.parametrize(
    ("option", "hint"), [("staging_schema", "SET SCHEMA"), ("transaction_table", "RENAME TO")]
)
def test_a_table_of_transactions_elsewhere_does_not_know_the_last_micro_batch(option: str, hint: str) -> None:
    change = found("target", "jdbc", option, "former", **TOTALS)
    assert change.effect == "again"
    assert "the last one" in change.why
    assert hint in change.hint
    without = found("target", "jdbc", option, "former", **TOTALS, transactional=False)
    assert without.effect == "continues"


@pytest.mark.parametrize(
    ("before", "after", "effect", "why"),
    [
        (None, False, "from_now_on", "is written again, the last one too"),
        (True, False, "from_now_on", "is written again, the last one too"),
        (False, True, "from_now_on", "are written once"),
        (False, None, "from_now_on", "are written once"),
        (None, True, "continues", "by default"),
    ],
)
def test_without_transactions_rows_come_at_least_once(before: Any, after: Any, effect: str, why: str) -> None:
    change = found("target", "jdbc", "transactional", before, **TOTALS, transactional=after)
    assert change.effect == effect
    assert why in change.why


def test_who_asks_a_database_and_how_a_connection_begins() -> None:
    orders: dict[str, Any] = {**SHOP, "table": "orders"}
    user = found("source", "jdbc", "user", "a", **orders, user="b")
    assert user.effect == "continues"
    assert "some users only" in user.why
    first = found("source", "jdbc", "session_init_statement", None, **orders, session_init_statement="set a")
    assert first.effect == "from_now_on"
    assert "begin with it" in first.why


@pytest.mark.parametrize(
    ("form", "before", "after", "effect"),
    [
        ("csv", {}, {"sep": ";"}, "mixed"),
        ("csv", {"header": True}, {}, "mixed"),
        ("CSV", {"timestampFormat": "a"}, {"timestampFormat": "b"}, "mixed"),
        ("csv", {}, {"delimiter": ";"}, "mixed"),
        ("json", {}, {"encoding": "UTF-16"}, "mixed"),
        ("xml", {"rowTag": "book"}, {"rowTag": "page"}, "mixed"),
        ("csv", {}, {"compression": "gzip"}, "continues"),
        ("csv", {"sep": ";"}, {"sep": ";", "maxRecordsPerFile": 5}, "continues"),
        ("csv", {"compression": "gzip"}, {"sep": ";"}, "mixed"),
        ("csv", {}, {"quoteAll": True}, "from_now_on"),
        ("parquet", {}, {"compression": "zstd"}, "continues"),
        ("parquet", {}, {"parquet.bloom.filter.enabled": True}, "from_now_on"),
        # No format is named: it may be a table of files.
        (None, {}, {"sep": ";"}, "mixed"),
        (None, {}, {"mergeSchema": True}, "from_now_on"),
        ("delta", {}, {"sep": ";"}, "from_now_on"),
        ("delta", {}, {"mergeSchema": True}, "from_now_on"),
        ("csv", {"sep": {"environment": True}}, {"sep": ";"}, "mixed"),
    ],
)
def test_raw_options_of_a_table(form: str | None, before: Any, after: dict[str, Any], effect: str) -> None:
    change = found("target", "table", "spark_options", before, table="t", format=form, spark_options=after)
    assert change.effect == effect
    assert change.why
    assert bool(change.hint) == (effect == "mixed")


def test_a_table_says_what_the_files_of_a_folder_do() -> None:
    """Whatever mixes the files of a folder mixes those of a table."""
    kept = {"schema", "path", "format", "partition_by", "save_mode", "spark_options"}
    compared = 0
    for form in ("csv", "json", "text", "xml", "parquet", "orc", "avro"):
        row_tag = {"row_tag": "book"} if form == "xml" else {}
        folder = gem("target", "file", format=form, path="t", **row_tag)
        options = type(folder.options)
        for option, info in options.model_fields.items():
            if option in kept or form not in (formats_of(info) or [form]):
                continue
            of_folder = meaning_of(folder, option, None, stateful=False)[0].effect
            raw = {options.spark_name(option): "x"}
            of_table = found(
                "target", "table", "spark_options", {}, table="t", format=form, spark_options=raw
            )
            assert of_table.effect == of_folder, (form, option)
            compared += 1
    assert compared > 50
