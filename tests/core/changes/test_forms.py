"""Expressions by their forms, and back: what a condition is where none of its columns has a value."""

from __future__ import annotations

import pytest

from gem_bundle.changes.forms import form_of, tree_of
from gem_bundle.expressions import made_of
from gem_bundle.expressions.lacking import fails_without
from gem_bundle.facts import Column

COLUMNS = (
    Column("a", "int"),
    Column("b", "string"),
    Column("p", "boolean"),
    Column("s", "struct<t: int>"),
    Column("d", "date"),
)


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("a > 3", True),
        ("a between 1 and 3", True),
        ("s.t > 1", True),
        ("coalesce(p, false)", True),
        ("coalesce(p, true)", False),
        ("not coalesce(p, false)", False),
        ("coalesce(a, cast(0 as int)) = 0", False),
        ("coalesce(a, cast(0 as int)) > 0", True),
        ("coalesce(a, cast(300 as tinyint)) > 0", None),
        ("case when a > 3 then true else false end", True),
        ("cast(a as string) = '3'", True),
        ("d > date '2024-01-01'", True),
        ("extract(year from d) = 3", True),
        ("a is null", False),
        ("b in ('x', 'y')", True),
        ("concat(b, 'x') = 'x'", None),
    ],
)
def test_a_condition_of_a_form_is_what_it_was(condition: str, fails: bool | None) -> None:
    form = form_of(made_of(condition, COLUMNS).rule)
    assert form is not None
    tree = tree_of(form)
    assert tree is not None
    assert fails_without(tree) is fails


@pytest.mark.parametrize(
    "form",
    [
        ("packed", (("Literal", ("to_json",)), ("0:a",))),
        ("unpacked", (("Literal", ("from_json",)), ("0:a",), ("0:b",))),
        ("EQ", (("this", ("packed", (("Literal", ("the rule",)), ("0:a",)))), ("expression", ("0:a",)))),
        ("Unlike", (("this", ("0:a",)),)),
        ("Cast", (("this", ("0:a",)), ("to", ("DataType", (("this", "UNLIKE"),))))),
        ("EQ", "text"),
    ],
)
def test_a_form_that_is_none_of_an_expression_has_no_tree(form: tuple[object, ...]) -> None:
    assert tree_of(form) is None


def test_a_field_that_is_taken_out_of_a_column_is_null_where_that_is() -> None:
    field = ("unpacked", (("Literal", ("from_json id int",)), ("0:b",)))
    tree = tree_of(("GT", (("this", field), ("expression", ("Literal", (("this", "1"),))))))
    assert tree is not None
    assert fails_without(tree)
