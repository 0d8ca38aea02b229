"""Whatever is in a test file, reading it ends in diagnostics with places, and none of its rows is lost."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gem_bundle.errors import PipelineError
from gem_bundle.testing.declared.data import expected_rows, read_rows
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import prepare_test
from gem_bundle.testing.rows.compare import compare
from tests.core.check.test_fuzz import FUZZ, ODD
from tests.core.hostile import STRANGE, places

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.testing.declared.load import DeclaredTest

PIPELINE = """\
pipeline: orders
parameters: {limit: 1}
sources:
  orders: {gem: file, options: {format: json, path: in, schema: "shop string, at timestamp, amount decimal(8,2)"}}
  shops: {gem: file, mode: batch, options: {format: csv, path: shops, schema: "shop string, tags map<string,int>"}}
transforms:
  dear: {gem: filter, input: orders, options: {condition: "amount > ${limit}"}}
  timely: {gem: watermark, input: dear, options: {column: at, delay: 10 minutes}}
  named: {gem: join, inputs: [timely, shops], options: {how: left, on: [shop]}}
targets:
  table: {gem: delta, input: named, options: {path: out}}
"""
TESTS = """\
x-rows: &rows [{shop: Oslo, at: "2026-01-05 09:05:00", amount: 10}]
parameters: {limit: 0}
environment: {HOST: h}
secrets: {a/b: c}
spark: {spark.sql.shuffle.partitions: 1}
replace:
  shops: {rows: [[Oslo, {a: 1}], {shop: Rome}]}
tests:
  dear ones are named:
    description: All of it.
    targets: [table]
    steps:
      - add: {orders: *rows}
        expect: {table: {rows: [{shop: Oslo, amount: 10.00}], columns: subset, count: 1}}
        watermark: "2026-01-05 08:55:00"
      - restart: true
        add: {orders: {file: more.csv}}
        expect: {table: {file: more.json, ordered: true}}
      - add: {orders: {generate: {rows: 3, seed: 1, columns: {amount: {range: [1, 9]}}}}}
        expect: {table: {count: 3, schema: "shop string, at timestamp"}}
      - fails: {code: GB507, message: gone}
  a node in the middle:
    replace: {timely: {schema: "shop string, at timestamp"}}
    steps:
      - add: {timely: [[Rome, "2026-01-05T09:00:00Z"]]}
        expect: {table: []}
  nothing starts:
    parameters: {limit: x}
    fails: GB012
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tests")
    (made / "orders.yaml").write_text(PIPELINE)
    (made / "more.csv").write_text("shop,at,amount\nOslo,2026-01-05 10:00:00,1.50\n")
    (made / "more.json").write_text('[{"shop": "Oslo"}]')
    return made


def read(folder: Path, text: bytes) -> list[Diagnostic]:
    """All that is said of a file, up to the point where Spark would be needed."""
    file = folder / "orders.test.yaml"
    file.write_bytes(text)
    loaded = load_tests(file)
    said = list(loaded.diagnostics)
    for test in loaded.tests:
        said += problems_of(test)
    for found in said:
        assert found.code
        assert found.message
        assert "Traceback" not in str(found)
        assert found.place.file
    return said


def problems_of(test: DeclaredTest) -> Iterable[Diagnostic]:
    try:
        prepared = prepare_test(test)
    except PipelineError as error:
        return error.diagnostics
    said: list[Diagnostic] = []
    for step in test.steps:
        for name, data in step.add.items():
            fields = prepared.fed[name].fields
            try:
                rows = read_rows(data, fields, test)
            except PipelineError as error:
                said += error.diagnostics
                continue
            if data.shape.rows is not None:
                assert len(rows) == len(data.shape.rows)
            assert all(len(row) == len(fields) for row in rows)
        for delivery in step.expect.values():
            try:
                expected = delivery.expected(expected_rows(delivery, test))
            except PipelineError as error:
                said += error.diagnostics
                continue
            fields = prepared.fed[next(iter(prepared.fed))].fields
            compare(expected, [], fields)
    return said


def test_the_file_itself_is_right(folder: Path) -> None:
    said = read(folder, TESTS.encode())

    # What is to keep the third test's pipeline from starting.
    assert [found.code for found in said if found.is_error] == ["GB012", "GB210"]


BYTES = TESTS.encode()
POSITIONS = st.integers(0, len(BYTES))
EDITS = st.lists(
    st.tuples(POSITIONS, st.integers(0, 40), st.one_of(ODD, st.binary(max_size=8), st.just(b""))),
    min_size=1,
    max_size=6,
)


@FUZZ
@given(edits=EDITS)
def test_bytes_are_changed(folder: Path, edits: list[tuple[int, int, bytes]]) -> None:
    text = BYTES
    for position, length, replacement in edits:
        text = text[:position] + replacement + text[position + length :]

    read(folder, text)


@FUZZ
@given(data=st.data())
def test_structures_are_changed(folder: Path, data: st.DataObject) -> None:
    tree: Any = deepcopy(yaml.safe_load(TESTS))
    for _ in range(data.draw(st.integers(1, 3))):
        everything = places(tree)
        parent, key = everything[data.draw(st.integers(0, len(everything) - 1))]
        match data.draw(st.sampled_from(["strange", "delete", "wrap", "rename", "swap"])):
            case "strange":
                parent[key] = data.draw(st.sampled_from(STRANGE))
            case "delete":
                del parent[key]
            case "wrap":
                parent[key] = [parent[key]]
            case "rename" if isinstance(parent, dict):
                parent[f"{key}s"] = parent.pop(key)
            case _:
                other, name = everything[data.draw(st.integers(0, len(everything) - 1))]
                parent[key] = deepcopy(other[name])

    read(folder, yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"))
