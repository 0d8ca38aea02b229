"""How long the streaming rules take: about as long as reading the file, however long the chain is."""

from __future__ import annotations

import time

import pytest

from gem_bundle.check.checker import check_definition
from tests.core.checking import load
from tests.core.streams import gems

STEPS = (
    "{{gem: watermark, input: {before}, options: {{column: timestamp, delay: 1 minute}}}}",
    "{{gem: deduplicate, input: {before}, options: {{columns: [value]}}}}",
    "{{gem: aggregate, input: {before}, "
    "options: {{group_by: [timestamp, value], aggregates: {{rows: count(*)}}}}}}",
    "{{gem: join, inputs: {{a: {before}, b: other}}, options: {{how: left_semi, on: [value]}}}}",
    "{{gem: sort, input: {before}, options: {{by: value}}}}",
)


def pipeline(nodes: int, targets: int, mode: str) -> str:
    """A chain of operators that the rules look at, with targets all along it."""
    lines = ["pipeline: p", "sources:", "  ticks: {gem: rate}", "  other: {gem: rate}", "transforms:"]
    before = "ticks"
    for n in range(nodes):
        lines.append(f"  n{n}: {STEPS[n % len(STEPS)].format(before=before)}")
        before = f"n{n}"
    lines.append("targets:")
    for n in range(targets):
        node = f"n{nodes - 1 - n * (nodes // targets)}"
        lines.append(f"  t{n}: {{gem: console, input: {node}, output_mode: {mode}}}")
    return "\n".join(lines) + "\n"


def seconds(nodes: int, targets: int, mode: str) -> float:
    """The processor's time for a check, the better one of two."""
    loaded = load(pipeline(nodes, targets, mode))
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        checked = check_definition(loaded, gems())
        best = min(best, time.process_time() - start)
        assert {"GB308", "GB323", "GB328", "GB329"} - {d.code for d in checked.diagnostics} <= (
            {"GB308"} if mode == "append" else set()
        )
    return best


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_chain_of_many_operators_with_many_targets_is_checked_at_once(mode: str) -> None:
    assert seconds(1500, 20, mode) < 1.5


def test_three_times_as_long_a_chain_doesnt_take_nine_times_as_long() -> None:
    seconds(10, 1, "update")
    assert seconds(1500, 1, "update") < 5 * seconds(500, 1, "update") + 0.1
