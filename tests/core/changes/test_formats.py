"""A plan as text, JSON and Markdown: what is accepted doesn't look as if it stopped a run; and colours."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gem_bundle.changes.formats.json import as_json
from gem_bundle.changes.formats.markdown import as_markdown
from gem_bundle.changes.formats.text import as_text, summary
from gem_bundle.changes.model import MEANINGS, VERDICTS, Change, TargetChanges, Verdict
from gem_bundle.diagnostics import Diagnostic, Place

MIXED = Change("mixed", "GB423", "it was | is", "some", (), Place("p.yaml", 5, 3), "Begin anew.")
LATER = Change("from_now_on", "GB424", "the code", "some", (), Place("p.yaml", 6, 3))
STOPPED = TargetChanges("out", (MIXED, LATER))
TAKEN = STOPPED.accepting([("GB423", "some")])


def painted(text: str, role: str) -> str:
    return f"<{role}>{text}</>"


def test_what_is_accepted_is_told_as_such_in_json() -> None:
    for target, accepted in ((STOPPED, False), (TAKEN, True)):
        found = json.loads(as_json([target], [], ok=not target.stops))["targets"]["out"]
        assert found["verdict"] == "mixed"
        assert [change["accepted"] for change in found["changes"]] == [accepted, False]


def test_what_is_accepted_does_not_stop_a_run_in_markdown() -> None:
    assert as_markdown("p.yaml", [STOPPED]).splitlines() == [
        "### ❌ `p.yaml`: mixed",
        "",
        f"{MEANINGS['mixed']} A run stops before it starts.",
        "",
        "**out**: mixed",
        "",
        "| verdict | line | code | what | |",
        "| --- | ---: | --- | --- | --- |",
        "| mixed | 5 | GB423 | it was \\| is | Begin anew. |",
        "| from_now_on | 6 | GB424 | the code |  |",
    ]
    assert as_markdown("p.yaml", [TAKEN]).splitlines() == [
        "### ⚠️ `p.yaml`: mixed (accepted)",
        "",
        f"{MEANINGS['mixed']} That is accepted and stops no run.",
        "",
        "**out**: mixed (accepted)",
        "",
        "| verdict | line | code | what | |",
        "| --- | ---: | --- | --- | --- |",
        "| mixed (accepted) | 5 | GB423 | it was \\| is |  |",
        "| from_now_on | 6 | GB424 | the code |  |",
    ]


def test_one_that_is_not_accepted_stops_a_run_whatever_the_others_are() -> None:
    other = TargetChanges("other", (replace(MIXED, verdict="skipped", code="GB411"),))
    lines = as_markdown("p.yaml", [TAKEN, other]).splitlines()
    assert lines[0] == "### ❌ `p.yaml`: mixed"
    assert lines[2].endswith("A run stops before it starts.")
    assert "**out**: mixed (accepted)" in lines
    assert "**other**: skipped" in lines
    half = (*STOPPED.changes, replace(MIXED, code="GB422"))
    lines = as_markdown("p.yaml", [TargetChanges("out", half).accepting([("GB423", "")])]).splitlines()
    assert lines[0] == "### ❌ `p.yaml`: mixed"
    assert "**out**: mixed" in lines


def test_with_errors_no_run_starts_whatever_is_accepted() -> None:
    wrong = Diagnostic("GB406", "error", "can't be seen", "more", ())
    lines = as_markdown("p.yaml", [TAKEN], [wrong], 1).splitlines()
    assert lines[0] == "### ❌ `p.yaml`: 1 mixed, 1 not known"
    assert "is accepted" not in lines[2]
    text, role = summary([TAKEN], 1)
    assert (role, "is accepted" in text) == ("error", False)


def test_an_error_stands_under_the_name_of_its_file() -> None:
    own = Diagnostic("GB406", "error", "can't be seen", "more", (), Place("p.yaml", 7, 3))
    other = Diagnostic("GB201", "error", "no such gem", "some", (), Place("old.yaml", 40, 3))
    lines = as_markdown("p.yaml", [], [other, own]).splitlines()
    rows = [line.partition(" GB")[0] for line in lines if line.startswith(("**", "| error"))]
    assert rows == ["| error | 7 |", "**`old.yaml`**", "| error | 40 |"]
    lines = as_markdown("p.yaml", [], [other]).splitlines()
    assert lines[3:5] == ["", "**`old.yaml`**"]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verdict_has_the_colour_of_what_it_does_to_a_run(verdict: Verdict) -> None:
    role = {"from_now_on": "warning"}.get(verdict, "ok")
    role = "error" if verdict in {"skipped", "again", "mixed", "refused"} else role
    target = TargetChanges("out", (replace(MIXED, verdict=verdict),), ("It can't be known.",))
    assert list(as_text([target], painted)) == [
        f"target <place>out</>: <{role}>{verdict}</>",
        f"  <place>p.yaml:5:3</>: <{role}>{verdict}[GB423]:</> it was | is",
        "<hint>      Begin anew.</>",
        "<note>  note: It can't be known.</>",
    ]
    assert summary([target])[1] == role


def test_what_is_accepted_has_the_colour_of_a_warning() -> None:
    assert list(as_text([TAKEN], painted)) == [
        "target <place>out</>: <warning>mixed</>",
        "  <place>p.yaml:5:3</>: <warning>mixed[GB423] (accepted):</> it was | is",
        "  <place>p.yaml:6:3</>: <warning>from_now_on[GB424]:</> the code",
    ]
    said = f"1 mixed. {MEANINGS['mixed']} That is accepted and stops no run."
    assert summary([TAKEN]) == (said, "warning")
    assert summary([STOPPED]) == (f"1 mixed. {MEANINGS['mixed']}", "error")


def test_where_it_is_not_known_what_becomes_of_a_target_the_summary_is_an_error() -> None:
    assert summary([], 1) == ("1 not known. The errors say why.", "error")
    assert summary([TargetChanges("out")], 1)[1] == "error"
    assert summary([]) == ("no target with a checkpoint", "ok")


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("same", "What can be compared goes on. The notes say what can't be known."),
        ("continues", "What can be compared goes on. The notes say what can't be known."),
        ("from_now_on", f"{MEANINGS['from_now_on']} The notes say what can't be known."),
        ("new", f"{MEANINGS['new']} The notes say what can't be known."),
        ("refused", MEANINGS["refused"]),
    ],
)
def test_what_cant_be_known_is_not_summed_up_as_right(verdict: Verdict, says: str) -> None:
    """A note of any target counts: the summary is about all of them."""
    worst = TargetChanges("out", (Change(verdict, "GB446", "it is"),))
    unsure = TargetChanges("other", (), ("whether it is so can't be known",))
    for targets in ([worst, unsure], [replace(worst, notes=unsure.notes)]):
        assert summary(targets)[0].endswith(f". {says}")
        assert says in as_markdown("p.yaml", targets).splitlines()[2]
    assert summary([worst])[0].endswith(f". {MEANINGS[verdict]}")
