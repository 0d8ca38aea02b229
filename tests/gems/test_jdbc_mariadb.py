"""The source and the target `jdbc` with a real MariaDB, by its own driver and by MySQL's."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from decimal import Decimal

import pytest

from gem_bundle import Column, Facts, GemError, ReadContext, WriteContext
from gem_bundle.schema import type_of
from gem_jdbc.dialects import dialect_of
from gem_jdbc.mysql import spark_url
from gem_jdbc.source import JdbcSource
from gem_jdbc.target import JdbcTarget
from tests.gems.draining import make, run

DRIVERS = pytest.mark.parametrize("kind", ["mariadb", "mysql"])


# Options and checks


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("jdbc:mariadb://db:3306/shop", "jdbc:mysql://db:3306/shop?permitMysqlScheme"),
        ("jdbc:mariadb://db/shop?useSsl=true", "jdbc:mysql://db/shop?useSsl=true&permitMysqlScheme"),
        ("jdbc:mariadb:sequential://a,b/shop", "jdbc:mysql:sequential://a,b/shop?permitMysqlScheme"),
        ("jdbc:mariadb://db/shop?permitMysqlScheme", "jdbc:mysql://db/shop?permitMysqlScheme"),
        ("jdbc:mysql://db/shop", "jdbc:mysql://db/shop"),
    ],
)
def test_spark_is_told_the_url_by_which_it_knows_how_names_are_quoted(given, told):
    assert spark_url(given) == told
    assert make(JdbcSource, {"url": given, "table": "t"}).options.login()["url"] == told


def test_what_the_user_tells_the_driver_wins():
    def told(url, **raw):
        return make(JdbcTarget, {"url": url, "table": "t", "spark_options": raw}).options.login()

    assert "useServerPrepStmts" in told("jdbc:mariadb://db/shop")
    assert "useServerPrepStmts" not in told("jdbc:mariadb://db/shop", useserverprepstmts="false")
    assert "useServerPrepStmts" not in told("jdbc:mariadb://db/shop?a=b&useServerPrepStmts=false")
    assert "stringtype" not in told("jdbc:postgresql://db/shop", stringtype="varchar")


def test_the_driver_of_mariadb_comes_along_and_that_of_mysql_is_named():
    url = {"url": "jdbc:mariadb://db/shop", "table": "t"}
    assert make(JdbcSource, url).jars() == ("org.mariadb.jdbc:mariadb-java-client:3.5.11",)
    assert list(make(JdbcSource, url).check()) == []
    (finding,) = make(JdbcSource, {**url, "url": "jdbc:mysql://db/shop"}).check()
    assert (finding.code, finding.option) == ("GB207", "url")


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "hint"),
    [
        ("mariadb", "`Page views`", '"Page views"', "Write `Page views`."),
        ("mariadb", "shop.`order`", 'shop."order"', "Write `order`."),
        ("postgresql", 'web."Page `views`"', "web.`Page views`", 'Write "Page views".'),
    ],
)
def test_names_are_quoted_as_the_database_has_it(kind, right, wrong, hint):
    for gem in (JdbcSource, JdbcTarget):
        raw = {"url": f"jdbc:{kind}://db/shop"}
        facts = [] if gem is JdbcSource else [Facts(columns=(Column("id", "int"),))]
        assert list(make(gem, {**raw, "table": right}).check(*facts)) == []
        (finding,) = make(gem, {**raw, "table": wrong}).check(*facts)
        assert (finding.code, finding.option, finding.hint) == ("GB205", "table", hint)


@pytest.mark.parametrize("kind", ["array<int>", "map<string,int>", "struct<a:int>", "variant"])
def test_types_that_there_are_not(kind):
    facts = Facts(columns=(Column("c", kind),))
    (finding,) = make(JdbcTarget, {"url": "jdbc:mariadb://db/shop", "table": "t"}).check(facts)
    assert (finding.code, finding.option) == ("GB205", "table")


@pytest.mark.programs
def test_which_of_sparks_types_mariadb_knows_by_their_names(mariadb):
    kinds = [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "date"),
        *("timestamp", "timestamp_ntz", "time(6)", "string", "char(3)", "varchar(3)", "binary", "void"),
        *("variant", "array<int>", "map<string,int>", "struct<a:int>", "geometry(4326)"),
        *("geography(4326)", "interval"),
    ]
    database = mariadb.new_database()

    def takes(kind):
        try:
            mariadb.sql(f"CREATE TABLE {database}.`{kind}` (c {kind})")
        except AssertionError:
            return False
        return True

    # It has `binary`: that is one byte.
    wanted = {kind for kind in kinds if not takes(kind)} | {"binary"}
    assert wanted == {kind for kind in kinds if type_of(kind).name in dialect_of(mariadb.url).lacks}


# With Spark


def read(spark, mariadb, kind="mariadb", **raw):
    return make(JdbcSource, {**mariadb.options(kind), **raw}).read(ReadContext("s", spark))


def into(mariadb, table, kind="mariadb", **raw):
    return make(JdbcTarget, {**mariadb.options(kind), "table": table, **raw})


def write(made, df, mode="append"):
    made.write(df, WriteContext(node="t", output_mode=mode))


@pytest.mark.spark
@DRIVERS
def test_rows_are_read_whole_in_parts_and_by_a_query(spark, mariadb, kind):
    """With the URL of MariaDB as it is, Spark read in each row the names of the columns."""
    from pyspark.sql.functions import spark_partition_id

    table = f"{mariadb.new_database()}.`order`"
    mariadb.sql(
        f"CREATE TABLE {table} (id int, `group` text, `a ``b` int)",
        f"INSERT INTO {table} SELECT seq, concat('n', seq), -seq FROM seq_1_to_20",
    )
    parts = {"partition_column": "id", "lower_bound": 5, "upper_bound": 15, "num_partitions": 3}
    for raw, count in (
        ({"table": table}, 1),
        ({"table": table, **parts}, 3),
        ({"query": f"select `id`, `group`, `a ``b` from {table}", **parts}, 3),
        ({"table": table, "predicates": ["`id` <= 7", "`id` > 7"]}, 2),
    ):
        df = read(spark, mariadb, kind, fetch_size=3, **raw)
        assert sorted(map(tuple, df.collect())) == [(n, f"n{n}", -n) for n in range(1, 21)], raw
        assert df.select(spark_partition_id()).distinct().count() == count
        found = df.where("`group` = 'n7' and `a ``b` < 0").select("group", "`a ``b`").collect()
        assert [tuple(row) for row in found] == [("n7", -7)]
    for raw, code in (({"table": "nothing"}, "GB510"), ({"query": "select nothing"}, "GB205")):
        with pytest.raises(GemError) as raised:
            read(spark, mariadb, kind, **raw)
        assert raised.value.code == code
        assert "nothing" in raised.value.message
    with pytest.raises(GemError) as raised:
        read(spark, mariadb, kind, table=table, password="wrong-one")
    assert raised.value.code == "GB503"
    assert "Access denied" in raised.value.message
    assert "wrong-one" not in raised.value.message


VALUES = {
    "boolean": (True, "boolean", "tinyint(1)"),
    "tinyint": (-128, "tinyint", "tinyint(4)"),
    "smallint": (-32768, "smallint", "smallint(6)"),
    "int": (-(2**31), "int", "int(11)"),
    "bigint": (2**53 + 1, "bigint", "bigint(20)"),
    # Seven digits, of which a text from the server has six.
    "float": (16777215.0, "float", "float"),
    "double": (0.1, "double", "double"),
    "decimal(38,10)": (Decimal("12345678901234567890.0123456789"), "decimal(38,10)", "decimal(38,10)"),
    "string": ("Ľubica ☂ 🎉 \\ '", "string", "longtext"),
    # Longer than a BLOB.
    "binary": (b"\0\xff\\'" * 20_000, "binary", "longblob"),
    "date": (dt.date(1969, 12, 31), "date", "date"),
    "timestamp": (dt.datetime(2024, 3, 31, 2, 30, 0, 123456), "timestamp", "timestamp(6)"),
    "timestamp_ntz": (dt.datetime(1900, 1, 1, 0, 0, 0, 1), "timestamp", "datetime(6)"),
}


@pytest.mark.spark
@DRIVERS
def test_every_type_that_is_written_comes_back(spark, mariadb, kind):
    database = mariadb.new_database()
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(VALUES))
    one = spark.createDataFrame([tuple(value for value, _, _ in VALUES.values())], columns)
    write(into(mariadb, f"{database}.t"), one)
    none = spark.createDataFrame([(None,) * len(VALUES)], columns)
    if kind == "mysql":
        made = into(mariadb, f"{database}.t", kind)
        with pytest.raises(GemError, match="MySQL cuts parts of seconds") as raised:
            write(made, one)
        assert (raised.value.code, raised.value.option) == ("GB207", "url")
        at = f"c{list(VALUES).index('timestamp')}"
        mariadb.sql(f"DELETE FROM {database}.t")
        write(made, one.drop(at))
        mariadb.sql(f"UPDATE {database}.t SET {at} = '2024-03-31 02:30:00.123456'")
        none = none.drop(at)
    write(into(mariadb, f"{database}.t", kind), none)
    df = read(spark, mariadb, kind, table=f"{database}.t")
    row, nulls = sorted(df.collect(), key=lambda row: row.c0 is None)
    for number, (name, (value, _, _)) in enumerate(VALUES.items()):
        assert row[f"c{number}"] == value, name
    assert set(nulls) == {None}
    assert [field.dataType.simpleString() for field in df.schema.fields] == [v[1] for v in VALUES.values()]
    there = mariadb.rows(
        "ordinal_position", "column_type", of=f"information_schema.columns WHERE table_schema = '{database}'"
    )
    kinds = {row["ordinal_position"]: row["column_type"] for row in there}
    assert [kinds[number + 1] for number in range(len(VALUES))] == [v[2] for v in VALUES.values()]


@pytest.mark.spark
@DRIVERS
def test_what_would_be_read_as_something_else_is_refused_and_what_spark_has_not_is_a_text(
    spark, mariadb, kind
):
    table = f"{mariadb.new_database()}.t"
    mariadb.sql(
        f"CREATE TABLE {table} (b bit(8), f tinyint(1), n int unsigned, g bigint unsigned, u uuid, j json, "
        "e enum('a', 'b'), t time, y year)",
        f"INSERT INTO {table} VALUES (b'10000001', 2, 4294967295, 18446744073709551615, "
        "'00000000-0000-0000-0000-000000000001', '[1]', 'b', '12:30', 2024)",
    )
    with pytest.raises(GemError, match="`b` has several bits") as raised:
        read(spark, mariadb, kind, table=table)
    assert raised.value.code == "GB205"
    df = read(spark, mariadb, kind, table=table, custom_schema="b bigint")
    types = [field.dataType.simpleString() for field in df.schema.fields]
    texts = ["string"] * 3
    assert types == ["bigint", "boolean", "bigint", "decimal(20,0)", *texts, "timestamp", "date"]
    (row,) = df.collect()
    noon = dt.datetime(1970, 1, 1, 12, 30)
    uuid = "00000000-0000-0000-0000-000000000001"
    first = dt.date(2024, 1, 1)
    assert tuple(row) == (129, True, 2**32 - 1, Decimal(2**64 - 1), uuid, "[1]", "b", noon, first)
    further = {"tinyInt1isBit": False, "yearIsDateType": False}
    (row,) = read(spark, mariadb, kind, query=f"select f, y from {table}", spark_options=further).collect()
    assert tuple(row) == (2, 2024)


@pytest.mark.spark
@DRIVERS
def test_the_database_cuts_and_rounds_nothing_silently(spark, mariadb, kind):
    """The server is one that does, unless it is told not to."""
    table = f"{mariadb.new_database()}.`Page views`"
    mariadb.sql(f"CREATE TABLE {table} (id int, name varchar(3), price decimal(5,2), `order` tinyint(1))")
    made = into(mariadb, table, kind)
    write(made, spark.sql("select 1 as ID, 'abc' as name, 1.25BD as price, true as `order`"))
    write(made, spark.sql("select cast(2 as smallint) as id"))
    for rows, why in (
        ("select 1L as id", "its column `id` is int, and that of the rows bigint"),
        ("select 1.5D as price", r"its column `price` is decimal\(5,2\), and that of the rows double"),
        ("select 1 as idd", "it has no column `idd`, but `id`"),
    ):
        with pytest.raises(GemError, match=why) as raised:
            write(made, spark.sql(rows))
        assert raised.value.code == "GB205"
    with pytest.raises(Exception, match="Data too long for column 'name'"):
        write(made, spark.sql("select 3 as id, 'abcd' as name"))
    assert mariadb.rows("id", "name", "price", "`order`", of=f"{table} ORDER BY id") == [
        {"id": 1, "name": "abc", "price": 1.25, "`order`": 1},
        {"id": 2, "name": None, "price": None, "`order`": None},
    ]
    write(made, spark.sql("select 4 as id"), "complete")
    assert mariadb.rows("id", "name", of=table) == [{"id": 4, "name": None}]


@contextmanager
def zone_of_the_jvm(spark, name):
    """The time zone that Spark and the drivers take for that of their machine."""
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(name))
    try:
        yield
    finally:
        zones.setDefault(before)


@pytest.mark.spark
@DRIVERS
def test_times_are_the_same_for_all_clients_wherever_spark_runs(spark, mariadb, kind):
    """Neither the server's time zone nor the JVM's is that of the session, which is UTC."""
    table = f"{mariadb.new_database()}.t"
    rows = spark.sql(
        "select timestamp'2024-07-01T12:00:00.5Z' as `at`, timestamp_ntz'2024-03-31 02:30:00' as wall, "
        "date'2024-03-31' as day"
    )
    with zone_of_the_jvm(spark, "GMT+02:00"):
        write(into(mariadb, table), rows)
        df = read(spark, mariadb, kind, query=f"select `at`, `day` from {table}")
        wanted = df.where("`at` = timestamp'2024-07-01T12:00:00.5Z' and day = date'2024-03-31'")
        assert wanted.selectExpr("cast(`at` as string) as t").collect()[0].t == "2024-07-01 12:00:00.5"
        with pytest.raises(GemError, match=r"`wall` would be shifted.*it is GMT\+02:00") as raised:
            read(spark, mariadb, kind, table=table, prefer_timestamp_ntz=True)
        assert raised.value.code == "GB205"
    there = {"at": "2024-07-01 12:00:00.500000", "wall": "2024-03-31 02:30:00.000000", "day": "2024-03-31"}
    assert mariadb.rows("at", "wall", "day", of=table) == [there]
    (row,) = read(spark, mariadb, kind, table=table, prefer_timestamp_ntz=True).collect()
    assert row.wall == dt.datetime(2024, 3, 31, 2, 30)
    with (
        zone_of_the_jvm(spark, "Europe/Bratislava"),
        pytest.raises(GemError, match="doesn't know the JVM's time zone") as raised,
    ):
        read(spark, mariadb, kind, table=table)
    assert raised.value.code == "GB503"


@pytest.mark.spark
def test_a_stream_makes_the_table_as_it_is_told_and_adds_its_rows(spark, mariadb, tmp_path):
    database = mariadb.new_database()
    table = f"{database}.`New ones`"
    spark.sql("select 1L as id, 'a' as `Name`, timestamp'2024-01-01 00:00:00.25' as at").write.parquet(
        str(tmp_path / "in")
    )
    reader = spark.readStream.name("given") if hasattr(spark.readStream, "name") else spark.readStream
    df = reader.schema("id bigint, Name string, at timestamp").parquet(str(tmp_path / "in"))
    made = into(
        mariadb,
        table,
        create_table_column_types="name varchar(80), at timestamp",
        create_table_options="COMMENT 'of a stream'",
    )
    for _ in range(2):
        run(made, df, tmp_path / "checkpoint", name=f"q_{database}")
    assert mariadb.rows("id", "name", "at", of=table) == [
        {"id": 1, "name": "a", "at": "2024-01-01 00:00:00.250000"}
    ]
    there = f"information_schema.columns WHERE table_schema = '{database}' AND column_name = 'Name'"
    assert mariadb.rows("column_type", of=there) == [{"column_type": "varchar(80)"}]
    told = f"information_schema.tables WHERE table_schema = '{database}'"
    assert mariadb.rows("table_comment", of=told) == [{"table_comment": "of a stream"}]
    with pytest.raises(GemError, match="MariaDB has no type for the column `c`: array<int>") as raised:
        write(into(mariadb, f"{database}.other"), spark.sql("select array(1) as c"))
    assert raised.value.code == "GB205"
