"""The source and the target `jdbc`, with a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError, ReadContext, WriteContext
from gem_bundle.operators import AggregateOperator
from gem_bundle.schema import type_of
from gem_jdbc.dialects import dialect_of
from gem_jdbc.fitting import fits, has_type
from gem_jdbc.postgresql import PostgresTransactions
from gem_jdbc.source import JdbcSource
from gem_jdbc.target import JdbcTarget
from gem_jdbc.transactions import Move
from tests.gems.draining import forget_last_commit, make, run
from tests.samples import some_of

a_database = some_of("tables of a database", 2)

URL = {"url": "jdbc:postgresql://db.example.com/shop"}


def target(**raw):
    return make(JdbcTarget, {**URL, "table": "clicks", **raw})


def source(**raw):
    return make(JdbcSource, {**URL, **raw})


def said(made, *facts):
    return [(f.code, f.severity, f.option) for f in made.check(*facts)]


# Options and checks


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"url": "postgresql://db/shop"}, "jdbc:postgresql://"),
        ({"url": "jdbc:postgresql://db/shop?user=a&password=b"}, "by `password`"),
        ({"url": "jdbc:mysql://ada:secret@db/shop"}, "by `password`"),
        ({"table": "clicks; drop table clicks"}, "double quotes"),
        ({"table": "Web Clicks"}, "double quotes"),
        ({"jar": "postgresql.jar"}, "group:artifact:version"),
        ({"upsert": {"on": []}}, "at least 1"),
        ({"upsert": {"on": ["id"], "sequence_by": "id"}}, "in the key"),
        ({"upsert": {"on": ["id"]}, "transactional": False}, "needs `transactional`"),
        ({"url": "jdbc:mysql://db/shop", "upsert": {"on": ["id"]}}, "for PostgreSQL"),
        ({"url": "jdbc:mysql://db/shop", "transactional": True}, "for PostgreSQL"),
    ],
)
def test_options_of_the_target_that_are_refused(raw, why):
    with pytest.raises(ValidationError, match=why):
        target(**raw)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({}, "one of the two"),
        ({"table": "a", "query": "select 1"}, "one of the two"),
        ({"table": "a", "partition_column": "id", "num_partitions": 2}, "`lower_bound`, `upper_bound` too"),
        (
            {
                "table": "a",
                "partition_column": "id",
                "lower_bound": 1,
                "upper_bound": 9,
                "num_partitions": 2,
                "predicates": ["a > 1"],
            },
            "one of the two",
        ),
    ],
)
def test_options_of_the_source_that_are_refused(raw, why):
    with pytest.raises(ValidationError, match=why):
        source(**raw)


@pytest.mark.parametrize("table", ["clicks", "web.clicks", '"Page views"', 'web."a""b"', "kliky_Ľ"])
def test_names_of_tables_are_the_databases_own(table):
    assert target(table=table).options.table == table


def test_what_it_promises_depends_on_the_database():
    assert target().semantics.delivery == "exactly_once"
    assert target(upsert={"on": ["id"]}).semantics.output_modes == {"append", "update"}
    for made in (target(transactional=False), target(url="jdbc:h2:mem:x", driver="org.h2.Driver")):
        assert made.semantics.delivery == "at_least_once"
        assert made.semantics.output_modes == {"append", "complete"}


def test_drivers_come_with_the_database():
    assert target().jars() == ("org.postgresql:postgresql:42.7.14",)
    assert target(jar="org.postgresql:postgresql:42.6.0").jars() == ("org.postgresql:postgresql:42.6.0",)
    assert said(source(url="jdbc:oracle:thin:@//db:1521/x", table="a")) == [("GB207", "error", "url")]
    assert said(source(url="jdbc:oracle:thin:@//db:1521/x", table="a", jar="a.b:c:1")) == []


def test_passwords_are_secrets():
    made = target(user="ada", password="hunter2")
    assert "hunter2" not in repr(made.options) + str(made.places())
    assert made.options.login()["password"] == "hunter2"
    assert JdbcTarget.options_type.secret_names() == ("password",)


def test_the_target_says_before_a_run_what_rows_it_does_not_take():
    columns = (Column("id", "bigint"), Column("tags", "map<string,int>"), Column("at", None))
    facts = Facts(streaming=True, columns=columns)
    assert said(target(), facts) == [("GB205", "error", "table")]
    upsert = {"on": ["id", "day"], "sequence_by": "changed"}
    assert said(target(upsert=upsert), Facts(streaming=True, columns=columns[:1])) == [
        ("GB210", "error", "upsert.on"),
        ("GB210", "error", "upsert.sequence_by"),
    ]


def test_types_of_a_new_table_are_of_its_columns_and_the_databases():
    facts = Facts(columns=(Column("id", "bigint"), Column("name", "string")))
    option = ("GB205", "error", "create_table_column_types")
    assert said(target(create_table_column_types="ID decimal(20,0), name varchar(80)"), facts) == []
    assert said(target(create_table_column_types="nam varchar(80)"), facts) == [("GB210", *option[1:])]
    assert said(target(create_table_column_types={"name": "string"}), facts) == [option]
    assert said(target(create_table_column_types="name char(2), NAME char(3)"), facts) == [option]


def test_several_rows_of_a_key_are_a_warning_where_they_can_be():
    facts = Facts(streaming=True, columns=(Column("id", "bigint"), Column("at", "timestamp")))
    assert said(target(upsert={"on": ["id"]}), facts) == [("GB207", "warning", "upsert")]
    assert said(target(upsert={"on": ["id"], "sequence_by": "at"}), facts) == []
    grouped = facts.after(AggregateOperator())
    assert said(target(upsert={"on": ["id"]}), grouped) == []


def test_bounds_in_the_wrong_order():
    parts = {"partition_column": "id", "lower_bound": 9, "upper_bound": 1, "num_partitions": 2}
    assert said(source(table="a", **parts)) == [("GB207", "error", "lower_bound")]


@pytest.mark.parametrize(
    ("given", "there", "answer"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "decimal(12,2)", True),
        ("bigint", "decimal(12,2)", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(10,1)", False),
        ("float", "double", True),
        ("double", "float", False),
        ("double", "bigint", False),
        ("bigint", "double", False),
        ("string", "int", False),
        ("varchar(3)", "string", True),
        ("timestamp", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("array<int>", "array<bigint>", True),
        ("array<bigint>", "array<int>", False),
    ],
)
def test_columns_take_what_loses_nothing(given, there, answer):
    assert fits(type_of(given), type_of(there)) == answer


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("array<string>", True),
        ("map<string,int>", False),
        ("struct<a:int>", False),
        ("array<struct<a:int>>", False),
        ("variant", False),
        ("void", False),
        ("interval day to second", False),
    ],
)
def test_types_that_postgresql_has(kind, answer):
    assert has_type(type_of(kind), arrays=True) == answer


# The transactions, without Spark


@pytest.mark.programs
def test_which_of_sparks_types_postgresql_knows_by_their_names(postgres):
    kinds = [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
        "time(6)",
        "string",
        "char(3)",
        "varchar(3)",
        "binary",
        "decimal(10,2)",
        "void",
        "variant",
        "array<int>",
        "map<string,int>",
        "struct<a:int>",
        "geometry(4326)",
        "geography(4326)",
        "interval",
    ]
    schema = postgres.new_schema()
    postgres.sql(
        f"CREATE FUNCTION {schema}.takes(kind text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
        "EXECUTE 'CREATE TEMP TABLE t (c ' || kind || '); DROP TABLE t'; RETURN true; "
        "EXCEPTION WHEN OTHERS THEN RETURN false; END $$"
    )
    answers = postgres.rows(f"SELECT k, {schema}.takes(k) AS taken FROM unnest(ARRAY{kinds}) k")
    lacks = dialect_of("jdbc:postgresql://db/x").lacks

    assert {row["k"] for row in answers if not row["taken"]} == {k for k in kinds if type_of(k).name in lacks}


@pytest.fixture
def clicks(postgres):
    """A table for clicks, in a schema of its own."""
    schema = postgres.new_schema()
    postgres.sql(f"CREATE TABLE {schema}.clicks (id int PRIMARY KEY, name text)")
    return f"{schema}.clicks"


def move(table, number=0, stage="stage", **more):
    schema = table.partition(".")[0]
    return Move(table, ("id", "name"), f"{schema}.done", "q", number, f"{schema}.{stage}", **more)


def do(postgres, statement):
    return postgres.outcome(statement, PostgresTransactions.outcome)


def begin(postgres, made):
    if made.number == 0:
        postgres.sql(PostgresTransactions().prepare(made.transactions, made.table))
    return do(postgres, PostgresTransactions().begin(made))


def stage(postgres, made, first, *rows):
    """What a task of Spark's writes: one transaction."""
    values = ", ".join(f"({id_}, '{name}', {first + n})" for n, (id_, name) in enumerate(rows))
    postgres.sql(f"INSERT INTO {made.stage} (id, name, gem_bundle_row) VALUES {values}")


@pytest.mark.programs
def test_a_task_that_has_written_twice_counts_once(postgres, clicks):
    made = move(clicks)
    assert begin(postgres, made) == "begun"
    stage(postgres, made, 0, (1, "a"), (2, "b"))
    stage(postgres, made, 2, (3, "c"))
    stage(postgres, made, 1 << 33, (4, "d"))
    stage(postgres, made, 0, (2, "b"), (1, "a"))
    assert begin(postgres, made) == "begun", "run again, it leaves what is there"
    assert do(postgres, PostgresTransactions().move(made)) == "done"
    assert [row["id"] for row in postgres.rows(f"SELECT id FROM {clicks} ORDER BY 1")] == [1, 2, 3, 4]
    # Whatever of it is run again, late or in the next run, changes nothing.
    assert do(postgres, PostgresTransactions().move(made)) == "done"
    assert begin(postgres, move(clicks, stage="other")) == "done"
    assert begin(postgres, move(clicks, 1, stage="other")) == "begun"


@pytest.mark.programs
def test_a_crash_of_the_server_loses_no_row_silently(postgres, clicks):
    made = move(clicks)
    begin(postgres, made)
    stage(postgres, made, 0, (1, "a"))
    postgres.kill()
    postgres.start()
    assert do(postgres, PostgresTransactions().move(made)) == "lost"
    again = move(clicks, stage="again")
    assert begin(postgres, again) == "begun"
    assert postgres.rows(f"SELECT to_regclass('{made.stage}') IS NULL AS gone") == [{"gone": True}]
    stage(postgres, again, 0, (1, "a"))
    assert do(postgres, PostgresTransactions().move(again)) == "done"
    assert postgres.rows(f"SELECT * FROM {clicks}") == [{"id": 1, "name": "a"}]


@pytest.mark.programs
def test_keys_without_a_value_and_with_several_rows(postgres, clicks):
    made = move(clicks, keys=("id",), sequence="name")
    begin(postgres, made)
    stage(postgres, made, 0, (1, "a"), (1, "b"), (2, "a"))
    assert do(postgres, PostgresTransactions().move(made)) == "done"
    wanted = [{"id": 1, "name": "b"}, {"id": 2, "name": "a"}]
    assert postgres.rows(f"SELECT * FROM {clicks} ORDER BY id") == wanted
    for number, (rows, outcome) in enumerate(
        [
            ([(1, "a"), (2, "a")], "done"),  # earlier than what is there, and as early
            ([(3, "c"), (3, "c")], "several"),
            ([("NULL", "c")], "null_key"),
        ],
        start=1,
    ):
        late = move(clicks, number, f"stage{number}", keys=("id",), sequence="name")
        begin(postgres, late)
        stage(postgres, late, 0, *rows)
        assert do(postgres, PostgresTransactions().move(late)) == outcome
        assert postgres.rows(f"SELECT * FROM {clicks} ORDER BY id") == wanted


@pytest.mark.programs
def test_unique_indexes_that_rows_can_replace_others_by(postgres):
    schema = postgres.new_schema()
    postgres.sql(
        f'CREATE TABLE {schema}.t (id int, "Day" date, a int, b int, UNIQUE ("Day", id))',
        f"CREATE UNIQUE INDEX ON {schema}.t (a) WHERE b > 0",
        f"CREATE UNIQUE INDEX ON {schema}.t (b) INCLUDE (a)",
    )

    def has(*keys):
        (row,) = postgres.rows(PostgresTransactions().has_key(f"{schema}.t", keys))
        return row["found"]

    assert has("id", "Day")
    assert has("b")
    assert not has("id")
    assert not has("a"), "it holds for some rows only"
    assert not has("a", "b")


# With Spark


def read(spark, postgres, **raw):
    return make(JdbcSource, {**postgres.options(), **raw}).read(ReadContext("s", spark))


def into(postgres, table, **raw):
    return make(JdbcTarget, {**postgres.options(), "table": table, **raw})


def write(made, df, mode="append"):
    made.write(df, WriteContext(node="t", output_mode=mode))


@a_database
@pytest.mark.spark
@pytest.mark.matrix
def test_rows_are_read_whole_in_parts_and_by_a_query(spark, postgres, capsys):
    from pyspark.sql.functions import spark_partition_id

    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} AS SELECT n AS id, 'n' || n AS name FROM generate_series(1, 20) n")
    wanted = list(range(1, 21))
    parts = {"partition_column": "id", "lower_bound": 5, "upper_bound": 15, "num_partitions": 3}
    for raw, count in (
        ({"table": table}, 1),
        ({"table": table, **parts}, 3),
        ({"query": f"select id from {table}", **parts}, 3),
        ({"table": table, "predicates": ["id <= 7", "id > 7"]}, 2),
    ):
        df = read(spark, postgres, **raw)
        assert sorted(row.id for row in df.collect()) == wanted, raw
        assert df.select(spark_partition_id()).distinct().count() == count
    few = read(spark, postgres, table=table).where("id > 15").select("name")
    few.explain()
    plan = capsys.readouterr().out
    assert "GreaterThan(id,15)" in plan.partition("PushedFilters:")[2], "the database filters"
    assert "ReadSchema: struct<name:string>" in plan, "and leaves columns out"
    for raw, code in (({"table": "nothing"}, "GB510"), ({"query": "select nothing"}, "GB205")):
        with pytest.raises(GemError) as raised:
            read(spark, postgres, **raw)
        assert raised.value.code == code
        assert "nothing" in raised.value.message
    with pytest.raises(GemError) as raised:
        read(spark, postgres, table=table, password="wrong-one")
    assert raised.value.code == "GB503"
    assert "password authentication failed" in raised.value.message
    assert "wrong-one" not in raised.value.message


VALUES = {
    "boolean": (True, "boolean"),
    "tinyint": (1, "smallint"),
    "smallint": (2, "smallint"),
    "int": (3, "int"),
    "bigint": (2**53 + 1, "bigint"),
    "float": (0.5, "float"),
    "double": (0.1, "double"),
    "decimal(38,10)": (Decimal("12345678901234567890.0123456789"), "decimal(38,10)"),
    "string": ("Ľubica ☂", "string"),
    "binary": (b"\0\xff", "binary"),
    "date": (dt.date(1969, 12, 31), "date"),
    "timestamp": (dt.datetime(2024, 3, 31, 2, 30, 0, 123456), "timestamp"),
    "timestamp_ntz": (dt.datetime(1900, 1, 1, 0, 0, 0, 1), "timestamp"),
    "array<int>": ([1, None], "array<int>"),
    "array<string>": (["a", None], "array<string>"),
}


@a_database
@pytest.mark.spark
@pytest.mark.matrix
def test_every_type_that_is_written_comes_back(spark, postgres):
    table = f"{postgres.new_schema()}.t"
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(VALUES))
    one = spark.createDataFrame([tuple(value for value, _ in VALUES.values())], columns)
    write(into(postgres, table), one)
    write(into(postgres, table), spark.createDataFrame([(None,) * len(VALUES)], columns))
    df = read(spark, postgres, table=table)
    row, nulls = sorted(df.collect(), key=lambda row: row.c0 is None)
    for number, (kind, (value, _)) in enumerate(VALUES.items()):
        assert row[f"c{number}"] == value, kind
    assert set(nulls) == {None}
    found = [field.dataType.simpleString() for field in df.schema.fields]
    assert found == [back for _, back in VALUES.values()]


@pytest.mark.spark
@pytest.mark.matrix
def test_types_that_spark_has_not_are_texts_and_texts_are_them(spark, postgres):
    schema = postgres.new_schema()
    postgres.sql(
        f"CREATE TYPE {schema}.mood AS ENUM ('sad', 'ok')",
        f"CREATE TABLE {schema}.t (u uuid, j jsonb, m {schema}.mood, i inet, d numeric, x xml, t time, v interval)",
        f"INSERT INTO {schema}.t VALUES ('00000000-0000-0000-0000-000000000001', '{{\"a\": 1}}', 'ok', '10.0.0.1', "
        "1.5, '<a/>', '12:30', '1 day')",
    )
    df = read(spark, postgres, table=f"{schema}.t")
    types = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    texts = {name for name, kind in types.items() if kind == "string"}
    assert texts == {"u", "j", "m", "i", "x", "v"}
    assert types["d"] == "decimal(38,18)"
    assert types["t"] == "timestamp"
    write(into(postgres, f"{schema}.t"), df.select("u", "j", "m", "i", "x", "d"))
    rows = postgres.rows(f"SELECT u, j, m, i, x::text, d FROM {schema}.t")
    assert len(rows) == 2
    assert rows[0] == rows[1]


@a_database
@pytest.mark.spark
@pytest.mark.matrix
def test_a_batch_is_written_whole_or_not_at_all(spark, postgres):
    schema = postgres.new_schema()
    postgres.sql(f'CREATE TABLE {schema}.t (id int CHECK (id < 100), "Name" text)')
    made = into(postgres, f"{schema}.t")
    write(made, spark.sql("select 1 as ID, 'a' as name"))
    with pytest.raises(Exception, match="check constraint"):
        write(made, spark.sql("select id, 'b' as name from values (2), (3), (100) as t(id)").repartition(3))
    assert postgres.rows(f"SELECT * FROM {schema}.t") == [{"id": 1, "Name": "a"}]
    write(
        made,
        spark.sql("select 4 as id, null as name").selectExpr("id", "cast(name as string) name"),
        "complete",
    )
    assert postgres.rows(f"SELECT * FROM {schema}.t") == [{"id": 4, "Name": None}]
    for rows, why in (
        ("select 1 as id, 2 as nam", "it has no column `nam`, but `Name`"),
        ("select 1L as id", "its column `id` is int, and that of the rows bigint"),
    ):
        with pytest.raises(GemError, match=why) as raised:
            write(made, spark.sql(rows))
        assert raised.value.code == "GB205"
    left = postgres.rows(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' ORDER BY 1")
    # The staging table of the batch that failed is left, for whoever wants to know; nothing else.
    assert [row["tablename"][:16] for row in left] == ["gem_bundle_stage", "gem_bundle_trans", "t"]


@a_database
@pytest.mark.spark
@pytest.mark.matrix
def test_rows_replace_those_with_the_same_key(spark, postgres):
    schema = postgres.new_schema()
    made = into(postgres, f"{schema}.t", upsert={"on": ["ID"], "sequence_by": "at"}, staging_schema=schema)
    rows = "select * from values (1, 1, 'a'), (1, 3, 'c'), (1, 2, 'b'), (2, null, 'n') as t(id, at, name)"
    write(made, spark.sql(rows).repartition(3))
    write(made, spark.sql("select * from values (1, 2, 'late'), (2, 1, 'first') as t(id, at, name)"))
    assert postgres.rows(f"SELECT id, at, name FROM {schema}.t ORDER BY id") == [
        {"id": 1, "at": 3, "name": "c"},
        {"id": 2, "at": 1, "name": "first"},
    ]
    with pytest.raises(GemError) as raised:
        write(made, spark.sql("select * from values (1, 9, 'x'), (1, 9, 'y') as t(id, at, name)"))
    assert (raised.value.code, raised.value.option) == ("GB515", "upsert")
    postgres.sql(f"CREATE TABLE {schema}.plain (id int, at int, name text)")
    with pytest.raises(GemError, match="no unique index over just id") as raised:
        write(into(postgres, f"{schema}.plain", upsert={"on": ["id"]}), spark.sql(rows))
    assert raised.value.code == "GB207"


@a_database
@pytest.mark.spark
@pytest.mark.matrix
def test_two_targets_of_a_query_and_a_fresh_checkpoint(spark, postgres, tmp_path):
    """Numbers belong to a query and a table: another query's are others."""
    schema = postgres.new_schema()
    spark.range(3).write.parquet(str(tmp_path / "in"))
    reader = spark.readStream.name("given") if hasattr(spark.readStream, "name") else spark.readStream
    df = reader.schema("id bigint").parquet(str(tmp_path / "in"))
    made = into(postgres, f"{schema}.t")
    for checkpoint, count in (("a", 3), ("a", 3), ("b", 6)):
        run(made, df, tmp_path / checkpoint, name=f"q_{schema}")
        assert postgres.rows(f"SELECT count(*) AS n FROM {schema}.t") == [{"n": count}]
    forget_last_commit(tmp_path / "a")
    run(into(postgres, f"{schema}.t"), df, tmp_path / "a", name=f"q_{schema}")
    assert postgres.rows(f"SELECT count(*) AS n FROM {schema}.t") == [{"n": 6}]
    noted = postgres.rows(f"SELECT micro_batch, stage FROM {schema}.gem_bundle_transactions")
    assert noted == [{"micro_batch": 0, "stage": None}] * 2


@pytest.mark.spark
def test_another_database_by_its_own_driver(spark, tmp_path):
    """Derby is among Spark's jars, and stands for all databases that are known to Spark only."""
    url = f"jdbc:derby:{tmp_path / 'derby'};create=true"
    where = {"url": url, "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    made = make(JdbcTarget, {**where, "table": "clicks"})
    for _ in range(2):
        write(made, spark.range(3))
    query = make(JdbcSource, {**where, "query": 'select "id" + 1 as n from clicks'})
    table = make(JdbcSource, {**where, "table": "clicks"})
    assert sorted(row[0] for row in table.read(ReadContext("s", spark)).collect()) == [0, 0, 1, 1, 2, 2]
    assert query.read(ReadContext("s", spark)).count() == 6
