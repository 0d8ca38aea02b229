"""What sources find when a check may look: the columns of what is there, in place of unknown ones."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gem_bundle import Column, Facts, GemError, Source, Target, Transform
from gem_bundle.check.checker import Checked, check_definition
from gem_bundle.check.stages.inference import as_declared
from tests.core.checking import load, registry

PIPELINE = """
pipeline: p
mode: batch
sources:
  clicks: {gem: there}
transforms:
  known: {gem: pass, input: clicks}
targets:
  out: {gem: sink, input: known}
"""
THERE = (Column("page", "string"), Column("at", "timestamp"), Column("team"))


class ThereSource(Source):
    """Has columns that only a look tells; counts the looks."""

    answer: Any = THERE
    looks: list[bool | None]

    def discover(self) -> Any:
        """What the test wants."""
        self.looks.append(self.streaming)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class PassTransform(Transform):
    """Passes rows on."""

    def infer(self, *inputs: Facts) -> Facts:
        """The same rows."""
        return inputs[0]


def source(answer: Any, **attributes: Any) -> type[ThereSource]:
    return type("Made", (ThereSource,), {"answer": answer, "looks": [], **attributes})


def run(gem: type[Source], text: str = PIPELINE, *, discover: bool = True, **more: type[Any]) -> Checked:
    gems = registry(source_there=gem, transform_pass=PassTransform, **more)
    return check_definition(load(text), gems, discover=discover)


def columns(checked: Checked, node: str) -> tuple[Column, ...] | None:
    assert checked.plan is not None, checked.diagnostics
    return checked.plan.facts[node].columns


def test_columns_that_are_found_flow_on() -> None:
    made = source(iter(THERE))
    checked = run(made)
    assert checked.diagnostics == []
    assert columns(checked, "clicks") == columns(checked, "known") == THERE
    assert made.looks == [False]
    assert checked.plan is not None
    assert checked.plan.facts["clicks"].streaming is False
    assert checked.plan.facts["clicks"].hidden == frozenset()


def test_a_source_is_told_that_it_is_a_stream() -> None:
    made = source(THERE)
    run(made, PIPELINE.replace("mode: batch", "mode: stream"))
    assert made.looks == [True]


def test_nobody_looks_unless_asked() -> None:
    made = source(THERE)
    checked = run(made, discover=False)
    assert columns(checked, "clicks") is columns(checked, "known") is None
    assert made.looks == []


def test_nobody_looks_where_columns_are_declared() -> None:
    declared = (Column("page", "string"),)
    made = source(THERE, infer=lambda self: Facts(columns=declared))
    assert columns(run(made), "clicks") == declared
    assert made.looks == []


def test_a_source_that_cannot_tell() -> None:
    assert columns(run(source(None)), "known") is None


def test_a_source_without_the_method_stays_unknown() -> None:
    class OldSource(Source):
        """Written before sources could look."""

    checked = run(OldSource)
    assert checked.diagnostics == []
    assert columns(checked, "known") is None


def test_an_error_that_the_gem_knows_is_the_pipelines() -> None:
    error = GemError("GB505", "nothing is there", "Create it.")
    checked = run(source(error))
    (found,) = checked.diagnostics
    assert (found.code, found.severity, found.node, found.line) == ("GB505", "error", "clicks", 5)
    assert found.message == "source `clicks`: nothing is there"
    assert checked.plan is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (["page"], "TypeError: columns are needed, not ['page']"),
        (7, "TypeError"),
        (Facts(columns=THERE), "TypeError"),
    ],
)
def test_a_bug_of_the_gem_does_not_take_the_check_down(answer: Any, said: str) -> None:
    checked = run(source(answer))
    (found,) = checked.diagnostics
    assert (found.code, found.severity, found.line) == ("GB203", "warning", 5)
    assert "the gem `there` fails in `discover`: " in found.message
    assert said in found.message
    assert columns(checked, "known") is None


def test_sources_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=20)

    def discover(self: Source) -> tuple[Column, ...]:
        together.wait()
        return (Column("page"),)

    text = PIPELINE.replace("  clicks:", "  a: {gem: there}\n  b: {gem: there}\n  clicks:")
    text += "  more: {gem: sink, input: a}\n  most: {gem: sink, input: b}\n"
    checked = run(source(None, discover=discover), text)
    assert checked.diagnostics == []
    assert [columns(checked, name) for name in ("a", "b", "clicks")] == [(Column("page"),)] * 3


def test_a_node_that_is_broken_is_not_asked() -> None:
    made = source(THERE)
    checked = run(made, PIPELINE.replace("{gem: there}", "{gem: there, options: {nonsense: 1}}"))
    assert [found.code for found in checked.diagnostics] == ["GB204"]
    assert made.looks == []


def test_rules_of_gems_see_what_was_found() -> None:
    seen: list[tuple[Column, ...] | None] = []

    class NosyTarget(Target):
        """Looks at its input."""

        def check(self, *inputs: Facts) -> tuple[()]:
            """Remember it."""
            seen.extend(facts.columns for facts in inputs)
            return ()

    run(source(THERE), PIPELINE.replace("gem: sink", "gem: nosy"), target_nosy=NosyTarget)
    assert seen == [THERE]


def test_what_was_found_can_be_left_out_again() -> None:
    text = PIPELINE.replace("  clicks:", "  topic: {gem: topic, options: {topic: t}}\n  clicks:")
    plan = run(source(THERE), text + "  more: {gem: sink, input: topic}\n").plan
    assert plan is not None
    declared = as_declared(plan).facts
    assert declared["clicks"].columns is None
    assert declared["clicks"].streaming is False
    assert declared["topic"] == plan.facts["topic"]
    assert plan.facts["clicks"].columns == THERE


def test_a_transform_looks_before_anything_is_inferred() -> None:
    class LookingTransform(Transform):
        """Knows its columns once it has looked."""

        found: tuple[Column, ...] | None = None
        answer: Exception | None = None

        def discover(self) -> None:
            if self.answer is not None:
                raise self.answer
            self.found = THERE

        def infer(self, *inputs: Facts) -> Facts:
            return inputs[0].with_columns(self.found)

    text = PIPELINE.replace("known: {gem: pass", "looked: {gem: looking, input: clicks}\n  known: {gem: pass")
    text = text.replace("input: clicks}\ntargets", "input: looked}\ntargets")
    made = source(None)
    assert columns(run(made, text, transform_looking=LookingTransform), "known") == THERE
    unasked = run(made, text, discover=False, transform_looking=LookingTransform)
    assert columns(unasked, "known") is None

    class FailingTransform(LookingTransform):
        answer = GemError("GB522", "there is no such subject")

    (found,) = run(made, text, transform_looking=FailingTransform).diagnostics
    assert (found.code, found.message) == ("GB522", "transform `looked`: there is no such subject")
