"""The picture of a pipeline in a notebook: well-formed, safe, and no node lies on another."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser import Browser

SVG = "{http://www.w3.org/2000/svg}"


def boxes(pipeline: Pipeline) -> list[tuple[float, float, float, float]]:
    """The boxes of the nodes, each within the picture."""
    root = ET.fromstring(pipeline._repr_html_())
    (picture,) = root.iter(f"{SVG}svg")
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    found = []
    for box in picture.iter(f"{SVG}rect"):
        left, top = float(box.attrib["x"]), float(box.attrib["y"])
        right, bottom = left + float(box.attrib["width"]), top + float(box.attrib["height"])
        assert left > 0
        assert top > 0
        assert right < width
        assert bottom < height
        found.append((left, top, right, bottom))
    return found


def pipeline_of(inputs: list[list[int]]) -> Pipeline:
    """A source, and for each list a transform that reads the nodes before it of those numbers."""
    made = Pipeline("drawn").source("n0", "rate")
    for number, read in enumerate(inputs, 1):
        names = sorted({f"n{one % number}" for one in read})
        made.transform(f"n{number}", "union", names)
    return made.target("end", "console", f"n{len(inputs)}")


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), max_size=40))
@settings(deadline=None, max_examples=60)
def test_no_node_lies_on_another_and_each_is_behind_what_it_reads(inputs: list[list[int]]) -> None:
    found = boxes(pipeline_of(inputs))
    assert len(found) == len(inputs) + 2
    for one, other in combinations(found, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for number, read in enumerate(inputs, 1):
        assert all(found[one % number][2] < found[number][0] for one in read)


def test_it_says_what_check_says() -> None:
    good = Pipeline("clicks", version="1.2.0").source("ticks", "rate").target("screen", "console", "ticks")
    assert "<strong>clicks 1.2.0</strong>: ok (2 nodes)" in good._repr_html_()
    bad = good.transform("<b>", "filter", "tickz", {"condition": "</svg><script>alert(1)</script>"})
    text = bad._repr_html_()
    assert "<script" not in text
    assert "<b>" not in text
    assert [str(found).splitlines()[0] for found in bad.check()] != []
    for found in bad.check():
        assert found.code in text
    assert "#b3261e" in text, "the node that is wrong is marked"
    assert "<script" not in Pipeline.load("<script>.yaml")._repr_html_()


def test_what_cant_be_run_is_drawn_too(tmp_path: Path) -> None:
    circle = Pipeline("circle").transform("a", "select", "b").transform("b", "select", "a")
    assert len(boxes(circle.transform("own", "select", "own").target("end", "console", "b"))) == 4
    open_one = Pipeline("open", parameters={"topic": {"type": "string"}})
    found = open_one.source(
        "clicks", "kafka", {"subscribe": "${topic}", "bootstrap_servers": "${env:NOWHERE}:1"}
    )
    assert "clicks" in found._repr_html_()
    file = tmp_path / "broken.yaml"
    file.write_text("pipeline: [")
    assert "broken.yaml</strong>: 1 error (0 nodes)" in Pipeline.load(file)._repr_html_()


@pytest.mark.programs
def test_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    pipeline = pipeline_of([[0], [0], [1, 2], [0], [3, 4], [5, 0], [6, 3], [7]])
    page = tmp_path / "picture.html"
    page.write_text(f"<!doctype html><html lang='en'><title>x</title>{pipeline._repr_html_()}</html>")
    browser.open(page.as_uri(), width=1200, height=400)
    assert browser.run("return document.querySelectorAll('svg rect').length") == 10
    assert browser.messages() == []
    browser.picture("notebook")
