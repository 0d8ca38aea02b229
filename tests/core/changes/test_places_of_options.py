"""Another place has one code, whichever option says it and whatever is known of its value."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import LoadOptions, load_values
from tests.core.changes.edits import plan, verdict

SHOP = """
pipeline: shop
sources:
  read: SOURCE
targets:
  out: TARGET
"""
NOOP = "{gem: noop, input: read}"
TICKS = "{gem: rate}"
DELTA = "{gem: delta, options: {path: data}}"
KAFKA = '{gem: kafka, options: {bootstrap_servers: "a:9092", subscribe: x}}'
JDBC = '{gem: jdbc, options: {url: "jdbc:postgresql://a/shop", table: t, increasing: id}}'
INTO_DELTA = "{gem: delta, input: read, options: {path: out}}"
INTO_KAFKA = '{gem: kafka, input: read, options: {bootstrap_servers: "a:9092", topic: x}}'
INTO_JDBC = '{gem: jdbc, input: read, options: {url: "jdbc:postgresql://a/shop", table: t}}'


def shop(source: str = TICKS, target: str = NOOP) -> str:
    return SHOP.replace("SOURCE", source).replace("TARGET", target)


@pytest.mark.parametrize(
    ("source", "old", "new", "effect", "said"),
    [
        (DELTA, "path: data", "path: other", "refused", "`path` was `/shop/data` and is"),
        (DELTA, "path: data", "table: t", "refused", "`path` was `/shop/data`, and now `table` is `t`;"),
        (KAFKA, "a:9092", "b:9092", "skipped", "`bootstrap_servers` was"),
        (
            KAFKA,
            "subscribe: x",
            "assign: {x: [0]}",
            "refused",
            '`subscribe` was `["x"]`, and now `assign` is',
        ),
        (
            KAFKA,
            "subscribe: x",
            "subscribe_pattern: x.*",
            "continues",
            "and now `subscribe_pattern` is `x.*`;",
        ),
        (JDBC, "//a/", "//b/", "skipped", "`url` was"),
        (JDBC, "table: t", "query: select 1 as id", "skipped", "`table` was `t`, and now `query` is"),
    ],
)
def test_of_a_source(source: str, old: str, new: str, effect: str, said: str) -> None:
    (change,) = verdict(shop(source), shop(source.replace(old, new))).changes
    assert (change.verdict, change.code) == (effect, "GB414")
    assert said in change.message
    assert change.path[-1] == re.findall(r"`(\w+)` (?:was|is)", change.message)[-1]
    # The other way round it is the same kind of edit.
    (back,) = verdict(shop(source.replace(old, new)), shop(source)).changes
    assert back.code == "GB414"


@pytest.mark.parametrize(
    ("target", "old", "new", "said"),
    [
        (INTO_DELTA, "path: out", "table: t", "`path` was `/shop/out`, and now `table` is `t`;"),
        (INTO_KAFKA, "a:9092", "b:9092", "`bootstrap_servers` was"),
        (INTO_KAFKA, "topic: x", "topic_column: topic", "`topic` was `x`, and now `topic_column` is"),
        (INTO_JDBC, "//a/", "//b/", "`url` was"),
        (INTO_JDBC, "table: t", "table: u", "the old one stays"),
    ],
)
def test_of_a_target(target: str, old: str, new: str, said: str) -> None:
    changes = verdict(shop(KAFKA, target), shop(KAFKA, target.replace(old, new))).changes
    assert [(change.verdict, change.code) for change in changes] == [("from_now_on", "GB431")]
    assert said in changes[0].message


def test_also_where_its_place_is_not_known() -> None:
    text = shop(DELTA.replace("data", '"${env:DIR}"'), INTO_DELTA.replace("out}", '"${env:OUT}/b"}'))
    old = version_of(plan(text, variables={"DIR": "/one", "OUT": "/two"}), "out")
    document = parse(dedent(text.replace("${env:DIR}", "${env:DIR}/more").replace("}/b", "}/c")), "shop.yaml")
    options = LoadOptions(environment={}, skip_env=True)
    unset = check_definition(load_values(document.values, document, Path("/shop"), "shop.yaml", options)).plan
    assert unset is not None
    new = version_of(unset, "out")
    assert [node.places for node in new.nodes] == [{}, {}]
    nothing = replace(old, nodes=tuple(replace(node, places={}) for node in old.nodes))
    for before in (old, nothing):
        found = compare(before, new, unset, "out")
        assert [(change.code, change.node) for change in found.changes] == [
            ("GB414", "read"),
            ("GB431", "out"),
        ]


def test_a_topic_that_is_named_by_another_option_was_not_forgotten() -> None:
    lenient = KAFKA.replace("subscribe: x", "subscribe: x, fail_on_data_loss: false")
    assigned = shop(lenient.replace("subscribe: x", "assign: {x: [0]}"))
    found = verdict(assigned, shop(lenient), earlier=shop(lenient))
    assert "again" not in {change.verdict for change in found.changes}
