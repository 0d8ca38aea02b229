"""What tests came to, for a person and as JUnit XML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gem_bundle.pipeline.secrets import hidden
from gem_bundle.testing.running.event_time import watermark_text
from gem_bundle.testing.running.outcome import called

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.testing.rows.compare import Paint
    from gem_bundle.testing.running.outcome import Mismatch, StepOutcome, TestOutcome

_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def explanation(outcome: TestOutcome, paint: Paint | None = None) -> list[str]:
    """Why a test failed: each step that went wrong, with the rows that differ and the watermark.

    Args:
        outcome: What the test came to.
        paint: Colours a text by its role: ``missing``, ``unexpected``, ``changed`` or ``step``.
    """
    lines: list[str] = []
    if outcome.expected_failure is None:
        lines += _diagnostics(outcome.diagnostics)
    for mismatch in outcome.mismatches:
        lines += _mismatch(mismatch, paint)
    for step in outcome.steps:
        if not step.ok:
            lines += _step(step, outcome, paint)
    return [hidden(line) for line in lines]


def headline(outcome: TestOutcome) -> str:
    """Why a test failed, in one line."""
    found = [_subject(mismatch) for mismatch in outcome.mismatches]
    found += [d.message for d in outcome.diagnostics if d.is_error and outcome.expected_failure is None]
    for step in outcome.steps:
        if not step.ok:
            found += [f"step {step.number}: {_subject(mismatch)}" for mismatch in step.mismatches]
            if step.expected_failure is None:
                found += [f"step {step.number}: {failure.message}" for failure in step.failures]
    return hidden((found or ["passed"])[0]).partition("\n")[0]


def _step(step: StepOutcome, outcome: TestOutcome, paint: Paint | None) -> list[str]:
    place = f" ({step.place})" if step.place.line else ""
    title = f"step {step.number}{place}:"
    lines = [paint(title, "step") if paint else title]
    for mismatch in step.mismatches:
        lines += (f"  {line}" for line in _mismatch(mismatch, paint))
    if step.expected_failure is None:
        lines += (f"  {line}" for line in _diagnostics(step.failures))
    concerned = {mismatch.target for mismatch in step.mismatches}
    for name, captured in step.captured.items():
        if concerned and not concerned & {None, name}:
            continue
        at = watermark_text(captured.watermark, outcome.time_zone)
        if at is not None:
            late = captured.late_rows
            dropped = f", {late:,} {'row was' if late == 1 else 'rows were'} late" if late else ""
            lines.append(f"  watermark of `{name}`: {at}{dropped}")
    return lines


def _mismatch(mismatch: Mismatch, paint: Paint | None) -> list[str]:
    details = [] if mismatch.difference is None else mismatch.difference.lines(paint)
    return [_subject(mismatch), *(f"  {line}" for line in details)]


def _subject(mismatch: Mismatch) -> str:
    return f"{called(mismatch.target)}: {mismatch.message}" if mismatch.target else mismatch.message


def _diagnostics(diagnostics: Iterable[Diagnostic]) -> list[str]:
    return [line for found in diagnostics if found.is_error for line in str(found).splitlines()]


def junit_xml(
    outcomes: Mapping[str, Sequence[TestOutcome]], broken: Mapping[str, Sequence[Diagnostic]]
) -> str:
    """The outcomes in the format that CI servers read.

    Args:
        outcomes: What the tests of each file came to.
        broken: What is wrong with files whose tests can't be run.
    """
    root = ET.Element("testsuites", name="gem-bundle test")
    for file in dict.fromkeys([*outcomes, *broken]):
        suite = ET.SubElement(root, "testsuite", name=file)
        errors = [found for found in broken.get(file, ()) if found.is_error]
        if errors:
            case = ET.SubElement(suite, "testcase", classname=file, name="the file", time="0.000")
            text = "\n".join(_diagnostics(errors))
            _say(ET.SubElement(case, "error"), errors[0].message, text)
        found = outcomes.get(file, ())
        for outcome in found:
            case = ET.SubElement(suite, "testcase", classname=file, name=_clean(outcome.name))
            case.set("file", file)
            case.set("line", str(outcome.place.line))
            case.set("time", f"{outcome.seconds:.3f}")
            if not outcome.ok:
                _say(ET.SubElement(case, "failure"), headline(outcome), "\n".join(explanation(outcome)))
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(sum(not outcome.ok for outcome in found)))
        suite.set("errors", str(int(bool(errors))))
        suite.set("time", f"{sum(outcome.seconds for outcome in found):.3f}")
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _say(element: ET.Element, message: str, text: str) -> None:
    element.set("message", _clean(message))
    element.text = _clean(text)


def _clean(text: str) -> str:
    """The text without what XML can't hold."""
    return _CONTROL.sub("?", text)
