"""The source `jdbc` as a stream by an increasing column, with a real PostgreSQL."""

from __future__ import annotations

import time
from contextlib import contextmanager
from importlib import util
from random import Random
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import GemError, Position, ReadContext, Waiting, WaitingContext
from gem_bundle.run.progress import micro_batch
from gem_bundle.testing.conformance.streams import all_rows, drained, drained_rows, read_stream
from gem_jdbc.asking import Connection, missing
from gem_jdbc.following import Followed, Horizon, RefusedError, UnansweredError, parts
from gem_jdbc.opening import Opened
from gem_jdbc.postgresql_following import PostgresFollowing
from gem_jdbc.source import JdbcSource
from gem_jdbc.waiting import RowsWaiting
from tests.gems.draining import make
from tests.postgres_server import PASSWORD
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

tables_as_streams = some_of("tables of a database as streams", 2)

URL = {"url": "jdbc:postgresql://db.example.com/shop", "table": "clicks"}
POSTGRES = PostgresFollowing()


def source(streaming=True, **raw):
    made = make(JdbcSource, {**URL, **raw})
    made.streaming = streaming
    return made


def said(made):
    return [(f.code, f.severity, f.option) for f in made.check() if not f.since]


# Without a database


def test_a_stream_has_a_column_to_go_by():
    assert said(source()) == [("GB312", "error", "table")]
    assert said(source(increasing="id")) == []
    assert said(source(increasing="id", num_partitions=4, max_rows_per_trigger=10)) == []
    assert said(source(increasing="id", fetch_size=5)) == [("GB312", "error", "fetch_size")]
    assert said(source(False, increasing="id")) == [("GB207", "warning", "increasing")]
    other = source(increasing="id", url="jdbc:mysql://db/shop", jar="a:b:1")
    assert said(other) == [("GB207", "error", "increasing")]
    assert [f.since for f in source(increasing="id").check()] == ["4.2"]


def test_where_a_stream_begins():
    assert source(increasing="id").begins() == "from its beginning"
    assert source(increasing="id", starting="latest").begins() == "from what comes after the start"
    assert source(increasing="id", starting=7).begins() == "behind the value 7"
    with pytest.raises(ValidationError, match="a whole number or a time"):
        source(increasing="id", starting="yesterday")
    assert source(increasing="id", starting="latest").for_preview().options.starting == "earliest"


@pytest.mark.parametrize(
    ("option", "effect"),
    [
        ("increasing", "refused"),
        ("table", "skipped"),
        ("url", "skipped"),
        ("starting", "continues"),
        ("max_rows_per_trigger", "continues"),
        ("password", "continues"),
    ],
)
def test_what_other_values_do_to_a_checkpoint(option, effect):
    assert source(increasing="id").change(option, "before").effect == effect


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("jdbc:postgresql://db:5433/shop", "postgresql://db:5433/shop?user=ada&password=p%40%20ss"),
        (
            "jdbc:postgresql://a,b:1/shop?targetServerType=primary",
            "postgresql://a,b:1/shop?target_session_attrs=primary",
        ),
        ("jdbc:postgresql://db/shop?ssl=true&prepareThreshold=0", "postgresql://db/shop?sslmode=verify-full"),
        (
            "jdbc:postgresql://db/shop?currentSchema=web",
            "postgresql://db/shop?options=-c%20search_path%3Dweb",
        ),
    ],
)
def test_addresses_of_jdbc_are_libpqs(url, address):
    login = ("ada", "p@ ss") if "password" in address else (None, None)
    assert POSTGRES.address(url, *login) == address


def test_what_only_pgjdbc_knows_is_refused():
    with pytest.raises(ValueError, match="`socketFactory` in the URL"):
        POSTGRES.address("jdbc:postgresql://db/shop?socketFactory=x", None, None)


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("Europe/Prague", "'Europe/Prague'"),
        ("+02:00", "INTERVAL '+02:00' HOUR TO MINUTE"),
        ("-8", "INTERVAL '-08:00' HOUR TO MINUTE"),
    ],
)
def test_time_zones(zone, said):
    assert POSTGRES.settings(zone)[0] == f"SET TIME ZONE {said}"


@pytest.mark.parametrize(
    ("after", "until", "least", "count", "found"),
    [
        (None, 9, 0, 3, [(None, 3), (3, 6), (6, 9)]),
        (4, 6, 5, 8, [(4, 5), (5, 6)]),
        (4, 6, 6, 8, [(4, 6)]),
        (4, 6, None, 1, [(4, 6)]),
        (
            None,
            "2024-01-01 00:00:02.000000",
            "2024-01-01 00:00:00.000000",
            2,
            [
                (None, "2024-01-01 00:00:01.000000"),
                ("2024-01-01 00:00:01.000000", "2024-01-01 00:00:02.000000"),
            ],
        ),
        (
            None,
            "12024-01-01 00:00:02.000000",
            "2024-01-01 00:00:00.000000",
            2,
            [(None, "12024-01-01 00:00:02.000000")],
        ),
    ],
)
def test_ranges_in_parts(after, until, least, count, found):
    assert parts(after, until, least, count) == found


def test_what_is_not_installed(monkeypatch):
    real = util.find_spec
    monkeypatch.setattr(
        "gem_jdbc.asking.find_spec", lambda name: None if name.startswith("adbc") else real(name)
    )
    assert missing(POSTGRES) == ["adbc-driver-postgresql"]
    with pytest.raises(GemError, match="takes adbc-driver-postgresql, which isn't installed") as raised:
        Opened(source(increasing="id").options)
    assert raised.value.code == "GB509"
    assert "gem-bundle[jdbc]" in raised.value.hint


class Transactions:
    """A table of numbers and who is under way, as the test says."""

    def __init__(self) -> None:
        self.newest: int | None = None
        self.under_way: set[str] = set()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        if "max(" in query:
            return [(self.newest,)]
        prepared = "pg_prepared_xacts" in query
        return [(one,) for one in self.under_way if one.startswith("prepared") == prepared]


def test_a_value_is_used_when_those_have_ended_who_were_under_way():
    table, now = Transactions(), [0.0]
    what = Followed("t", "at", "time", 1000)
    horizon = Horizon(POSTGRES, what, table, lambda: now[0], 60)
    assert horizon.step(None) is None
    assert not horizon.waits, "there is nothing"
    table.newest, table.under_way = 7, {"1/1"}
    assert horizon.step(None) is None
    assert horizon.waits
    table.newest, table.under_way = 9, {"1/1", "2/1"}
    now[0] = 1.0
    assert horizon.step(None) is None
    table.under_way = {"2/1", "3/1"}
    assert horizon.step(None) is None, "the second one began before the delay had passed"
    table.under_way = {"3/1", "prepared a"}
    assert horizon.step(None) is None, "the second one may have been prepared"
    table.under_way = {"3/1", "prepared b"}
    assert horizon.step(None) == 7
    assert horizon.step(7) is None
    now[0] = 2.0
    assert horizon.step(7) is None, "the third one is under way"
    now[0] = 62.0
    assert horizon.step(7) == 9, "it has had its time"


# With PostgreSQL, without Spark


@contextmanager
def transaction(postgres: Any) -> Iterator[Any]:
    """A cursor in a transaction that is ended by what the test says."""
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(postgres.address) as connection, connection.cursor() as cursor:
        yield cursor


@contextmanager
def connected(postgres: Any) -> Iterator[Connection]:
    connection = Connection(POSTGRES, postgres.address, POSTGRES.settings("Europe/Prague"), PASSWORD)
    try:
        yield connection
    finally:
        connection.close()


def awaited(horizon: Horizon, after: Any) -> Any:
    """The value that is reached once nobody is under way."""
    while True:
        found = horizon.step(after)
        if found is not None or not horizon.waits:
            return found


class Writers:
    """Some at once, whose transactions overlap; a few are rolled back.

    Args:
        postgres: The server.
        table: The table.
    """

    def __init__(self, postgres: Any, table: str) -> None:
        self._postgres, self._table = postgres, table
        self.threads = [Thread(target=self._write, args=(Random(number),)) for number in range(6)]
        for thread in self.threads:
            thread.start()

    @property
    def write(self) -> bool:
        return any(thread.is_alive() for thread in self.threads)

    def _write(self, draw: Random) -> None:
        with transaction(self._postgres) as cursor:
            for _ in range(25):
                cursor.execute("SELECT 1")  # from here on it has its time
                time.sleep(draw.random() * 0.02)
                for _ in range(draw.randrange(1, 3)):
                    cursor.execute(f"INSERT INTO {self._table} DEFAULT VALUES")
                    time.sleep(draw.random() * 0.02)
                connection = cursor.connection
                connection.rollback() if draw.random() < 0.1 else connection.commit()


class Hasty(PostgresFollowing):
    """What one would do without knowing of late commits."""

    def running(self, asking: Any) -> frozenset[str]:
        return frozenset()


@pytest.mark.programs
def test_who_does_not_wait_for_an_earlier_transaction_loses_its_row(postgres):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} (id bigserial)")
    what = Followed(table, "id", "number")
    with transaction(postgres) as early, transaction(postgres) as late, connected(postgres) as connection:

        def between(after: Any, until: Any) -> list[Any]:
            return sorted(row[0] for row in connection.rows(POSTGRES.rows(what, "id", after, until)))

        early.execute(f"INSERT INTO {table} DEFAULT VALUES")
        late.execute(f"INSERT INTO {table} DEFAULT VALUES")
        late.connection.commit()
        hasty = awaited(Horizon(Hasty(), what, connection, time.monotonic), None)
        read = between(None, hasty)
        patient = Horizon(POSTGRES, what, connection, time.monotonic)
        assert patient.step(None) is None
        assert patient.waits
        early.connection.commit()

        assert (hasty, read, between(hasty, None)) == (2, [2], [])
        assert awaited(patient, None) == 2
        assert between(None, 2) == [1, 2]


@tables_as_streams
@pytest.mark.programs
def test_no_row_is_lost_by_those_who_commit_late(postgres):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(
        f"CREATE TABLE {table} (id bigserial, at timestamptz DEFAULT now(), rough timestamp(0) DEFAULT now())"
    )
    writers = Writers(postgres, table)
    found: dict[str, list[int]] = {}

    def follow(name: str, what: Followed) -> None:
        rows, after = found.setdefault(name, []), None
        with connected(postgres) as connection:
            horizon = Horizon(POSTGRES, what, connection, time.monotonic)
            going = True
            while going:
                going = writers.write
                until = awaited(horizon, after)
                if until is not None:
                    going = True
                    query = POSTGRES.rows(what, "id", after, until)
                    rows += [row[0] for row in connection.rows(query)]
                    after = until

    followers = [
        Thread(target=follow, args=arguments)
        for arguments in (
            ("id", Followed(table, "id", "number")),
            ("at", Followed(table, "at", "time", 1000)),
            ("rough", Followed(table, "rough", "local_time", 1000)),
        )
    ]
    for thread in followers:
        thread.start()
    for thread in [*writers.threads, *followers]:
        thread.join()
    wanted = [row["id"] for row in postgres.rows(f"SELECT id FROM {table} ORDER BY id")]
    assert len(wanted) > 150
    for name in ("id", "at", "rough"):
        assert sorted(found[name]) == wanted, name


@pytest.mark.programs
def test_a_commit_in_two_phases_and_another_user_are_waited_for(postgres):
    schema = postgres.new_schema()
    postgres.sql(
        f"CREATE TABLE {schema}.t (id bigserial)",
        f"CREATE ROLE r_{schema} LOGIN PASSWORD '{PASSWORD}'",
        f"GRANT ALL ON SCHEMA {schema} TO r_{schema}",
        f"GRANT SELECT ON {schema}.t TO r_{schema}",
    )
    address = postgres.address.replace("//gem:", f"//r_{schema}:")
    connection = Connection(POSTGRES, address)
    what = Followed(f"{schema}.t", "id", "number")
    horizon = Horizon(POSTGRES, what, connection, time.monotonic)
    with transaction(postgres) as cursor:
        cursor.execute(f"INSERT INTO {schema}.t DEFAULT VALUES")
        postgres.sql(f"INSERT INTO {schema}.t DEFAULT VALUES")
        assert horizon.step(None) is None
        cursor.execute(f"PREPARE TRANSACTION '{schema}'")
        for _ in range(3):
            assert horizon.step(None) is None
            assert horizon.waits
        postgres.sql(f"COMMIT PREPARED '{schema}'")
        assert horizon.step(None) == 2
    assert connection.rows(POSTGRES.rows(what, "id", None, 2)) == [(1,), (2,)]
    connection.close()


@pytest.mark.programs
def test_times_in_the_future_and_rows_without_one(postgres):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(
        f"CREATE TABLE {table} (id int, at timestamptz)",
        f"INSERT INTO {table} VALUES (1, now() - interval '1 day'), (2, now() + interval '1 day'), (3, NULL),"
        " (4, 'infinity')",
    )
    what = Followed(table, "at", "time")
    with connected(postgres) as connection:
        until = awaited(Horizon(POSTGRES, what, connection, time.monotonic), None)
        assert connection.rows(POSTGRES.rows(what, "id", None, until)) == [(1,)]
        assert awaited(Horizon(POSTGRES, what, connection, time.monotonic), until) is None
        with pytest.raises(RefusedError, match='relation "nothing" does not exist'):
            connection.rows("SELECT * FROM nothing")
    with pytest.raises(UnansweredError) as raised:
        Connection(POSTGRES, postgres.address.replace("//gem:", "//nobody:"), (), PASSWORD)
    assert PASSWORD not in str(raised.value)


@pytest.mark.programs
@pytest.mark.parametrize(
    ("raw", "code", "why"),
    [
        ({"increasing": "Id"}, "GB210", "there is no column `Id`, but `id`"),
        ({"increasing": "name"}, "GB207", "can't go by `name`, which is text"),
        ({"increasing": "day"}, "GB207", "can't go by `day`, which is date"),
        ({"increasing": "id", "starting": "2024-01-01"}, "GB207", "`id` has whole numbers"),
        ({"increasing": "id", "delay": "1 second"}, "GB207", "`delay` is for times"),
        ({"increasing": "id", "table": "nothing"}, "GB510", "does not exist"),
        ({"increasing": "id", "password": "wrong"}, "GB503", "password authentication failed"),
        ({"increasing": "id", "query": "select name from {table}", "table": None}, "GB210", "no column `id`"),
    ],
)
def test_tables_that_can_not_be_followed(postgres, raw, code, why):
    schema = postgres.new_schema()
    postgres.sql(f"CREATE TABLE {schema}.t (id int, name text, day date)")
    given = {**postgres.options(), "table": f"{schema}.t", **raw}
    if "query" in given:
        given["query"] = given["query"].format(table=f"{schema}.t")
    made = make(JdbcSource, {key: value for key, value in given.items() if value is not None})
    made.streaming = True
    (found,) = made.connect()
    assert found.code == code
    assert why in found.message


def test_a_standby_is_refused():
    class Standby:
        def rows(self, query: str) -> list[tuple[object, ...]]:
            return [("pg_is_in_recovery" in query,)]

    assert "standby" in (POSTGRES.refusal(Standby()) or "")


# With Spark


def follow(spark, postgres, table, **raw):
    return read_stream(make(JdbcSource, {**postgres.options(), "table": table, **raw}), spark)


@tables_as_streams
@pytest.mark.spark
def test_micro_batches_end_between_values(spark, postgres, tmp_path):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(
        f"CREATE TABLE {table} AS SELECT n AS id, n / 4 AS part FROM generate_series(0, 19) n",
        f"INSERT INTO {table} VALUES (99, NULL)",
    )
    raw = {"increasing": "part", "max_rows_per_trigger": 3, "num_partitions": 2}
    found = drained(follow(spark, postgres, table, **raw), tmp_path / "c")
    assert [sorted(row["id"] for row in rows) for _, rows in found] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
        [12, 13, 14, 15],
        [16, 17, 18, 19],
    ]
    postgres.sql(f"UPDATE {table} SET part = 9 WHERE id = 5", f"INSERT INTO {table} VALUES (20, 2), (21, 8)")
    # A row that is changed comes again; one with a smaller value than those that were read doesn't come.
    again = drained_rows(follow(spark, postgres, table, increasing="part"), tmp_path / "c")
    assert sorted(row["id"] for row in again) == [5, 21]
    for text in (path.read_text(errors="replace") for path in (tmp_path / "c").rglob("*") if path.is_file()):
        assert PASSWORD not in text
    with pytest.raises(Exception, match="the checkpoint has values of `part`, and the stream is by `id` now"):
        drained_rows(follow(spark, postgres, table, increasing="id"), tmp_path / "c")


def position(**offset: Any) -> Position:
    return Position("org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1", offset)


@pytest.mark.programs
def test_how_many_rows_wait(postgres):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} AS SELECT n AS id FROM generate_series(1, 20) n")
    raw = {**postgres.options(), "table": table, "increasing": "id"}
    waits = RowsWaiting(Opened(make(JdbcSource, raw).options), table)

    def told(*positions: Position) -> Waiting | None:
        return waits.told(WaitingContext(positions, "checkpoint"))

    assert told(position(id=5)) == Waiting(table, 15, "records", 15)
    postgres.sql(f"INSERT INTO {table} VALUES (21), (NULL)")
    # What was read since then counts too, so that it is known how long the others have been there.
    assert told(Position("KafkaV2[Subscribe[t]]", {"id": 9}), position(id=7)) == Waiting(
        table, 14, "records", 16
    )
    assert told(position(id=21)) == Waiting(table, 0, "records", 16)
    # Which of two it is isn't known, and of another column it is another one.
    assert told(position(id=5), position(id=7)) is None
    assert told(position(at="2024-01-01 00:00:00")) is None
    assert told() is None


@pytest.mark.programs
def test_who_waits_for_a_count_is_patient_for_so_long(postgres, monkeypatch):
    slow = "SELECT n AS id FROM generate_series(1, 3) n, pg_sleep(60)"
    opened = Opened(make(JdbcSource, {**postgres.options(), "query": slow, "increasing": "id"}).options)
    monkeypatch.setattr(PostgresFollowing, "patience", lambda *_: "SET statement_timeout TO '10ms'")
    with pytest.raises(RefusedError, match="statement timeout"):
        RowsWaiting(opened, "query").told(WaitingContext((position(id=1),), "checkpoint"))


@tables_as_streams
@pytest.mark.spark
def test_a_query_tells_by_where_it_is(spark, postgres, tmp_path):
    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} AS SELECT n AS id FROM generate_series(1, 20) n")
    made = make(
        JdbcSource, {**postgres.options(), "table": table, "increasing": "id", "max_rows_per_trigger": 6}
    )
    query = (
        read_stream(made, spark)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [micro_batch(progress) for progress in query.recentProgress]
    found = [made.waiting(WaitingContext(batch.positions, "c")) for batch in batches if batch.rows_in]
    assert [waiting and waiting.count for waiting in found] == [14, 8, 2, 0]


@tables_as_streams
@pytest.mark.spark
def test_a_stream_has_the_types_and_values_of_the_batch(spark, postgres, tmp_path):
    schema = postgres.new_schema()
    postgres.sql(
        f"CREATE TYPE {schema}.mood AS ENUM ('sad', 'ok')",
        f"CREATE TABLE {schema}.t (at timestamp, b boolean, s smallint, n int, l bigint, f real, d double precision,"
        f" c numeric(12,2), w numeric, x varchar(9), y char(5), z bytea, e date, g timestamptz, h time, u uuid, j jsonb,"
        f" m {schema}.mood, i inet, o xml, ai int[], at_ text[], an numeric(10,2)[], ag timestamptz[])",
        f"INSERT INTO {schema}.t VALUES ('2024-03-31 04:30:00.123456', true, 2, 3, 9007199254740993, 0.5, 0.1, 12.34,"
        " 1.5, 'Ľ ☂', 'ab', '\\x00ff', '1969-12-31', '2024-06-01 12:00:00.000001+05', '12:30',"
        " '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', 'ok', '10.0.0.1', '<a/>', '{1,NULL}', '{a,NULL}',"
        " '{1.5,NULL}', '{2024-01-01 00:00:00+00}')",
        f"INSERT INTO {schema}.t (at) VALUES ('2024-04-01')",
    )
    made = make(JdbcSource, {**postgres.options(), "table": f"{schema}.t", "increasing": "at"})
    batch = made.read(ReadContext("s", spark))
    stream = read_stream(made, spark)
    assert stream.schema.simpleString() == batch.schema.simpleString()
    found = sorted(drained_rows(stream, tmp_path / "c"), key=lambda row: row["at"])
    assert found == [row.asDict() for row in sorted(batch.collect(), key=lambda row: row.at)]
    assert found[0]["y"] == "ab   "
    assert found[0]["i"] == "10.0.0.1"


@tables_as_streams
@pytest.mark.spark
def test_a_stream_by_time_while_others_write(spark, postgres, tmp_path):
    """Each run ends where it began, and with those who were under way then; the next one goes on there."""
    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} (id bigserial, at timestamptz DEFAULT now())")
    writers = Writers(postgres, table)
    rows: list[int] = []
    last = False
    while not last:
        last = not writers.write
        found = drained(follow(spark, postgres, table, increasing="at"), tmp_path / "c")
        rows += [row["id"] for row in all_rows(found)]
    wanted = [row["id"] for row in postgres.rows(f"SELECT id FROM {table} ORDER BY id")]
    assert sorted(rows) == wanted
