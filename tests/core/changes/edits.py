"""Edits of a few pipelines, by name, and what each is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.against import plan_against
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare, compare_with_checkpoint
from gem_bundle.changes.logs import Offsets
from gem_bundle.changes.record import Record
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.changes.model import TargetChanges, Verdict
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.pipeline.plan import Plan

BASE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  some: {gem: filter, input: timely, options: {condition: n > 0}}
  counts:
    gem: aggregate
    input: some
    options:
      window: {column: at, duration: 1 hour}
      group_by: [page]
      aggregates: {total: sum(n), most: max(n)}
  named: {gem: rename, input: counts, options: {columns: {page: path}}}
targets:
  out: {gem: file, input: named, options: {format: json, path: out}}
"""
ORDERS = """
pipeline: shop
sources:
  orders: {gem: kafka, options: {bootstrap_servers: "kafka:9092", subscribe: orders}}
  goods: {gem: file, options: {format: json, path: goods, schema: "name string, seen timestamp"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: timestamp, delay: 1 hour}}
  dated: {gem: watermark, input: goods, options: {column: seen, delay: 1 hour}}
  pairs:
    gem: join
    inputs: [timely, dated]
    options:
      how: inner
      condition: >-
        cast(timely.value as string) = dated.name and dated.seen >= timely.timestamp
        and dated.seen <= timely.timestamp + interval 1 hour
  flat: {gem: select, input: pairs, options: {columns: [name, seen, timestamp]}}
targets:
  out: {gem: delta, input: flat, options: {path: out}}
"""
TICKS = """
pipeline: shop
sources:
  ticks: {gem: rate}
transforms:
  called: {gem: python, input: ticks, options: {function: "textwrap:dedent"}}
  spread: {gem: repartition, input: called, options: {partitions: 2}}
targets:
  out: {gem: console, input: spread}
"""
PASSED_ON = """
pipeline: shop
sources:
  orders: {gem: kafka, options: {bootstrap_servers: "kafka:9092", subscribe: orders}}
targets:
  out: {gem: kafka, input: orders, output_mode: update, options: {bootstrap_servers: "kafka:9092", topic: copies}}
"""
ONCE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  pages: {gem: deduplicate, input: clicks, options: {columns: [page]}}
  numbers: {gem: deduplicate, input: pages, options: {columns: [n]}}
targets:
  out: {gem: console, input: numbers}
"""
TOTALS = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
  more: {gem: file, options: {format: json, path: more, schema: "page string, n int"}}
transforms:
  all: {gem: union, inputs: [clicks, more]}
  totals: {gem: aggregate, input: all, options: {group_by: [page], aggregates: {total: sum(n)}}}
targets:
  out: {gem: console, input: totals, output_mode: update}
"""
COLUMNS = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
  chosen: {gem: select, input: clicks, options: {columns: [page, n]}}
targets:
  out: {gem: delta, input: chosen, options: {path: out}}
"""
TWICE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  all: {gem: union, inputs: {first: clicks, second: clicks}}
targets:
  out: {gem: console, input: all}
"""
_TABLE = "gem: table, input: chosen, options: {table: pages, format: parquet}"
TWO = COLUMNS + "  more: {gem: noop, input: chosen}\n"


def _same(ran: VersionRecord) -> VersionRecord:
    return ran


class Edit(NamedTuple):
    """An edit of a pipeline.

    Args:
        name: What is done.
        replaced: The texts that are replaced, with those in their place.
        verdict: What it is called.
        codes: The codes of its changes.
        base: The pipeline.
        folder: Where it is now; it was in `/shop`.
        ran: What was different about the version that ran besides.
        told: Who tells of it, of the pipeline before and after, where the target has other than a record.
    """

    name: str
    replaced: tuple[tuple[str, str], ...]
    verdict: Verdict
    codes: tuple[str, ...]
    base: str = BASE
    folder: str = "/shop"
    ran: Callable[[VersionRecord], VersionRecord] = _same
    told: Callable[[Plan, Plan], TargetChanges] | None = None


def plan(text: str, folder: str = "/shop", variables: Mapping[str, str] | None = None) -> Plan:
    document = parse(dedent(text), "shop.yaml")
    options = LoadOptions(environment=dict(variables or {}))
    loaded = load_values(document.values, document, Path(folder), "shop.yaml", options)
    checked = check_definition(loaded)
    assert checked.plan is not None, checked.diagnostics
    return checked.plan


def verdict(
    before: str,
    after: str,
    target: str = "out",
    *,
    folder: str = "/shop",
    ran: Callable[[VersionRecord], VersionRecord] = _same,
    earlier: str = "",
) -> TargetChanges:
    """What is said of an edit, by the record that the first version would leave, and one before it."""
    old, new = plan(before), plan(after, folder)
    kept = Record.from_json(Record("out", (ran(version_of(old, "out")),)).as_json()).newest
    assert kept is not None
    ran_earlier = (version_of(plan(earlier), "out"),) if earlier else ()
    return compare(kept, version_of(new, target), new, target, earlier=ran_earlier)


def edited_verdict(edit: Edit) -> TargetChanges:
    """What is said of an edit."""
    text = edit.base
    for old, new in edit.replaced:
        assert old in text, edit
        text = text.replace(old, new, 1)
    if edit.told is not None:
        return edit.told(plan(edit.base), plan(text, edit.folder))
    return verdict(edit.base, text, folder=edit.folder, ran=edit.ran)


def _of_files(target: str) -> Callable[[Plan, Plan], TargetChanges]:
    """What is said of a target when one file takes the place of the other."""

    def told(before: Plan, after: Plan) -> TargetChanges:
        return next(found for found in plan_against(after, before) if found.target == target)

    return told


def _without_a_record(before: Plan, after: Plan) -> TargetChanges:
    """What is said where Spark's own files are all that is left of what ran."""
    sources = {name: {"logOffset": 0} for name in before.streaming_sources("out")}
    checkpoint = SparkCheckpoint("/checkpoint", "id", (Offsets(0, "v2", sources=sources),))
    return compare_with_checkpoint(after, version_of(after, "out"), checkpoint)


def _other_code(ran: VersionRecord) -> VersionRecord:
    nodes = (replace(node, functions=dict.fromkeys(node.functions, "other")) for node in ran.nodes)
    return replace(ran, nodes=tuple(nodes))


def _other_gems(ran: VersionRecord) -> VersionRecord:
    return replace(ran, nodes=tuple(replace(node, distribution_version="0.0.1") for node in ran.nodes))


EDITS = [
    Edit("nothing", (), "same", ()),
    Edit("a filter before state", (("n > 0", "n > 1"),), "mixed", ("GB423",)),
    Edit("another way to write it", (("n > 0", "N  >  0"),), "continues", ("GB423",)),
    Edit("an aggregate of the same kind", (("max(n)", "min(n)"),), "mixed", ("GB423",)),
    Edit("an aggregate of another kind", (("max(n)", "avg(n)"),), "refused", ("GB422",)),
    Edit("an aggregate less", ((", most: max(n)", ""),), "refused", ("GB422",)),
    Edit(
        "aggregates of one type in another order: Spark tells them apart by it",
        (("total: min(n), most: max(n)", "most: max(n), total: min(n)"),),
        "mixed",
        ("GB423",),
        BASE.replace("sum(n)", "min(n)"),
    ),
    Edit(
        "columns right behind them in another order",
        (("[page, total, most]", "[page, most, total]"),),
        "mixed",
        ("GB423",),
        BASE.replace("sum(n)", "min(n)").replace(
            "gem: rename, input: counts, options: {columns: {page: path}}",
            "gem: select, input: counts, options: {columns: [page, total, most]}",
        ),
    ),
    Edit("a key of the same type", (("[page]", "[upper(page) as page]"),), "mixed", ("GB423",)),
    Edit("a key of another type", (("[page]", "[length(page) as page]"),), "refused", ("GB422",)),
    Edit("a key more", (("[page]", "[page, n]"),), "refused", ("GB422",)),
    Edit("another window", (("duration: 1 hour", "duration: 2 hours"),), "mixed", ("GB423",)),
    Edit("another delay", (("delay: 1 hour", "delay: 2 hours"),), "from_now_on", ("GB426",)),
    Edit("a name behind state", (("{page: path}", "{page: url}"),), "from_now_on", ("GB423",)),
    Edit("another folder to read", (("path: data", "path: data2"),), "refused", ("GB414",)),
    Edit("another folder to write", (("path: out", "path: out2"),), "mixed", ("GB431",)),
    Edit(
        "another format to write",
        (("format: json, path: out", "format: orc, path: out"),),
        "mixed",
        ("GB432",),
    ),
    Edit("a column that nobody reads", (("at timestamp", "at timestamp, x int"),), "continues", ("GB415",)),
    Edit(
        "columns of a source in another order",
        (("page string, n int", "n int, page string"),),
        "continues",
        ("GB415",),
    ),
    Edit("a column's type that is a sum", (("n int", "n double"),), "refused", ("GB422",)),
    Edit(
        "how much at a time",
        (("format: json, path: data", "max_files_per_trigger: 5, format: json, path: data"),),
        "continues",
        ("GB415",),
    ),
    Edit(
        "another id for a source",
        (("clicks: {gem: file,", "visits: {gem: file,"), ("input: clicks", "input: visits")),
        "again",
        ("GB412",),
    ),
    Edit(
        "another id for a source that says so",
        (("clicks: {gem: file,", "visits: {was: clicks, gem: file,"), ("input: clicks", "input: visits")),
        "continues",
        ("GB443",),
    ),
    Edit(
        "another gem for a target",
        (("gem: file, input: named, options: {format: json, path: out}", "gem: noop, input: named"),),
        "from_now_on",
        ("GB430",),
    ),
    Edit(
        "a folder of files in the place of another gem's target",
        (("gem: delta, input: chosen, options: {", "gem: file, input: chosen, options: {format: json, "),),
        "mixed",
        ("GB430",),
        COLUMNS,
    ),
    Edit(
        "a table of files in the place of another gem's target",
        (("gem: delta, input: chosen, options: {path: out}", _TABLE),),
        "refused",
        ("GB430",),
        COLUMNS,
    ),
    Edit(
        "another table of files",
        (("table: pages", "table: others"),),
        "refused",
        ("GB431",),
        COLUMNS.replace("gem: delta, input: chosen, options: {path: out}", _TABLE),
    ),
    Edit(
        "another trigger",
        (("input: named, options", "input: named, trigger: {processing_time: 1 minute}, options"),),
        "continues",
        ("GB434",),
    ),
    Edit(
        "a frozen setting",
        (("pipeline: shop", "pipeline: shop\nspark: {spark.sql.shuffle.partitions: 7}"),),
        "continues",
        ("GB440",),
    ),
    Edit(
        "another time zone",
        (("pipeline: shop", "pipeline: shop\nspark: {spark.sql.session.timeZone: Asia/Tokyo}"),),
        "mixed",
        ("GB448",),
    ),
    Edit(
        "another time zone, without state",
        (("pipeline: shop", "pipeline: shop\nspark: {spark.sql.session.timeZone: Asia/Tokyo}"),),
        "from_now_on",
        ("GB448",),
        BASE.replace("input: named", "input: some"),
    ),
    Edit(
        "a setting's default written out",
        (("pipeline: shop", 'pipeline: shop\nspark: {spark.sql.caseSensitive: "False"}'),),
        "same",
        (),
    ),
    Edit(
        "another source beside it",
        (
            ("input: clicks", "input: all"),
            (
                "transforms:\n",
                '  more: {gem: file, options: {format: json, path: more, schema: "page string, n int, at timestamp"}}\ntransforms:\n  all: {gem: union, inputs: [clicks, more]}\n',
            ),
        ),
        "skipped",
        ("GB410", "GB420"),
    ),
    Edit(
        "a filter behind state",
        (
            ("input: named,", "input: big,"),
            ("targets:\n", "  big: {gem: filter, input: named, options: {condition: total > 5}}\ntargets:\n"),
        ),
        "from_now_on",
        ("GB420",),
    ),
    Edit(
        "a filter behind state, over what is grouped by: Spark puts it before",
        (
            ("input: named,", "input: big,"),
            (
                "targets:\n",
                "  big: {gem: filter, input: named, options: {condition: path <> 'x'}}\ntargets:\n",
            ),
        ),
        "mixed",
        ("GB420",),
    ),
    Edit(
        "a filter less",
        (
            ("  some: {gem: filter, input: timely, options: {condition: n > 0}}\n", ""),
            ("input: some", "input: timely"),
        ),
        "mixed",
        ("GB421",),
    ),
    Edit(
        "a column more that nobody counts",
        (
            ("input: some\n", "input: wide\n"),
            (
                "  counts:",
                "  wide: {gem: with_columns, input: some, options: {columns: {x: n + 1}}}\n  counts:",
            ),
        ),
        "continues",
        ("GB420",),
    ),
    Edit(
        "duplicates dropped, which keeps state",
        (
            ("input: named,", "input: once,"),
            (
                "targets:\n",
                "  once: {gem: deduplicate, input: named, options: {columns: [path, window]}}\ntargets:\n",
            ),
        ),
        "refused",
        ("GB422",),
    ),
    Edit(
        "a transform under another id",
        (("  counts:", "  sums:"), ("input: counts", "input: sums")),
        "continues",
        ("GB443",),
    ),
    Edit("aggregates under another name", (("total: sum(n)", "sum: sum(n)"),), "from_now_on", ("GB423",)),
    Edit(
        "sessions in place of windows",
        (("window: {column: at, duration: 1 hour}", "session: {column: at, gap: 5 minutes}"),),
        "refused",
        ("GB422", "GB422"),
    ),
    Edit(
        "another column with event time",
        (
            ("at timestamp", "at timestamp, seen timestamp"),
            ("{column: at, delay", "{column: seen, delay"),
            ("{column: at, dur", "{column: seen, dur"),
        ),
        "mixed",
        ("GB415", "GB426", "GB423"),
    ),
    Edit(
        "another format of state",
        (
            (
                "pipeline: shop",
                "pipeline: shop\nspark: {spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider}",
            ),
        ),
        "continues",
        ("GB440",),
    ),
    Edit("another topic", (("subscribe: orders", "subscribe: sales"),), "refused", ("GB414",), ORDERS),
    Edit(
        "a topic more", (("subscribe: orders", "subscribe: 'orders,sales'"),), "continues", ("GB414",), ORDERS
    ),
    Edit(
        "another beginning",
        (("subscribe: orders", "subscribe: orders, starting_offsets: earliest"),),
        "continues",
        ("GB415",),
        ORDERS,
    ),
    Edit(
        "another gem for a source",
        (
            (
                'orders: {gem: kafka, options: {bootstrap_servers: "kafka:9092", subscribe: orders}}',
                "orders: {gem: rate}",
            ),
            ("timely.value as", "timely.value as"),
        ),
        "refused",
        ("GB413",),
        ORDERS,
    ),
    Edit(
        "a source read once in place of a stream",
        (
            ("goods: {gem: file,", "goods: {mode: batch, gem: file,"),
            ("  dated: {gem: watermark, input: goods, options: {column: seen, delay: 1 hour}}\n", ""),
            ("[timely, dated]", "{timely: timely, dated: goods}"),
        ),
        "refused",
        ("GB417", "GB422"),
        ORDERS,
    ),
    Edit("another kind of join", (("how: inner", "how: left"),), "refused", ("GB422",), ORDERS),
    Edit(
        "a longer span of time for a join",
        (("interval 1 hour\n", "interval 2 hours\n"),),
        "mixed",
        ("GB423",),
        ORDERS,
    ),
    Edit(
        "a shorter span of time for an inner join",
        (("interval 1 hour\n", "interval 1 minute\n"),),
        "from_now_on",
        ("GB423",),
        ORDERS,
    ),
    Edit(
        "the inputs of a join the other way round",
        (("[timely, dated]", "[dated, timely]"),),
        "refused",
        ("GB422",),
        ORDERS,
    ),
    Edit(
        "a pattern that has the topics",
        (("subscribe: orders", 'subscribe_pattern: "ord.*"'),),
        "continues",
        ("GB414",),
        ORDERS,
    ),
    Edit(
        "a pattern that has them not",
        (("subscribe: orders", 'subscribe_pattern: "clicks.*"'),),
        "refused",
        ("GB414",),
        ORDERS,
    ),
    Edit("another table to write", (("path: out", "path: out2"),), "from_now_on", ("GB431",), ORDERS),
    Edit(
        "another topic to write", (("topic: copies", "topic: others"),), "from_now_on", ("GB431",), PASSED_ON
    ),
    Edit(
        "continuous processing in place of micro-batches",
        (("output_mode: update,", "trigger: {continuous: 1 second},"),),
        "refused",
        ("GB433", "GB434"),
        PASSED_ON,
    ),
    Edit(
        "real-time processing in place of micro-batches",
        (("output_mode: update,", "output_mode: update, trigger: {real_time: 5 minutes},"),),
        "continues",
        ("GB434",),
        PASSED_ON,
    ),
    Edit(
        "real-time processing in place of micro-batches, of duplicates that are kept",
        (("output_mode: update,", "output_mode: update, trigger: {real_time: 5 minutes},"),),
        "continues",
        ("GB434",),
        PASSED_ON.replace("out: {gem: kafka, input: orders", "out: {gem: kafka, input: once")
        .replace(
            "targets:",
            "transforms:\n  once: {gem: deduplicate, input: orders, options: {columns: [key]}}\ntargets:",
        )
        .replace("shop\n", "shop\nspark: {spark.sql.streaming.realTimeMode.allowlistCheck: false}\n", 1),
    ),
    Edit(
        "a source more that begins at the newest",
        (
            ("sources:\n", "sources:\n" + PASSED_ON.splitlines()[3].replace("orders", "more") + "\n"),
            ("targets:\n", "transforms:\n  all: {gem: union, inputs: [orders, more]}\ntargets:\n"),
            ("input: orders", "input: all"),
        ),
        "skipped",
        ("GB410", "GB420"),
        PASSED_ON,
    ),
    Edit(
        "another id of a source that begins at the newest",
        (("  orders: {", "  copied: {"), ("input: orders", "input: copied")),
        "skipped",
        ("GB412",),
        PASSED_ON,
    ),
    Edit(
        "a source less, with what waits there",
        (
            ('  more: {gem: file, options: {format: json, path: more, schema: "page string, n int"}}\n', ""),
            ("  all: {gem: union, inputs: [clicks, more]}\n", ""),
            ("input: all", "input: clicks"),
        ),
        "skipped",
        ("GB411", "GB421"),
        TOTALS,
    ),
    Edit(
        "sources in another order", (("[clicks, more]", "[more, clicks]"),), "continues", ("GB425",), TOTALS
    ),
    Edit(
        "all results in place of new ones",
        (("output_mode: update", "output_mode: complete"),),
        "continues",
        ("GB433",),
        TOTALS,
    ),
    Edit(
        "an operator with state less",
        (
            ("  numbers: {gem: deduplicate, input: pages, options: {columns: [n]}}\n", ""),
            ("input: numbers", "input: pages"),
        ),
        "refused",
        ("GB422",),
        ONCE,
    ),
    Edit(
        "operators with state in another order",
        (
            ("input: clicks", "input: numbers"),
            ("input: pages", "input: clicks"),
            ("console, input: numbers", "console, input: pages"),
        ),
        "refused",
        ("GB425", "GB422"),
        ONCE,
    ),
    Edit(
        "another number of partitions", (("partitions: 2", "partitions: 4"),), "continues", ("GB423",), TICKS
    ),
    Edit("the code of a function", (), "mixed", ("GB424",), TICKS, ran=_other_code),
    Edit("another version of a gem", (), "continues", ("GB442",), TICKS, ran=_other_gems),
    Edit("a later Spark", (), "continues", ("GB441",), TICKS, ran=lambda ran: replace(ran, spark="4.1.1")),
    Edit(
        "a filter on one of two paths from a source",
        (
            ("second: clicks", "second: more"),
            (
                "transforms:\n",
                "transforms:\n  more: {gem: filter, input: clicks, options: {condition: n > 0}}\n",
            ),
        ),
        "from_now_on",
        ("GB420",),
        TWICE,
    ),
    Edit(
        "a source on one more path to the target",
        (("second: clicks", "second: clicks, third: clicks"),),
        "again",
        ("GB418", "GB425"),
        TWICE,
    ),
    Edit(
        "a source on a path less",
        ((", third: clicks", ""),),
        "skipped",
        ("GB418", "GB425"),
        TWICE.replace("second: clicks", "second: clicks, third: clicks"),
    ),
    Edit(
        "a column more in a Delta table",
        (("[page, n]", "[page, n, at]"),),
        "refused",
        ("GB423", "GB436"),
        COLUMNS,
    ),
    Edit(
        "a column more in a Delta table that takes new ones",
        (("[page, n]", "[page, n, at]"), ("path: out", "path: out, merge_schema: true")),
        "from_now_on",
        ("GB423", "GB432"),
        COLUMNS,
    ),
    Edit("a column less in a Delta table", (("[page, n]", "[page]"),), "from_now_on", ("GB423",), COLUMNS),
    Edit(
        "columns in another order in a folder of CSV",
        (("[page, n]", "[n, page]"),),
        "mixed",
        ("GB423", "GB437"),
        COLUMNS.replace(
            "gem: delta, input: chosen, options: {path",
            "gem: file, input: chosen, options: {format: csv, path",
        ),
    ),
    Edit(
        "another id for a target",
        (("  out: {", "  files: {"),),
        "again",
        ("GB435",),
        COLUMNS,
        told=_of_files("files"),
    ),
    Edit(
        "another id for a target that says so",
        (("  out: {", "  files: {was: out, "),),
        "continues",
        ("GB443",),
        COLUMNS,
        told=_of_files("files"),
    ),
    Edit(
        "a target more",
        (("  out: {", "  more: {gem: noop, input: chosen}\n  out: {"),),
        "new",
        ("GB444",),
        COLUMNS,
        told=_of_files("more"),
    ),
    Edit(
        "a target less",
        (("  more: {gem: noop, input: chosen}\n", ""),),
        "gone",
        ("GB445",),
        TWO,
        told=_of_files("more"),
    ),
    Edit(
        "any, where nothing tells what ran on the checkpoint",
        (("[page, n]", "[page]"),),
        "continues",
        ("GB446",),
        COLUMNS,
        told=_without_a_record,
    ),
    Edit(
        "two targets in a group from now on",
        (
            ("input: chosen, options", "input: chosen, group: both, options"),
            ("noop, input: chosen", "noop, input: chosen, group: both"),
        ),
        "again",
        ("GB447",),
        TWO,
        told=_of_files("out"),
    ),
    Edit(
        "a target that joins a group which has run",
        (("noop, input: chosen", "noop, input: chosen, group: both"),),
        "skipped",
        ("GB447",),
        TWO.replace("input: chosen, options", "input: chosen, group: both, options")
        + "  third: {gem: noop, input: chosen, group: both}\n",
        told=_of_files("more"),
    ),
    Edit("the project's folder has moved", (), "refused", ("GB416", "GB431"), ORDERS, "/elsewhere"),
]
