"""What a transform makes of what: columns told apart, rules that spaces don't change, what Spark keeps."""

from __future__ import annotations

import pytest

from gem_bundle import Column
from gem_bundle.expressions import buffers_of, equal_keys, made_of
from gem_bundle.lineage import column_keys, passed, same

COLUMNS = (Column("page", "string"), Column("n", "int"), Column("s", "struct<a: int, b: int>"))


def test_columns_are_told_apart_by_name_then_by_input() -> None:
    assert column_keys(COLUMNS) == ["page", "n", "s"]
    assert column_keys([Column("id", qualifier="a"), Column("ID", qualifier="b")]) == ["a.id", "b.id"]
    # What no expression can name is told apart by its order.
    assert column_keys([Column("id"), Column("n"), Column("ID")]) == ["id", "n", "id#2"]
    both = [Column("at", qualifier="a"), Column("at", qualifier="b"), Column("at", qualifier="b")]
    assert column_keys(both) == ["a.at", "b.at", "b.at#2"]
    assert column_keys([Column("id"), Column("id"), Column("id#2")]) is None
    assert column_keys(None) is None
    assert passed(COLUMNS[:1]) == {"page": same("page")}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("n + 1", "N  +  1", True),
        ("n > 0", "(n > 0)", True),
        ("upper(page)", "UPPER(page)", True),
        ("n + 1", "n + 2", False),
        ("s.a", "s.b", False),
        ("page", "`page`", True),
    ],
)
def test_a_rule_is_the_same_however_it_is_written(one: str, other: str, equal: bool) -> None:
    assert (made_of(one, COLUMNS) == made_of(other, COLUMNS)) is equal


def test_what_an_expression_is_made_of() -> None:
    assert made_of("case when n > 0 then page end", COLUMNS).uses == {"0:n", "0:page"}
    assert made_of("count(*)", COLUMNS).uses == frozenset()
    assert made_of("nobody + 1", COLUMNS).uses is None
    # A value to Spark, unless a column is called so; which of two that is, nobody knows.
    assert made_of("user", COLUMNS).uses == frozenset()
    assert made_of("user", [Column("user", "int"), Column("user", "string")]).uses is None
    assert made_of("transform(array(n), x -> x + n)", COLUMNS).uses == {"0:n"}
    assert made_of("transform(array(n), page -> page)", COLUMNS).uses == {"0:n"}
    assert made_of("total * 2", COLUMNS, earlier={"total": made_of("n", COLUMNS)}).uses == {"0:n"}


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        ("count(*)", ("bigint!",)),
        ("count(1) + 1", ("bigint!",)),
        ("sum(n)", ("bigint",)),
        ("avg(n)", ("double", "bigint")),
        ("max(page)", ("string",)),
        ("first(n)", ("int", "boolean!")),
        ("collect_list(page)", ("binary",)),
        ("max(n) + min(n)", ("int", "int")),
        # What Spark knows when it plans it doesn't keep; of a column it works nothing out before it counts.
        ("count(*) filter (where 'it''s' in ('a', 'b'))", ()),
        ("count(if(1 = 2, n, null))", ()),
        ("count_if(1 = 2)", ()),
        ("count_if(0 > 1 and page = 'a')", ("bigint!",)),
        # The type is that of all branches.
        ("max(if(1 = 1, 0, cast(n as bigint)))", ("bigint",)),
    ],
)
def test_what_spark_keeps_of_an_aggregate(expression: str, kept: tuple[str, ...]) -> None:
    found = buffers_of(expression, COLUMNS)
    assert found is not None
    assert tuple(sorted(kind for kinds in found.values() for kind in kinds)) == tuple(sorted(kept))


def test_all_ways_to_count_rows_are_one() -> None:
    assert buffers_of("count(*)", COLUMNS) == buffers_of("count(1)", COLUMNS)
    assert buffers_of("sum(nobody)", COLUMNS) == {"('sum', (('nobody',),))": ("?sum",)}


def test_the_keys_of_a_join() -> None:
    left = (Column("id", "int", qualifier="a"), Column("at", "timestamp", qualifier="a"))
    right = (Column("id", "int", qualifier="b"), Column("at", "timestamp", qualifier="b"))
    assert equal_keys("a.id = b.id and a.at < b.at", [left, right]) == ("int",)
    assert equal_keys("a.id = b.id and a.at = b.at", [left, right]) == ("int", "timestamp")
    assert equal_keys("a.id = 1", [left, right]) == ()
