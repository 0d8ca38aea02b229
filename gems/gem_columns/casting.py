"""Casts whose failure rejects the row: what `select` and `with_columns` do with `rejects: true`."""

from typing import TYPE_CHECKING

from gem_bundle import Counts, Field, Finding, Rejects, reason
from gem_bundle.expressions import check_expression, column_of, keyed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql import Column, DataFrame

    from gem_bundle import Facts
    from gem_bundle.expressions import Casts

    Columns = list[str] | dict[str, str]

_REASON = "wrong_type"


def rejects_field() -> "Any":
    """The option by which a row is rejected where a cast fails."""
    return Field(
        False,
        description="Hand rows for which a `cast(… as …)` of the columns fails to the output `rejected`: "
        "what is cast isn't null, and doesn't fit the type. Every cast counts, also in a branch that isn't "
        "taken. Without it such a cast ends the query, or is null where `spark.sql.ansi.enabled` is off.",
        change="from_now_on",
    )


def safe(columns: "Columns") -> "Columns":
    """The expressions, in which a cast that fails is null: the row is rejected for it."""
    from gem_bundle.expressions import casts_of

    if isinstance(columns, dict):
        return {name: casts_of(body).expression for name, body in columns.items()}
    return [casts_of(body).expression for body in columns]


def fitting(df: "DataFrame", columns: "Columns") -> "DataFrame":
    """The rows for which no cast fails."""
    return df.filter(~_any_failed(columns))


def unfitting(df: "DataFrame", columns: "Columns") -> Rejects:
    """The rows for which a cast fails."""
    from pyspark.sql.functions import array, array_compact, when

    reasons = [
        when(failed, reason(_REASON, f"`{operand}` doesn't fit {kind}"))
        for failed, operand, kind in _failures(columns)
    ]
    return Rejects(df, array_compact(array(*reasons)))


def counted(columns: "Columns") -> Counts:
    """The rows that are rejected."""
    return Counts(rejected=_any_failed(columns))


def check_casts(columns: "Columns", facts: "Facts") -> "Iterator[Finding]":
    """There are casts, each is over columns of the input, and depends on the row alone."""
    from gem_bundle.expressions import casts_of, check_steady

    found: list[Casts] = []
    for key, body in keyed(columns):
        casts = casts_of(body)
        found.append(casts)
        if casts.signs:
            yield Finding(
                "GB205",
                "a cast by `::` isn't among those whose failure rejects a row",
                "Write `cast(… as …)`.",
                ("columns", key),
                word="::",
            )
        for call in casts.calls:
            if not _always_fits(call.operand, call.type, facts):
                yield Finding(
                    "GB205",
                    f"a cast by `{call.type}(…)` isn't among those whose failure rejects a row",
                    f"Write `cast({call.operand} as {call.type})`.",
                    ("columns", key),
                    word=call.type,
                )
        for cast in casts.casts:
            if cast.by_lambda:
                yield Finding(
                    "GB205",
                    f"a cast within a lambda can't reject a row: `{cast.operand}` is one of its values",
                    "Write `try_cast(…)` there, and let a rule of `expect` look for the nulls.",
                    ("columns", key),
                    word="cast",
                )
                continue
            wrong = list(
                check_expression(cast.operand, facts, ("columns", key), analytic=False, generators=False)
            )
            yield from wrong or check_steady(cast.operand, facts, ("columns", key))
    if not any(casts.casts or casts.signs or casts.calls for casts in found):
        yield Finding(
            "GB205",
            "no row can be rejected: there is no `cast(… as …)` among the columns",
            "Remove `rejects`.",
            "rejects",
        )


_WIDER = ("tinyint", "smallint", "int", "bigint", "float", "double")


def _always_fits(operand: str, kind: str, facts: "Facts") -> bool:
    """Whether a cast can't fail, for the type that it is of."""
    if facts.columns is None:
        return False
    given = (column_of(operand, "value", facts.columns).type or "").partition("(")[0]
    if given == kind or (kind == "boolean" and given in _WIDER):
        return given != "decimal"
    if kind in {"date", "timestamp"}:
        return given in {"date", "timestamp", "timestamp_ntz"}
    if kind not in _WIDER:
        return False
    if given in _WIDER:
        return _WIDER.index(given) <= _WIDER.index(kind)
    return given == "boolean" or (given == "decimal" and kind in {"float", "double"})


def _failures(columns: "Columns") -> "list[tuple[Column, str, str]]":
    """For each cast whether it fails, what is cast, and to what."""
    from pyspark.sql.functions import expr

    from gem_bundle.expressions import casts_of

    casts = dict.fromkeys(cast for _, body in keyed(columns) for cast in casts_of(body).casts)
    return [
        (
            expr(f"({operand}) is not null and try_cast(({operand}) as {kind}) is null"),
            operand.replace("try_cast", "cast"),
            kind,
        )
        for operand, kind, _ in casts
    ]


def _any_failed(columns: "Columns") -> "Column":
    from functools import reduce
    from operator import or_

    from pyspark.sql.functions import lit

    return reduce(or_, (failed for failed, _, _ in _failures(columns)), lit(False))
