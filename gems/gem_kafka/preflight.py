"""The preflight: do the brokers answer, do they take the login, and do they have the topics?

It asks with kafka-python, without a JVM, gives up within some seconds and changes nothing: the broker is
told not to create the topics that it is asked about. What kafka-python can't do (Java key stores,
Kerberos, logins through Java classes) is left to the run, and the preflight says so.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gem_bundle import Finding
from gem_bundle.diagnostics import listed_names
from gem_kafka.login import Unchecked, client_settings, said
from gem_kafka.matching import java_pattern
from gem_kafka.offsets import EARLIEST, topic_partitions
from gem_kafka.reach import Causes, answering, check_tls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.diagnostics import Severity
    from gem_kafka.connection import ConnectionOptions
    from gem_kafka.reading import KafkaSourceOptions

ALL_SECONDS = 5.0

_NOT_AUTHORIZED = 29  # TOPIC_AUTHORIZATION_FAILED in Kafka's protocol
_SHOWN = 8

Topics = dict[str, frozenset[int]]


def check_source(options: KafkaSourceOptions) -> list[Finding]:
    """What is wrong with the brokers, the login, the topics and the partitions of a source."""
    try:
        with _client(options) as client:
            if options.subscribe_pattern is not None:
                return _check_pattern(options.subscribe_pattern, client.all_topics())
            option = "subscribe" if options.subscribe else "assign"
            found, findings = client.topics(options.topics or (), option)
    except Unchecked as stop:
        return [stop.finding]
    return findings or list(_check_partitions(options, found))


def check_target(options: ConnectionOptions, topic: str | None) -> list[Finding]:
    """What is wrong with the brokers, the login and the topic of a target.

    A missing topic is a warning, as brokers create topics when they are first written to, unless
    they are told not to (`auto.create.topics.enable`).
    """
    hint = "If it may, the broker creates it at the first record. "
    try:
        with _client(options) as client:
            _, findings = client.topics([topic] if topic else [], "topic", "warning", hint)
    except Unchecked as stop:
        return [stop.finding]
    return findings


Places = dict[tuple[str, int], int]


def first_offsets(
    options: ConnectionOptions, partitions: Iterable[tuple[str, int]], since: int | None
) -> tuple[Places, Places]:
    """The first offsets that the brokers still have.

    Args:
        options: How to reach them.
        partitions: The partitions.
        since: A time in milliseconds since 1970; None for none.

    Returns:
        The first offset of each partition; and with a time the first one whose record isn't older, for
        partitions that have one.

    Raises:
        Unchecked: When they can't be asked.
    """
    with _client(options) as client:
        wanted = list(partitions)
        first = client.offsets(wanted, EARLIEST)
        return first, {} if since is None else client.offsets(wanted, since)


def _check_pattern(pattern: str, topics: Iterable[str]) -> list[Finding]:
    java = java_pattern(pattern)
    # Spark looks for it within a name.
    if java is None or any(java.search(topic) for topic in topics):
        return []
    return [
        Finding(
            "GB504",
            f"no topic has a name like `{pattern}` yet",
            f"A stream reads such topics as soon as they appear. {_known(topics)}",
            "subscribe_pattern",
            "warning",
        )
    ]


def _check_partitions(options: KafkaSourceOptions, found: Topics) -> Iterator[Finding]:
    for topic, partition in topic_partitions(options.assign or {}):
        if partition not in found[topic]:
            yield _no_partition(topic, partition, found, "assign")
    for name in ("starting_offsets", "starting_offsets_by_timestamp", "ending_offsets"):
        places = getattr(options, name)
        if not isinstance(places, dict):
            continue
        for topic, partition in topic_partitions(places):
            if topic in found and partition not in found[topic]:
                yield _no_partition(topic, partition, found, name)
        for topic in places if options.assign is None else ():
            missing = sorted(found.get(topic, frozenset()) - set(places[topic]))
            if missing:
                yield Finding(
                    "GB504",
                    f"`{name}` must have every partition, and partition {missing[0]} of `{topic}` is missing",
                    "Add it; -2 is the earliest offset, -1 the latest.",
                    name,
                )


def _no_partition(topic: str, partition: int, found: Topics, option: str) -> Finding:
    there = sorted(found[topic])
    return Finding(
        "GB504",
        f"the topic `{topic}` has no partition {partition}",
        f"It has the partitions {there[0]} to {there[-1]}.",
        option,
    )


class _Client:
    """What the preflight asks the brokers, through kafka-python's admin client."""

    def __init__(self, admin: Any, options: ConnectionOptions, broker: str) -> None:
        self._admin = admin
        self._options = options
        self._broker = broker

    def topics(
        self, names: Iterable[str], option: str, severity: Severity = "error", hint: str = ""
    ) -> tuple[Topics, list[Finding]]:
        """Those of the named topics that exist, with their partitions, and what is wrong with the others.

        Args:
            names: The topics.
            option: The option that names them.
            severity: How bad a missing topic is.
            hint: What to say about a missing topic before the names that exist.
        """
        wanted = list(names)
        found: Topics = {}
        findings = []
        for topic in self._ask(self._admin.describe_topics, wanted) if wanted else ():
            name = topic["name"]
            if topic["error_code"] == _NOT_AUTHORIZED:
                findings.append(self._not_authorized(name))
            elif topic["partitions"]:
                found[name] = frozenset(p["partition_index"] for p in topic["partitions"])
            else:
                message = f"the topic `{name}` doesn't exist at `{self._broker}`"
                known = _known(self.all_topics(), name)
                findings.append(Finding("GB504", message, hint + known, option, severity))
        return found, findings

    def all_topics(self) -> list[str]:
        """The names of all topics that this user may see, without Kafka's own."""
        return sorted(n for n in self._ask(self._admin.list_topics) if not n.startswith("__"))

    def offsets(self, partitions: Iterable[tuple[str, int]], place: int) -> Places:
        """The offsets of partitions at a time, or at `EARLIEST`; none for those without such a record."""
        from kafka import TopicPartition  # type: ignore[import-untyped]

        wanted = {TopicPartition(topic, partition): place for topic, partition in partitions}
        found = self._ask(self._admin.list_partition_offsets, wanted)
        return {
            (p.topic, p.partition): at.offset for p, at in found.items() if at is not None and at.offset >= 0
        }

    def _ask(self, question: Any, *arguments: Any) -> Any:
        from kafka.errors import KafkaError  # type: ignore[import-untyped]

        try:
            return question(*arguments)
        except (KafkaError, OSError) as error:
            raise Unchecked(
                Finding(
                    "GB503",
                    f"`{self._broker}` answers, but the brokers that it names don't: "
                    f"{said(error, self._options)}",
                    "The addresses in the brokers' `advertised.listeners` must be reachable from here.",
                    "bootstrap_servers",
                )
            ) from error

    def _not_authorized(self, topic: str) -> Finding:
        user = self._options.sasl_username
        who = f"the user `{user}`" if user else "this client"
        return Finding(
            "GB503",
            f"{who} has no right to use the topic `{topic}`",
            "Ask for the right to describe and read or write it (Kafka's ACLs).",
            "sasl_username" if user else "bootstrap_servers",
        )


def _known(topics: Iterable[str], name: str = "") -> str:
    known = sorted(topics)
    close = get_close_matches(name, known, n=1)
    if close:
        return f"Did you mean `{close[0]}`?"
    if not known:
        return "There are no topics yet."
    return f"Known topics: {listed_names(known, most=_SHOWN)}."


@contextmanager
def _client(options: ConnectionOptions) -> Iterator[_Client]:
    """A client that is logged in; whatever prevents that is raised as `Unchecked`."""
    deadline = time.monotonic() + ALL_SECONDS
    broker = answering(options)
    settings = client_settings(options, broker)
    if "ssl_context" in settings:
        check_tls(settings["ssl_context"], options, broker)
    try:
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError
    except ImportError:
        raise _no_client("kafka-python isn't installed") from None
    if "bootstrap_timeout_ms" not in KafkaAdminClient.DEFAULT_CONFIG:
        raise _no_client("kafka-python is older than 3.0")
    name = f"gem-bundle-preflight-{uuid4().hex[:8]}"
    timeout = round(max(deadline - time.monotonic(), 0.1) * 1000)
    made: list[Any] = []

    def make(**configs: Any) -> Any:
        # When an admin client can't connect, nobody but its network client can be closed.
        made.append(KafkaAdminClient.DEFAULT_CONFIG["kafka_client"](**configs))
        return made[-1]

    with Causes(name) as causes:
        try:
            admin = KafkaAdminClient(
                **settings,
                client_id=name,
                bootstrap_timeout_ms=timeout,
                request_timeout_ms=timeout,
                kafka_client=make,
            )
            yield _Client(admin, options, broker)
        except (KafkaError, OSError) as error:
            raise Unchecked(_refused(options, broker, [*causes, error])) from error
        finally:
            for client in made:
                client.close()


def _no_client(why: str) -> Unchecked:
    message = f"the login and the topics were not tried: {why}"
    hint = "Install it with `pip install --upgrade 'gem-bundle[kafka]'`."
    return Unchecked(Finding("GB509", message, hint, severity="warning"))


def _refused(options: ConnectionOptions, broker: str, causes: list[BaseException]) -> Finding:
    """A broker that can be reached, but doesn't let the client in."""
    from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError

    kinds = {type(cause) for cause in causes}
    way = f"{options.sasl_mechanism} over {options.protocol}"
    if UnsupportedSaslMechanismError in kinds and SaslAuthenticationFailedError not in kinds:
        message = f"`{broker}` doesn't take logins with {way}"
        hint = "Correct `sasl_mechanism`, or turn the mechanism on at the broker."
        return Finding("GB503", message, hint, "sasl_mechanism")
    if options.sasl_username is not None:
        # A broker that refuses a password may hang up before its answer is read.
        answer = next((c for c in causes if isinstance(c, SaslAuthenticationFailedError)), None)
        reason = f": {said(answer, options)}" if answer is not None else ""
        message = f"`{broker}` doesn't let the user `{options.sasl_username}` in with {way}{reason}"
        hint = "Check `sasl_username`, `sasl_password`, `sasl_mechanism` and `security_protocol`."
        return Finding("GB503", message, hint, "sasl_password")
    reason = said(causes[0], options)
    message = f"`{broker}` can be reached, but not with Kafka's protocol over {options.protocol}: {reason}"
    hint = "Check that the port is a Kafka listener, and that `security_protocol` is the listener's."
    return Finding("GB503", message, hint, "security_protocol")
