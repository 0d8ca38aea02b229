"""What holds of verdicts on edits whatever Spark does, on drawn ones: so many more can be tried than run."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from gem_bundle.plugins import load_registry
from tests import samples
from tests.differential.edits.drawn import MOVED, Drawn, drawn_edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.pipeline.plan import Plan

EACH = 3
"""How many edits of one pipeline are drawn."""

# By these no row is different.
_ALIKE = frozenset({"same", "continues"})
# Sources that come and go, files from elsewhere and another output mode are another thing there than back.
_ONE_WAY = frozenset({"GB410", "GB411", "GB414", "GB433"})


@pytest.fixture(scope="module")
def edits() -> list[Drawn]:
    def drawn() -> Iterator[Drawn]:
        registry = load_registry()
        for number in count():
            yield from drawn_edits(f"{samples.seed()}:{number}", registry, EACH, asked=True)

    return list(islice(drawn(), samples.examples(120, 6000)))


def test_rows_with_other_columns_are_different_ones(edits: list[Drawn]) -> None:
    registry = load_registry()
    for edit in edits:
        before, after = (_columns(plan, edit.target) for plan in (edit.old, edit.new))
        if before is None or after is None or before == after or _is_rewritten(edit):
            continue
        assert edit.said(registry).verdict not in _ALIKE, edit.edit


def test_what_makes_no_difference_makes_none_back(edits: list[Drawn]) -> None:
    registry = load_registry()
    for edit in edits:
        if _is_rewritten(edit) or MOVED in edit.edit.kind or "with was" in edit.edit.kind:
            continue
        there = edit.said(registry)
        new, old = (version_of(plan, edit.target) for plan in (edit.new, edit.old))
        back = compare(new, old, edit.old, edit.target, registry=registry)
        if not _ONE_WAY & {change.code for change in (*there.changes, *back.changes)}:
            assert (there.verdict in _ALIKE) is (back.verdict in _ALIKE), (edit.edit, there, back)


def _columns(plan: Plan, target: str) -> set[tuple[str, str | None]] | None:
    """The columns of a target's rows; None where they aren't known."""
    (edge,) = plan.node(target).inputs
    columns = plan.facts[edge.key].columns
    return None if columns is None else {(column.name.lower(), column.type) for column in columns}


def _is_rewritten(edit: Drawn) -> bool:
    """Whether all rows come out anew, by the new rule, with each micro-batch."""
    return "complete" in {plan.node(edit.target).output_mode for plan in (edit.old, edit.new)}
