"""The source `socket`, with a real server."""

import socket
import threading
from contextlib import contextmanager

import pytest
from pydantic import ValidationError

from gem_bundle import Column, StreamReadContext
from gem_socket.source import SocketSource
from tests.gems.draining import make
from tests.ports import free_port


def source(**raw):
    return make(SocketSource, {"host": "127.0.0.1", **raw})


@contextmanager
def serving(*lines):
    """A server that sends these lines to everyone who connects, and then keeps the line open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                connection.sendall("".join(f"{line}\n" for line in lines).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@pytest.fixture
def closed_port():
    """A port where nobody listens."""
    return free_port()


@pytest.mark.parametrize(
    ("raw", "option"),
    [({"port": 0}, "port"), ({"port": 65536}, "port"), ({"host": "", "port": 1}, "host"), ({}, "port")],
)
def test_values_that_are_refused(raw, option):
    with pytest.raises(ValidationError) as caught:
        source(**raw)
    assert {error["loc"] for error in caught.value.errors()} == {(option,)}


def test_its_columns_are_known():
    assert source(port=1).infer().columns == (Column("value", "string"),)
    assert source(port=1, includeTimestamp=True).infer().columns == (
        Column("value", "string"),
        Column("timestamp", "timestamp"),
    )


@pytest.mark.servers
def test_the_preflight_asks_the_server():
    with serving() as port:
        assert list(source(port=port).connect()) == []


@pytest.mark.programs
def test_the_preflight_says_when_no_server_answers(closed_port, monkeypatch):
    (finding,) = source(port=closed_port).connect()
    assert (finding.code, finding.severity, finding.option) == ("GB503", "error", "port")
    assert f"127.0.0.1:{closed_port}" in finding.message
    (finding,) = source(host="no-such-host.invalid", port=closed_port).connect()
    assert (finding.code, finding.option) == ("GB503", "host")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    assert list(source(port=closed_port).connect()) == []


def test_it_is_declared_as_what_it_is():
    assert not SocketSource.semantics.batch
    assert not SocketSource.semantics.replayable
    assert "continuous" in SocketSource.semantics.triggers


@pytest.mark.spark
@pytest.mark.parametrize("timestamp", [False, True])
def test_lines_become_rows(spark, tmp_path, timestamp):
    found = []
    arrived = threading.Event()

    def take(df, batch_id):
        found.extend(df.collect())
        if len(found) == 3:
            arrived.set()

    with serving("one", "zwei ä", "") as port:
        made = source(port=port, include_timestamp=timestamp)
        df = made.read_stream(StreamReadContext(node="x", spark=spark, name="x"))
        assert [Column(name, kind) for name, kind in df.dtypes] == list(made.infer().columns)
        query = df.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
        try:
            assert arrived.wait(60), query.exception()
        finally:
            query.stop()
    # Spark spreads the lines over partitions, so their order is not kept.
    assert sorted(row["value"] for row in found) == ["", "one", "zwei ä"]
    assert all(row["timestamp"] is not None for row in found if timestamp)


@pytest.mark.spark
def test_lines_can_be_processed_one_by_one(spark, tmp_path):
    with serving("one", "two") as port:
        df = source(port=port).read_stream(StreamReadContext(node="x", spark=spark, name="x"))
        writer = df.writeStream.format("memory").queryName("lines").trigger(continuous="1 second")
        query = writer.option("checkpointLocation", str(tmp_path)).start()
        try:
            # The query has all cores; to collect what the sink has takes none.
            while len(spark.table("lines").collect()) < 2:
                assert not query.awaitTermination(1)
        finally:
            query.stop()
    assert {row["value"] for row in spark.table("lines").collect()} == {"one", "two"}
