"""Sources in a checkpoint that has no names for them: Spark goes by their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.model import TargetChanges
from gem_bundle.changes.unnamed import by_order
from gem_bundle.plugins import load_registry
from tests.core.changes.edits import plan

SHOP = """
    pipeline: shop
    sources:
      a: {gem: kafka, options: {bootstrap_servers: "b:9092", subscribe: [clicks]}}
      b: {gem: kafka, options: {bootstrap_servers: "b:9092", subscribe: [views]}}
    transforms:
      all: {gem: sql, inputs: [a, b], options: {query: select 1 as n from a union all select 1 as n from b}}
    targets:
      out: {gem: noop, input: all}
"""
SWAPPED = [("refused", "b"), ("refused", "a")]
UNCLEAR = "select 1 as n from (with x as (select * from a) select * from x) y"
# It has two sources, and no names for them.
LEFT = Path(__file__).with_name("checkpoints") / "4.1.1" / "joined"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("[a, b]", "[b, a]")], []),
        ([("from a union all select 1 as n from b", "from b union all select 1 as n from a")], SWAPPED),
        (
            [("[a, b]", "[b, a]"), ("from a union all select 1 as n from b", "from b join a using (topic)")],
            SWAPPED,
        ),
        ([("select 1 as n from a", UNCLEAR)], [("mixed", "all")]),
        (
            [
                ("gem: sql", "gem: union"),
                (", options: {query: select 1 as n from a union all select 1 as n from b}", ""),
            ],
            [],
        ),
        (
            [
                ("gem: sql", "gem: union"),
                ("[a, b], options: {query: select 1 as n from a union all select 1 as n from b}", "[b, a]"),
            ],
            SWAPPED,
        ),
        (
            [
                ("gem: sql", "gem: python"),
                ("query: select 1 as n from a union all select 1 as n from b", "function: 'jobs:f'"),
            ],
            [("mixed", "all")],
        ),
        ([("b: {", "c: {"), ("[a, b]", "[a, c]"), ("from b", "from c")], []),
        (
            [
                ("b: {gem: kafka", "c: {gem: socket, options: {host: h, port: 1}} #"),
                ("[a, b]", "[a, c]"),
                ("from b", "from c"),
            ],
            [("refused", "c")],
        ),
        (
            [("b: {gem: kafka", "b: {gem: socket, options: {host: h, port: 1}} #")],
            [],
        ),  # told of as of any checkpoint
    ],
    ids=[
        "inputs in another order",
        "tables in another order",
        "joined the other way round",
        "in an order that isn't certain",
        "united in the same order",
        "united the other way round",
        "in an order that a function knows",
        "another name",
        "another gem",
        "another gem under its id",
    ],
)
def test_each_place_has_the_offsets_of_what_was_there(
    edits: list[tuple[str, str]], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    edited = SHOP
    for old, new in edits:
        edited = edited.replace(old, new)
    before, after = plan(SHOP, str(tmp_path)), plan(edited, str(tmp_path))
    checkpoint = read_checkpoint(str(LEFT))
    assert checkpoint is not None
    versions = version_of(before, "out"), version_of(after, "out")
    found = by_order(after, after.node("out"), *versions, checkpoint, TargetChanges("out"), load_registry)
    assert [(change.verdict, change.node) for change in found.changes] == expected
    assert {change.code for change in found.changes} <= {"GB414"}


def test_an_order_that_is_not_certain_is_the_same_for_the_same_query(tmp_path: Path) -> None:
    unclear = SHOP.replace("select 1 as n from a", UNCLEAR)
    before, after = plan(unclear, str(tmp_path)), plan(unclear.replace("noop", "console"), str(tmp_path))
    checkpoint = read_checkpoint(str(LEFT))
    assert checkpoint is not None
    versions = version_of(before, "out"), version_of(after, "out")
    found = by_order(after, after.node("out"), *versions, checkpoint, TargetChanges("out"), load_registry)
    assert found.changes == ()
