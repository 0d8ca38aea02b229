"""What is said of Java's regular expressions without a JVM."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import IllegalArgumentException

from gem_filter.patterns import refused_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = [
    "(",
    "a)",
    "(a|b",
    "[a-z",
    "[]",
    "[^]",
    "*a",
    "+",
    "a|?b",
    "(*a)",
    "a**",
    "a+++",
    "a{3,2}",
    "a\\",
    "(?:a",
]
# The first ones Java takes and Python doesn't, or reads otherwise; of the last ones nothing is certain.
TAKEN = [
    "[a[b](]",
    "[a&&[b(]]",
    "\\Q(\\E",
    "(?x)a # (",
    "^*a",
    "(?<year>[0-9]+)-\\k<year>",
    "\\p{L}+",
    "a++",
    "^[A-Z]{2}$",
    "[(]",
    "\\(",
    "[]a]",
    "a{,3}b"[:1],
]
UNTOLD = ["(?<a>", "\\p{L}(", "[z-a]"]


def test_what_java_certainly_refuses_is_told() -> None:
    assert [text for text in REFUSED if refused_pattern(text) is None] == []
    assert [text for text in [*TAKEN, *UNTOLD] if refused_pattern(text) is not None] == []


@pytest.mark.spark
def test_java_is_of_the_same_opinion(spark: SparkSession) -> None:
    java = spark.sparkContext._jvm.java.util.regex.Pattern  # type: ignore[union-attr]

    def takes(text: str) -> bool:
        with suppress(IllegalArgumentException):
            return java.compile(text) is not None
        return False

    assert [text for text in REFUSED if takes(text)] == []
    assert [text for text in TAKEN if not takes(text)] == []
