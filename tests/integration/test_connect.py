"""Over Spark Connect a run does, and reports, what it does on a session of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import has_processors_of_rows
from tests.connect_server import serving
from tests.integration.flights import ROOT, Flights, Run, lay_out, link_days, table_rows
from tests.integration.pipelines import add_rows, events, finish, run, write_pipeline
from tests.integration.test_readme import README, TOUR
from tests.integration.test_stateful import PROCESSOR
from tests.kit.conformance.test_registry import suites
from tests.samples import a_killed_program, in_another_place, over_connect, seed
from tests.tours import follow, virtual_environment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from tests.connect_server import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.matrix]

HOURLY = """
pipeline: hourly
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "id int, at timestamp", max_files_per_trigger: 1}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, aggregates: {orders: count(*)}}
  held:
    gem: expect
    input: orders
    options: {rules: {another: id <> 10, first: {condition: id > 0, action: warn}}}
targets:
  hourly: {gem: file, input: counts, options: {format: json, path: out/hourly}}
  all: {gem: delta, input: held, options: {path: out/all}}
  bad: {gem: delta, input: held.rejected, options: {path: out/bad}}
"""
# The fourth comes when the watermark has passed the window of its first row.
FILES = [["00:10", "00:20"], ["01:30"], ["05:00"], ["00:30", "06:00"]]
MORE = ["02:00", "09:00"]
# In one client: previews of the nodes of a file as JSON, and what they leave on the server.
PREVIEWS = """
import json, sys
from pathlib import Path
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.options import RunOptions
from gem_bundle.run.preview import preview

options = RunOptions(quiet=True)
plan, _ = prepare(lambda loads: load_file(Path(sys.argv[1]), loads), options)

def told(node, rows):
    try:
        found = preview(plan, node, spark, rows, timeout=120)
    except PipelineError as error:
        return [(found.code, found.node, found.message) for found in error.diagnostics]
    return [found.streaming, found.schema.simpleString(), sorted(map(str, found.rows)), found.complete]

with open_for(plan, plan.order, options) as session:
    spark = session.spark
    found = [told(node, rows) for node, rows in json.loads(sys.argv[2])]
    left = [row.tableName for row in spark.sql("show tables").collect()] + [q.name for q in spark.streams.active]
print(json.dumps([found, left]))
"""
PREVIEWED = """
pipeline: previewed
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int, at timestamp"}}
  names: {gem: rows, mode: batch, options: {rows: [{id: 1, name: one}]}}
  ticks: {gem: rate, options: {rows_per_second: 100}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 minute}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, aggregates: {orders: count(*)}}
  pairs: {gem: join, inputs: {o: orders, n: names}, options: {condition: o.id = n.id}}
  shares: {gem: select, input: orders, options: {columns: ["100 / id as share"]}}
targets:
  hourly: {gem: noop, input: counts}
  paired: {gem: noop, input: pairs}
  shared: {gem: noop, input: shares}
  ticking: {gem: noop, input: ticks}
"""
# Of a micro-batch; the rest is times.
COUNTED = ("batch_id", "rows_in", "rows_out", "watermark", "state_rows", "late_rows")


def add(folder: Path, number: int, times: Iterable[str]) -> None:
    """A file of orders; files are read in the order of their times."""
    rows = [{"id": number * 10 + i, "at": f"2013-01-01T{time}:00Z"} for i, time in enumerate(times)]
    add_rows(folder / "orders", f"{number}.json", rows)
    os.utime(folder / "orders" / f"{number}.json", (1_700_000_000 + number,) * 2)


def hourly(folder: Path) -> Path:
    folder.mkdir()
    for number, times in enumerate(FILES):
        add(folder, number, times)
    return write_pipeline(folder, HOURLY)


def timeless(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs from run to run."""
    found = {key: value for key, value in report.items() if key not in {"started", "ended", "seconds"}}
    found["targets"] = {
        name: {
            **{key: value for key, value in totals.items() if key not in {"busy_ms", "last"}},
            "last": totals["last"] and {key: totals["last"][key] for key in COUNTED},
        }
        for name, totals in report["targets"].items()
    }
    return found


def rejected_row(row: Row) -> tuple[str, list[tuple[str, str]], str]:
    """What was rejected, why, and by the name of which file."""
    return row.row, [tuple(why) for why in row.reasons], row.origin["file"].rpartition("/")[2]


def written(folder: Path) -> list[str]:
    return sorted(
        line for part in (folder / "out/hourly").glob("*.json") for line in part.read_text().split()
    )


@in_another_place
def test_a_run_and_its_restart(spark: SparkSession, connect_server: ConnectServer, tmp_path: Path) -> None:
    there, here = hourly(tmp_path / "there"), hourly(tmp_path / "here")
    (first,) = connect_server.run(there)
    expected = run(here, available_now=True).as_dict()
    assert timeless(first) == timeless(expected)
    totals = first["targets"]["hourly"]
    assert first["status"] == "finished"
    assert (totals["rows_in"], totals["late_rows"], totals["watermark"]) == (6, 1, "2013-01-01T05:50:00.000Z")
    assert first["targets"]["all"]["rows_out"] == 5
    assert (first["rejected"], first["broken"]) == ({"held": 1}, {"held": {"first": 1}})
    for folder in (there.parent, here.parent):
        add(folder, 5, MORE)
    (second,) = connect_server.run(there)
    assert timeless(second) == timeless(run(here, available_now=True).as_dict())
    assert second["targets"]["all"]["rows_in"] == 2, "it continues where the first ended"
    assert second["targets"]["hourly"]["late_rows"] == 1, "the watermark has come over the restart"
    assert written(there.parent) == written(here.parent)
    rows = spark.read.format("delta").load(str(there.parent / "out/all"))
    assert rows.count() == rows.distinct().count() == 7
    held = [
        spark.read.format("delta").load(str(place.parent / "out/bad")).drop("rejected_at")
        for place in (there, here)
    ]
    told = [sorted(map(rejected_row, df.collect())) for df in held]
    assert told[0] == told[1]
    assert [(row, why) for row, why, _ in told[0]] == [
        ('{"id":10,"at":"2013-01-01T01:30:00.000000Z"}', [("another", "`id <> 10` is false")])
    ]


_ORDERS = 'gem: file, options: {path: orders, format: json, schema: "id int, at timestamp", '
# State of several operators with late rows of two streams; rules that rejected, dropped and counted; what a row
# ends; a batch that rejects, and one that a row ends.
REPORTED = {
    "joined": f"""
pipeline: joined
sources:
  orders: {{{_ORDERS} max_files_per_trigger: 1}}}}
  paid: {{{_ORDERS} max_files_per_trigger: 2}}}}
transforms:
  timely: {{gem: watermark, input: orders, options: {{column: at, delay: 10 minutes}}}}
  once: {{gem: deduplicate, input: timely, options: {{columns: [id, at]}}}}
  late: {{gem: watermark, input: paid, options: {{column: at, delay: 20 minutes}}}}
  matched:
    gem: join
    inputs: {{o: once, p: late}}
    options: {{condition: "o.id = p.id and p.at between o.at and o.at + interval 1 hour"}}
  named: {{gem: select, input: matched, options: {{columns: [o.id as id]}}}}
targets:
  pairs: {{gem: delta, input: named, options: {{path: pairs}}}}
  firsts: {{gem: file, input: once, options: {{format: json, path: firsts}}}}
""",
    "sifted": f"""
pipeline: sifted
sources:
  orders: {{{_ORDERS} max_files_per_trigger: 1}}}}
transforms:
  held:
    gem: expect
    input: orders
    options: {{rules: {{first: {{condition: id > 0, action: drop}}, early: hour(at) < 5, even: {{condition: id % 2 = 0, action: warn}}}}}}
  parted: {{gem: route, input: held, options: {{conditions: {{low: id < 10}}, rest: high}}}}
targets:
  low: {{gem: delta, input: parted.low, options: {{path: low}}}}
  high: {{gem: file, input: parted.high, options: {{format: parquet, path: high}}}}
  bad: {{gem: file, input: held.rejected, options: {{format: json, path: bad}}}}
""",
    "ended": f"""
pipeline: ended
sources:
  orders: {{{_ORDERS} max_files_per_trigger: 1}}}}
transforms:
  held: {{gem: expect, input: orders, options: {{action: fail, rules: {{early: hour(at) < 5}}}}}}
targets:
  all: {{gem: delta, input: held, options: {{path: all}}}}
""",
    "batch": f"""
pipeline: batch
mode: batch
sources:
  orders: {{{_ORDERS}}}}}
transforms:
  held: {{gem: expect, input: orders, options: {{rules: {{early: hour(at) < 5, even: {{condition: id % 2 = 0, action: warn}}}}}}}}
  counts: {{gem: aggregate, input: held, options: {{group_by: [hour(at) as hour], aggregates: {{orders: count(*)}}}}}}
targets:
  hours: {{gem: delta, input: counts, options: {{path: hours}}}}
  bad: {{gem: file, input: held.rejected, options: {{format: json, path: bad}}}}
""",
    "refused": f"""
pipeline: refused
mode: batch
sources:
  orders: {{{_ORDERS}}}}}
transforms:
  shares: {{gem: select, input: orders, options: {{columns: ["100 / id as share"]}}}}
targets:
  first: {{gem: delta, input: orders, options: {{path: first}}}}
  shared: {{gem: file, input: shares, options: {{format: json, path: shared}}}}
""",
}


# Why each of them ended, by the node of the failure, and numbers that show that it was about what it says.
OUTCOMES: dict[str, tuple[list[str], dict[str, int]]] = {
    "joined": ([], {"late_rows": 2}),
    "sifted": ([], {"rejected_rows": 2}),
    "ended": (["held"], {}),
    "batch": ([], {"rejected_rows": 2}),
    "refused": (["shared"], {}),
}


@over_connect
@pytest.mark.parametrize("name", REPORTED)
def test_reports_are_equal(
    name: str, spark: SparkSession, connect_server: ConnectServer, tmp_path: Path
) -> None:
    files = {}
    for place in ("there", "here"):
        for number, times in enumerate(FILES):
            add(tmp_path / place, number, times)
        files[place] = write_pipeline(tmp_path / place, REPORTED[name])
    (there,) = connect_server.run(files["there"])
    here = run(files["here"], available_now="mode: batch" not in REPORTED[name]).as_dict()
    for report in (there, here):
        for found in report["diagnostics"]:
            found["file"] = found["file"].rpartition("/")[2]
    assert timeless(there) == timeless(here)
    nodes, numbers = OUTCOMES[name]
    assert [found["node"] for found in there["diagnostics"]] == nodes
    assert {key: there["totals"][key] for key in numbers} == numbers
    if name == "joined":
        assert there["targets"]["firsts"]["last"]["state_rows"] > 0


@over_connect
def test_a_signal_lets_the_micro_batch_end(connect_server: ConnectServer, tmp_path: Path) -> None:
    file = hourly(tmp_path / "stopped")
    report = file.with_name("report.json")
    process = connect_server.command("run", file, "--log-format", "json", "--report", report)
    for event in events(process):
        if event["event"] == "progress":
            break
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 0, err
    stopped = json.loads(report.read_text())
    assert stopped["status"] == "stopped"
    (rest,) = connect_server.run(file)
    for target in ("hourly", "all"):
        assert stopped["targets"][target]["rows_in"] + rest["targets"][target]["rows_in"] == 6


TICKING = """
pipeline: ticking
sources:
  ticks: {gem: rate, options: {rows_per_second: 50, num_partitions: 1}}
targets:
  steady: {gem: noop, input: ticks, trigger: {continuous: 1 second}}
  often: {gem: noop, input: ticks, trigger: {processing_time: 1 second}}
"""


@over_connect
def test_queries_go_by_their_triggers(connect_server: ConnectServer, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TICKING)
    report = tmp_path / "report.json"
    process = connect_server.command("run", file, "--log-format", "json", "--report", report)
    # Spark tells no progress of a continuous query, here as elsewhere.
    for event in events(process):
        if event["event"] == "progress" and event["rows_in"]:
            break
    assert event["target"] == "often"
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 0, err
    stopped = json.loads(report.read_text())
    assert (stopped["status"], stopped["diagnostics"]) == ("stopped", [])
    assert stopped["targets"]["often"]["rows_in"] > 0


@over_connect
def test_previews_leave_nothing_behind(connect_server: ConnectServer, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PREVIEWED)
    add(tmp_path, 0, ["00:10", "00:20", "01:30"])
    nodes = [("names", 5), ("orders", 2), ("hourly", 5), ("pairs", 5), ("ticks", 3), ("shares", 5)]
    before = connect_server.temporary()
    found, left = connect_server.python(PREVIEWS, file, json.dumps(nodes))
    static, orders, counts, pairs, ticks, shares = found
    assert static == [False, "struct<id:bigint,name:string>", ["Row(id=1, name='one')"], True]
    assert (orders[0], orders[1], orders[3]) == (True, "struct<id:int,at:timestamp>", False)
    assert len(orders[2]) == 2
    assert [row.rpartition("orders=")[2] for row in counts[2]] == ["2)", "1)"]
    assert counts[3], "windows that are still open are shown"
    assert pairs[1:] == [
        "struct<id:int,at:timestamp,id:bigint,name:string>",
        ["Row(id=1, at=datetime.datetime(2013, 1, 1, 0, 20), id=1, name='one')"],
        True,
    ]
    assert len(ticks[2]) == 3
    ((code, node, message),) = shares
    assert (code, node) == ("GB508", "shares")
    assert "Division by zero" in message
    assert left == []
    assert connect_server.temporary() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders", "pipeline.yaml"]


FAILING = """
pipeline: failing
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int, at timestamp"}}
transforms:
  shares: {gem: select, input: orders, options: {columns: ["100 / id as share"]}}
targets:
  shared: {gem: SINK, input: shares, options: {path: out}}
"""


@over_connect
def test_a_failure_has_the_cause_that_it_has_here(connect_server: ConnectServer, tmp_path: Path) -> None:
    files = {}
    for place in ("there", "here"):
        for sink in ("delta", "file"):
            folder = tmp_path / place / sink
            add(folder, 0, ["00:10"])
            files[place, sink] = write_pipeline(
                folder,
                FAILING.replace("SINK", sink).replace("path: out", "path: out, format: json")
                if sink == "file"
                else FAILING.replace("SINK", sink),
            )
    there = connect_server.run(files["there", "delta"], files["there", "file"])
    here = [run(files["here", sink], available_now=True).as_dict() for sink in ("delta", "file")]
    for ours, theirs in zip(there, here, strict=True):
        assert ours["status"] == theirs["status"] == "failed"
        (found,), (expected,) = ours["diagnostics"], theirs["diagnostics"]
        assert [found[key] for key in ("code", "node", "message", "hint")] == [
            expected[key] for key in ("code", "node", "message", "hint")
        ]
        assert "Division by zero" in found["message"]


DECLARED = """
pipeline: declared
sources:
  orders:
    gem: file
    options: {path: nowhere, format: json, schema: "shop string, at timestamp, amount int"}
  shops: {gem: file, mode: batch, options: {path: nowhere, format: json, schema: "shop string, country string"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 30 minutes}}
  named: {gem: join, inputs: [timely, shops], options: {how: left, on: [shop]}}
  hourly:
    gem: aggregate
    input: named
    options: {window: {column: at, duration: 1 hour}, group_by: [country], aggregates: {orders: count(*)}}
  flat: {gem: select, input: hourly, options: {columns: {hour: window.start, country: country, orders: orders}}}
  shares: {gem: select, input: orders, options: {columns: ["100 / amount as share"]}}
  sizes: {gem: python, input: orders, options: {function: "sizes_over_connect:sizes"}}
  silent:
    gem: stateful
    input: orders
    options: {processor: "silence_over_connect:Silence", group_by: shop, schema: shop string, time: processing}
targets:
  alarms: {gem: noop, input: silent}
  table: {gem: delta, input: flat, options: {path: nowhere}}
  changes: {gem: noop, input: flat, output_mode: update}
  all: {gem: memory, input: flat, output_mode: complete}
  shared: {gem: noop, input: shares}
  sized: {gem: kafka, input: sizes, options: {bootstrap_servers: ["nowhere:1"], topic: sizes}}
"""
# A restart in each output mode; what goes wrong; a function of the pipeline's own, that is called per row.
DECLARED_TESTS = """
tests:
  windows close over a restart:
    targets: [table, changes, all]
    replace:
      shops: {rows: [{shop: Oslo, country: Norway}]}
    steps:
      - add:
          orders:
            - {shop: Oslo, at: "2026-01-05 09:05:00", amount: 1}
            - {shop: Rome, at: "2026-01-05 09:10:00", amount: 7}
        expect:
          table: []
          changes: &nine
            - {hour: "2026-01-05 09:00:00", country: Norway, orders: 1}
            - {hour: "2026-01-05 09:00:00", country: null, orders: 1}
          all: *nine
        watermark: "2026-01-05 08:40:00"
      - restart: true
        add: {orders: [{shop: Oslo, at: "2026-01-05 10:45:00", amount: 1}]}
        expect:
          table: *nine
          changes: &ten [{hour: "2026-01-05 10:00:00", country: Norway, orders: 1}]
          all: {count: 3}
      - add:
          orders:
            - {shop: Oslo, at: "2026-01-05 09:45:00", amount: 1}
            - {shop: Oslo, at: "2026-01-05 12:45:00", amount: 1}
        expect:
          table: *ten
          changes: [{hour: "2026-01-05 12:00:00", country: Norway, orders: 1}]
  a division by zero:
    targets: [shared]
    steps:
      - add: {orders: [{amount: 0}]}
        fails: {code: GB508, message: Division by zero}
  a function:
    targets: [sized]
    steps:
      - add: {orders: [{shop: Oslo}, {shop: Rome, amount: 3}]}
        expect: {sized: [{value: "4 -"}, {value: "4 3"}]}
  a clock:
    targets: [alarms]
    steps:
      - clock: "2026-01-05 09:00:00"
        add: {orders: [{shop: Oslo}]}
        expect: {alarms: []}
      - clock: "2026-01-05 09:01:00"
        add: {orders: [{shop: Rome}]}
        expect: {alarms: [{shop: Oslo}]}
      - clock: "2026-01-05 09:02:00"
        expect: {alarms: [{shop: Rome}]}
  it is wrong:
    targets: [sized]
    steps:
      - add: {orders: [{shop: Oslo}]}
        expect: {sized: [{value: "5 -"}]}
"""
SILENCE = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Silence(StatefulProcessor):
    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timerValues):
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 60_000)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(shop=key[0])

    def close(self):
        pass
"""
SIZES = """
from pyspark.sql.functions import udf

def sizes(df):
    @udf("string")
    def size(shop, amount):
        return told(len(shop), amount)

    return df.select(size("shop", "amount").alias("value"))

def told(length, amount):
    return f"{length} {'-' if amount is None else amount}"
"""


@over_connect
def test_declared_tests_run_on_the_server(connect_server: ConnectServer, tmp_path: Path) -> None:
    write_pipeline(tmp_path, DECLARED, "declared.yaml")
    (tmp_path / "sizes_over_connect.py").write_text(SIZES)
    (tmp_path / "silence_over_connect.py").write_text(SILENCE)
    tests = write_pipeline(tmp_path, DECLARED_TESTS, "declared.test.yaml")
    status, out, err = finish(connect_server.command("test", tests))
    assert status == 1, err
    verdicts = [line.rpartition(" (")[0].split(": ")[1:] for line in out.splitlines() if "test.yaml:" in line]
    assert verdicts[:5] == [
        ["windows close over a restart", "ok"],
        ["a division by zero", "ok"],
        ["a function", "ok"],
        ["a clock", "ok"],
        ["it is wrong", "FAILED"],
    ], out
    assert "1 failed, 4 passed" in out
    assert not any(views(connect_server)), "what was captured is gone"


SUMS = """
pipeline: sums
sources:
  readings: {gem: file, options: {path: in, format: json, schema: "device string, value long"}}
transforms:
  summed:
    gem: stateful
    input: readings
    options: {processor: "sums_over_connect:Sums", group_by: device, schema: "device string, s long"}
targets:
  out: {gem: file, input: summed, options: {path: out, format: json}}
"""


@over_connect
def test_state_of_one_s_own_is_kept_on_the_server(connect_server: ConnectServer, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SUMS)
    (tmp_path / "sums_over_connect.py").write_text(PROCESSOR)
    for number in range(2):
        rows = [{"device": "ab"[n % 2], "value": n + 10 * number} for n in range(4)]
        add_rows(tmp_path / "in", f"{number}.json", rows)
        (report,) = connect_server.run(file)
        assert report["status"] == "finished"
    texts = [part.read_text(encoding="utf-8") for part in (tmp_path / "out").glob("*.json")]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    assert sorted((row["device"], row["s"]) for row in found) == [("a", 2), ("a", 24), ("b", 4), ("b", 28)]


if not has_processors_of_rows():  # which a check says: tests/core/check/test_processors.py
    del test_declared_tests_run_on_the_server
    del test_state_of_one_s_own_is_kept_on_the_server


@over_connect
def test_the_tour_of_the_readme(connect_server: ConnectServer, tmp_path: Path) -> None:
    scripts, folder = virtual_environment(tmp_path / "venv"), tmp_path / "tour"
    there = {**os.environ, "SPARK_REMOTE": connect_server.url, "JAVA_HOME": "/nowhere"}
    # Between these parts are an edit, whose plan offers what needs a checkpoint on this disk, a group, which a server
    # can't write, and a bundle, which brings its own Spark to a cluster.
    parts = (
        (TOUR, "\n### Change it"),
        ("### Test it", "\n### Take it to a cluster"),
        ("### Write a gem", "\n## "),
    )
    for start, end in parts:
        assert follow(README, folder, scripts, start=start, end=end, environment=there) > 2


def views(server: ConnectServer) -> list[str]:
    """What a client that comes later finds in the server's memory."""
    code = (
        "import json; from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"
        "print(json.dumps([row[1] for row in spark.sql('SHOW VIEWS IN global_temp').collect()]))"
    )
    found: list[str] = server.python(code)
    return found


@pytest.fixture
def demo(feed: Path, tmp_path: Path) -> Path:
    """The flights example with the first days of the feed."""
    lay_out("flights", tmp_path)
    link_days(feed, tmp_path / "data", 24)
    return tmp_path


# Of a preview: it goes on as long as its server does.
FOR_LONG = ("-n", "1000000", "--timeout", "600")


def flights(demo: Path, server: ConnectServer) -> Run:
    """A run of the flights example as a client, in many micro-batches."""
    small = ("-p", "files_per_trigger=2")
    return Run(demo / "flights.yaml", *small, log=demo / "spark.log", SPARK_REMOTE=server.url)


@a_killed_program
def test_the_flights_after_their_client_was_killed(connect_server: ConnectServer, demo: Path) -> None:
    with flights(demo, connect_server) as run:
        run.until(3)
        run.signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    with flights(demo, connect_server) as run:
        assert run.wait() == 0, run.said
    assert table_rows(demo / "out" / "hours") == Flights(demo / "data").hours()


@a_killed_program
def test_the_flights_after_their_server_was_killed(jars: list[Path], demo: Path) -> None:
    (demo / "first").mkdir()
    with serving(jars, demo / "first") as server, flights(demo, server) as run:
        looking = server.command("preview", write_pipeline(demo, TICKING, "ticking.yaml"), "ticks", *FOR_LONG)
        run.until(3)
        server.process.kill()
        server.process.wait()
        told = (
            f"error[GB525]: the Spark Connect server at {server.url} went away: nobody answers there any more"
        )
        assert run.wait() == 1
        (said,) = [line for line in run.said if "GB525" in line and not line.startswith("{")]
        assert told in said
        status, _, err = finish(looking)
        assert status == 1
        assert told in err
        for text in (err, "".join(run.said)):
            assert "Traceback" not in text
            assert "RETRIES_EXCEEDED" not in text
    partly, expected = table_rows(demo / "out" / "hours"), Flights(demo / "data").hours()
    assert 0 < len(partly) < len(expected)
    (demo / "second").mkdir()
    with serving(jars, demo / "second") as server, flights(demo, server) as run:
        assert run.wait() == 0, run.said
        assert run.progress()[0]["batch_id"] >= 3, "it continues where the first one died"
    assert table_rows(demo / "out" / "hours") == expected


@a_killed_program
@pytest.mark.parametrize("again", [False, True], ids=["told to end", "started again"])
def test_a_run_without_end_whose_server_ends_has_failed(again: bool, tmp_path: Path) -> None:
    """A server that is told to end stops its queries; one that is started again has none."""
    file = write_pipeline(tmp_path, TICKING)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        with serving((), tmp_path / "first") as server:
            process = server.command("run", file, "--log-format", "json")
            for event in events(process):
                if event["event"] == "progress":
                    break
            if again:
                server.process.kill()
                server.process.wait()
        if again:
            port = {"spark.connect.grpc.binding.port": server.url.rpartition(":")[2]}
            stack.enter_context(serving((), tmp_path / "second", port))
        status, _, err = finish(process)
    assert status == 1
    said = "doesn't know this session any more" if again else "went away"
    assert f"error[GB525]: the Spark Connect server at {server.url} {said}" in err
    assert '"status": "failed"' in err
    assert "Traceback" not in err


def in_the_suite() -> str:
    """A class of the conformance suite that needs no broker, and no Python of the server's own.

    All of them pass it in the matrix (`scripts/matrix --connect`).
    """
    dear = ("Kafka", "Foreach")
    names = [suite.__name__ for suite in suites() if not any(word in suite.__name__ for word in dear)]
    return Random(seed()).choice(names)


@over_connect
def test_a_gem_passes_the_conformance_suite(connect_server: ConnectServer) -> None:
    name = in_the_suite()
    suite = [
        "-m",
        "pytest",
        "-q",
        "-m",
        "matrix",
        "--long",
        "-p",
        "no:cacheprovider",
        "tests/kit/conformance",
    ]
    chosen = ["-k", name, "--connect", connect_server.url]
    done = subprocess.run(
        [sys.executable, *suite, *chosen], cwd=ROOT, capture_output=True, text=True, check=False, timeout=580
    )
    assert done.returncode == 0, f"{name}: {done.stdout[-6000:]}"
    assert " passed" in done.stdout


DELIVERED = """
pipeline: delivered
mode: batch
sources:
  orders: {gem: rows, options: {schema: "id int", rows: [[1], [2], [3]]}}
targets:
  sent: {gem: foreach, input: orders, options: {function: "refusing_over_connect:one", rejects: true}}
  merged: {gem: foreach_batch, input: orders, options: {function: "refusing_over_connect:many", rejects: true}}
  unsent: {gem: file, input: sent.rejected, options: {path: unsent, format: json}}
  unmerged: {gem: file, input: merged.rejected, options: {path: unmerged, format: json}}
"""
REFUSING = """
def one(row):
    return ("odd", f"{row.id} is odd") if row.id % 2 else None

def many(df, batch_id, reject):
    reject(df.where("id = 2"), "even")
"""


@over_connect
def test_a_batch_learns_what_was_refused(connect_server: ConnectServer, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, DELIVERED)
    (tmp_path / "refusing_over_connect.py").write_text(REFUSING)
    (report,) = connect_server.run(file)
    assert report["status"] == "finished", report
    assert report["rejected"] == {"sent": 2, "merged": 1}
    assert [report["targets"][name]["rows_out"] for name in ("sent", "merged")] == [1, 2]
    refused = {}
    for name in ("unsent", "unmerged"):
        lines = [line for part in (tmp_path / name).glob("*.json") for line in part.read_text().splitlines()]
        rows = [json.loads(line) for line in lines]
        refused[name] = sorted((row["row"], *row["reasons"][0].values()) for row in rows)
    assert refused == {
        "unsent": [('{"id":1}', "odd", "1 is odd"), ('{"id":3}', "odd", "3 is odd")],
        "unmerged": [('{"id":2}', "refused", "even")],
    }


# In one client: what Spark says of three pipelines, and one of Python's own, looked at and run.
IN_PYTHON = """
import json, sys
from pathlib import Path
from gem_bundle import Pipeline
from gem_bundle.run.session import SessionRequest, open_session
from gem_bundle.testing import AddRows, CheckRows, run_steps
from tests.integration.test_engine import verdict

folder = Path(sys.argv[1])
session = open_session(SessionRequest(app_name="api", spark_log=folder / "log", class_archive=folder / "classes"))
written = [name for name in ("log", "classes") if (folder / name).exists()]
spark = session.spark
said = [verdict(folder, spark, **how) for how in ({}, {"how": "right"}, {"clicks": "sum(nothing)"})]

pipeline = Pipeline("api", folder=folder)
pipeline.source("orders", "file", {"path": "orders", "format": "json", "schema": "id int"})
pipeline.transform("odd", "filter", "orders", {"condition": "id % 2 = 1"})
pipeline.target("odds", "delta", "odd", {"path": "odds"})
found = [str(diagnostic) for diagnostic in pipeline.check()]
columns = pipeline.dataframe("odd", spark).columns
report = pipeline.run(available_now=True)
steps = [AddRows("orders", [{"id": 1}, {"id": 2}]), CheckRows("odds", [{"id": 1}])]
outcome = run_steps(pipeline, steps, lambda: spark)
rows = sorted(row.id for row in spark.read.format("delta").load(str(folder / "odds")).collect())
session.close()
print(json.dumps([said, found, columns, report.status, report.rows_in, rows, outcome.ok, written]))
"""


@over_connect
def test_the_python_api_and_the_engine_s_verdict(connect_server: ConnectServer, tmp_path: Path) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}, {"id": 2}, {"id": 3}])
    before = connect_server.temporary()
    said, *found = connect_server.python(IN_PYTHON, tmp_path)
    assert said == [[], [["GB320", "table", 15]], [["GB320", "counts", 10]]]
    assert found == [[], ["id"], "finished", 3, [1, 3], True, []]
    (left,) = set(connect_server.temporary()) - set(before)
    assert not any((connect_server.folder / "tmp" / left).iterdir()), (
        "Spark's own, of the query that it refused"
    )

    # Only Spark knows which functions it has.
    files = [write_pipeline(tmp_path, ASKED.format(name=name), f"{name}.yaml") for name in ("abs", "never")]
    status, out, err = finish(connect_server.command("check", "--engine", *files))
    assert status == 1
    assert "abs.yaml: ok (3 nodes; Spark's analyser agrees)" in out
    assert "never.yaml:6:3: error[GB320]: transform `odd`: Cannot resolve routine `never`" in err


ASKED = """
pipeline: asked
sources:
  orders: {{gem: file, options: {{path: orders, format: json, schema: "id int"}}}}
transforms:
  odd: {{gem: filter, input: orders, options: {{condition: "{name}(id) = 1"}}}}
targets:
  odds: {{gem: noop, input: odd}}
"""
H2 = """\
  shop:
    gem: jdbc
    input: orders
    options: {url: "jdbc:h2:./shop", table: orders, driver: org.h2.Driver, jar: "com.h2database:h2:2.3.232"}
"""
# In one client: what is said of a pipeline whose file the server sees, and once it doesn't.
LACKING = """
import json, sys
from pathlib import Path
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.elsewhere import lacking
from gem_bundle.run.options import RunOptions

options = RunOptions(quiet=True)
file = Path(sys.argv[1])
plan, _ = prepare(lambda loads: load_file(file, loads), options)
try:
    with open_for(prepare(lambda loads: load_file(Path(sys.argv[2]), loads), options)[0], ["shop"], options):
        jars = []
except PipelineError as error:
    jars = [found.as_dict() for found in error.diagnostics]
with open_for(plan, plan.order, options) as session:
    seen = [found.as_dict() for found in lacking(plan, session, plan.order)]
    file.unlink()
    unseen = [found.as_dict() for found in lacking(plan, session, plan.order)]
print(json.dumps([seen, unseen, jars]))
"""


def test_what_a_server_lacks_is_said_before_the_start(connect_server: ConnectServer, tmp_path: Path) -> None:
    wants = "spark: {spark.sql.warehouse.dir: /elsewhere, spark.sql.shuffle.partitions: 3}\n"
    file = write_pipeline(tmp_path, wants + HOURLY)
    add(tmp_path, 0, ["00:10"])
    process = connect_server.command("run", file, "--available-now")
    status, _, err = finish(process)
    assert status == 0, err
    (said,) = [line for line in err.splitlines() if "[GB51" in line]
    assert (
        "pipeline.yaml:1:9: warning[GB513]: the pipeline wants `spark.sql.warehouse.dir` to be `/elsewhere`"
        in said
    )

    shop = write_pipeline(tmp_path, HOURLY + H2, "shop.yaml")
    seen, unseen, (jars,) = connect_server.python(LACKING, file, shop)
    assert (jars["code"], jars["node"]) == ("GB502", "shop")
    assert jars["message"].endswith("has no `org.h2.Driver`, which the gem `jdbc` needs")
    assert [found["code"] for found in seen] == ["GB513"]
    (found,) = [found for found in unseen if found["code"] == "GB514"]
    assert found["message"].endswith(
        "for `path` of `orders`, the checkpoint of `hourly`, `path` of `hourly`, the checkpoint of `all`, "
        "`path` of `all`, the checkpoint of `bad`, `path` of `bad`"
    )

    grouped = write_pipeline(
        tmp_path, HOURLY.replace("all: {gem: delta, ", "all: {gem: delta, group: one, "), "grouped.yaml"
    )
    status, _, err = finish(connect_server.command("run", grouped, "--available-now"))
    assert status == 1
    assert "error[GB386]: target `all`: the group `one` can't be written over Spark Connect" in err
