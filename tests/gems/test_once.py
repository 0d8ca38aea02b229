"""Values as state keeps them: the same where Spark takes two for equal, and others where it doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle import GemError
from gem_filter.once import claim_of
from gem_filter.rules import Unique

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "whole": ["1", "10", "0", "-1", "null", "1"],
    "decimal": ["1.0BD", "1.00BD", "0.1BD", "10BD", "null", "-1BD"],
    "double": ["0.0D", "-0.0D", "double('NaN')", "double('NaN')", "null", "1e300D"],
    "text": ["'a'", "'A'", "'a '", "''", "null", "'null'"],
    "broken": ["cast(X'ff' as string)", "cast(X'fe' as string)", "'\ufffd'", "'a'", "null", "'a'"],
    "bytes": ["X'00'", "X''", "X'0000'", "X'00'", "null", "X'30'"],
    "time": [
        "timestamp'2024-10-27 01:30:00+02:00'",
        "timestamp'2024-10-27 01:30:00+01:00'",
        "timestamp'2024-10-27 01:30:00.000001+01:00'",
        "timestamp'2024-10-27 00:30:00Z'",
        "null",
        "timestamp'1900-01-01 00:00:00Z'",
    ],
    "pair": [
        "struct('a' as a, 'b,c' as b)",
        "struct('a,b' as a, 'c' as b)",
        "struct('a' as a, null as b)",
        "struct('a' as a, 'null' as b)",
        "null",
        "struct('a' as a, 'b,c' as b)",
    ],
    "list": ["array(0.0D)", "array(-0.0D)", "array(0.0D, 0.0D)", "array(null)", "null", "array()"],
}


@pytest.mark.spark
def test_a_claim_is_the_same_for_equal_values(spark: SparkSession) -> None:
    rows = ", ".join(f"({n}, {', '.join(row)})" for n, row in enumerate(zip(*VALUES.values(), strict=True)))
    df = spark.sql(f"select * from values {rows} as v(n, {', '.join(VALUES)})")
    df = df.withColumns({f"{name}_claim": claim_of(df, Unique("rule", name, "")) for name in VALUES})
    left, right = df.alias("l"), df.alias("r")
    wrong = {
        name: [
            (pair.l, pair.r)
            for pair in left.crossJoin(right)
            .where(f"(l.{name} <=> r.{name}) <> (l.{name}_claim <=> r.{name}_claim)")
            .selectExpr("l.n as l", "r.n as r")
            .collect()
        ]
        for name in VALUES
    }
    assert wrong == {name: [] for name in VALUES}
    (row,) = df.where("n = 0").select("whole_claim", "pair_claim").collect()
    assert {len(claim) for claim in row} == {32}
    other = df.select(claim_of(df, Unique("other", "whole", "")).alias("claim"))
    assert not other.join(df, other.claim == df.whole_claim).count(), "rules keep their values apart"

    with pytest.raises(GemError, match="by which Spark keeps no state"):
        claim_of(spark.sql("select 'a' collate utf8_lcase as text"), Unique("rule", "text", ""))
