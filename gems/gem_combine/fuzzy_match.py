"""The transform `fuzzy_match`: pairs of rows that are nearly the same."""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    JoinOperator,
    Kept,
    Lineage,
    Made,
    Operator,
    Options,
    Transform,
    combined,
)
from gem_bundle.expressions import (
    analyse,
    check_chance,
    check_expression,
    common_type,
    made_of,
    missing_names,
)
from gem_bundle.lineage import column_keys, uses_of
from gem_bundle.schema import quoted, with_article
from gem_bundle.types import ExpressionList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

Measure = Literal["edits", "words", "sound", "equal"]
_SIDES = ("left", "right")
_KEY, _FIELD = "__gem_bundle_{side}_key_{n}", "__gem_bundle_{side}_field_{n}"


class FieldOptions(Options):
    """How alike two values are, and how much that counts."""

    measure: Measure = Field(
        "edits",
        description="What makes two texts alike: few `edits` (Levenshtein) for the longer one's length, "
        "`words` in common among all that there are, the same `sound` (Soundex, for English), or that they "
        "are `equal`.",
    )
    weight: float = Field(1.0, gt=0, allow_inf_nan=False, description="How much it counts beside the others.")


class FuzzyMatchOptions(Options):
    """Options of the transform `fuzzy_match`."""

    default_change = "from_now_on"

    id: str = Field(
        min_length=1,
        description="The column by which a row is told, in both inputs.",
        examples=["customer_id"],
        change="mixed",
    )
    fields: dict[str, FieldOptions] = Field(
        min_length=1,
        description="The columns that are compared, as texts without regard to case and to white space at "
        "the ends. What is null on one side is not alike.",
        examples=[{"name": {}, "city": {"measure": "equal", "weight": 0.5}}],
        change="mixed",
    )
    block_by: ExpressionList = Field(
        min_length=1,
        description="Only rows that agree in these expressions are compared, for there are too many pairs "
        "otherwise. Null agrees with nothing.",
        examples=[["country", "soundex(name)"]],
        change="mixed",
    )
    threshold: float = Field(
        0.8, ge=0, le=1, description="How alike two rows are at least, from 0 to 1, for a pair to come out."
    )
    pairs: Literal["across", "within"] = Field(
        "across",
        description="`across` the two inputs, or `within` one that is given twice: each pair once then, and "
        "no row with itself.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> "FuzzyMatchOptions":
        seen: set[str] = set()
        for name in self.fields:
            if name.lower() in seen:
                raise ValueError(f"`{name}` stands twice in `fields`: Spark ignores case")
            seen.add(name.lower())
        return self


class FuzzyMatch(Transform[FuzzyMatchOptions]):
    """Find pairs of rows that are nearly the same, and how alike they are.

    What comes out has `left_id`, `right_id` and `score`, the weighted mean of how alike the fields are.
    To look for duplicates in one input give it twice, `inputs: {left: people, right: people}`, and say
    `pairs: within`. It is a join of equal blocks: two streams keep all their rows as state.

    In visual tools: FuzzyMatch.
    """

    inputs: ClassVar[tuple[int, int | None]] = (2, 2)
    example = {"id": "customer_id", "fields": {"name": {}}, "block_by": ["country"], "threshold": 0.7}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The pairs."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        left, right = (self._side(df, side) for df, side in zip(inputs, _SIDES, strict=True))
        count = len(self.options.block_by)
        names = [[_KEY.format(side=side, n=n) for side in _SIDES] for n in range(count)]
        paired = left.join(right, on=[left[one] == right[other] for one, other in names], how="inner")
        if self.options.pairs == "within":
            paired = paired.filter(F.col("left_id") < F.col("right_id"))
        scored = paired.select("left_id", "right_id", self._score().alias("score"))
        return scored.filter(F.col("score") >= self.options.threshold)

    def infer(self, *inputs: Facts) -> Facts:
        """The ids of both, and how alike they are."""
        left, right = inputs
        names = self.input_names or ("left", "right")
        operator = JoinOperator(
            option="block_by",
            how="inner",
            names=(names[0], names[1]),
            equality=True,
            event_time_key=False,
            bounded=(False, False),
            watermarked=(left.watermarked, right.watermarked),
            times=(left.time, right.time),
        )
        facts = combined(operator, inputs).after(Operator("filter", "threshold"))
        ids = [facts_of.column(self.options.id) for facts_of in inputs]
        known = [
            Column(f"{side}_id") if column is None else replace(column, name=f"{side}_id", qualifier=None)
            for side, column in zip(_SIDES, ids, strict=True)
        ]
        return facts.with_all_columns([*known, Column("score", "double")])

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """The ids as they are, the score of the fields; of streams all of that is kept, by blocks."""
        keys = [column_keys(facts.columns) for facts in inputs]
        if None in keys:
            return None
        options = self.options
        ids = {
            f"{side}_id": Made("=", frozenset({f"{place}:{options.id.lower()}"}))
            for place, side in enumerate(_SIDES)
        }
        fields = frozenset(f"{place}:{name.lower()}" for place in (0, 1) for name in options.fields)
        rule = repr([(name.lower(), repr(field)) for name, field in options.fields.items()])
        blocks = [
            made_of(text, facts.columns, position=place)
            for text in options.block_by
            for place, facts in enumerate(inputs)
        ]
        score = Made(f"score {rule}", fields, frozenset())
        deciding = [score, *blocks, *(ids.values() if options.pairs == "within" else ())]
        decides = " ".join([options.pairs, str(options.threshold), rule, *(block.rule for block in blocks)])
        rows = Made(decides, uses_of(deciding))
        columns = {**ids, "score": score}
        if not all(facts.streaming is not False for facts in inputs):
            return Lineage(columns, rows)
        return Lineage(columns, rows, self._kept(inputs, blocks))

    def _kept(self, inputs: "Sequence[Facts]", blocks: list[Made]) -> Kept:
        """What is kept of two streams."""
        blocked = [
            [analyse(text, facts.columns).column.type for facts in inputs] for text in self.options.block_by
        ]
        ids = [facts.column(self.options.id) for facts in inputs]
        values: dict[str, dict[str, tuple[str, ...]] | None] = {
            f"{side}_id": None
            if column is None or column.type is None
            else {side: (f"{side} {column.type}",)}
            for side, column in zip(_SIDES, ids, strict=True)
        }
        kept: dict[str, tuple[str, ...]] = {
            f"{side} {name}": (f"{side} string",) for side in _SIDES for name in self.options.fields
        }
        kept |= {
            f"{side} block {place}": (f"{side} {kind}" if kind else "?",)
            for place, kinds in enumerate(blocked)
            for side, kind in zip(_SIDES, kinds, strict=True)
        }
        values["score"] = kept
        return Kept(
            tuple(blocks),
            tuple(map(common_type, blocked)),
            values,
            frozenset({"score"} if self.options.pairs == "across" else values),
            rows=True,
        )

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """Both inputs have the columns, which can be texts."""
        names = self.input_names or ("left", "right")
        for facts, input_name in zip(inputs, names, strict=True):
            found = [*missing_names([self.options.id], facts, "id")]
            for name in self.options.fields:
                found += missing_names([name], facts, ("fields", name))
                column = facts.column(name)
                if column is not None and (column.type or "").startswith(("array<", "map<", "struct<")):
                    kind = with_article((column.type or "").partition("<")[0])
                    message = f"there is no text in `{name}`, which is {kind}"
                    found.append(Finding("GB213", message, "Compare a field of it.", ("fields", name)))
            for position, text in enumerate(self.options.block_by):
                place = ("block_by", position)
                wrong = list(
                    check_expression(text, facts, place, wants="equality", analytic=False, generators=False)
                )
                found += wrong or check_chance(text, facts, place)
            for finding in found:
                yield replace(finding, message=f"input `{input_name}`: {finding.message}")
        if self.options.pairs == "across" and names[0].lower() == names[1].lower():
            yield Finding(
                "GB205",
                f"both inputs are `{names[0]}`, so that every row is paired with itself",
                "Say `pairs: within`.",
                "pairs",
                "warning",
            )

    def _side(self, df: "DataFrame", side: str) -> "DataFrame":
        """What is needed of an input."""
        from pyspark.sql.functions import col, expr, lower, trim

        keys = [expr(text).alias(_KEY.format(side=side, n=n)) for n, text in enumerate(self.options.block_by)]
        fields = [
            trim(lower(col(quoted(name)).cast("string"))).alias(_FIELD.format(side=side, n=n))
            for n, name in enumerate(self.options.fields)
        ]
        return df.select(col(quoted(self.options.id)).alias(f"{side}_id"), *keys, *fields)

    def _score(self) -> "SparkColumn":
        """How alike the rows of a pair are."""
        from pyspark.sql.functions import coalesce, lit

        total = sum(field.weight for field in self.options.fields.values())
        score = lit(0.0)
        for n, field in enumerate(self.options.fields.values()):
            alike = _alike(field.measure, *(_FIELD.format(side=side, n=n) for side in _SIDES))
            score = score + lit(field.weight / total) * coalesce(alike, lit(0.0))
        return score


def _alike(measure: Measure, left: str, right: str) -> "SparkColumn":
    """How alike two texts are, from 0 to 1; null where one of them is."""
    from pyspark.sql import functions as F  # noqa: N812

    one, other = F.col(left), F.col(right)
    if measure == "edits":
        longer = F.greatest(F.length(one), F.length(other))
        part = F.lit(1.0) - F.levenshtein(one, other) / longer
        return F.when(one == other, F.lit(1.0)).otherwise(part)
    if measure == "words":
        first, second = (F.array_distinct(F.split(text, r"\s+")) for text in (one, other))
        return F.size(F.array_intersect(first, second)) / F.size(F.array_union(first, second))
    if measure == "sound":
        one, other = F.soundex(one), F.soundex(other)
    return F.when(one == other, F.lit(1.0)).when(one != other, F.lit(0.0))
