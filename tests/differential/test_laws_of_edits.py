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

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry

EACH = 3
"""How many edits of one pipeline are drawn."""

# By these no row is different.
_ALIKE = frozenset({"same", "continues"})
# Sources that come and go, files from elsewhere and another output mode are another thing there than back.
_ONE_WAY = frozenset({"GB410", "GB411", "GB414", "GB433"})


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


@pytest.fixture(scope="module")
def edits(registry: Registry) -> list[tuple[Drawn, TargetChanges]]:
    """Edits where not all rows come out anew, each with what is said of it."""

    def drawn() -> Iterator[Drawn]:
        for number in count():
            yield from drawn_edits(f"{samples.seed()}:{number}", registry, EACH, asked=True)

    some = islice(drawn(), samples.examples(120, 6000))
    return [(edit, edit.said(registry)) for edit in some if not _is_rewritten(edit)]


def test_rows_with_other_columns_are_different_ones(edits: list[tuple[Drawn, TargetChanges]]) -> None:
    for edit, said in edits:
        before, after = (_columns(plan, edit.target) for plan in (edit.old, edit.new))
        if before is None or after is None or before == after:
            continue
        assert said.verdict not in _ALIKE, edit.edit


def test_what_makes_no_difference_makes_none_back(
    edits: list[tuple[Drawn, TargetChanges]], registry: Registry
) -> None:
    for edit, there in edits:
        if MOVED in edit.edit.kind or "with was" in edit.edit.kind:
            continue
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
