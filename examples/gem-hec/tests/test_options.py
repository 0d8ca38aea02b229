"""What the options take, what a check finds, and what the preflight does; nothing here needs Spark."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
from certificates import CERTIFICATE, KEY
from collector_server import TOKEN, LocalCollector, serving
from pydantic import ValidationError

from gem_bundle import Column, Facts, Finding
from gem_hec.target import HecTarget

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def target(**options: Any) -> HecTarget:
    """A target as gem-bundle makes it."""
    values = {"url": "https://localhost:8088", "token": TOKEN, **options}
    return HecTarget(HecTarget.options_type.model_validate(values, context={"base_dir": "/project"}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://splunk:8088", "https://splunk:8088/services/collector/event"),
        ("https://splunk:8088/", "https://splunk:8088/services/collector/event"),
        ("http://SPLUNK", "http://splunk/services/collector/event"),
        ("https://[::1]:8088", "https://[::1]:8088/services/collector/event"),
        ("https://splunk/other/collector/", "https://splunk/other/collector"),
    ],
)
def test_an_address_gets_its_path(url: str, address: str) -> None:
    assert target(url=url).options.url == address


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "splunk:8088"}, "write the collector's address as"),
        ({"url": "ftp://splunk"}, "write the collector's address as"),
        ({"url": "https://ann:secret@splunk"}, "take user and password out"),
        ({"url": "https://splunk:99999"}, "the port is a number"),
        ({"url": "https://splunk/?channel=1"}, "take out what stands behind"),
        ({"token": ""}, "at least 1"),
        ({"max_payload": 10}, "greater than or equal to 1000"),
        ({"retry_for": 10}, "a duration needs a unit"),
        ({"backoff": "2 minutes"}, "can't be longer than `max_backoff`"),
        ({"verify_tls": False, "ca_file": "ca.pem"}, "`ca_file` has no effect"),
        ({"url": "http://splunk", "verify_tls": False}, "`verify_tls` has no effect"),
        ({"acknowledge_within": "1 minute"}, "no effect without `acknowledge: true`"),
        ({"tokn": "x"}, "Extra inputs are not permitted"),
    ],
)
def test_what_can_not_be_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        target(**options)

    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_sizes_and_durations_have_units() -> None:
    options = target(max_payload="2m", retry_for="1 hour", backoff="1 second").options

    assert (options.max_payload, options.retry_for, options.backoff) == (2 << 20, "3600000ms", "1000ms")
    assert (options.timeout, options.max_backoff) == ("30000ms", "30000ms")


def test_places_are_the_collector_and_the_index() -> None:
    assert target().places() == {"url": ["hec://localhost:8088"]}
    assert target(index="web").places() == {"url": ["hec://localhost:8088/web"]}


# Checks


def findings(rows: str, **options: Any) -> list[tuple[str, object]]:
    columns = tuple(Column(name, kind) for name, kind in (column.split() for column in rows.split(", ")))
    return [(found.code, found.option) for found in target(**options).check(Facts(columns=columns))]


def test_columns_must_be_there() -> None:
    assert findings("at timestamp, id bigint", time_column="AT", event_column="id") == []
    assert findings("id bigint", time_column="at", index_column="i") == [
        ("GB207", "time_column"),
        ("GB207", "index_column"),
    ]
    assert list(target(time_column="at").check(Facts())) == []


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date", "bigint", "double", "decimal(20,6)"])
def test_a_time_is_a_time(kind: str) -> None:
    assert findings(f"at {kind}", time_column="at") == []


@pytest.mark.parametrize("kind", ["string", "boolean", "map<string,string>"])
def test_a_time_is_nothing_else(kind: str) -> None:
    assert findings(f"at {kind}", time_column="at") == [("GB205", "time_column")]


@pytest.mark.parametrize("url", ["http://splunk:8088", "http://10.0.0.1"])
def test_a_token_that_all_can_read_is_a_warning(url: str) -> None:
    (found,) = target(url=url).check(Facts())

    assert (found.code, found.severity, found.option) == ("HEC001", "warning", "url")


@pytest.mark.parametrize("url", ["https://splunk:8088", "http://localhost:8088", "http://127.0.0.1"])
def test_one_that_nobody_reads_is_none(url: str) -> None:
    assert list(target(url=url).check(Facts())) == []


# The preflight


def preflight(url: str, **options: Any) -> list[Finding]:
    return list(target(url=url, **options).connect())


def test_a_preflight_sends_no_event(collector: LocalCollector) -> None:
    assert preflight(collector.url) == []
    assert collector.events == []


def test_a_token_that_is_wrong_is_found_and_not_shown(collector: LocalCollector) -> None:
    (found,) = preflight(collector.url, token="other-token")

    assert (found.code, found.option, found.severity) == ("GB503", "token", "error")
    assert "code 4: Invalid token Splunk **********" in found.message


def test_a_path_that_is_wrong_is_found(collector: LocalCollector) -> None:
    (found,) = preflight(f"{collector.url}/other")

    assert (found.code, found.option) == ("GB503", "url")
    assert "/services/collector/event" in found.hint


def test_a_token_that_wants_acknowledgements_is_found(collector: LocalCollector) -> None:
    collector.acknowledges = 0
    (found,) = preflight(collector.url)

    assert (found.code, found.option) == ("GB503", "acknowledge")
    assert preflight(collector.url, acknowledge=True) == []


def test_nobody_there_is_found() -> None:
    (found,) = preflight("http://127.0.0.1:1")

    assert (found.code, found.option, found.severity) == ("GB503", "url", "error")
    assert found.message.startswith("`http://127.0.0.1:1` can't be reached: ConnectionRefusedError")


# TLS


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[LocalCollector]:
    """A collector whose certificate nobody has signed but itself."""
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "both.pem").write_text(KEY + CERTIFICATE)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "both.pem")
    with serving(context) as found:
        yield found


def test_a_certificate_must_be_trusted(secure: LocalCollector, tmp_path: Path) -> None:
    (found,) = preflight(secure.url)

    assert (found.code, found.option) == ("GB503", "url")
    assert "isn't trusted" in found.message
    assert "ca_file" in found.hint
    assert preflight(secure.url, ca_file=str(tmp_path / "ca.pem")) == []
    assert preflight(secure.url, verify_tls=False) == []


def test_tls_where_there_is_none_is_found(collector: LocalCollector) -> None:
    (found,) = preflight(collector.url.replace("http:", "https:"))

    assert "whether the collector takes `https://`" in found.hint


def test_certificates_that_can_not_be_read_are_found(tmp_path: Path) -> None:
    (found,) = preflight("https://localhost:8088", ca_file=str(tmp_path / "gone.pem"))

    assert (found.code, found.option) == ("GB505", "ca_file")
