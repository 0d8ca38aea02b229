"""What is taken out of what has been put together: what Spark has of it when it has planned."""

from __future__ import annotations

import pytest

from gem_bundle.changes.extracted import taken_before
from gem_bundle.changes.taken import taken_by
from gem_bundle.ddl import read_type
from gem_bundle.expressions import made_of
from gem_bundle.facts import Column
from gem_bundle.lineage import Made

COLUMNS = (Column("n", "int"), Column("m", "int"), Column("q", "struct<n: array<int>, m: int>"))


@pytest.mark.parametrize(
    ("expression", "taken"),
    [
        ("q.n", ["0:q.n"]),
        ("q.n[1]", ["0:q.n.[1]"]),
        ("array(q)[0].m", ["0:q.m"]),
        ("array(q).m", ["0:q.m"]),
        ("array(q, named_struct('n', array(n), 'm', m)).m[1]", ["0:m"]),
        ("struct(n, m as k).k + 1", ["0:m"]),
        ("named_struct('U', n)['u']", ["0:n"]),
        ("map('a', n, 'b', m)['b']", ["0:m"]),
        ("map('a', n, 'b', m)['c']", []),
        ("map(n, m)['c']", ["0:n", "0:m"]),
        ("size(array(n, m)) + n", ["0:n"]),
        ("size(q.n)", ["0:q.n.#"]),
        ("if(n > 0, struct(m), null).m", ["0:n", "0:m"]),
        ("case when n > 0 then q when m > 0 then null end.m", ["0:n", "0:m", "0:q.m"]),
        ("coalesce(q, struct(n, m)).m", ["0:q", "0:n", "0:m"]),
        ("array(n, m)[n]", ["0:n", "0:m", "0:n"]),
    ],
)
def test_nothing_else_is_taken_of_columns(expression: str, taken: list[str]) -> None:
    made = made_of(expression, COLUMNS)
    assert [".".join((use, *way)) for use, way in taken_by(made)] == taken


@pytest.mark.parametrize(
    "rule", ["('struct', (1, 2))", "('array', 'n')", "('if', (1, 2))", "('map',)", "('size', (3,))"]
)
def test_a_rule_that_only_its_gem_understands_takes_all(rule: str) -> None:
    assert list(taken_by(Made(rule, frozenset({"0:n"})))) == [("0:n", ())]


@pytest.mark.parametrize(
    ("kind", "way", "before"),
    [
        ("struct<u: array<int>, v: int>", ("u", "[0]"), ("u",)),
        ("struct<u: array<int>, v: int>", ("u", "#"), ("u",)),
        ("array<struct<u: int>>", ("[0]", "u"), ("[0]", "u")),
        ("array<struct<u: int>>", ("u", "[0]"), ("u",)),
        ("map<string, struct<u: int>>", ("k", "u"), ("k", "u")),
        ("map<string, int>", ("k",), ()),
        ("struct<u: int>", ("there_is_none",), ()),
    ],
)
def test_fields_alone_are_taken_before(kind: str, way: tuple[str, ...], before: tuple[str, ...]) -> None:
    assert taken_before(read_type(kind).type, way)[0] == before
