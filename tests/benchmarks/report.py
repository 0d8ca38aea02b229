"""The measured numbers as documents: `docs/benchmarks.md`, and the table that the README quotes."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks.timing import Comparison

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
BEGIN: Final = "<!-- scripts/bench writes this table -->"
END: Final = "<!-- to here -->"


def markdown(found: Iterable[Comparison], remarks: Iterable[str], machine: Mapping[str, str]) -> str:
    """The whole report."""
    found = list(found)
    lines = [
        "# Benchmarks",
        "",
        "Written by `scripts/bench`. Both sides of a comparison ran in turn on one machine in one go; the "
        "result is the median over the pairs, and the times are medians too.",
        "",
        ", ".join(f"{key} {value}" for key, value in machine.items()) + ".",
        "",
        "| gem-bundle | compared with | rule | result | gem-bundle | the other | pairs |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {c.ours} | {c.theirs} | {c.rule} | **{result(c)}**{'' if c.holds else ' (broken)'} "
        f"| {seconds(c.our_seconds)} | {seconds(c.their_seconds)} | {c.pairs} |"
        for c in found
    ]
    for remark in remarks:
        lines += ["", remark + "."]
    return "\n".join(lines) + "\n"


def with_table(readme: str, found: Iterable[Comparison]) -> str:
    """The README with its table written anew.

    Raises:
        ValueError: When the README has no place for it.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table(found)}{END}{after}"


def table(found: Iterable[Comparison]) -> str:
    """The README's table."""
    rows = [
        f"| {c.ours} | {c.theirs} | {result(c)}{'' if c.holds else f' (aim: {c.rule})'} |\n" for c in found
    ]
    return "| gem-bundle | compared with | result |\n|---|---|---:|\n" + "".join(rows)


def result(comparison: Comparison) -> str:
    """The measured value in words, rounded to what its noise allows."""
    value = comparison.value
    if comparison.unit == "s":
        return f"{value:+.1f} s"
    if comparison.unit == "s in all":
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    if comparison.at_least:
        return f"{value:.0f} times as fast" if value >= 10 else f"{value:.1f} times as fast"
    return f"{value:.2f} times as long"


def falls_short(comparison: Comparison) -> str:
    """What breaks its bound, in a sentence."""
    return (
        f"{comparison.ours} against {comparison.theirs}: {result(comparison)}, "
        f"where {comparison.rule} is allowed"
    )


def seconds(value: float) -> str:
    """A time with three digits, in its unit."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"
