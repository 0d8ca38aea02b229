"""What is accepted by a code or of a node that no change has: a typo gets a word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.accepting import acceptance, check_accepted, why_not
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.model import STOPS
from gem_bundle.changes.record import Accepted, Record, record_file, write_record
from gem_bundle.files import below
from tests.checked import plan_of
from tests.core.changes.edits import EDITS

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.pipeline.plan import Plan

TEXT = """
pipeline: shop
sources:
  clicks: {gem: file, was: views, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  slow: {gem: filter, input: clicks, options: {condition: n > 0}}
targets:
  out: {gem: noop, input: slow}
"""


def written(folder: Path, text: str = TEXT) -> Plan:
    file = folder / "shop.yaml"
    file.write_text(text, encoding="utf-8")
    return plan_of(file)


def said(plan: Plan, *accept: tuple[str, str]) -> list[str]:
    found = check_accepted(plan, ["out"], accept)
    assert {(d.code, d.severity, d.line) for d in found} <= {("GB408", "warning", 2)}
    return [f"{d.message} {d.hint}".strip() for d in found]


def test_a_node_that_there_is_not(tmp_path: Path) -> None:
    plan = written(tmp_path)
    none = "names no node of the pipeline, and none that has run"
    assert said(plan, ("GB423", "slwo"), ("GB423", "slow"), ("GB423", "slwo")) == [
        f"nothing is accepted by `GB423:slwo`: it {none} Did you mean `slow`?"
    ]
    assert said(plan, ("GB423", ""), ("GB414", "views"), ("GB447", "out")) == []
    assert said(plan, ("GB411", "much-else")) == [
        f"nothing is accepted by `GB411:much-else`: it {none} Known nodes: `clicks`, `out`, `slow`, `views`."
    ]


def test_a_node_that_has_run_may_have_been_accepted_long_ago(tmp_path: Path) -> None:
    former = version_of(written(tmp_path, TEXT.replace("slow", "fast")), "out")
    plan = written(tmp_path)
    assert len(said(plan, ("GB421", "fast"))) == 1
    now = replace(version_of(plan, "out"), accepted=(Accepted("GB411", "older"), Accepted("GB423")))
    write_record(plan.definition.record("out"), Record("out", (former, now), "q"))
    assert said(plan, ("GB421", "fast"), ("GB411", "older")) == []
    assert said(plan, ("GB421", "fats"))[0].endswith("Did you mean `fast`?")


def test_where_a_record_can_not_be_read_a_node_may_have_run(tmp_path: Path) -> None:
    plan = written(tmp_path)
    write_record(plan.definition.record("out"), Record("out"))
    place = tmp_path / below(*record_file(plan.definition.record("out")))
    place.write_text("{", encoding="utf-8")
    assert said(plan, ("GB421", "fast")) == []
    # Of codes no record tells.
    assert len(said(plan, ("GB42", "fast"))) == 1


def test_codes_that_no_change_has_that_stops(tmp_path: Path) -> None:
    plan = written(tmp_path)
    assert said(plan, ("GB42", ""), ("GB444", "out")) == [
        "nothing is accepted by `GB42`: it is not a code of a change, such as GB423, or GB423:some_node",
        "nothing is accepted by `GB444:out`: it never stops a run, so there is nothing to accept",
    ]


@pytest.mark.parametrize("code", ["GB409", "GB450", "GB499", "GB105", ""])
def test_what_is_no_change_is_nobodys_to_accept(code: str) -> None:
    assert why_not(code)


def test_all_that_stops_a_run_can_be_accepted() -> None:
    stopping = {code for edit in EDITS for code in edit.codes if edit.verdict in STOPS}
    assert [code for code in sorted(stopping) if why_not(code)] == []
    assert len(stopping) > 15


def test_a_colon_with_no_node_behind_it_is_not_for_all_of_them() -> None:
    for text in ("GB423:", "gb423 : "):
        with pytest.raises(ValueError, match=r"^`.*` names no node behind the colon; `.*` alone is for"):
            acceptance(text)
    with pytest.raises(ValueError, match="never stops a run"):
        acceptance("GB444:")
    assert acceptance("gb423") == ("GB423", "")
    assert acceptance("GB423: slow") == ("GB423", "slow")
