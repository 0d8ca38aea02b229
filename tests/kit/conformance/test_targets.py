"""The built-in targets, in the suite that a stranger's target has to pass."""

# ruff: noqa: RUF012 (`GemConformance` declares them class variables)

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from gem_bundle.testing.conformance import TargetConformance
from gem_debug.console import ConsoleTarget
from gem_debug.memory import MemoryTarget
from gem_debug.noop import NoopTarget
from gem_delta.target import DeltaTarget
from gem_file.target import FileTarget
from gem_jdbc.target import JdbcTarget
from gem_kafka.target import KafkaTarget
from gem_python.foreach import ForeachTarget
from gem_python.foreach_batch import ForeachBatchTarget
from gem_table.target import TableTarget
from tests.conftest import has_iceberg
from tests.kit.conformance.test_sources import JAAS, LOGIN, LOGINS, NO_LOGIN, PEM
from tests.kit.conformance.tried import options_tried, with_reasons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gem_bundle import Target
    from gem_bundle.testing.conformance.edits import Edit

UNREACHABLE = "test_an_unreachable_system_is_a_sentence"
REPLACES = "test_replaces_a_batch"
KILLED = "test_a_killed_run_leaves_every_row_once"
MADE = "a folder that isn't there is made; where it can't be, Spark says so when the query starts"
REFUSED = [{"id": 9_000 + number, "name": "refused"} for number in range(5)]
FUNCTION = "what becomes of rows that are there is up to the function"


def plain(df: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]


class TestConsole(TargetConformance):
    gem = ConsoleTarget
    waive = {UNREACHABLE: "there is nothing outside: it prints"}


class TestNoop(TargetConformance):
    gem = NoopTarget
    waive = {UNREACHABLE: "there is nothing outside: it drops every row"}


class TestMemory(TargetConformance):
    gem = MemoryTarget
    waive = {
        UNREACHABLE: "there is nothing outside: it keeps rows in the session",
        "test_adds_a_batch": "the table is of one run, and the next one replaces it",
    }

    def written(self) -> Sequence[Mapping[str, Any]]:
        found = [
            name for name in (self._name(), f"{self._name()}_target") if self.spark.catalog.tableExists(name)
        ]
        return [row for name in found for row in plain(self.spark.table(name))]

    def clean_up(self) -> None:
        if self._provided is not None:
            for name in (self._name(), f"{self._name()}_target"):
                self.spark.catalog.dropTempView(name)


class TestDelta(TargetConformance):
    gem = DeltaTarget
    options = {"path": "out"}
    unreachable = {"table": "no_such_schema.t"}
    edits = [
        ("path", "elsewhere"),
        ("partition_by", ["id"]),
        ("cluster_by", ["id"]),
        ("replace_where", "id > 0"),
        ("compression", "gzip"),
        ("max_records_per_file", 1),
        ("user_metadata", "other"),
        ("merge", {"on": ["id"]}),
        ("history", {"keys": ["id"], "sequence_by": "id"}),
        ("table_operations", {"every": 1}),
        ("spark_options", {"compression": "gzip"}),
    ]

    def written(self) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.read.format("delta").load(str(self.folder / "out")))

    def written_with(self, gem: DeltaTarget) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.read.format("delta").load(gem.options.path))


class TestDeltaThatMerges(TestDelta):
    schema = "id bigint, name string, at bigint"
    options = {"path": "out", "merge": {"on": ["id"], "sequence_by": "at", "delete_when": "name = 'gone'"}}
    waive = {KILLED: "the target is killed once already, with rows that are added"}
    edits = [("merge", {"on": ["id"]}), ("merge", {"on": ["id", "name"], "sequence_by": "at"})]

    def rows(self, number: int, count: int = 3) -> list[dict[str, Any]]:
        return [{**row, "at": row["id"]} for row in super().rows(number, count)]

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        return (edit for edit in super().edited() if edit.option in {"merge", "history"})


class TestDeltaThatKeepsVersions(TestDeltaThatMerges):
    options = {"path": "out", "history": {"keys": ["id"], "sequence_by": "at", "track": ["name"]}}
    edits = [("history", {"keys": ["id"], "sequence_by": "at"})]

    def written(self) -> Sequence[Mapping[str, Any]]:
        found = self.spark.read.format("delta").load(str(self.folder / "out"))
        return plain(
            found.where("is_current and valid_to is null and valid_from = at").select("id", "name", "at")
        )


class TestFile(TargetConformance):
    gem = FileTarget
    options = {"format": "parquet", "path": "out"}
    waive = {UNREACHABLE: MADE}
    edits = [
        ("path", "elsewhere"),
        ("partition_by", ["id"]),
        ("compression", "gzip"),
        ("max_records_per_file", 1),
        ("retention", "30 days"),
        ("spark_options", {"compression": "gzip"}),
    ]

    def provide(self) -> Mapping[str, Any]:
        return self.options

    def written(self) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.read.format("parquet").load(str(self.folder / "out")))

    def written_with(self, gem: FileTarget) -> Sequence[Mapping[str, Any]]:
        reader = self.spark.read.format(gem.options.format).schema(self.schema)
        return plain(reader.options(**gem.options.to_spark()).load(gem.options.path))


class TestFileOfJson(TestFile):
    options = {"format": "json", "path": "out", "compression": "gzip"}
    edits = [
        ("encoding", "UTF-16LE"),
        ("line_sep", ";"),
        ("date_format", "yyyy"),
        ("timestamp_format", "yyyy"),
        ("timestamp_ntz_format", "yyyy"),
        ("time_format", "HH"),
        ("time_zone", "Europe/Berlin"),
        ("locale", "de-DE"),
    ]
    waive = {UNREACHABLE: MADE, KILLED: "the target is killed once already, with files of another format"}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.read.schema(self.schema).json(str(self.folder / "out")))

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        of_all = {"format", "save_mode", "partition_overwrite_mode"}  # `TestFile` has tried them
        return (edit for edit in super().edited() if edit.option not in of_all)


class TestFileOfCsv(TestFileOfJson):
    options = {"format": "csv", "path": "out"}
    edits = [
        ("sep", ";"),
        ("quote", "'"),
        ("escape", '"'),
        ("char_to_escape_quote_escaping", "'"),
        ("null_value", "none"),
        ("empty_value", "none"),
        ("extension", "txt"),
    ]

    def written(self) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.read.schema(self.schema).csv(str(self.folder / "out")))

    def rows(self, number: int, count: int = 3) -> list[dict[str, Any]]:
        # Of texts csv keeps neither those without a character nor line breaks, unless it is told.
        texts = ("ada", 'a "quoted" name, with signs', "Ľubica ☂")
        return [{**row, "name": texts[row["id"] % 3]} for row in super().rows(number, count)]


class TestKafka(TargetConformance):
    gem = KafkaTarget
    unreachable = {"bootstrap_servers": ["localhost:1"], "topic": "clicks"}
    secret_samples = [{**KafkaTarget.example, **more} for more in (LOGIN, JAAS, PEM)]
    edits = [
        ("topic", lambda suite: suite.broker.new_topic("elsewhere")),
        ("key", "name"),
        ("value", "to_json(struct(id))"),
        ("headers", "map('a', 'b')"),
        ("partition", "0"),
        ("batch_size", 1),
        ("linger_ms", 1),
        ("max_request_size", 1_000_000),
        ("buffer_memory", 1_000_000),
        ("max_block", "20 seconds"),
        ("client_id", "other"),
        ("request_timeout", "20 seconds"),
        ("spark_options", {"kafka.retries": 3}),
    ]
    untried = [
        *((name, ..., NO_LOGIN) for name in ("security_protocol", "sasl_mechanism", *LOGINS)),
        ("async_progress_tracking_enabled", True, "a stream that ends keeps its progress as it goes"),
    ]

    def provide(self) -> Mapping[str, Any]:
        self.broker = self.request.getfixturevalue("kafka")
        self.topic = self.broker.new_topic("conformance")
        return {"bootstrap_servers": [self.broker.bootstrap], "topic": self.topic}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return [json.loads(record.value) for record in self.broker.consume(self.topic)]

    def written_with(self, gem: KafkaTarget) -> Sequence[Mapping[str, Any]]:
        found = self.broker.consume(gem.options.topic)
        return [{**json.loads(record.value), "key": record.key} for record in found]


JOBS = """
import json
from pathlib import Path
from uuid import uuid4

def post(row, folder):
    if row.name == "refused":
        return ("no_name", f"{row.id} is refused")
    Path(folder, uuid4().hex).write_text(json.dumps(row.asDict()))

def add_or_reject(df, batch_id, reject, folder):
    reject(df.where("name = 'refused'"), "refused")
    add(df.where("name is distinct from 'refused'"), batch_id, folder)

def row(row, folder):
    Path(folder, uuid4().hex).write_text(json.dumps(row.asDict()))

def add(df, batch_id, folder):
    for found in df.toLocalIterator():
        row(found, folder)

def add_twice(df, batch_id, folder):
    add(df.union(df), batch_id, folder)

def row_twice(found, folder):
    row(found, folder)
    row(found, folder)

def replace(df, batch_id, folder):
    Path(folder, f"{batch_id}.json").write_text(json.dumps([row.asDict() for row in df.collect()]))
"""


@pytest.fixture(scope="module", autouse=True)
def jobs(user_modules: Path) -> None:
    (user_modules / "conformance_saving.py").write_text(JOBS, encoding="utf-8")


class TestForeachBatch(TargetConformance):
    gem = ForeachBatchTarget
    unreachable = {"function": "conformance_nowhere:save"}
    function = "add"
    waive = {REPLACES: FUNCTION}
    edits = [("function", "conformance_saving:add_twice")]

    def provide(self) -> Mapping[str, Any]:
        arguments = {"folder": str(self.folder)}
        return {**self.sample(), "function": f"conformance_saving:{self.function}", "arguments": arguments}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return [json.loads(file.read_text()) for file in self.folder.iterdir()]


class TestForeachBatchThatIsIdempotent(TestForeachBatch):
    edits = ()
    options = {"function": "jobs:save", "idempotent": True}
    function = "replace"
    waive = {
        "test_adds_a_batch": FUNCTION + ": every batch run has the id 0, and this one replaces by it",
        "test_completes_a_stream": FUNCTION + ": this one keeps every micro-batch",
    }

    def written(self) -> Sequence[Mapping[str, Any]]:
        return [row for file in self.folder.glob("*.json") for row in json.loads(file.read_text())]


class TestForeachBatchThatRejects(TestForeachBatch):
    edits = ()
    options = {"function": "jobs:save", "rejects": True}
    function = "add_or_reject"

    def refused(self) -> Sequence[Mapping[str, Any]]:
        return REFUSED


class TestForeach(TargetConformance):
    gem = ForeachTarget
    unreachable = {"function": "conformance_nowhere:save"}
    waive = {REPLACES: FUNCTION}
    edits = [("function", "conformance_saving:row_twice")]

    def provide(self) -> Mapping[str, Any]:
        return {"function": "conformance_saving:row", "arguments": {"folder": str(self.folder)}}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return [json.loads(file.read_text()) for file in self.folder.iterdir()]


class TestForeachThatRejects(TestForeach):
    edits = ()
    options = {"function": "jobs:post", "rejects": True}

    def provide(self) -> Mapping[str, Any]:
        arguments = {"folder": str(self.folder)}
        return {"function": "conformance_saving:post", "rejects": True, "arguments": arguments}

    def refused(self) -> Sequence[Mapping[str, Any]]:
        return REFUSED


UNREACHABLE_DATABASE = {"url": "jdbc:postgresql://127.0.0.1:1/shop", "table": "clicks"}


class TestJdbc(TargetConformance):
    gem = JdbcTarget
    options = {"url": "jdbc:postgresql://localhost/shop", "password": "…", "table": "clicks"}
    unreachable = UNREACHABLE_DATABASE
    more: Mapping[str, Any] = {}
    edits = [
        ("table", lambda suite: f"{suite.table}_elsewhere"),
        ("upsert", {"on": ["id"]}),
        ("batch_size", 1),
        ("num_partitions", 1),
        ("query_timeout", 60),
    ]

    def provide(self) -> Mapping[str, Any]:
        self.server = self.request.getfixturevalue("postgres")
        self.table = f"{self.server.new_schema()}.clicks"
        return {**self.server.options(), "table": self.table, **self.more}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return self.server.rows(f"SELECT * FROM {self.table}")

    def written_with(self, gem: JdbcTarget) -> Sequence[Mapping[str, Any]]:
        return self.server.rows(f"SELECT * FROM {gem.options.table}")


class TestJdbcThatReplaces(TestJdbc):
    edits = ()
    options = {**TestJdbc.options, "upsert": {"on": ["id"]}}
    more = {"upsert": {"on": ["id"]}}
    waive = {KILLED: "the target is killed once already, with rows that are added"}


class TestJdbcThatOnlyAppends(TestJdbc):
    edits = ()
    options = {**TestJdbc.options, "transactional": False}
    more = {"transactional": False}


class TestTable(TargetConformance):
    gem = TableTarget
    unreachable = {"table": "no_such_schema.t"}
    name = ""
    waive = {KILLED: "a table without a path is the catalog's, which ends with the process that is killed"}
    edits = [
        ("table", lambda suite: f"{suite.name}_elsewhere"),
        ("path", lambda suite: str(suite.folder / "elsewhere")),
        ("format", "parquet"),
        ("partition_by", ["id"]),
        ("spark_options", {"compression": "gzip"}),
    ]

    def provide(self) -> Mapping[str, Any]:
        self.name = f"conformance_{uuid4().hex}"
        return {"table": self.name, "format": "delta"}

    def written(self) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.table(self.name))

    def written_with(self, gem: TableTarget) -> Sequence[Mapping[str, Any]]:
        return plain(self.spark.table(gem.options.table))

    def clean_up(self) -> None:
        if self.name:
            for name in (self.name, f"{self.name}_elsewhere"):
                self.spark.sql(f"DROP TABLE IF EXISTS {name}")


class TestTableOfFiles(TestTable):
    waive = {"test_completes_a_stream": "tables of files take append only, as the condition says"}

    def provide(self) -> Mapping[str, Any]:
        return {**super().provide(), "format": "parquet", "path": str(self.folder / "out")}

    @classmethod
    def edited(cls) -> Iterator[Edit]:
        return (edit for edit in super().edited() if edit.option == "partition_by")


if has_iceberg():

    class TestTableOfIceberg(TargetConformance):
        gem = TableTarget
        options = {"table": "lake.web.t", "catalog": {"kind": "hadoop", "warehouse": "lake"}}
        unreachable = {
            "table": "lake.web.t",
            "catalog": {"kind": "rest", "uri": "http://localhost:1", "token": "…"},
        }
        more: Mapping[str, Any] = {}

        def provide(self) -> Mapping[str, Any]:
            # A session keeps a catalog that it has used under its name.
            self.table = f"lake_{uuid4().hex}.web.t"
            catalog = {"kind": "hadoop", "warehouse": str(self.folder)}
            given = {"table": self.table, "catalog": catalog, **self.more}
            for key, value in self.made(given).session_settings().items():
                self.spark.conf.set(key, value)
            return given

        def written(self) -> Sequence[Mapping[str, Any]]:
            return plain(self.spark.table(self.table))

    class TestTableOfIcebergThatMerges(TestTableOfIceberg):
        more = {"merge": {"on": ["id"]}}
        options = {**TestTableOfIceberg.options, **more}


UNTRIED: dict[type[Target[Any]], dict[str, tuple[str, ...]]] = {
    ConsoleTarget: {"nobody reads what is printed": ("num_rows", "truncate")},
    DeltaTarget: {"another name for the table at a path is the edit of two options": ("table",)},
    FileTarget: {
        "the suite reads no files of the format": (
            *("avro_schema", "avro_schema_url", "positional_field_matching", "record_name"),
            *("record_namespace", "row_tag", "attribute_prefix", "value_tag", "root_tag", "declaration"),
            "array_element_name",
        )
    },
    KafkaTarget: {
        NO_LOGIN: (
            *("security_protocol", *(name for name in LOGIN if name != "security_protocol")),
            *("sasl_jaas_config", "sasl_kerberos_service_name", "ssl_truststore_type", "ssl_keystore_type"),
            *("ssl_truststore_certificates", "ssl_keystore_certificate_chain", "ssl_keystore_key"),
            "ssl_endpoint_identification_algorithm",
        ),
        "the suite has one broker": ("bootstrap_servers",),
        "the rows have no column for it": ("topic_column",),
        "it needs another option beside it": (
            *("delivery_timeout", "async_progress_tracking_checkpoint_interval_ms"),
        ),
    },
    ForeachBatchTarget: {"what arguments mean is the function's own": ("arguments",)},
    ForeachTarget: {"what arguments mean is the function's own": ("arguments",)},
    JdbcTarget: {
        "the suite has one database, with one login": ("url", "user", "password", "driver", "jar"),
        "what a crash leaves there is what counts": ("staging_schema", "transaction_table"),
        "they are for a table that isn't there yet": ("create_table_options", "create_table_column_types"),
        "what it means is the driver's own": ("spark_options",),
    },
    TableTarget: {
        "another catalog is another session": ("catalog",),
        "it is for tables of Iceberg": ("merge",),
    },
}


def test_what_a_target_says_of_its_options_is_tried() -> None:
    assert options_tried(globals(), TargetConformance).left == with_reasons(UNTRIED)
