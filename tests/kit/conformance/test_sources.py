"""The built-in sources, in the suite that a stranger's source has to pass."""

# ruff: noqa: RUF012 (`GemConformance` declares them class variables)

from __future__ import annotations

import json
import socket
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from gem_bundle import ReadContext
from gem_bundle.run.jars import spark_version
from gem_bundle.testing.conformance import SourceConformance
from gem_bundle.testing.conformance.streams import (
    all_rows,
    difference,
    drained,
    forget_last_commit,
    read_stream,
    rows_of,
)
from gem_delta.source import DeltaSource
from gem_file.auto_loader import AutoLoaderSource
from gem_file.source import FileSource
from gem_jdbc.source import JdbcSource
from gem_kafka.source import KafkaSource
from gem_rate.generate import GenerateSource
from gem_rate.micro_batch import RateMicroBatchSource
from gem_rate.source import RateSource
from gem_rows.source import RowsSource
from gem_socket.source import SocketSource
from gem_table.source import TableSource
from tests.conftest import has_iceberg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


NOWHERE = "there is nothing outside: {}"
LOGIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ada",
    "sasl_password": "…",
    "ssl_truststore_location": "trust.jks",
    "ssl_truststore_password": "…",
    "ssl_keystore_location": "own.jks",
    "ssl_keystore_password": "…",
    "ssl_key_password": "…",
}
JAAS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_jaas_config": "…"}
PEM = {"security_protocol": "SSL", "ssl_keystore_key": "…", "ssl_keystore_certificate_chain": "PEM"}


def rows(number: int) -> list[dict[str, Any]]:
    return [{"id": 10 * number + n, "name": name} for n, name in enumerate(("ada", "☂", None))]


class TestDelta(SourceConformance):
    gem = DeltaSource
    unreachable = {"path": "nowhere"}

    def provide(self) -> Mapping[str, Any]:
        self.spark.createDataFrame([], "id bigint, name string").write.format("delta").save(
            str(self.folder / "t")
        )
        return {"path": "t"}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        df = self.spark.createDataFrame(rows(number), "id bigint, name string")
        df.coalesce(1).write.format("delta").mode("append").save(str(self.folder / "t"))
        return rows(number)


class TestDeltaFromNowOn(TestDelta):
    options = {"path": "t", "starting_version": "latest"}
    waive = {
        "test_replays_the_same_rows": "Delta looks `latest` up anew until a first micro-batch is committed, "
        "as the condition says; from then on it replays (`test_replays_what_follows_a_first_micro_batch`)"
    }

    def provide(self) -> Mapping[str, Any]:
        return {**super().provide(), "starting_version": "latest"}

    @pytest.mark.spark
    def test_replays_what_follows_a_first_micro_batch(self) -> None:
        self._first_run(self.live())
        self._given(2)
        (number, second), *_ = drained(read_stream(self.live(), self.spark), self.checkpoint)
        assert second
        assert forget_last_commit(self.checkpoint) == number
        third = self._given(3)
        (again, replayed), *rest = drained(read_stream(self.live(), self.spark), self.checkpoint)
        assert (again, replayed) == (number, second)
        assert difference(all_rows(rest), third) == ""


class TestFile(SourceConformance):
    gem = FileSource
    options = {"format": "json", "path": "in", "schema": "id bigint, name string"}
    unreachable = {"format": "json", "path": "nowhere", "schema": "id bigint"}

    def provide(self) -> Mapping[str, Any]:
        (self.folder / "in").mkdir()
        return self.sample()

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        lines = "".join(json.dumps(row) + "\n" for row in rows(number))
        hidden = self.folder / "in" / f".{number}"
        hidden.write_text(lines, encoding="utf-8")
        hidden.rename(self.folder / "in" / f"{number}.json")
        return rows(number)


class TestFileRejects(TestFile):
    """Broken records among the others: whatever is asked of the good rows, these are never among them."""

    options = {**TestFile.options, "schema": "id bigint not null, name string, size double", "rejects": True}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        broken = ['{"id": 1', '{"id": "x"}', '{"id": 2, "size": "large"}', '{"name": "nobody"}', "[]]", "7"]
        (self.folder / "in" / f"broken-{number}.json").write_text("\n".join(broken), encoding="utf-8")
        return super().feed(number)


class TestAutoLoader(TestFile):
    """What only Databricks has: here Spark's own source of JSON files stands in for `cloudFiles`."""

    gem = AutoLoaderSource
    secret_samples = (
        {
            **AutoLoaderSource.example,
            "use_notifications": True,
            "aws_access_key": "…",
            "aws_secret_key": "…",
            "client_secret": "…",
            "connection_string": "…",
            "private_key": "…",
        },
    )
    waive = {"test_secrets_are_declared": "`service_credential` is the name of one that the workspace keeps"}

    @pytest.fixture(autouse=True)
    def _stand_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("gem_file.auto_loader.FORMAT", "json")


class TestFileInferred(TestFile):
    options = {"format": "json", "path": "in", "infer_schema": True}

    def provide(self) -> Mapping[str, Any]:
        super().provide()
        # Columns are taken from what is there at the start: a file that the tests don't count.
        (self.folder / "in" / "0.json").write_text('{"id": 0, "name": "before"}\n', encoding="utf-8")
        return self.sample()

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        before = [{"id": 0, "name": "before"}] if number == 1 else []
        return [*before, *super().feed(number)]


class TestKafka(SourceConformance):
    gem = KafkaSource
    unreachable = {"bootstrap_servers": ["localhost:1"], "subscribe": ["clicks"]}
    secret_samples = [{**KafkaSource.example, **more} for more in (LOGIN, JAAS, PEM)]
    starting_offsets = "earliest"

    def provide(self) -> Mapping[str, Any]:
        self.broker = self.request.getfixturevalue("kafka")
        self.topic = self.broker.new_topic("conformance", partitions=2)
        return {
            "bootstrap_servers": [self.broker.bootstrap],
            "subscribe": [self.topic],
            "starting_offsets": self.starting_offsets,
        }

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        values = [f"value {number} {n}" for n in range(3)]
        records = self.broker.produce(self.topic, values, keys=["a", "b", None])
        return [
            {"key": r.key, "value": r.value, "partition": r.partition, "offset": r.offset} for r in records
        ]


class TestKafkaFromNowOn(TestKafka):
    options = {**KafkaSource.example, "starting_offsets": "latest"}
    starting_offsets = "latest"


class TestJdbc(SourceConformance):
    gem = JdbcSource
    options = {"url": "jdbc:postgresql://localhost/shop", "password": "…", "table": "clicks"}
    unreachable = {"url": "jdbc:postgresql://127.0.0.1:1/shop", "table": "clicks"}

    def provide(self) -> Mapping[str, Any]:
        self.server = self.request.getfixturevalue("postgres")
        self.table = f"{self.server.new_schema()}.clicks"
        self.server.sql(f"CREATE TABLE {self.table} (id bigint, name text)")
        return {**self.server.options(), "table": self.table}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        values = json.dumps(rows(number)).replace("'", "''")
        self.server.sql(
            f"INSERT INTO {self.table} SELECT * FROM json_populate_recordset(NULL::{self.table}, '{values}')"
        )
        return rows(number)


# Streams of Python are told where they begin from Spark 4.2 on.
if spark_version() >= "4.2":

    class TestJdbcAsAStream(TestJdbc):
        options = {**TestJdbc.options, "increasing": "id"}
        unreachable = {**TestJdbc.unreachable, "increasing": "id"}

        def provide(self) -> Mapping[str, Any]:
            return {**super().provide(), "increasing": "id", "num_partitions": 2}

    class TestJdbcFromNowOn(TestJdbcAsAStream):
        options = {**TestJdbcAsAStream.options, "starting": "latest"}

        def provide(self) -> Mapping[str, Any]:
            return {**super().provide(), "starting": "latest"}


class TestRate(SourceConformance):
    gem = RateSource
    waive = {"test_an_unreachable_system_is_a_sentence": NOWHERE.format("it makes its rows itself")}


class TestRateMicroBatch(SourceConformance):
    gem = RateMicroBatchSource
    options = {"rows_per_batch": 4}
    waive = {"test_an_unreachable_system_is_a_sentence": NOWHERE.format("it makes its rows itself")}


class TestGenerate(SourceConformance):
    gem = GenerateSource
    options = {
        "columns": {
            "id": {"sequence": {"start": 1}},
            "name": {"choice": {"ada": 3, "☂": 1}, "nulls": 0.2},
            "at": {"time": {"start": "2026-01-05", "step": "1 minute"}},
            "doubled": "id * 2",
        },
        "rows": 5,
        "rows_per_batch": 4,
    }
    waive = {
        "test_an_unreachable_system_is_a_sentence": NOWHERE.format("it makes its rows itself"),
        "test_reads_a_batch": "nobody feeds it; `test_a_stream_begins_as_a_batch` says what it reads",
    }

    @pytest.mark.spark
    def test_a_stream_begins_as_a_batch(self) -> None:
        """A batch has so many rows, and a stream has the same ones to begin with."""
        gem = self.live()
        gem.streaming = False
        batch = rows_of(gem.read(ReadContext("generated", self.spark)))
        _, batches = self._first_run(self.live())
        assert [row["id"] for row in batch] == [1, 2, 3, 4, 5]
        assert sorted(all_rows(batches), key=lambda row: row["id"])[:5] == batch


class TestRows(SourceConformance):
    gem = RowsSource
    options = {"rows": rows(1) + rows(2), "schema": "id bigint, name string"}
    waive = {
        "test_an_unreachable_system_is_a_sentence": NOWHERE.format("its rows stand in the pipeline file")
    }

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        return rows(number)


class TestSocket(SourceConformance):
    gem = SocketSource
    unreachable = {"host": "localhost", "port": 1}

    def provide(self) -> Mapping[str, Any]:
        self.server = LineServer()
        return {"host": "localhost", "port": self.server.port}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        lines = [f"line {number} {n}" for n in range(3)]
        self.server.send(lines)
        return [{"value": line} for line in lines]

    def clean_up(self) -> None:
        if hasattr(self, "server"):
            self.server.close()


class TestTable(SourceConformance):
    gem = TableSource
    unreachable = {"table": "no_such_table"}
    name = ""

    def provide(self) -> Mapping[str, Any]:
        self.name = f"conformance_{uuid4().hex}"
        self.spark.sql(f"CREATE TABLE {self.name} (id bigint, name string) USING json")
        return {"table": self.name}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        df = self.spark.createDataFrame(rows(number), "id bigint, name string")
        df.coalesce(1).write.insertInto(self.name)
        return rows(number)

    def clean_up(self) -> None:
        if self.name:
            self.spark.sql(f"DROP TABLE {self.name}")


if has_iceberg():

    class TestTableOfIceberg(SourceConformance):
        gem = TableSource
        options = {"table": "lake.web.t", "catalog": {"kind": "hadoop", "warehouse": "lake"}}
        unreachable = {
            "table": "lake.web.t",
            "catalog": {"kind": "rest", "uri": "http://localhost:1", "token": "…"},
        }

        def provide(self) -> Mapping[str, Any]:
            # A session keeps a catalog that it has used under its name.
            self.table = f"lake_{uuid4().hex}.web.t"
            given = {"table": self.table, "catalog": {"kind": "hadoop", "warehouse": str(self.folder)}}
            for key, value in self.made(given).session_settings().items():
                self.spark.conf.set(key, value)
            self.spark.sql(f"CREATE TABLE {self.table} (id bigint, name string) USING iceberg")
            return given

        def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
            df = self.spark.createDataFrame(rows(number), "id bigint, name string")
            df.coalesce(1).write.insertInto(self.table)
            return rows(number)


class LineServer:
    """A server that sends every line once, to whoever is connected."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._listener = socket.create_server(("localhost", 0))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def send(self, lines: list[str]) -> None:
        for line in lines:
            self._lines.put(line)

    def close(self) -> None:
        self._closed.set()
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        connections: list[socket.socket] = []
        while not self._closed.is_set():
            try:
                connections.append(self._listener.accept()[0])
            except TimeoutError:
                pass
            except OSError:
                break
            while connections:
                try:
                    line = self._lines.get_nowait()
                except Empty:
                    break
                connections[-1].sendall(f"{line}\n".encode())
        for connection in connections:
            connection.close()
