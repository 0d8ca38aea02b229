"""What the tests of the streaming rules share: pieces of pipeline files, checked with the installed gems."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from gem_bundle.check.checker import check_definition
from gem_bundle.plugins import load_registry
from tests.core.checking import load, marked

if TYPE_CHECKING:
    from gem_bundle.check.checker import Checked
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.plugins import Registry

SECTIONS = {
    "pipeline": "pipeline: p\n",
    "sources": "sources:\n  ticks: {gem: rate}\n",
    "targets": "targets:\n  screen: {gem: console, input: ticks}\n",
}
TIMELY = "  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}\n"
BY_WINDOW = """
    options:
      window: {column: timestamp, duration: 1 minute}
      aggregates: {rows: count(*)}
"""
BY_VALUE = "options: {group_by: [value], aggregates: {rows: count(*)}}"
STATIC = """
  names:
    gem: file
    mode: batch
    options: {format: csv, path: names, schema: "value bigint, name string, since timestamp"}
"""
TWO_STREAMS = """
sources:
  ads: {gem: rate}
  clicks: {gem: rate}
"""
TWO_MARKED = (
    TWO_STREAMS
    + """
transforms:
  shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 minute}}
  clicked: {gem: watermark, input: clicks, options: {column: timestamp, delay: 2 minutes}}
"""
)


@cache
def gems() -> Registry:
    """The installed gems."""
    return load_registry({})


def check(piece: str) -> Checked:
    """The verdict on a pipeline of which a piece is given; the sections that it leaves out stand behind it."""
    there = set(re.findall(r"^(\w+):", piece, re.MULTILINE))
    text = piece + "".join(section for name, section in SECTIONS.items() if name not in there)
    checked = check_definition(load(text), gems())
    failed = [str(d) for d in checked.diagnostics if d.code == "GB203"]
    assert not failed, "a gem that fails can't be judged: " + "\n".join(failed)
    return checked


def facts_of(piece: str, node: str) -> Facts:
    """What is known of the rows that flow out of a node of a pipeline without errors."""
    checked = check(piece)
    assert checked.plan is not None, "\n".join(map(str, checked.diagnostics))
    return checked.plan.facts[node]


def errors(piece: str) -> list[tuple[str, str]]:
    """The codes and nodes of the errors of a pipeline, in the order of the file."""
    return [(d.code, d.node or "") for d in check(piece).diagnostics if d.is_error]


def assert_found(piece: str, *codes: str) -> list[Diagnostic]:
    """Check a piece: exactly these codes are found, each where the next mark in the piece stands.

    Returns:
        What was found, in that order.
    """
    text, places = marked(piece)
    assert len(places) == len(codes), "a mark for each code"
    found = sorted(check(text).diagnostics, key=lambda d: (d.line, d.column, d.code))
    wanted = [(code, *place) for code, place in zip(codes, places, strict=True)]
    shown = "\n".join(map(str, found))
    assert [(d.code, d.line, d.column) for d in found] == wanted, shown
    return found
