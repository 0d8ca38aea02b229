"""The option `catalog` of the source and the target `table`: Iceberg tables, where there is an Iceberg."""

from __future__ import annotations

import re
import sysconfig
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError, ReadContext, StreamReadContext, WriteContext
from gem_bundle.merging import SessionBeside, Upserts
from gem_table.source import TableSource
from gem_table.target import TableTarget
from tests import samples
from tests.conftest import has_iceberg
from tests.core.checking import check
from tests.gems import merging
from tests.gems.draining import drain, forget_last_commit, make, micro_batches, run
from tests.tours import File, follow, tour

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tests.postgres_server import Postgres

HADOOP = {"kind": "hadoop", "warehouse": "tables"}
JDBC = {"kind": "jdbc", "uri": "jdbc:postgresql://db/lake", "warehouse": "s3a://lake/tables"}
REST = {"kind": "rest", "uri": "https://catalog.example.com"}
PAGE = Path(__file__).parents[2] / "docs" / "iceberg.md"
TABLE = "lake.web.clicks"
BOTH = [TableSource, TableTarget]


@pytest.mark.parametrize("gem", BOTH)
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"catalog": {"kind": "hadoop"}}, "needs `warehouse`"),
        ({"catalog": {"kind": "jdbc", "warehouse": "w"}}, "needs `uri`"),
        ({"catalog": {"kind": "rest"}}, "needs `uri`"),
        ({"catalog": {**HADOOP, "uri": "http://c"}}, "`uri` isn't for `kind: hadoop`"),
        ({"catalog": {**REST, "password": "p"}}, "`password` isn't for `kind: rest`"),
        ({"catalog": {**JDBC, "token": "t"}}, "`token` isn't for `kind: jdbc`"),
        ({"catalog": {**JDBC, "uri": "postgresql://db/lake"}}, "jdbc:postgresql://"),
        ({"catalog": {**JDBC, "uri": "jdbc:postgresql://db/lake?password=p"}}, "by `password`"),
        ({"catalog": {**REST, "uri": "catalog.example.com"}}, "https://host"),
        ({"catalog": {**REST, "token": "t", "credential": "a:b"}}, "not both"),
        ({"catalog": HADOOP, "table": "clicks"}, "the first part of `table`"),
        ({"catalog": HADOOP, "table": "`my-lake`.web.clicks"}, "the first part of `table`"),
        ({"catalog": HADOOP, "table": "spark_catalog.web.clicks"}, "Spark's own catalog"),
        ({"catalog": {**HADOOP, "kind": "hive"}}, "'hadoop', 'jdbc' or 'rest'"),
    ],
)
def test_catalogs_that_are_refused(gem: type[Any], raw: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        make(gem, {"table": TABLE, **raw})


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"catalog": HADOOP, "format": "delta"}, "remove `format: delta`"),
        ({"merge": {"on": ["id"]}}, "`merge` is for Iceberg tables"),
        ({"merge": {"on": ["id"]}, "format": "parquet"}, "`merge` is for Iceberg tables"),
        ({"catalog": HADOOP, "merge": {"on": []}}, "at least 1"),
        ({"catalog": HADOOP, "merge": {"on": ["id"], "sequence_by": "ID"}}, "in the key"),
        ({"catalog": HADOOP, "merge": {"on": ["id"], "leave_out": ["id"]}}, "has to have the columns of"),
        ({"catalog": HADOOP, "merge": {"on": "target.id > source.id"}}, "needs an equality"),
        ({"catalog": HADOOP, "merge": {"on": ["id"]}, "save_mode": "append"}, "no effect on `merge`"),
    ],
)
def test_targets_that_are_refused(raw: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        make(TableTarget, {"table": TABLE, **raw})


@pytest.mark.parametrize("gem", BOTH)
def test_a_catalog_is_a_handful_of_settings_and_jars(gem: type[Any], tmp_path: Path) -> None:
    def said(catalog: dict[str, Any]) -> dict[str, str]:
        settings = make(gem, {"table": TABLE, "catalog": catalog}, tmp_path).session_settings()
        plugin = settings.pop("spark.sql.catalog.lake")
        assert plugin == "org.apache.iceberg.spark.SparkCatalog"
        return {key.removeprefix("spark.sql.catalog.lake."): value for key, value in settings.items()}

    assert said(HADOOP) == {"type": "hadoop", "warehouse": f"{tmp_path}/tables", "cache-enabled": "false"}
    assert said({**JDBC, "user": "ada", "password": "p", "settings": {"x": True, "n": 3}}) == {
        "type": "jdbc",
        "uri": JDBC["uri"],
        "warehouse": "s3a://lake/tables",
        "jdbc.user": "ada",
        "jdbc.password": "p",
        "jdbc.schema-version": "V1",
        "cache-enabled": "false",
        "x": "true",
        "n": "3",
    }
    rest = said({**REST, "warehouse": "prod", "credential": "id:secret", "settings": {"cache-enabled": True}})
    assert "credential" in rest.pop("spark.redaction.regex")
    assert rest == {
        "type": "rest",
        "uri": REST["uri"],
        "warehouse": "prod",
        "credential": "id:secret",
        "cache-enabled": "true",
    }
    assert said({**REST, "token": "t"})["token"] == "t"

    def jars(**catalog: Any) -> list[str]:
        found = make(gem, {"table": TABLE, "catalog": catalog}).jars()
        return [jar.split(":")[1] for jar in found]

    iceberg = "iceberg-spark-runtime-{spark_minor}_{scala}"
    assert jars(**HADOOP) == jars(**REST) == [iceberg]
    assert jars(**JDBC) == [iceberg, "postgresql"]
    assert jars(**{**JDBC, "uri": "jdbc:sqlite:x"}) == [iceberg]
    assert jars(**{**JDBC, "uri": "jdbc:sqlite:x"}, driver_jar="org.xerial:sqlite-jdbc:3.50.3.0") == [
        iceberg,
        "sqlite-jdbc",
    ]
    plain = make(gem, {"table": TABLE})
    assert (list(plain.jars()), dict(plain.session_settings()), list(plain.connect())) == ([], {}, [])


@pytest.mark.parametrize("gem", BOTH)
def test_nothing_of_a_login_is_shown(gem: type[Any]) -> None:
    for catalog in ({**JDBC, "password": "s3cr3t"}, {**REST, "token": "s3cr3t"}):
        made = make(gem, {"table": TABLE, "catalog": catalog})
        assert "s3cr3t" not in f"{made} {made.options!r} {made.options.model_dump_json()}"


GEMS = {"source_table": TableSource, "target_table": TableTarget}
LAKE = """
pipeline: p
sources:
  a: {gem: table, options: {table: lake.web.a, catalog: {kind: hadoop, warehouse: tables}}}
targets:
  b: {gem: table, input: a, options: {table: NAME.web.b, catalog: {kind: hadoop, warehouse: WAREHOUSE}}}
"""


@pytest.mark.parametrize(("version", "refused"), [("4.0.1", False), ("4.1", False), ("4.2.0", True)])
def test_for_a_spark_without_an_iceberg_the_check_says_so(
    version: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version=version))
    checked = check(LAKE.replace("NAME", "lake").replace("WAREHOUSE", "tables"), **GEMS)
    expected = [("GB371", "a"), ("GB371", "b")] if refused else []
    assert [(d.code, d.node) for d in checked.diagnostics] == expected
    assert all(
        f"is for Spark {version}: Iceberg has no release for it" in d.message for d in checked.diagnostics
    )


@pytest.mark.parametrize("option", ["cluster_by: [id]", "history: {keys: [id], sequence_by: at}"])
def test_what_only_delta_has_is_no_option(option: str) -> None:
    text = LAKE.replace("NAME", "lake").replace("warehouse: WAREHOUSE}", f"warehouse: tables}}, {option}")
    assert ("GB204", "b") in [(d.code, d.node) for d in check(text, **GEMS).diagnostics]


@pytest.mark.parametrize(
    ("name", "warehouse", "told"),
    [("lake", "tables", []), ("lake", "others", [("GB209", "b")]), ("other", "others", [])],
)
def test_a_catalog_is_the_same_for_all_nodes(
    name: str, warehouse: str, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gem_bundle.check import checker
    from gem_bundle.settings import Settings

    monkeypatch.setattr(checker, "load_settings", lambda _: Settings(spark_version="4.1"))
    text = LAKE.replace("NAME", name).replace("WAREHOUSE", warehouse)
    checked = check(text, **GEMS)
    assert [(d.code, d.node) for d in checked.diagnostics] == told
    assert all("`spark.sql.catalog.lake.warehouse` than `a`" in d.message for d in checked.diagnostics)
    said = f"spark: {{spark.sql.catalog.lake.warehouse: /tables}}\n{text}"
    assert [d.code for d in check(said, **GEMS).diagnostics] == []


FACTS = Facts(columns=(Column("id", "int"), Column("m", "map<int,int>"), Column("at", "int")))


def merging_by(**merge: Any) -> TableTarget:
    made: TableTarget = make(TableTarget, {"table": TABLE, "format": "iceberg", "merge": merge})
    return made


def test_what_a_merge_says_before_a_run() -> None:
    assert merging_by(on=["id"]).semantics.batch_modes == {"append"}

    def said(**merge: Any) -> list[Any]:
        return [(f.code, f.severity, f.option) for f in merging_by(**merge).check(FACTS)]

    assert said(on=["id"], sequence_by="at", delete_when="at < 0") == []
    assert said(on="target.id = source.id", sequence_by=["at % 2", "at"], ignore_null_updates=True) == []
    assert said(on=["id"], sequence_by="m") == [("GB213", "error", ("merge", "sequence_by"))]
    parted = {"table": TABLE, "format": "iceberg", "partition_by": ["at"]}
    parted["merge"] = {"on": ["id"], "sequence_by": "id2", "leave_out": ["AT"]}
    assert [f.option for f in make(TableTarget, parted).check(FACTS)] == [
        ("merge", "sequence_by"),
        "partition_by",
    ]
    assert said(on=["id"]) == [("GB207", "warning", "merge")]
    assert said(on=["ix", "m"], sequence_by="atx", delete_when="x = 1", leave_out=["y"]) == [
        ("GB210", "error", ("merge", "on")),
        ("GB210", "error", ("merge", "leave_out")),
        ("GB213", "error", ("merge", "on")),
        ("GB210", "error", ("merge", "sequence_by")),
        ("GB210", "error", ("merge", "delete_when")),
    ]


ALL = {"id": "source.id", "at": "source.at"}
UNMATCHED = ("merge", "unmatched_by_source")


@pytest.mark.parametrize(
    ("merge", "told"),
    [
        ({"on": "target.id = source.id and rand() > 0"}, [("GB212", ("merge", "on"))]),
        ({"on": "target.id = source.id and target.x in (select 1)"}, [("GB212", ("merge", "on"))]),
        ({"update": {"at": "source.at", "x": "uuid()"}}, [("GB212", ("merge", "update", "x"))]),
        ({"update": {"at": "(select 1)", "x": "current_timestamp"}}, []),
        ({"insert": {**ALL, "x": "uuid()"}}, [("GB212", ("merge", "insert", "x"))]),
        ({"insert": {**ALL, "x": "uuid()"}, "update": "none"}, []),
        (
            {"insert": {**ALL, "x": "uuid()"}, "update": "none", "unmatched_by_source": "delete"},
            [("GB212", ("merge", "insert", "x"))],
        ),
        (
            {"unmatched_by_source": {"when": "target.x > rand()", "update": {"x": "randn()", "y": "1"}}},
            [("GB212", (*UNMATCHED, "when")), ("GB212", (*UNMATCHED, "update", "x"))],
        ),
        (
            {"sequence_by": "make_dt_interval(at)", "delete_when": "at < 0"},
            [("GB213", ("merge", "sequence_by"))],
        ),
        ({"sequence_by": "make_dt_interval(at)"}, []),
    ],
)
def test_what_the_statement_of_iceberg_lacks_is_said_at_its_place(
    merge: dict[str, Any], told: list[Any]
) -> None:
    raw = {"on": ["id"], "sequence_by": "at", **merge}
    found = list(merging_by(**raw).check(FACTS))
    assert [(f.code, f.option) for f in found] == told
    assert all("Iceberg" in f.message or "a MERGE takes" in f.message for f in found)


def test_a_merge_of_an_earlier_version_goes_on() -> None:
    """Of those that weren't there then, the options have what was done."""

    def effect(before: dict[str, Any], **merge: Any) -> str:
        change = merging_by(**merge).change("merge", before)
        assert change is not None
        return change.effect

    raw = {"on": ["id"], "sequence_by": "at", "delete_when": "op = 'd'", "leave_out": ["op"]}
    assert effect(raw, **raw) == "continues"
    none = {"on": ["id"], "sequence_by": None, "delete_when": None, "leave_out": []}
    assert effect(none, on=["id"]) == "continues"
    assert effect({**raw, "delete_when": None}, **raw) == "from_now_on"
    assert effect({**raw, "sequence_by": "seq"}, **raw) == "mixed"
    assert effect({**raw, "on": {"secret": True}}, **raw) == "mixed"


@pytest.mark.parametrize("gem", BOTH)
def test_a_login_is_changed_and_the_tables_stay(gem: type[Any]) -> None:
    made = make(gem, {"table": TABLE, "catalog": {**JDBC, "user": "eve"}})
    before = make(gem, {"table": TABLE, "catalog": JDBC}).options.catalog.model_dump(mode="json")
    assert made.change("catalog", before).effect == "continues"
    other = made.change("catalog", {**before, "warehouse": "elsewhere"})
    assert other.effect == ("refused" if gem is TableSource else "from_now_on")


@pytest.mark.parametrize("gem", BOTH)
def test_a_catalog_that_does_not_answer_is_a_sentence(gem: type[Any]) -> None:
    for more in (
        {**REST, "uri": "http://localhost:1/api"},
        {**JDBC, "uri": "jdbc:postgresql://localhost:1/x"},
    ):
        (found,) = make(gem, {"table": TABLE, "catalog": more}).connect()
        assert (found.code, found.option) == ("GB503", ("catalog", "uri"))


class Answering(BaseHTTPRequestHandler):
    """Notes how it is asked, and knows nothing."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


if has_iceberg():

    @pytest.fixture
    def lake(spark: SparkSession, tmp_path: Path) -> Lake:
        """A catalog in a folder, under a name that no other test uses."""
        return Lake(spark, {"kind": "hadoop", "warehouse": str(tmp_path / "lake")})

    class Lake:
        """A catalog that a session knows."""

        def __init__(self, spark: SparkSession, catalog: dict[str, Any]) -> None:
            self.spark = spark
            self.name = f"lake_{uuid.uuid4().hex}"
            self._catalog = catalog
            for key, value in self.target("t").session_settings().items():
                spark.conf.set(key, value)

        def source(self, table: str, **raw: Any) -> Any:
            return make(TableSource, {"table": f"{self.name}.web.{table}", "catalog": self._catalog, **raw})

        def target(self, table: str, **raw: Any) -> Any:
            return make(TableTarget, {"table": f"{self.name}.web.{table}", "catalog": self._catalog, **raw})

        def write(self, made: Any, rows: list[Any], schema: str, mode: Any = "append") -> None:
            made.write(self.spark.createDataFrame(rows, schema), WriteContext(node="t", output_mode=mode))

        def read(self, table: str) -> list[Any]:
            found = self.source(table).read(ReadContext(node="x", spark=self.spark))
            return sorted(map(tuple, found.collect()))

        def stream(self, table: str, **raw: Any) -> DataFrame:
            context = StreamReadContext(node="x", spark=self.spark, name="x")
            return self.source(table, **raw).read_stream(context)

    ROWS = "id int, name string"

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_a_table_is_written_and_read_as_batch_and_as_stream(lake: Lake, tmp_path: Path) -> None:
        lake.write(lake.target("a", partition_by=["name"]), [(1, "x")], ROWS)
        lake.write(lake.target("a"), [(2, "y")], ROWS)
        assert lake.read("a") == [(1, "x"), (2, "y")]
        one = {"streaming-max-files-per-micro-batch": 1}
        found = micro_batches(lake.stream("a", spark_options=one), tmp_path / "c")
        assert sorted(found) == [[(1, "x")], [(2, "y")]]
        lake.write(lake.target("a"), [(3, "x")], ROWS)
        assert drain(lake.stream("a", spark_options=one), tmp_path / "c") == [(3, "x")]
        lake.write(lake.target("a"), [(4, "z")], ROWS, "complete")
        assert lake.read("a") == [(4, "z")]
        with pytest.raises(GemError) as caught:
            lake.read("nothing")
        assert (caught.value.code, caught.value.option) == ("GB510", "table")

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_a_micro_batch_that_comes_again_is_added_once(lake: Lake, tmp_path: Path) -> None:
        for number in range(3):
            lake.write(lake.target("a"), [(number, "x")], ROWS)
        one = {"streaming-max-files-per-micro-batch": 1}

        def once() -> list[int]:
            query = run(lake.target("b"), lake.stream("a", spark_options=one), tmp_path / "c")
            return [progress.batchId for progress in query.recentProgress]

        assert once() == [0, 1, 2]
        forget_last_commit(tmp_path / "c")
        lake.write(lake.target("b"), [(9, "somebody else's")], ROWS)
        assert once() == [2]
        assert lake.read("b") == [(0, "x"), (1, "x"), (2, "x"), (9, "somebody else's")]

    def merged(
        lake: Lake, batches: Sequence[Sequence[Any]], first: int = 0, name: str = "t", **how: Any
    ) -> None:
        """Write micro-batches by a run of their own."""
        made = lake.target(name, merge={**merging.MERGE, **how})
        context = WriteContext(node="t", pipeline="p", query_name="q", query="one")
        for number, batch in enumerate(batches, start=first):
            made.write_batch(lake.spark.createDataFrame(list(batch), merging.SCHEMA), number, context)

    def found(lake: Lake, columns: Sequence[str] = merging.COLUMNS, name: str = "t") -> list[Any]:
        table = lake.spark.table(f"{lake.name}.web.{name}")
        return sorted(map(tuple, table.select(*columns).collect()), key=str)

    def snapshots(lake: Lake, name: str = "t") -> list[Any]:
        """What each snapshot says of its micro-batch."""
        told = lake.spark.table(f"{lake.name}.web.{name}.snapshots").orderBy("committed_at")
        return [row[0] for row in told.selectExpr("summary['gem-bundle.one']").collect()]

    @pytest.mark.spark
    @pytest.mark.matrix
    @pytest.mark.parametrize("size", [40, 200])
    def test_tables_are_what_plain_python_makes_of_the_changes(lake: Lake, tmp_path: Path, size: int) -> None:
        """Whatever comes together, and out of a stream of Iceberg's too, whose last micro-batch comes again."""
        random = Random(samples.seed())
        changes = merging.late(random, merging.changes(random, 120, 12), 60)
        for start in range(0, len(changes), size):
            lake.write(lake.target("changes"), changes[start : start + size], merging.SCHEMA)
        one = {"streaming-max-files-per-micro-batch": 1}

        def once() -> None:
            stream = lake.stream("changes", spark_options=one)
            run(lake.target("t", merge=merging.MERGE), stream, tmp_path / "c", "update")

        once()
        assert found(lake) == sorted(merging.upserted(changes), key=str)
        names = ("t", "t_remembered")
        before = [len(snapshots(lake, name)) for name in names]
        forget_last_commit(tmp_path / "c")
        once()
        assert [len(snapshots(lake, name)) for name in names] == before

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_a_crash_between_what_is_remembered_and_the_table(
        lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        change = merging.change
        batches = [
            [change(1), change(1, key=None)],
            [change(2), change(5, "d"), change(4, note=9), change(6, "d"), change(7, "d", key=None)],
            [change(3), change(6, city="z"), change(6, key=None)],
            [change(8)],
        ]
        merged(lake, batches[:1])

        def crash(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as crashing:
            crashing.setattr(SessionBeside, "run", crash)
            with pytest.raises(KeyboardInterrupt):
                merged(lake, batches[1:2], first=1)
        assert (len(found(lake)), found(lake, ["sequence.s0"], "t_remembered")) == (2, [(6,), (7,)])
        merged(lake, batches[1:3], first=1)
        assert (found(lake), snapshots(lake), snapshots(lake, "t_remembered")) == (
            [],
            [None, "0", "1", "2"],
            [None, "1"],
        )
        merged(lake, batches[3:], first=3)
        assert found(lake) == sorted(merging.upserted(row for rows in batches for row in rows), key=str)
        # Another table under that name knows nothing of it.
        lake.spark.sql(f"DROP TABLE {lake.name}.web.t")
        merged(lake, [[change(3)]], first=3)
        assert found(lake, ["at"]) == [(3,)]

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_what_was_remembered_by_other_options(lake: Lake) -> None:
        change = merging.change
        merged(lake, [[change(5, "d")]], sequence_by=["at"])
        merged(lake, [[change(4), change(5, key="l")]], first=1, sequence_by=["at", "note"])
        assert found(lake, ["id", "at"]) == [("l", 5)]
        merged(lake, [[change(6, "d", key="l")], [change(3)]], first=2, on="target.id = source.id")
        assert found(lake, ["id", "at"]) == [("k", 3)]
        merged(lake, [[change(6, "d")], [change(5), change(4, key="m")]], first=4)
        assert found(lake, ["id", "at"]) == [("m", 4)]

    @pytest.mark.spark
    @pytest.mark.matrix
    @merging.WAYS
    def test_columns_that_are_updated_and_columns_that_are_inserted(
        lake: Lake, merge: dict[str, Any], batches: Any, found: list[Any]
    ) -> None:
        made = lake.target("t", merge=merge)
        context = WriteContext(node="t", pipeline="p", query_name="q", query="one")
        for number, batch in enumerate(batches):
            made.write_batch(lake.spark.createDataFrame(batch, merging.SCHEMA), number, context)
        there = lake.spark.table(f"{lake.name}.web.t")
        columns = [name for name in merging.COLUMNS if name in there.columns]
        assert [tuple(row) for row in there.select(columns).collect()] == found

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_rows_that_a_batch_lacks_and_rows_of_another_table(lake: Lake) -> None:
        change = merging.change
        marked = {"when": "target.at < 5", "update": {"note": "-1"}}
        how = {"on": ["id"], "delete_when": None, "unmatched_by_source": marked}
        merged(lake, [[change(1), change(9, key="l"), change(1, key="m")], [change(2, key="m")], []], **how)
        assert found(lake, ["id", "at", "note"]) == [("k", 1, -1), ("l", 9, 1), ("m", 2, 1)]
        lake.write(lake.target("new"), [change(3)], merging.SCHEMA)
        rows = lake.source("new").read(ReadContext(node="x", spark=lake.spark))
        gone = lake.target("t", merge={"on": ["id"], "unmatched_by_source": "delete"})
        gone.write(rows, WriteContext(node="t"))
        assert found(lake, ["id", "at"]) == [("k", 3)]

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_targets_of_a_group_say_their_micro_batches_each(
        lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever another one writes meanwhile in the same session."""
        statement = Upserts.statement
        others = [1]

        def meanwhile(rules: Upserts, *arguments: Any) -> str:
            if others:
                others.pop()
                merged(lake, [[merging.change(1)]], name="other")
                lake.write(lake.target("third"), [(1, "x")], ROWS)
            return statement(rules, *arguments)

        monkeypatch.setattr(Upserts, "statement", meanwhile)
        merged(lake, [[merging.change(1)]])
        assert [snapshots(lake, name) for name in ("t", "other", "third")] == [
            [None, "0"],
            [None, "0"],
            [None],
        ]

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_what_can_not_be_merged_is_said_and_nothing_is_written(lake: Lake) -> None:
        schema = "id int, at int, name string"
        made = lake.target("t", merge={"on": ["id"], "sequence_by": "at", "delete_when": "name = 'gone'"})
        lake.write(made, [(1, 5, "a")], schema)
        unordered = lake.target("t", merge={"on": ["id"]})
        timed = lake.target(
            "t", merge={"on": ["id"], "sequence_by": "make_dt_interval(at)", "delete_when": "false"}
        )
        for target, rows, more, code in [
            (unordered, [(1, 6, "b"), (1, 6, "c")], "", "GB515"),
            (made, [(1, 6, "gone"), (2, None, "b"), (2, 6, "c")], "", "GB515"),
            (
                lake.target("t", merge={"on": ["id"], "sequence_by": "at"}),
                [(2, 6, "b", 1)],
                ", more int",
                "GB205",
            ),
            (timed, [(2, 6, "b")], "", "GB213"),
        ]:
            with pytest.raises(GemError) as caught:
                lake.write(target, rows, schema + more)
            assert caught.value.code == code
        assert lake.spark.table(f"{lake.name}.web.t_remembered").isEmpty()
        lake.write(made, [(1, 4, "late")], schema)
        with pytest.raises(GemError, match="replaces all rows"):
            lake.write(made, [], schema, "complete")
        assert lake.read("t") == [(1, 5, "a")]

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_a_catalog_in_a_database(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> None:
        login = postgres.options()
        catalog = {
            "kind": "jdbc",
            "uri": login["url"],
            "user": login["user"],
            "password": login["password"],
            "warehouse": str(tmp_path),
        }
        lake = Lake(spark, catalog)
        assert list(lake.source("a").connect()) == []
        lake.write(lake.target("a"), [(1, "x")], ROWS)
        run(lake.target("b"), lake.stream("a"), tmp_path / "c")
        assert lake.read("b") == [(1, "x")]

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_a_server_is_asked_with_the_token(spark: SparkSession) -> None:
        Answering.asked = []
        server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            uri = f"http://127.0.0.1:{server.server_port}/catalog"
            lake = Lake(spark, {"kind": "rest", "uri": uri, "warehouse": "prod", "token": "the-token"})
            with pytest.raises(Exception, match=r"Not authorized|401"):
                lake.read("t")
        finally:
            server.shutdown()
            server.server_close()
        assert Answering.asked[0] == ("/catalog/v1/config?warehouse=prod", "Bearer the-token")

    @pytest.mark.spark
    @pytest.mark.matrix
    def test_the_page_does_what_it_says(tmp_path: Path) -> None:
        page = re.sub(r"<!-- shown: it needs another Spark.*", "", PAGE.read_text(encoding="utf-8"))
        (tmp_path / "page.md").write_text(page, encoding="utf-8")
        behind = "With Spark 4.1 it runs"
        begun = next(step for step in tour(page) if isinstance(step, File))
        (tmp_path / "tour").mkdir()
        (tmp_path / "tour" / begun.name).write_text(begun.text, encoding="utf-8")
        scripts = Path(sysconfig.get_path("scripts"))
        assert follow(tmp_path / "page.md", tmp_path / "tour", scripts, start=behind) > 5
