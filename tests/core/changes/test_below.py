"""What is said of edits that stand behind state, and that Spark's optimizer puts before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import load_document
from tests.core.changes.carried import CARRIED
from tests.core.changes.let_through import LET_THROUGH
from tests.core.changes.nested import NESTED
from tests.core.changes.pushed import EDITS, PUSHED
from tests.core.changes.several import SEVERAL

if TYPE_CHECKING:
    from gem_bundle.pipeline.plan import Plan
    from tests.core.changes.pushed import Pushed


def plan(text: str) -> Plan:
    checked = check_definition(load_document(parse(text, "shop.yaml")))
    assert checked.plan is not None, [str(found) for found in checked.diagnostics]
    return checked.plan


@pytest.mark.parametrize(
    "edit",
    [*EDITS, *NESTED, *CARRIED, *SEVERAL, *LET_THROUGH],
    ids=lambda edit: re.sub(r"\W", "_", edit.name),
)
def test_what_is_said_of_what_gets_before_state(edit: Pushed) -> None:
    before, after = map(plan, edit.versions())
    (found,) = plan_against(after, before)
    told = [(c.code, c.message) for c in found.changes]
    assert found.verdict == edit.verdict, told
    refused = [change.message for change in found.changes if change.verdict == "refused"]
    assert not any("no row is different" in message for message in refused), told


@pytest.mark.parametrize(
    "setting",
    [
        "spark.sql.optimizer.excludedRules: PushDownPredicates",
        "spark.sql.constraintPropagation.enabled: false",
    ],
)
def test_what_is_said_of_how_spark_plans(setting: str) -> None:
    text, _ = PUSHED[0].versions()
    other = text.replace("sources:", f"spark: {{{setting}}}\nsources:", 1)
    (found,) = plan_against(plan(other), plan(text))
    assert [(change.verdict, change.code) for change in found.changes] == [("mixed", "GB448")]
    stateless = text.replace("input: f, output_mode", "input: a, output_mode")
    (found,) = plan_against(
        plan(other.replace("input: f, output_mode", "input: a, output_mode")), plan(stateless)
    )
    assert found.verdict == "same"
