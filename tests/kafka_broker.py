"""Gives tests a real Kafka broker: fixtures ``kafka`` and ``kafka_sasl``, one broker a session.

Starting a broker takes seconds, so tests share one and keep apart by topic names that are used
once (``new_topic``). A broker's address stays the same over ``restart()``, and so does its data.

A missing Docker engine is started where that is possible and fails the tests elsewhere: tests that
skip themselves are tests that nobody notices are gone.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import uuid4

import pytest

# A conftest imports this module for every test run, also for those without Kafka: clients and
# containers are imported where they are used.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped]
    from testcontainers.community.kafka import KafkaContainer

SCRIPTS: Final = Path(__file__).resolve().parent.parent / "scripts"
PUBLIC_IMAGE: Final = "confluentinc/cp-kafka:7.9.0"
STAND_IN_IMAGE: Final = "gem-bundle/kafka-stand-in:7.9.0"  # scripts/kafka-image builds it
STARTED: Final = b"Kafka Server started"
OWNER_LABEL: Final = "gem-bundle.kafka-broker.owner"
# Generous, because a busy CI machine is slow; nothing waits longer than its condition takes.
TIMEOUT: Final = 120.0


class Record(NamedTuple):
    """What a topic holds at one offset; ``timestamp`` is in milliseconds since 1970."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Broker:
    """A running Kafka broker; made by ``start_broker()``.

    ``bootstrap`` is its ``host:port`` for clients, ``sasl`` the user and password that its client
    listener asks for, or None.
    """

    def __init__(self, container: KafkaContainer, sasl: tuple[str, str] | None = None) -> None:
        self._container = container
        self.sasl = sasl
        self.bootstrap: Final[str] = container.get_bootstrap_server()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments that connect any kafka-python client to this broker."""
        options: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        if self.sasl:
            user, password = self.sasl
            options |= {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": user,
                "sasl_plain_password": password,
            }
        return options

    def new_topic(self, prefix: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic that no other test uses, ready for reading and writing."""
        from kafka import KafkaAdminClient

        topic = f"{prefix}-{uuid4().hex[:12]}"
        new = {"num_partitions": partitions, "replication_factor": 1, "configs": configs or {}}
        with KafkaAdminClient(**self.client_options()) as admin:
            admin.create_topics({topic: new}, wait_for_metadata=True)
        return topic

    def produce(
        self,
        topic: str,
        values: Sequence[str | bytes | None],
        keys: Sequence[str | bytes | None] | None = None,
        timestamps: Sequence[int | datetime] | None = None,
        *,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> list[Record]:
        """Write records in this order and return them as the broker has acknowledged them.

        ``keys`` and ``timestamps`` (milliseconds since 1970, or datetimes with a timezone) are as
        many as the values; ``headers`` go to every record. A value of None is a tombstone.
        """
        from kafka import KafkaProducer

        keys = [None] * len(values) if keys is None else keys
        times = [None] * len(values) if timestamps is None else [_millis(t) for t in timestamps]
        rows = [(_bytes(k), _bytes(v), t) for k, v, t in zip(keys, values, times, strict=True)]
        with closing(KafkaProducer(**self.client_options())) as producer:
            sent = [producer.send(topic, value, key, list(headers), partition, at) for key, value, at in rows]
            producer.flush(timeout=TIMEOUT)
            written = [future.get(timeout=TIMEOUT) for future in sent]
        return [
            Record(m.partition, m.offset, m.timestamp, key, value, tuple(headers))
            for m, (key, value, _) in zip(written, rows, strict=True)
        ]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset after the last record, for each partition: what a query should reach."""
        with closing(self._reader()) as consumer:
            return {tp.partition: end for tp, end in _ends(consumer, topic).items()}

    def consume(self, topic: str) -> list[Record]:
        """Every record that the topic holds now, ordered by partition and offset."""
        found: list[Record] = []
        with closing(self._reader()) as consumer:
            ends = _ends(consumer, topic)
            consumer.assign(list(ends))
            consumer.seek_to_beginning()

            def at_the_end() -> bool:
                return all(consumer.position(tp) >= end for tp, end in ends.items())

            def read_to_the_end() -> bool:
                if at_the_end():
                    return True
                for batch in consumer.poll(timeout_ms=200).values():
                    found.extend(_record(r) for r in batch)
                return at_the_end()

            _until(read_to_the_end, f"topic {topic} to be read up to {sorted(ends.values())}")
        # A record that was written meanwhile is beyond "now".
        ended = {tp.partition: end for tp, end in ends.items()}
        return sorted(r for r in found if r.offset < ended[r.partition])

    def stop_server(self, kill: bool = False) -> None:
        """Take the broker away from its clients: shut down in order, or crash (``kill``)."""
        container = self._container.get_wrapped_container()
        if kill:
            container.kill()
        else:
            # "docker stop" signals the container's first process, a shell that does not pass it
            # on: after ten seconds it would kill the broker.
            container.exec_run(["bash", "-c", _SHUT_DOWN])
        container.wait(timeout=TIMEOUT)

    def start_server(self) -> None:
        """Bring a stopped broker back, at the same address and with the same data."""
        container = self._container.get_wrapped_container()
        started_before = container.logs().count(STARTED)
        container.start()

        def started_again() -> bool:
            container.reload()
            if container.status == "exited":
                raise RuntimeError(f"Kafka ended while it started:\n{_tail(self._container)}")
            return bool(container.logs().count(STARTED) > started_before)

        _until(started_again, "Kafka to start again")

    def restart(self, kill: bool = False) -> None:
        """Stop and start the broker, so that its clients have to reconnect."""
        self.stop_server(kill=kill)
        self.start_server()

    def close(self) -> None:
        """End the broker and forget its data."""
        self._container.stop()

    def _reader(self) -> KafkaConsumer:
        from kafka import KafkaConsumer

        # Without a group: neither a coordinator nor committed offsets take part.
        return KafkaConsumer(**self.client_options(), group_id=None, enable_auto_commit=False)


def start_broker(sasl: tuple[str, str] | None = None) -> Broker:
    """Start a broker of one's own; with ``sasl=(user, password)`` its clients must log in (PLAIN).

    Tests that don't stop or reconfigure it are better off with the ``kafka`` fixture. The image is
    ``GEM_BUNDLE_KAFKA_IMAGE`` if that is set, else cp-kafka if it can be pulled, else a stand-in
    that ``scripts/kafka-image`` builds.
    """
    from testcontainers.core.config import testcontainers_config

    _run_script("docker-engine")
    image = _image()
    container = _container(image, sasl).with_kraft()
    if image == STAND_IN_IMAGE:
        # Who can't pull Kafka can't pull testcontainers' reaper either; this stands in for it.
        testcontainers_config.ryuk_disabled = True
        container.with_kwargs(labels={OWNER_LABEL: _owner(os.getpid())})
        _remove_orphans(container)
    # A port that Docker chooses changes when the container is started again.
    container.with_bind_ports(container.port, _free_port())
    try:
        container.start(timeout=int(TIMEOUT))
        return Broker(container, sasl)
    except BaseException as error:
        error.add_note(_tail(container))
        container.stop()
        raise


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """The session's Kafka broker, open to all: create your topics with ``kafka.new_topic()``."""
    with start_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_sasl() -> Iterator[Broker]:
    """The session's second broker: its clients log in with ``kafka_sasl.sasl``."""
    with start_broker(sasl=("sally", "open-sesame")) as broker:
        yield broker


def _image() -> str:
    image = os.environ.get("GEM_BUNDLE_KAFKA_IMAGE") or _pulled(PUBLIC_IMAGE) or STAND_IN_IMAGE
    if image == STAND_IN_IMAGE:
        _run_script("kafka-image")
    return image


def _pulled(image: str) -> str | None:
    for command in (["docker", "image", "inspect", image], ["docker", "pull", "-q", image]):
        try:
            done = subprocess.run(command, capture_output=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode == 0:
            return image
    return None


def _run_script(name: str) -> None:
    done = subprocess.run([SCRIPTS / name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"scripts/{name} failed: {done.stdout.strip()}")


def _container(image: str, sasl: tuple[str, str] | None) -> KafkaContainer:
    from testcontainers.community.kafka import KafkaContainer

    if sasl:
        user, password = sasl
        # cp-kafka refuses advertised listeners named SASL_… unless a JAAS file is mounted.
        container = KafkaContainer(image, listener_name="CLIENT", security_protocol="SASL_PLAINTEXT")
        container.with_env("KAFKA_SASL_ENABLED_MECHANISMS", "PLAIN")
        container.with_env(
            "KAFKA_LISTENER_NAME_CLIENT_PLAIN_SASL_JAAS_CONFIG",
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";',
        )
    else:
        container = KafkaContainer(image)
    # Tests write event times of any year as record timestamps. By default the broker deletes what
    # is a week old half a minute after its start, and Kafka 4 refuses what is an hour ahead.
    container.with_env("KAFKA_LOG_RETENTION_MS", "-1")
    container.with_env("KAFKA_LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS", str(2**63 - 1))
    # One broker can't keep the three copies that transactions want by default.
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    return container.with_env("KAFKA_HEAP_OPTS", "-Xms128m -Xmx512m")


def _free_port() -> int:
    # Below the ports that the system gives to outgoing connections: one of those could take this
    # port while the broker is stopped.
    candidates = random.sample(range(15_000, 32_000), 50)
    return next(port for port in candidates if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def _owner(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}"


def _remove_orphans(container: KafkaContainer) -> None:
    """Remove brokers of test runs on this host that were killed before they could do it."""
    client = container.get_docker_client().client
    for other in client.containers.list(all=True, filters={"label": OWNER_LABEL}):
        owner = other.labels[OWNER_LABEL]
        host, _, pid = owner.rpartition("/")
        if host == socket.gethostname() and not Path("/proc", pid).exists():
            other.remove(force=True, v=True)


def _tail(container: KafkaContainer, lines: int = 40) -> str:
    """The last lines of a container's log, for messages."""
    out, err = container.get_logs() if container.status != "not_started" else (b"", b"")
    return "\n".join((out + err).decode(errors="replace").splitlines()[-lines:])


def _record(r: Any) -> Record:
    return Record(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))


def _ends(consumer: KafkaConsumer, topic: str) -> dict[TopicPartition, int]:
    from kafka import TopicPartition

    partitions = consumer.partitions_for_topic(topic)
    if not partitions:
        raise ValueError(f"Kafka has no topic {topic!r}")
    ends: dict[TopicPartition, int] = consumer.end_offsets([TopicPartition(topic, p) for p in partitions])
    return ends


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {TIMEOUT:.0f} s for {what}")
        time.sleep(0.05)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _millis(at: int | datetime) -> int:
    if isinstance(at, int):
        return at
    if at.tzinfo is None:
        raise ValueError(f"{at} has no timezone: its milliseconds would depend on the machine")
    return round(at.timestamp() * 1000)


_SHUT_DOWN: Final = """
for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2>/dev/null)" = java ] && kill -TERM "${process#/proc/}"
done
"""
