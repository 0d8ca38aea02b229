"""How much work a plan is: its nodes are walked along, and not each of them from each."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict
from tests.counting import calls_of


def chain(count: int, step: str) -> str:
    """A pipeline of steps one behind the other, and groups behind them and before the last ones."""
    names = [f"s{number}" for number in range(count)]
    steps = [
        f"  {name}: {{{step}, input: {before}}}".replace("NUMBER", name[1:])
        for name, before in zip(names, ["a", *names], strict=False)
    ]
    steps[count // 2] = (
        f"  s{count // 2}: {{gem: aggregate, input: s{count // 2 - 1}, options: {{group_by: [page, n], "
        "aggregates: {m: max(n)}}}"
    )
    lines = "\n".join(steps)
    return (
        'pipeline: p\nsources:\n  a: {gem: file, options: {format: json, path: a, schema: "page string, n int"}}\n'
        f"transforms:\n{lines}\ntargets:\n  out: {{gem: console, input: {names[-1]}, output_mode: update}}\n"
    )


@pytest.mark.parametrize(
    "step",
    [
        "gem: filter, options: {condition: n > NUMBER}",
        "gem: with_columns, options: {columns: {n: n + NUMBER}}",
    ],
)
def test_twice_as_many_nodes_are_little_more_than_twice_the_work(step: str) -> None:
    def work(count: int) -> int:
        one = chain(count, step)
        return calls_of(lambda: verdict(one, one.replace(" > 2}", " > 3}").replace("+ 2}", "+ 3}")))

    work(10)  # what is loaded and kept
    assert work(80) < 2.6 * work(40)
