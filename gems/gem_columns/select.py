"""The transform `select`: the columns that go on, as they are or computed."""

from typing import TYPE_CHECKING

from gem_bundle import (
    AggregateOperator,
    Counts,
    Facts,
    Field,
    Finding,
    Lineage,
    Made,
    Operator,
    Options,
    Rejects,
    Transform,
)
from gem_bundle.expressions import (
    Generated,
    analyse,
    asked_by,
    calls_functions,
    check_expression,
    fields_of_star,
    generated,
    has_overlapping_windows,
    keyed,
    made_of,
    nulls_left_out,
    project,
    reference,
    several_windows,
    split_alias,
    windows_over,
)
from gem_bundle.lineage import MAYBE_NULL, UNCERTAIN, column_keys, passed, uses_of
from gem_bundle.types import ColumnExpressions
from gem_columns.casting import check_casts, counted, fitting, rejects_field, safe, unfitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class SelectOptions(Options):
    """Options of the transform `select`."""

    columns: ColumnExpressions = Field(
        min_length=1,
        description="The columns as a list of expressions, or as a mapping of name to expression.",
        examples=[["page", "amount * 100 as cents"], {"page": "page", "cents": "amount * 100"}],
        change="from_now_on",
    )
    rejects: bool = rejects_field()


class Select(Transform[SelectOptions]):
    """Choose, rename and compute columns; all others are gone.

    A list takes what Spark's ``selectExpr`` takes: ``*``, ``orders.*``, ``expression as name``.
    Event time stays event time where a column is passed on as it is, also under another name; any
    expression over it is a plain timestamp.

    In visual tools: Reformat.
    """

    example = {"columns": {"page": "lower(page)", "at": "at"}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The chosen columns, in the order given."""
        from pyspark.sql.functions import expr

        df, columns = inputs[0], self.options.columns
        if self.options.rejects:
            df, columns = fitting(df, columns), safe(columns)
        if isinstance(columns, dict):
            return df.select(*[expr(body).alias(name) for name, body in columns.items()])
        return df.select(*[expr(expression) for expression in columns])

    def rejects(self) -> bool:
        """Whether a row for which a cast fails is rejected."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows for which a cast fails."""
        return unfitting(inputs[0], self.options.columns)

    def counts(self, *inputs: "DataFrame") -> Counts:  # noqa: ARG002 (the casts are of any of its rows)
        """Those rows."""
        return counted(self.options.columns) if self.options.rejects else Counts()

    def infer(self, *inputs: Facts) -> Facts:
        """The columns, where each has a name or is one of the input's."""
        (facts,) = inputs
        columns = project(self.options.columns, facts)
        return with_operators(facts, self.options.columns).with_columns(columns)

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """Each column of what it is computed from; a generator decides how many rows come out."""
        return None if self.options.rejects else projected(self.options.columns, inputs[0])

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Expressions are over columns that exist, and a star stands alone."""
        (facts,) = inputs
        columns = self.options.columns
        if isinstance(columns, dict):
            yield from named_stars(columns)
        earlier: set[str] = set()
        bodies = [split_alias(expression)[0] for _, expression in keyed(columns)]
        # One aggregate function makes an aggregation over all rows of it, without any group.
        calls = filter(calls_functions, bodies)
        aggregated = any(analyse(body, facts.columns).aggregates for body in calls)
        yield from several_windows(bodies, "columns")
        if self.options.rejects:
            yield from check_casts(columns, facts)
        for key, expression in keyed(columns):
            body, alias = split_alias(expression) if isinstance(key, int) else (expression, key)
            if not body.endswith("*"):
                yield from check_expression(
                    body,
                    facts,
                    ("columns", key),
                    also=earlier,
                    aggregates="allowed",
                    groups=() if aggregated else None,
                )
            if isinstance(alias, str):
                earlier.add(alias.lower())


def with_operators(facts: Facts, expressions: list[str] | dict[str, str]) -> Facts:
    """The facts behind the operators that these expressions ask for.

    Spark makes an aggregation over all rows of a projection that has an aggregate function.
    """
    found = {
        key: analyse(split_alias(body)[0], facts.columns)
        for key, body in keyed(expressions)
        if calls_functions(body)
    }
    distinct = [key for key, analysis in found.items() if analysis.distinct]
    timely = [key for key, analysis in found.items() if analysis.clock_aggregated]
    bodies = dict(keyed(expressions))
    for key, analysis in found.items():
        place = ("columns", key)
        if analysis.aggregates:
            aggregate = AggregateOperator(
                option=place,
                event_time=False,
                sessions=False,
                distinct=tuple(split_alias(bodies[key])[0] for key in distinct),
                distinct_option=("columns", distinct[0]) if distinct else None,
                windowed=False,
                clock=split_alias(bodies[timely[0]])[0] if timely else "",
                clock_option=("columns", timely[0]) if timely else None,
            )
            facts = facts.after(aggregate)
            break
    for key, analysis in found.items():
        place = ("columns", key)
        if analysis.analytic:
            facts = facts.after(Operator("analytic_window", place))
        if analysis.generator:
            facts = facts.after(Operator("generate", place))
        if analysis.row_ids:
            facts = facts.after(Operator("row_ids", place))
        if analysis.current_time:
            facts = facts.after(Operator("current_time", place))
    return facts


def projected(expressions: list[str] | dict[str, str], facts: Facts) -> Lineage | None:
    """What a projection makes of what; None where that isn't known, or it aggregates."""
    columns: dict[str, Made] = {}
    each: list[Made] = []
    generators: list[Made] = []
    windows: list[str] = []
    for key, expression in keyed(expressions):
        body, alias = split_alias(expression) if isinstance(key, int) else (expression, key)
        if body.strip() == "*":
            through = passed(facts.columns)
            if through is None:
                return None
            columns |= through
            each += through.values()
            continue
        unnamed = not isinstance(alias, str)
        fields = fields_of_star(body, facts) if unnamed else None
        if fields is not None:
            made_of_fields = {name.lower(): made_of(text, facts.columns) for name, text in fields}
            columns |= made_of_fields
            each += made_of_fields.values()
            continue
        found = analyse(body, facts.columns, name=None if unnamed else alias)
        several = generated(expression, facts.columns) if found.generator and unnamed else None
        if several is not None:
            of_generator = made_of_generator(several, facts)
            columns |= of_generator
            each += of_generator.values()
            generators.append(made_of(several.call, facts.columns))
            continue
        if found.aggregates or found.analytic or not found.column.name:
            return None
        made = made_of(body, facts.columns, earlier=columns)
        if found.generator or has_overlapping_windows(body):
            generators.append(made)
        windows += windows_over(body)
        columns[found.column.name.lower()] = made
        each.append(made)
    if len(columns) < len(each):
        # Several are of one name, and are told apart by what they belong to.
        keys = column_keys(project(expressions, facts))
        if keys is None or len(keys) != len(each):
            return None
        columns = dict(zip(keys, each, strict=True))
    if not windows:
        return Lineage(columns, Made(" ".join(made.rule for made in generators), uses_of(generators)))
    condition = " and ".join(f"({text}) is not null" for text in dict.fromkeys(windows))
    decides = made_of(condition, facts.columns, earlier=columns)
    rows = Made(" ".join(made.rule for made in (decides, *generators)), uses_of([decides, *generators]))
    return Lineage(
        columns,
        rows,
        asks=asked_by(condition, [facts.columns]),
        only_nulls=nulls_left_out(condition, [facts.columns]),
        several=bool(generators),
    )


def made_of_generator(several: Generated, facts: Facts) -> dict[str, Made]:
    """How the columns of a generator are made that makes several: each in its place of what it is over."""
    whole = made_of(several.call, facts.columns)
    nulls = {"never": frozenset[str](), "maybe": frozenset({MAYBE_NULL}), "unknown": frozenset({UNCERTAIN})}
    return {
        column.name.lower(): Made(f"{place} of {whole.rule}", whole.uses, nulls[null])
        for place, (column, null) in enumerate(zip(several.columns, several.nulls, strict=True))
    }


def named_stars(columns: dict[str, str]) -> "Iterator[Finding]":
    """A finding for each ``*`` that is to become one column."""
    for name, expression in columns.items():
        star = expression.removesuffix("*").strip().removesuffix(".")
        if expression.endswith("*") and (not star or reference(star) is not None):
            yield Finding(
                "GB205",
                f"`{expression}` is several columns and can't be called `{name}`",
                "Write `columns` as a list to use a star.",
                ("columns", name),
            )
