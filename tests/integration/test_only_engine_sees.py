"""What `check` passes and only `check --engine` sees: the list of docs/streaming.md, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gem_bundle.check import check_file
from gem_bundle.run.engine import check_engine
from tests.integration.pipelines import write_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = Path(__file__).parents[2] / "docs" / "streaming.md"
SOURCES: Final = """
pipeline: passes
sources:
  a: {gem: file, options: {format: json, path: a, schema: "id int, name string, flag boolean, at timestamp, raw binary"}}
  b: {gem: file, mode: batch, options: {format: json, path: b, schema: "id binary, name string, flag int, n int"}}
  undeclared: {gem: file, mode: batch, options: {format: json, path: lines}}
transforms:
"""
AGGREGATE: Final = (
    "  n: {gem: aggregate, input: a, options: {group_by: [name], aggregates: {total: count(*)}}}\n"
)
TARGET: Final = "targets:\n  out: {gem: console, input: x, output_mode: %s}\n"
ANSI: Final = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class Case:
    """A pipeline that passes, by the entry of the list that it belongs to.

    Args:
        entry: What stands in the entry, word for word.
        transforms: The transforms, of which Spark refuses `x`.
        output_mode: What the target is written in.
        code: The code of Spark's refusal.
        ansi: Only a session that follows ANSI refuses it.
    """

    entry: str
    transforms: str
    output_mode: str = "append"
    code: str = "GB320"
    ansi: bool = False


def one(gem: str, options: str, inputs: str = "input: a") -> str:
    """The transform that Spark refuses."""
    return f"  x: {{gem: {gem}, {inputs}, options: {{{options}}}}}\n"


CASES: Final = {
    "a comparison with a boolean": Case(
        "a comparison of a number with a boolean", one("filter", "condition: id = flag"), ansi=True
    ),
    "a key that is a boolean": Case(
        "also as the key of a join", one("join", "on: [flag]", "inputs: [a, b]"), ansi=True
    ),
    "arithmetic of texts": Case(
        "arithmetic of two texts", one("select", "columns: {sum: name + name}"), ansi=True
    ),
    "a union whose inputs differ": Case(
        "those of a union whose inputs differ",
        "  u: {gem: union, inputs: [p, q]}\n"
        "  p: {gem: select, input: a, options: {columns: {v: id}}}\n"
        "  q: {gem: select, input: a, options: {columns: {v: name}}}\n"
        + one("select", "columns: {v: explode(v)}", "input: u"),
    ),
    "a function of the session": Case(
        "of a function that the session has", one("select", "columns: {v: explode(doubled(id))}")
    ),
    "a file without a schema": Case(
        "of a file or a table without a schema",
        "  j: {gem: join, inputs: [a, undeclared], options: {on: [id]}}\n"
        + one("select", "columns: {v: explode(number)}", "input: j"),
    ),
    "keys of using": Case(
        "keys of `using` in a query",
        one("sql", "query: 'select a.name from a join b using (id)'", "inputs: [a, b]"),
    ),
    "an aggregate about a result": Case(
        "not where it is about one of the results",
        AGGREGATE + one("filter", "condition: max(total) > 1", "input: n"),
        "complete",
    ),
    "an aggregate behind a query": Case(
        "or where a query stands between them",
        AGGREGATE
        + "  q: {gem: sql, input: n, options: {query: select * from n}}\n"
        + one("filter", "condition: max(name) > 'a'", "input: q"),
        "complete",
    ),
    "two windows of one length": Case(
        "two time windows of one length",
        one(
            "select",
            "columns: {p: \"window(at, '10 minutes')\", q: \"window(at, '10 minutes', '5 minutes')\"}",
        ),
    ),
    "words of a query": Case(
        "`select a.b a.c from a join where …`",
        one("sql", "query: select a.id a.name from a join where a.id > 1"),
        code="GB205",
    ),
}


def entries() -> list[str]:
    """The entries of the list, each in one line."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, behind = text.partition("only `--engine` sees:\n\n")
    listed, _, _ = behind.partition("\n\n")
    return [" ".join(entry.split()) for entry in listed.removeprefix("- ").split("\n- ")]


def test_the_list_is_the_one_that_is_shown() -> None:
    listed = entries()
    assert len(listed) > 3
    for entry in listed:
        assert [case for case in CASES.values() if case.entry in entry], f"nothing shows: {entry}"
    for case in CASES.values():
        assert [entry for entry in listed if case.entry in entry], f"the page doesn't say: {case.entry}"


@pytest.mark.sample(4)
@pytest.mark.spark
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_passes_the_check_is_refused_by_spark(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.json").write_text('{"id": 1, "number": 2}\n')
    spark.udf.register("doubled", lambda n: 2 * n, "int")
    checked = check_file(write_pipeline(tmp_path, SOURCES + case.transforms + TARGET % case.output_mode))
    assert [str(found) for found in checked.diagnostics if found.is_error] == []
    plan = checked.plan
    assert plan is not None

    def refused(ansi: str) -> list[tuple[str, str | None]]:
        spark.conf.set(ANSI, ansi)
        return [(found.code, found.node) for found in check_engine(plan, spark)]

    try:
        found = {ansi: refused(ansi) for ansi in ("true", "false")}
    finally:
        spark.conf.unset(ANSI)
    refusal = [(case.code, "x")]
    assert found == {"true": refusal, "false": [] if case.ansi else refusal}
