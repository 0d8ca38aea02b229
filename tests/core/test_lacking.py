"""What a condition is where none of its columns has a value: each was tried in Spark 4.2."""

from __future__ import annotations

import pytest

from gem_bundle.expressions.analysis import folded
from gem_bundle.expressions.lacking import fails_without


@pytest.mark.parametrize(
    ("condition", "fails"),
    [
        ("a > 1", True),
        ("not a > 1", True),
        ("a > 1 or b like 'x%'", True),
        ("a > 1 or b is null", False),
        ("a > 1 and b is null", True),
        ("(a = 'x' and b = 'y') is true", True),
        ("(a = 'x') is not true", False),
        ("a is null", False),
        ("isnotnull(a)", True),
        ("a <=> 3", True),
        ("not (a <=> 3)", False),
        ("a <=> b", False),
        ("equal_null(a, 'x')", True),
        ("a is distinct from 3", False),
        ("coalesce(a, 0) > 3", True),
        ("coalesce(a, b, 4) > 3", False),
        ("nvl(a, false)", True),
        ("ifnull(a = 1, true)", False),
        ("nullif(a, 1) = 2", True),
        ("nvl2(a, 1, 2) = 2", False),
        ("if(a > 1, true, false)", True),
        ("if(a > 1, false, true)", False),
        ("case when a > 1 then true end", True),
        ("case when a > 1 then true when b is null then true else false end", False),
        ("case a when 1 then true else false end", True),
        ("case a when 1 then false else true end", False),
        ("a in (1, 2)", True),
        ("a not in (1, 2)", True),
        ("a between 1 and 2", True),
        ("length(upper(a)) > 3", True),
        ("coalesce(a = 1, false) = true", True),
        ("coalesce(a, 'x') = 'x' and b > 1", True),
        ("concat_ws(',', a, 'z') like 'a%'", True),
        ("concat_ws(',', a, 'z') like 'z%'", False),
        ("concat_ws(',', a, 'z') rlike '^a'", True),
        ("concat_ws(',', a, 'z') rlike '[z]'", None),
        ("startswith(concat_ws(',', a, 'z'), 'a')", True),
        ("concat_ws(',', a, 'z') in ('a', 'z')", False),
        ("concat_ws(a, 'z', 'a') = 'z'", None),
        ("case concat_ws(',', a, 'z') when 'a' then true else false end", True),
        ("coalesce(a, 'x') || 'y' = 'xy'", False),
        ("upper(coalesce(a, 'x')) = 'A'", True),
        # What the function makes of nulls isn't known.
        ("mine(a) > 1", None),
        ("case when mine(a) then true else false end", None),
        ("case coalesce(a, 1) when 1 then true else false end", None),
    ],
)
def test_whether_it_holds(condition: str, fails: bool | None) -> None:
    tree = folded(condition)
    assert tree is not None
    assert fails_without(tree) is fails
