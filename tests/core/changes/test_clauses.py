"""What a condition asks of the keys of groups alone."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gem_bundle.changes.clauses import (
    fields_of,
    gets_before_groups,
    may_leave_one,
    valued_in,
    without,
)
from gem_bundle.changes.forms import form_of, put_in
from gem_bundle.expressions.made import made_of
from gem_bundle.facts import Column

COLUMNS = [
    *(Column("value", "string"), Column("n", "int"), Column("c", "bigint"), Column("d", "bigint")),
    *(Column("window", "struct<start: timestamp, end: timestamp>"), Column("k", "boolean")),
    *(Column("r", "boolean"), Column("j", "boolean")),
    Column("w2", "struct<start: timestamp, end: timestamp>"),
]
KEYS = frozenset({"0:value", "0:n", "0:window", "0:k", "0:j", "0:w2"})


def form(condition: str) -> tuple[object, ...]:
    found = form_of(made_of(condition, COLUMNS).rule)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("condition", "alone", "asking"),
    [
        ("value = 'home' and c > 1", True, True),
        ("value = 'home' or c > 1", False, False),
        ("not (value <> 'home' or c <= 1)", True, True),
        ("not (value <> 'home' and c <= 1)", False, False),
        ("(value = 'home' and c > 1) = true", True, True),
        ("(value = 'home' or c > 1) = false", True, True),
        ("(c > 1 and value = 'home') or (c > 1 and n > 0)", True, True),
        ("(c > 1 and value = 'home') or (c > 1 and d > 0)", False, False),
        ("(c > 1 or value = 'home') and (d > 1 or n > 0)", False, False),
        # A side that is never true leaves the other, and one that always is nothing.
        ("value = 'home' or 1 = 2", True, True),
        ("c > n or c is null", False, True),
        ("c > n or (c is null and n > 1)", False, True),
        ("value = 'home' or c is not null", False, False),
        ("value = 'home' or isnotnull(c)", False, False),
        ("c > n or not isnotnull(c)", False, True),
        # What is asked for with a result stays, and asks for what it would be null without.
        ("c > n", False, True),
        ("c > n or d > n", False, True),
        ("c > n or d > 1", False, False),
        ("n <=> c or d > 1", False, False),
        # A value in the place of what is equal to it.
        ("c = 3 and n > c", True, True),
        ("not (c <> 3 or n <= c)", True, True),
        ("n between 1 and c", True, True),
        ("c between 1 and d", False, False),
        # What may be null Spark leaves as it is for `is true`, and asks nothing for it.
        ("(n > 0 and c > 1) is true", False, False),
        ("(k and c > 1) is true", True, True),
        ("(n > 0 and c > 1) = true", True, True),
        ("coalesce(n > 1 and c > 1, false)", False, False),
        ("coalesce(c > 1, n > 1)", True, True),
        ("coalesce(c > 1 and k <=> true, false)", True, True),
        ("coalesce(n > n and c > 1, false)", True, True),
        ("(window.start > '2024-01-31' and c > 1) is true", True, True),
        ("(window.end > '2024-01-31' and d > 1) is true", False, False),
        ("(w2.end > '2024-01-31' and c > 1) is true", False, False),
        # Branches stay as they are where any of them may be the one.
        ("if(c > 1, n > 1, false)", False, False),
        ("if(value is not null, c > 1, false)", False, False),
        ("nvl2(value, c > 1, false)", False, False),
        ("not if(n > 1, true, c > 1)", False, False),
        ("if(n > 1, c > 1, c > 1)", False, False),
        ("if(n > 1, c > 1, 1 = 2)", False, False),
        ("if(n > n, c > 1, false)", True, True),
        ("if(n > 1 or n <= 1, c > 1, false)", True, True),
        ("if(window is null, c > 1, n > 1)", True, True),
        ("if(c > 1, true, n > 1 and n < 1)", False, False),
        ("if(n > 1, value = 'home', false)", True, True),
        ("if(c > 1, n > 1, false) and n > 2", True, True),
        ("case when value = 'home' then c > 1 when n > 1 then true end", False, False),
        ("case when value = 'home' then c > 1 else c is null end", True, True),
        ("case n when 1 then c > 1 end", True, True),
        # What Spark may see through.
        ("struct(n, c).n = 1", True, True),
        # What is asked of elements stays, and asks for nothing itself; so does what something goes in the place of.
        ("exists(array(c), v -> v = n)", False, False),
        ("forall(split(value, ','), v -> v = c)", False, False),
        ("exists(array(c), v -> v = d)", False, False),
        ("exists(array(n), v -> v > 1)", True, True),
        ("exists(array(c), v -> n is null)", True, True),
        ("exists(array(c), v -> length(v) = n and n > 1)", True, True),
        ("coalesce(n, n) > c", False, False),
        ("coalesce(n, 0) > 3 or c > 3", False, False),
        ("coalesce(n, null) > c", False, True),
        ("coalesce(c, n) > d", True, True),
        ("coalesce(n, value) = 'a'", True, True),
        ("window.start > '2024-01-31' and c > 1", True, True),
        ("window.start > '2024-01-31' or cast(c as string) = 'a'", False, False),
        # Beside its contrary nothing is left of what is about a result.
        ("(value = 'home' or c > 1) and (value = 'home' or c <= 1)", True, True),
        ("(value = 'home' or c > 1) and (n > 0 or not (c > 1))", True, True),
    ],
)
def test_what_gets_before_groups(condition: str, alone: bool, asking: bool) -> None:
    may_be_null = {"0:value", "0:n", "0:d", fields_of("0:w2")}
    assert gets_before_groups(form(condition), KEYS, set(), may_be_null) is alone
    assert gets_before_groups(form(condition), KEYS, {"0:n"}, may_be_null) is asking


def test_what_is_left_of_either() -> None:
    assert may_leave_one(form("n > 1 or 1 = '2'"), set())
    assert may_leave_one(form("n > 1 or (c > 1 or c is null)"), {"0:n"})
    assert not may_leave_one(form("n > 1 or n is null"), {"0:n"})
    assert may_leave_one(form("n > 1 or n is null"), set())
    assert may_leave_one(form("n > n or c > 1"), set())


def test_a_column_is_what_it_is_made_of() -> None:
    assert put_in(("0:h",), {"0:h": form("n > 1")}) == form("n > 1")
    assert put_in(form("window.start > '2024'"), {"0:window": ("0:w",)}) != form("window.start > '2024'")
    # A field of what is made is seen through.
    made = put_in(form("window.start > value"), {"0:window": form("window.start > value")})
    assert gets_before_groups(made, {"0:value", "0:window"}, set(), set())


def test_other_conditions_tell_values() -> None:
    assert valued_in(form("c = 3 and n > d")) == {"0:c"}
    assert without(form("n > c"), {"0:c"}) != form("n > c")
    assert without(form("c = 3"), {"0:c"}) == form("c = 3")


CONDITIONS = st.recursive(
    st.sampled_from(["k", "j", "r", "(c > d)", "(c <= d)"]),
    lambda inner: st.one_of(
        inner.map("(not {})".format),
        st.tuples(inner, inner).map("({0[0]} and {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} or {0[1]})".format),
    ),
    max_leaves=7,
)


@given(CONDITIONS)
@example("((k or r) and (k or (not r)))")
@example("((not (k and (c > d))) and (j or (c > d)))")
def test_what_stays_leaves_out_nothing_by_keys_alone(condition: str) -> None:
    """Whatever an optimizer does: where all of it stays, any group may come out, by its results."""
    made = made_of(condition, COLUMNS)
    found = ("0:" + condition,) if made.rule == "=" else form_of(made.rule)
    assert found is not None
    if gets_before_groups(found, KEYS, set(), KEYS):
        return
    asked = condition.replace("(c > d)", "g").replace("(c <= d)", "(not g)")
    for keys in product([False, True], repeat=2):
        results = product([False, True], repeat=2)
        comes_out = any(eval(asked, dict(zip("kjrg", (*keys, *given), strict=True))) for given in results)
        assert comes_out or not {"k", "j"} & set(asked)
