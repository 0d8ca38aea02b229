"""The options of the Kafka gems: what they take, what Spark gets, and what is refused with which sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, Options
from gem_kafka.connection import login_entry
from gem_kafka.reading import KafkaSourceOptions
from gem_kafka.source import KafkaSource
from gem_kafka.target import KafkaTarget
from gem_kafka.types import milliseconds
from gem_kafka.writing import KafkaTargetOptions

SERVERS = {"bootstrap_servers": "localhost:9092"}
CLICKS = {**SERVERS, "subscribe": "clicks"}
OUT = {**SERVERS, "topic": "out"}
LOGIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "sally",
    "sasl_password": "open-sesame",
}


def source(**raw: Any) -> KafkaSourceOptions:
    return KafkaSourceOptions.model_validate(raw, context={"base_dir": Path("/pipelines")})


def target(**raw: Any) -> KafkaTargetOptions:
    return KafkaTargetOptions.model_validate(raw, context={"base_dir": Path("/pipelines")})


def problem(kind: type[Options], **raw: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(raw)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


# What Spark gets


@pytest.mark.parametrize(
    ("raw", "spark"),
    [
        ({"subscribe": ["a", "b"]}, {"subscribe": "a,b"}),
        ({"subscribe": "a, b"}, {"subscribe": "a,b"}),
        ({"subscribe_pattern": "a.*"}, {"subscribePattern": "a.*"}),
        ({"assign": {"a": [0, 2]}}, {"assign": '{"a": [0, 2]}'}),
        ({"assign": '{"a":[0,2]}'}, {"assign": '{"a": [0, 2]}'}),
    ],
)
def test_what_is_read(raw: dict[str, Any], spark: dict[str, str]) -> None:
    assert source(**SERVERS, **raw).to_spark() == {"kafka.bootstrap.servers": "localhost:9092", **spark}


SOURCE_OPTIONS = [
    ({"starting_offsets": "EARLIEST"}, {"startingOffsets": "earliest"}),
    ({"starting_offsets": "latest"}, {"startingOffsets": "latest"}),
    ({"starting_timestamp": 1000}, {"startingTimestamp": "1000"}),
    ({"starting_timestamp": "2013-01-01T00:00:00Z"}, {"startingTimestamp": "1356998400000"}),
    ({"starting_timestamp": datetime(2013, 1, 1, tzinfo=UTC)}, {"startingTimestamp": "1356998400000"}),
    (
        {"starting_timestamp": "1000", "starting_offsets_by_timestamp_strategy": "latest"},
        {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "latest"},
    ),
    ({"ending_offsets": "latest"}, {"endingOffsets": "latest"}),
    ({"ending_timestamp": "2013-01-01T01:00:00+01:00"}, {"endingTimestamp": "1356998400000"}),
    (
        {
            "max_offsets_per_trigger": 10,
            "min_offsets_per_trigger": 5,
            "max_trigger_delay": "1 minute 30 seconds",
        },
        {"maxOffsetsPerTrigger": "10", "minOffsetsPerTrigger": "5", "maxTriggerDelay": "90000ms"},
    ),
    (
        {"min_offsets_per_trigger": 5, "max_trigger_delay": "15m"},
        {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "900000ms"},
    ),
    ({"include_headers": True}, {"includeHeaders": "true"}),
    ({"fail_on_data_loss": False}, {"failOnDataLoss": "false"}),
    ({"min_partitions": 8}, {"minPartitions": "8"}),
    ({"max_records_per_partition": 8}, {"maxRecordsPerPartition": "8"}),
    ({"group_id_prefix": "team"}, {"groupIdPrefix": "team"}),
    ({"group_id": "team"}, {"kafka.group.id": "team"}),
    ({"kafka_consumer_poll_timeout_ms": 5}, {"kafkaConsumer.pollTimeoutMs": "5"}),
    ({"fetch_offset_num_retries": 5}, {"fetchOffset.numRetries": "5"}),
    ({"fetch_offset_retry_interval_ms": 5}, {"fetchOffset.retryIntervalMs": "5"}),
    ({"client_id": "me"}, {"kafka.client.id": "me"}),
    ({"request_timeout": "10 seconds"}, {"kafka.request.timeout.ms": "10000"}),
    ({"request_timeout": 10000}, {"kafka.request.timeout.ms": "10000"}),
    ({"spark_options": {"kafka.fetch.min.bytes": 1}}, {"kafka.fetch.min.bytes": "1"}),
]


@pytest.mark.parametrize(("raw", "spark"), SOURCE_OPTIONS)
def test_options_of_the_source(raw: dict[str, Any], spark: dict[str, str]) -> None:
    found = source(**CLICKS, **raw).to_spark()
    assert found == {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "clicks", **spark}


@pytest.mark.parametrize(
    ("raw", "spark"),
    [
        ({"acks": "all"}, {"kafka.acks": "all"}),
        ({"compression_type": "zstd"}, {"kafka.compression.type": "zstd"}),
        (
            {"enable_idempotence": False, "acks": "1"},
            {"kafka.enable.idempotence": "false", "kafka.acks": "1"},
        ),
        ({"batch_size": 1, "linger_ms": 2}, {"kafka.batch.size": "1", "kafka.linger.ms": "2"}),
        ({"max_request_size": 3}, {"kafka.max.request.size": "3"}),
        ({"buffer_memory": 4}, {"kafka.buffer.memory": "4"}),
        ({"delivery_timeout": "2 minutes"}, {"kafka.delivery.timeout.ms": "120000"}),
        ({"max_block": "5 s"}, {"kafka.max.block.ms": "5000"}),
        ({"key": "id", "value": "v", "headers": "h", "partition": "1"}, {}),
        ({"async_progress_tracking_enabled": True}, {}),
    ],
)
def test_options_of_the_target(raw: dict[str, Any], spark: dict[str, str]) -> None:
    found = target(**OUT, **raw).to_spark()
    assert found == {"kafka.bootstrap.servers": "localhost:9092", "topic": "out", **spark}


def test_progress_options_are_for_the_query_and_not_for_the_connector() -> None:
    options = target(
        **OUT, async_progress_tracking_enabled=True, async_progress_tracking_checkpoint_interval_ms=0
    )
    assert options.progress_options() == {
        "asyncProgressTrackingEnabled": "true",
        "asyncProgressTrackingCheckpointIntervalMs": "0",
    }
    assert target(**OUT).progress_options() == {}


def test_every_option_can_be_written_as_in_sparks_guide() -> None:
    for name in (
        "kafka.bootstrap.servers",
        "subscribePattern",
        "startingOffsetsByTimestamp",
        "failOnDataLoss",
    ):
        assert KafkaSourceOptions.canonical(name) is not None
    assert KafkaSourceOptions.canonical("kafkaConsumer.pollTimeoutMs") == "kafka_consumer_poll_timeout_ms"
    assert KafkaSourceOptions.canonical("KAFKA.GROUP.ID") == "group_id"
    assert KafkaTargetOptions.canonical("asyncProgressTrackingEnabled") == "async_progress_tracking_enabled"
    assert KafkaTargetOptions.canonical("kafka.linger.ms") == "linger_ms"


@pytest.mark.parametrize(
    ("duration", "wanted"),
    [
        ("1 ms", 1),
        ("1500us", 2),
        ("1.5 s", 1500),
        ("2 hrs", 7_200_000),
        ("1 week 1 day", 691_200_000),
        ("0 s", 0),
    ],
)
def test_milliseconds(duration: str, wanted: int) -> None:
    assert milliseconds(duration) == wanted


@pytest.mark.parametrize(("value", "said"), [("1 month", "no fixed length"), ("soon", "a number and a unit")])
def test_a_duration_that_can_not_be_used(value: str, said: str) -> None:
    assert said in problem(KafkaSourceOptions, **CLICKS, request_timeout=value)


# Places in topics


@pytest.mark.parametrize(
    "value",
    [
        {"a": {0: 23, 1: -1}, "b": {0: -2}},
        {"a": {"0": "23", "1": "latest"}, "b": {"0": "earliest"}},
        '{"a":{"0":23,"1":-1},"b":{"0":-2}}',
    ],
    ids=["YAML", "words", "JSON"],
)
def test_starting_offsets_for_each_partition(value: Any) -> None:
    options = source(**SERVERS, subscribe=["a", "b"], starting_offsets=value)
    assert json.loads(options.to_spark()["startingOffsets"]) == {"a": {"0": 23, "1": -1}, "b": {"0": -2}}


def test_a_time_for_each_partition() -> None:
    options = source(**CLICKS, starting_offsets_by_timestamp={"clicks": {0: "2013-01-01T00:00:00Z", 1: 5}})
    written = options.to_spark()["startingOffsetsByTimestamp"]
    assert json.loads(written) == {"clicks": {"0": 1356998400000, "1": 5}}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("starting_offsets", "first", "write `earliest`, `latest`, or offsets"),
        ("starting_offsets", {}, "mapping of topic to partition"),
        ("starting_offsets", {"clicks": 5}, "`clicks` needs a mapping of its partitions"),
        ("starting_offsets", {"clicks": {0: -3}}, "an offset is a whole number from 0 on"),
        ("starting_offsets", {"clicks": {0: True}}, "not `True`"),
        ("starting_offsets", {"clicks": {-1: 0}}, "partitions are whole numbers from 0 on"),
        ("starting_offsets", '{"clicks":', "not JSON"),
        ("ending_offsets", "earliest", "can't end where the topics start"),
        ("ending_offsets", {"clicks": {3: "earliest"}}, "partition 3 of `clicks`"),
        ("starting_timestamp", "yesterday", "write a time with its zone"),
        ("starting_timestamp", "2013-01-01T00:00:00", "has no time zone"),
        ("starting_timestamp", -5, "can't be negative"),
        ("starting_timestamp", 1.5, "write a time with its zone"),
        ("ending_offsets_by_timestamp", {"clicks": {0: "noon"}}, "write a time with its zone"),
    ],
)
def test_a_place_that_does_not_exist(name: str, value: Any, said: str) -> None:
    assert said in problem(KafkaSourceOptions, **CLICKS, **{name: value})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "write the partitions of each topic"),
        ({"a": []}, "`a` needs a list of partitions"),
        ({"a": [0, 0]}, "partition 0 of `a` is named twice"),
        ({"a": ["x"]}, "`x` of `a` isn't one"),
        ([0, 1], "write the partitions of each topic"),
    ],
)
def test_partitions_that_can_not_be_assigned(value: Any, said: str) -> None:
    assert said in problem(KafkaSourceOptions, **SERVERS, assign=value)


@pytest.mark.parametrize("name", ["my topic", "", "a/b", ".", "x" * 250])
def test_names_that_no_topic_has(name: str) -> None:
    assert "topics are named with" in problem(KafkaTargetOptions, **SERVERS, topic=name)
    assert "topics are named with" in problem(KafkaSourceOptions, **SERVERS, subscribe=["ok", name])


# What doesn't go together


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "say what to read: one of `subscribe`, `subscribe_pattern` or `assign`"),
        ({"subscribe": "a", "assign": {"a": [0]}}, "`subscribe` and `assign` can't be used together"),
        (
            {"subscribe": "a", "starting_offsets": "earliest", "starting_timestamp": 5},
            "Spark would use only `starting_timestamp`",
        ),
        (
            {"subscribe": "a", "ending_offsets": "latest", "ending_offsets_by_timestamp": {"a": {0: 5}}},
            "Spark would use only `ending_offsets_by_timestamp`",
        ),
        (
            {"subscribe": "a", "starting_offsets_by_timestamp_strategy": "latest"},
            "no effect without `starting_timestamp`",
        ),
        (
            {"subscribe": "a", "min_offsets_per_trigger": 9, "max_offsets_per_trigger": 8},
            "(9) can't be more than `max_offsets_per_trigger` (8)",
        ),
        ({"subscribe": "a", "max_trigger_delay": "5 s"}, "no effect without `min_offsets_per_trigger`"),
        ({"subscribe": "a", "fetch_offset_num_retries": 0}, "greater than or equal to 1"),
        ({"subscribe": "a", "group_id": "g", "group_id_prefix": "p"}, "no effect beside `group_id`"),
        ({"subscribe": "a", "starting_offsets": {"b": {0: 1}}}, "topic `b`, which is not read"),
        ({"subscribe": "a,b", "starting_offsets": {"b": {0: 1}}}, "every topic that is read; `a` is missing"),
        ({"assign": {"a": [0, 1]}, "starting_offsets": {"a": {0: 1}}}, "partition 1 of `a` is missing"),
        (
            {"assign": {"a": [0]}, "ending_offsets": {"a": {0: 1, 4: 1}}},
            "partition 4 of `a` is not in `assign`",
        ),
        (
            {"subscribe": "a", "starting_offsets": {"a": {0: 1}}, "ending_offsets": {"a": {1: 1}}},
            "only one of them has partition 0 of `a`",
        ),
        (
            {"subscribe": "a", "starting_offsets": {"a": {0: 9}}, "ending_offsets": {"a": {0: 8}}},
            "partition 0 of `a` ends at 8, before it starts at 9",
        ),
    ],
)
def test_options_of_the_source_that_do_not_go_together(raw: dict[str, Any], said: str) -> None:
    assert said in problem(KafkaSourceOptions, **SERVERS, **raw)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"topic": "a", "topic_column": "b"}, "`topic` sends all rows to one topic"),
        ({"headers": "h", "include_headers": True}, "`headers` and `include_headers`"),
        ({"enable_idempotence": True, "acks": "1"}, "needs `acks: all`, not 1"),
        ({"async_progress_tracking_checkpoint_interval_ms": 5}, "`async_progress_tracking_enabled: true`"),
        ({"spark_options": {"kafka.transactional.id": "x"}}, "does not use Kafka's transactions"),
        ({"spark_options": {"kafka.value.serializer": "x"}}, "as they are, text or bytes"),
    ],
)
def test_options_of_the_target_that_do_not_go_together(raw: dict[str, Any], said: str) -> None:
    assert said in problem(KafkaTargetOptions, **SERVERS, **raw)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("kafka.auto.offset.reset", "use `starting_offsets`"),
        ("Kafka.Key.Deserializer", "turn them into columns with transforms"),
        ("kafka.value.deserializer", "turn them into columns with transforms"),
        ("kafka.enable.auto.commit", "commits none to Kafka"),
        ("kafka.interceptor.classes", "an interceptor can change records"),
        ("kafka.sasl.jaas.config", "is the option `sasl_jaas_config`; set that one"),
        ("maxOffsetsPerTrigger", "is the option `max_offsets_per_trigger`; set that one"),
    ],
)
def test_raw_options_that_are_refused(key: str, said: str) -> None:
    assert said in problem(KafkaSourceOptions, **CLICKS, spark_options={key: "x"})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"sasl_mechanism": "PLAIN"},
            "no effect with `security_protocol: PLAINTEXT`; set it to `SASL_SSL` or",
        ),
        (
            {"security_protocol": "SASL_PLAINTEXT", "ssl_truststore_type": "PEM"},
            "set it to `SASL_SSL` or `SSL`",
        ),
        ({**LOGIN, "sasl_password": None}, "`sasl_password` is missing"),
        ({**LOGIN, "sasl_username": None}, "`sasl_username` is missing"),
        ({**LOGIN, "sasl_jaas_config": "x"}, "`sasl_jaas_config` already says who logs in"),
        (
            {**LOGIN, "sasl_mechanism": "GSSAPI"},
            "a `sasl_mechanism` that takes them: `PLAIN`, `SCRAM-SHA-256`",
        ),
        ({**LOGIN, "sasl_mechanism": None}, "a `sasl_mechanism` that takes them"),
        (
            {"security_protocol": "SSL", "ssl_truststore_location": "a", "ssl_truststore_certificates": "b"},
            "two places for one thing",
        ),
        ({"security_protocol": "SSL", "ssl_keystore_key": "b"}, "needs `ssl_keystore_certificate_chain`"),
        (
            {"security_protocol": "SSL", "ssl_truststore_certificates": "b", "ssl_truststore_type": "JKS"},
            "is PEM text, and `ssl_truststore_type` says JKS",
        ),
        (
            {"security_protocol": "SSL", "ssl_keystore_type": "PEM", "ssl_keystore_password": "p"},
            "the key's own password is `ssl_key_password`",
        ),
    ],
)
def test_connection_options_that_do_not_go_together(raw: dict[str, Any], said: str) -> None:
    assert said in problem(KafkaSourceOptions, **CLICKS, **raw)


@pytest.mark.parametrize("url", ["s3a://bucket/trust.jks", "dbfs:/trust.jks"])
def test_stores_are_local_files(url: str) -> None:
    said = problem(KafkaSourceOptions, **CLICKS, security_protocol="SSL", ssl_truststore_location=url)
    assert "reads only local files" in said


# Secrets


def test_the_login_entry() -> None:
    spark = source(**CLICKS, **LOGIN).to_spark()
    assert spark["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="sally" password="open-sesame";'
    )
    assert spark["kafka.security.protocol"] == "SASL_SSL"
    assert spark["kafka.sasl.mechanism"] == "PLAIN"
    assert not any(name.endswith(("username", "password")) for name in spark)


def test_the_login_entry_on_databricks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "18.0")
    assert login_entry("SCRAM-SHA-512", "u", "p").startswith(
        "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required "
    )


SECRETS = {
    "sasl_jaas_config": "hidden-jaas",
    "ssl_truststore_password": "hidden-trust",
    "ssl_keystore_password": "hidden-store",
    "ssl_key_password": "hidden-key",
}


@pytest.mark.parametrize(
    ("option", "expression", "code"),
    [
        ("key", "ide", "GB210"),
        ("value", "to_json(struct(*))", None),
        ("value", "upper(nothing)", "GB210"),
        ("headers", "map('id', id, 'at', att)", "GB210"),
        ("partition", "cast(id as integr)", "GB214"),
        ("partition", "id % 3", None),
    ],
)
def test_expressions_of_the_target_are_checked(option: str, expression: str, code: str | None) -> None:
    rows = Facts(columns=(Column("id", "int"), Column("at", "timestamp")))
    found = list(KafkaTarget(target(**OUT, **{option: expression})).check(rows))
    assert [(finding.code, finding.option) for finding in found] == ([(code, option)] if code else [])


def test_secrets_are_not_shown() -> None:
    options = [
        source(**CLICKS, security_protocol="SASL_SSL", sasl_mechanism="GSSAPI", **SECRETS),
        source(**CLICKS, **LOGIN),
        target(**OUT, **LOGIN, ssl_keystore_key="hidden-pem", ssl_keystore_certificate_chain="chain"),
    ]
    for one in options:
        values = one.secrets()
        assert values
        shown = repr(one) + str(one) + one.model_dump_json() + str(one.model_dump()) + repr(vars(one))
        assert not [value for value in values if value in shown]


def test_every_secret_is_declared_as_one() -> None:
    wanted = {"sasl_password", "sasl_jaas_config", "ssl_truststore_password", "ssl_keystore_password"}
    wanted |= {"ssl_key_password", "ssl_keystore_key"}
    assert set(KafkaSourceOptions.secret_names()) == set(KafkaTargetOptions.secret_names()) == wanted


def test_messages_do_not_quote_secrets() -> None:
    with pytest.raises(ValidationError) as caught:
        source(**CLICKS, security_protocol="SASL_SSL", sasl_password="open-sesame", subscribe_pattern="x")
    assert "open-sesame" not in str(caught.value)


def test_pem_texts_say_that_they_are_pem() -> None:
    spark = source(
        **CLICKS,
        security_protocol="SSL",
        ssl_truststore_certificates="T",
        ssl_keystore_certificate_chain="C",
        ssl_keystore_key="K",
    ).to_spark()
    assert spark["kafka.ssl.truststore.type"] == spark["kafka.ssl.keystore.type"] == "PEM"
    assert spark["kafka.ssl.keystore.key"] == "K"


def test_stores_are_relative_to_the_pipeline_file() -> None:
    options = source(**CLICKS, security_protocol="SSL", ssl_truststore_location="certs/trust.jks")
    assert options.to_spark()["kafka.ssl.truststore.location"] == "/pipelines/certs/trust.jks"


# What the checker learns


def test_the_columns_of_a_record() -> None:
    facts = KafkaSource(source(**CLICKS)).infer()
    assert facts.columns is not None
    assert [column.name for column in facts.columns] == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    assert facts.column("headers") is None
    with_headers = KafkaSource(source(**CLICKS, include_headers=True)).infer()
    assert with_headers.column("headers") == Column("headers", "array<struct<key:string,value:binary>>")


@pytest.mark.parametrize(
    ("raw", "starts", "limit"),
    [
        ({}, "earliest", 1000),
        ({"starting_offsets": "latest", "max_offsets_per_trigger": 5}, "earliest", 5),
        ({"starting_offsets": "latest", "max_offsets_per_trigger": 10**6}, "earliest", 1000),
        ({"starting_offsets": {"clicks": {0: 7, 1: -1}}}, {"clicks": {0: 7, 1: -2}}, 1000),
        ({"starting_timestamp": 5, "min_offsets_per_trigger": 9, "max_trigger_delay": "1 h"}, None, 1000),
    ],
)
def test_a_preview_reads_a_few_of_the_oldest_records(raw: dict[str, Any], starts: Any, limit: int) -> None:
    before = KafkaSource(source(**CLICKS, **raw))
    options = before.for_preview().options
    assert isinstance(options, KafkaSourceOptions)
    assert options.starting_offsets == starts
    assert options.max_offsets_per_trigger == limit
    assert options.to_spark()["maxOffsetsPerTrigger"] == str(limit)
    assert "maxTriggerDelay" not in options.to_spark()
    assert "minOffsetsPerTrigger" not in options.to_spark()
    assert before.options == source(**CLICKS, **raw)


def test_semantics() -> None:
    assert {"continuous", "real_time"} <= KafkaSource.semantics.triggers
    assert KafkaSource.semantics.replayable
    plain = KafkaTarget(target(**OUT))
    assert plain.semantics.delivery == "at_least_once"
    assert {"available_now", "once", "continuous", "real_time"} <= plain.semantics.triggers
    assert plain.semantics.async_progress is None
    asynchronous = KafkaTarget(target(**OUT, async_progress_tracking_enabled=True))
    assert asynchronous.semantics.async_progress == "async_progress_tracking_enabled"
    assert KafkaTarget(target(**OUT, async_progress_tracking_enabled=False)).semantics == plain.semantics


@pytest.mark.parametrize(
    ("raw", "only_new"),
    [
        ({}, "starting_offsets"),
        ({"starting_offsets": "latest"}, "starting_offsets"),
        ({"starting_offsets": {"clicks": {0: "latest", 1: -1}}}, "starting_offsets"),
        ({"starting_offsets": {"clicks": {0: "latest", 1: 5}}}, False),
        ({"starting_offsets": "earliest"}, False),
        ({"starting_timestamp": 5}, False),
        ({"starting_offsets_by_timestamp": {"clicks": {0: 5}}}, False),
    ],
)
def test_a_stream_that_starts_at_the_end(raw: dict[str, Any], only_new: str | bool) -> None:
    assert KafkaSource(source(**CLICKS, **raw)).semantics.only_new == only_new


def test_both_bring_sparks_connector() -> None:
    jar = "org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"
    assert tuple(KafkaSource(source(**CLICKS)).jars()) == tuple(KafkaTarget(target(**OUT)).jars()) == (jar,)


@pytest.mark.parametrize(
    ("streaming", "raw", "options"),
    [
        (True, {"starting_offsets": "latest", "max_offsets_per_trigger": 5}, []),
        (True, {"ending_offsets": "latest"}, ["ending_offsets"]),
        (True, {"ending_timestamp": 5}, ["ending_timestamp"]),
        (False, {"ending_offsets": "latest"}, []),
        (False, {"max_offsets_per_trigger": 5}, ["max_offsets_per_trigger"]),
        (
            False,
            {"starting_offsets": "latest", "min_offsets_per_trigger": 5},
            ["min_offsets_per_trigger", "starting_offsets"],
        ),
        (False, {"starting_offsets": {"clicks": {0: 5, 1: -1}}}, ["starting_offsets"]),
        (None, {"ending_offsets": "latest", "max_offsets_per_trigger": 5}, []),
    ],
)
def test_options_of_the_other_mode(streaming: bool | None, raw: dict[str, Any], options: list[str]) -> None:
    gem = KafkaSource(source(**CLICKS, **raw))
    gem.streaming = streaming
    findings = list(gem.check())
    assert [finding.option for finding in findings] == options
    assert {finding.code for finding in findings} <= {"GB207"}


TEAM = Facts(streaming=True, columns=(Column("team", "string"),))


@pytest.mark.parametrize(
    ("raw", "facts", "said"),
    [
        ({"topic": "out"}, TEAM, None),
        ({}, TEAM, "nothing says which topic"),
        ({}, Facts(columns=(Column("Topic"),)), None),
        ({}, Facts(columns=None), None),
        ({"topic_column": "team"}, TEAM, None),
        ({"topic_column": "tema"}, TEAM, "no column `tema`"),
        ({"topic": "out", "include_headers": True}, TEAM, "no column `headers`"),
    ],
)
def test_what_the_target_says_of_its_input(raw: dict[str, Any], facts: Facts, said: str | None) -> None:
    findings = [finding.message for finding in KafkaTarget(target(**SERVERS, **raw)).check(facts)]
    assert len(findings) == (said is not None)
    assert not said or said in findings[0]


def test_the_examples_are_valid() -> None:
    KafkaSourceOptions.model_validate(KafkaSource.example)
    KafkaTargetOptions.model_validate(KafkaTarget.example)
