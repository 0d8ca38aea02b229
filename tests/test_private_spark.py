"""What is private to Spark, or not there over Spark Connect, is used in few places, each for a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.testing.conformance.guard import PRIVATE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MODULES = re.compile(r"(?:py4j|pyspark\.(?:java_gateway|core|rdd|context|sql\.(?:classic|connect)))\b")
# The places, and why each of them can't do without. Over Spark Connect none of these lines is reached.
ALLOWED = {
    "core/gem_bundle/contexts.py": (
        "the class of a session says which kind it is",
        {"pyspark.sql.connect"},
    ),
    "core/gem_bundle/kept.py": (
        "only Java forgets rows that were checkpointed; over Spark Connect the server does it by itself",
        {"_jdf", "_jsc", "rdd", "sparkContext"},
    ),
    "core/gem_bundle/refusals.py": (
        "rows go to Python and back as they are; over Spark Connect through a table function",
        {"rdd"},
    ),
    "core/gem_bundle/run/engine.py": (
        "Spark's check of an unstarted query is Java's; over Spark Connect the query is started",
        {"_jvm", "_jdf"},
    ),
    "core/gem_bundle/run/lost_java.py": (
        "nobody else knows whether Java is there; over Spark Connect there is none here",
        {"_gateway", "_jvm", "_active_spark_context", "_instantiatedSession", "_activeSession"},
    ),
    "core/gem_bundle/run/session.py": (
        "why a Spark of one's own doesn't start is said by what started it",
        {"py4j"},
    ),
    "core/gem_bundle/run/start_guard.py": (
        "pyspark gives the process that it starts to nobody; it starts none over Spark Connect",
        {"pyspark.java_gateway"},
    ),
    "core/gem_bundle/testing/conformance/guard.py": ("it names what gems may not use", set(PRIVATE)),
    "core/gem_bundle/testing/conformance/code.py": (
        "it names what gems may not import",
        {"pyspark.java_gateway", "pyspark.rdd", "pyspark.context"},
    ),
}


@cache
def names() -> frozenset[str]:
    """Those of Spark's objects, and all that pyspark has for Java's counterparts of them."""
    spark = Path(find_spec("pyspark").origin or "").parent  # type: ignore[union-attr]
    files = [
        file for part in ("core", "sql") for file in (spark / part).rglob("*.py") if "tests" not in file.parts
    ]
    counterparts = {name for file in files for name in re.findall(r"self\.(_j\w+)", file.read_text("utf-8"))}
    return PRIVATE | counterparts | {"_activeSession"}


def private(source: str) -> Iterator[str]:
    """The private names and modules that some code takes, imports or has as a text of its own."""
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        attribute = ""
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            attribute = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            attribute = node.value
            modules = [attribute] if re.fullmatch(r"pyspark\.[\w.]+", attribute) else []
        if attribute in names():
            yield attribute
        yield from {found[0] for module in modules if (found := MODULES.match(module))}


def test_only_these_places_use_what_is_private() -> None:
    found: dict[str, set[str]] = {}
    likely = re.compile(rf"\b(?:{'|'.join(names())})\b|{MODULES.pattern}")
    for folder in ("core", "gems", "bundles"):
        for file in (ROOT / folder).rglob("*.py"):
            source = file.read_text(encoding="utf-8")
            if likely.search(source) and (used := set(private(source))):
                found[str(file.relative_to(ROOT))] = used
    assert found == {file: used for file, (_, used) in ALLOWED.items()}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("spark._jvm.java", "_jvm"),
        ("getattr(df, '_jdf', None)", "_jdf"),
        ("query._jsq.stop()", "_jsq"),
        ("spark._jsparkSession", "_jsparkSession"),
        ("spark.sparkContext.parallelize([])", "sparkContext"),
        ("from py4j.protocol import Py4JError", "py4j"),
        ("import pyspark.java_gateway as launcher", "pyspark.java_gateway"),
        ("from pyspark.sql.classic.dataframe import DataFrame", "pyspark.sql.classic"),
        ("from pyspark.sql.connect import session", "pyspark.sql.connect"),
    ],
)
def test_a_new_use_is_found(code: str, name: str) -> None:
    assert list(private(code)) == [name]


@pytest.mark.parametrize("code", ["gem._join", "spark.version", "'no py4j is here'", "import pyspark.sql"])
def test_what_is_public_is_not(code: str) -> None:
    assert list(private(code)) == []
