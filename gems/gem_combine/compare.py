"""The transform `compare`: two inputs row by row, and what differs."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from gem_bundle import (
    AggregateOperator,
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    JoinOperator,
    Operator,
    Options,
    Transform,
    combined,
)
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import missing_names
from gem_bundle.schema import differ_for_certain, quoted, type_of, with_article, without_equality
from gem_bundle.types import StringList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


class CompareOptions(Options):
    """Options of the transform `compare`."""

    default_change = "from_now_on"

    on: StringList = Field(
        min_length=1,
        description="The columns that both inputs have and by which a row of one is found in the other; two "
        "nulls are equal.",
        examples=[["id"]],
    )
    columns: StringList | None = Field(
        None,
        min_length=1,
        description="The columns to compare; by default all others, which both inputs must have then.",
        examples=[["amount", "page"]],
    )
    tolerance: dict[str, float] = Field(
        {},
        description="How far numbers may be apart and count as equal, by column.",
        examples=[{"amount": 0.01}],
    )
    matched: bool = Field(True, description="Whether rows without any difference come out too.")

    @model_validator(mode="after")
    def _each_once(self) -> "CompareOptions":
        seen: set[str] = set()
        for name in [*self.on, *(self.columns or ())]:
            if name.lower() in seen:
                raise ValueError(f"`{name}` stands twice in `on` and `columns`")
            seen.add(name.lower())
        reserved = {"status", "differing", "left", "right"} & {name.lower() for name in self.on}
        if reserved:
            name = min(reserved)
            raise ValueError(f"`{name}` is a column of what comes out; rename the key before")
        for name, far in self.tolerance.items():
            if not far >= 0:
                raise ValueError(f"the tolerance of `{name}` must be a number that isn't negative")
            if name.lower() in {key.lower() for key in self.on}:
                raise ValueError(f"`tolerance` names `{name}`, a key: keys are equal or aren't")
            if self.columns is not None and name.lower() not in {known.lower() for known in self.columns}:
                raise ValueError(f"`tolerance` names `{name}`, which isn't among the `columns`")
        return self


class Compare(Transform[CompareOptions]):
    """Compare two inputs by keys: one row for each key, with what is equal, different or missing.

    What comes out has the keys; `status`, which is `matched`, `differing`, `only_left`, `only_right`, or
    `several` where an input has rows with equal keys, which can't be told apart; `differing`, the names of
    the columns that differ; and the compared columns of both, `left` and `right`. It needs all rows of both
    inputs, so neither may be a stream.

    In visual tools: CompareColumns.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, 2)
    example = {"on": ["id"], "tolerance": {"amount": 0.01}}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """A row for each key.

        Raises:
            GemError: When the inputs haven't the same columns.
        """
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        columns = self._compared(inputs[0].columns)
        for df, name in zip(inputs, self._names(), strict=True):
            lower = {known.lower() for known in df.columns}
            for wanted in [*self.options.on, *columns, *self.options.tolerance]:
                if wanted.lower() not in lower:
                    hint = suggest(wanted, df.columns, what="columns")
                    raise GemError("GB205", f"the input `{name}` has no column `{wanted}`", hint, "columns")
            problem = self._unlike(columns, df.columns, name)
            if problem is not None:
                raise GemError("GB205", problem, _NAME_THEM, "columns")
        left, right = (
            self._by_key(df, columns, side) for df, side in zip(inputs, ("left", "right"), strict=True)
        )
        keys = range(len(self.options.on))
        pairs = [left[f"left_key_{n}"].eqNullSafe(right[f"right_key_{n}"]) for n in keys]
        joined = left.join(right, on=pairs, how="full")
        here, there = F.col("left_count"), F.col("right_count")
        differing = F.array_compact(F.array(*(self._difference(n, name) for n, name in enumerate(columns))))
        several = (F.coalesce(here, F.lit(0)) > 1) | (F.coalesce(there, F.lit(0)) > 1)
        both = here.isNotNull() & there.isNotNull() & ~several
        status = (
            F.when(several, "several")
            .when(here.isNull(), "only_right")
            .when(there.isNull(), "only_left")
            .when(F.size(differing) > 0, "differing")
            .otherwise("matched")
        )
        made = joined.select(
            *(
                F.when(here.isNotNull(), F.col(f"left_key_{n}"))
                .otherwise(F.col(f"right_key_{n}"))
                .alias(name)
                for n, name in enumerate(self.options.on)
            ),
            status.alias("status"),
            F.when(both, differing).alias("differing"),
            *(F.when(F.col(f"{side}_count") == 1, self._side(side, columns)).alias(side) for side in _SIDES),
        )
        return made if self.options.matched else made.filter(F.col("status") != "matched")

    def infer(self, *inputs: Facts) -> Facts:
        """The keys, the status, the names of what differs, and what was compared."""
        sides = [facts.after(AggregateOperator(option="on", event_time=False)) for facts in inputs]
        names = self._names()
        operator = JoinOperator(
            option="on", how="full", names=(names[0], names[1]), equality=True, event_time_key=False
        )
        facts = combined(operator, sides)
        facts = facts if self.options.matched else facts.after(Operator("filter", "matched"))
        left, right = inputs
        if left.columns is None or right.columns is None:
            return facts.with_all_columns(None)
        compared = self._compared([column.name for column in left.columns])
        keys = [
            Column(name, kind if kind == other else None)
            for name in self.options.on
            for kind, other in [(_type(left, name), _type(right, name))]
        ]
        structs = []
        for side, of in zip(_SIDES, inputs, strict=True):
            kinds = [_type(of, name) for name in compared]
            fields = ", ".join(f"{quoted(n)}: {kind}" for n, kind in zip(compared, kinds, strict=True))
            structs.append(Column(side, None if None in kinds else f"struct<{fields}>"))
        made = [Column("status", "string"), Column("differing", "array<string>")]
        return facts.with_all_columns([*keys, *made, *structs])

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Neither input is a stream, and both have the columns, whose values can be compared."""
        left, right = inputs
        names = self._names()
        for facts, name in zip(inputs, names, strict=True):
            if facts.streaming:
                yield Finding(
                    "GB205",
                    f"`{name}` is a stream, and comparing needs all rows of both inputs",
                    "Read it with `mode: batch`, or compare in a batch pipeline of its own.",
                )
            for option in ("on", "columns", "tolerance"):
                for found in missing_names(getattr(self.options, option) or (), facts, option):
                    message = found.message.replace("there is", f"the input `{name}` has", 1)
                    yield Finding(found.code, message, found.hint, found.option)
        if left.columns is None or right.columns is None:
            return
        columns = self._compared([column.name for column in left.columns])
        for facts, name in zip(inputs, names, strict=True):
            problem = self._unlike(columns, [column.name for column in facts.columns or ()], name)
            if problem is not None:
                yield Finding("GB205", problem, _NAME_THEM, "columns")
        for name in [*self.options.on, *columns]:
            first, second = _type(left, name), _type(right, name)
            if differ_for_certain(first, second):
                yield Finding(
                    "GB213",
                    f"`{name}` is {with_article(first)} in `{names[0]}` and {with_article(second)} in "
                    f"`{names[1]}`: they can't be compared",
                    "Cast one of them before, or name the other `columns`.",
                    "columns",
                )
            elif without_equality(first):
                yield Finding(
                    "GB213",
                    f"`{name}` is {with_article(first)}, and Spark can't tell two of them equal",
                    "Name the other `columns`, or make a text of it before: `to_json(…)`.",
                    "columns",
                )

        for name in self.options.tolerance:
            for facts, input_name in zip(inputs, names, strict=True):
                yield from _no_number(name, _type(facts, name), input_name)

    def _names(self) -> tuple[str, ...]:
        return self.input_names or _SIDES

    def _compared(self, names: "Sequence[str]") -> list[str]:
        """The columns that are compared."""
        keys = {name.lower() for name in self.options.on}
        return list(self.options.columns or [name for name in names if name.lower() not in keys])

    def _unlike(self, columns: "Sequence[str]", names: "Sequence[str]", input_name: str) -> str | None:
        """Why not all columns are compared though all should be; None when they are."""
        if self.options.columns is not None:
            return None
        keys = {name.lower() for name in self.options.on}
        expected = {name.lower() for name in columns}
        there = {name.lower() for name in names} - keys
        for what, found in (("lacks", expected - there), ("alone has", there - expected)):
            if found:
                return f"`{input_name}` {what} {', '.join(f'`{name}`' for name in sorted(found))}"
        if len({name.lower() for name in names}) < len(names):
            return f"`{input_name}` has several columns of one name"
        return None

    def _by_key(self, df: "DataFrame", columns: "Sequence[str]", side: str) -> "DataFrame":
        """One row for each key, with how many there are."""
        from pyspark.sql import functions as F  # noqa: N812

        keys = [F.col(quoted(name)).alias(f"{side}_key_{n}") for n, name in enumerate(self.options.on)]
        values = [F.col(quoted(name)).alias(f"c{n}") for n, name in enumerate(columns)]
        held = F.struct(*values, F.lit(0).alias("there"))
        return df.groupBy(*keys).agg(
            F.count(F.lit(1)).alias(f"{side}_count"), F.first(held).alias(f"{side}_row")
        )

    def _difference(self, position: int, name: str) -> "SparkColumn":
        """The name of a column where it differs, else null."""
        from pyspark.sql import functions as F  # noqa: N812

        one, other = (F.col(f"{side}_row")[f"c{position}"] for side in _SIDES)
        equal = one.eqNullSafe(other)
        far = {known.lower(): far for known, far in self.options.tolerance.items()}.get(name.lower())
        if far is not None:
            equal = equal | F.coalesce(F.abs(one - other) <= far, F.lit(False))
        return F.when(~equal, F.lit(name))

    def _side(self, side: str, columns: "Sequence[str]") -> "SparkColumn":
        from pyspark.sql import functions as F  # noqa: N812

        return F.struct(*(F.col(f"{side}_row")[f"c{n}"].alias(name) for n, name in enumerate(columns)))


_SIDES = ("left", "right")
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "void"})
_NAME_THEM = "Name the `columns` to compare, or select the same ones in both."


def _no_number(name: str, kind: str | None, input_name: str) -> "Iterator[Finding]":
    """A finding for a column with a tolerance that has no numbers."""
    read = None if kind is None else type_of(kind)
    if read is None or read.name in _NUMBERS:
        return
    # With `spark.sql.ansi.enabled: false` Spark makes numbers of texts.
    text = read.name in {"string", "char", "varchar"}
    yield Finding(
        "GB213",
        f"`{name}` is {with_article(kind)} in `{input_name}`, and only numbers are more or less apart",
        "Cast it to a number before." if text else "Remove it from `tolerance`.",
        ("tolerance", name),
        "warning" if text else "error",
    )


def _type(facts: Facts, name: str) -> str | None:
    column = facts.column(name)
    return None if column is None else column.type
