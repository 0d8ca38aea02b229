"""Spark's plan of a query is what it prints, and nothing else that is printed meanwhile gets lost in it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.run.plan_text import plan_text

if TYPE_CHECKING:
    import pytest


class Query:
    """Prints a plan, while somebody else prints something."""

    def explain(self, extended: bool) -> None:
        print("== Physical Plan ==")
        other = threading.Thread(target=print, args=("a row of the user's",))
        other.start()
        other.join()
        print("more" if extended else "less")


def test_only_what_the_query_prints_is_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    query: Any = cast("Any", Query())
    assert plan_text(query) == "== Physical Plan ==\nless"
    assert plan_text(query, extended=True) == "== Physical Plan ==\nmore"
    print("after it")
    assert capsys.readouterr().out == "a row of the user's\n" * 2 + "after it\n"
