"""The broker that Kafka tests rely on keeps what its helpers promise."""

import socket
from datetime import UTC, datetime

import pytest
from kafka import KafkaAdminClient  # type: ignore[import-untyped]
from kafka.errors import KafkaTimeoutError  # type: ignore[import-untyped]

from tests.kafka_broker import Broker, Record

pytestmark = pytest.mark.kafka

FAR_AHEAD = 10_000_000_000_000  # in the year 2286


def test_topics_are_unique(kafka: Broker) -> None:
    first, second = kafka.new_topic("orders"), kafka.new_topic("orders", partitions=3)
    assert first != second
    assert kafka.end_offsets(first) == {0: 0}
    assert kafka.end_offsets(second) == {0: 0, 1: 0, 2: 0}
    assert kafka.consume(second) == []


def test_what_is_produced_is_consumed(kafka: Broker) -> None:
    topic = kafka.new_topic("orders")
    written = kafka.produce(
        topic,
        ["a", b"\x00\xff", None],
        keys=["k1", None, b"k3"],
        timestamps=[datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC), 1_000, FAR_AHEAD],
        headers=[("origin", b"test")],
    )
    origin = (("origin", b"test"),)
    assert written == [
        Record(0, 0, 981_173_106_000, b"k1", b"a", origin),
        Record(0, 1, 1_000, None, b"\x00\xff", origin),
        Record(0, 2, FAR_AHEAD, b"k3", None, origin),
    ]
    assert kafka.consume(topic) == written


def test_partitions(kafka: Broker) -> None:
    topic = kafka.new_topic("orders", partitions=2)
    kafka.produce(topic, ["in 1"], partition=1)
    kafka.produce(topic, ["in 0"], partition=0)
    kafka.produce(topic, ["again in 1"], partition=1)
    assert [(r.partition, r.offset, r.value) for r in kafka.consume(topic)] == [
        (0, 0, b"in 0"),
        (1, 0, b"in 1"),
        (1, 1, b"again in 1"),
    ]
    assert kafka.end_offsets(topic) == {0: 1, 1: 2}


def test_wrong_use_is_said(kafka: Broker) -> None:
    topic = kafka.new_topic("orders")
    with pytest.raises(ValueError, match="no topic 'nowhere'"):
        kafka.consume("nowhere")
    with pytest.raises(ValueError, match="longer"):
        kafka.produce(topic, ["a", "b"], keys=["only one"])
    with pytest.raises(ValueError, match="timezone"):
        kafka.produce(topic, ["a"], timestamps=[datetime(2001, 2, 3)])
    assert kafka.consume(topic) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("kill", [False, True], ids=["shut down", "killed"])
def test_restart_keeps_data_and_address(kafka: Broker, kill: bool) -> None:
    topic, address = kafka.new_topic("orders", partitions=2), kafka.bootstrap
    before = kafka.produce(topic, ["a", "b", "c"], keys=["x", "y", "z"])
    kafka.stop_server(kill=kill)
    with pytest.raises(ConnectionRefusedError):
        connect(address)
    kafka.start_server()
    connect(address)
    assert kafka.bootstrap == address
    assert kafka.consume(topic) == sorted(before)
    after = kafka.produce(topic, ["d"], partition=0)
    assert kafka.consume(topic) == sorted(before + after)


def connect(address: str) -> None:
    host, port = address.split(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def test_with_the_password(kafka_sasl: Broker) -> None:
    topic = kafka_sasl.new_topic("orders")
    written = kafka_sasl.produce(topic, ["secret"])
    assert kafka_sasl.consume(topic) == written


def test_a_wrong_password_is_refused(kafka_sasl: Broker) -> None:
    # kafka-python tries again until its time is up. The broker's reason is only in its log, and not
    # always: sometimes the connection is closed before it is read. So the right password is the proof
    # that nothing else is wrong.
    options = {"sasl_plain_password": "wrong", "bootstrap_timeout_ms": 3_000}
    with pytest.raises(KafkaTimeoutError):
        KafkaAdminClient(**kafka_sasl.client_options() | options)
    KafkaAdminClient(**kafka_sasl.client_options()).close()
