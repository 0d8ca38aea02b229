"""How many rows transforms rejected, dropped and found to break a rule, counted on their way.

A transform tells which rows it rejects, and they are counted before it. Of one that can't tell, rows are
counted before and behind it: what isn't behind it was rejected or dropped. In a stream Spark reports that
with each micro-batch; in a batch, and of a micro-batch of a group, an observation has it when the first
target has been written.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gem_bundle.facts import REJECTED
from gem_bundle.rejected import REJECTED_HERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column, DataFrame, Observation, Row

    from gem_bundle.gem import Source, Transform
    from gem_bundle.pipeline.plan import Plan

    Observe = Callable[[DataFrame, str, list[Column]], DataFrame]

_NAME = "gem_bundle_held"
_BEFORE, _BEHIND = "before", "behind"
_DROPPED = "dropped"
_REJECTED = "rejected"
_RULE = "rule:"
_OBSERVED_WITHIN = 1.0


@dataclass
class HeldRows:
    """What became of rows on their way, by node.

    Args:
        rejected: How many rows each node rejected.
        broken: For each node how many rows broke each of its rules by which they are only counted or dropped.
    """

    rejected: dict[str, int] = field(default_factory=dict)
    broken: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, other: HeldRows) -> None:
        """Count what became of other rows."""
        self.rejected = dict(Counter(self.rejected) + Counter(other.rejected))
        for node, rules in other.broken.items():
            self.broken[node] = dict(Counter(self.broken.get(node, {})) + Counter(rules))

    def only(self, nodes: Iterable[str]) -> HeldRows:
        """The numbers of some nodes."""
        named = set(nodes)
        return HeldRows(
            {node: rows for node, rows in self.rejected.items() if node in named},
            {node: rules for node, rules in self.broken.items() if node in named},
        )

    def merge(self, other: HeldRows) -> None:
        """Take over what another query counted, of the same rows: the larger number counts."""
        self.rejected = dict(Counter(self.rejected) | Counter(other.rejected))
        for node, rules in other.broken.items():
            self.broken[node] = dict(Counter(self.broken.get(node, {})) | Counter(rules))


def counted_before(gem: Transform, inputs: list[DataFrame], node: str, observe: Observe) -> list[DataFrame]:
    """The inputs of a transform, the first one counted where it rejects, or has rules that it counts.

    Args:
        gem: The transform.
        inputs: Its inputs.
        node: The id of the node.
        observe: Observes columns of a DataFrame under a name, and returns it.
    """
    from pyspark.sql.functions import count, count_if, lit

    inputs = [gem.judged(*inputs), *inputs[1:]]
    counts = gem.counts(*inputs)
    if not (gem.rejects() or counts.rules or counts.dropped is not None):
        return inputs
    columns = [count(lit(1)).alias("rows")]
    columns += [count_if(broken).alias(f"{_RULE}{name}") for name, broken in counts.rules.items()]
    if counts.dropped is not None:
        columns.append(count_if(counts.dropped).alias(_DROPPED))
    if counts.rejected is not None:
        columns.append(count_if(counts.rejected).alias(_REJECTED))
    return [observe(inputs[0], f"{_NAME}.{node}.{_BEFORE}", columns), *inputs[1:]]


def counted_behind(
    gem: Transform, df: DataFrame, inputs: list[DataFrame], node: str, observe: Observe
) -> DataFrame:
    """What comes out of such a transform, counted, where it rejects and doesn't tell before.

    Args:
        gem: The transform.
        df: The rows that are let through.
        inputs: Its inputs.
        node: The id of the node.
        observe: As for `counted_before`.
    """
    from pyspark.sql.functions import count, lit

    if not gem.rejects() or gem.counts(*inputs).rejected is not None:
        return df
    return observe(df, f"{_NAME}.{node}.{_BEHIND}", [count(lit(1)).alias("rows")])


def counted_undivided(source: Source, df: DataFrame, node: str, observe: Observe) -> DataFrame:
    """All rows of a source that rejects, counted.

    Args:
        source: The source.
        df: The rows.
        node: The id of the node.
        observe: As for `counted_before`.
    """
    from pyspark.sql.functions import count, count_if, lit

    rejected = count_if(source.rejected(df)).alias(_REJECTED)
    return observe(df, f"{_NAME}.{node}.{_BEFORE}", [count(lit(1)).alias("rows"), rejected])


def counted_apart(df: DataFrame, node: str, observe: Observe) -> DataFrame:
    """Rows that a transform tells apart, counted.

    Args:
        df: The rows, with the column `REJECTED_HERE`.
        node: The id of the node.
        observe: As for `counted_before`.
    """
    from pyspark.sql.functions import col, count, count_if, lit

    rejected = count_if(col(REJECTED_HERE)).alias(_REJECTED)
    return observe(df, f"{_NAME}.{node}.{_BEFORE}", [count(lit(1)).alias("rows"), rejected])


def observed_by_stream(df: DataFrame, name: str, columns: list[Column]) -> DataFrame:
    """Have Spark report columns with each micro-batch of a query."""
    return df.observe(name, *columns)


class Observations:
    """What is observed while a batch, or a micro-batch of a group, is written."""

    def __init__(self) -> None:
        self._found: dict[str, Observation] = {}

    def observe(self, df: DataFrame, name: str, columns: list[Column]) -> DataFrame:
        """Have Spark tell columns when the rows are first asked for."""
        from pyspark.sql import Observation

        self._found[name] = Observation()
        return df.observe(self._found[name], *columns)

    def held(self, nodes: Iterable[str]) -> HeldRows:
        """What was observed of some nodes, whose rows have been written.

        Args:
            nodes: The ids of the nodes.
        """
        asked = {
            name: self._found[name]
            for node in nodes
            for name in (f"{_NAME}.{node}.{_BEFORE}", f"{_NAME}.{node}.{_BEHIND}")
            if name in self._found
        }
        told = ((name, observed(observation, _OBSERVED_WITHIN)) for name, observation in asked.items())
        return held_rows({name: values for name, values in told if values is not None})


def let_through(plan: Plan, targets: Iterable[str]) -> set[str]:
    """The nodes whose ordinary rows get to some targets: those of others nobody asks for.

    Args:
        plan: The pipeline.
        targets: The ids of the targets.
    """
    return {e.node for name in plan.upstream(targets) for e in plan.node(name).inputs if e.output != REJECTED}


def observed(observation: Observation, seconds: float) -> dict[str, Any] | None:
    """What was observed, or None when that takes too long: then nobody has asked for the rows.

    Args:
        observation: The observation.
        seconds: How long it may take to arrive.
    """
    found: list[dict[str, Any]] = []

    def ask() -> None:
        with suppress(Exception):
            found.append(dict(observation.get))

    get = threading.Thread(target=ask, daemon=True)
    get.start()
    get.join(seconds)
    return found[0] if found else None


def values_of(observed: Row) -> dict[str, Any]:
    """The values of a row of observed metrics, by name, whatever the row looks like."""
    found = observed.asDict()
    # Spark Connect 4.2 sends a row as its values and its schema, and PySpark takes these for its columns.
    if found.keys() == {"values", "schema"}:
        return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))
    return found


def held_rows(metrics: Mapping[str, Mapping[str, Any]]) -> HeldRows:
    """What became of rows, as Spark reports it.

    Args:
        metrics: The values that were observed, by name.
    """
    held = HeldRows()
    for name, values in metrics.items():
        if not name.startswith(f"{_NAME}.") or not name.endswith(f".{_BEFORE}"):
            continue
        node = name[len(_NAME) + 1 : -len(_BEFORE) - 1]
        rules = {key.removeprefix(_RULE): int(n) for key, n in values.items() if n and key.startswith(_RULE)}
        if rules:
            held.broken[node] = rules
        behind = metrics.get(f"{_NAME}.{node}.{_BEHIND}")
        if values.get(_REJECTED):
            held.rejected[node] = int(values[_REJECTED])
        elif behind is not None:
            dropped = int(values.get(_DROPPED) or 0)
            rejected = int(values["rows"] or 0) - int(behind["rows"] or 0) - dropped
            if rejected:
                held.rejected[node] = rejected
    return held
