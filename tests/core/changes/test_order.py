"""The order in which Spark keeps things: of one type, it tells them apart by nothing else."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

SHOP = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, m int, page string, user string, at timestamp"}}
  b: {gem: file, options: {format: json, path: b, schema: "name string, k int, l int, seen timestamp"}}
transforms:
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  dated: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
STEPS
targets:
  out: {gem: console, input: last}
"""
HOURS = (
    "hours: {gem: aggregate, input: timely, options: {window: {column: at, duration: 1 hour}, "
    "group_by: [page], aggregates: {lo: min(n), hi: max(n)}}}"
)
OTHERS = "others: {gem: select, input: dated, options: {columns: [name as page, k as lo, l as hi]}}"
JOIN = (
    "last: {gem: join, inputs: {l: some, r: dated}, options: {condition: "
    "l.page = r.name and l.at between r.seen - interval 1 hour and r.seen + interval 1 hour}}"
)


def select(columns: str, source: str = "hours", name: str = "last") -> str:
    return f"{name}: {{gem: select, input: {source}, options: {{columns: [{columns}]}}}}"


def filtered(condition: str, source: str = "hours", name: str = "some") -> str:
    return f"{name}: {{gem: filter, input: {source}, options: {{condition: {condition}}}}}"


def edited(old: list[str], new: list[str], shop: str = SHOP) -> str:
    before, after = (shop.replace("STEPS", "\n".join(f"  {step}" for step in steps)) for steps in (old, new))
    return verdict(before, after).verdict


def query(text: str) -> str:
    return f"last: {{gem: sql, input: timely, options: {{query: '{text}'}}}}"


def test_aggregates_that_change_places() -> None:
    other = HOURS.replace("hours", "last")
    assert edited([other], [other.replace("lo: min(n), hi: max(n)", "hi: max(n), lo: min(n)")]) == "mixed"
    asked = other.replace("hi: max(n)}", "hi: max(n)}, having: hi > 1")
    assert edited([asked], [asked.replace("lo: min(n), hi: max(n)", "hi: max(n), lo: min(n)")]) == "mixed"
    counted = other.replace("max(n)", "count(n)")
    swapped = counted.replace("lo: min(n), hi: count(n)", "hi: count(n), lo: min(n)")
    assert edited([counted], [swapped]) == "refused"


@pytest.mark.parametrize(
    ("between", "old", "new", "expected"),
    [
        ([], "page, lo, hi", "page, hi, lo", "mixed"),
        ([], "page, lo, hi", "hi as lo, lo as hi, page", "mixed"),
        ([], "page, window.start as a, window.end as b, lo, hi", "page, window.start as a, window.end as b, hi, lo", "mixed"),
        ([], "page, hi - lo as d", "page, 0 - lo + hi as d", "mixed"),
        ([], "page, 'struct(lo, hi) as s'", "page, 'struct(hi, lo) as s'", "mixed"),
        # What is read twice Spark computes once, and the columns behind it.
        ([], "page, lo, hi, hi - lo as d", "page, hi, lo, hi - lo as d", "continues"),
        ([select("upper(page) as page, lo, hi", name="some")], "page, page as p, lo, hi", "page, page as p, hi, lo", "continues"),
        # A condition on results stands between; one on what is grouped by goes before.
        ([filtered("hi > 1")], "page, lo, hi", "page, hi, lo", "continues"),
        ([filtered("page is not null")], "page, lo, hi", "page, hi, lo", "mixed"),
        (["some: {gem: limit, input: hours, options: {rows: 9}}"], "page, lo, hi", "page, hi, lo", "mixed"),
        (["some: {gem: deduplicate, input: hours, options: {columns: [page, window]}}"], "page, lo, hi", "page, hi, lo", "continues"),
        # Columns go through a union, whose first input has their order.
        ([OTHERS, select("page, lo, hi", name="own"), "some: {gem: union, inputs: [others, own]}"], "page, lo, hi", "page, hi, lo", "mixed"),
    ],
)  # fmt: skip
def test_columns_behind_aggregates(between: list[str], old: str, new: str, expected: str) -> None:
    source = "some" if between else "hours"
    steps = [HOURS, *between]
    assert edited([*steps, select(old, source)], [*steps, select(new, source)]) == expected


def test_only_the_last_order_counts() -> None:
    def steps(first: str) -> list[str]:
        return [HOURS, select(first, name="some"), select("page, lo, hi", "some")]

    assert edited(steps("page, lo, hi"), steps("page, hi, lo")) == "continues"


def test_the_first_input_of_a_union_has_the_order_of_all() -> None:
    def steps(others: str, own: str) -> list[str]:
        first = select(others, "dated", "others")
        return [HOURS, first, select(own, name="own"), "last: {gem: union, inputs: [others, own]}"]

    before = steps("name as page, k as lo, l as hi", "page, lo, hi")
    assert edited(before, steps("name as page, l as hi, k as lo", "page, lo, hi")) == "mixed"
    assert edited(before, steps("name as page, k as lo, l as hi", "page, hi, lo")) == "continues"


def test_each_path_aggregates_anew() -> None:
    def steps(columns: str) -> list[str]:
        ways = [select(columns, name="one"), select("page, lo, hi", name="other")]
        return [HOURS, *ways, "last: {gem: union, inputs: [one, other]}"]

    assert edited(steps("page, lo, hi"), steps("page, hi, lo")) == "mixed"
    one = [HOURS, select("page, lo, hi", name="one"), filtered("hi > 1", "one", "last")]
    assert edited(steps("page, lo, hi"), one) == "refused"
    assert edited(one, steps("page, lo, hi")) == "refused"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("min(n) as lo, max(n) as hi from timely GROUPS", "max(n) as hi, min(n) as lo from timely GROUPS", "mixed"),
        # Those behind `having` come last.
        ("min(n) as lo from timely GROUPS having max(n) > 1", "max(n) as lo from timely GROUPS having min(n) < 3", "mixed"),
        ("lo, hi from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "hi, lo from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "mixed"),
        ("lo, hi from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "lo, hi from (select page, max(n) as hi, min(n) as lo from timely GROUPS)", "continues"),
        ("lo, hi, hi - lo as d from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "hi, lo, hi - lo as d from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "continues"),
        ("lo, hi, hi - lo as d from (select page, min(n) as lo, max(n) as hi from timely GROUPS)", "lo, hi, hi - lo as d from (select page, max(n) as hi, min(n) as lo from timely GROUPS)", "mixed"),
        ("max(n) - min(n) as d from timely GROUPS", "0 - min(n) + max(n) as d from timely GROUPS", "mixed"),
        ("coalesce(min(n), 0) * 2 + max(n) as d from timely GROUPS", "coalesce(min(n), 0) * 2 + max(n) as d, max(n) as e from timely GROUPS", "from_now_on"),
    ],
)  # fmt: skip
def test_aggregates_of_a_query(old: str, new: str, expected: str) -> None:
    def text(items: str) -> str:
        return query(f"select page, {items}".replace("GROUPS", 'group by page, window(at, "1 hour")'))

    assert edited([text(old)], [text(new)]) == expected


@pytest.mark.parametrize(
    ("old", "new", "behind", "expected"),
    [
        ("m, page, n, at", "n, page, m, at", JOIN, "mixed"),
        ("m, n, page, user, at", "m, n, user, page, at", JOIN, "mixed"),
        ("m, n, page, at", "page, m, n, at", JOIN, "refused"),
        # Columns that nothing arranges Spark knows to be there, when it asks for them behind a watermark.
        ("n, m, page, at", "m, n, page, at", JOIN, "refused"),
        ("n, m, page, at", "n as nn, m, page, at", JOIN, "refused"),
        ("n as x, m, page, at", "n as y, m, page, at", JOIN, "from_now_on"),
        ("n, m, at", "m, n, at", "last: {gem: deduplicate, input: some}", "mixed"),
        ("n, m, at", "m, n, at", "last: {gem: deduplicate, input: some, options: {within_watermark: true}}", "mixed"),
        # Of more than four columns Spark has an order of its own.
        ("n, m, page, user, at", "m, n, page, user, at", "last: {gem: deduplicate, input: some}", "continues"),
        ("n, m, at", "m, n, at", "last: {gem: sql, input: some, options: {query: select distinct * from some}}", "mixed"),
        ("n, m, at", "m, n, at", "last: {gem: aggregate, input: some, options: {group_by: [n, m, at], aggregates: {c: count(*)}}}", "continues"),
    ],
)  # fmt: skip
def test_columns_before_what_keeps_them(old: str, new: str, behind: str, expected: str) -> None:
    before, after = (select(columns, "timely", "some") for columns in (old, new))
    assert edited([before, behind], [after, behind]) == expected


PAIRS = JOIN.replace("last:", "pairs:").replace("l: some", "l: timely")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = k", "refused"),
        ("n <=> k", "refused"),
        ("n > 0 and user = name", "refused"),
        ("n + 1 = k * 2", "refused"),
        # It is a key already, and with nulls another two.
        ("page = name", "mixed"),
        ("page <=> name", "refused"),
        ("page = name and n > 0", "mixed"),
        # What is about one side, or no equality, is no key.
        ("n = m", "mixed"),
        ("n = k or n > 0", "mixed"),
    ],
)
def test_what_is_to_be_equal_behind_a_join_is_a_key_of_it(condition: str, expected: str) -> None:
    steps = [PAIRS, select("n, m, user, page, name, k", "pairs", "some")]
    one, other = (filtered(text, "some", "last") for text in ("n > 0", condition))
    assert edited([*steps, one], [*steps, other]) == expected
    assert edited([*steps, other], [*steps, one]) == expected


def test_what_a_query_wants_to_be_equal_is_a_key_of_its_join() -> None:
    def text(where: str) -> str:
        query = f"select l.n, r.k from timely l join dated r on l.page = r.name where {where}"
        return f"last: {{gem: sql, inputs: [timely, dated], options: {{query: '{query}'}}}}"

    assert edited([text("l.n > 0")], [text("l.n = r.k")]) == "refused"


def test_conditions_of_a_route_are_asked_in_their_order() -> None:
    steps = [
        "ways: {gem: route, input: timely, options: {conditions: {a: n > 1, b: m > 1}}}",
        "last: {gem: aggregate, input: ways.b, options: {group_by: [page], aggregates: {c: count(*)}}}",
    ]
    text = SHOP.replace("STEPS", "\n".join(f"  {step}" for step in steps))
    text = text.replace("input: last}", "input: last, output_mode: update}")
    assert verdict(text, text.replace("a: n > 1, b: m > 1", "b: m > 1, a: n > 1")).verdict == "mixed"


ARRANGED = select("m, n, user, page, at", source="timely", name="some")


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("last: {gem: to_json, input: INPUT}", "from_now_on"),
        ("last: {gem: to_json, input: INPUT, options: {keep: true}}", "from_now_on"),
        ("last: {gem: to_json, input: INPUT, options: {columns: [page, n]}}", "continues"),
        (select("page, hash(*) as h", source="INPUT"), "from_now_on"),
        (select("page, n", source="INPUT"), "continues"),
        (filtered("hash(*) > 0", source="INPUT", name="last"), "from_now_on"),
        (filtered("n > 0", source="INPUT", name="last"), "continues"),
        ("last: {gem: union, inputs: [INPUT, own], options: {by_name: false}}", "from_now_on"),
        ("last: {gem: union, inputs: [own, INPUT]}", "continues"),
        ("last: {gem: set_operation, inputs: [INPUT, table], options: {operation: except, by_name: false}}", "mixed"),
        ("last: {gem: set_operation, inputs: [INPUT, table], options: {operation: except}}", "mixed"),
        ("last: {gem: sql, inputs: {a: INPUT, b: own}, options: {query: select * from a union all select * from b}}", "from_now_on"),
        ("last: {gem: sql, input: INPUT, options: {query: select n from INPUT}}", "continues"),
        ("last: {gem: aggregate, input: INPUT, options: {group_by: [page], aggregates: {h: max(hash(*))}}}", "mixed"),
        ("last: {gem: sql, input: INPUT, options: {query: 'select distinct page, hash(*) as h from INPUT'}}", "from_now_on"),
        ("last: {gem: aggregate, input: INPUT, options: {group_by: [page], aggregates: {h: max(n)}}}", "continues"),
        ("last: {gem: deduplicate, input: INPUT, options: {columns: [page]}}", "continues"),
    ],
)  # fmt: skip
def test_what_takes_all_columns_as_they_stand(last: str, expected: str) -> None:
    own = "own: {gem: select, input: timely, options: {columns: [n, m, page, user, at]}}"
    before, after = last.replace("INPUT", "timely"), last.replace("INPUT", "some")
    table = "table: {gem: rows, mode: batch, options: {schema: 'n int, m int, page string, user string, at timestamp', rows: []}}"
    updated = SHOP.replace("input: last}", "input: last, output_mode: update}")
    updated = updated.replace("transforms:", f"  {table}\ntransforms:")
    assert edited([own, before], [own, ARRANGED, after], updated) == expected


def test_a_union_by_position_has_other_columns_under_each_other() -> None:
    shifted = select("m, n + 1 as l, user, page, at", source="timely", name="some")
    own = "own: {gem: select, input: timely, options: {columns: [n, m, page, user, at]}}"
    union = "both: {gem: union, inputs: [INPUT, own], options: {by_name: false}}"
    steps = [own, union, select("m", source="both")]
    before, after = ([step.replace("INPUT", name) for step in steps] for name in ("timely", "some"))
    assert edited(before, [shifted, *after]) == "from_now_on"


def test_a_text_that_is_read_once_is_computed_behind_the_columns_that_are_kept() -> None:
    """Spark makes the reading a part of the aggregation, whatever stands between them."""
    hours = HOURS.replace("lo: min(n), hi: max(n)", "lo: min(n), text: max(page)")
    turned = select("window, page, text, lo", name="some")

    def read(source: str) -> str:
        schema = "'a int, b string'"
        return f"last: {{gem: from_json, input: {source}, options: {{column: text, schema: {schema}, keep: true}}}}"

    assert edited([hours, read("hours")], [hours, turned, read("some")]) in {"continues", "from_now_on"}


COLUMNS = """
pipeline: shop
sources:
  a: {gem: file, options: {format: FORMAT, path: a, schema: "k string, m string, n int"}}
  b: {gem: file, options: {format: json, path: b, schema: "k string, m string, n int"}}
transforms:
  STEP
targets:
  out: {gem: noop, input: last, output_mode: MODE}
"""
JOINED = (
    "pairs: {gem: join, inputs: {l: a, r: b}, options: {condition: l.k = r.k}}\n"
    "  last: {gem: select, input: pairs, options: {columns: [l.k as k, l.m as m, l.n as n, r.n as o]}}"
)


def _shop(form: str, step: str) -> str:
    mode = "complete" if "distinct" in step else "append"
    return COLUMNS.replace("FORMAT", form).replace("STEP", step).replace("MODE", mode)


@pytest.mark.parametrize(
    ("form", "step", "same_types", "other_types"),
    [
        # Measured on Spark 4.2: what each run on the old checkpoint gave, beside what one from scratch gives.
        ("json", "last: {gem: filter, input: a, options: {condition: n > 0}}", "continues", "continues"),
        (
            "parquet",
            "last: {gem: sql, input: a, options: {query: select * from a}}",
            "continues",
            "continues",
        ),
        ("avro", "last: {gem: deduplicate, input: a, options: {columns: [k]}}", "continues", "continues"),
        ("json", "last: {gem: union, inputs: [a, b], options: {by_name: true}}", "continues", "continues"),
        (
            "json",
            "last: {gem: union, inputs: [a, b], options: {by_name: false}}",
            "from_now_on",
            "from_now_on",
        ),
        ("json", "last: {gem: deduplicate, input: a}", "mixed", "refused"),
        (
            "json",
            "last: {gem: sql, input: a, options: {query: select distinct * from a}}",
            "mixed",
            "refused",
        ),
        ("json", JOINED, "mixed", "refused"),
        # There columns are told apart by their places, or may be.
        ("csv", "last: {gem: filter, input: a, options: {condition: n > 0}}", "from_now_on", "from_now_on"),
        ("csv", "last: {gem: deduplicate, input: a, options: {columns: [k]}}", "mixed", "mixed"),
        ("orc", "last: {gem: deduplicate, input: a, options: {columns: [k]}}", "mixed", "mixed"),
    ],
)
def test_a_source_whose_columns_stand_in_another_order(
    form: str, step: str, same_types: str, other_types: str
) -> None:
    shop = _shop(form, step)
    wanted = {"m string, k string, n int": same_types, "n int, k string, m string": other_types}
    for columns, expected in wanted.items():
        found = verdict(shop, shop.replace("k string, m string, n int", columns, 1))
        assert found.verdict == expected, columns


def test_a_source_with_another_column_too_has_more_than_another_order() -> None:
    shop = _shop("json", "last: {gem: deduplicate, input: a, options: {columns: [k]}}")
    for columns in ("n int, m string, k string not null", "m string, k bigint, n int"):
        assert verdict(shop, shop.replace("k string, m string, n int", columns, 1)).verdict != "continues"
