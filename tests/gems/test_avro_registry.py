"""`from_avro` and `to_avro` with a schema registry, by a server of its documented interface."""

from __future__ import annotations

import json
import pickle
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_avro.from_avro import FromAvro
from gem_avro.latest import latest
from gem_avro.options import header
from gem_avro.reading import Reading
from gem_avro.registry import Refused, Registry, authorization
from gem_avro.to_avro import ToAvro
from gem_bundle import Column, Facts, GemError, PassingError, Pipeline, UnreachableError
from tests.gems.certificates import CERTIFICATE, KEY
from tests.gems.test_avro_resolution import record
from tests.gems.transforms import findings, made, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.schema_registry import SchemaRegistry

KAFKA = stream_of(Column("key", "binary"), Column("value", "binary"))
FIRST = record(("page", "string"), ("n", "int"), name="org.example.Click")
SECOND = record(("page", "string"), ("n", "long"), ("team", "string", "web"), name="org.example.Click")


def client(registry: SchemaRegistry, **more: Any) -> Registry:
    return Registry((registry.url,), tries=1, **more)


# The client


@pytest.mark.servers
def test_a_schema_is_found_by_its_id_and_by_its_subject(schema_registry: SchemaRegistry) -> None:
    first, second = (schema_registry.register("clicks-value", each) for each in (FIRST, SECOND))
    asked = client(schema_registry)
    found = asked.schema(first)
    assert found is not None
    assert (json.loads(found.text), found.kind) == (FIRST, "AVRO")
    newest = asked.latest("clicks-value")
    assert newest is not None
    assert (newest.id, newest.version) == (second, 2)
    assert asked.find("clicks-value", json.dumps(FIRST)) == first
    assert asked.find("clicks-value", json.dumps(record(("x", "int")))) is None
    assert (asked.schema(99), asked.latest("clikcs"), asked.find("clikcs", "{}")) == (None, None, None)


@pytest.mark.servers
def test_names_of_subjects_are_quoted(schema_registry: SchemaRegistry) -> None:
    schema_registry.register("a/b c-värde", FIRST)
    assert client(schema_registry).latest("a/b c-värde") is not None
    assert schema_registry.asked == ["GET /subjects/a%2Fb%20c-v%C3%A4rde/versions/latest"]


@pytest.mark.servers
def test_types_of_other_subjects_are_fetched(schema_registry: SchemaRegistry) -> None:
    schema_registry.register("kind", json.dumps({"type": "enum", "name": "Kind", "symbols": ["A"]}))
    schema_registry.register(
        "team",
        record(("kind", "Kind"), name="Team"),
        references=[{"name": "Kind", "subject": "kind", "version": 1}],
    )
    schema_registry.register(
        "click-value",
        record(("team", "Team")),
        references=[{"name": "Team", "subject": "team", "version": 1}],
    )
    schema, _ = latest(client(schema_registry), "click-value")
    assert [column.type for column in schema.columns or ()] == ["struct<kind: string>"]


@pytest.mark.parametrize("given", [("ann", "s3cret", None), (None, None, "t0ken")])
@pytest.mark.servers
def test_a_login(schema_registry: SchemaRegistry, given: tuple[str | None, ...]) -> None:
    sent = authorization(*given)
    schema_registry.login = sent
    schema_registry.register("s", FIRST)
    assert client(schema_registry, authorization=sent).latest("s") is not None
    with pytest.raises(UnreachableError, match="refuses the login") as refused:
        client(schema_registry, authorization="Basic d3Jvbmc=").latest("s")
    assert not isinstance(refused.value, PassingError), "it comes again with every start"
    assert "d3Jvbmc" not in f"{refused.value!r} {refused.value}"
    assert "cret" not in repr(client(schema_registry, authorization=sent))


@pytest.mark.servers
def test_a_certificate(schema_registry: SchemaRegistry, tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text(CERTIFICATE + KEY)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "own.pem")
    schema_registry.stop()
    schema_registry.start(server)
    assert client(schema_registry, authority=CERTIFICATE).schema(1) is None
    with pytest.raises(UnreachableError, match="isn't trusted") as untrusted:
        client(schema_registry).schema(1)
    assert not isinstance(untrusted.value, PassingError)


@pytest.mark.parametrize("status", [500, 503, 429])
@pytest.mark.servers
def test_what_may_pass_passes(
    schema_registry: SchemaRegistry, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gem_avro.registry._BETWEEN_TRIES", 0)
    schema_registry.failing = status
    with pytest.raises(PassingError, match=f"can't answer now \\(HTTP {status}\\)"):
        client(schema_registry).schema(1)
    assert len(schema_registry.asked) == 1
    with pytest.raises(PassingError):
        Registry((schema_registry.url,)).schema(1)
    assert len(schema_registry.asked) == 1 + 3


@pytest.mark.servers
def test_where_one_is_down_the_next_is_asked(schema_registry: SchemaRegistry) -> None:
    number = schema_registry.register("s", FIRST)
    assert Registry(("http://127.0.0.1:1", schema_registry.url), tries=1).schema(number) is not None
    schema_registry.stop()
    with pytest.raises(PassingError, match="can't be reached: connection refused"):
        Registry(("http://127.0.0.1:1", schema_registry.url), tries=1).schema(number)


@pytest.mark.servers
def test_an_address_that_is_no_registry_never_says_that_a_schema_is_unknown(
    schema_registry: SchemaRegistry,
) -> None:
    with pytest.raises(UnreachableError, match="not as a schema registry does"):
        Registry((f"{schema_registry.url}/elsewhere",), tries=1).schema(1)


@pytest.mark.servers
def test_a_schema_that_is_registered_keeps_its_id(schema_registry: SchemaRegistry) -> None:
    asked = client(schema_registry)
    number = asked.register("s", json.dumps(FIRST))
    assert asked.register("s", json.dumps(FIRST)) == number
    assert asked.fits("s", json.dumps(SECOND)) is None
    assert asked.fits("new", json.dumps(FIRST)) is None
    wrong = json.dumps(record(("other", "int"), name="org.example.Click"))
    assert asked.fits("s", wrong) == "READER_FIELD_MISSING_DEFAULT_VALUE: other"
    with pytest.raises(Refused, match="incompatible"):
        asked.register("s", wrong)


def test_errors_travel_from_executors() -> None:
    for kind in (UnreachableError, PassingError):
        error = pickle.loads(pickle.dumps(kind("it can't be reached", "start it", "registry")))
        assert type(error) is kind
        assert (error.code, error.message, error.hint, error.option) == (
            *("GB503", "it can't be reached", "start it", "registry"),
        )


# What executors do


@pytest.mark.servers
def test_each_message_is_read_by_its_own_schema(schema_registry: SchemaRegistry) -> None:
    first, second = (schema_registry.register("s", each) for each in (FIRST, SECOND))
    other = schema_registry.register("o", record(("x", "int")))
    proto = schema_registry.register("p", "syntax = 'proto3';", kind="PROTOBUF")
    broken = schema_registry.register("b", '{"type": "record"}')
    read = Reading(client(schema_registry), json.dumps(SECOND))
    assert read(header(first) + b"\x02a\x0e") == (b"\x02a\x0e\x06web", None, None)
    assert read(header(second) + b"\x02a\x0e\x04ab") == (b"\x02a\x0e\x04ab", None, None)
    assert read(None) is None
    names = {}
    for name, message in {
        "short": b"\x00\x00",
        "no zero": b"\x01" + header(first)[1:] + b"\x02a\x0e",
        "unknown": header(99) + b"\x02a",
        "other": header(other) + b"\x02",
        "proto": header(proto) + b"\x02",
        "broken": header(broken) + b"\x02",
        "cut": header(first) + b"\x02",
    }.items():
        body = read(message)
        assert body is not None
        assert body[0] is None
        assert body[2]
        names[name] = body[1]
    assert names == {
        **dict.fromkeys(("short", "no zero"), "no_header"),
        **dict.fromkeys(("unknown", "proto"), "unknown_schema"),
        **dict.fromkeys(("other", "broken"), "unresolved_schema"),
        "cut": "not_avro",
    }


@pytest.mark.servers
def test_an_id_is_asked_for_once_and_one_that_is_missing_once_for_each_task(
    schema_registry: SchemaRegistry,
) -> None:
    number = schema_registry.register("s", FIRST)
    reading = Reading(client(schema_registry), json.dumps(FIRST))
    for _task in range(2):
        task = pickle.loads(pickle.dumps(reading))
        for _ in range(3):
            assert task(header(number) + b"\x02a\x0e")[0]
            assert task(header(7))[1] == "unknown_schema"
    assert schema_registry.asked == ["GET /schemas/ids/1", "GET /schemas/ids/7", "GET /schemas/ids/7"]


@pytest.mark.servers
def test_a_registry_that_can_not_be_asked_says_nothing_of_a_message(schema_registry: SchemaRegistry) -> None:
    number = schema_registry.register("s", FIRST)
    reading = Reading(client(schema_registry), json.dumps(FIRST))
    for status in (401, 500):
        schema_registry.failing = status
        with pytest.raises(UnreachableError):
            reading(header(number) + b"\x02a\x0e")
    schema_registry.failing = None
    assert reading(header(number) + b"\x02a\x0e") == (b"\x02a\x0e", None, None)
    schema_registry.stop()
    assert reading(header(number) + b"\x02a\x0e") == (b"\x02a\x0e", None, None), "it is known"
    failing = Reading(client(schema_registry), json.dumps(FIRST), fail=True)
    with pytest.raises(GemError, match="doesn't begin with a zero byte"):
        failing(b"\x07")


# Options


@pytest.mark.parametrize(
    ("gem", "options", "said"),
    [
        (FromAvro, {}, "give `schema` or `schema_file`, or the address of a `registry`"),
        (FromAvro, {"registry": "http://r:1"}, "give `topic`, or the whole name by `subject`"),
        (FromAvro, {"registry": "http://r:1", "schema": FIRST, "topic": "t"}, "remove `topic`"),
        (FromAvro, {"registry": "http://r:1", "schema": FIRST, "schema_id": 1}, "remove `schema_id`"),
        (FromAvro, {"schema": FIRST, "topic": "t"}, "`topic` is about a registry"),
        (FromAvro, {"schema": FIRST, "registry_user": "ann"}, "`registry_user` is about a registry"),
        (FromAvro, {"registry": "http://r:1", "subject_strategy": "record_name"}, "the record's full name"),
        (FromAvro, {"registry": "http://r:1", "subject": "s", "topic": "t"}, "`subject` is the whole name"),
        (FromAvro, {"registry": "r:1", "topic": "t"}, "write it as `http://host:8081`"),
        (FromAvro, {"registry": "http://ann:pw@r:1", "topic": "t"}, "would be printed"),
        (FromAvro, {"registry": [], "topic": "t"}, "name at least one address"),
        (
            FromAvro,
            {"registry": "http://r:1", "topic": "t", "registry_password": "p"},
            "give that by `registry_user`",
        ),
        (
            FromAvro,
            {"registry": "http://r:1", "topic": "t", "registry_user": "a", "registry_token": "x"},
            "not both",
        ),
        (ToAvro, {"registry": "http://r:1"}, "give `topic`, or the whole name by `subject`"),
        (ToAvro, {"registry": "http://r:1", "topic": "t", "register": True}, "`register` takes a schema"),
        (
            ToAvro,
            {"registry": "http://r:1", "topic": "t", "schema": FIRST, "schema_id": 1},
            "remove `schema_id`",
        ),
        (ToAvro, {"schema": FIRST, "register": True}, "`register` is about a registry"),
        (ToAvro, {"registry": "http://r:1", "subject_strategy": "record_name"}, "the record's full name"),
    ],
    ids=str,
)
def test_options_that_are_refused(gem: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        made(gem, **({"column": "value"} if gem is FromAvro else {}), **options)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"topic": "clicks"}, "clicks-value"),
        ({"topic": "clicks", "part": "key"}, "clicks-key"),
        ({"subject_strategy": "record_name"}, "org.example.Click"),
        ({"topic": "clicks", "subject_strategy": "topic_record_name"}, "clicks-org.example.Click"),
        ({"subject": "mine"}, "mine"),
    ],
)
def test_how_subjects_are_called(options: dict[str, Any], subject: str) -> None:
    written = made(ToAvro, registry="http://r:1", schema=FIRST, **options)
    assert written.options.wanted_subject == subject  # type: ignore[attr-defined]
    named = {"record": "org.example.Click"} if "record" in options.get("subject_strategy", "") else {}
    read: Any = made(FromAvro, column="value", registry="http://r:1", **options, **named)
    assert read._subject() == subject


def test_a_file_with_certificates_is_read_before_a_start(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    given = {"column": "value", "registry": "https://r", "schema": FIRST, "registry_ca_file": "ca.pem"}
    with pytest.raises(ValidationError, match="the file has no certificates"):
        FromAvro.options_type.model_validate(given, context={"base_dir": tmp_path})
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    options: Any = FromAvro.options_type.model_validate(given, context={"base_dir": tmp_path})
    assert options.client().authority == CERTIFICATE


# Checks


def pipeline(tmp_path: Path, registry: str, more: str = "", write: str = "") -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(
        "pipeline: p\nmode: batch\n"
        "sources: {rows: {gem: rows, options: {schema: 'value binary', rows: []}}}\n"
        "transforms:\n"
        "  read:\n    gem: from_avro\n    input: rows\n"
        f"    options: {{column: value, registry: '{registry}', topic: clicks{more}}}\n"
        "  few: {gem: select, input: read, options: {columns: [pag]}}\n"
        + (f"  written:\n    gem: to_avro\n    input: read\n    options: {{{write}}}\n" if write else "")
        + "targets: {out: {gem: noop, input: few}"
        + (", back: {gem: noop, input: written}" if write else "")
        + "}\n"
    )
    return file


def connected(file: Path) -> list[tuple[str, str, str]]:
    """What `check --connect` finds."""
    from gem_bundle.check.checker import check_file
    from gem_bundle.check.stages.connect import check_connect
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.secrets import SecretStore

    environment = {"GEM_BUNDLE_SECRET_REGISTRY_PASSWORD": "s3cret"}
    options = LoadOptions(environment=environment, secrets=SecretStore(environment))
    checked = check_file(file, options, discover=True)
    found = list(checked.diagnostics)
    if checked.known is not None:
        found += check_connect(checked.known)
    assert "s3cret" not in str(found)
    return [(d.code, d.severity, d.message) for d in found]


@pytest.mark.servers
def test_columns_are_unknown_without_the_network_and_known_with_it(
    schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    schema_registry.register("clicks-value", SECOND)
    file = pipeline(tmp_path, schema_registry.url)
    assert Pipeline.load(file).check() == []
    assert schema_registry.asked == []
    found = connected(file)
    assert [(code, severity) for code, severity, _ in found] == [("GB210", "error"), ("GB523", "note")]
    assert "the columns `page`, `n`, `team`, by the latest schema of `clicks-value` now" in found[1][2]


@pytest.mark.servers
def test_what_is_wrong_with_a_registry(schema_registry: SchemaRegistry, tmp_path: Path) -> None:
    file = pipeline(tmp_path, schema_registry.url)
    ((code, _, message),) = connected(file)
    assert (code, "has no subject `clicks-value`" in message) == ("GB522", True)
    schema_registry.register("clicks-value", "message Click {}", kind="PROTOBUF")
    ((code, _, message),) = connected(file)
    assert (code, "is one of PROTOBUF and not of Avro" in message) == ("GB522", True)
    schema_registry.needs("ann", "s3cret")
    ((code, _, message),) = connected(file)
    assert (code, "refuses the login (HTTP 401)" in message) == ("GB503", True)
    schema_registry.register("clicks-value", FIRST)
    login = ", registry_user: ann, registry_password: '${secret:registry/password}'"
    assert [code for code, *_ in connected(pipeline(tmp_path, schema_registry.url, login))] == [
        "GB210",
        "GB523",
    ]
    schema_registry.stop()
    ((code, _, message),) = connected(file)
    assert (code, "can't be reached: connection refused" in message) == ("GB503", True)


@pytest.mark.servers
def test_to_avro_is_checked_against_the_registry(schema_registry: SchemaRegistry, tmp_path: Path) -> None:
    schema_registry.register("clicks-value", FIRST)

    def found(write: str) -> list[tuple[str, str, str]]:
        file = pipeline(tmp_path, schema_registry.url, write=f"registry: '{schema_registry.url}', {write}")
        return [each for each in connected(file) if "`written`" in each[2] and each[0] != "GB205"]

    given = json.dumps(json.dumps(SECOND))
    ((code, _, message),) = found(f"topic: out, schema: {given}")
    assert (code, "doesn't have the schema in `out-value`" in message) == ("GB522", True)
    assert found(f"topic: out, schema: {given}, register: true") == []
    assert found(f"topic: clicks, schema: {given}, register: true") == []
    wrong = json.dumps(json.dumps(record(("page", "string"), ("n", "int"), ("x", ["null", "int"]))))
    ((code, _, message),) = found(f"topic: clicks, schema: {wrong}, register: true")
    assert (code, "READER_FIELD_MISSING_DEFAULT_VALUE: x" in message) == ("GB522", True)
    assert [code for code, *_ in found("topic: clicks")] == ["GB523"]
    assert schema_registry.subjects() == {"clicks-value": [1]}, "a check changes nothing"


@pytest.mark.servers
def test_what_is_packed_is_compared_with_the_latest_schema(
    schema_registry: SchemaRegistry, tmp_path: Path
) -> None:
    schema_registry.register("clicks-value", FIRST)
    schema_registry.register("out-value", record(("page", "int"), ("other", "int")))
    file = pipeline(tmp_path, schema_registry.url, write=f"registry: '{schema_registry.url}', topic: out")
    messages = [message for code, _, message in connected(file) if code == "GB205"]
    assert [message.partition(": ")[2] for message in messages] == [
        "`n` is packed, and the record `R` has no such field",
        "`page` is a string, and the schema has an int there",
        "the record `R` has a field `other`, and nothing is packed into it",
    ]


def test_what_is_packed_is_compared_with_the_schema() -> None:
    rows = stream_of(
        Column("page", "string"),
        Column("n", "bigint"),
        Column("at", "timestamp"),
        Column("s", "struct<a: int>"),
    )

    def said(schema: Any, **more: Any) -> list[str]:
        return [finding.message for finding in findings(ToAvro, rows, schema=schema, **more)]

    fits = record(
        ("PAGE", ["null", "string"]),
        ("n", "long"),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}),
        ("s", record(("a", "int"), name="S")),
        ("more", ["null", "int"]),
    )
    assert said(fits) == []
    assert said(record(("n", "int")), columns=["n"]) == ["`n` is a bigint, and the schema has an int there"]
    assert said(record(("n", "long")), columns={"n": "n", "m": "n"}) == [
        "`m` is packed, and the record `R` has no such field"
    ]
    assert said(record(("n", "long"), ("m", "int")), columns=["n"]) == [
        "the record `R` has a field `m`, and nothing is packed into it"
    ]
    inner = record(("s", record(("b", "int"), name="S")))
    assert said(inner, columns=["s"]) == [
        "`s.a` is packed, and the record `S` has no such field",
        "the record `S` has a field `s.b`, and nothing is packed into it",
    ]
    assert said(record(("x", "int")), columns=["upper(page)"]) == [], "Spark gives it a name of its own"
    assert findings(ToAvro, Facts(streaming=True), schema=fits) == []


@pytest.mark.servers
def test_nothing_is_registered_by_what_changes_nothing(schema_registry: SchemaRegistry) -> None:
    gem: Any = made(ToAvro, registry=schema_registry.url, topic="t", schema=FIRST, register=True)
    asked = gem.options.client()
    assert gem.for_preview()._registered(asked)[1] == 0
    assert schema_registry.subjects() == {}
    assert gem._registered(asked)[1] == 1
    assert gem.for_preview()._registered(asked)[1] == 1
    assert schema_registry.subjects() == {"t-value": [1]}
    with pytest.raises(GemError, match="doesn't have the schema in `u-value`"):
        made(ToAvro, registry=schema_registry.url, topic="u", schema=FIRST)._registered(asked)  # type: ignore[attr-defined]
