"""What one condition says of another one, by their forms."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gem_bundle.changes.forms import form_of
from gem_bundle.changes.implied import columns_of_what_differs, implies
from gem_bundle.expressions.made import made_of
from gem_bundle.facts import Column

COLUMNS = [
    *(Column("k", "int"), Column("j", "int"), Column("page", "string")),
    *(Column("at", "timestamp"), Column("day", "date"), Column("x", "double")),
]


def form(condition: str) -> tuple[object, ...]:
    found = form_of(made_of(condition, COLUMNS).rule)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("condition", "other", "expected"),
    [
        ("k > 5", "k > 3", True),
        ("k > 3", "k > 5", False),
        ("k > 3", "k >= 3", True),
        ("k >= 3", "k > 3", False),
        ("5 < k", "k > 3", True),
        ("k < -3", "k < 2", True),
        ("k = 4", "k between 1 and 9", True),
        ("k between 2 and 3", "k >= 1", True),
        ("k between 2 and 3", "k between 1 and 9", True),
        ("k in (1, 2)", "k in (3, 2, 1)", True),
        ("k in (1, 4)", "k in (3, 2, 1)", False),
        ("k in (4, 7)", "k > 3", True),
        ("k in (4, 1)", "k > 3", False),
        ("page = 'a'", "page in ('a', 'b')", True),
        ("page in ('a')", "page = 'a'", True),
        ("'a' = page", "page = 'a'", True),
        ("k > 3 and page = 'a'", "k > 3", True),
        ("k > 3", "k > 3 or page = 'b'", True),
        ("k > 3 or page = 'b'", "k > 3", False),
        ("k > 5 or page = 'a'", "page in ('a', 'b') or k > 3", True),
        ("(k > 5 or k < 0) and page = 'a'", "k > 3 or k < 1", True),
        ("not (k <= 3 or page <> 'a')", "k > 2", True),
        ("not k > 3", "k <= 3", True),
        ("k > 3", "k is not null", True),
        ("not k > 3", "isnotnull(k)", True),
        ("k is null or page = 'a'", "k is not null", False),
        ("k + 1 > 5", "k is not null", False),
        ("k + 1 > 5", "k + 1 > 3", True),
        ("k > j", "k > j", True),
        ("at > '2024-03-31'", "at > '2024-01-31'", True),
        ("at > '2024-03-31 10:30:00'", "at > '2024-03-31 02:30:00'", False),
        ("at > timestamp '2024-03-31'", "at >= timestamp '2024-01-31 10:30:00'", True),
        ("day < date '2024-01-31'", "day < date '2024-02-01'", True),
        ("day < date '2024-01-31'", "day < '2024-02-01'", False),
        # How a text is compared isn't told by the text, nor how one number is with one of another kind.
        ("page > 'b'", "page > 'a'", False),
        ("page > '9'", "page > '10'", False),
        ("x > 3.5", "x > 3", False),
        ("x > 3.5", "x > 2.25", True),
        ("k > 3000000000", "k > 3", False),
        ("page = 'a'", "page <> 'b'", True),
        ("page in ('a', 'c')", "not page = 'b'", True),
        ("page in ('a', 'b')", "page <> 'b'", False),
        ("k = 3", "k not in (1, 2)", True),
        ("k <> 3", "k <> 2", False),
        ("page = 'a' and k > 1", "page <> 'b' and k > 0", True),
        # Of some texts it isn't told whether they are the same: it goes by the type, and by the collation.
        ("page = 'a'", "page <> 'A'", False),
        ("page = 'true'", "page <> 'yes'", False),
        ("page = '5'", "page <> '05'", False),
        ("page = 'a'", "page <> 'a '", False),
        ("x = 3.0", "x <> 3", False),
        # What isn't true may be null.
        ("not (k > 3) is true", "k <= 3", False),
        ("not (k > 3) is true", "k is not null", False),
        ("k <=> 3", "k <=> 3", True),
        ("page like 'a%'", "page is not null", True),
        ("k > 3", "true", False),
    ],
)
def test_what_one_condition_says_of_another(condition: str, other: str, expected: bool) -> None:
    assert implies(form(condition), form(other)) is expected


def test_what_differs() -> None:
    def differs(condition: str, other: str) -> set[str]:
        return columns_of_what_differs(form(condition), form(other))

    assert differs("k > 3 and page = 'a'", "page = 'a'") == {"0:k"}
    assert differs("page = 'a' and k > 3", "k > 3 and page = 'a'") == set()
    assert differs("page = 'a' and k > 5", "k > 3 and page = 'a'") == {"0:k"}
    assert differs("page = 'a' and (k > 5 or x > 1)", "page = 'a'") == {"0:k", "0:x"}
    assert differs("not k > 3", "k > 3") == {"0:k"}


def test_what_is_too_long_is_unknown() -> None:
    long = " and ".join(f"(k = {number} or j = {number})" for number in range(1, 8))
    assert not implies(form(long), form("k > 0 or j > 0"))
    assert implies(form(long.replace("and", "or")), form("k > 0 or j > 0"))


VALUES = st.integers(0, 4)
ATOMS = st.one_of(
    st.tuples(st.sampled_from(["k", "j"]), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), VALUES).map(
        "{0[0]} {0[1]} {0[2]}".format
    ),
    st.tuples(VALUES, st.sampled_from(["<", ">=", "="]), st.sampled_from(["k", "j"])).map(
        "{0[0]} {0[1]} {0[2]}".format
    ),
    st.tuples(st.sampled_from(["k", "j"]), VALUES, VALUES).map("{0[0]} between {0[1]} and {0[2]}".format),
    st.tuples(st.sampled_from(["k", "j"]), st.sampled_from(["in", "not in"]), VALUES, VALUES).map(
        "{0[0]} {0[1]} ({0[2]}, {0[3]})".format
    ),
    st.sampled_from(["k is null", "k is not null", "k > j", "(k > 2) is true", "page = 'a'", "page <> 'a'"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map("(not ({}))".format),
        st.tuples(inner, inner).map("({0[0]} and {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} or {0[1]})".format),
    ),
    max_leaves=5,
)
NUMBERS = [None, *range(-1, 6)]


@pytest.fixture(scope="module")
def rows() -> sqlite3.Connection:
    """All rows of few values, in a database with the logic of three values that Spark has."""
    database = sqlite3.connect(":memory:")
    database.execute("create table rows (k int, j int, page text)")
    database.executemany("insert into rows values (?, ?, ?)", product(NUMBERS, NUMBERS, [None, "a", "b"]))
    return database


@given(condition=CONDITIONS, other=CONDITIONS)
@example(condition="(not ((k > 2) is true))", other="k <= 2")
@example(condition="(k = 1 and k = 2)", other="k > 2")
@example(condition="k in (1, 2)", other="not k in (3, 4)")
@example(condition="k = 1", other="k not in (1, 2)")
@example(condition="(k > 1 or j = 2)", other="(j in (2, 3) or k >= 1)")
@example(condition="j <> 4", other="(not (j = 4))")
def test_what_is_said_to_follow_does(rows: sqlite3.Connection, condition: str, other: str) -> None:
    query = f"select * from rows where ({condition}) and not coalesce(({other}), false)"
    if implies(form(condition), form(other)):
        assert rows.execute(query).fetchall() == []
    assert implies(form(condition), form(condition))
    assert implies(form(f"({condition}) and ({other})"), form(other))
    assert implies(form(condition), form(f"({condition}) or ({other})"))
