"""Rows at random for the sources of a drawn pipeline: few values, so that they meet, and times that overlap."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import fields_of, type_of

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.ddl import DataType

PHASES = ("a", "b")
# Each file is a micro-batch: when its rows happened, and how long that went on. The last ones are so much later
# that every window closes.
_FILES: dict[str, list[tuple[datetime, timedelta]]] = {
    "a": [
        (datetime(2024, 1, 31, 10, 0), timedelta(minutes=40)),
        (datetime(2024, 1, 31, 10, 10), timedelta(hours=1)),
    ],
    "b": [
        (datetime(2024, 1, 31, 10, 20), timedelta(hours=3)),
        (datetime(2024, 6, 30, 10, 0), timedelta(hours=1)),
    ],
}
_ROWS = 10
_WORDS = ("home", "cart", "pay", "x", "a")


def write_phase(folder: Path, schema: str, phase: str, seed: str) -> None:
    """Add the files of a phase to a folder: JSON, each whole at once."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = fields_of(schema) or ()
    for number, (start, span) in enumerate(_FILES[phase]):
        random = Random(f"{seed}:{folder.name}:{phase}:{number}")
        lines = []
        for _ in range(_ROWS):
            at = start + timedelta(seconds=random.randrange(int(span.total_seconds())))
            row = {field.name: _value(random, field.type, at) for field in fields}
            lines.append(json.dumps(row))
        hidden = folder.parent / f".{folder.name}.{phase}{number}"
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(folder / f"{phase}{number}.json")


def _value(random: Random, type_: DataType | str | None, at: datetime) -> Any:
    found = type_of(type_) if isinstance(type_, str) else type_
    text = str(found)
    head = text.partition("<")[0].partition("(")[0]
    if random.random() < 0.04 and head != "timestamp":
        return None
    if head == "struct":
        return {field.name: _value(random, field.type, at) for field in found.fields}  # type: ignore[union-attr]
    if head == "array":
        inner = text[len("array<") : -1]
        return [_value(random, inner, at) for _ in range(random.randrange(3))]
    if head == "map":
        return {word: random.choice(_WORDS) for word in random.sample(_WORDS, 2)}
    if head in {"timestamp", "timestamp_ntz"}:
        return at.isoformat(sep=" ")
    made: dict[str, Any] = {
        "string": random.choice(_WORDS),
        "binary": base64.b64encode(random.choice(_WORDS).encode()).decode(),
        "boolean": random.random() < 0.5,
        "date": at.date().isoformat(),
        "double": random.randrange(8) / 2,
        "float": random.randrange(8) / 2,
        "decimal": random.randrange(8) / 2,
    }
    return made.get(head, random.randrange(5))
