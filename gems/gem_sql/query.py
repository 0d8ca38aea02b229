"""The transform `sql`: a query over the inputs."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from gem_bundle import Facts, Field, Finding, GemError, Lineage, Operator, Options, Step, Transform, combined
from gem_bundle.expressions import check_expression, check_functions, check_types
from gem_sql.reading import StreamInSubquery, parts, read
from gem_sql.text import blanked, tables_of_the_catalog, with_placeholders
from gem_sql.tree import UnknownQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

_STARTS = ("select", "with", "from", "values", "table")
_AGGREGATING = frozenset({"select", "group by", "having", "order groups by"})
_ANALYTIC = _AGGREGATING | {"order by"}
_WRITES = re.compile(r"\b(insert\s+(into|overwrite)|merge\s+into)\b")


class SqlOptions(Options):
    """Options of the transform `sql`."""

    query: str = Field(
        min_length=1,
        description="One query in Spark's SQL. The inputs are its tables, by their names.",
        examples=["select page, count(*) as clicks from events group by page"],
        change="mixed",
    )


class Sql(Transform[SqlOptions]):
    """Run a query of SQL over the inputs.

    Its tables are the inputs, by their ids or by the keys of `inputs: {o: orders, p: payments}`,
    and behind them the session's own tables and views, which it leaves as they are. It is one query:
    statements that define, change or write something are refused.

    In visual tools: SQLStatement.
    """

    inputs: ClassVar[tuple[int, int | None]] = (1, None)
    by_name = True
    example = {"query": "select page, count(*) as clicks from events group by page"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The query's rows.

        Raises:
            GemError: When Spark can't read the query.
        """
        from pyspark.errors import ParseException

        # The DataFrames are handed over under placeholders: as short-lived views with unique names on a
        # classic session, as a part of the plan over Spark Connect.
        places = {name.lower(): f"gem_bundle_{n}" for n, name in enumerate(self.input_names)}
        frames: dict[str, Any] = dict(zip(places.values(), inputs, strict=True))
        try:
            return inputs[0].sparkSession.sql(with_placeholders(self.options.query, places), **frames)
        except ParseException as error:
            raise GemError("GB205", _reason(error), option="query") from error

    def infer(self, *inputs: Facts) -> Facts:
        """What the query makes of its inputs, as far as it can be followed; else only whether it streams."""
        try:
            facts = read(self.options.query, self._tables(inputs))
        except (UnknownQuery, StreamInSubquery):
            facts = combined(Operator("unknown", "query"), inputs)
            if facts.streaming:
                unused = set(self._unused())
                names = zip(inputs, self.input_names, strict=True)
                certain = any(found.streaming for found, name in names if name not in unused)
                facts = replace(facts, streaming=True if certain else None)
        return facts

    def order_of_inputs(self) -> "Sequence[int] | None":
        """The order in which the query names its tables, where Spark's plan has them in that order."""
        from gem_sql.ordering import tables_in_order

        return self._positions(tables_in_order)

    def inputs_as_planned(self) -> "Sequence[int] | None":
        """The order in which the query reads its tables, each as often as it does."""
        from gem_sql.ordering import tables_as_planned

        return self._positions(tables_as_planned)

    def _positions(self, read: "Callable[[str, list[str]], list[str] | None]") -> "list[int] | None":
        """The positions of its inputs as something reads them out of the query."""
        names = [name.lower() for name in self.input_names]
        tables = read(self.options.query, names)
        return None if tables is None else [names.index(table) for table in tables]

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """What comes of what, of a query over one input without common table expressions and the like."""
        from gem_sql.lineage import lineage_of

        return lineage_of(self.options.query, self._tables(inputs), self.infer(*inputs))

    def steps(self, *inputs: Facts) -> "list[Step] | None":
        """A query of several joins as one of each, as Spark's plan has them."""
        from gem_sql.steps import steps_of

        columns = self.infer(*inputs).columns
        if columns is None:
            return None
        steps = steps_of(self.options.query, self._tables(inputs), [column.name for column in columns])
        return [Step(SqlOptions(query=step.query), step.tables) for step in steps or ()] or None

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """It is one query, it uses its inputs, and their columns exist."""
        text = blanked(self.options.query).lower()
        body = text.rstrip(" \t\r\n;")
        first = re.match(r"[\s(]*(\w+)", body)
        if not body.strip():
            yield Finding("GB205", "the query is empty", "Write `select …`.", "query")
        elif ";" in body:
            yield Finding("GB205", "there is more than one statement", "Use one node a query.", "query")
        elif first is None or first[1] not in _STARTS or _WRITES.search(body):
            yield Finding(
                "GB205",
                "this is a statement and not a query: a transform gives rows and changes nothing",
                "Begin with `select` or `with`; writing is what targets are for.",
                "query",
            )
        first_of: dict[str, str] = {}
        for name in self.input_names:
            other = first_of.setdefault(name.lower(), name)
            if other != name:
                yield Finding(
                    "GB205",
                    f"the inputs `{other}` and `{name}` are one table: Spark ignores case",
                    f"Name them, for example `inputs: {{first: {other}, second: {name}}}`.",
                    "query",
                )
        unused, elsewhere = set(self._unused()), tables_of_the_catalog(self.options.query)
        for name in self.input_names:
            table = elsewhere.get(name.lower())
            if table is not None or name in unused:
                yield Finding(
                    "GB205",
                    f"the query doesn't use the input `{name}`"
                    + ("" if table is None else f": `{table}` is a table of the catalog"),
                    f"Write `from {name}`, {'' if table is None else 'its name here, '}or remove the input.",
                    "query",
                    "warning",
                )
        yield from check_types(self.options.query, "query")
        yield from check_functions(self.options.query, "query")
        try:
            found = parts(self.options.query, self._tables(inputs))
        except StreamInSubquery as refused:
            if refused.certain:
                yield Finding(
                    "GB309",
                    "a stream can't be in a subquery of an expression: what is in it is never settled",
                    "Read it with `mode: batch`, or write it as a join.",
                    "query",
                )
            return
        yield from found.problems
        for text, facts, clause, also, groups, hidden in found.expressions:
            findings = check_expression(
                text,
                facts,
                "query",
                also=also,
                dropped=hidden,
                wants="boolean" if clause in {"where", "on", "having"} else None,
                aggregates="allowed" if clause in _AGGREGATING else "no",
                analytic=clause in _ANALYTIC,
                generators=clause == "select",
                stars=clause in {"select", "group by", "where"},
                groups=groups,
            )
            # Unknown functions are told of the whole query already.
            yield from (finding for finding in findings if finding.code != "GB216")

    def _tables(self, inputs: tuple[Facts, ...]) -> dict[str, Facts]:
        return dict(zip(self.input_names, inputs, strict=True))

    def _unused(self) -> "Iterator[str]":
        text = self.options.query.lower()
        for name in self.input_names:
            if not re.search(rf"\b{re.escape(name.lower())}\b", text):
                yield name


def _reason(error: Exception) -> str:
    """What Spark says about a query it can't read, without the text that we put around it."""
    first = str(error).strip().splitlines()[0]
    first = re.sub(r"^\[[A-Z_.]+\]\s*|\.?\s*SQLSTATE: \w+", "", first)
    # The query starts in the second line of what Spark was given, within brackets.
    return re.sub(
        r"\(line (\d+), pos (\d+)\)",
        lambda m: f"(line {int(m[1]) - 1} of the query, column {int(m[2]) + 1})",
        first,
    )
