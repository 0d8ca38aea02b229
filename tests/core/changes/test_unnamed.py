"""Sources in a checkpoint that has no names for them: Spark goes by their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.model import TargetChanges
from gem_bundle.changes.unnamed import by_order
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
# It has two sources, and no names for them.
LEFT = Path(__file__).with_name("checkpoints") / "4.1.1" / "joined"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("[a, b]", "[b, a]")], [("refused", "b"), ("refused", "a")]),
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
    ids=["swapped", "another name", "another gem", "another gem under its id"],
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
    found = by_order(after, after.node("out"), *versions, checkpoint, TargetChanges("out"))
    assert [(change.verdict, change.node) for change in found.changes] == expected
    assert {change.code for change in found.changes} <= {"GB414"}
