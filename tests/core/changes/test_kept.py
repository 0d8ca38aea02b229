"""What `plan` thinks that Spark keeps of pipelines."""

from __future__ import annotations

import re

import pytest

from tests.core.changes.kept import PIPELINES, Kept
from tests.core.changes.test_below import plan
from tests.differential.edits.shaped import shapes_of


@pytest.mark.parametrize("kept", PIPELINES, ids=lambda kept: re.sub(r"\W", "_", kept.name))
def test_what_is_kept_of_a_pipeline(kept: Kept) -> None:
    found = shapes_of(plan(kept.file), "out")
    assert [(shape.node, _told(shape.keys), _told(shape.values)) for shape in found] == list(kept.operators)


def _told(types: tuple[str | None, ...] | None) -> str:
    return "?" if types is None else "; ".join(map(str, types))
