"""The gem: its options, its checks, its preflight, and what Spark reads with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from certificates import CERTIFICATE, KEY
from pydantic import ValidationError
from redis_server import RedisServer, serving

from gem_bundle import ReadContext, StreamReadContext
from gem_redis_streams.source import RedisStreamsSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PASSWORD = "open-sesame"


def source(**options: Any) -> RedisStreamsSource:
    """A source as gem-bundle makes it."""
    values = {"url": "redis://127.0.0.1:1", "streams": ["orders"], **options}
    return RedisStreamsSource(RedisStreamsSource.options_type.model_validate(values))  # type: ignore[arg-type]


# Options


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://redis", "redis://redis:6379/0"),
        ("redis://redis:7000/", "redis://redis:7000/0"),
        ("rediss://Redis/2", "rediss://redis:6379/2"),
        ("redis://[::1]", "redis://[::1]:6379/0"),
    ],
)
def test_an_address_is_written_out(url: str, address: str) -> None:
    assert source(url=url).options.url == address


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "redis:6379"}, "write the server's address as"),
        ({"url": "redis://ann:secret@redis"}, "take user and password out"),
        ({"url": "redis://redis/orders"}, "the number of a database"),
        ({"url": "redis://redis:99999"}, "the port is a number"),
        ({"streams": []}, "at least 1 item"),
        ({"streams": ["orders", "orders"]}, "named twice"),
        ({"starting_ids": "newest"}, "write `earliest`, `latest`, or an id"),
        ({"starting_ids": {"orders": "soon"}}, "an id is written as"),
        ({"starting_ids": {"orders": True}}, "an id is written as"),
        ({"starting_ids": {"clicks": "1-0"}}, "`starting_ids` names `clicks`"),
        ({"ending_ids": "earliest"}, "can't end where the streams start"),
        ({"ending_ids": {"orders": "earliest"}}, "can't end where the streams start"),
        ({"username": "ann"}, "no effect without `password`"),
        ({"verify_tls": False}, "write `rediss:`"),
        ({"url": "rediss://redis", "verify_tls": False, "ca_file": "ca.pem"}, "`ca_file` has no effect"),
        ({"max_entries_per_trigger": 0}, "greater than 0"),
    ],
)
def test_what_can_not_be_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        source(**options)

    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_ids_may_be_moments() -> None:
    places = source(starting_ids={"orders": 1767600000000}).options.starting_ids

    assert places == {"orders": "1767600000000-0"}


@pytest.mark.parametrize(
    ("streaming", "options", "option"),
    [
        (True, {"ending_ids": "latest"}, "ending_ids"),
        (False, {"max_entries_per_trigger": 7}, "max_entries_per_trigger"),
        (False, {"starting_ids": "latest"}, "starting_ids"),
        (True, {"starting_ids": "latest", "max_entries_per_trigger": 7}, None),
        (False, {"ending_ids": {"orders": "7-0"}}, None),
        (None, {"ending_ids": "latest"}, None),
    ],
)
def test_options_are_for_streams_or_for_batches(
    streaming: bool | None, options: dict[str, Any], option: str | None
) -> None:
    gem = source(**options)
    gem.streaming = streaming

    assert [found.option for found in gem.check()] == ([option] if option else [])


def test_a_source_that_starts_with_what_comes_says_so() -> None:
    assert source().semantics.only_new is False
    assert source(starting_ids="latest").semantics.only_new == "starting_ids"
    assert source(starting_ids={"orders": "latest"}).semantics.only_new == "starting_ids"
    mixed = source(streams=["orders", "clicks"], starting_ids={"orders": "latest", "clicks": "earliest"})
    assert mixed.semantics.only_new is False


def test_places_are_the_streams_with_tls_or_without() -> None:
    for url in ("redis://redis/1", "rediss://redis/1"):
        found = source(url=url, streams="a,b").places()
        assert found == {"streams": ["redis://redis:6379/1/a", "redis://redis:6379/1/b"]}


def test_a_preview_shows_the_oldest_entries() -> None:
    gem = source(starting_ids={"orders": "latest"}, max_entries_per_trigger=5_000)

    found = gem.for_preview().options

    assert found.starting_ids == {"orders": "earliest"}
    assert found.max_entries_per_trigger == 1_000


# The preflight


def test_streams_that_are_there_are_fine(server: RedisServer, key: str) -> None:
    server.client.xadd(key, {"a": "b"})

    assert list(source(url=server.url, streams=[key]).connect()) == []


def test_a_stream_that_is_not_there_yet_is_a_warning(server: RedisServer, key: str) -> None:
    (found,) = source(url=server.url, streams=[key]).connect()

    assert (found.code, found.severity, found.option) == ("REDIS001", "warning", "streams")
    assert not server.client.exists(key)


def test_something_else_is_an_error(server: RedisServer, key: str) -> None:
    server.client.set(key, "no stream")
    (found,) = source(url=server.url, streams=[key]).connect()

    assert (found.code, found.severity) == ("REDIS002", "error")
    assert f"`{key}` in `{server.url}/0` is a string" in found.message


def test_nobody_there_is_an_error() -> None:
    (found,) = source().connect()

    assert (found.code, found.option) == ("GB503", "url")
    assert found.message.startswith("the server `redis://127.0.0.1:1/0` can't be reached:")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that takes TLS and a password only, and a user who may do little."""
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, password=PASSWORD, tls=(CERTIFICATE, KEY)) as found:
        found.client.acl_setuser(
            "ann", enabled=True, passwords=[f"+{PASSWORD}"], keys=["orders"], categories=["+@read"]
        )
        yield found


@pytest.fixture
def trusted(tmp_path: Path) -> str:
    """The file with its certificate."""
    file = tmp_path / "ca.pem"
    file.write_text(CERTIFICATE)
    return str(file)


def test_a_password_is_asked_for(guarded: RedisServer, trusted: str) -> None:
    options: dict[str, Any] = {"url": guarded.url, "ca_file": trusted}
    (missing,) = source(**options).connect()
    (wrong,) = source(**options, password="wrong-password").connect()
    (right,) = source(**options, password=PASSWORD).connect()

    for found in (missing, wrong):
        assert (found.code, found.option) == ("GB503", "password")
        assert "doesn't take the login" in found.message
    assert "wrong-password" not in f"{wrong}"
    assert right.code == "REDIS001"


def test_a_user_must_be_allowed_to_look(guarded: RedisServer, trusted: str) -> None:
    (found,) = source(url=guarded.url, ca_file=trusted, username="ann", password=PASSWORD).connect()

    assert (found.code, found.option) == ("GB503", "username")
    assert "EVAL, EXISTS, TYPE, XINFO and XRANGE" in found.hint


def test_a_certificate_must_be_trusted(guarded: RedisServer) -> None:
    (found,) = source(url=guarded.url, password=PASSWORD).connect()
    (unverified,) = source(url=guarded.url, password=PASSWORD, verify_tls=False).connect()

    assert "certificate" in found.message.lower()
    assert unverified.code == "REDIS001"


def test_certificates_that_can_not_be_read_are_found(tmp_path: Path) -> None:
    (found,) = source(url="rediss://localhost", ca_file=str(tmp_path / "gone.pem")).connect()

    assert (found.code, found.option) == ("GB505", "ca_file")


# Spark


def fill(server: RedisServer, key: str, count: int, start: int = 1) -> list[str]:
    numbers = range(start, start + count)
    for number in numbers:
        server.client.xadd(key, {"number": str(number)}, id=f"{number}-0")
    return [f"{number}-0" for number in numbers]


def ids(df: DataFrame) -> list[str]:
    return [row.id for row in df.collect()]


def drain(df: DataFrame, checkpoint: Path) -> list[list[str]]:
    """The ids of each micro-batch until nothing is left."""
    found: list[list[str]] = []
    writer = df.writeStream.foreachBatch(lambda batch, _: found.append(ids(batch)))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return found


@pytest.mark.spark
def test_spark_reads_a_batch_in_parts(session: SparkSession, server: RedisServer, key: str) -> None:
    fill(server, key, 25)
    server.client.xadd(f"{key}-b", {"shop": "Oslo", "amount": "7"}, id="1767600000123-0")
    gem = source(url=server.url, streams=[key, f"{key}-b"], entries_per_partition=10)

    df = gem.read(ReadContext("orders", session))

    assert df.schema.simpleString() == (
        "struct<stream:string,id:string,timestamp:timestamp,fields:map<string,string>>"
    )
    assert df.rdd.getNumPartitions() == 4
    assert len(set(ids(df))) == 26
    (order,) = df.where("fields['shop'] = 'Oslo'").selectExpr("cast(timestamp as string)", "fields").collect()
    assert tuple(order) == ("2026-01-05 08:00:00.123", {"shop": "Oslo", "amount": "7"})


@pytest.mark.spark
def test_spark_reads_an_empty_batch(session: SparkSession, server: RedisServer, key: str) -> None:
    assert ids(source(url=server.url, streams=[key]).read(ReadContext("orders", session))) == []


@pytest.mark.spark
def test_spark_reads_a_stream_and_goes_on_where_it_was(
    session: SparkSession, server: RedisServer, key: str, tmp_path: Path
) -> None:
    wanted = fill(server, key, 10)
    gem = source(url=server.url, streams=[key], max_entries_per_trigger=4)

    def run() -> list[list[str]]:
        return drain(gem.read_stream(StreamReadContext("orders", session, "orders")), tmp_path / "checkpoint")

    first = run()
    wanted += fill(server, key, 3, start=11)
    second = run()

    assert [len(batch) for batch in first] == [4, 4, 2]
    assert [entry for batch in first + second for entry in batch] == wanted


@pytest.mark.spark
def test_spark_ends_when_entries_are_gone(
    session: SparkSession, server: RedisServer, key: str, tmp_path: Path
) -> None:
    fill(server, key, 3)
    gem = source(url=server.url, streams=[key])
    stream = gem.read_stream(StreamReadContext("orders", session, "orders"))
    drain(stream, tmp_path / "checkpoint")
    fill(server, key, 3, start=4)
    server.client.xtrim(key, maxlen=1, approximate=False)

    with pytest.raises(Exception, match="2 entries were deleted behind 3-0 before being read"):
        drain(stream, tmp_path / "checkpoint")


@pytest.mark.spark
def test_spark_reads_over_tls_with_a_password_and_shows_it_nowhere(
    session: SparkSession,
    guarded: RedisServer,
    trusted: str,
    key: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    wanted = fill(guarded, key, 3)
    gem = source(url=guarded.url, streams=[key], password=PASSWORD, ca_file=trusted)
    stream = gem.read_stream(StreamReadContext("orders", session, "orders"))
    batch = gem.read(ReadContext("orders", session))

    for df in (stream, batch):
        df.explain(mode="extended")
        df.explain(mode="formatted")
    found = drain(stream, tmp_path / "checkpoint")

    assert found == [wanted]
    assert ids(batch) == wanted
    assert PASSWORD not in "".join(capfd.readouterr())
    kept = [file.read_bytes() for file in (tmp_path / "checkpoint").rglob("*") if file.is_file()]
    assert not any(PASSWORD.encode() in content for content in kept)
