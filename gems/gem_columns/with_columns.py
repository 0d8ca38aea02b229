"""The transform `with_columns`: computed columns beside the existing ones."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pydantic import field_validator

from gem_bundle import Counts, Facts, Field, Finding, Lineage, Options, Rejects, Transform
from gem_bundle.expressions import check_expression, project, several_windows
from gem_bundle.lineage import passed
from gem_bundle.types import Expression
from gem_columns.casting import check_casts, counted, fitting, rejects_field, safe, unfitting
from gem_columns.select import named_stars, projected, with_operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class WithColumnsOptions(Options):
    """Options of the transform `with_columns`."""

    columns: dict[str, Expression] = Field(
        min_length=1,
        description="The new columns as a mapping of name to expression.",
        examples=[{"cents": "amount * 100", "day": "date(at)"}],
        change="from_now_on",
    )
    rejects: bool = rejects_field()

    @field_validator("columns")
    @classmethod
    def _names_differ(cls, columns: dict[str, str]) -> dict[str, str]:
        first: dict[str, str] = {}
        for name in columns:
            other = first.setdefault(name.lower(), name)
            if other != name:
                raise ValueError(f"`{other}` and `{name}` are one column: Spark ignores case")
        return columns


class WithColumns(Transform[WithColumnsOptions]):
    """Add computed columns, or replace existing ones; all others stay.

    A column that exists is replaced where it stands; new ones come last. Expressions see the
    input's columns, and those of this node that don't exist there.

    In visual tools: DynamicReplace, SchemaTransform.
    """

    example = {"columns": {"cents": "amount * 100"}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The input's columns and the computed ones."""
        from pyspark.sql.functions import expr

        df, columns = inputs[0], self.options.columns
        if self.options.rejects:
            df, columns = fitting(df, columns), cast("dict[str, str]", safe(columns))
        return df.withColumns({name: expr(expression) for name, expression in columns.items()})

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
        """The input's columns, replaced and extended."""
        facts = inputs[0]
        made = project(self.options.columns, facts)
        behind = with_operators(facts, self.options.columns)
        if facts.columns is None or made is None:
            return behind.with_columns(None)
        new = {column.name.lower(): column for column in made}
        known = {column.name.lower() for column in facts.columns}
        kept = [new.get(column.name.lower(), column) for column in facts.columns]
        return behind.with_columns([*kept, *(c for c in made if c.name.lower() not in known)])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The computed columns of what they are computed from; the others as they are."""
        if self.options.rejects:
            return None
        made = projected(self.options.columns, inputs[0])
        through = passed(inputs[0].columns)
        return (
            None if made is None or through is None else replace(made, columns=through | dict(made.columns))
        )

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Expressions are over columns that exist, and neither aggregate nor have a star."""
        columns = self.options.columns
        yield from named_stars(columns)
        yield from several_windows(columns.values(), "columns")
        if self.options.rejects:
            yield from check_casts(columns, inputs[0])
        earlier: set[str] = set()
        for name, expression in columns.items():
            if not expression.endswith("*"):
                yield from check_expression(expression, inputs[0], ("columns", name), also=earlier)
            earlier.add(name.lower())
