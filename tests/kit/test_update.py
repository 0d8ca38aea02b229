"""``--update``: expectations are rewritten in place, and everything else stays as it is."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.document import parse
from gem_bundle.schema import fields_of
from gem_bundle.testing.declared.data import expected_rows
from gem_bundle.testing.declared.edit import CannotEditError, Editor, Entry
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.update import Update, is_left, update, write
from gem_bundle.testing.rows.compare import compare
from gem_bundle.testing.rows.notation import flow
from gem_bundle.testing.running.outcome import Captured, Mismatch, Rows, StepOutcome, TestOutcome
from gem_bundle.testing.values import Reader
from tests.samples import examples

if TYPE_CHECKING:
    from pathlib import Path

SALES = "shop string, hour timestamp, orders bigint, sales double"
OSLO = {"shop": "Oslo", "hour": "2026-01-05 09:00:00", "orders": 2, "sales": 30.5}
BERGEN = {"shop": "Bergen", "hour": "2026-01-05 09:00:00", "orders": 1, "sales": 4.0}


class Came:
    """What a target got, for a test of a test."""

    def __init__(self, *rows: dict[str, Any], schema: str = SALES, watermark: str | None = None) -> None:
        fields = fields_of(schema)
        assert fields is not None
        self.rows = Rows(fields, tuple(Reader().row(row, fields) for row in rows))
        self.watermark = watermark


def updated(folder: Path, text: str, *steps: dict[str, Came]) -> Update:
    """A file of one test, updated with what came in its steps; the file is written."""
    (folder / "orders.yaml").touch()
    path = folder / "orders.test.yaml"
    path.write_text(dedent(text), encoding="utf-8", newline="")
    file = load_tests(path)
    assert file.diagnostics == ()
    (test,) = file.tests
    outcome = TestOutcome(test.name, test.file, test.place)
    for declared, came in zip(test.steps, steps, strict=False):
        step = StepOutcome(declared.number, declared.place)
        for name, got in came.items():
            step.captured[name] = Captured(name, rows=got.rows, watermark=got.watermark)
            if name in declared.expect:
                delivery = declared.expect[name]
                expected = delivery.expected(expected_rows(delivery, test))
                difference = compare(expected, got.rows.rows, got.rows.fields)
                if difference is not None:
                    step.mismatches.append(Mismatch("rows", difference.message, name, difference))
            if declared.watermark:
                step.mismatches.append(Mismatch("watermark", "it is another one", name))
        outcome.steps.append(step)
    found = update(file, {test.name: outcome})
    write(found, path)
    return found


TEMPLATE = """\
    # Tests of orders.
    tests:
      late orders: # are dropped
        steps:
          - add: {{orders: [{{a: 1}}]}}   # the first ones
            expect:
              {expected}
              other: [  {{b:   "kept as it is"}}  ]

    x-more: 'stays'
    """


def expecting(expected: str) -> str:
    lines = dedent(expected).strip("\n").replace("\n", f"\n{' ' * 14}")
    return TEMPLATE.format(expected=lines)


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        pytest.param("table: []", [], "table: []", id="nothing changes"),
        pytest.param(
            "table: []",
            [{"shop": "Oslo"}],
            "table: [{shop: Oslo, hour: null, orders: null, sales: null}]",
            id="a short row in the line",
        ),
        pytest.param(
            "table: []   # nothing yet",
            [OSLO, BERGEN],
            """
            table:   # nothing yet
              - {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}
            """,
            id="rows that are too long for the line",
        ),
        pytest.param(
            """
            table:
              # Oslo comes first
              - {sales: 31, shop: 'Oslo',  hour: "2026-01-05 09:00:00", orders: 2}  # with a discount

              - {shop: Bergen, hour: "2026-01-05T09:00:00", orders: 1, sales: 4}   # unchanged
            """,
            [BERGEN, OSLO],
            """
            table:
              # Oslo comes first
              - {sales: 30.5, shop: 'Oslo',  hour: "2026-01-05 09:00:00", orders: 2}  # with a discount

              - {shop: Bergen, hour: "2026-01-05T09:00:00", orders: 1, sales: 4}   # unchanged
            """,
            id="one value of a row",
        ),
        pytest.param(
            """
            table:
              # about Bergen
              - {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4}   # goes
              # about Oslo
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}
              # the end
            """,
            [OSLO],
            """
            table:
              # about Bergen
              # about Oslo
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}
              # the end
            """,
            id="a row that goes, and comments that stay",
        ),
        pytest.param(
            """
            table:
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}   # stays
              # the end
            """,
            [BERGEN, OSLO],
            """
            table:
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}   # stays
              - {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}
              # the end
            """,
            id="a row more",
        ),
        pytest.param(
            """
            table:
              # nobody
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}   # goes
            """,
            [],
            """
            table: []
              # nobody
            """,
            id="all rows go",
        ),
        pytest.param(
            """
            table:
              - shop: Oslo
                hour: "2026-01-05 09:00:00"  # local time
                # how many
                orders: 7
                sales: 30.5
              - shop: Bergen
                orders: 1
            """,
            [OSLO, {**BERGEN, "hour": None}],
            """
            table:
              - shop: Oslo
                hour: "2026-01-05 09:00:00"  # local time
                # how many
                orders: 2
                sales: 30.5
              - shop: Bergen
                orders: 1
                sales: 4.0
            """,
            id="rows over several lines",
        ),
        pytest.param(
            """
            table:
            - shop: Oslo
              hour: "2026-01-05 09:00:00"
              orders: 2
              sales: 30.5
            """,
            [OSLO, BERGEN],
            """
            table:
            - shop: Oslo
              hour: "2026-01-05 09:00:00"
              orders: 2
              sales: 30.5
            - shop: Bergen
              hour: "2026-01-05 09:00:00"
              orders: 1
              sales: 4.0
            """,
            id="a new row is written like the others",
        ),
        pytest.param(
            """
            table: [
              # Oslo
              {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 7, sales: 30.5}, # one
              {shop: Bergen, hour: "2026-01-05 09:00:00"}, # two
              # the end
            ]
            """,
            [OSLO, {"shop": "Bergen"}],
            """
            table: [
              # Oslo
              {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}, # one
              {shop: Bergen, hour: null}, # two
              # the end
            ]
            """,
            id="a list in brackets over several lines",
        ),
        pytest.param(
            """
            table: [
              {shop: Voss, sales: 1}, # goes
              # Oslo
              {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 7, sales: 30.5} # one
              # the end
            ]
            """,
            [OSLO, BERGEN],
            """
            table: [
              # Oslo
              {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5},  # one
              {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}
              # the end
            ]
            """,
            id="a list in brackets that loses a row and gets one",
        ),
        pytest.param(
            """
            table: [{shop: Oslo, hour: "2026-01-05 09:00:00", orders: 7,
                     sales: 30.5}]
            """,
            [OSLO],
            """
            table: [{shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2,
                     sales: 30.5}]
            """,
            id="a row in brackets over two lines",
        ),
        pytest.param(
            """
            table: {columns: subset, rows: [{shop: Oslo, orders: 7}]}
            """,
            [OSLO, BERGEN],
            """
            table: {columns: subset, rows: [{shop: Oslo, orders: 2}, {shop: Bergen, orders: 1}]}
            """,
            id="a subset stays one",
        ),
        pytest.param(
            """
            table:
              ordered: true
              rows:
                - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5} # Oslo
                - {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0} # Bergen
            """,
            [BERGEN, {"shop": "Voss"}, OSLO],
            """
            table:
              ordered: true
              rows:
                - {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0} # Bergen
                - {shop: Voss, hour: null, orders: null, sales: null}
                - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5} # Oslo
            """,
            id="rows in order are put in order",
        ),
        pytest.param(
            """
            table:
              - [Oslo, "2026-01-05 09:00:00", 7, 30.5] # as a list
            """,
            [OSLO, BERGEN],
            """
            table:
              - [Oslo, "2026-01-05 09:00:00", 2, 30.5] # as a list
              - [Bergen, "2026-01-05 09:00:00", 1, 4.0]
            """,
            id="rows that are lists",
        ),
        pytest.param(
            "table: {count: 7, schema: shop string}   # many",
            [OSLO, BERGEN],
            'table: {count: 2, schema: "shop string, hour timestamp, orders bigint, sales double"}   # many',
            id="a count and a schema",
        ),
        pytest.param(
            """
            table:
              - {shop: Oslo, hour: 9 o'clock, orders: 2, sales: 30.5, rebate: 1}  # by hand
            """,
            [OSLO],
            """
            table:
              - {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}  # by hand
            """,
            id="columns that there are none of, and values that no row can have",
        ),
        pytest.param(
            """
            table:
              - shop: Ærø
                hour:
                orders: 2
                sales: 30.5
            """,
            [{**OSLO, "shop": "Ærø"}],
            """
            table:
              - shop: Ærø
                hour: "2026-01-05 09:00:00"
                orders: 2
                sales: 30.5
            """,
            id="a value that isn't there",
        ),
        pytest.param(
            """
            table:
              - shop: >-
                  Oslo
                hour: "2026-01-05 09:00:00"
                orders: 2
                sales: 30.5
              - {shop: Bergen}
            """,
            [{**OSLO, "shop": "Voss"}, {"shop": "Bergen"}],
            """
            table:
              - shop: Voss
                hour: "2026-01-05 09:00:00"
                orders: 2
                sales: 30.5
              - {shop: Bergen}
            """,
            id="a folded text",
        ),
    ],
)
def test_expectations_are_rewritten_in_place(
    tmp_path: Path, before: str, rows: list[dict[str, Any]], after: str
) -> None:
    found = updated(tmp_path, expecting(before), {"table": Came(*rows)})

    written = (tmp_path / "orders.test.yaml").read_text(encoding="utf-8")
    assert written == dedent(expecting(after)) == found.text
    assert found.changed == (before != after)
    assert found.left == []
    # What was written is what came, and once is enough.
    assert updated(tmp_path, written, {"table": Came(*rows)}).changed == 0


def test_every_step_and_target_is_updated(tmp_path: Path) -> None:
    text = """\
        tests:
          two steps:
            steps:
              - add: {orders: []}
                expect: {a: [{n: 1}], b: [{n: 2}]}
              - restart: true
                expect: {a: [{n: 3}], b: []}
        """

    found = updated(
        tmp_path,
        text,
        {"a": Came({"n": 5}, schema="n int"), "b": Came({"n": 2}, schema="n int")},
        {"a": Came(schema="n int"), "b": Came({"n": 7}, schema="n int")},
    )

    assert found.changed == 3
    assert found.text == dedent(text).replace("n: 1", "n: 5").replace(
        "a: [{n: 3}], b: []", "a: [], b: [{n: 7}]"
    )


def test_watermarks_are_updated(tmp_path: Path) -> None:
    text = """\
        tests:
          event time:
            steps:
              - add: {orders: []}
                watermark: "2026-01-05 09:00:00"   # of all
              - add: {orders: []}
                watermark: {table: "2026-01-05 09:00:00"}
        """
    came = {"table": Came(watermark="2026-01-05T10:30:00.000Z")}

    found = updated(tmp_path, text, came, came)

    assert found.text == dedent(text).replace("09:00:00", "10:30:00")


def test_a_watermark_that_is_none_is_left_to_a_person(tmp_path: Path) -> None:
    text = """\
        tests:
          event time:
            steps:
              - add: {orders: []}
                watermark: "2026-01-05 09:00:00"
        """

    found = updated(tmp_path, text, {"table": Came()})

    assert found.changed == 0
    assert found.left == ["event time: step 1 has no one watermark; change it by hand"]


def test_an_alias_that_is_used_elsewhere_is_left_to_a_person(tmp_path: Path) -> None:
    text = """\
        tests:
          shared:
            steps:
              - add: {orders: []}
                expect:
                  a: &rows [{n: 1}]
                  b: *rows
        """

    found = updated(
        tmp_path, text, {"a": Came({"n": 5}, schema="n int"), "b": Came({"n": 1}, schema="n int")}
    )

    assert found.text == dedent(text)
    assert found.left == [
        "shared: what is expected of `a` is written with aliases or over other lines than its own; "
        "change it by hand"
    ]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("rows.csv", "shop,orders\nOslo,7\n", "shop,orders\nOslo,2\nBergen,\n"),
        (
            "rows.json",
            '[{"shop": "Oslo", "orders": 7}]',
            '[\n  {"shop": "Oslo", "orders": 2},\n  {"shop": "Bergen", "orders": null}\n]\n',
        ),
        (
            "rows.jsonl",
            '{"shop": "Oslo", "orders": 7}\n',
            '{"shop": "Oslo", "orders": 2}\n{"shop": "Bergen", "orders": null}\n',
        ),
    ],
)
def test_rows_in_files_are_updated_there(tmp_path: Path, name: str, before: str, after: str) -> None:
    (tmp_path / name).write_text(before)
    text = f"""\
        tests:
          from a file:
            steps:
              - add: {{orders: []}}
                expect: {{table: {{file: {name}}}}}
        """
    rows = [{"shop": "Oslo", "orders": 2}, {"shop": "Bergen"}]
    came = {"table": Came(*rows, schema="shop string, orders int")}

    found = updated(tmp_path, text, came)

    assert (tmp_path / name).read_text() == after
    assert (found.changed, found.text) == (1, dedent(text))
    assert updated(tmp_path, text, came).changed == 0


def test_a_csv_file_without_rows_keeps_its_header(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("shop,orders\nOslo,7\n")
    text = "tests: {t: {steps: [{add: {orders: []}, expect: {table: {file: rows.csv}}}]}}\n"

    updated(tmp_path, text, {"table": Came(schema="shop string, orders int")})

    assert (tmp_path / "rows.csv").read_text() == "shop,orders\n"


def test_line_ends_byte_order_marks_and_permissions_stay(tmp_path: Path) -> None:
    text = "\ufeff# Tests\r\ntests:\r\n  t:\r\n    steps:\r\n      - add: {orders: []}\r\n        expect: {table: [{n: 1}]}\r\n"
    path = tmp_path / "orders.test.yaml"
    path.touch()
    path.chmod(0o640)

    updated(tmp_path, text, {"table": Came({"n": 2}, {"n": 3}, schema="n int")})

    assert path.read_bytes().decode() == text.replace("{n: 1}", "{n: 2}, {n: 3}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["orders.test.yaml", "orders.yaml"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "orders.test.yaml"
    real.touch()
    (tmp_path / "orders.test.yaml").symlink_to(real)

    updated(
        tmp_path,
        "tests: {t: {steps: [{add: {orders: []}, expect: {table: [{n: 1}]}}]}}",
        {"table": Came(schema="n int")},
    )

    assert (tmp_path / "orders.test.yaml").is_symlink()
    assert "expect: {table: []}" in real.read_text()


def test_failures_are_left_to_a_person() -> None:
    failure = Diagnostic("GB507", "error", "it failed")
    note = Diagnostic("GB709", "note", "a setting")
    passed, rows = TestOutcome("t", steps=[StepOutcome(1)]), TestOutcome("t", steps=[StepOutcome(1)])
    rows.steps[0].mismatches.append(Mismatch("rows", "1 row differs", "table"))

    assert not is_left(passed)
    assert not is_left(rows)
    assert not is_left(replace(passed, diagnostics=[note]))
    assert not is_left(replace(passed, diagnostics=[failure], expected_failure="GB507"))
    assert not is_left(replace(passed, steps=[StepOutcome(1, failures=[failure], expected_failure="GB507")]))
    assert is_left(replace(passed, diagnostics=[failure]))
    assert is_left(replace(passed, steps=[StepOutcome(1, failures=[failure])]))
    assert is_left(replace(passed, mismatches=[Mismatch("failure", "it didn't fail")]))


# Edits


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: 1", ("b",)),
        ("a: [1]", ("a", 3)),
        ("a: {b: 1}", ("a", "b", "c")),
        ("<<: {a: 1}", ("a",)),
        ("a: |\n  text\n", ("a",)),
        ("a:\n  - 1\n", ("a",)),
    ],
)
def test_values_that_cant_be_changed_alone_are_left(text: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(CannotEditError) as caught:
        Editor(text).set_value(path, 5)

    assert caught.value.path == path


def test_a_value_that_isnt_a_list_is_left() -> None:
    with pytest.raises(CannotEditError):
        Editor("a: 1").set_list(("a",), [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tests:\n  a: 1 # one\n# end\n", "tests:\n  a: 1 # one\n\n  b:\n    c: 2\n# end\n"),
        ("tests:\n    a:\n      - {x: 1}", "tests:\n    a:\n      - {x: 1}\n\n    b:\n      c: 2\n"),
        ("tests:\n  a: |\n    text\n\n", "tests:\n  a: |\n    text\n\n  b:\n    c: 2\n\n"),
        ("tests:\n  a: {}\nx: 1\n", "tests:\n  a: {}\n\n  b:\n    c: 2\nx: 1\n"),
    ],
)
def test_a_key_is_added_at_the_end_of_a_mapping(before: str, after: str) -> None:
    editor = Editor(before)

    line = editor.add_key(("tests",), "b", "b:\n  c: 2\n")

    assert editor.result() == after
    assert after.splitlines()[line - 1].strip() == "b:"


def test_no_key_is_added_to_a_mapping_in_braces() -> None:
    with pytest.raises(CannotEditError):
        Editor("tests: {a: 1}").add_key(("tests",), "b", "b: 2\n")


_ROWS = st.lists(
    st.fixed_dictionaries({"k": st.integers(0, 6), "v": st.text("ab: #'\"\n-{,", max_size=4)}), max_size=5
)
_STYLES = ["block", "mapping", "flow", "lines"]


def _text_of(rows: list[dict[str, Any]], style: str) -> str:
    """A list in one of the ways of YAML, each row with comments of its own."""
    if style == "flow" or (not rows and style != "lines"):
        return f"rows: [{', '.join(map(flow, rows))}]  # c\nend: 1\n"
    if style == "lines":
        inner = "".join(f"  # above {i}\n  {flow(row)}, # behind {i}\n" for i, row in enumerate(rows))
        return f"rows: [\n{inner}]\nend: 1\n"
    if style == "block":
        inner = "".join(f"  # above {i}\n  - {flow(row)} # behind {i}\n" for i, row in enumerate(rows))
    else:
        inner = "".join(
            f"  # above {i}\n  - k: {row['k']} # behind {i}\n    v: {flow(row['v'])}\n"
            for i, row in enumerate(rows)
        )
    return f"rows:\n{inner}# last\nend: 1\n"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(20, 600))
@given(st.data())
def test_any_change_of_a_list_says_what_it_should_and_keeps_comments(data: st.DataObject) -> None:
    before = data.draw(_ROWS)
    style = data.draw(st.sampled_from(_STYLES))
    text = _text_of(before, style)
    kept = data.draw(st.permutations(range(len(before))))[: data.draw(st.integers(0, len(before)))]
    entries = []
    for index in kept:
        keys = tuple(data.draw(st.sets(st.sampled_from(["k", "v", "new"]))))
        values = {
            "k": data.draw(st.integers(0, 9)),
            "v": data.draw(st.sampled_from(["x", "", "a: b"])),
            "new": None,
        }
        entries.append(Entry(before[index] | {key: values[key] for key in keys}, index, keys))
    for row in data.draw(_ROWS):
        entries.insert(data.draw(st.integers(0, len(entries))), Entry(row))

    editor = Editor(text)
    editor.set_list(("rows",), entries)
    found = editor.result()

    document = parse(found, "")
    assert document.diagnostics == []
    assert document.values["rows"] == [entry.value for entry in entries]
    assert document.values["end"] == 1
    for index in range(len(before)):
        if style != "flow" and before:
            assert f"# above {index}" in found
        if style in {"block", "lines"} and index in kept:
            assert f"# behind {index}" in found
    assert json.dumps(document.values)
