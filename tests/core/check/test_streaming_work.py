"""How much work the streaming rules are: as much for each operator, however long the chain is."""

from __future__ import annotations

import pytest

from gem_bundle.check.checker import check_definition
from tests.core.checking import load
from tests.core.streams import gems
from tests.counting import calls_of

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


def calls(nodes: int, targets: int, mode: str) -> int:
    """What a check has to do."""
    loaded = load(pipeline(nodes, targets, mode))
    codes = {d.code for d in check_definition(loaded, gems()).diagnostics}
    assert {"GB308", "GB323", "GB328", "GB329"} - codes <= ({"GB308"} if mode == "append" else set())
    return calls_of(lambda: check_definition(loaded, gems()))


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_chain_three_times_as_long_is_three_times_the_work(mode: str) -> None:
    assert calls(300, 6, mode) < 3.6 * calls(100, 6, mode)


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_more_targets_are_little_more_work(mode: str) -> None:
    one, many = calls(100, 1, mode), calls(100, 10, mode)
    assert many < 2 * one
    assert many < 100 * 1500
