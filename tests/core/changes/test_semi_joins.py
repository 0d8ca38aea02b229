"""A semi join of two streams goes before a union, once for each of its inputs: each case was tried on Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare_with_checkpoint
from tests.core.changes.edits import plan, verdict

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, x double, page string, at timestamp"}}
  c: {gem: file, options: {format: json, path: c, schema: "n int, x double, page string, at timestamp"}}
  d: {gem: file, options: {format: json, path: d, schema: "n int, x double, page string, at timestamp"}}
  b: {gem: file, options: {format: json, path: b, schema: "m int, y double, name string, seen timestamp"}}
transforms:
  dated: {gem: watermark, input: b, options: {column: seen, delay: 1 minute}}
  all: {gem: union, inputs: [INPUTS]}
  between: STEP
  last:
    gem: join
    inputs: {l: between, r: dated}
    options:
      how: HOW
      condition: l.n = r.m and l.at between r.seen - interval 1 hour and r.seen + interval 1 hour
targets:
  out: {gem: console, input: last}
"""
FILTER = "{gem: filter, input: all, options: {condition: n > 1}}"


def shop(inputs: str, step: str = FILTER, how: str = "left_semi") -> str:
    return SHOP.replace("INPUTS", inputs).replace("STEP", step).replace("HOW", how)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (FILTER, "refused"),
        ("{gem: with_columns, input: all, options: {columns: {x: x + 1}}}", "refused"),
        ("{gem: unpivot, input: all, options: {ids: [n, at, page], values: [x]}}", "refused"),
        # It asks for what the unpivot makes; other random numbers would get another row through.
        (
            "{gem: unpivot, input: all, options: {ids: [x, at, page], values: [n], value_column_name: n}}",
            "continues",
        ),
        ("{gem: with_columns, input: all, options: {columns: {x: rand()}}}", "continues"),
        # Where the new input has no watermark, none of its rows is late.
        ("{gem: watermark, input: all, options: {column: at, delay: 1 minute}}", "skipped"),
    ],
)
def test_another_input_of_the_union_is_another_join(step: str, expected: str) -> None:
    assert verdict(shop("a, c", step), shop("a, c, d", step)).verdict == expected
    if expected != "skipped":
        assert verdict(shop("a, c", step, "inner"), shop("a, c, d", step, "inner")).verdict == "continues"


def test_a_checkpoint_without_a_record_has_a_join_for_each_input(tmp_path: Path) -> None:
    made = plan(shop("a, c"))
    version = version_of(made, "out")
    for number in range(2):
        found = compare_with_checkpoint(made, version, SparkCheckpoint(str(tmp_path)))
        assert found.verdict == "refused", number
        told = tmp_path / "state" / str(number) / "_metadata" / "metadata"
        told.parent.mkdir(parents=True)
        join = {"operatorId": number, "operatorName": "symmetricHashJoin"}
        told.write_text("v1\n" + json.dumps({"operatorInfo": join, "stateStoreInfo": []}))
    found = compare_with_checkpoint(made, version, SparkCheckpoint(str(tmp_path)))
    assert found.verdict == "continues"
