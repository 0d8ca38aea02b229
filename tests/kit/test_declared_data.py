"""The rows of declared tests: inline, from files, made up; and where what is wrong with them stands."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.schema import StructField, fields_of
from gem_bundle.testing.declared.data import expected_rows, read_rows
from gem_bundle.testing.declared.load import DeclaredTest, load_tests
from gem_bundle.testing.rows.compare import compare

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = "shop string, at timestamp, amount decimal(8,2), items array<struct<n: int>>"


def fields(ddl: str = ORDERS) -> tuple[StructField, ...]:
    found = fields_of(ddl)
    assert found is not None
    return found


def declared(folder: Path, add: str, expect: str = "{table: []}") -> DeclaredTest:
    """A test whose first step adds that to `orders`; the value begins in line 5, column 19."""
    text = f"""\
        tests:
          t:
            steps:
              - add:
                  orders: {add}
                expect: {expect}
        """
    (folder / "orders.yaml").touch()
    path = folder / "orders.test.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    file = load_tests(path)
    assert file.diagnostics == ()
    return file.tests[0]


def rows(folder: Path, add: str, ddl: str = ORDERS, time_zone: str = "UTC") -> list[tuple[Any, ...]]:
    test = declared(folder, add)
    return read_rows(test.steps[0].add["orders"], fields(ddl), test, time_zone)


def problems(folder: Path, add: str, ddl: str = ORDERS) -> list[str]:
    """What is wrong with the rows, with the places; without the folder."""
    with pytest.raises(PipelineError) as caught:
        rows(folder, add, ddl)
    return [str(found).replace(f"{folder}/", "") for found in caught.value.diagnostics]


def test_rows_stand_in_the_test(tmp_path: Path) -> None:
    found = rows(
        tmp_path, '[{shop: Oslo, at: "2026-01-05 09:00:00", amount: 1.5}, [Bergen, null, 2, [{n: 1}]]]'
    )

    assert found == [
        ("Oslo", datetime(2026, 1, 5, 9, tzinfo=UTC), Decimal("1.50"), None),
        ("Bergen", None, Decimal("2.00"), ((1,),)),
    ]
    assert rows(tmp_path, "{rows: [{shop: Oslo}]}") == [("Oslo", None, None, None)]


def test_times_are_those_of_the_sessions_time_zone(tmp_path: Path) -> None:
    found = rows(tmp_path, '[["2026-07-05 09:00:00"]]', "at timestamp", "Europe/Oslo")

    assert found == [(datetime(2026, 7, 5, 7, tzinfo=UTC),)]


def test_all_values_that_dont_fit_are_told_with_their_places(tmp_path: Path) -> None:
    found = problems(
        tmp_path, "[{shop: 5}, {shp: Oslo}, {amount: 1}, [Oslo, 9, 2, []], {items: [{n: 1}, {n: x}]}]"
    )

    assert found == [
        "orders.test.yaml:5:27: error[GB704]: `shop`: `5` is not a string: put it in quotes",
        "orders.test.yaml:5:31: error[GB704]: there is no column `shp`. Did you mean `shop`?",
        "orders.test.yaml:5:64: error[GB704]: `at`: `9` is not a timestamp: write one such as "
        "`2026-01-05 09:05:00`",
        "orders.test.yaml:5:96: error[GB704]: `items[1].n`: `x` is not an int: write a whole number",
    ]


def test_of_many_problems_the_first_ones_are_told(tmp_path: Path) -> None:
    assert len(problems(tmp_path, f"[{', '.join(['{shop: 5}'] * 50)}]")) == 20


CSV = """\
shop,at,amount,items
Oslo,2026-01-05 09:00:00,1.50,
"Bergen, west",,2,"[{""n"": 1}]"

Voss,2026-01-05T10:00:00Z,-3,[]
"""


def test_rows_stand_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text(f"\ufeff{CSV}", encoding="utf-8")

    found = rows(tmp_path, "{file: data/orders.csv}")

    assert found == [
        ("Oslo", datetime(2026, 1, 5, 9, tzinfo=UTC), Decimal("1.50"), None),
        ("Bergen, west", None, Decimal("2.00"), ((1,),)),
        ("Voss", datetime(2026, 1, 5, 10, tzinfo=UTC), Decimal("-3.00"), ()),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders.json", '[{"shop": "Oslo", "amount": 1.10},\n {"amount": "2.20"}]'),
        ("orders.json", '{"shop": "Oslo", "amount": 1.10}\n\n{"amount": "2.20"}\n'),
        ("orders.jsonl", '{"shop": "Oslo", "amount": 1.10}\n{"amount": "2.20"}'),
        ("orders.ndjson", '["Oslo", null, 1.10, null]\n[null, null, 2.2, null]'),
        ("orders.json", "[]"),
    ],
)
def test_rows_stand_in_a_json_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)

    found = rows(tmp_path, f"{{file: {name}}}")

    expected = [("Oslo", None, Decimal("1.10"), None), (None, None, Decimal("2.20"), None)]
    assert found == (expected if text != "[]" else [])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("o.csv", "shop,amount\nOslo,1\n\nVoss,x\n", ["o.csv:4: error[GB704]: `amount`: `x` is not a decimal(8,2): write a number"]),
        ("o.csv", 'shop,amount\n"Oslo\nwest",1\nVoss,x\n', ["o.csv:4: error[GB704]: `amount`: `x` is not a decimal(8,2): write a number"]),
        ("o.csv", "shop,amount\nOslo\n", ["o.csv:2: error[GB703]: the row has 1 values, and there are 2 columns"]),
        ("o.csv", "", ["o.csv:1: error[GB703]: the file is empty: its first line must name the columns"]),
        ("o.csv", 'shop\n"Oslo" x\n', ["o.csv:2: error[GB703]: this isn't CSV: ',' expected after '\"'"]),
        ("o.csv", "shop,town\nOslo,x\n", ["o.csv:2: error[GB704]: there is no column `town`. Known columns: `amount`, `at`, `items`, `shop`."]),
        ("o.json", '[\n{"shop": }]', ["o.json:2: error[GB703]: this isn't JSON: Expecting value"]),
        ("o.jsonl", '{}\n{"shop": \n', ["o.jsonl:2: error[GB703]: this isn't JSON: Expecting value"]),
        ("o.json", '[{"shop": 1}, 5]', [
            "o.json: error[GB704]: `shop`: `1` is not a string: put it in quotes",
            "o.json: error[GB704]: `5` must be a mapping of columns to values",
        ]),
        ("o.xml", "<a/>", [
            "orders.test.yaml:5:26: error[GB703]: `o.xml` is no CSV or JSON file\n    Its name must end in .csv, .json or .jsonl."
        ]),
        ("x.csv", "", [
            "orders.test.yaml:5:26: error[GB703]: the data file `o.csv` can't be read: No such file or directory\n    Did you mean `x.csv`?"
        ]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    tmp_path: Path, name: str, text: str, said: list[str]
) -> None:
    (tmp_path / name).write_text(text)

    assert problems(tmp_path, f"{{file: {'o.csv' if name == 'x.csv' else name}}}") == said


def test_a_file_that_isnt_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_bytes(b"shop\n\xff\n")

    assert problems(tmp_path, "{file: o.csv}") == [
        "orders.test.yaml:5:26: error[GB703]: the data file `o.csv` isn't UTF-8 text\n    Save it as UTF-8."
    ]


def test_a_file_in_no_folder_is_told(tmp_path: Path) -> None:
    assert problems(tmp_path, "{file: data/o.csv}")[0].endswith("Its path is relative to the test file.")


def test_rows_are_made_up(tmp_path: Path) -> None:
    add = '{generate: {rows: 30, seed: 5, columns: {shop: {choices: [Oslo, Voss]}, at: {start: "2026-01-05 09:00:00"}}}}'

    found = rows(tmp_path, add)

    assert len(found) == 30
    assert {row[0] for row in found} == {"Oslo", "Voss"}
    assert found[29][1] == datetime(2026, 1, 5, 9, 29, tzinfo=UTC)
    assert found == rows(tmp_path, add) != rows(tmp_path, add.replace("seed: 5", "seed: 6"))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            "{shp: {value: x}}",
            "5:40: error[GB704]: there is no column `shp` to make values for. Did you mean `shop`?",
        ),
        ("{shop: {value: 5}}", "5:50: error[GB704]: `shop`: `5` is not a string: put it in quotes"),
        ("{shop: {chices: [a]}}", "5:57: error[GB004]: `shop`: unknown key `chices`"),
        ("{shop: {nulls: 2}}", "5:64: error[GB005]: `shop`: `nulls` must be less than or equal to 1"),
        ("{shop: {value: a, step: 1}}", "5:50: error[GB005]: `shop`: `step` and `jitter` go with `start`"),
    ],
)
def test_what_cant_be_made_up_is_told_with_its_place(tmp_path: Path, columns: str, said: str) -> None:
    (found,) = problems(tmp_path, f"{{generate: {{rows: 1, columns: {columns}}}}}")

    assert found.startswith(f"orders.test.yaml:{said}")


def test_expected_rows_may_stand_in_files_too(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text("shop,amount\nOslo,1.5\nVoss,\n")
    test = declared(tmp_path, "[]", "{table: {file: hours.csv}, other: [{a: 1}], third: {count: 1}}")
    delivered = test.steps[0].expect

    found = expected_rows(delivered["table"], test)

    columns = fields("shop string, amount decimal(8,2)")
    came = [("Voss", None), ("Oslo", Decimal("1.50"))]
    assert compare(delivered["table"].expected(found), came, columns) is None
    assert compare(delivered["table"].expected(found), came[:1], columns) is not None
    assert expected_rows(delivered["other"], test) == [{"a": 1}]
    assert expected_rows(delivered["third"], test) is None
