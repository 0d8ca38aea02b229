"""The built-in transforms, in the suite that a stranger's transform has to pass."""

# ruff: noqa: RUF012 (`GemConformance` declares them class variables)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_avro.from_avro import FromAvro
from gem_avro.to_avro import ToAvro
from gem_bundle.testing.conformance import Given, TransformConformance
from gem_bundle.testing.conformance.inputs import EVENTS
from gem_columns.bulk_columns import BulkColumns
from gem_columns.clean import Clean
from gem_columns.drop import Drop
from gem_columns.dynamic_select import DynamicSelect
from gem_columns.flatten import Flatten
from gem_columns.rename import Rename
from gem_columns.select import Select
from gem_columns.unpivot import Unpivot
from gem_columns.window_function import WindowFunction
from gem_columns.with_columns import WithColumns
from gem_combine.compare import Compare
from gem_combine.fuzzy_match import FuzzyMatch
from gem_combine.join import Join
from gem_combine.lookup import Lookup
from gem_combine.set_operation import SetOperation
from gem_combine.union import Union
from gem_event_time.aggregate import Aggregate
from gem_event_time.deduplicate import Deduplicate
from gem_event_time.watermark import Watermark
from gem_filter.expect import Expect
from gem_filter.filter import Filter
from gem_filter.limit import Limit
from gem_filter.route import Route
from gem_filter.sample import Sample
from gem_json.from_debezium import FromDebezium
from gem_json.from_json import FromJson
from gem_json.to_json import ToJson
from gem_order.repartition import Repartition
from gem_order.sort import Sort
from gem_python.stateful import Stateful
from gem_python.transform import PythonTransform
from gem_rest.rest_enrich import RestEnrich
from gem_sql.query import Sql
from tests.conftest import has_processors_of_rows
from tests.kit.conformance.tried import options_tried, with_reasons
from tests.rest_service import RestService

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gem_bundle import Transform

PAGES = Given(
    "page string, team string",
    [{"page": "home", "team": "web"}, {"page": "cart", "team": "shop"}],
)
TEAMS = replace(PAGES, static=True)
CLICKS = Given(
    "id bigint, page string, seen timestamp",
    [{"id": 1, "page": "home", "seen": "2026-01-05T09:01:00"}],
    ("seen", "5 minutes"),
)
VIEWS = Given(
    "id bigint, shown timestamp",
    [{"id": 1, "shown": "2026-01-05T09:00:00"}, {"id": 2, "shown": "2026-01-05T09:00:00"}],
    ("shown", "5 minutes"),
)
CAPTURED = [
    {"value": value, "at": "2026-01-05T09:00:00"}
    for value in (
        '{"op": "u", "ts_ms": 5, "before": null, "after": {"id": 1}, "source": {"lsn": 3}}',
        '{"payload": {"op": "d", "ts_ms": 6, "before": {"id": 1}, "source": {"lsn": 4}}}',
        '{"op": "t", "ts_ms": 7, "source": {"lsn": 5}}',
    )
]
TEXTS = Given(
    "kind string, value string, at timestamp",
    [
        {"kind": "click", "value": '{"a": 1, "b": ["x"]}', "at": "2026-01-05T09:00:00"},
        {"kind": "text", "value": "no json", "at": "2026-01-05T09:00:00"},
    ],
    ("at", "1 minute"),
)

BYTES = Given(
    "id bigint, value binary, at timestamp",
    [
        {"id": 1, "value": b"\x02a", "at": "2026-01-05T09:00:00"},
        {"id": 2, "value": b"\x04a", "at": "2026-01-05T09:00:00"},
    ],
    ("at", "1 minute"),
)

CASTS = Given(
    "id bigint, ms string, at timestamp",
    [
        {"id": 1, "ms": "12", "at": "2026-01-05T09:00:00"},
        {"id": 2, "ms": "soon", "at": "2026-01-05T09:00:00"},
        {"id": 3, "ms": None, "at": "2026-01-05T09:00:00"},
    ],
    ("at", "1 minute"),
)

NO_STREAM = "the suite asks with streams, which it refuses on purpose"
SEEN = Given(EVENTS.schema, EVENTS.rows[:1])
ORDERS = Given(
    "id bigint, order struct<user: string, items: array<struct<sku: string, n: int>>>, at timestamp",
    [
        {
            "id": 1,
            "order": {"user": "ann", "items": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]},
            "at": "2026-01-05T09:00:00",
        },
        {"id": 2, "order": {"user": "bob", "items": []}, "at": "2026-01-05T09:00:00"},
        {"id": 3, "order": None, "at": "2026-01-05T09:00:00"},
    ],
    ("at", "1 minute"),
)


class TestSelect(TransformConformance):
    gem = Select
    options = {"columns": {"number": "id + 1", "at": "at", "up": "upper(page)"}}
    expected = [
        {"number": 2, "up": "HOME"},
        {"number": 3, "up": "CART"},
        {"number": 4, "up": "HOME"},
        {"number": 5, "up": None},
    ]
    edits = [("columns", {"number": "id + 2", "at": "at", "up": "upper(page)"})]


class TestWithColumns(TransformConformance):
    gem = WithColumns
    options = {"columns": {"cents": "cast(amount * 100 as int)", "id": "-id"}}
    expected = [
        {"id": -1, "page": "home", "cents": 150},
        {"id": -2, "page": "cart", "cents": -200},
        {"id": -3, "page": "home", "cents": None},
        {"id": -4, "page": None, "cents": 25},
    ]
    edits = [("columns", {"cents": "cast(amount * 10 as int)", "id": "-id"})]


class TestSelectThatRejects(TransformConformance):
    gem = Select
    inputs = {"events": CASTS}
    options = {"columns": {"id": "id", "ms": "cast(ms as int)"}, "rejects": True}
    expected = [{"id": 1, "ms": 12}, {"id": 3, "ms": None}]


class TestWithColumnsThatRejects(TransformConformance):
    gem = WithColumns
    inputs = {"events": CASTS}
    options = {"columns": {"ms": "cast(ms as int)", "small": "cast(id * 100 as tinyint)"}, "rejects": True}
    expected = [{"id": 1, "ms": 12, "small": 100}]


class TestRename(TransformConformance):
    gem = Rename
    options = {"columns": {"at": "ts", "id": "key"}}
    expected = [{"key": 1, "amount": 1.5}, {"key": 2, "amount": -2.0}, {"key": 3, "amount": None}, {"key": 4, "amount": 0.25}]  # fmt: skip
    edits = [("columns", {"at": "ts", "id": "number"})]


class TestDrop(TransformConformance):
    gem = Drop
    options = {"columns": ["amount", "page"]}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [("columns", ["amount"])]


class TestClean(TransformConformance):
    gem = Clean
    options = {"columns": ["page", "amount"], "case": "upper", "drop_rows": "any", "nulls": {"number": 0}}
    expected = [{"id": 1, "page": "HOME", "amount": 1.5}, {"id": 2, "page": "CART", "amount": -2.0}]
    edits = [("columns", ["page"]), ("nulls", {"text": "none"}), ("remove", ["digits"])]


class TestBulkColumns(TransformConformance):
    gem = BulkColumns
    options = {"types": ["number"], "expression": "{column} * 2", "name": "{name}_2", "keep": True}
    expected = [
        {"id": 1, "id_2": 2, "amount_2": 3.0},
        {"id": 2, "id_2": 4, "amount_2": -4.0},
        {"id": 3, "id_2": 6, "amount_2": None},
        {"id": 4, "id_2": 8, "amount_2": 0.5},
    ]
    edits = [
        ("expression", "{column} * 3"),
        ("types", ["double"]),
        ("name", "twice_{name}"),
        ("columns", ["id"]),
        ("matching", "^a"),
        ("except_types", ["double"]),
        ("except_columns", ["id"]),
        ("except_matching", "^a"),
    ]


class TestDynamicSelect(TransformConformance):
    gem = DynamicSelect
    options = {"types": ["timestamp", "number"], "except_columns": ["amount"]}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [
        ("types", ["timestamp", "number", "string"]),
        ("columns", ["page"]),
        ("matching", "^p"),
        ("except_types", ["double"]),
        ("except_columns", ["id"]),
        ("except_matching", "^i"),
    ]


class TestUnpivot(TransformConformance):
    gem = Unpivot
    options = {"ids": ["page", "at"], "values": ["amount", "id"], "include_nulls": False}
    expected = [
        {"page": "home", "variable": "amount", "value": 1.5},
        {"page": "home", "variable": "id", "value": 1.0},
        {"page": "cart", "variable": "amount", "value": -2.0},
        {"page": "cart", "variable": "id", "value": 2.0},
        {"page": "home", "variable": "id", "value": 3.0},
        {"page": None, "variable": "amount", "value": 0.25},
        {"page": None, "variable": "id", "value": 4.0},
    ]
    edits = [
        ("ids", ["page"]),
        ("values", ["id"]),
        ("variable_column_name", "what"),
        ("value_column_name", "worth"),
    ]


class TestFlatten(TransformConformance):
    gem = Flatten
    inputs = {"orders": ORDERS}
    options = {"explode": ["order.items"]}
    expected = [
        {"id": 1, "order_user": "ann", "order_items_sku": "a", "order_items_n": 1},
        {"id": 1, "order_user": "ann", "order_items_sku": "b", "order_items_n": 2},
        {"id": 2, "order_user": "bob", "order_items_sku": None, "order_items_n": None},
        {"id": 3, "order_user": None, "order_items_sku": None, "order_items_n": None},
    ]
    edits = [("explode", []), ("columns", ["order"]), ("separator", "__"), ("depth", 1)]


class TestWindowFunction(TransformConformance):
    gem = WindowFunction
    options = {
        "columns": {"place": "row_number()", "total": "sum(amount)"},
        "partition_by": ["page"],
        "order_by": ["at desc"],
        "frame": {"start": "1 preceding"},
    }
    expected = [
        {"id": 1, "place": 2, "total": 1.5},
        {"id": 2, "place": 1, "total": -2.0},
        {"id": 3, "place": 1, "total": None},
        {"id": 4, "place": 1, "total": 0.25},
    ]


class TestLookup(TransformConformance):
    gem = Lookup
    waive = {"test_findings_are_well_formed": NO_STREAM}
    options = {"on": ["page"], "columns": {"owner": "team"}}
    inputs = {"events": EVENTS, "pages": PAGES}
    expected = [
        {"id": 1, "page": "home", "owner": "web"},
        {"id": 2, "page": "cart", "owner": "shop"},
        {"id": 3, "page": "home", "owner": "web"},
        {"id": 4, "page": None, "owner": None},
    ]
    edits = [("columns", {"who": "team"}), ("columns", {"owner": "upper(team)"})]


class TestCompare(TransformConformance):
    gem = Compare
    waive = {"test_findings_are_well_formed": NO_STREAM}
    options = {"on": ["id"]}
    inputs = {"events": EVENTS, "seen": SEEN}
    expected = [
        {"id": 1, "status": "matched", "differing": []},
        {"id": 2, "status": "only_left", "differing": None},
        {"id": 3, "status": "only_left", "differing": None},
        {"id": 4, "status": "only_left", "differing": None},
    ]
    edits = [("columns", ["amount"]), ("tolerance", {"amount": 1}), ("on", ["id", "page"])]


class TestFuzzyMatch(TransformConformance):
    gem = FuzzyMatch
    options = {"id": "id", "fields": {"page": {}}, "block_by": ["amount > 0"], "threshold": 0.9}
    inputs = {"events": EVENTS, "seen": SEEN}
    expected = [{"left_id": 1, "right_id": 1, "score": 1.0}]
    edits = [
        ("threshold", 0.1),
        ("block_by", ["id > 0"]),
        ("fields", {"page": {}, "amount": {"measure": "equal"}}),
    ]


class TestJoinWithATable(TransformConformance):
    gem = Join
    options = {"how": "left", "on": ["page"]}
    inputs = {"events": TransformConformance.inputs["events"], "pages": PAGES}
    expected = [{"id": 1, "team": "web"}, {"id": 2, "team": "shop"}, {"id": 3, "team": "web"}, {"id": 4, "team": None}]  # fmt: skip
    edits = [("on", ["team"])]


class TestJoinThatRejects(TransformConformance):
    gem = Join
    options = {"how": "inner", "on": ["page"], "unmatched": "reject"}
    inputs = {"events": EVENTS, "pages": TEAMS}
    expected = [{"id": 1, "team": "web"}, {"id": 2, "team": "shop"}, {"id": 3, "team": "web"}]


class TestJoinOfStreams(TransformConformance):
    gem = Join
    options = {"how": "left", "condition": "views.id = clicks.id and seen <= shown + interval 5 minutes"}
    inputs = {"views": VIEWS, "clicks": CLICKS}
    edits = [
        ("condition", "views.id = clicks.id and seen <= shown + interval 2 minutes"),
        ("condition", "views.id = clicks.id + 1 and seen <= shown + interval 5 minutes"),
    ]


class TestUnion(TransformConformance):
    gem = Union
    inputs = {"first": VIEWS, "second": CLICKS}
    options = {"allow_missing_columns": True}
    expected = [{"id": 1, "page": None}, {"id": 2, "page": None}, {"id": 1, "page": "home"}]
    edits = [("by_name", False)]


class TestIntersect(TransformConformance):
    gem = SetOperation
    inputs = {"pages": PAGES, "others": Given(PAGES.schema, [*PAGES.rows[:1], *PAGES.rows[:1]])}
    options = {"operation": "intersect"}
    expected = [{"page": "home", "team": "web"}]


class TestExcept(TransformConformance):
    gem = SetOperation
    inputs = {"events": EVENTS, "seen": SEEN}
    options = {"operation": "except"}
    expected = [{"id": 2}, {"id": 3}, {"id": 4}]
    waive = {"test_tells_its_operators": "Spark plans no `except` of two streams, and says so otherwise"}


class TestExceptAll(TransformConformance):
    gem = SetOperation
    waive = {"test_findings_are_well_formed": NO_STREAM}
    inputs = {"events": EVENTS, "seen": SEEN}
    options = {"operation": "except", "all": True}
    expected = [{"id": 2}, {"id": 3}, {"id": 4}]


class TestAggregate(TransformConformance):
    gem = Aggregate
    options = {
        "window": {"column": "at", "duration": "1 hour"},
        "group_by": ["page"],
        "aggregates": {"clicks": "count(*)", "amount": "sum(amount)"},
    }
    expected = [
        {"page": "home", "clicks": 2, "amount": 1.5},
        {"page": "cart", "clicks": 1, "amount": -2.0},
        {"page": None, "clicks": 1, "amount": 0.25},
    ]
    edits = [
        ("window", {"column": "at", "duration": "2 hours"}),
        ("window", {"column": "at", "duration": "1 hour", "slide": "30 minutes"}),
        ("group_by", ["id"]),
        ("group_by", ["upper(page) as page"]),
        ("aggregates", {"clicks": "count(*)", "amount": "max(amount)"}),
    ]


class TestAggregateWithoutTime(TransformConformance):
    gem = Aggregate
    options = {"group_by": ["page"], "aggregates": {"clicks": "count(*)"}, "having": "clicks > 1"}
    expected = [{"page": "home", "clicks": 2}]
    edits = [
        ("aggregates", {"clicks": "count(id)"}),
        ("aggregates", {"n": "count(*)", "clicks": "count(*)"}),
        ("having", "clicks > 2"),
    ]


class TestAggregateOfSessions(TransformConformance):
    gem = Aggregate
    options = {"session": {"column": "at", "gap": "10 minutes"}, "group_by": ["page"], "aggregates": {"n": "count(*)"}}  # fmt: skip
    expected = [{"page": "home", "n": 2}, {"page": "cart", "n": 1}, {"page": None, "n": 1}]
    edits = [("session", {"column": "at", "gap": "5 minutes"}), ("group_by", ["id"])]


class TestAggregateThatPivots(TransformConformance):
    gem = Aggregate
    options = {
        "window": {"column": "at", "duration": "1 hour"},
        "pivot": {"column": "page", "values": ["home", "cart"]},
        "aggregates": {"clicks": "count(*)", "amount": "sum(amount)"},
    }
    expected = [
        {"home_clicks": 2, "home_amount": 1.5, "cart_clicks": 1, "cart_amount": -2.0},
        {"home_clicks": None, "home_amount": None, "cart_clicks": None, "cart_amount": None},
    ]
    edits = [
        ("pivot", {"column": "page", "values": ["cart", "home"]}),
        ("pivot", {"column": "page", "values": ["home"]}),
    ]


class TestDeduplicate(TransformConformance):
    gem = Deduplicate
    options = {"columns": ["id"], "within_watermark": True}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]


class TestDeduplicateForGood(TransformConformance):
    gem = Deduplicate
    options = {"columns": ["page"]}
    expected = [{"page": "home"}, {"page": "cart"}, {"page": None}]
    edits = [("columns", ["id"])]


class TestWatermark(TransformConformance):
    gem = Watermark
    options = {"column": "at", "delay": "1 hour"}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [("delay", "2 hours"), ("column", "cast(at as timestamp)")]


class TestFilter(TransformConformance):
    gem = Filter
    options = {"condition": "amount > 0"}
    expected = [{"id": 1, "page": "home"}, {"id": 4, "page": None}]
    edits = [("condition", "amount > 1"), ("condition", "AMOUNT  > 0")]


class TestExpect(TransformConformance):
    gem = Expect
    options = {
        "rules": {"paid": "amount > 0", "known": {"column": "page", "in": ["home", "cart"], "null": "pass"}}
    }
    expected = [{"id": 1, "page": "home"}, {"id": 4, "page": None}]
    edits = [("rules", {"paid": "amount > 1"}), ("max_rejected", 3)]


class TestExpectThatDrops(TransformConformance):
    gem = Expect
    options = {
        "rules": {"paid": "amount > 0", "named": {"column": "page", "not_null": True, "action": "drop"}}
    }
    expected = [{"id": 1, "page": "home"}]
    passed_over = "amount > 0 and page is null"


class TestExpectOfUniqueRows(TransformConformance):
    gem = Expect
    options = {"rules": {"alone": {"column": "page", "unique": True, "null": "pass"}, "paid": "amount > -9"}}
    expected = [{"id": 1, "page": "home"}, {"id": 2, "page": "cart"}, {"id": 4, "page": None}]


class TestExpectOfRememberedRows(TransformConformance):
    gem = Expect
    options = {"rules": {"alone": {"column": "page", "unique": "within_watermark"}, "paid": "amount > -9"}}
    expected = [{"id": 1, "page": "home"}, {"id": 2, "page": "cart"}]
    edits = [("rules", {"alone": {"column": "id", "unique": "within_watermark"}})]


class TestExpectOfKnownValues(TransformConformance):
    gem = Expect
    waive = {"test_tells_its_operators": "values are looked up in a table, and no stream restricts that"}
    inputs = {"events": EVENTS, "pages": TEAMS}
    options = {"rules": {"known": {"column": "page", "foreign_key": {"input": "pages", "column": "page"}}}}
    expected = [{"id": 1, "page": "home"}, {"id": 2, "page": "cart"}, {"id": 3, "page": "home"}]


class TestLimit(TransformConformance):
    gem = Limit
    options = {"rows": 9}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [("rows", 3)]


class TestSample(TransformConformance):
    gem = Sample
    options = {"fraction": 0.5, "by": ["page"], "seed": 2}
    expected = [{"id": 1, "page": "home"}, {"id": 2, "page": "cart"}, {"id": 3, "page": "home"}]
    edits = [("seed", 3), ("fraction", 0.1), ("by", ["id"]), ("with_replacement", True)]


class TestRoute(TransformConformance):
    gem = Route
    options = {"conditions": {"paid": "amount > 0", "home": "page = 'home'"}, "rest": "other"}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [("conditions", {"paid": "amount > 1", "home": "page = 'home'"})]


class TestFromJson(TransformConformance):
    gem = FromJson
    inputs = {"texts": TEXTS}
    options = {"column": "value", "schema": "a int, b array<string>", "keep": True}
    expected = [{"kind": "click", "a": 1, "b": ["x"]}, {"kind": "text", "a": None, "b": None}]
    edits = [
        ("schema", "a int, b array<string>, c string"),
        ("schema", "a bigint"),
        ("column", "kind"),
        ("column_name_of_corrupt_record", "broken"),
        ("date_format", "dd.MM.yyyy"),
        ("timestamp_format", "dd.MM.yyyy"),
        ("timestamp_ntz_format", "dd.MM.yyyy"),
        ("time_zone", "Europe/Berlin"),
        ("locale", "de-DE"),
        ("enable_date_time_parsing_fallback", True),
        ("spark_options", {"allowComments": "true"}),
    ]


class TestFromJsonThatRejects(TransformConformance):
    gem = FromJson
    inputs = {"texts": TEXTS}
    options = {"column": "value", "schema": "a int not null, b array<string>", "keep": True, "rejects": True}
    expected = [{"kind": "click", "a": 1, "b": ["x"]}]


class TestFromDebezium(TransformConformance):
    gem = FromDebezium
    inputs = {"changes": Given("value string, at timestamp", CAPTURED[:2], ("at", "1 minute"))}
    options = {"schema": "id int", "source": "lsn bigint", "keep": True}
    expected = [
        {"id": 1, "op": "u", "ts_ms": 5, "lsn": 3},
        {"id": 1, "op": "d", "ts_ms": 6, "lsn": 4},
    ]
    edits = [("schema", "id bigint"), ("source", "lsn int"), ("column", "at")]


class TestFromDebeziumThatRejects(TestFromDebezium):
    inputs = {"changes": Given("value string, at timestamp", CAPTURED, ("at", "1 minute"))}
    options = {"schema": "id int", "source": "lsn bigint", "keep": True, "rejects": True}
    passed_over = "value is null or value = ''"


class TestToJson(TransformConformance):
    gem = ToJson
    options = {"columns": ["id", "page"], "column": "text", "keep": True}
    expected = [
        {"id": 1, "text": '{"id":1,"page":"home"}'},
        {"id": 2, "text": '{"id":2,"page":"cart"}'},
        {"id": 3, "text": '{"id":3,"page":"home"}'},
        {"id": 4, "text": '{"id":4}'},
    ]
    edits = [
        ("columns", ["id"]),
        ("column", "json"),
        ("ignore_null_fields", False),
        ("date_format", "dd.MM.yyyy"),
        ("timestamp_format", "dd.MM.yyyy"),
        ("timestamp_ntz_format", "dd.MM.yyyy"),
        ("time_zone", "Europe/Berlin"),
        ("locale", "de-DE"),
        ("spark_options", {"pretty": "true"}),
    ]


class TestSort(TransformConformance):
    gem = Sort
    options = {"by": ["amount desc nulls last"]}
    expected = [{"id": 1}, {"id": 4}, {"id": 2}, {"id": 3}]


class TestRepartition(TransformConformance):
    gem = Repartition
    options = {"partitions": 2, "columns": ["page"]}
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]
    edits = [("partitions", 3), ("columns", ["id"])]


class TestSql(TransformConformance):
    gem = Sql
    options = {
        "query": "select w.start as start, page, n from "
        "(select window(at, '1 hour') as w, page, count(*) as n from events group by 1, 2) where n > 1"
    }
    expected = [{"page": "home", "n": 2}]
    edits = [
        (
            "query",
            "select w.start as start, page, n from "
            "(select window(at, '1 hour') as w, page, count(*) as n from events group by 1, 2) where n > 0",
        ),
        (
            "query",
            "select w.start as start, page, n from "
            "(select window(at, '2 hours') as w, page, count(*) as n from events group by 1, 2) where n > 1",
        ),
    ]


class TestSqlJoin(TransformConformance):
    gem = Sql
    inputs = {"events": TransformConformance.inputs["events"], "pages": PAGES}
    options = {"query": "select e.*, team from events e join pages using (page)"}
    expected = [{"id": 1, "team": "web"}, {"id": 2, "team": "shop"}, {"id": 3, "team": "web"}]


JOBS = """
def double(df, column):
    return df.selectExpr("id", f"{column} * 2 as doubled")

def triple(df, column):
    return df.selectExpr("id", f"{column} * 3 as doubled")

def parted(df):
    return {"good": df.filter("amount > 0"), "bad": df.filter("not amount > 0")}
"""
OPEN = "what a function returns is known to nobody before it is called"


@pytest.fixture(scope="module", autouse=True)
def jobs(user_modules: Path) -> None:
    (user_modules / "conformance_jobs.py").write_text(JOBS, encoding="utf-8")


class TestPython(TransformConformance):
    gem = PythonTransform
    options = {"function": "conformance_jobs:double", "arguments": {"column": "amount"}}
    expected = [{"id": 1, "doubled": 3.0}, {"id": 2, "doubled": -4.0}, {"id": 3, "doubled": None}, {"id": 4, "doubled": 0.5}]  # fmt: skip
    waive = {"test_infers_the_columns": OPEN}
    edits = [("arguments", {"column": "id"}), ("function", "conformance_jobs:triple")]


class TestPythonWithOutputs(TransformConformance):
    gem = PythonTransform
    options = {"function": "conformance_jobs:parted", "outputs": ["good", "bad"]}
    expected = [{"id": 1}, {"id": 2}, {"id": 4}]


CLICK = {"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]}


REGISTRY = {"registry": "http://127.0.0.1:1", "topic": "clicks"}
LOGINS = [
    {**REGISTRY, "registry_user": "ann", "registry_password": "secret"},
    {**REGISTRY, "registry_token": "secret"},
]


class TestToAvro(TransformConformance):
    gem = ToAvro
    options = {"columns": {"page": "coalesce(page, '')"}, "schema": CLICK, "schema_id": 7, "keep": True}
    edits = [("columns", {"page": "coalesce(upper(page), '')"}), ("column", "message")]
    secret_samples = [{"schema": CLICK, **login} for login in LOGINS]
    expected = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]


class TestFromAvro(TransformConformance):
    gem = FromAvro
    inputs = {"messages": BYTES}
    options = {"column": "value", "schema": CLICK, "keep": True, "rejects": True}
    secret_samples = [
        {"column": "value", **{k: v for k, v in login.items() if k != "topic"}, "schema": CLICK}
        for login in LOGINS
    ]
    expected = [{"id": 1, "page": "a"}]


class TestRestEnrich(TransformConformance):
    gem = RestEnrich
    options = {"url": "https://api.example.com/users/{id}", "schema": "name string, score double"}
    path = "/users/{id}"
    secret_samples = [
        {**options, "token": "…"},
        {**options, "api_key": "…"},
        {**options, "user": "ada", "password": "…"},
    ]
    expected = [{"id": number, "answer": {"name": f"user {number}", "score": 1.5}} for number in (1, 2, 3, 4)]
    edits = [
        ("url", "https://api.example.com/{id}"),
        ("column", "user"),
        ("schema", "name string"),
    ]

    def provide(self) -> Mapping[str, Any]:
        self.service = RestService()
        return {**self.sample(), "url": self.service.url + self.path}

    def clean_up(self) -> None:
        if hasattr(self, "service"):
            self.service.close()


class TestRestEnrichThatRejects(TestRestEnrich):
    options = {**TestRestEnrich.options, "rejects": True, "url": "https://api.example.com/{page}"}
    path = "/404/{page}"
    expected = []


STATEFUL = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Count(StatefulProcessor):
    def init(self, handle):
        self.count = handle.getValueState("count", "n bigint")

    def handleInputRows(self, key, rows, timerValues):
        n = (self.count.get() or (0,))[0] + sum(1 for _ in rows)
        self.count.update((n,))
        yield Row(page=key[0], n=n)

    def close(self):
        pass


class CountOfFrames(Count):
    def handleInputRows(self, key, rows, timerValues):
        import pandas

        n = (self.count.get() or (0,))[0] + sum(len(frame) for frame in rows)
        self.count.update((n,))
        yield pandas.DataFrame({"page": [key[0]], "n": [n]})
"""
# Spark 4.0 has processors of data frames only.
PROCESSOR = (
    {"processor": "conformance_processors:Count"}
    if has_processors_of_rows()
    else {"processor": "conformance_processors:CountOfFrames", "form": "pandas"}
)


@pytest.fixture(scope="module", autouse=True)
def processors(user_modules: Path) -> None:
    (user_modules / "conformance_processors.py").write_text(STATEFUL, encoding="utf-8")


class TestStateful(TransformConformance):
    gem = Stateful
    options = {
        **PROCESSOR,
        "group_by": ["page"],
        "schema": "page string, n bigint",
    }
    expected = [{"page": "home", "n": 2}, {"page": "cart", "n": 1}, {"page": None, "n": 1}]
    untried = [("time", "processing", "its micro-batches follow each other without an end")]

    @pytest.fixture(autouse=True)
    def state_store(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """The store that the gem asks a session for, which the suite's own session doesn't have."""
        if request.node.get_closest_marker("spark") is None:
            yield
            return
        spark = request.getfixturevalue("spark")
        for key, value in self.live().session_settings().items():
            spark.conf.set(key, value)
        yield
        for key in self.live().session_settings():
            spark.conf.unset(key)


_REGISTRY = (
    *("registry", "registry_ca_file", "registry_password", "registry_timeout", "registry_token"),
    *("registry_user", "schema_file", "schema_id", "subject", "subject_strategy", "topic"),
)
_WRITTEN = "a message says by which schema it is written, and the suite's are all of one"
UNTRIED: dict[type[Transform[Any]], dict[str, tuple[str, ...]]] = {
    Sort: {"a stream is sorted in complete mode, which the suite doesn't try": ("by",)},
    WindowFunction: {"no stream takes it": ("columns", "frame", "order_by", "partition_by")},
    Lookup: {"an option of another shape needs another beside it": ("on", "prefer", "range")},
    FuzzyMatch: {"another type is told by the shape of the state": ("id",)},
    Route: {"another name for an output is another output": ("rest",)},
    Sample: {"a stream is sampled without replacement": ("with_replacement",)},
    Union: {"columns of other types can't be united by position": ("by_name",)},
    PythonTransform: {"another name for an output is another output": ("outputs",)},
    Stateful: {
        "what is kept is the processor's own, and so is what another one makes of it": (
            *("arguments", "event_time", "group_by", "initial_state", "processor", "schema"),
        )
    },
    FromAvro: {
        "the suite has no registry": _REGISTRY,
        _WRITTEN: (
            *("column", "mode", "part", "record", "schema", "writer_schema"),
            "writer_schema_file",
        ),
    },
    ToAvro: {"the suite has no registry": (*_REGISTRY, "register"), _WRITTEN: ("part", "schema")},
    RestEnrich: {
        "how the service is asked, and not for what": (
            *("api_key", "api_key_header", "backoff", "body", "cache", "concurrency", "headers"),
            *("longest_wait", "password", "per_second", "retries", "timeout", "token", "user"),
        ),
    },
}


def test_what_a_gem_says_of_its_options_is_tried() -> None:
    assert options_tried(globals(), TransformConformance).left == with_reasons(UNTRIED)
