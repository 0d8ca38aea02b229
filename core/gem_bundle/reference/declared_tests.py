"""The page of the test file: every key of ``orders.test.yaml``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.describe.facts import describe_fields
from gem_bundle.describe.markdown import options_table
from gem_bundle.describe.words import type_in_words
from gem_bundle.testing.declared import model
from gem_bundle.testing.rows.generate import ColumnShape

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARTS = (
    ("The file", model.TestFileShape),
    ("A test in `tests`", model.TestShape),
    ("A step in `steps`", model.StepShape),
    ("Rows in `add`", model.DataShape),
    ("A node in `replace`", model.ReplaceShape),
    ("A target in `expect`", model.ExpectShape),
    ("`generate`", model.GenerateShape),
    ("A column in `columns`", ColumnShape),
    ("`fails`", model.FailsShape),
)


def declared_tests_page() -> str:
    """All keys of a file of declared tests."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    yield "# Keys of the test file"
    yield (
        f"A file whose name ends with `{model.SUFFIX}` has tests of the pipeline beside it. "
        "`gem-bundle test` runs them, and so does pytest. A list of rows may stand wherever a mapping with "
        "`rows` does, in `add` and in `expect`; a code may stand for a mapping with `code` in `fails`."
    )
    rows = type_in_words(model.Row, plural=True)
    for title, shape in _PARTS:
        yield f"## {title}"
        yield " ".join((shape.__doc__ or "").split("\n\n")[0].split())
        # What is inside a key has a table of its own.
        own = (key for key in describe_fields(shape) if "." not in key.name)
        keys = (replace(key, type=key.type.replace(rows, "rows")) for key in own)
        yield options_table(keys, "key")
