"""The transform `rest_enrich`: what a service answers to a call for each row."""

# No `from __future__ import annotations`: Spark reads the annotations of the function that it is given.
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from gem_bundle import Column, Facts, Finding, GemError, Rejects, Transform, ending, reason
from gem_bundle.expressions import backquoted, check_expression, missing_columns
from gem_bundle.schema import columns_of
from gem_rest.calling import OUTCOME_TYPE, Calls
from gem_rest.options import RestEnrichOptions, pieces_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql._typing import UserDefinedFunctionLike

_CALL = "__gem_bundle_call"
_ANSWER = "__gem_bundle_answer"
_CORRUPT = "__gem_bundle_corrupt"


class RestEnrich(Transform[RestEnrichOptions]):
    """Call a service for each row, and take fields of its answer.

    In visual tools: RestAPIEnrich.

    The answer is an object of JSON, or empty. A row whose call fails ends the query, or is in the output
    `rejected`: the service answers with an error of the client's, such as HTTP 404, or with a redirect, with
    something else than JSON, or with values that don't fit the schema. A service that doesn't answer ends the
    query at the last try, and so does one that refuses the login. After a failure rows are called for again.
    """

    example = {"url": "https://api.example.com/users/{user_id}", "schema": "name string, score double"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows with their answers, without those that are rejected."""
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        df = self._read(inputs[0])
        wrong = F.size(_reasons()) > 0
        if self.options.rejects:
            df = df.where(~wrong)
        else:
            first = F.element_at(_reasons(), 1)
            words, row = first.getField("words"), F.struct(F.col(_CALL).getField("body").alias("answer"))
            end = ending(self.node, "answer", words, row)
            df = df.where(F.when(~wrong, F.lit(True)).otherwise(end))
        answer = F.col(_ANSWER).dropFields(_CORRUPT)
        return df.withColumn(self.options.column, answer).drop(_CALL, _ANSWER)

    def settles(self) -> bool:
        """Another call may have another answer, so what decides is asked for once."""
        return self.options.rejects

    def settle(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows with the outcomes of their calls."""
        return self._called(inputs[0])

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def reject(self, *inputs: "DataFrame") -> Rejects:
        """The rows whose call failed."""
        return Rejects(self._read(inputs[0]), _reasons())

    def for_preview(self) -> "Transform[RestEnrichOptions]":
        """The same one where it only asks; else one that calls nobody."""
        return self if self.options.method == "GET" else _Silent(self.options)

    def infer(self, *inputs: Facts) -> Facts:
        """The column of answers, in the place of one of its name or behind the others."""
        (facts,) = inputs
        if facts.columns is None:
            return facts
        fields = ", ".join(f"{backquoted(c.name)}: {c.type}" for c in columns_of(self.options.schema) or ())
        answer = Column(self.options.column, f"struct<{fields}>")
        name = answer.name.lower()
        columns = [answer if c.name.lower() == name else c for c in facts.columns]
        return facts.with_columns(columns if answer in columns else [*columns, answer])

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns of the address and of the body are there."""
        (facts,) = inputs
        names = [name for _, name in pieces_of(self.options.url) if name is not None]
        yield from missing_columns(names, facts, "url")
        for field, expression in (self.options.body or {}).items():
            yield from check_expression(expression, facts, ("body", field), generators=False)

    def _read(self, df: "DataFrame") -> "DataFrame":
        """The rows with the outcome of each call, and with the answer as the schema has it."""
        from pyspark.sql import functions as F  # noqa: N812

        called = df if _CALL in df.columns else self._called(df)
        # Another field of the schema gets the whole text where it doesn't fit.
        schema = f"{self.options.schema}, {_CORRUPT} string"
        how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        return called.withColumn(_ANSWER, F.from_json(F.col(_CALL).getField("body"), schema, how))

    def _called(self, df: "DataFrame") -> "DataFrame":
        return df.withColumn(_CALL, _udf(self.options.calls())(*self._request()))

    def _request(self) -> "tuple[SparkColumn, SparkColumn]":
        """The address of a row's call, and what is sent."""
        from pyspark.sql import functions as F  # noqa: N812

        body: SparkColumn = F.lit(None).cast("string")
        if self.options.body is not None:
            fields = [F.expr(text).alias(name) for name, text in self.options.body.items()]
            body = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
        parts: list[SparkColumn] = []
        for text, name in pieces_of(self.options.url):
            parts.append(F.lit(text))
            if name is not None:
                # Spark's own writes a space as a plus, which only the part behind the question mark takes.
                escaped = F.url_encode(F.expr(name).cast("string"))
                parts.append(F.replace(escaped, F.lit("+"), F.lit("%20")))
        return F.concat(*parts), body


class _Silent(RestEnrich):
    """One whose calls have no answers, for those who only look."""

    def _called(self, df: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        # They are looked at, so that what is wrong with them is found.
        address, body = self._request()
        return df.withColumn(_CALL, F.when(address.isNull() & body.isNull(), None).cast(OUTCOME_TYPE))


def _reasons() -> "SparkColumn":
    """Why a row is rejected; empty where it isn't."""
    from pyspark.sql import functions as F  # noqa: N812

    call, answer = F.col(_CALL), F.col(_ANSWER)
    told = F.struct(call.getField("name").alias("name"), call.getField("words").alias("words"))
    none = F.filter(F.array(reason("", "")), lambda _: F.lit(False))
    shown = F.substring(answer.getField(_CORRUPT), 1, 300)
    words = F.concat(F.lit("the answer doesn't fit the schema: "), shown)
    return (
        F.when(call.getField("name").isNotNull(), F.array(told))
        .when(answer.getField(_CORRUPT).isNotNull(), F.array(reason("wrong_type", words)))
        .otherwise(none)
    )


def _udf(calls: Calls) -> "Callable[..., SparkColumn]":
    """The function that Spark calls with the addresses and bodies of a task.

    Raises:
        GemError: GB509 when PySpark misses what it hands data over with.
    """
    try:
        import pandas as pd
        import pyarrow as pa  # noqa: F401
    except ImportError as error:
        raise GemError(
            "GB509",
            f"calling a service takes pandas and pyarrow, here and on executors: {error}",
            "Install them with `pip install 'gem-bundle[rest]'`.",
        ) from error
    from pyspark.sql.pandas.functions import pandas_udf

    def call(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.DataFrame]:
        def asked() -> Iterator[list[tuple[Any, Any]]]:
            for urls, bodies in batches:
                yield [(_text(url), _text(body)) for url, body in zip(urls, bodies, strict=True)]

        for outcomes in calls.all_of(asked()):
            yield pd.DataFrame(outcomes, columns=["body", "name", "words"], dtype=object)

    # What it gives depends on more than its arguments; and a filter would have it computed twice.
    made = cast("UserDefinedFunctionLike", pandas_udf(call, OUTCOME_TYPE))  # type: ignore[call-overload]
    return made.asNondeterministic()


def _text(value: Any) -> str | None:
    """A text of a column; of pandas a missing one is None or not a number."""
    return value if isinstance(value, str) else None
