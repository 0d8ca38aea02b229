"""The guide page on changes: its tables are of the code; its commands are typed with those of the other pages."""

from __future__ import annotations

from tests.core.changes.page import PAGE, rendered


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rendered(page) == page, "python -m tests.core.changes.page renews them"
