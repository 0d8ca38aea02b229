"""Rows that the suite gives to a gem: declared, written to files, read as a table or as a stream."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gem_bundle.contexts import StreamReadContext
from gem_bundle.facts import Column, Facts
from gem_bundle.operators import WatermarkOperator
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.testing.conformance.suite import GemConformance

MARK = "spark.watermarkDelayMs"
"""The metadata by which Spark's analyser shows a column's watermark."""


@dataclass(frozen=True)
class Given:
    """Rows that are given to a transform as one of its inputs.

    Args:
        schema: Their columns as DDL.
        rows: The rows, each a mapping of columns to values: texts, numbers, true and false, None, lists,
            mappings, dates, times, `decimal.Decimal`, bytes.
        event_time: A column of the type timestamp, and the delay of its watermark, for the tests of a
            stream with a watermark; None when there is no such column.
        static: Whether it is a table also beside streams: the other side of a join, for example.
    """

    schema: str
    rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    event_time: tuple[str, str] | None = None
    static: bool = False


EVENTS = Given(
    "id bigint, page string, amount double, at timestamp",
    [
        {"id": 1, "page": "home", "amount": 1.5, "at": "2026-01-05T09:00:00"},
        {"id": 2, "page": "cart", "amount": -2.0, "at": "2026-01-05T09:04:00"},
        {"id": 3, "page": "home", "amount": None, "at": "2026-01-05T09:05:00"},
        {"id": 4, "page": None, "amount": 0.25, "at": "2026-01-05T10:30:00"},
    ],
    ("at", "10 minutes"),
)
"""What a transform is given when its author says nothing else."""


class Folder:
    """A folder of JSON files, each complete as soon as it is there.

    Args:
        path: Where; it is made.
        schema: The columns as DDL.
    """

    def __init__(self, path: Path, schema: str) -> None:
        self.path = path
        self.schema = schema
        self._files = 0
        path.mkdir(parents=True)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put one more file there: one micro-batch."""
        self._files += 1
        hidden = self.path / f".{self._files:03}"
        lines = (json.dumps(row, default=_as_json) + "\n" for row in rows)
        hidden.write_text("".join(lines), encoding="utf-8")
        hidden.rename(self.path / f"{self._files:03}.json")

    def stream(self, spark: SparkSession, name: str) -> DataFrame:
        """The files as a stream, one a micro-batch."""
        reader = StreamReadContext(name, spark, name).reader
        return reader.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.path))

    def table(self, spark: SparkSession) -> DataFrame:
        """The files as a static relation."""
        return spark.read.schema(self.schema).json(str(self.path))


def _as_json(value: object) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"a row can't hold a value of the type {type(value).__name__}")


def facts_of(df: DataFrame) -> Facts:
    """What Spark's analyser says of a DataFrame, in the words of `Facts`."""
    columns = []
    for found in df.schema.fields:
        delay = found.metadata.get(MARK)
        # A struct made from event time has the mark inside, which no inferred type stands for.
        hidden = MARK in json.dumps(found.dataType.jsonValue())
        kind = None if hidden else type_of(found.dataType.simpleString())
        columns.append(
            Column(
                found.name,
                None if kind is None else str(kind),
                None if delay is None else f"{delay} milliseconds",
            )
        )
    streaming = df.isStreaming
    facts = Facts(streaming=streaming, columns=tuple(columns), bounded=not streaming, qualifiers=frozenset())
    for column in columns:
        if streaming and column.delay is not None:
            facts = facts.after(WatermarkOperator("watermark", column=column.name, delay=column.delay))
    return facts


def input_facts(suite: GemConformance) -> Iterator[tuple[Facts, ...]]:
    """The facts of the gem's inputs as a check may know them: none for a source."""
    if suite.gem.kind == "source":
        yield ()
        return
    given: Mapping[str, Given] = {} if suite.gem.kind == "target" else getattr(suite, "inputs", {})
    yield (Facts(),) * (len(given) or 1)
    table, stream = Facts(streaming=False, bounded=True), Facts(streaming=True, bounded=False)
    yield tuple(table if each.static else stream for each in given.values()) or (stream,)
