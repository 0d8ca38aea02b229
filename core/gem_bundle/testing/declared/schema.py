"""The JSON Schema of a file of declared tests, ``orders.test.yaml``, for editors.

It never refuses what is right. What depends on the pipeline it doesn't know: nodes, columns, options.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from gem_bundle.describe.schema import DIALECT, model_schema
from gem_bundle.pipeline.model import EXTENSION_PREFIX
from gem_bundle.testing.declared.model import TestFileShape, TestShape


class _WholeFile(TestFileShape):
    """Tests of a pipeline: rows that arrive step by step, and what its targets get."""

    # Where a file is read, they are validated one by one.

    tests: dict[str, TestShape] = Field(min_length=1, description="The tests, by what they are about.")


def declared_tests_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file of declared tests."""
    return {
        "$schema": DIALECT,
        "title": "Tests of a pipeline of gem-bundle",
        **model_schema(_WholeFile),
        "patternProperties": {f"^{EXTENSION_PREFIX}": {"description": "Anything, for anchors."}},
    }
