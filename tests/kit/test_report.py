"""What a test that failed says, without a JVM."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.pipeline.secrets import SecretStore
from gem_bundle.testing.rows.compare import Difference, Line
from gem_bundle.testing.running.outcome import Captured, Mismatch, StepOutcome, TestOutcome
from gem_bundle.testing.running.report import explanation, headline, junit_xml

PLACE = Place("orders.test.yaml", 7, 9)
ROWS = Mismatch(
    "rows", "1 row is missing", "table", Difference("1 row is missing", (Line("missing", "- {a: 1}"),)), PLACE
)
FAILURE = Diagnostic("GB507", "error", "the query failed", place=Place("orders.yaml", 3), hint="Look at it.")
NOTE = Diagnostic("GB709", "note", "a setting doesn't count")


def outcome(*steps: StepOutcome, time_zone: str = "UTC") -> TestOutcome:
    return TestOutcome(
        "late orders", "orders.test.yaml", PLACE, list(steps), time_zone=time_zone, seconds=1.25
    )


def test_a_step_says_what_differs_and_where_the_watermark_is() -> None:
    captured = {
        "table": Captured("table", watermark="2026-01-05T08:30:00.000Z", late_rows=2),
        "other": Captured("other", watermark="2026-01-05T07:00:00.000Z"),
    }
    wrong = StepOutcome(2, PLACE, captured, mismatches=[ROWS])

    found = outcome(StepOutcome(1), wrong, time_zone="Europe/Oslo")

    assert explanation(found) == [
        "step 2 (orders.test.yaml:7:9):",
        "  target `table`: 1 row is missing",
        "    - {a: 1}",
        "  watermark of `table`: 2026-01-05 09:30:00, 2 rows were late",
    ]
    assert headline(found) == "step 2: target `table`: 1 row is missing"
    assert (
        explanation(found, lambda text, role: f"<{role}>{text}")[0] == "<step>step 2 (orders.test.yaml:7:9):"
    )
    assert explanation(found, lambda text, role: f"<{role}>{text}")[2] == "    <missing>- {a: 1}"


def test_a_step_that_failed_says_why_unless_it_was_to_fail() -> None:
    failed = outcome(StepOutcome(1, failures=[FAILURE]))
    expected = outcome(StepOutcome(1, failures=[FAILURE], expected_failure="GB507"))

    assert explanation(failed) == [
        "step 1:",
        "  orders.yaml:3: error[GB507]: the query failed",
        "      Look at it.",
    ]
    assert headline(failed) == "step 1: the query failed"
    assert (explanation(expected), headline(expected)) == ([], "passed")


def test_a_test_that_cant_start_says_why() -> None:
    found = replace(outcome(), diagnostics=[NOTE, FAILURE])
    other = replace(found, mismatches=[Mismatch("failure", "it was to fail with GB101")])

    assert explanation(found) == ["orders.yaml:3: error[GB507]: the query failed", "    Look at it."]
    assert headline(found) == "the query failed"
    assert headline(other) == "it was to fail with GB101"


def test_secrets_arent_shown() -> None:
    name = "GEM_BUNDLE_SECRET_KAFKA_PASSWORD"
    assert SecretStore({name: "hunter2hunter2"}).find("kafka", "password")[0] == "hunter2hunter2"
    failure = replace(FAILURE, message="refused hunter2hunter2")

    found = outcome(StepOutcome(1, failures=[failure]))

    assert "hunter2" not in "\n".join([*explanation(found), headline(found), junit_xml({"f": [found]}, {})])


def test_junit_xml_counts_what_passed_and_what_failed() -> None:
    found = {"a": [outcome(), outcome(StepOutcome(1, mismatches=[ROWS]))], "b": [outcome()]}

    root = ET.fromstring(junit_xml(found, {"b": [FAILURE, NOTE], "c": [NOTE]}))

    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "1", "1")
    suites = {suite.get("name"): suite for suite in root}
    assert (suites["a"].get("failures"), suites["a"].get("time")) == ("1", "2.500")
    assert suites["b"].get("errors") == "1"
    assert [case.get("time") for case in suites["b"]] == ["0.000", "1.250"]
    (failure,) = root.iter("failure")
    assert failure.get("message") == "step 1: target `table`: 1 row is missing"
    assert failure.text == "step 1:\n  target `table`: 1 row is missing\n    - {a: 1}"
