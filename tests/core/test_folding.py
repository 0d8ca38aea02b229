"""Conditions of which literals decide a part."""

from __future__ import annotations

import pytest

from gem_bundle.expressions import made_of
from gem_bundle.expressions.analysis import folded
from gem_bundle.expressions.folding import without_decided
from gem_bundle.expressions.spark_parser import tree_of
from gem_bundle.expressions.uses import names_in
from gem_bundle.schema import columns_of
from tests.decided import NEVER_NULL, READ

COLUMNS = columns_of("n int, m int, page string")


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("n = m or 1 = 2", "n = m"),
        ("1 > 2 or (n = m)", "n = m"),
        ("n = m and 'a' <> 'b'", "n = m"),
        ("n = m and not_a_column and true", "n = m and not_a_column"),
        ("(n = m or false) and (n > 1 or 2 >= 2)", "n = m"),
        ("if(n = m or false, 1, 2) = 1", "if(n = m, 1, 2) = 1"),
        ("n = m or 10 > 9", "true"),
        ("n = m and 10 < 9", "false"),
        ("n = m or 1.0 = 2", "n = m"),
    ],
)
def test_what_literals_decide_is_left_out(condition: str, left: str) -> None:
    assert made_of(condition, COLUMNS) == made_of(left, COLUMNS)


@pytest.mark.parametrize("condition", ["n = m or n = 1", "1 = 2", "n = m or 1 = '1'", "n = m or null"])
def test_what_literals_of_one_kind_do_not_decide_stays(condition: str) -> None:
    assert folded(condition) is folded(condition)
    assert made_of(condition, COLUMNS) != made_of("n = m", COLUMNS)


def test_what_is_kept_of_an_expression_is_not_changed() -> None:
    from gem_bundle.expressions.analysis import parsed

    before = parsed("n = m or 1 = 2").sql()
    folded("n = m or 1 = 2")
    assert parsed("n = m or 1 = 2").sql() == before


def test_an_unreadable_expression_has_no_tree() -> None:
    assert folded("n = m or 1 = (") is None


def read_of(expression: str) -> set[str]:
    """The columns that are left of an expression of those in `tests.decided`."""
    tree = without_decided(tree_of(expression), lambda name: name[0] in NEVER_NULL)
    names = names_in(tree)
    assert names is not None
    return {name[0] for name in names}


@pytest.mark.parametrize("expression", READ)
def test_what_the_form_decides_is_not_read(expression: str) -> None:
    assert read_of(expression) == set(READ[expression].split())
