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
from tests.kit.conformance.tried import options_tried, with_reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle import Source
    from gem_bundle.testing.conformance.edits import Edit


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
NO_LOGIN = "the broker asks for no login, and who asks it for one waits"
LOGINS = ("ssl_truststore_type", "ssl_keystore_type", "ssl_endpoint_identification_algorithm")
PEM = {"security_protocol": "SSL", "ssl_keystore_key": "…", "ssl_keystore_certificate_chain": "PEM"}


def rows(number: int) -> list[dict[str, Any]]:
    return [{"id": 10 * number + n, "name": name} for n, name in enumerate(("ada", "☂", None))]


class TestDelta(SourceConformance):
    gem = DeltaSource
    unreachable = {"path": "nowhere"}

    edits = [
        ("path", "elsewhere"),
        ("starting_version", 0),
        ("starting_version", "latest"),
        ("starting_timestamp", "2026-01-05T09:00:00Z"),
        ("max_files_per_trigger", 1),
        ("max_bytes_per_trigger", 1),
        ("exclude_regex", "nothing"),
        ("streaming_source_tracking_id", "other"),
        ("spark_options", {"maxFilesPerTrigger": 1}),
    ]

    def provide(self) -> Mapping[str, Any]:
        for name in ("t", "elsewhere"):
            self.spark.createDataFrame([], "id bigint, name string").write.format("delta").save(
                str(self.folder / name)
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
    edits = [
        ("path", "elsewhere"),
        ("schema", "id bigint, name string, more int"),
        ("schema", "name string, id bigint"),
        ("schema", "id string, name string"),
        ("base_path", "in"),
        ("path_glob_filter", "2*"),
        ("max_files_per_trigger", 1),
        ("max_bytes_per_trigger", 1),
        ("max_file_age", "1 day"),
        ("max_cached_files", 0),
        ("discard_cached_input_ratio", 0.5),
        ("encoding", "UTF-16LE"),
        ("line_sep", ";"),
        ("date_format", "yyyy"),
        ("timestamp_format", "yyyy"),
        ("timestamp_ntz_format", "yyyy"),
        ("time_format", "HH"),
        ("time_zone", "Europe/Berlin"),
        ("locale", "de-DE"),
        ("sampling_ratio", 0.5),
        ("column_name_of_corrupt_record", "broken"),
        ("spark_options", {"allowComments": True}),
    ]
    untried = [("clean_source", "delete", "all that is compared reads the same files")]

    def provide(self) -> Mapping[str, Any]:
        (self.folder / "in").mkdir()
        (self.folder / "elsewhere").mkdir()
        return self.sample()

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        lines = "".join(json.dumps(row) + "\n" for row in rows(number))
        hidden = self.folder / "in" / f".{number}"
        hidden.write_text(lines, encoding="utf-8")
        hidden.rename(self.folder / "in" / f"{number}.json")
        return rows(number)


class TestFileOfCsv(TestFile):
    options = {"format": "csv", "path": "in", "schema": "id bigint, name string", "header": True}
    edits = [
        *TestFile.edits,
        ("sep", ";"),
        ("quote", "'"),
        ("escape", "'"),
        ("char_to_escape_quote_escaping", "'"),
        ("null_value", "ada"),
        ("empty_value", "ada"),
        ("comment", "1"),
        ("nan_value", "ada"),
        ("positive_inf", "ada"),
        ("negative_inf", "ada"),
        ("max_columns", 50),
        ("max_chars_per_column", 100),
        ("input_buffer_size", 64),
    ]

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        lines = ["id,name", *(f"{row['id']},{row['name'] or ''}" for row in rows(number))]
        hidden = self.folder / "in" / f".{number}"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        hidden.rename(self.folder / "in" / f"{number}.csv")
        return rows(number)


class TestFileRejects(TestFile):
    """Broken records among the others: whatever is asked of the good rows, these are never among them."""

    options = {**TestFile.options, "schema": "id bigint not null, name string, size double", "rejects": True}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        broken = ['{"id": 1', '{"id": "x"}', '{"id": 2, "size": "large"}', '{"name": "nobody"}', "[]]", "7"]
        (self.folder / "in" / f"broken-{number}.json").write_text("\n".join(broken), encoding="utf-8")
        return super().feed(number)

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        return (edit for edit in super().edited() if edit.option in {"schema", "mode", "rejects"})


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

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        return iter(())  # what another source does would be told of it

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

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        return (edit for edit in super().edited() if edit.option == "infer_schema")


class TestKafka(SourceConformance):
    gem = KafkaSource
    unreachable = {"bootstrap_servers": ["localhost:1"], "subscribe": ["clicks"]}
    secret_samples = [{**KafkaSource.example, **more} for more in (LOGIN, JAAS, PEM)]
    starting_offsets = "earliest"
    edits = [
        ("subscribe", lambda suite: [suite.topic, suite.other]),
        ("subscribe", lambda suite: [suite.other]),
        ("starting_offsets", "latest"),
        ("starting_timestamp", "2026-01-05T09:00:00Z"),
        ("max_offsets_per_trigger", 1),
        ("min_offsets_per_trigger", 1),
        ("max_trigger_delay", "1 second"),
        ("min_partitions", 4),
        ("max_records_per_partition", 1),
        ("group_id_prefix", "other"),
        ("group_id", "other"),
        ("client_id", "other"),
        ("request_timeout", "20 seconds"),
        ("kafka_consumer_poll_timeout_ms", 60_000),
        ("fetch_offset_num_retries", 5),
        ("fetch_offset_retry_interval_ms", 5),
        ("spark_options", {"kafka.fetch.min.bytes": 1}),
    ]
    untried = [(name, ..., NO_LOGIN) for name in ("security_protocol", "sasl_mechanism", *LOGINS)]

    def provide(self) -> Mapping[str, Any]:
        self.broker = self.request.getfixturevalue("kafka")
        self.other = self.broker.new_topic("other")
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

        edits = [
            ("max_rows_per_trigger", 1),
            ("num_partitions", 1),
            ("fetch_size", 1),
            ("query_timeout", 60),
            ("starting", "latest"),
            ("table", lambda suite: f"{suite.table}_of_others"),
        ]

        def provide(self) -> Mapping[str, Any]:
            given = super().provide()
            self.server.sql(f"CREATE TABLE {self.table}_of_others (id bigint, name text)")
            return {**given, "increasing": "id", "num_partitions": 2}

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
    edits = [
        ("table", lambda suite: f"{suite.name}_of_others"),
        ("spark_options", {"maxFilesPerTrigger": 1}),
    ]

    def provide(self) -> Mapping[str, Any]:
        self.name = f"conformance_{uuid4().hex}"
        for name in (self.name, f"{self.name}_of_others"):
            self.spark.sql(f"CREATE TABLE {name} (id bigint, name string) USING json")
        return {"table": self.name}

    def feed(self, number: int) -> Sequence[Mapping[str, Any]]:
        df = self.spark.createDataFrame(rows(number), "id bigint, name string")
        df.coalesce(1).write.insertInto(self.name)
        return rows(number)

    def clean_up(self) -> None:
        if self.name:
            for name in (self.name, f"{self.name}_of_others"):
                self.spark.sql(f"DROP TABLE {name}")


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


UNTRIED_GEMS = {
    AutoLoaderSource: "only Databricks has Auto Loader",
    GenerateSource: "its stream never ends",
    RateMicroBatchSource: "its stream never ends",
    RateSource: "its stream never ends",
    RowsSource: "no stream reads it",
    SocketSource: "a server doesn't send its lines again",
}
_BATCH = "a stream doesn't take it"
UNTRIED: dict[type[Source[Any]], dict[str, tuple[str, ...]]] = {
    DeltaSource: {
        _BATCH: ("ending_version", "ending_timestamp", "version_as_of", "timestamp_as_of"),
        "another name for the table at a path is the edit of two options": ("table",),
        "it lies within a checkpoint, and the suite's are copied": ("schema_tracking_location",),
    },
    FileSource: {
        _BATCH: ("modified_before", "modified_after"),
        "the suite writes no files of the format": (
            *("avro_schema", "avro_schema_url", "positional_field_matching", "recursive_field_max_depth"),
            *("enable_stable_identifiers_for_union_type", "stable_identifier_prefix_for_union_type"),
            *("row_tag", "attribute_prefix", "value_tag", "exclude_attribute", "ignore_surrounding_spaces"),
            *("row_validation_xsd_path", "ignore_namespace", "wildcard_col_name", "use_legacy_xml_parser"),
            *("wholetext", "merge_schema", "datetime_rebase_mode", "int96_rebase_mode"),
        ),
        "it needs a schema of one variant beside it": ("single_variant_column",),
        "it needs another option beside it": ("source_archive_dir",),
    },
    KafkaSource: {
        NO_LOGIN: (
            *("security_protocol", *(name for name in LOGIN if name != "security_protocol")),
            *("sasl_jaas_config", "sasl_kerberos_service_name", "ssl_truststore_type", "ssl_keystore_type"),
            *("ssl_truststore_certificates", "ssl_keystore_certificate_chain", "ssl_keystore_key"),
            "ssl_endpoint_identification_algorithm",
        ),
        "the suite has one broker": ("bootstrap_servers",),
        _BATCH: ("ending_timestamp", "ending_offsets_by_timestamp"),
        "it needs another option beside it, or in place of it": (
            *("subscribe_pattern", "assign", "starting_timestamp", "starting_offsets_by_timestamp"),
            *("starting_offsets_by_timestamp_strategy", "max_trigger_delay"),
        ),
    },
    JdbcSource: {
        "the suite has one database, with one login": ("url", "user", "password", "driver", "jar"),
        _BATCH: (
            *("query", "partition_column", "lower_bound", "upper_bound", "predicates"),
            *("session_init_statement", "custom_schema", "spark_options"),
        ),
        "how long it waits, and not for what": ("delay", "longest_transaction"),
        "the table has one column of numbers": ("increasing",),
    },
    TableSource: {"another catalog is another session": ("catalog",)},
}


def test_what_a_source_says_of_its_options_is_tried() -> None:
    tried, left = options_tried(globals(), SourceConformance)
    assert {option for option in left if option[0] not in UNTRIED_GEMS} == with_reasons(UNTRIED)
    assert not {gem for gem, _ in tried} & UNTRIED_GEMS.keys()


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
