"""Sources that are put back: what read them has run on the checkpoint, and was not the last to do so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.forgotten import forgotten
from gem_bundle.changes.logs import Commit, Offsets
from tests.core.changes.edits import plan, verdict

BOTH = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, page string, at timestamp"}}
  b: {gem: file, options: {format: json, path: b, schema: "n int, page string, at timestamp"}}
  k: {gem: file, options: {format: json, path: k, schema: "n int, page string, at timestamp"}}
transforms:
  all: {gem: union, inputs: [a, k, b]}
targets:
  out: {gem: file, input: all, options: {format: json, path: out}}
"""
ONE = BOTH.replace(BOTH.splitlines()[4] + "\n", "").replace("[a, k, b]", "[a, k]")
TOPICS = """
pipeline: shop
sources:
  a: {gem: kafka, options: {bootstrap_servers: "kafka:9092", subscribe: [x, y], starting_offsets: earliest}}
targets:
  out: {gem: kafka, input: a, options: {bootstrap_servers: "kafka:9092", topic: out}}
"""
TOPIC = TOPICS.replace("[x, y]", "[x]")


def test_one_that_was_never_read_is_new() -> None:
    assert verdict(ONE, BOTH).verdict == "continues"
    assert verdict(ONE, BOTH, earlier=ONE).verdict == "continues"


@pytest.mark.parametrize(
    "after",
    [BOTH, BOTH.replace("  b:", "  c:").replace("k, b]", "k, c]"), BOTH.replace("path: b,", "path: d,")],
    ids=["itself", "called otherwise", "another place under its id"],
)
def test_one_that_an_earlier_version_has_read_is_read_again(after: str) -> None:
    found = verdict(ONE, after, earlier=BOTH)
    (change,) = [change for change in found.changes if change.code == "GB410"]
    assert (found.verdict, change.verdict) == ("again", "again")
    assert "was read by an earlier version" in change.message


def test_of_rows_that_are_dropped_when_they_come_again_nothing_does() -> None:
    once = "  once: {gem: deduplicate, input: all}\ntargets:"
    one, both = (
        text.replace("targets:", once).replace(
            "input: all, options: {format", "input: once, options: {format"
        )
        for text in (ONE, BOTH)
    )
    assert verdict(one, both, earlier=both).verdict == "continues"


def test_a_topic_that_an_earlier_version_has_read_is_read_again() -> None:
    assert verdict(TOPIC, TOPICS).verdict == "continues"
    found = verdict(TOPIC, TOPICS, earlier=TOPICS)
    assert found.verdict == "again"
    assert "has read kafka://kafka:9092/y" in " ".join(change.message for change in found.changes).replace(
        "`", ""
    )


def test_one_that_a_begun_micro_batch_does_not_know_is_read_again() -> None:
    """Version 2 has begun micro-batch 1 without it: Spark goes on from that, whoever ends it."""
    shop = plan(BOTH)
    version = version_of(shop, "out")
    names = {node.id: reader for node in version.nodes for reader in node.readers}
    known, less = (
        Offsets(0, "v2", sources={name: {"logOffset": 0} for name in names.values()}),
        Offsets(1, "v2", sources={names[node]: {"logOffset": 0} for node in "ak"}),
    )
    begun = SparkCheckpoint("/c", offsets=(known, less), commits=(Commit(0),))
    (change,) = forgotten(shop, version, version, begun)
    assert (change.verdict, change.code, change.node) == ("again", "GB410", "b")
    whole = replace(begun, offsets=(known, replace(known, batch=1)))
    assert list(forgotten(shop, version, version, whole)) == []
    done = replace(begun, commits=(Commit(0), Commit(1)))
    assert list(forgotten(shop, version, version, done)) == []
    # What ran never had it: it is a new one, and told as such.
    assert list(forgotten(shop, version, version_of(plan(ONE), "out"), begun)) == []
