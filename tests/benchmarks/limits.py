"""How soon the worst is over: hostile files, long chains, expressions that nobody would write.

The suite holds how much work these are, by counting; how long that takes is measured here, against work of the same
kind that nobody could mind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.check.checker import check_definition
from gem_bundle.expressions import analyse
from gem_bundle.expressions.analysis import parsed
from gem_bundle.pipeline.document import parse
from tests.benchmarks.timing import Comparison, clean_environment, in_turn
from tests.core import hostile
from tests.core.check.test_graph import cycles_of, deep_graphs, order_of
from tests.core.check.test_hostile import LIMITS
from tests.core.check.test_streaming_work import pipeline
from tests.core.checking import load
from tests.core.streams import gems
from tests.core.test_document import billion_laughs, merge_keys
from tests.core.test_expressions import COLUMNS, HOSTILE, ask_everything
from tests.core.test_operators import ask_of_each, diamonds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).parents[2]
SEED = 20261121
FILES = 1300
OPERATORS = 1500
TARGETS = 20
EXPRESSIONS = 1000
DEEP = 10_000
LEVELS = 2_000


def chain(pairs: int, folder: Path) -> Comparison:
    """A check of a long chain of operators that the rules on streams look at, against reading its file."""
    text = pipeline(OPERATORS, TARGETS, "update")
    loaded = load(text)
    found = in_turn(
        lambda: seconds(lambda: check_definition(loaded, gems())), lambda: seconds(lambda: load(text)), pairs
    )
    return found.compared(
        "long-chain",
        f"the check of a chain of {OPERATORS:,} operators with {TARGETS} targets",
        "reading its file",
        at_most=5,
    )


def hostile_files(pairs: int, folder: Path) -> Comparison:
    """The slowest of many hostile files, in processor time, against the median one."""
    command = [str(SEED), "0", str(FILES)]
    return _slowest(pairs, "hostile-files", f"the slowest of {FILES:,} hostile files", command)


def limits(pairs: int, folder: Path) -> Comparison:
    """The slowest of the files at the limits of what is read, in processor time, against the median one."""
    folder.mkdir()
    files = [folder / f"{limit.id}.yaml" for limit in LIMITS]
    for file, limit in zip(files, LIMITS, strict=True):
        file.write_text(str(limit.values[0]))
    command = ["--files", *map(str, files)]
    return _slowest(
        pairs, "limits", f"the slowest of {len(files)} files at the limits of what is read", command
    )


def _slowest(pairs: int, name: str, what: str, command: Iterable[str]) -> Comparison:
    took: list[float] = []

    def slowest() -> float:
        lines = subprocess.run(
            [sys.executable, "-m", "tests.core.hostile", *command],
            cwd=ROOT,
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        found = [hostile.Result(*json.loads(line)) for line in lines if line.startswith("[")]
        took[:] = sorted(result.seconds for result in found)
        return took[-1]

    found = in_turn(slowest, lambda: took[len(took) // 2] if took else 0.0, pairs)
    return found.compared(name, what, "the median of them", seconds=hostile.SECONDS)


def hostile_expressions(pairs: int, folder: Path) -> Comparison:
    """The slowest of the expressions that nobody would write, against one that anybody would."""

    def asked(text: str) -> float:
        parsed.cache_clear()
        return seconds(lambda: ask_everything(text))

    usual = "sum(a) > 1 and made is not null"
    found = in_turn(lambda: max(map(asked, HOSTILE)), lambda: asked(usual), pairs)
    return found.compared(
        "hostile-expressions",
        f"everything asked about the slowest of {len(HOSTILE)} hostile expressions",
        "everything asked about a usual one",
        seconds=2,
    )


def expressions(pairs: int, folder: Path) -> Comparison:
    """Analysing many expressions, against parsing them."""
    import sqlglot

    numbers = iter(range(0, 10**9, EXPRESSIONS))

    def texts() -> list[str]:
        first = next(numbers)
        return [
            f"case when id > {n} and made is not null then id * {n} else {n} end"
            for n in range(first, first + EXPRESSIONS)
        ]

    def analysed() -> float:
        some = texts()
        return seconds(lambda: [analyse(text, COLUMNS, name="x") for text in some])

    def only_parsed() -> float:
        some = texts()
        return seconds(lambda: [sqlglot.parse_one(text, dialect="spark") for text in some])

    return in_turn(analysed, only_parsed, pairs).compared(
        "expressions",
        f"analysing {EXPRESSIONS:,} expressions",
        "`sqlglot.parse_one` of as many",
        at_most=4,
    )


def graph(pairs: int, folder: Path) -> Comparison:
    """Putting a deep graph in order and finding its cycle, against one of a tenth."""

    def took(nodes: int) -> float:
        backwards, ring = deep_graphs(nodes)
        return seconds(lambda: (order_of(backwards), cycles_of(ring)))

    return in_turn(lambda: took(DEEP), lambda: took(DEEP // 10), pairs).compared(
        "deep-graph",
        f"the order of {DEEP:,} nodes in a row, and the cycle of as many in a ring",
        "the same of a tenth",
        at_most=30,
    )


def diamonds_in_a_row(pairs: int, folder: Path) -> Comparison:
    """Asking about each operator of a pipeline that parts and comes together over and over, against a tenth of it."""

    def took(levels: int) -> float:
        facts = diamonds(levels)
        return seconds(lambda: ask_of_each(facts))

    return in_turn(lambda: took(LEVELS), lambda: took(LEVELS // 10), pairs).compared(
        "diamonds",
        f"everything asked about the operators of {LEVELS:,} diamonds in a row",
        "the same of a tenth",
        at_most=30,
    )


def bombs(pairs: int, folder: Path) -> Comparison:
    """The slower of two files that would be endless with their aliases followed, against reading the flights."""
    flights = (ROOT / "examples" / "flights" / "flights.yaml").read_text(encoding="utf-8")

    def read(text: str) -> float:
        return seconds(lambda: parse(text, Path("pipeline.yaml")))

    return in_turn(
        lambda: max(read(billion_laughs()), read(merge_keys())), lambda: read(flights), pairs
    ).compared(
        "bombs", "refusing the slower of two bombs of aliases", "reading `examples/flights`", seconds=1
    )


def seconds(function: Callable[[], object]) -> float:
    """The processor's time that something takes."""
    began = time.process_time()
    function()
    return time.process_time() - began
