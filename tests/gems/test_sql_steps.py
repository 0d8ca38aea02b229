"""Queries of several joins as one of each: `tests/integration/test_sql_steps.py` asks Spark whether they mean the same."""

from __future__ import annotations

import pytest

from gem_bundle import Column, Facts
from gem_sql.reading import read
from gem_sql.steps import QueryStep, steps_of
from tests.gems.queries import IN_STEPS

TABLES = {
    name: Facts(columns=tuple(Column(*column.split()) for column in schema.split(", ")), streaming=True)
    for name, schema in {
        "a": "value string, n int, x double",
        "b": "name string, m int, y double",
        "s": "name string, k int",
    }.items()
}


def steps(query: str) -> list[QueryStep] | None:
    """The steps of a query over the tables."""
    columns = read(query, TABLES).columns or ()
    return steps_of(query, TABLES, [column.name for column in columns])


@pytest.mark.parametrize("query", IN_STEPS)
def test_each_step_has_one_join_and_reads_those_before(query: str) -> None:
    found = steps(query)
    assert found is not None
    for number, step in enumerate(found):
        assert step.query.upper().count(" JOIN ") <= 1
        assert all(of in TABLES if isinstance(of, str) else of < number for of in step.tables.values())
    read_by = [of for step in found for of in step.tables.values()]
    assert set(range(len(found) - 1)) <= set(read_by)


def test_spark_s_order_of_joins() -> None:
    found = steps("select n, m, k from a, s, b where a.value = b.name and b.m = s.k")
    assert found is not None
    assert [list(step.tables) for step in found] == [["a", "b"], ["step_1", "s"]]


@pytest.mark.parametrize(
    "query",
    [
        "select n from a",
        "select n, m from a join b on a.value = b.name where n > 1",
        # What it can't be told of stays one.
        "select n, m, k from a join b on a.value = b.name join s on k = (select max(m) from b)",
        "select n from a join b on a.value = b.name full join s using (name)",
        "select n, m, k from a join b on a.value = b.name join s on a.n = s.k limit 3",
    ],
)
def test_one_step_or_an_unknown_query_is_not_taken_apart(query: str) -> None:
    assert steps(query) is None
