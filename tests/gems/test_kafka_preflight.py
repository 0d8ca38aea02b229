"""The preflight of the Kafka gems: what it finds, how soon, and what it keeps to itself."""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import kafka  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_bundle.codes import CODES
from gem_kafka import preflight
from gem_kafka.login import Unchecked, client_settings
from gem_kafka.reading import KafkaSourceOptions
from gem_kafka.source import KafkaSource
from gem_kafka.target import KafkaTarget
from gem_kafka.writing import KafkaTargetOptions
from tests.gems.certificates import CERTIFICATE, KEY, LOCKED_KEY, PASSWORD
from tests.ports import free_port
from tests.samples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle import Finding
    from tests.kafka_broker import Broker


def kafka_source(**raw: Any) -> KafkaSource:
    return KafkaSource(KafkaSourceOptions.model_validate({"subscribe": "clicks", **raw}))


def kafka_target(**raw: Any) -> KafkaTarget:
    return KafkaTarget(KafkaTargetOptions.model_validate(raw))


def one(gem: KafkaSource | KafkaTarget) -> Finding:
    (finding,) = gem.connect()
    assert finding.code in CODES
    assert finding.option is None or finding.option in type(gem.options).model_fields
    return finding


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a server that accepts connections and hangs up."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def hang_up() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=hang_up, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        # Closing the socket alone leaves the thread in accept() for ever.
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't succeed needn't be tried for as long as usual."""
    monkeypatch.setattr(preflight, "ALL_SECONDS", 0.3)


# Without a broker


@pytest.mark.servers
def test_no_broker(closed: str) -> None:
    for gem in (kafka_source(bootstrap_servers=closed), kafka_target(bootstrap_servers=closed, topic="x")):
        finding = one(gem)
        assert (finding.code, finding.severity) == ("GB503", "error")
        assert finding.message == f"no Kafka broker can be reached at `{closed}` (connection refused)"
        assert finding.option == "bootstrap_servers"


@pytest.mark.network
def test_every_broker_that_was_tried_is_named(closed: str) -> None:
    finding = one(kafka_source(bootstrap_servers=f"{closed},nowhere.invalid:9092"))
    assert f"`{closed}` (connection refused)" in finding.message
    assert "`nowhere.invalid:9092` (the name `nowhere.invalid` is not known)" in finding.message


@pytest.mark.servers
def test_a_server_that_is_no_broker(deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert preflight.ALL_SECONDS == 5
    monkeypatch.setattr(preflight, "ALL_SECONDS", 1.0)
    asked: list[dict[str, Any]] = []

    class Recording(kafka.KafkaAdminClient):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            asked.append(options)
            super().__init__(**options)

    monkeypatch.setattr(kafka, "KafkaAdminClient", Recording)
    finding = one(kafka_source(bootstrap_servers=deaf))
    (passed,) = asked
    for timeout in ("bootstrap_timeout_ms", "request_timeout_ms"):
        assert 0 < passed[timeout] <= 1_000
    assert finding.code == "GB503"
    assert f"`{deaf}` can be reached, but not with Kafka's protocol over PLAINTEXT" in finding.message


@pytest.mark.usefixtures("impatient")
@pytest.mark.servers
def test_one_broker_that_answers_is_enough(closed: str, deaf: str) -> None:
    finding = one(kafka_source(bootstrap_servers=[closed, deaf]))
    assert finding.message.startswith(f"`{deaf}` can be reached")


@pytest.mark.usefixtures("impatient")
@pytest.mark.servers
def test_a_failed_preflight_leaves_nothing_behind(deaf: str) -> None:
    logger = logging.getLogger("kafka")
    before = (set(threading.enumerate()), list(logger.handlers), logger.level)
    one(kafka_source(bootstrap_servers=deaf))
    assert [t.name for t in set(threading.enumerate()) - before[0] if "kafka" in t.name] == []
    assert (logger.handlers, logger.level) == before[1:]


@pytest.mark.programs
def test_without_kafka_python(deaf: str) -> None:
    program = (
        "import sys; sys.modules['kafka'] = None\n"
        "from gem_kafka.source import KafkaSource\n"
        f"raw = {{'bootstrap_servers': '{deaf}', 'subscribe': 'clicks'}}\n"
        "for f in KafkaSource(KafkaSource.options_type.model_validate(raw)).connect():\n"
        "    print(f.severity, f.code, f.message, f.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "warning GB509 the login and the topics were not tried: kafka-python isn't installed "
        "Install it with `pip install --upgrade 'gem-bundle[kafka]'`.\n"
    )


@pytest.mark.servers
def test_with_an_older_kafka_python(deaf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka import KafkaAdminClient  # type: ignore[import-untyped]

    monkeypatch.delitem(KafkaAdminClient.DEFAULT_CONFIG, "bootstrap_timeout_ms")
    finding = one(kafka_source(bootstrap_servers=deaf))
    assert (finding.code, finding.severity) == ("GB509", "warning")
    assert "older than 3.0" in finding.message


@pytest.mark.programs
def test_importing_the_gems_imports_neither_kafka_nor_spark() -> None:
    program = (
        "import sys, gem_kafka.source, gem_kafka.target\n"
        "print(sorted({'kafka', 'pyspark', 'gem_kafka.preflight'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


LOGIN = {"sasl_mechanism": "PLAIN", "sasl_username": "sally", "sasl_password": "open-sesame"}


@pytest.mark.parametrize("raw", [{}, {"sasl_mechanism": "PLAIN", "sasl_jaas_config": "hidden"}])
@pytest.mark.servers
def test_a_login_that_only_java_can_do(deaf: str, raw: dict[str, Any]) -> None:
    finding = one(kafka_source(bootstrap_servers=deaf, security_protocol="SASL_PLAINTEXT", **raw))
    assert finding.severity == "note"
    assert "the login and the topics were not tried" in finding.message
    assert "hidden" not in repr(finding)


# Certificates


def ssl_context(**raw: Any) -> ssl.SSLContext:
    options = kafka_source(bootstrap_servers="b:9092", security_protocol="SSL", **raw).options
    context = client_settings(options, "b:9092")["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


def test_certificates_as_files(tmp_path: Path) -> None:
    trust, own, locked = (tmp_path / name for name in ("trust.pem", "own.pem", "locked.pem"))
    trust.write_text(CERTIFICATE)
    own.write_text(KEY + CERTIFICATE)
    locked.write_text(LOCKED_KEY + CERTIFICATE)
    trusting = {"ssl_truststore_location": str(trust), "ssl_truststore_type": "PEM"}
    context = ssl_context(**trusting, ssl_keystore_location=str(own), ssl_keystore_type="PEM")
    assert [authority["subject"] for authority in context.get_ca_certs()] == [
        ((("commonName", "127.0.0.1"),),)
    ]
    assert context.check_hostname
    behind = {"ssl_keystore_location": str(locked), "ssl_keystore_type": "PEM"}
    ssl_context(**trusting, **behind, ssl_key_password=PASSWORD)
    with pytest.raises(Unchecked) as caught:
        ssl_context(**trusting, **behind, ssl_key_password="wrong-secret")
    assert (caught.value.finding.code, caught.value.finding.option) == ("GB503", "ssl_keystore_location")
    assert "wrong-secret" not in repr(caught.value.finding)


@pytest.mark.parametrize(("key", "password"), [(KEY, None), (LOCKED_KEY, PASSWORD)])
def test_certificates_as_texts(key: str, password: str | None) -> None:
    context = ssl_context(
        ssl_truststore_certificates=CERTIFICATE,
        ssl_keystore_certificate_chain=CERTIFICATE,
        ssl_keystore_key=key,
        ssl_key_password=password,
        ssl_endpoint_identification_algorithm="",
    )
    assert len(context.get_ca_certs()) == 1
    assert not context.check_hostname


def test_certificates_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(Unchecked) as caught:
        ssl_context(ssl_truststore_certificates="nonsense")
    assert caught.value.finding.message.startswith("the certificates can't be used: ")
    with pytest.raises(Unchecked) as caught:
        ssl_context(ssl_truststore_location=str(tmp_path / "trust.pem"))
    assert (caught.value.finding.code, caught.value.finding.option) == ("GB505", "ssl_truststore_location")
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(Unchecked) as caught:
        ssl_context(ssl_truststore_location=str(tmp_path / "trust.jks"))
    assert caught.value.finding.severity == "note"
    assert "only Java reads" in caught.value.finding.message


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[str]:
    """The address of a server that speaks TLS, and nothing more."""
    (tmp_path / "server.pem").write_text(KEY + CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            while True:
                try:
                    client = server.accept()[0]
                except OSError:
                    return
                with client, suppress(OSError):
                    context.wrap_socket(client, server_side=True).close()

        threading.Thread(target=greet, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.servers
def test_a_certificate_that_nobody_vouches_for(tls_server: str) -> None:
    finding = one(kafka_source(bootstrap_servers=tls_server, security_protocol="SSL"))
    assert finding.message.startswith(f"the certificate of `{tls_server}` isn't trusted: self")
    assert finding.option == "ssl_truststore_location"


@pytest.mark.usefixtures("impatient")
@pytest.mark.servers
def test_a_certificate_that_is_trusted(tls_server: str) -> None:
    trust = {"security_protocol": "SSL", "ssl_truststore_certificates": CERTIFICATE}
    finding = one(kafka_source(bootstrap_servers=tls_server, **trust))
    assert finding.message.startswith(
        f"`{tls_server}` can be reached, but not with Kafka's protocol over SSL"
    )


# With a broker


@pytest.mark.kafka
class TestTopics:
    def test_all_is_well(self, kafka: Broker) -> None:
        topic = kafka.new_topic("clicks", partitions=2)
        at = {"bootstrap_servers": kafka.bootstrap}
        assert list(kafka_source(**at, subscribe=topic).connect()) == []
        places = {topic: {0: 5, 1: -1}}
        assert list(kafka_source(**at, subscribe=topic, starting_offsets=places).connect()) == []
        assert list(kafka_source(**at, subscribe=None, assign={topic: [1]}).connect()) == []
        assert list(kafka_source(**at, subscribe=None, subscribe_pattern=topic[:-3] + ".*").connect()) == []
        assert list(kafka_target(**at, topic=topic).connect()) == []
        assert list(kafka_target(**at, topic_column="topic").connect()) == []

    def test_a_missing_topic(self, kafka: Broker) -> None:
        topic = kafka.new_topic("clicks")
        wrong = topic.replace("clicks", "cliks")
        findings = list(
            kafka_source(bootstrap_servers=kafka.bootstrap, subscribe=[topic, wrong, "zzzzzz"]).connect()
        )
        assert [(f.code, f.severity, f.option) for f in findings] == [("GB504", "error", "subscribe")] * 2
        assert findings[0].message == f"the topic `{wrong}` doesn't exist at `{kafka.bootstrap}`"
        assert findings[0].hint == f"Did you mean `{topic}`?"
        assert findings[1].hint.startswith("Known topics: ")

    def test_looking_for_a_topic_does_not_create_it(self, kafka: Broker) -> None:
        for _ in range(2):
            finding = one(kafka_source(bootstrap_servers=kafka.bootstrap, subscribe="never-there"))
            assert finding.code == "GB504"

    def test_a_missing_topic_of_a_target_is_a_warning(self, kafka: Broker) -> None:
        finding = one(kafka_target(bootstrap_servers=kafka.bootstrap, topic="never-there"))
        assert (finding.code, finding.severity, finding.option) == ("GB504", "warning", "topic")
        assert "the broker creates it" in finding.hint

    def test_a_missing_partition(self, kafka: Broker) -> None:
        topic = kafka.new_topic("clicks", partitions=2)
        finding = one(kafka_source(bootstrap_servers=kafka.bootstrap, subscribe=None, assign={topic: [0, 7]}))
        assert finding.message == f"the topic `{topic}` has no partition 7"
        assert (finding.option, finding.hint) == ("assign", "It has the partitions 0 to 1.")

    def test_offsets_for_other_partitions(self, kafka: Broker) -> None:
        topic = kafka.new_topic("clicks", partitions=2)
        at = {"bootstrap_servers": kafka.bootstrap, "subscribe": topic}
        beyond = one(kafka_source(**at, starting_offsets={topic: {0: 1, 1: 1, 2: 1}}))
        assert (beyond.option, beyond.message) == (
            "starting_offsets",
            f"the topic `{topic}` has no partition 2",
        )
        too_few = one(kafka_source(**at, starting_offsets_by_timestamp={topic: {1: 1}}))
        assert too_few.option == "starting_offsets_by_timestamp"
        assert f"partition 0 of `{topic}` is missing" in too_few.message

    def test_a_pattern_that_no_topic_matches(self, kafka: Broker) -> None:
        finding = one(
            kafka_source(bootstrap_servers=kafka.bootstrap, subscribe=None, subscribe_pattern="never-.*")
        )
        assert (finding.severity, finding.option) == ("warning", "subscribe_pattern")
        java_only = kafka_source(
            bootstrap_servers=kafka.bootstrap, subscribe=None, subscribe_pattern="a\\p{Lu}"
        )
        assert list(java_only.connect()) == []

    def test_another_protocol_than_the_listener_has(self, kafka: Broker) -> None:
        finding = one(kafka_source(bootstrap_servers=kafka.bootstrap, security_protocol="SSL"))
        assert finding.code == "GB503"
        assert finding.message.startswith(f"`{kafka.bootstrap}` can be reached, but not over TLS: ")


@pytest.mark.kafka
class TestLogins:
    def connection(self, broker: Broker, **raw: Any) -> dict[str, Any]:
        assert broker.sasl is not None
        user, password = broker.sasl
        login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        login |= {"sasl_username": user, "sasl_password": password}
        return {"bootstrap_servers": broker.bootstrap, **login, **raw}

    def test_the_right_password(self, kafka_sasl: Broker) -> None:
        topic = kafka_sasl.new_topic("clicks")
        assert list(kafka_source(**self.connection(kafka_sasl), subscribe=topic).connect()) == []
        assert list(kafka_target(**self.connection(kafka_sasl), topic=topic).connect()) == []

    @pytest.mark.usefixtures("impatient")
    def test_a_wrong_password(self, kafka_sasl: Broker, caplog: pytest.LogCaptureFixture) -> None:
        assert kafka_sasl.sasl is not None
        with caplog.at_level(logging.DEBUG):
            finding = one(kafka_source(**self.connection(kafka_sasl, sasl_password="wrong-secret")))
        assert (finding.code, finding.severity, finding.option) == ("GB503", "error", "sasl_password")
        assert f"doesn't let the user `{kafka_sasl.sasl[0]}` in with PLAIN" in finding.message
        assert "wrong-secret" not in repr(finding)
        assert "wrong-secret" not in caplog.text

    @pytest.mark.usefixtures("impatient")
    def test_a_mechanism_that_the_broker_does_not_take(self, kafka_sasl: Broker) -> None:
        finding = one(kafka_source(**self.connection(kafka_sasl, sasl_mechanism="SCRAM-SHA-512")))
        assert finding.code == "GB503"
        assert "SCRAM-SHA-512 over SASL_PLAINTEXT" in finding.message

    @pytest.mark.usefixtures("impatient")
    def test_no_login_where_one_is_needed(self, kafka_sasl: Broker) -> None:
        finding = one(kafka_source(bootstrap_servers=kafka_sasl.bootstrap))
        assert "not with Kafka's protocol over PLAINTEXT" in finding.message
        assert finding.option == "security_protocol"


@pytest.mark.spark
class TestLoginEntry:
    """Kafka's own parser reads from the entry what was put into it."""

    @settings(
        max_examples=examples(40, 1000),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        username=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        password=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    )
    def test_user_and_password_survive(self, spark: SparkSession, username: str, password: str) -> None:
        from gem_kafka.connection import login_entry

        kafka: Any = spark._jvm.org.apache.kafka.common  # type: ignore[union-attr]
        entry = login_entry("PLAIN", username, password)
        setting = {"sasl.jaas.config": kafka.config.types.Password(entry)}
        context = kafka.security.JaasContext.loadClientContext(setting)
        (found,) = context.configurationEntries()
        assert dict(found.getOptions()) == {"username": username, "password": password}
